"""GAP (Sajadmanesh et al., slides 2022 and released code): aggregation perturbation, edge and node level.

Published, edge level, sensitivity 1 per hop:  slides ε = K/(2σ²) + √(2K ln(1/δ))/σ; code: exact Gaussian, μ = √K/σ.
Provable: an undirected edge changes two rows, so Δ₂ = √2 per hop and μ = √(2K)/σ.

Published, node level, promised degree D (slides): min over α of

    2T(N/B)·1/(α−1)·ln{(1−q)^{α−1}(αq − q + 1) + Σ_{l=2}^α C(α,l)(1−q)^{α−l} q^l e^{(l−1)l C²/(2σ²)}}
        + DKα/(2σ²) + ln(1/δ)/(α − 1),        q = B/N.

Provable: the same mechanisms, composed as loss distributions, Δ₂ = √D per hop (zero-out), under
``promised-degree`` and ``rows-never-released``: row j of the aggregate feeds only j's own messages and
clipped sample. Releasing the rows costs √(D + D²) per hop, replacing a node 2√D; neighbours above D that
refill a slot change further rows (``gap_refill_sensitivity``, a diagnostic).

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).
"""

import math

import numpy as np

from fedgraph.privacy.accounting import rdp
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.aggregation_noise import NodeAggregation
from fedgraph.privacy.accounting.calibrate import calibrate_gaussian
from fedgraph.privacy.claims.claim import Claim
from fedgraph.privacy.events import Event, Gaussian, Repeated
from fedgraph.privacy.fields import require_positive

PAPER = "GAP (slides 2022)"


def claimed_gap_edge_std(epsilon: float, hops: int, delta: float) -> float:
    """The σ at which the slides' formula gives ``epsilon``: with x = √K/σ, x²/2 + x√(2 ln 1/δ) = ε."""
    require_positive("epsilon", epsilon)
    root = math.sqrt(2 * math.log(1 / delta))
    return math.sqrt(hops) * (root + math.sqrt(root**2 + 2 * epsilon)) / (2 * epsilon)


def _edge_event(noise_std: float, hops: int) -> Event:
    """Provable: K Gaussians of sensitivity √2."""
    return Repeated(Gaussian(noise_std / math.sqrt(2)), hops)


def claimed_gap_node_epsilon(
    noise_std: float, num_nodes: int, batch_size: int, epochs: int, clip: float, hops: int, degree: int, delta: float
) -> float:
    """The slides' node-level formula at whole orders 2-256.

    Args:
        noise_std: σ > 0, of both stages.
        num_nodes: N.
        batch_size: B ≤ N.
        epochs: T, of each of the two stages.
        clip: C.
        hops: K.
        degree: D.
        delta: δ in (0, 1).

    Raises:
        PrivacyError: σ is not finite and > 0.
    """
    require_positive("noise_std", noise_std)
    orders = np.arange(2.0, 257.0)
    steps = 2 * epochs * num_nodes / batch_size
    training = steps * rdp.rdp_of_poisson_row(noise_std / clip, batch_size / num_nodes, orders)
    aggregation = degree * hops * orders / (2 * noise_std**2)
    return float(np.min(training + aggregation + math.log(1 / delta) / (orders - 1)))


def _node_event(
    noise_std: float,
    num_nodes: int,
    batch_size: int,
    epochs: int,
    clip: float,
    hops: int,
    hop_sensitivity: float,
    replaced: bool,
) -> Event:
    """Provable: two Poisson DP-SGD stages and K Gaussians of ``hop_sensitivity`` (√D, √(D + D²), 2√D …)."""
    pipeline = NodeAggregation(math.ceil(2 * epochs * num_nodes / batch_size), batch_size / num_nodes, hops, replaced)
    return pipeline.event(noise_std / clip, noise_std / hop_sensitivity)


def gap_refill_sensitivity(degree: int, extra_rows: int) -> float:
    """√(Σ_rows (removed + added)²) when all ``degree`` rows refill and ``extra_rows`` more gain or lose one entry."""
    return math.sqrt(4 * degree + extra_rows)


def rows() -> list[Claim]:
    """EDP at claimed 1, 4, 8 (K = 2, δ = 1e-7) from code and slides; NDP by the slides' formula."""
    out = []
    for claimed in (1.0, 4.0, 8.0):
        for source, std in (("code", calibrate_gaussian(2, claimed, 1e-7)), ("slides", claimed_gap_edge_std(claimed, 2, 1e-7))):
            words = "an undirected edge changes two rows: Δ₂ = √2 per hop, not 1"
            formula = "exact Gaussian" if source == "code" else "K/2σ² + √(2K ln 1/δ)/σ"
            inputs: dict[str, float | str] = {"K": 2, "sigma": std, "formula": formula}
            provable = price(_edge_event(std, 2), 1e-7).epsilon
            out.append(Claim(PAPER, f"GAP-EDP, {source}", claimed, 1e-7, words, inputs, claimed, provable))
    return [*out, *_node_rows()]


def _node_rows() -> list[Claim]:
    nodes, batch, epochs, degree, std, delta = 19804, 2048, 10, 100, 12.0, 1e-7
    claimed = claimed_gap_node_epsilon(std, nodes, batch, epochs, 1.0, 2, degree, delta)
    cases = {
        "GAP-NDP, promised degree, rows never released": (math.sqrt(degree), False, "Δ₂ = √D per hop, on a promise"),
        "GAP-NDP, aggregated rows released": (math.sqrt(degree + degree**2), False, "Δ₂ = √(D + D²) per hop"),
        "GAP-NDP, replace": (2 * math.sqrt(degree), True, "Δ₂ = 2√D per hop, 2C per step"),
        "GAP-NDP, refill diagnostic, 42 extra rows": (
            gap_refill_sensitivity(degree, 42),
            False,
            "Δ₂ = 21.0 where slots refill",
        ),
    }
    inputs: dict[str, float | str] = {"N": nodes, "B": batch, "epochs": epochs, "C": 1.0, "K": 2, "D": degree, "sigma": std}
    found = []
    for name, (hop, replaced, words) in cases.items():
        provable = price(_node_event(std, nodes, batch, epochs, 1.0, 2, hop, replaced), delta).epsilon
        found.append(Claim(PAPER, name, claimed, delta, words, inputs | {"Δ₂ per hop": hop}, claimed, provable))
    return found
