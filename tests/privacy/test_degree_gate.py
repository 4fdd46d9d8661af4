"""The price of the private degree gate: against the exact divergence on every small graph, and against its own formula."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from fedgraph.privacy.accounting import degree_gate, gaussian
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.degree_caps import DegreeCap, log_cap
from fedgraph.privacy.events import Composed, GatedSums, Gaussian, NoisyDegreeBits, PoissonGaussian, Repeated, SampledOnce
from fedgraph.privacy.mechanisms.noise import NoisyThreshold
from fedgraph.privacy.sensitivity import Degrees, sensitivity_l2
from fedgraph.privacy.units import Relation

GATE = NoisyDegreeBits(90.0, 120.0, 2001)
SUMS = GatedSums(GATE, 8.0, 1, 400)


def divergence(apart: float, weight: np.ndarray, against: np.ndarray, epsilon: float) -> np.ndarray:
    """∫ [w·N(apart, 1) − e^ε·a·N(0, 1)]₊ for positive weights w and a."""
    offset = epsilon + np.log(against) - np.log(weight)
    if apart == 0:
        return np.maximum(0.0, weight - np.exp(epsilon) * against)
    return weight * ndtr(apart / 2 - offset / apart) - np.exp(epsilon) * against * ndtr(-apart / 2 - offset / apart)


def exact_delta(graph: np.ndarray, gate: NoisyDegreeBits, tau: float, cap: DegreeCap, epsilon: float) -> float:
    """The larger divergence of both orders between G and G − (node 0), the coin of node 0 shown: what the proof bounds.

    Node 0's message and those of others are chosen so that each row moves by all that its weights move: the worst case for
    the sums. The bits of others are summed over, one by one.
    """
    n = len(graph)
    gone = graph.copy()
    gone[0, :] = gone[:, 0] = 0
    chance = [ndtr((gate.threshold - g.sum(axis=1)[1:]) / gate.noise_std) for g in (graph, gone)]
    coin = float(ndtr((gate.threshold - graph[0].sum()) / gate.noise_std))

    def weights(of: np.ndarray, kept: np.ndarray) -> np.ndarray:
        left = of * kept[:, None] * kept[None, :]
        d = left.sum(axis=1).astype(int)
        return left * cap.factors[np.maximum(d[:, None], d[None, :])]

    forward = backward = 0.0
    for bits in itertools.product([0, 1], repeat=n - 1):
        b = np.array(bits)
        here, there = (float(np.prod(np.where(b == 1, c, 1 - c))) for c in chance)
        for own, share in ((1, coin), (0, 1 - coin)):
            kept = np.concatenate([[own], b])
            moved = np.abs(weights(graph, kept) - weights(gone, kept)).sum(axis=1)[1:]
            apart = float(np.linalg.norm(moved)) / tau
            a, w = np.array(share * here), np.array(share * there)
            forward += float(divergence(apart, a, w, epsilon))
            backward += float(divergence(apart, w, a, epsilon))
    return max(forward, backward)


def formula(m: int, gate: NoisyDegreeBits, tau: float, cap: DegreeCap, epsilon: float, others: float = 0.0) -> float:
    """The formula at one degree, written once more and in plain numbers."""
    moved = np.maximum.accumulate(cap.changes()[0])[m]
    shown, passed = m / gate.noise_std**2 + others, float(ndtr((gate.threshold - m) / gate.noise_std))

    def at(squared: float) -> float:
        return math.exp(gaussian.log_delta(epsilon, math.sqrt(squared))) if squared else 0.0

    return passed * at(shown + moved / tau**2) + (1 - passed) * at(shown)


@pytest.mark.parametrize(("spread", "threshold", "tau"), [(1.5, 1.5, 1.0), (3.0, 1.0, 0.7)])
def test_the_exact_divergence_of_every_graph_of_five_nodes_is_below_the_formula(
    spread: float, threshold: float, tau: float
) -> None:
    n, cap = 5, DegreeCap(5, 1, 3)
    gate, pairs, reached = NoisyDegreeBits(spread, threshold, n), list(itertools.combinations(range(n), 2)), 0.0
    for number in range(0, 2 ** len(pairs), 3):  # every third: the rest are the same graphs with other names
        graph = np.zeros((n, n))
        for k, (u, v) in enumerate(pairs):
            graph[u, v] = graph[v, u] = (number >> k) & 1
        m = int(graph[0].sum())
        if not m:
            continue
        for epsilon in (0.1, 1.5):
            bound, found = formula(m, gate, tau, cap, epsilon), exact_delta(graph, gate, tau, cap, epsilon)
            assert found <= bound * (1 + 1e-9)
            reached = max(reached, found / bound)
    assert reached > 0.7, "the bound is far from every graph: the check would find no error"


def test_the_price_is_the_formula_of_the_worst_degree() -> None:
    delta, cap = 1e-5, DegreeCap(2001, 1, 400)
    releases = Composed((Repeated(Gaussian(20.0), 100), GATE, Repeated(SUMS, 2)))
    paid = price(releases, delta)
    assert paid.accountant == "degree gate"
    worst = [formula(m, GATE, 8.0 / math.sqrt(2), cap, paid.epsilon, 0.25) for m in range(2001)]
    assert max(worst) == pytest.approx(delta, rel=2e-2)
    assert max(worst) <= delta
    less = [formula(m, GATE, 8.0 / math.sqrt(2), cap, paid.epsilon * 0.97, 0.25) for m in range(2001)]
    assert max(less) > delta, "three per cent less would be too little"


@pytest.mark.parametrize("part", ["bits", "sums"])
def test_two_thirds_of_either_noise_cost_more(part: str) -> None:
    gate = NoisyDegreeBits(GATE.noise_std * 2 / 3, GATE.threshold, GATE.num_rows) if part == "bits" else GATE
    sums = GatedSums(gate, SUMS.noise_std * (2 / 3 if part == "sums" else 1), 1, 400)
    assert price(Composed((gate, sums)), 1e-5).epsilon > 1.2 * price(Composed((GATE, SUMS)), 1e-5).epsilon


def test_bits_are_counted_once_with_the_sums_behind_them_and_alone_otherwise() -> None:
    assert price(SUMS, 1e-5) == price(Composed((GATE, SUMS)), 1e-5)
    alone = price(GATE, 1e-5).epsilon
    assert price(Gaussian(90.0 / math.sqrt(2000)), 1e-5).epsilon == pytest.approx(alone, rel=1e-6)
    assert alone < price(SUMS, 1e-5).epsilon


@pytest.mark.parametrize(
    "beside",
    [
        PoissonGaussian(20.0, 0.1, touched_rows=1, replaced=False),
        GATE,
        NoisyDegreeBits(91.0, 120.0, 2001),
        SampledOnce(Gaussian(50.0), 0.5),
    ],
    ids=["poisson", "the bits again", "another gate", "a sample"],
)
def test_what_the_formula_does_not_cover_is_never_cheaper(beside: object) -> None:
    """Priced as Gaussian releases of the largest change: above the gate's price with the cheapest reading of the other part."""
    together = price(Composed((GATE, SUMS, beside)), 1e-5).epsilon  # type: ignore[arg-type]
    assert together > price(Composed((GATE, SUMS)), 1e-5).epsilon
    assert math.isfinite(together)


