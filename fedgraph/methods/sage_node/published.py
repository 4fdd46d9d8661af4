"""Node-level DP SAGE (Daigavane et al. 2021) and edge-level SAGE by adjacency perturbation (Wu et al. 2021).

Node level, published: a node lies in at most k training subgraphs, k = K + 1 (one layer) or K² + K + 1
(two layers); batches of B of N subgraphs without replacement; per step

    RDP(α) = 1/(α−1) · ln E_{j ~ Hypergeometric(N, k, B)} exp(2α(α−1)j²/σ²),       σ = std / C.

Provable: the same event by loss distributions, replace, under ``promised-degree`` (the published edge
sampler depends on neighbours, and clip thresholds are percentiles of private gradients: both must be
changed). As released, batches are drawn **with** replacement: j ~ Bin(B, k/N), which costs more.

Edge level: EdgeRand flips each undirected cell with probability 1/(e^ε + 1); LapGraph adds Laplace noise.
Both are ε-DP on the upper triangle; perturbing (u, v) and (v, u) separately costs 2ε.

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).

**Noise of node-level SAGE** (``ClaimedSageStage``): clipped gradients of subgraphs, where one node is in many rows.

A row is a training node together with its neighbours up to L steps away. With degrees of at most D a node lies in at most
k = 1 + D·(1 + (D − 1) + … + (D − 1)^{L−1}) rows: D + 1 with one layer, D² + 1 with two (of the D² + D + 1 that are published,
D are the way back). One step of a client with n rows is either

    fixed     B of n rows without replacement    FixedSizeGaussian(σ, B, n, k)
    poisson   every row with its own coin q      PoissonGaussian(σ, q, k)

Zero-out removes one row and changes k − 1 (2k − 1 clips if all are in the batch). A node that is replaced has other neighbours
in the other world: 2k − 1 rows change, by two clips each.

σ = std / clip. Published: ``claimed_sage_epsilon`` (Rényi, without replacement) with B = ⌈q·n⌉.

**Guarantee.** The returned σ costs every client at most ε under the reading asked for, under ``promised-degree``.

**Edge cases.** A client with fewer than k rows: k is cut to n. No client, T = 0 → ``PrivacyError``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from fedgraph.errors import PrivacyError
from fedgraph.privacy import RDP_ORDERS, Event, FixedSizeGaussian, PoissonGaussian, Repeated, calibrate, require_positive


def claimed_sage_subgraphs(degree: int, layers: int) -> int:
    """As published: 1 + K + … + K^layers subgraphs that hold one node.

    Args:
        degree: K ≥ 1.
        layers: ≥ 1.

    Raises:
        PrivacyError: a number below 1.
    """
    if degree < 1 or layers < 1:
        require_positive("degree and layers", 0.0)
    return sum(degree**i for i in range(layers + 1))


def claimed_sage_epsilon(
    noise_multiplier: float, batch_size: int, num_rows: int, touched: int, steps: int, delta: float, replacement: bool = False
) -> float:
    """The published Rényi formula, converted by ε = RDP + ln(1/δ)/(α − 1), as published.

    Args:
        noise_multiplier: σ = std / C, > 0.
        batch_size: B.
        num_rows: N subgraphs.
        touched: k of them hold one node.
        steps: T.
        delta: δ in (0, 1).
        replacement: True: batches as the released code draws them, with replacement.

    Raises:
        PrivacyError: σ is not finite and > 0.
    """
    from scipy.stats import binom, hypergeom  # their import takes half a second

    require_positive("noise_multiplier", noise_multiplier)
    top = batch_size if replacement else min(touched, batch_size)
    hits = np.arange(top + 1)
    weights = (
        binom.logpmf(hits, batch_size, touched / num_rows)
        if replacement
        else hypergeom.logpmf(hits, num_rows, touched, batch_size)
    )
    hits, weights = hits[weights > -700], weights[weights > -700]
    exponents = 2 * RDP_ORDERS[:, None] * (RDP_ORDERS[:, None] - 1) * np.square(hits) / noise_multiplier**2
    moments = steps * logsumexp(exponents + weights, axis=1) / (RDP_ORDERS - 1)
    return float(np.min(moments + math.log(1 / delta) / (RDP_ORDERS - 1)))


@dataclass(frozen=True)
class ClaimedSageStage:
    """Steps of node-level SAGE at a client.

    Attributes:
        steps: T ≥ 1.
        rate: q in (0, 1].
        touched: k ≥ 1, rows that a node touches at most.
        fixed: batches of fixed size without replacement, else Poisson ones.
        replaced: whether a node is replaced, not zeroed.
        claimed: k as published, where it is another number.

    Raises:
        PrivacyError: a number out of its range.
    """

    steps: int
    rate: float
    touched: int
    fixed: bool
    replaced: bool
    claimed: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.touched < 1 or not 0 < self.rate <= 1:
            raise PrivacyError(f"a stage needs steps ≥ 1, touched ≥ 1 and 0 < rate ≤ 1, found {self}")

    def batch_size(self, num_rows: int) -> int:
        return min(num_rows, math.ceil(self.rate * num_rows))

    def event(self, multiplier: float, num_rows: int) -> Event:
        """One step at a client of ``num_rows`` rows."""
        touched = min(self.touched, num_rows)
        if self.fixed:
            return FixedSizeGaussian(multiplier, self.batch_size(num_rows), num_rows, touched, self.replaced)
        return PoissonGaussian(multiplier, self.rate, touched, self.replaced)


def claimed_touched_rows(degree: int, layers: int) -> int:
    """k: the node itself, and every node within ``layers`` steps where no node has more than ``degree`` neighbours.

    Raises:
        PrivacyError: degree or layers below 1.

    >>> claimed_touched_rows(10, 1), claimed_touched_rows(10, 2)
    (11, 101)
    """
    if degree < 1 or layers < 1:
        raise PrivacyError(f"degree and layers are at least 1, found {degree} and {layers}")
    return 1 + degree * sum(int((degree - 1) ** i) for i in range(layers))


def epsilon_of_paper(stage: ClaimedSageStage, multiplier: float, sizes: Sequence[int], delta: float) -> float:
    """The paper's ε, for the client where it is largest.

    Args:
        stage: steps, rate and touched rows.
        multiplier: σ = std / C.
        sizes: rows of each client, ≥ 1.
        delta: δ in (0, 1).
    """
    return max(
        claimed_sage_epsilon(multiplier, stage.batch_size(n), n, min(stage.claimed or stage.touched, n), stage.steps, delta)
        for n in set(sizes)
    )


def sage_noise_multiplier(stage: ClaimedSageStage, sizes: Sequence[int], epsilon: float, delta: float, reading: str) -> float:
    """σ such that no client pays more than ε.

    Args:
        stage: steps, rate and touched rows.
        sizes: rows of each client, ≥ 1.
        epsilon: ε of the guarantee, > 0.
        delta: δ of the guarantee, in (0, 1).
        reading: ``published`` (the paper's formula), else the accountants'.

    Raises:
        PrivacyError: there is no client, or no noise is enough.

    >>> stage = ClaimedSageStage(steps=10, rate=0.1, touched=4, fixed=False, replaced=False)
    >>> sage_noise_multiplier(stage, [500], 1.0, 1e-5, "provable") < sage_noise_multiplier(stage, [500], 0.5, 1e-5, "provable")
    True
    """
    if not sizes:
        raise PrivacyError("no client to calibrate for")
    if reading == "published":
        return calibrate.published(lambda m: epsilon_of_paper(stage, m, sizes, delta), epsilon)
    kinds = {stage.event(1.0, n): n for n in sizes}
    return max(
        calibrate.noise_multiplier_of(lambda m, n=n: Repeated(stage.event(m, n), stage.steps), epsilon, delta)  # type: ignore[misc]
        for n in kinds.values()
    )
