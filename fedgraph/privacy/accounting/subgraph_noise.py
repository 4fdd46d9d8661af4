"""Noise for clipped gradients of subgraphs, where one node is in many rows (Daigavane et al. 2021).

A row is a training node together with its neighbours up to L steps away. With degrees of at most D a node lies in at most
k = 1 + D·(1 + (D − 1) + … + (D − 1)^{L−1}) rows: D + 1 with one layer, D² + 1 with two (of the D² + D + 1 that are published,
D are the way back). One step of a client with n rows is either

    fixed     B of n rows without replacement    FixedSizeGaussian(σ, B, n, k)
    poisson   every row with its own coin q      PoissonGaussian(σ, q, k)

Zero-out removes one row and changes k − 1 (2k − 1 clips if all are in the batch), replacing a node changes k (2k clips).

σ = std / clip. Published: ``claims.sage.node_epsilon`` (Rényi, without replacement) with B = ⌈q·n⌉.

**Guarantee.** The returned σ costs every client at most ε under the reading asked for, under ``promised-degree``.

**Edge cases.** A client with fewer than k rows: k is cut to n. No client, T = 0 → ``PrivacyError``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.aggregation_noise import least_multiplier
from fedgraph.privacy.claims import sage as published
from fedgraph.privacy.events import Event, FixedSizeGaussian, PoissonGaussian, Repeated


@dataclass(frozen=True)
class Stage:
    """T steps at rate q; a node touches at most ``touched`` rows. fixed: batches without replacement. replaced: relation.

    claimed: k as published, where it is another number.
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


def touched_rows(degree: int, layers: int) -> int:
    """k: the node itself, and every node within ``layers`` steps where no node has more than ``degree`` neighbours.

    >>> touched_rows(10, 1), touched_rows(10, 2)
    (11, 101)
    """
    if degree < 1 or layers < 1:
        raise PrivacyError(f"degree and layers are at least 1, found {degree} and {layers}")
    return 1 + degree * sum(int((degree - 1) ** i) for i in range(layers))


def published_epsilon(stage: Stage, multiplier: float, sizes: Sequence[int], delta: float) -> float:
    """The paper's ε, for the client where it is largest."""
    return max(
        published.node_epsilon(multiplier, stage.batch_size(n), n, min(stage.claimed or stage.touched, n), stage.steps, delta)
        for n in set(sizes)
    )


def noise_multiplier(stage: Stage, sizes: Sequence[int], epsilon: float, delta: float, reading: str) -> float:
    """σ such that no client of ``sizes`` rows pays more than ``epsilon``.

    >>> stage = Stage(steps=10, rate=0.1, touched=4, fixed=False, replaced=False)
    >>> noise_multiplier(stage, [500], 1.0, 1e-5, "provable") < noise_multiplier(stage, [500], 0.5, 1e-5, "provable")
    True
    """
    if not sizes:
        raise PrivacyError("no client to calibrate for")
    if reading == "published":
        return least_multiplier(lambda m: published_epsilon(stage, m, sizes, delta), epsilon)
    kinds = {stage.event(1.0, n): n for n in sizes}
    return max(
        calibrate.noise_multiplier(lambda m, n=n: Repeated(stage.event(m, n), stage.steps), epsilon, delta)  # type: ignore[misc]
        for n in kinds.values()
    )
