"""Node-level DP SAGE (Daigavane et al. 2021) and edge-level SAGE by adjacency perturbation (Wu et al. 2021).

Node level, published: a node lies in at most k training subgraphs, k = K + 1 (one layer) or K² + K + 1
(two layers); batches of B of N subgraphs without replacement; per step

    RDP(α) = 1/(α−1) · ln E_{j ~ Hypergeometric(N, k, B)} exp(2α(α−1)j²/σ²),       σ = std / C,

read off at the orders 1.1 … 9.9 as RDP(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1): so the released code has it
(google-research/google-research at 4c429948, differentially_private_gnns/privacy_accountants.py; its multiplier is σ/2k). The
orders end early, so that a small ε takes far more noise than it needs, or cannot be reached.

Provable: the same event by loss distributions, replace, under ``promised-degree`` (the published edge
sampler depends on neighbours, and clip thresholds are percentiles of private gradients: both must be
changed). As released, batches are drawn **with** replacement: j ~ Bin(B, k/N), which costs more.

Edge level: EdgeRand flips each undirected cell with probability 1/(e^ε + 1); LapGraph adds Laplace noise.
Both are ε-DP on the upper triangle; perturbing (u, v) and (v, u) separately costs 2ε.

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).

**Rows of a node.** A row is a training node together with its neighbours up to L steps away. With degrees of at most D a node
lies in at most k = 1 + D·(1 + (D − 1) + … + (D − 1)^{L−1}) rows: D + 1 with one layer, D² + 1 with two (of the D² + D + 1 that
are published, D are the way back). Zero-out removes one row and changes k − 1 (2k − 1 clips if all are in the batch). A node
that is replaced has other neighbours in the other world: 2k − 1 rows change, by two clips each. Batches are drawn by coins, and
``methods.base.occurrences`` prices them; of whole batches the price is that of batches without replacement.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from fedgraph.privacy import aggregation_noise, require_positive

_ORDERS = 1 + np.arange(1, 90) / 10


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
    """The ε that the authors' accountant returns.

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
    exponents = 2 * _ORDERS[:, None] * (_ORDERS[:, None] - 1) * np.square(hits) / noise_multiplier**2
    moments = steps * logsumexp(exponents + weights, axis=1) / (_ORDERS - 1)
    return aggregation_noise.claimed_conversion(moments, _ORDERS, delta)


def epsilon_of_paper(multiplier: float, rate: float, touched: int, sizes: Sequence[int], steps: int, delta: float) -> float:
    """The paper's ε, for the client where it is largest: batches of B = ⌈q·n⌉.

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
