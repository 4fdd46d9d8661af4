"""Hyper-parameters chosen privately: the best of K trainings by a noisy score, K secret; what choosing costs is in the ledger.

A fifth of the labelled people do not train and judge: each is asked alone, from its own row without an edge, so one person
changes the number of right answers by at most 1. Noise of the strength of one training hides it. Whoever trains pays for the
trainings, whoever judges for the scores, and nobody for both. ``accounting.selection`` prices the best of them all.

**Guarantee.** Unit and relation of the row, toward whoever is shown the chosen model and its settings. K, the other trials and
how long all of it took must stay secret. **Edge cases.** Where labels are public (edge level) the score costs nothing.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import yaml
from pydantic import Field, ValidationError

from fedgraph import runtime, seeds
from fedgraph.cells.entry import RowKey
from fedgraph.documents.settings import Settings
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.methods.base import Plan, Reads, kinds
from fedgraph.models import fit as fits
from fedgraph.models.model import Model
from fedgraph.privacy.accounting import calibrate, selection
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.budget_charges import Candidate
from fedgraph.privacy.events import Event, Gaussian, Selected
from fedgraph.privacy.ledger import Account, Ledger
from fedgraph.privacy.lines import Line
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.settle import Guarantee, client_events
from fedgraph.privacy.units import Assumption, Unit
from fedgraph.tasks.base.training import Fitted
from fedgraph.types import Graph, without_edges
from fedgraph.worlds.protocols import Setting

JUDGES, MOST_JUDGES = 0.2, 1000  # of the labelled people, and how many at most
HALVINGS = 9  # of the interval of the ε of one training
CHEAPEST = 30.0  # how many times smaller than the whole it may be


class Select(Settings):
    """What is tried. Every combination of ``over`` is as likely as any other in each trial."""

    over: dict[str, list[bool | int | float | str]] = Field(min_length=1, description="setting of the method: values")
    among: float = Field(20, ge=1, le=1000, description="the mean number of trials")
    by: Literal["accuracy"] = Field("accuracy", description="what the noisy score counts: right answers")
    shape: float = Field(0, ge=0, le=10, description="η of the law of the number of trials: 0 logarithmic, 1 geometric")

    @property
    def choices(self) -> list[dict[str, object]]:
        return [dict(zip(self.over, values, strict=True)) for values in itertools.product(*self.over.values())]


@dataclass(frozen=True, eq=False)
class Judges:
    """Who judges: graph, the people with their labels; node-level: asked alone; else rows of the training graph."""

    graph: Graph
    rows: np.ndarray
    alone: bool

    def right(self, fitted: Fitted) -> int:
        """How many are answered rightly."""
        plan, state, setting = fitted.plan, fitted.done.outcome.state, fitted.world.setting
        predict = kinds.classifier(plan.method).predict
        if not self.alone:  # scores have no noise here, so they read what is released and public, and no private edge
            return int(
                (
                    predict(plan, state, without_edges(setting.held))[self.rows].argmax(axis=1) == self.graph.labels[self.rows]
                ).sum()
            )
        scaled = (
            self.graph if setting.ranks is None else setting.ranks.scaled(replace(self.graph, columns=setting.ranks.columns))
        )
        asked = (scaled.induced(np.array([row])) for row in self.rows)
        said = [int(np.asarray(predict(plan, state, replace(one, labels=np.array([-1])))).argmax()) for one in asked]
        return int((np.array(said) == self.graph.labels[self.rows]).sum())


def read(path: Path) -> Select:
    """What a YAML file says. ``ScenarioError`` in one line where it is no selection."""
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Select(**given["select"] if isinstance(given, dict) and "select" in given else given)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, ValidationError) as error:
        raise ScenarioError(f"{path}: {' '.join(str(error).split())[:300]}; allowed: over, among, by, shape") from error


def fit_best(
    folder: Path, row: RowKey, people: object, wanted: fits.Wanted, select: Select, others: Sequence[Candidate] = ()
) -> Model:
    """As ``fit.fit``, with the settings of ``select`` chosen privately. The row's ε pays for trainings, scores and choice.

    Raises ``PrivacyError`` also where a candidate has no Rényi price, or its noise rests on a secret sample.
    """
    ready = fits.prepared(folder, row, people, wanted)
    candidates = [_candidate(ready, choice) for choice in select.choices]
    graph, judges = _split(ready)
    setting = fits.setting_of(ready.params, graph, ready.public)
    with runtime.start("serial") as engine:
        contexts = [fits.context_of(one, setting, engine) for one in candidates]
        stop = selection.stop_for(select.shape, select.among)

        def planned(epsilon: float) -> tuple[list[fits.Prepared], Guarantee, Selected]:
            rows = [replace(one, cell=replace(one.cell, epsilon=epsilon)) for one in candidates]
            plans = [one.models.spends(one.params, one.cell, c) for one, c in zip(rows, contexts, strict=True)]
            return rows, plans[0][1], Selected(_events(plans, epsilon, judges), select.shape, stop)

        rows, guarantee, event = _affordable(planned, ready.cell.epsilon)
        protection = guarantee.protection
        stated = tuple(a for a in protection.assumptions if a is not Assumption.UNTUNED)
        account = Account(ready.cell.key, replace(protection, assumptions=stated), guarantee.delta)
        words = f"the best by its noisy score, of a secret number of trainings, {select.among:g} on average"
        ledger = Ledger([account], [Line(ready.cell.key, "selected", ((0, 0),), ((0, 0),), 1, words, event)])
        if wanted.budget is not None:
            due = Candidate.released(f"model {ready.name}, chosen among {select.among:g}", account, tuple(ledger))
            fits.charge(wanted.budget, due, ready.graph.names.ids or None, others)
    best = _best_of_trials(rows, setting, judges, select.shape, stop)
    ids = ready.graph.ids if not judges.alone else (*graph.ids, *(ready.graph.ids[k] for k in judges.rows))
    return fits.model_of(ready, best, price(event, guarantee.delta).epsilon, ledger, ids)


def _best_of_trials(rows: Sequence[fits.Prepared], setting: Setting, judges: Judges, shape: float, stop: float) -> Fitted:
    """K trials, each with noise of its own; the one of the highest noisy score."""
    secret = seeds.secret_generator(seeds.root("secret"), "selection")
    best: tuple[float, Fitted] | None = None
    for _ in range(selection.draw_trials(shape, stop, secret)):
        one = rows[int(secret.integers(len(rows)))]
        with runtime.start("serial") as engine:
            fitted = one.models.train(one.params, one.cell, fits.context_of(one, setting, engine))
        score = np.array([float(judges.right(fitted))])
        if judges.alone:
            score = GaussianNoise(score_noise(one.cell.epsilon, fitted.plan.guarantee.delta)).apply(score, secret)
        if best is None or score[0] > best[0]:
            best = (float(score[0]), fitted)
    assert best is not None
    return best[1]


def score_noise(epsilon: float, delta: float) -> float:
    """Standard deviation of the noise on a number of right answers, whose sensitivity is 1: that of one release of ε."""
    return calibrate.gaussian_multiplier(1, epsilon, delta)


def _candidate(ready: fits.Prepared, choice: Mapping[str, object]) -> fits.Prepared:
    """The row with other settings. ``ScenarioError`` for a setting that its method does not have."""
    entry = ready.cell.entry
    assert entry is not None
    spec = ready.params.methods[entry] | dict(choice)
    known = kinds.method(spec["method"]).Params
    try:
        known(**{key: spec[key] for key in choice})
    except ValidationError as error:
        raise ScenarioError(f"select.over: {choice}: {' '.join(str(error).split())[:200]}") from error
    methods = [spec if number == entry else other for number, other in enumerate(ready.params.methods)]
    return replace(ready, params=ready.params.model_copy(update={"methods": methods}))


def _split(ready: fits.Prepared) -> tuple[Graph, Judges]:
    """(the graph that trains, who judges). Drawn by a public coin: who judges is public, as who trains is."""
    graph = replace(ready.graph, masks=(), validation=None)
    labelled = np.flatnonzero(graph.labels >= 0)
    rng = seeds.generator(0, "judges", graph.num_nodes)
    rows = np.sort(rng.permutation(labelled)[: min(MOST_JUDGES, max(1, round(JUDGES * labelled.size)))])
    if ready.params.protocol == "transductive":
        masked = graph.labels.copy()
        masked[rows] = -1
        return replace(graph, labels=masked), Judges(graph, rows, alone=False)
    return graph.induced(np.setdiff1d(np.arange(graph.num_nodes), rows)), Judges(graph, rows, alone=True)


def _events(plans: Sequence[tuple[Plan, Guarantee]], epsilon: float, judges: Judges) -> tuple[Event, ...]:
    """What one person may pay in one trial: each candidate's training, or a score."""
    found: list[Event] = []
    for made, guarantee in plans:
        if guarantee.holdings is not None or guarantee.per_end or guarantee.sampled_once is not None:
            raise PrivacyError(f"{made.method}: a choice is priced where people are at one client, and without a secret sample")
        if any(not promise.kept for promise in guarantee.promises):
            raise PrivacyError(f"{made.method}: the data break what its guarantee assumes, so ε is ∞")
        if guarantee.protection.unit is Unit.EDGE and fits.answer_reads(made) is not Reads.NOTHING:
            raise PrivacyError(f"{made.method}: its score would read private edges, which nobody priced")
        found += client_events(guarantee, made.schedule.releases).values()
    guarantee = plans[0][1]
    if judges.alone:
        found.append(Gaussian(score_noise(epsilon, guarantee.delta)))
    return tuple(dict.fromkeys(found))


class _Planned(Protocol):
    def __call__(self, epsilon: float) -> tuple[list[fits.Prepared], Guarantee, Selected]: ...


def _affordable(planned: _Planned, epsilon: float) -> tuple[list[fits.Prepared], Guarantee, Selected]:
    """The trainings of the largest ε whose best costs at most ``epsilon`` in all. ``PrivacyError`` where there is none."""
    low, high = epsilon / CHEAPEST, epsilon
    best = planned(low)
    if price(best[2], best[1].delta).epsilon > epsilon:
        raise PrivacyError(f"ε = {epsilon:g} does not pay for a choice; allowed: fewer trials (among), or a larger ε")
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        tried = planned(middle)
        if price(tried[2], tried[1].delta).epsilon <= epsilon:
            low, best = middle, tried
        else:
            high = middle
    return best
