"""The noise of GAP's aggregations, and the ε that the paper claims for it.

Edge level: K Gaussians of total standard deviation s per entry. Node level: T clipped gradient sums (noise multiplier
σ_g, Poisson rate q) and K Gaussians (multiplier σ_h = s / Δ₂).

Published (Sajadmanesh et al., slides 2022):

    edge   K/(2s²) + √(2K ln(1/δ))/s  (slides)  or  the exact Gaussian with μ = √K/s  (GAP's released code); Δ = 1 in both
           ProGAP's released code (sisaman/ProGAP at 3ccad59e) composes the same hops by Rényi divergences, Kα/(2s²), since its
           test for Gaussians names another class: 5 to 7 % more noise
    node   ε of RDP(α) = T·RDP_q(α; σ_g) + Kα/(2σ_h²),   Δ₂ = √D
           released code (sisaman/GAP with autodp 0.2): one noise multiplier for all stages, σ_g = σ_h, and
           min over real α of  RDP(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1)
           slides: one standard deviation for all stages, σ_g·C = σ_h·√D, and  min over whole α of  RDP(α) + ln(1/δ)/(α − 1)

**Guarantee.** ``edge_level`` and ``node_level`` return noise that costs at most ε under the reading
asked for. ``provable`` is priced by ``accountant`` at the sensitivities of ``neighbour_sums``; ``published`` by the formulas
above, on their assumptions.

**Edge cases.** ε or δ out of range → ``PrivacyError`` (``calibrate``); K = 0 at node level: gradients only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedgraph.privacy import events
from fedgraph.privacy.accounting import calibrate, gaussian, rdp
from fedgraph.privacy.fields import ArrayField

_REAL_ORDERS: ArrayField = 1 + np.arange(1, 25501) / 100  # with every whole one, where a chord has its kinks


@dataclass(frozen=True)
class _EdgeNoise:
    """Noise of aggregations at edge level."""

    std: float  # standard deviation per entry of one hop, in data units
    published: float  # the ε that the paper's formula gives for it


def edge_level(hops: int, sensitivity: float, epsilon: float, delta: float, reading: str, formula: str) -> _EdgeNoise:
    """Noise of released aggregations, so that all hops together cost at most ε.

    Args:
        hops: K ≥ 1.
        sensitivity: the true Δ₂ of one hop, in data units; read by the provable reading alone.
        epsilon: ε > 0, finite.
        delta: δ in (0, 1).
        reading: ``published`` (Δ = 1), else provable.
        formula: ``slides``, ``code`` (the exact Gaussian) or ``renyi`` (ProGAP's code).

    >>> claimed = edge_level(2, 2**0.5, 1.0, 1e-7, "published", "code").std
    >>> round(edge_level(2, 2**0.5, 1.0, 1e-7, "provable", "code").std / claimed, 9)
    1.414213562
    """
    claimed = _CLAIMED_AT_EDGES[formula]
    if reading != "published":
        std = sensitivity * calibrate.gaussian_multiplier(hops, epsilon, delta)
    elif formula == "slides":
        std = math.sqrt(hops) / gaussian.moments_mu(epsilon, delta)
    elif formula == "code":
        std = calibrate.gaussian_multiplier(hops, epsilon, delta)
    else:
        std = calibrate.published(lambda s: claimed(math.sqrt(hops) / s, delta), epsilon)
    return _EdgeNoise(std, claimed(math.sqrt(hops) / std, delta))


def _renyi_epsilon(mu: float, delta: float) -> float:
    orders = 1 + np.geomspace(1e-2, 1e6, 20_001)
    return rdp.converted(orders * mu**2 / 2, orders, delta)[0]


_CLAIMED_AT_EDGES: dict[str, Callable[[float, float], float]] = {
    "slides": gaussian.moments_epsilon,
    "code": gaussian.epsilon,
    "renyi": _renyi_epsilon,
}


@dataclass(frozen=True)
class NodeAggregation:
    """T noisy gradient sums and K hops."""

    steps: int  # T
    sampling_rate: float  # q of the Poisson batches
    hops: int  # K ≥ 0
    replaced: bool  # whether both worlds hold a row for the node

    def gradient_event(self, multiplier: float) -> events.Event:
        """One gradient sum; the node touches its own row only."""
        return events.PoissonGaussian(multiplier, self.sampling_rate, touched_rows=1, replaced=self.replaced)

    def event(self, gradient_multiplier: float, hop_multiplier: float) -> events.Event:
        """The event of everything that the pipeline releases.

        Args:
            gradient_multiplier: std / clip of a gradient sum.
            hop_multiplier: std / Δ₂ of a hop.
        """
        gradients = events.Repeated(self.gradient_event(gradient_multiplier), self.steps)
        return events.Composed((gradients, events.Repeated(events.Gaussian(hop_multiplier), self.hops)))


@dataclass(frozen=True)
class _NodeNoise:
    """Noise of a pipeline at node level."""

    gradient: float  # std / clip
    hop: float  # std / Δ₂
    published: float  # the ε that the published formula gives for them


def node_level(
    pipeline: NodeAggregation,
    hop_share: float,
    epsilon: float,
    delta: float,
    reading: str,
    published_ratio: float,
    formula: str = "slides",
) -> _NodeNoise:
    """Noise multipliers with which a pipeline costs at most ε.

    Args:
        pipeline: what is released.
        hop_share: the share of the squared loss that the hops take, in (0, 1); read by the provable reading alone, and where
            there are hops.
        epsilon: ε > 0, finite.
        delta: δ in (0, 1).
        reading: ``published``, else provable.
        published_ratio: σ_g / σ_h as published: 1 in the released code, √D / C on the slides.
        formula: ``slides`` or ``code``: how the published ε is read off the Rényi divergences.

    Raises:
        PrivacyError: ε or δ out of range, or no noise is enough.
    """
    if reading == "published":
        hop = calibrate.published(lambda m: claimed_epsilon(pipeline, m * published_ratio, m, delta, formula), epsilon)
        gradient = hop * published_ratio
    else:
        share = hop_share if pipeline.hops else 0.0
        to_hop = math.sqrt(pipeline.hops / share) if pipeline.hops else math.inf
        to_gradient = pipeline.sampling_rate * math.sqrt(pipeline.steps / (1 - share)) * (2 if pipeline.replaced else 1)
        multiplier = calibrate.noise_multiplier_of(lambda m: pipeline.event(m * to_gradient, m * to_hop), epsilon, delta)
        gradient, hop = multiplier * to_gradient, multiplier * to_hop
    return _NodeNoise(gradient, hop, claimed_epsilon(pipeline, gradient, hop, delta, formula))


def claimed_epsilon(pipeline: NodeAggregation, gradient: float, hop: float, delta: float, formula: str = "slides") -> float:
    """The published ε of a pipeline.

    Args:
        pipeline: what is released; its relation is not read.
        gradient: std / clip.
        hop: std / Δ₂.
        delta: δ in (0, 1).
        formula: ``slides``, or ``code``.
    """
    orders = np.arange(2.0, 257.0) if formula == "slides" else _REAL_ORDERS
    every = pipeline.sampling_rate == 1  # then no chord is needed between whole orders
    training = pipeline.steps * (
        orders / (2 * gradient**2) if every else rdp.of_poisson_row(gradient, pipeline.sampling_rate, orders)
    )
    moments = training + pipeline.hops * orders / (2 * hop**2)
    if formula == "slides":
        return float(np.min(moments + math.log(1 / delta) / (orders - 1)))
    return rdp.converted(moments, orders, delta)[0]
