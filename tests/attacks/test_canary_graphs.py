"""Noisy updates, histograms and encoded embeddings under attack: sound ones are not accused, broken ones are caught."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedgraph import data, runtime
from fedgraph.attacks.base import canary_graphs as attack
from fedgraph.attacks.base import whole_run
from fedgraph.attacks.base.evidence import local_dp as read_local_dp
from fedgraph.attacks.base.whole_run import WholeRunResult
from fedgraph.federation import rounds
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.mechanisms import likelihood_ratios
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse, MultiBitEncoder
from fedgraph.tasks import graph_clustering as task
from fedgraph.tasks.base import Cell, CellContext, Result
from fedgraph.types import Graph, Partition

SMALL = {"method": "local_dp", "rounds": 2, "hidden": 4, "projection": 8, "unit": "graph", "compare": ["mean"]}
HISTOGRAM = {"release": "labels", "compare": ["histogram"]}
LABELS = {"training": "none", **HISTOGRAM}


@pytest.fixture(scope="module")
def where(library: Graph) -> CellContext:
    return CellContext("t", "d", library, 0, 1, runtime.start("serial"))


@pytest.fixture(scope="module")
def molecules() -> CellContext:
    return CellContext("t", "tu/mutag", data.load("tu/mutag", stand_in=True), 0, 1, runtime.start("serial"))


def cell_of(where: CellContext, model: dict[str, Any], **changes: Any) -> tuple[task.Params, Cell]:
    given = {"partition": {"partition": "ego", "clients": 40, "hops": 1}, "epsilons": [8.0], "num_init": 1, "max_iterations": 1}
    params = task.Params(methods=[SMALL | model], **(given | {"attack": {"guesses": [0.2]}} | changes))
    return params, next(c for c in task.cells(params, where) if c.method == "local_dp")


def outcome(where: CellContext, model: dict[str, Any], **changes: Any) -> Result:
    return task.run(*cell_of(where, model, **changes), where)


def drawn(where: CellContext, model: dict[str, Any]) -> tuple[Any, Partition, attack.CanaryGraphs]:
    params, cell = cell_of(where, model)
    made, partition = task.plan(params, cell, where), task.deal(params, 0, where)
    found = attack.draw(made, partition, np.random.default_rng(0))
    assert found is not None
    return made, partition, found


def changed(found: attack.CanaryGraphs, coin: int, sizes: Any) -> list[list[int]]:
    """Of each client, the nodes whose row or label is another one by this coin; edges must be the same."""
    both = [np.where(np.arange(found.coins.size) == coin, there, found.coins) for there in (True, False)]
    moved = []
    for a, b in zip(*(replace(found, coins=coins).dealt(sizes).subgraphs for coins in both), strict=True):
        assert not (a.graph.adjacency != b.graph.adjacency).nnz
        assert np.array_equal(a.nodes, b.nodes)
        rows = np.asarray(abs(a.graph.features - b.graph.features).sum(axis=1)).ravel() > 0
        moved.append(a.nodes[rows | (a.graph.labels != b.graph.labels)].tolist())
    return moved


def test_a_coin_decides_one_graph_or_one_node_wherever_it_is_held_and_nothing_else(where: CellContext) -> None:
    made, _, found = drawn(where, {"training": "dp_fedavg"})
    assert [place for place, nodes in enumerate(changed(found, 3, made.made.sizes)) if nodes] == [3]
    assert all((s.graph.labels >= 0).all() for s in found.dealt(made.made.sizes).subgraphs)
    made, partition, found = drawn(where, {"training": "dp_fedavg", "unit": "node"})
    (node,) = set(itertools.chain(*changed(found, 0, made.made.sizes)))
    decided = [place for place, own in enumerate(found.units) if own[0] == 0]
    assert decided == [place for place, s in enumerate(partition.subgraphs) if node in s.nodes]


@pytest.mark.parametrize("model", [{"training": "dp_fedavg", "updates": "each"}, {"training": "dp_sgd"}, LABELS])
def test_broken_noise_is_caught_and_sound_noise_is_not_accused(
    where: CellContext, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any]
) -> None:
    sound = outcome(where, model, epsilons=[1.0])
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 20), v, rng))
    broken = outcome(where, model | HISTOGRAM, epsilons=[1.0], attack={"guesses": [1.0]})
    assert 0 <= sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.epsilon_provable <= 1.0, "its price is the same; only the attack can tell"
    assert broken.epsilon_measured > broken.epsilon_provable
    assert broken.facts.attack.estimator == "curve", "everything here is Gaussian"


def test_an_answer_that_is_kept_too_often_is_caught(where: CellContext, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, model = KaryResponse.apply, LABELS | {"pooled_by": "response"}
    sound = outcome(where, model, epsilons=[0.5])
    louder = lambda self, v, rng: honest(replace(self, epsilon=20 * self.epsilon), v, rng)  # noqa: E731
    monkeypatch.setattr(KaryResponse, "apply", louder)
    broken = outcome(where, model, epsilons=[0.5])
    assert sound.epsilon_measured <= 0.5 < broken.epsilon_measured
    assert broken.facts.attack.path == "embedding"


def test_coins_that_have_nothing_to_do_with_the_run_prove_nothing(where: CellContext) -> None:
    """The null: one run is read, and its coins are tossed anew two hundred times."""
    model = {"training": "dp_sgd", **HISTOGRAM}
    made, _, found = drawn(where, model)
    state = whole_run.train_again(made, found.dealt(made.made.sizes), cell_of(where, model)[1], where)
    scores = read_local_dp.graph_evidence(made, state, found.zero, found.one, found.units)
    rng, accused = np.random.default_rng(0), 0
    for _ in range(200):
        told = whole_run.bound_scores(scores, rng.random(scores.size) < 0.5, [0.2], 1e-3, "", centred=True, estimator="curve")
        accused += told.epsilon > 0
    assert accused <= 17, "at most one in twenty, and what chance adds to 200 tries (99 %)"


def measured(where: CellContext, encoder: str, epsilon: Any, **changes: Any) -> tuple[Any, WholeRunResult]:
    """One cell's plan, attacked on 100 graphs."""
    model = {"method": "local_dp", "training": "none", "hidden": 4, "compare": ["mean"]} | changes
    params = task.Params(methods=[model], epsilons=[epsilon], encoders=[encoder], attack={}, max_graphs=100)
    cell = next(c for c in task.cells(params, where) if c.method == "local_dp")
    made, partition = task.plan(params, cell, where), task.deal(params, 0, where)
    shared = where.runtime.share("partition", partition)
    state = rounds.run(where.runtime, shared, made, 0, cell.path, ("common", str(changes)), where.prefixes).state
    return made, attack.measure(params.attack, made, cell, where, partition, state)


