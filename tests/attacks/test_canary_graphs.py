"""Noisy updates and released histograms under attack: neighbours, no false accusation, broken noise is caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.attacks.base import canary_graphs as attack
from fedgraph.attacks.base import whole_run
from fedgraph.attacks.base.evidence import local_dp as read_local_dp
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse
from fedgraph.privacy.units import Viewer
from fedgraph.tasks import graph_clustering
from fedgraph.tasks.base import Cell, CellContext, Result
from fedgraph.types import Graph, Partition
from tests.mutants import bench
from tests.mutants import methods as mutants

SMALL = {"method": "local_dp", "rounds": 2, "hidden": 4, "projection": 8, "unit": "graph", "compare": ["mean"]}
LABELS = {"training": "none", "release": "labels", "compare": ["histogram"]}


@pytest.fixture(scope="module")
def where(library: Graph) -> CellContext:
    return CellContext("t", "d", library, 0, 1, runtime.start("serial"))


def params(model: dict[str, Any], epsilon: float = 8.0, clients: int = 40, **changes: Any) -> graph_clustering.Params:
    given: dict[str, Any] = {
        "methods": [SMALL | model],
        "partition": {"partition": "ego", "clients": clients, "hops": 1},
        "epsilons": [epsilon],
        "attack": {"guesses": [0.2]},
        "num_init": 1,
        "max_iterations": 1,
    }
    return graph_clustering.Params(**(given | changes))


def cell_of(given: graph_clustering.Params, where: CellContext) -> Cell:
    return next(c for c in graph_clustering.cells(given, where) if c.method == "local_dp")


def outcome(model: dict[str, Any], where: CellContext, **changes: Any) -> Result:
    given = params(model, **changes)
    return graph_clustering.run(given, cell_of(given, where), where)


def drawn(model: dict[str, Any], where: CellContext) -> tuple[Any, Partition, attack.CanaryGraphs]:
    given = params(model)
    made = graph_clustering.plan(given, cell_of(given, where), where)
    partition = graph_clustering.deal(given, 0, where)
    found = attack.draw(made, partition, np.random.default_rng(0))
    assert made is not None
    assert found is not None
    return made, partition, found


def differs(a: Graph, b: Graph) -> np.ndarray:
    """Nodes whose row or label is another one; edges must be the same."""
    assert not (a.adjacency != b.adjacency).nnz
    rows = np.asarray(abs(a.features - b.features).sum(axis=1)).ravel() > 0
    return np.flatnonzero(rows | (a.labels != b.labels))


def test_a_coin_decides_one_graph_and_nothing_else(where: CellContext) -> None:
    made, partition, found = drawn({"training": "dp_fedavg"}, where)
    with_it, without = found.coins.copy(), found.coins.copy()
    with_it[3], without[3] = True, False
    one, zero = (replace(found, coins=c).dealt(made.made.sizes) for c in (with_it, without))
    changed = [bool(differs(a.graph, b.graph).size) for a, b in zip(one.subgraphs, zero.subgraphs, strict=True)]
    assert np.flatnonzero(changed).tolist() == [3]
    assert [s.nodes.tolist() for s in one.subgraphs] == [s.nodes.tolist() for s in partition.subgraphs]
    assert all((s.graph.labels >= 0).all() for s in one.subgraphs)


def test_a_coin_decides_one_node_wherever_it_is_held(where: CellContext) -> None:
    made, partition, found = drawn({"training": "dp_fedavg", "unit": "node"}, where)
    with_it, without = found.coins.copy(), found.coins.copy()
    with_it[0], without[0] = True, False
    one, zero = (replace(found, coins=c).dealt(made.made.sizes) for c in (with_it, without))
    nodes = {int(a.nodes[row]) for a, b in zip(one.subgraphs, zero.subgraphs, strict=True) for row in differs(a.graph, b.graph)}
    assert len(nodes) == 1
    (node,) = nodes
    decided = [place for place, own in enumerate(found.units) if own[0] == 0]
    assert decided == [place for place, s in enumerate(partition.subgraphs) if node in s.nodes]


@pytest.mark.parametrize("model", [{"training": "dp_fedavg", "updates": "each"}, {"training": "dp_sgd"}, LABELS])
def test_broken_noise_is_caught_and_sound_noise_is_not_accused(
    where: CellContext, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any]
) -> None:
    sound = outcome(model, where, epsilon=1.0)
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 20), v, rng))
    released = {} if model is LABELS else {"release": "labels", "compare": ["histogram"]}
    broken = outcome(model | released, where, epsilon=1.0, attack={"guesses": [1.0]})
    assert 0 <= sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.epsilon_provable <= 1.0, "its price is the same; only the attack can tell"
    assert broken.epsilon_measured > broken.epsilon_provable
    assert broken.facts.attack.estimator == "curve", "everything here is Gaussian"


def test_an_answer_that_is_kept_too_often_is_caught(where: CellContext, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = KaryResponse.apply
    louder = lambda self, v, rng: honest(KaryResponse(20 * self.epsilon, self.num_values), v, rng)  # noqa: E731
    model = LABELS | {"pooled_by": "response"}
    sound = outcome(model, where, epsilon=0.5)
    monkeypatch.setattr(KaryResponse, "apply", louder)
    broken = outcome(model, where, epsilon=0.5)
    assert sound.epsilon_measured <= 0.5 < broken.epsilon_measured
    assert broken.facts.attack.path == "embedding"


def test_coins_that_have_nothing_to_do_with_the_run_prove_nothing(where: CellContext) -> None:
    """The null: one run is read, and its coins are tossed anew two hundred times."""
    model = {"training": "dp_sgd", "release": "labels", "compare": ["histogram"]}
    made, _, found = drawn(model, where)
    state = whole_run.train_again(made, found.dealt(made.made.sizes), cell_of(params(model), where), where)
    scores = read_local_dp.graph_evidence(made, state, found.zero, found.one, found.units)
    rng, accused = np.random.default_rng(0), 0
    for _ in range(200):
        told = whole_run.bound_scores(scores, rng.random(scores.size) < 0.5, [0.2], 1e-3, "", centred=True, estimator="curve")
        accused += told.epsilon > 0
    assert accused <= 17, "at most one in twenty, and what chance adds to 200 tries (99 %)"


@pytest.mark.slow
@pytest.mark.parametrize("updates", ["each", "sum"])
def test_two_thirds_of_the_noise_is_caught(updates: str) -> None:
    listed = [
        w for w in mutants._methods_with_mutants() if w.method.get("training") == "dp_fedavg" and w.method["updates"] == updates
    ]
    assert {w.viewer for w in listed} == {Viewer.SERVER}
    for whole in listed:
        found = bench.judge_bench_case(mutants._case_of(whole, 300), 0, 0.002)
        assert found.as_it_should, found
