"""What ``fit`` and ``predict`` give is what the run printed: every method that makes models, in each of its situations.

With the run's own seed in the place of the secret one, a model of the people who trained in the run is the run's model: those
who were tested there get the same answers, so its accuracy is the printed number to the last digit. Where test people train,
too (protocol ``asking``), and for people who come later, both are alike within chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph import seeds
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods.base import method_kinds
from fedgraph.models import fit
from fedgraph.models.model import Model
from fedgraph.privacy import LedgerAccount, Protection
from fedgraph.runs.run import ChosenRow, Run
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph

PEOPLE, LATER = 240, 120
CLASSES = ("low", "mid", "high")
PROTOCOLS = ("inductive", "inductive-edges", "transductive", "asking")
TRUST = ["curator", "sums", "own-client"]
SEED, EPSILON = 3, 16.0
CALLED = "people"
PAIRS = {"test_share": 0.1}


def drawn() -> tuple[pd.DataFrame, pd.DataFrame]:
    """(everybody, ties): classes that a number without bounds, one with bounds, a text and ties show; eight have no label."""
    rng, n = np.random.default_rng(5), PEOPLE + LATER
    truth = rng.integers(0, 3, n)
    table = pd.DataFrame({
        "id": [f"p{k}" for k in range(n)],
        "age": np.clip(rng.normal(30 + 15 * truth, 20), 0, 100).round(1),
        "visits": rng.poisson(5 + 2 * (2 - truth)),
        "city": [("Bern", "Genf", "Basel")[label if rng.random() < 0.5 else rng.integers(3)] for label in truth],
        "class": [CLASSES[label] for label in truth],
    })  # fmt: skip
    one = rng.integers(0, n, 3 * n)
    two = np.array([rng.choice(np.flatnonzero(truth == truth[a])) if rng.random() < 0.75 else rng.integers(n) for a in one])
    return table, pd.DataFrame({"source": table["id"].to_numpy()[one], "target": table["id"].to_numpy()[two]})


READING = {"bounds": {"age": [0, 100]}, "label": "class"}


@dataclass(frozen=True)
class Town:
    """table: everybody. ties: between them. read: the graph of those who are there when the run is made.

    further: whether the rows are of further situations of the methods, or of the first of each.
    """

    table: pd.DataFrame
    ties: pd.DataFrame
    read: Graph
    run: Run
    further: bool

    def of(self, people: list[str], known: set[str] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The two tables of some of them. known: whose label is there; None: everybody's."""
        own = self.table[self.table["id"].isin(people)].copy()
        if known is not None:
            own.loc[~own["id"].isin(known), "class"] = ""
        return own, self.ties[self.ties["source"].isin(people) & self.ties["target"].isin(people)]

    def asked(self, people: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """As a model is asked: without labels, with the ties among them."""
        table, ties = self.of(people)
        return table.drop(columns="class"), ties

    def accuracy(self, model: Model, tested: list[str], among: list[str]) -> float:
        """How many of the tested are told their class, where all of ``among`` are asked."""
        nodes, ties = self.asked(among)
        said = dict(zip(nodes["id"], model.predict((nodes, ties), **who(model)), strict=True))
        truth = self.table.set_index("id")["class"]
        return float(np.mean([said[one] == truth[one] for one in tested if truth[one]]))


def rows_of(given: str, further: bool = False) -> list[dict[str, object]]:
    """A row for the first situation of every method of which somebody has said what an answer reads; or for each further one.

    Each trusts one of those that it may trust, all in turn: who is trusted is one piece of code for all methods.
    """
    found: list[dict[str, object]] = []
    for name in method_kinds.list_names(lambda offers: offers.kind in ("classifier", "linker") and offers.reads is not None):
        offers = method_kinds.load(name).OFFERS
        here = [(number, situation) for number, situation in enumerate(offers.situations) if situation.given == given]
        for place, (number, situation) in enumerate(here):
            if (place > 0) == further:
                one = situation.trusted[len(found) % len(situation.trusted)]
                trust = ["nobody" if offers.trusts_nobody else one.value]
                found.append({"method": name, "label": f"{name} {number}", "trust": trust, **situation.settings})
    return found


def test_everybody_who_may_be_trusted_is() -> None:
    for given in PROTOCOLS:
        assert {one for row in rows_of(given) for one in row["trust"]} >= set(TRUST), given  # type: ignore[attr-defined]


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "further"])
def town(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Town:
    home, further = tmp_path_factory.mktemp("town"), bool(request.param)
    table, ties = drawn()
    table.loc[[3, 30, 60, 90, 120, 150, 180, 210], "class"] = ""
    here = table[:PEOPLE]
    (home / CALLED).mkdir()
    here.to_csv(home / CALLED / "people.csv", index=False)
    inside = ties["source"].isin(here["id"]) & ties["target"].isin(here["id"])
    ties[inside].to_csv(home / CALLED / "ties.csv", index=False)
    common = {"trust": TRUST, "epsilons": [EPSILON], "partition": {"partition": "uniform", "clients": 3}}
    tasks: list[dict[str, object]] = [
        {
            "task": "node_classification",
            "label": one,
            "protocol": one,
            "delta": 1e-3,
            "methods": made,
            **common,
        }
        for one in PROTOCOLS
        if (made := rows_of(one, further))
    ]
    tasks.append({"task": "link_prediction", "label": "links", "methods": rows_of("links", further), **PAIRS, **common})
    data = [{"name": "own/read", "label": CALLED, "path": str(home / CALLED), "parameters": READING}]
    asked = {"name": "town", "seed": SEED, "seeds": 1, "runtime": {"engine": "serial"}, "datasets": data, "tasks": tasks}
    fedgraph.run(asked, out=home / "run", quiet=True)
    read = fedgraph.read(home / CALLED, columns=READING).graph
    assert isinstance(read, Graph)
    return Town(table, ties, read, fedgraph.open_run(home / "run"), further)


@pytest.fixture(autouse=True)
def _the_runs_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit.seeds, "root_seed", lambda seed: SEED)


