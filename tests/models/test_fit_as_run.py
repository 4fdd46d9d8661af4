"""What ``fit`` and ``predict`` give is what the run printed: every method that makes models, in each of its situations.

With the run's own seed in the place of the secret one, a model of the people who trained in the run is the run's model: those
who were tested there get the same answers, so its accuracy is the printed number to the last digit. Where test people train,
too (protocol ``asking``), and for people who come later, both are alike within chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

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
from tests.models.conftest import who

PEOPLE, LATER = 240, 120
PROTOCOLS = ("inductive", "inductive-edges", "transductive", "asking")
SEED, EPSILON = 3, 16.0
PAIRS = {"test_share": 0.1}
QUICK = {"label_hop": {"label_epsilon": 4.0}}  # how it divides its budget by itself is tried with its method, and takes seconds
READING = {"bounds": {"age": [0, 100]}, "label": "class"}
Tables = tuple[pd.DataFrame, pd.DataFrame]


class Town(NamedTuple):
    """table: everybody. ties: between them. read: the graph of those who are there when the run is made.

    further: whether the rows are of further situations of the methods, or of the first of each.
    """

    table: pd.DataFrame
    ties: pd.DataFrame
    read: Graph
    run: Run
    further: bool

    def of(self, people: list[str], known: set[str] | None = None) -> Tables:
        """The two tables of some of them. known: whose label is there; None: everybody's."""
        own = self.table[self.table["id"].isin(people)].copy()
        if known is not None:
            own.loc[~own["id"].isin(known), "class"] = ""
        return own, self.ties[self.ties["source"].isin(people) & self.ties["target"].isin(people)]

    def asked(self, people: list[str]) -> Tables:
        """As a model is asked: without labels, with the ties among them."""
        table, ties = self.of(people)
        return table.drop(columns="class"), ties

    def accuracy(self, model: Model, tested: list[str], among: list[str]) -> float:
        """How many of the tested are told their class, where all of ``among`` are asked."""
        nodes, ties = self.asked(among)
        said = dict(zip(nodes["id"], model.predict((nodes, ties), **who(model)), strict=True))
        truth = self.table.set_index("id")["class"]
        return float(np.mean([said[one] == truth[one] for one in tested if truth[one]]))

    def rows(self, protocol: str) -> Iterator[tuple[str, ChosenRow]]:
        """(name, row) of each row of a protocol, all of which have run."""
        found = [score for score in self.run.scores if score.task == protocol]
        assert not [s for s in found if not (s.status == "ok" or s.status.startswith("not private: the promise"))]
        assert len(found) == len(rows_of(protocol, self.further))
        return ((f"{score.variant} {score.trust.value}", self.run.score(score.row)) for score in found)

    def split(self, protocol: str) -> tuple[list[str], list[str]]:
        """(who trained, who was tested) in the run; where one graph is held and asked, everybody trained."""
        rng = seeds.seeded_generator(SEED, "split", "people", 0)
        setting = protocols.divide(self.read, protocol, 0.8, rng)  # type: ignore[arg-type]
        asked = zip(setting.asked.ids, setting.truth, strict=True)
        return list(setting.held.ids), [one for one, truth in asked if truth >= 0]


def drawn() -> Tables:
    """(everybody, ties): classes that a number without bounds, one with bounds, a text and ties show; eight have no label."""
    rng, n = np.random.default_rng(5), PEOPLE + LATER
    truth = rng.integers(0, 3, n)
    table = pd.DataFrame({
        "id": [f"p{k}" for k in range(n)],
        "age": np.clip(rng.normal(30 + 15 * truth, 20), 0, 100).round(1),
        "visits": rng.poisson(5 + 2 * (2 - truth)),
        "city": [("Bern", "Genf", "Basel")[label if rng.random() < 0.5 else rng.integers(3)] for label in truth],
        "class": [("low", "mid", "high")[label] for label in truth],
    })  # fmt: skip
    one = rng.integers(0, n, 3 * n)
    two = np.array([rng.choice(np.flatnonzero(truth == truth[a])) if rng.random() < 0.75 else rng.integers(n) for a in one])
    table.loc[[3, 30, 60, 90, 120, 150, 180, 210], "class"] = ""
    return table, pd.DataFrame({"source": table["id"].to_numpy()[one], "target": table["id"].to_numpy()[two]})


