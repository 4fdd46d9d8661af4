"""Hyper-parameters chosen privately: the price of the choice, its law, the score's sensitivity, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

import fedgraph
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.methods.base import method_kinds
from fedgraph.models import fit as fits
from fedgraph.privacy import events
from fedgraph.privacy.accounting import calibrate, rdp, selection
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.events import Composed, Gaussian, Laplace, PureDP, Selected, Unprotected
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.units import Assumption
from fedgraph.runs.run import Run
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.node_classification import paid_scores, training
from fedgraph.types import Graph
from tests.models.conftest import BOUNDS

DELTA = 1e-5


@pytest.mark.parametrize(("shape", "among"), [(0.0, 1), (0.0, 20), (1.0, 3), (2.5, 20)])
def test_the_number_of_trials_has_its_law(shape: float, among: int) -> None:
    stop = selection.stop_for(shape, among)
    rng = np.random.default_rng(0)
    drawn = np.array([selection.draw_trials(shape, stop, rng) for _ in range(20_000)])
    assert drawn.min() >= 1
    assert drawn.mean() == pytest.approx(among, rel=0.06)
    if among > 1:
        mean = (1 / stop - 1) / math.log(1 / stop) if shape == 0 else shape * (1 - stop) / (stop * (1 - stop**shape))
        assert mean == pytest.approx(among, rel=1e-6)
    if shape == 1.0:
        assert (drawn == 1).mean() == pytest.approx(stop, abs=0.01), "geometric"


def test_the_price_is_that_of_the_theorem_and_grows_with_what_is_tried() -> None:
    """Papernot & Steinke 2022, Theorem 2, written down a second time; and ε → 2ε of Liu & Talwar for the pure case."""
    orders, stop = rdp.RDP_ORDERS, selection.stop_for(1.0, 20)
    each = orders / (2 * 4.0**2)
    found = selection.rdp(each, orders, 1.0, stop)
    for k in (5, 40, 80):
        inner = [2 * ((1 - 1 / hat) * hat / 32 + math.log(20) / hat) for hat in orders]
        assert found[k] == pytest.approx(each[k] + min(inner) + math.log(20) / (orders[k] - 1))
    one, several = (Gaussian(4.0),), (Gaussian(4.0), Composed((Laplace(3.0), Gaussian(9.0))))
    cost = [price(one[0], DELTA).epsilon] + [
        price(Selected(one, 0.0, selection.stop_for(0.0, k)), DELTA).epsilon for k in (2, 9)
    ]
    assert cost[0] < cost[1] < cost[2]
    alone = price(Selected(one, 0.0, 0.1), DELTA).epsilon
    assert price(Selected(several, 0.0, 0.1), DELTA).epsilon >= alone
    assert price(Composed((Selected(one, 0.0, 0.1), Gaussian(4.0))), DELTA).epsilon > alone
    assert price(Selected((PureDP(0.0),), 0.0, 0.1), DELTA).epsilon == 0
    for event, delta in (
        (Selected((Unprotected("x"), *one), 0.0, 0.1), DELTA),
        (Selected(one, 0.0, 0.0), DELTA),
        (Selected(one, 0.0, 0.1), 0.0),
    ):
        assert price(event, delta).epsilon == math.inf


def chosen(run: Run, name: str, place: Path, **more: object) -> fedgraph.Model:
    asked = {"over": {"steps": [2, 4]}, "among": 2}
    return run.score(name).fit(str(place / "people"), select={**asked, **more})  # type: ignore[dict-item]


def test_a_chosen_model_pays_for_the_choice_within_its_epsilon(run: Run, place: Path) -> None:
    name = next(s.row for s in run.scores if s.variant == "alone")
    model = chosen(run, name, place)
    assert 3.5 < model.epsilon <= 4
    assert '"type":"Selected"' in model.ledger[1]
    assert Assumption.UNTUNED.value not in model.ledger[0], "the search is counted"
    assert len(model.people.digests) == 150, "who judged is protected, too"
    with pytest.raises(PrivacyError, match="150 of 150 people were in the training graph"):
        model.predict(str(place / "people"), people="public")
    (release,) = model.plan.schedule.releases
    assert isinstance(release.event, Gaussian)
    alone = calibrate.gaussian_multiplier(1, 4.0, 1e-4)
    assert release.event.noise_multiplier / math.sqrt(release.count) > alone, "more noise than alone"


def test_what_cannot_be_chosen_is_one_line(run: Run, place: Path, tmp_path: Path) -> None:
    alone = next(s.row for s in run.scores if s.variant == "alone")
    with pytest.raises(ScenarioError, match=r"select\.over: {'steps': 0}"):
        chosen(run, alone, place, over={"steps": [0]})
    with pytest.raises(PrivacyError, match="gcon: its score would read private edges"):
        chosen(run, next(s.row for s in run.scores if s.method == "gcon"), place, over={"restart": [0.5]})
    hop = next(s.row for s in run.scores if s.method == "label_hop")
    with pytest.raises(PrivacyError, match="no score tells settings apart"):
        chosen(run, hop, place, over={"rows": [False], "correlation": [0.1, 0.3]})
    (tmp_path / "s.yaml").write_text("over: {steps: []}\namong: 0", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"s\.yaml: .* allowed: over, among, by"):
        fits.read_select(tmp_path / "s.yaml")


def test_trials_on_a_secret_sample_are_priced_with_it(run: Run, place: Path) -> None:
    name = next(s.row for s in run.scores if s.method == "dpar")
    people, public = str(place / "people"), str(place / "volunteers")
    model = run.score(name).fit(people, public=public, select={"over": {"epochs": [2, 4], "sampled": [0.5]}, "among": 2})
    assert 3 < model.epsilon <= 4
    account, event = json.loads(model.ledger[0]), events.from_dict(json.loads(model.ledger[1])["event"])
    assert account["sampled_once"] is None, "the sample is inside of each trial, and amplifies once"
    assert Assumption.SAMPLE_SECRET.value in model.ledger[0]
    assert isinstance(event, Selected)
    assert any("SampledOnce(" in repr(one) for one in event.candidates)


def a_choice(place: Path, row: dict[str, object], protocol: str) -> paid_scores.Choice:
    """Of a row at one curator, where all of the people train or judge."""
    graph = fedgraph.read(place / "people", columns=BOUNDS).graph
    assert isinstance(graph, Graph)
    given: dict[str, object] = {"methods": [row], "trust": ["curator"], "epsilons": [4.0], "protocol": protocol, "delta": 1e-4}
    params = node_classification.Params(**given)
    context = CellContext("t", "d", graph, 0, 1, SerialRuntime())
    (cell,) = node_classification.cells(params, context)
    training.give_setting(params, cell, context, params.everybody(graph, None))
    found = paid_scores.choice_of(params, cell, context)
    assert found is not None
    return found


def test_one_judge_changes_the_score_by_at_most_one(place: Path) -> None:
    """Neighbouring people, each judged with the model as it is; and the noise is that of the price (a KS test rejects ⅔)."""
    selects = a_choice(place, {"method": "features", "select": {"over": {"steps": [2, 4]}, "among": 2}}, "asking")
    with SerialRuntime() as engine:
        fitted = training.train(selects.rows[0], selects.cell, selects.trial_context(engine))
    judges = selects.judges
    assert not set(selects.setting.held.ids) & {judges.graph.ids[k] for k in judges.rows}
    right = judges.right(fitted).sum()
    for row in judges.rows[:5]:
        for other in (-1, *range(3)):
            labels = judges.graph.labels.copy()
            labels[row] = other
            moved = replace(judges, graph=replace(judges.graph, labels=labels))
            assert abs(moved.right(fitted).sum() - right) <= 1
    (release,) = selects.priced.plan.schedule.releases
    assert isinstance(release.event, Selected)
    assert isinstance(release.mechanism, GaussianNoise)
    std = release.mechanism.std
    score = release.event.candidates[-1]
    assert score == Gaussian(std)
    assert price(score, selects.priced.plan.guarantee.delta).epsilon <= selects.priced.epsilon
    scores = np.zeros((judges.rows.size, 1))
    once = replace(release, event=replace(release.event, stop=1.0))
    doors = (Desk("cell", 0, 0, [once], np.random.default_rng(k)) for k in range(4_000))
    noise = np.array([door.choose("choice", lambda _: ((), scores))[1].value.item() for door in doors])
    assert kstest(noise / std, "norm").pvalue > 1e-4 > kstest(noise / (std * 2 / 3), "norm").pvalue


def test_at_edge_level_the_scores_read_no_private_edge(place: Path) -> None:
    """They have no noise, so what they are computed from is what was released and what is public."""
    spec = {"method": "gap_edge", "epochs": 5, "select": {"over": {"hops": [1, 2]}, "among": 2}}
    selects = a_choice(place, spec, "transductive")
    with SerialRuntime() as engine:
        assert not selects.judges.alone
        fitted = training.train(selects.rows[0], selects.cell, selects.trial_context(engine))
    classifier, asked = method_kinds.load_classifier("gap_edge"), list[int]()
    predict = classifier.predict
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            classifier, "predict", lambda plan, state, graph: asked.append(graph.num_edges) or predict(plan, state, graph)
        )
        right = selects.judges.right(fitted)
    assert asked == [0], "the graph came without an edge"
    assert fitted.federation.held.num_edges > 0
    assert right.shape == (28, 1)
    assert right.any()
    assert (fitted.federation.held.labels[selects.judges.rows] == -1).all(), "who judges does not train"
