"""The ε of node-level SAGE as published (Daigavane et al. 2021).

A node lies in at most k training subgraphs, k = K + 1 (one layer) or K² + K + 1 (two layers; K of these are the way back, see
``caps``); batches of B of N subgraphs without replacement; per step

    RDP(α) = 1/(α−1) · ln E_{j ~ Hypergeometric(N, k, B)} exp(2α(α−1)j²/σ²),       σ = std / C,

read off at the orders 1.1 … 9.9 as RDP(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1), as in the released code
(google-research/google-research at 4c429948, differentially_private_gnns/privacy_accountants.py; its multiplier is σ/2k). The
orders end early, so a small ε takes far more noise than it needs, or cannot be reached.

It is no proof: the published edge sampler depends on neighbours, clip thresholds are percentiles of private gradients, and the
code draws batches *with* replacement, j ~ Bin(B, k/N), which costs more. ``methods.base.occurrences`` prices what runs here.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from fedgraph.privacy import rdp, require_positive

_ORDERS = 1 + np.arange(1, 90) / 10


def claimed_sage_subgraphs(degree: int, layers: int) -> int:
    """1 + K + … + K^layers, the published number of subgraphs that hold one node.

    degree: K ≥ 1. layers: ≥ 1. ``PrivacyError`` for a number below 1.
    """
    if degree < 1 or layers < 1:
        require_positive("degree and layers", 0.0)
    return sum(degree**i for i in range(layers + 1))


def claimed_sage_epsilon(
    noise_multiplier: float, batch_size: int, num_rows: int, touched: int, steps: int, delta: float, replacement: bool = False
) -> float:
    """The ε that the authors' accountant returns.

    Args:
        noise_multiplier: σ = std / C, > 0.
        batch_size: B.
        num_rows: N, number of subgraphs.
        touched: k, number of subgraphs that hold one node.
        steps: T.
        delta: δ in (0, 1).
        replacement: Whether batches are drawn with replacement, as in the released code.

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
    exponents = 2 * _ORDERS[:, None] * (_ORDERS[:, None] - 1) * np.square(hits) / noise_multiplier**2
    moments = steps * logsumexp(exponents + weights, axis=1) / (_ORDERS - 1)
    return rdp.converted(moments, _ORDERS, delta)[0]


def epsilon_of_paper(multiplier: float, rate: float, touched: int, sizes: Sequence[int], steps: int, delta: float) -> float:
    """The paper's ε with batches of B = ⌈q·n⌉, the largest of all clients.

    Args:
        multiplier: σ = std / C.
        rate: q in (0, 1].
        touched: k as published.
        sizes: rows of each client, ≥ 1.
        steps: T.
        delta: δ in (0, 1).
    """
    batches = {n: min(n, math.ceil(rate * n)) for n in sizes}
    return max(claimed_sage_epsilon(multiplier, b, n, min(touched, n), steps, delta) for n, b in batches.items())
