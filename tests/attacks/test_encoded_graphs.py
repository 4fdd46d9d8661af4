"""Encoded embeddings under attack: the ratio is the mechanism's own, sound encoders are not accused, broken ones are caught."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedgraph import data, runtime
from fedgraph.attacks.base import canary_graphs as attack
from fedgraph.attacks.base.whole_run import WholeRunResult
from fedgraph.federation import rounds
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.mechanisms import likelihood_ratios
from fedgraph.privacy.mechanisms.noise import MultiBitEncoder
from fedgraph.tasks import graph_clustering as task
from fedgraph.tasks.base import Cell, CellContext
from fedgraph.types import GraphCollection


@pytest.fixture(scope="module")
def where() -> CellContext:
    found = data.load("tu/mutag", stand_in=True)
    assert isinstance(found, GraphCollection)
    return CellContext("t", "tu/mutag", found, 0, 1, runtime.start("serial"))


def measured(where: CellContext, encoder: str, epsilon: Any, **changes: Any) -> tuple[Cell, Any, WholeRunResult]:
    """One cell's plan, attacked on 100 graphs."""
    model = {"method": "local_dp", "training": "none", "hidden": 4, "compare": ["mean"]} | changes
    params = task.Params(methods=[model], epsilons=[epsilon], encoders=[encoder], attack={}, max_graphs=100)
    cell = next(c for c in task.cells(params, where) if c.method == "local_dp")
    made, partition = task.plan(params, cell, where), task.deal(params, 0, where)
    assert made is not None
    shared = where.runtime.share("partition", partition)
    state = rounds.run(where.runtime, shared, made, 0, cell.path, ("common", str(changes)), where.prefixes).state
    return cell, made, attack.measure(params.attack, made, cell, where, partition, state)


def test_the_ratio_of_a_bit_is_that_of_its_probabilities() -> None:
    """Every output of a small encoder: log of the ratio of its probabilities, by counting both."""
    encoder = MultiBitEncoder(0.7, 2)
    one, zero = np.array([[0.9, 0.2]]), np.array([[0.0, 1.0]])

    def probability(sent: np.ndarray, x: np.ndarray) -> float:
        up = 1 / (math.exp(0.7) + 1) + x * (math.exp(0.7) - 1) / (math.exp(0.7) + 1)
        return float(np.where(sent > 0, up, 1 - up).prod())

    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        sent = np.array([signs], dtype=float)
        wanted = math.log(probability(sent, one) / probability(sent, zero))
        assert likelihood_ratios.of_blocks(encoder, sent, one, zero, (1,)) == [pytest.approx(wanted)]


@pytest.mark.parametrize(("encoder", "epsilon"), [("multi-bit", "1/n"), ("multi-bit-total", 4.0), ("multi-bit-node", 4.0)])
def test_sound_encoders_are_not_accused(where: CellContext, encoder: str, epsilon: Any) -> None:
    _, made, found = measured(where, encoder, epsilon)
    assert found.epsilon is not None
    assert found.epsilon <= made.provable("embedding").epsilon
    assert found.attack.counts[1][0] == 100


def test_the_released_code_shows_more_than_the_paper_claims(where: CellContext) -> None:
    _, made, found = measured(where, "gaussian-as-coded", "1/n")
    assert 2.0 < found.epsilon <= made.provable("embedding").epsilon


def test_bits_that_are_kept_too_often_are_caught(where: CellContext, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = MultiBitEncoder.apply

    def louder(self: MultiBitEncoder, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return honest(replace(self, epsilon_per_bit=20 * self.epsilon_per_bit), value, rng)

    monkeypatch.setattr(MultiBitEncoder, "apply", louder)
    _, made, found = measured(where, "multi-bit", 1.0)
    assert found.epsilon > made.provable("embedding").epsilon <= 1.0


def test_only_clients_that_send_are_attacked_and_through_the_door(where: CellContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of clients that left before the only retrieval are no canaries; every other client's pass the desk once more."""
    honest, passed = Desk.release, []

    def watched(desk: Desk, path: str, *rest: Any) -> Released:
        released = honest(desk, path, *rest)
        passed.append((released.entry.cell.split("/")[0], path, desk.client))
        return released

    monkeypatch.setattr(Desk, "release", watched)
    _, made, found = measured(where, "multi-bit", 4.0, dropout=0.5)
    senders = [r.client for r in made.schedule.releases if r.path == "embedding"]
    assert 0 < len(senders) < len(made.made.sizes)
    assert [client for cell, path, client in passed if cell == "attack" and path == "embedding"] == senders
    assert found.attack.counts[0][0] == sum(len(made.made.sizes[client]) for client in senders)