def test_the_gate_keeps_hubs_out_of_the_price() -> None:
    """Without bits each sum would cost the largest change of any node; with them a hub of 2,000 hardly ever passes."""
    hub = degree_gate.alone(SUMS)
    assert price(SUMS, 1e-5).epsilon < 0.8 * price(Composed((degree_gate.alone(GATE), hub)), 1e-5).epsilon
    assert DegreeCap(2001, 1, 400).sensitivity_l2() > log_cap(2001).sensitivity_l2()


def test_one_node_moves_the_bits_value_by_one_at_each_neighbour() -> None:
    rng, n = np.random.default_rng(0), 40
    graph = np.triu(rng.random((n, n)) < 0.3, 1)
    graph = (graph | graph.T).astype(float)
    graph[7, :] = graph[:, 7] = 1
    graph[7, 7] = 0
    gone = graph.copy()
    gone[7, :] = gone[:, 7] = 0
    bound = Degrees(n)
    moved = bound.enforce(graph.sum(axis=1)) - bound.enforce(gone.sum(axis=1))
    moved[7] = 0
    assert np.linalg.norm(moved) == sensitivity_l2(bound, Relation.NODE_ZERO_OUT) == math.sqrt(n - 1)


def test_the_bits_have_the_chance_that_is_priced() -> None:
    """And two thirds of the noise, or three halves, would be seen in 20,000 of them."""
    gate, degrees = NoisyDegreeBits(30.0, 25.0, 20_000), np.full(20_000, 40.0)
    bits = NoisyThreshold(30.0, 25.0).apply(degrees, np.random.default_rng(3))
    assert set(np.unique(bits)) == {0.0, 1.0}
    expected = math.exp(float(degree_gate.passing(gate, degree_gate.Degrees.of(20_000))[0][40]))
    spread = math.sqrt(expected * (1 - expected) / 20_000)
    assert abs(bits.mean() - expected) < 4 * spread
    for factor in (2 / 3, 1.5):
        assert abs(ndtr(-15 / (30 * factor)) - bits.mean()) > 8 * spread