def rows(town: Town, protocol: str) -> Iterator[ChosenRow]:
    found = [score for score in town.run.scores if score.task == protocol]
    assert not [score for score in found if not (score.status == "ok" or score.status.startswith("not private: the promise"))]
    assert len(found) == len(rows_of(protocol, town.further))
    for score in found:
        yield town.run.score(score.row)


def split(town: Town, protocol: str) -> tuple[list[str], list[str]]:
    """(who trained, who was tested) in the run; where one graph is held and asked, everybody trained."""
    rng = seeds.seeded_generator(SEED, "split", CALLED, 0)
    setting = protocols.divide(town.read, protocol, 0.8, rng)  # type: ignore[arg-type]
    return list(setting.held.ids), [one for one, truth in zip(setting.asked.ids, setting.truth, strict=True) if truth >= 0]


def who(model: Model) -> dict[str, Any]:
    offered = method_kinds.load(model.method).OFFERS.reads
    assert offered is not None
    public = offered(model.plan).name in ("PUBLIC_GRAPH", "NOTHING")
    return {"people": "public" if public else "own", "nothing_protected": math.isinf(model.epsilon)}


def protection(model: Model) -> Protection:
    return LedgerAccount.from_dict(json.loads(model.ledger[0])).protection


@pytest.mark.parametrize("protocol", ["inductive", "inductive-edges", "transductive"])
def test_a_model_of_those_who_trained_is_the_runs_model(town: Town, protocol: str) -> None:
    """Where one graph is held and asked, people who come later are refused, or answered as well."""
    everybody = list(town.table["id"])
    trained, tested = split(town, protocol)
    others = sorted(set(town.read.ids) - set(trained), key=town.read.ids.index)
    public = None if protocol == "transductive" else town.asked(others)
    people = town.of(trained, set(trained) - set(tested))
    printed, found = {}, {}
    for row in rows(town, protocol):
        model = row.fit(people, public=public, nothing_protected=True)
        name = f"{row.variant} {row.trust.value}"
        printed[name] = row.mean, row.epsilon_provable, row.held
        found[name] = town.accuracy(model, tested, others or trained), pytest.approx(model.epsilon), protection(model)
        if protocol == "transductive" and row.method == "nonprivate":
            assert town.accuracy(model, everybody[PEOPLE:], everybody) > row.mean - 0.2
        elif protocol == "transductive":
            with pytest.raises(DataError, match=f"{LATER} of {PEOPLE + LATER} people were not in the training graph"):
                model.predict(town.asked(everybody), **who(model))
    assert found == printed


def test_a_model_of_links_is_the_runs_model(town: Town) -> None:
    graph = town.read
    edges = links.list_all(graph.adjacency)
    hidden = seeds.coins(SEED, "split", CALLED, 0, things=edges) < PAIRS["test_share"]
    rng = seeds.seeded_generator(SEED, "negatives", CALLED, 0)
    none = links.draw_pairs(graph.num_nodes, 10_000, rng, graph.adjacency)
    ids = np.array(graph.ids)
    pairs = ids[np.concatenate([edges[hidden], none])]
    people = town.of(list(graph.ids))[0], pd.DataFrame(ids[edges[~hidden]], columns=["source", "target"])
    printed, found = {}, {}
    for row in rows(town, "links"):
        if row.method == "link_clear":
            with pytest.raises(ScenarioError, match="it is no model"):
                row.fit(people, nothing_protected=True)
            continue
        model = row.fit(people, nothing_protected=True)
        scores, count, name = model.score_pairs(pairs), int(hidden.sum()), f"{row.variant} {row.trust.value}"
        printed[name] = row.mean, row.epsilon_provable, row.held
        auc = links.measure_scores(scores[:count], scores[count:])[row.metric]
        found[name] = auc, pytest.approx(model.epsilon), protection(model)
    assert found == printed


def test_who_asks_is_answered_as_in_the_run_though_everybody_has_a_label_and_so_are_people_who_come_later(town: Town) -> None:
    """In the run a fifth asked; in the model nobody is held back, and people come later with ties to those who trained."""
    everybody, here = list(town.table["id"]), list(town.read.ids)
    later = everybody[PEOPLE:]
    for row in rows(town, "asking"):
        model, name = row.fit(nothing_protected=True), f"{row.variant} {row.trust.value}"
        answered = town.accuracy(model, later, everybody), town.accuracy(model, here, here)
        chance = math.sqrt(row.mean * (1 - row.mean) * (1 / len(later) + 5 / PEOPLE))
        assert protection(model) == row.held, name
        assert abs(answered[0] - row.mean) < 3 * chance, (name, row.mean, answered)
        assert answered[1] > row.mean - 3 * chance, (name, row.mean, answered)


def test_a_graph_in_memory_is_fitted_as_its_tables_are(town: Town) -> None:
    """The model knows how columns are read, whatever it was fitted on: those who ask bring tables."""
    trained, tested = split(town, "inductive")
    others = [one for one in town.read.ids if one not in set(trained)]
    row = next((row for row in rows(town, "inductive") if row.method == "nonprivate"), None)
    if row is None:
        pytest.skip("its row is among the first")
    held, asked = (fedgraph.read(town.of(people), columns=READING).graph for people in (trained, others))
    model = row.fit(held, public=asked, nothing_protected=True)
    assert town.accuracy(model, tested, others) == row.mean