def rows_of(given: str, further: bool) -> list[dict[str, object]]:
    """A row for the first situation of every method of which somebody has said what an answer reads; or for each further one.

    Each trusts one of those that it may trust, all in turn: who is trusted is one piece of code for all methods.
    """
    found: list[dict[str, object]] = []
    for name in method_kinds.list_names(lambda offers: offers.kind in ("classifier", "linker") and offers.reads is not None):
        offers = method_kinds.load(name).OFFERS
        here = [(number, situation) for number, situation in enumerate(offers.situations) if situation.given == given]
        for number, situation in here[1:] if further else here[:1]:
            one = situation.trusted[len(found) % len(situation.trusted)]
            trust = ["nobody" if offers.trusts_nobody else one.value]
            found.append(
                {"method": name, "label": f"{name} {number}", "trust": trust, **situation.settings, **QUICK.get(name, {})}
            )
    return found


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["first", "further"])
def town(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Town:
    home, further = tmp_path_factory.mktemp("town"), bool(request.param)
    (home / "people").mkdir()
    table, ties = drawn()
    here = table[:PEOPLE]
    here.to_csv(home / "people" / "people.csv", index=False)
    inside = ties["source"].isin(here["id"]) & ties["target"].isin(here["id"])
    ties[inside].to_csv(home / "people" / "ties.csv", index=False)
    nodes, pairs = {"task": "node_classification", "delta": 1e-3}, {"task": "link_prediction", **PAIRS}
    partition = {"partition": "uniform", "clients": 3}
    common = {"trust": ["curator", "sums", "own-client"], "epsilons": [EPSILON], "partition": partition}
    tasks = [
        {**(pairs if one == "links" else {**nodes, "protocol": one}), "label": one, "methods": made, **common}
        for one in (*PROTOCOLS, "links")
        if (made := rows_of(one, further))
    ]
    data = [{"name": "own/read", "label": "people", "path": str(home / "people"), "parameters": READING}]
    asked = {"name": "town", "seed": SEED, "seeds": 1, "runtime": {"engine": "serial"}, "datasets": data, "tasks": tasks}
    run = fedgraph.run(asked, out=home / "run", quiet=True)
    read = fedgraph.read(home / "people", columns=READING).graph
    assert isinstance(read, Graph)
    return Town(table, ties, read, run, further)


@pytest.fixture(autouse=True)
def _the_runs_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit.seeds, "root_seed", lambda seed: SEED)


def protection(model: Model) -> Protection:
    return LedgerAccount.from_dict(json.loads(model.ledger[0])).protection


@pytest.mark.parametrize("protocol", ["inductive", "inductive-edges", "transductive"])
def test_a_model_of_those_who_trained_is_the_runs_model(town: Town, protocol: str) -> None:
    """Where one graph is held and asked, people who come later are refused, or answered as well. Tables or a graph are one."""
    everybody = list(town.table["id"])
    trained, tested = town.split(protocol)
    others = [one for one in town.read.ids if one not in set(trained)]
    public: Any = None if protocol == "transductive" else town.asked(others)
    people: Any = town.of(trained, set(trained) - set(tested))
    printed, found = {}, {}
    for name, row in town.rows(protocol):
        if (protocol, row.method) == ("inductive", "nonprivate"):
            public, people = (fedgraph.read(town.of(some), columns=READING).graph for some in (others, trained))
        model = row.fit(people, public=public, nothing_protected=True)
        printed[name] = row.mean, row.epsilon_provable, row.held
        found[name] = town.accuracy(model, tested, others or trained), pytest.approx(model.epsilon), protection(model)
        if protocol == "transductive" and row.method == "nonprivate":
            assert town.accuracy(model, everybody[PEOPLE:], everybody) > row.mean - 0.2
        elif protocol == "transductive":
            with pytest.raises(DataError, match=f"{LATER} of {PEOPLE + LATER} people were not in the training graph"):
                model.predict(town.asked(everybody), **who(model))
    assert found == printed


def test_a_model_of_links_is_the_runs_model(town: Town) -> None:
    graph, ids = town.read, np.array(town.read.ids)
    edges = links.list_all(graph.adjacency)
    hidden = seeds.coins(SEED, "split", "people", 0, things=edges) < PAIRS["test_share"]
    none = links.draw_pairs(graph.num_nodes, 10_000, seeds.seeded_generator(SEED, "negatives", "people", 0), graph.adjacency)
    pairs, count = ids[np.concatenate([edges[hidden], none])], int(hidden.sum())
    people = town.of(list(ids))[0], pd.DataFrame(ids[edges[~hidden]], columns=["source", "target"])
    printed, found = {}, {}
    for name, row in town.rows("links"):
        if row.method == "link_clear":
            with pytest.raises(ScenarioError, match="it is no model"):
                row.fit(people, nothing_protected=True)
            continue
        model = row.fit(people, nothing_protected=True)
        scores = model.score_pairs(pairs)
        printed[name] = row.mean, row.epsilon_provable, row.held
        auc = links.measure_scores(scores[:count], scores[count:])[row.metric]
        found[name] = auc, pytest.approx(model.epsilon), protection(model)
    assert found == printed


def test_who_asks_is_answered_as_in_the_run_though_everybody_has_a_label_and_so_are_people_who_come_later(town: Town) -> None:
    """In the run a fifth asked; in the model nobody is held back, and people come later with ties to those who trained."""
    everybody, here = list(town.table["id"]), list(town.read.ids)
    later = everybody[PEOPLE:]
    for name, row in town.rows("asking"):
        model = row.fit(nothing_protected=True)
        answered = town.accuracy(model, later, everybody), town.accuracy(model, here, here)
        chance = math.sqrt(row.mean * (1 - row.mean) * (1 / len(later) + 5 / PEOPLE))
        assert protection(model) == row.held, name
        assert abs(answered[0] - row.mean) < 3 * chance, (name, row.mean, answered)
        assert answered[1] > row.mean - 3 * chance, (name, row.mean, answered)
