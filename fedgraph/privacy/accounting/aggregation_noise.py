"""How much noise the releases of GAP and of SAGE get, and what the papers claim for it.

**GAP** (``edge_level``, ``node_level``).

Edge level: K Gaussians of total standard deviation s per entry. Node level: T clipped gradient sums (noise multiplier
σ_g, Poisson rate q) and K Gaussians (multiplier σ_h = s / Δ₂).

Published (Sajadmanesh et al., slides 2022):

    edge   K/(2s²) + √(2K ln(1/δ))/s  (slides)  or  the exact Gaussian with μ = √K/s  (released code); Δ = 1 in both
    node   min over whole α of  T·RDP_q(α; σ_g) + Kα/(2σ_h²) + ln(1/δ)/(α − 1),   Δ₂ = √D

**Guarantee.** ``*_level`` return noise that costs at most ε under the reading asked for. ``provable`` is priced by
``accountant`` at the sensitivities of ``neighbour_sums``; ``published`` by the formulas above, on their assumptions.

**Edge cases.** ε or δ out of range → ``PrivacyError`` (``calibrate``); K = 0 at node level: gradients only.

**SAGE** (``Stage``): clipped gradients of subgraphs, where one node is in many rows (Daigavane et al. 2021).

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate, gaussian, rdp
from fedgraph.privacy.claims import sage as published
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, PoissonGaussian, Repeated


@dataclass(frozen=True)
class EdgeNoise:
    """std: per entry of one hop, in data units. published: what the paper's formula says of it."""

    std: float
    published: float


def edge_level(hops: int, sensitivity: float, epsilon: float, delta: float, reading: str, formula: str) -> EdgeNoise:
    """Noise of ``hops`` ≥ 1 released aggregations.

    sensitivity: the true Δ₂ of one hop. reading: ``published`` (Δ = 1) or ``provable``. formula: ``slides`` or ``code``.

    >>> claimed = edge_level(2, 2**0.5, 1.0, 1e-7, "published", "code").std
    >>> round(edge_level(2, 2**0.5, 1.0, 1e-7, "provable", "code").std / claimed, 9)
    1.414213562
    """
    if reading != "published":
        std = sensitivity * calibrate.gaussian_multiplier(hops, epsilon, delta)
    elif formula == "slides":
        std = math.sqrt(hops) / gaussian.moments_mu(epsilon, delta)
    else:
        std = calibrate.gaussian_multiplier(hops, epsilon, delta)
    mu = math.sqrt(hops) / std
    return EdgeNoise(std, gaussian.moments_epsilon(mu, delta) if formula == "slides" else gaussian.epsilon(mu, delta))


@dataclass(frozen=True)
class NodePipeline:
    """T noisy gradient sums at Poisson rate q and K hops. replaced: both worlds hold a row for the node."""

    steps: int
    sampling_rate: float
    hops: int
    replaced: bool

    def gradient_event(self, multiplier: float) -> Event:
        """One gradient sum; the node touches its own row only."""
        return PoissonGaussian(multiplier, self.sampling_rate, touched_rows=1, replaced=self.replaced)

    def event(self, gradient_multiplier: float, hop_multiplier: float) -> Event:
        """Everything."""
        gradients = Repeated(self.gradient_event(gradient_multiplier), self.steps)
        return Composed((gradients, Repeated(Gaussian(hop_multiplier), self.hops)))


@dataclass(frozen=True)
class NodeNoise:
    """gradient: std / clip. hop: std / Δ₂. published: what the slides' formula says of them."""

    gradient: float
    hop: float
    published: float


def node_level(
    pipeline: NodePipeline, hop_share: float, epsilon: float, delta: float, reading: str, published_ratio: float
) -> NodeNoise:
    """Noise multipliers of ``pipeline``.

    hop_share: what share of the squared loss the hops take (provable reading). published_ratio: σ_g / σ_h where one
    standard deviation serves both stages, as published: √D / C.
    """
    if reading == "published":
        hop = least_multiplier(lambda m: claimed(pipeline, m * published_ratio, m, delta), epsilon)
        gradient = hop * published_ratio
    else:
        share = hop_share if pipeline.hops else 0.0
        to_hop = math.sqrt(pipeline.hops / share) if pipeline.hops else math.inf
        to_gradient = pipeline.sampling_rate * math.sqrt(pipeline.steps / (1 - share)) * (2 if pipeline.replaced else 1)
        multiplier = calibrate.noise_multiplier(lambda m: pipeline.event(m * to_gradient, m * to_hop), epsilon, delta)
        gradient, hop = multiplier * to_gradient, multiplier * to_hop
    return NodeNoise(gradient, hop, claimed(pipeline, gradient, hop, delta))


def claimed(pipeline: NodePipeline, gradient: float, hop: float, delta: float) -> float:
    """The published ε of ``pipeline``: gradient, hop as in ``NodeNoise``."""
    orders = np.arange(2.0, 257.0)
    training = pipeline.steps * rdp.poisson_one_row(gradient, pipeline.sampling_rate, orders)
    return float(np.min(training + pipeline.hops * orders / (2 * hop**2) + math.log(1 / delta) / (orders - 1)))


def least_multiplier(cost: Callable[[float], float], target: float) -> float:
    """The smallest multiplier (to one part in 10⁴, from above) with cost ≤ target.

    Args:
        cost: multiplier → the published ε; it must fall.
        target: ε, > 0.

    Raises:
        PrivacyError: no multiplier below 10¹² is enough.
    """
    low, high = 1e-3, 1e-3
    while cost(high) > target:
        low, high = high, high * 2
        if high > 1e12:
            raise PrivacyError(f"ε = {target:.6g} cannot be reached by the published formula; raise ε")
    while high / low > 1 + 1e-4:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) > target else (low, middle)
    return high


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

    Raises:
        PrivacyError: degree or layers below 1.

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
    """σ such that no client of ``sizes`` rows pays more than ``epsilon`` at ``delta``.

    Args:
        stage: steps, rate and touched rows.
        sizes: rows of each client, ≥ 1.
        epsilon, delta: of the guarantee.
        reading: ``published`` (the paper's formula), else the accountants'.

    Raises:
        PrivacyError: there is no client, or no noise is enough.

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
