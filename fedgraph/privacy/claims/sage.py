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
"""

import math

import numpy as np
from scipy.special import logsumexp

from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.rdp import ORDERS
from fedgraph.privacy.claims.claim import Claim
from fedgraph.privacy.events import FixedSizeGaussian, PureDP, Repeated
from fedgraph.privacy.sensitivity import require_positive

PAPER = "SAGE-NDP (Daigavane et al. 2021)"


def affected_subgraphs(degree: int, layers: int) -> int:
    """1 + K + … + K^layers."""
    if degree < 1 or layers < 1:
        require_positive("degree and layers", 0.0)
    return sum(degree**i for i in range(layers + 1))


def node_epsilon(
    noise_multiplier: float, batch_size: int, num_rows: int, touched: int, steps: int, delta: float, replacement: bool = False
) -> float:
    """The published Rényi formula; ``replacement`` True: batches as the released code draws them.

    Converted by ε = RDP + ln(1/δ)/(α − 1), as published.
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
    exponents = 2 * ORDERS[:, None] * (ORDERS[:, None] - 1) * np.square(hits) / noise_multiplier**2
    moments = steps * logsumexp(exponents + weights, axis=1) / (ORDERS - 1)
    return float(np.min(moments + math.log(1 / delta) / (ORDERS - 1)))


def rows() -> list[Claim]:
    """One node-level setting (10 neighbours, one layer) and the two edge-level mechanisms."""
    nodes, batch, steps, degree, sigma, delta = 90000, 10000, 100, 10, 60.0, 1e-5
    touched = affected_subgraphs(degree, 1)
    claimed = node_epsilon(sigma, batch, nodes, touched, steps, delta)
    inputs: dict[str, float | str] = {"N": nodes, "B": batch, "T": steps, "K": degree, "layers": 1, "k": touched}
    inputs["sigma / C"] = sigma
    bounded = Repeated(FixedSizeGaussian(sigma, batch, nodes, touched, replaced=True), steps)
    released = node_epsilon(sigma, batch, nodes, touched, steps, delta, replacement=True)
    node_level = (
        ("1 layer, without replacement as accounted", price(bounded, delta).epsilon,
         "holds under promised-degree only; provable is the same bound by loss distributions"),
        ("1 layer, with replacement as released", released, "the released batches repeat subgraphs: j ~ Bin(B, k/N)"),
    )  # fmt: skip
    edge_level = (
        ("upper triangle", 1, "one undirected cell, then post-processing"),
        ("both triangles", 2, "an undirected edge is two cells when they are perturbed separately"),
    )
    found = [Claim(PAPER, name, claimed, delta, words, inputs, claimed, provable) for name, provable, words in node_level]
    for cells, count, words in edge_level:
        name, provable = f"EdgeRand / LapGraph, {cells}", price(Repeated(PureDP(1.0), count), 0.0).epsilon
        found.append(Claim("SAGE-EDP (Wu et al. 2021)", name, 1.0, 0.0, words, {"cells touched": count}, 1.0, provable))
    return found