def test_the_ratio_of_a_bit_is_that_of_its_probabilities() -> None:
    """Every output of a small encoder: log of the ratio of its probabilities, by counting both."""
    encoder, one, zero = MultiBitEncoder(0.7, 2), np.array([[0.9, 0.2]]), np.array([[0.0, 1.0]])

    def probability(sent: np.ndarray, x: np.ndarray) -> float:
        up = 1 / (math.exp(0.7) + 1) + x * (math.exp(0.7) - 1) / (math.exp(0.7) + 1)
        return float(np.where(sent > 0, up, 1 - up).prod())

    for signs in itertools.product((1.0, -1.0), repeat=2):
        sent = np.array([signs])
        wanted = math.log(probability(sent, one) / probability(sent, zero))
        assert likelihood_ratios.of_blocks(encoder, sent, one, zero, (1,)) == [pytest.approx(wanted)]


@pytest.mark.parametrize(
    ("encoder", "epsilon", "least"),
    [("multi-bit", "1/n", 0.0), ("multi-bit-total", 4.0, 0.0), ("multi-bit-node", 4.0, 0.0), ("gaussian-as-coded", "1/n", 2.0)],
)
def test_encoders_show_no_more_than_is_priced_and_the_released_code_more_than_its_paper_claims(
    molecules: CellContext, encoder: str, epsilon: Any, least: float
) -> None:
    made, found = measured(molecules, encoder, epsilon)
    assert least <= found.epsilon <= made.provable("embedding").epsilon
    assert found.attack.counts[1][0] == 100


def test_bits_that_are_kept_too_often_are_caught(molecules: CellContext, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MultiBitEncoder.apply
    louder = lambda self, v, rng: honest(replace(self, epsilon_per_bit=20 * self.epsilon_per_bit), v, rng)  # noqa: E731
    monkeypatch.setattr(MultiBitEncoder, "apply", louder)
    made, found = measured(molecules, "multi-bit", 1.0)
    assert found.epsilon > made.provable("embedding").epsilon <= 1.0


def test_only_clients_that_send_are_attacked_and_through_the_door(
    molecules: CellContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs of clients that left before the only retrieval are no canaries; every other client's pass the desk once more."""
    honest, passed = Desk.release, []

    def watched(desk: Desk, path: str, *rest: Any) -> Released:
        released = honest(desk, path, *rest)
        passed.append((released.entry.cell.split("/")[0], path, desk.client))
        return released

    monkeypatch.setattr(Desk, "release", watched)
    made, found = measured(molecules, "multi-bit", 4.0, dropout=0.5)
    senders = [r.client for r in made.schedule.releases if r.path == "embedding"]
    assert 0 < len(senders) < len(made.made.sizes)
    assert [client for cell, path, client in passed if cell == "attack" and path == "embedding"] == senders
    assert found.attack.counts[0][0] == sum(len(made.made.sizes[client]) for client in senders)
