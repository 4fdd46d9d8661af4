"""Attacks on whole runs: two versions are neighbours, a run that counts is not touched, a broken method is caught."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedgraph.attacks.base import coin_game, whole_run
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Relation
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext, Result
from fedgraph.types import Graph, Partition, Subgraph, partition_of_one
from tests.graphs import same, zeroed
from tests.trainings import planned

ATTACK = {"canaries": 200, "guesses": [0.2]}


def outcomes(graph: Graph, method: dict[str, Any], epsilon: float, seeds: int = 1, **changes: Any) -> list[Result]:
    given = {"methods": [method], "trust": ["curator"], "epsilons": [epsilon], "attack": ATTACK, "delta": 1e-3}
    params = node_classification.Params(**(given | changes))
    where = CellContext("t", graph.name, graph, root=5, seeds=seeds, runtime=SerialRuntime())
    return [node_classification.run(params, c, where) for c in node_classification.cells(params, where)]


@pytest.mark.parametrize("kind", ["word", "full"])
def test_one_coin_zeroes_one_node_and_nothing_else(library: Graph, kind: coin_game.CanaryKind) -> None:
    rng, ids = np.random.default_rng(0), np.arange(library.num_nodes)
    found = coin_game.draw_canary_nodes(library, library, Relation.NODE_ZERO_OUT, 60, kind, rng)
    for canary in range(5):
        with_it, without = found.coins.copy(), found.coins.copy()
        with_it[canary], without[canary] = True, False
        one, zero = (found.planted(library, ids, v) for v in (with_it, without))
        assert not same(one, zero)
        assert same(zeroed(one, int(found.nodes[canary])), zero)


def test_one_coin_adds_one_edge_between_nodes_of_no_other_canary(library: Graph) -> None:
    one = partition_of_one(library, "one")
    found = coin_game.draw_canary_edges(library, one, Relation.EDGE_UNDIRECTED, 50, np.random.default_rng(0))
    assert np.unique(found.pairs).size == found.pairs.size == 100
    assert not library.adjacency[found.pairs[:, 0], found.pairs[:, 1]].any()
    assert (library.labels[found.pairs[:, 0]] != library.labels[found.pairs[:, 1]]).all()
    none = found.planted(library, np.arange(library.num_nodes), np.zeros(50, bool))
    assert same(none, library)
    one = found.planted(library, np.arange(library.num_nodes), np.arange(50) == 7)
    changed = (one.adjacency - library.adjacency).tocoo()
    assert sorted(zip(*map(list, changed.coords), strict=True)) == sorted([tuple(found.pairs[7]), tuple(found.pairs[7][::-1])])


def test_one_coin_replaces_the_label_of_one_node_and_nothing_else(library: Graph) -> None:
    rng, ids = np.random.default_rng(0), np.arange(library.num_nodes)
    found = coin_game.draw_canary_nodes(library, library, Relation.NODE_REPLACE, 40, "word", rng)
    one, zero = found.planted(library, ids, ~found.coins), found.planted(library, ids, found.coins)
    assert same(replace(one, labels=zero.labels), zero)
    assert np.array_equal(np.flatnonzero(one.labels != zero.labels), found.nodes)
    assert (one.labels[found.nodes] >= 0).all()


def test_clients_hold_what_the_whole_graph_would(library: Graph) -> None:
    """Planting client by client is planting at once, for the edges that a client holds."""
    halves = np.array_split(np.random.default_rng(1).permutation(library.num_nodes), 2)
    parts = tuple(Subgraph(i, library.induced(nodes), nodes) for i, nodes in enumerate(halves))
    dealt = Partition(parts, True, 0, "two", from_edges=False, from_labels=False)
    joined, rng = coin_game.join_canary_clients(dealt, library), np.random.default_rng(0)
    for found in (
        coin_game.draw_canary_nodes(joined, library, Relation.NODE_ZERO_OUT, 50, "word", rng),
        coin_game.draw_canary_edges(joined, dealt, Relation.EDGE_UNDIRECTED, 50, rng),
    ):
        at_once = found.planted(joined, np.arange(library.num_nodes), found.coins)
        for part, s in zip(coin_game.plant(dealt, found).subgraphs, dealt.subgraphs, strict=True):
            assert same(part.graph, at_once.induced(s.nodes))


@pytest.mark.parametrize("trust", ["curator", "sums", "own-client"])
def test_the_run_that_counts_is_not_touched(library: Graph, trust: str) -> None:
    spec = {"partition": {"partition": "uniform", "clients": 3}, "trust": [trust]}
    (attacked,) = outcomes(library, {"method": "features", "steps": 5}, 1.0, **spec)
    (plain,) = outcomes(library, {"method": "features", "steps": 5}, 1.0, attack=None, **spec)
    assert attacked.metrics["accuracy"] == plain.metrics["accuracy"]
    assert attacked.releases == plain.releases
    assert plain.epsilon_measured is None
    assert 0 <= attacked.epsilon_measured <= attacked.epsilon_provable
    assert attacked.facts.attack.counts[0][0] >= 40


def test_an_aggregation_with_a_fifth_of_its_noise_is_caught(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"protocol": "transductive"}
    (sound,) = outcomes(library, {"method": "gap_edge", "epochs": 20}, 1.0, **spec)
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 5), v, rng))
    (broken,) = outcomes(library, {"method": "gap_edge", "epochs": 20}, 1.0, **spec)
    assert sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.epsilon_measured > broken.epsilon_provable


@pytest.mark.parametrize("trust", ["sums", "own-client"])
def test_who_sees_every_round_catches_too_little_noise(library: Graph, trust: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages themselves are read, by the test that the proof prices."""
    spec = {"partition": {"partition": "uniform", "clients": 3}, "trust": [trust], "attack": {"guesses": [0.5]}}
    (sound,) = outcomes(library, {"method": "features"}, 1.0, **spec)
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 6), v, rng))
    (broken,) = outcomes(library, {"method": "features"}, 1.0, **spec)
    assert "read in the released values" in sound.facts.attack.what
    assert sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.epsilon_measured > broken.epsilon_provable == sound.epsilon_provable, "only the attack can tell"
    assert broken.facts.attack.estimator == "curve", "everything that features releases is Gaussian"


@pytest.mark.parametrize("name", ["dpar", "features", "label_hop", "nonprivate"])
def test_a_node_that_is_asked_alone_is_answered_without_spread(name: str, library: Graph) -> None:
    made, _, _ = planned(name, 0, Trust.CURATOR, library, math.inf)
    assert made.params.propagation_steps > 0
    assert whole_run.without_spread(made).params.propagation_steps == 0
