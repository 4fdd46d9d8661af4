"""HeterPoisson with symmetric multivariate Laplace noise (Xiang, Wang & Wang 2024, arXiv 2311.06888, Theorem 2).

Published, as in the released code (zihangxiang/PNPiGNNs at c317861, privacy/mix.py): rows are clipped to c, so that a row that
is replaced moves the sum by C = 2c; of n units one is drawn with rate q, else mentioned in j ~ Bin(n, qM/n) rows. With b = σ/√2
the Rényi divergence of a *univariate* Laplace pair at each distance s (½ for the own row, j for mentions, in units of C):

    T/(α−1) · ln Σ P(s) [α/(2α−1) e^{(α−1)s/b} + (α−1)/(2α−1) e^{−αs/b}],   α in (1, 10],  then Balle et al. 2020, Theorem 21.

Their search for σ stops at a width of 0.01, so that theirs is up to 0.003 off (σ is the multiplier here over 2).

What it misses: the noise is one W for all coordinates, and its density has a pole in two and more dimensions, so that Rényi
divergences of shifted copies are infinite from order d/(d − 2) on; the mixture is one-sided though a batch is not revealed; and
the released sampler keeps a neighbour with rate M / (its degree), which changes when a node goes.

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).
"""

import math

import numpy as np
from scipy.special import logsumexp

from fedgraph.privacy import require_positive

_ORDERS = np.linspace(1.0001, 10.0, 100)


def epsilon(noise_multiplier: float, rate: float, mentions: float, units: int, steps: int, delta: float) -> float:
    """The published ε.

    Args:
        noise_multiplier: std / clip of one row, > 0.
        rate: q in (0, 1].
        mentions: M, of each row on average.
        units: n, how many there are.
        steps: T.
        delta: δ in (0, 1).

    Raises:
        PrivacyError: the multiplier is not finite and > 0.
    """
    from scipy.stats import binom  # its import takes half a second

    require_positive("noise_multiplier", noise_multiplier)
    hits = np.arange(min(units, 200) + 1)
    logs = np.append(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate))
    distances = np.append(hits, 0.5)
    weights = np.append(logs[0] + binom.logpmf(hits, units, min(1.0, rate * mentions / units)), logs[1])[:, None]
    scaled, a = distances[:, None] / (noise_multiplier / 2 / math.sqrt(2)), _ORDERS
    there = np.log(a / (2 * a - 1)) + (a - 1) * scaled
    back = np.log((a - 1) / (2 * a - 1)) - a * scaled
    moments = np.maximum(logsumexp(np.logaddexp(there, back) + weights, axis=0), 1e-6)
    return float(np.min(steps * moments / (a - 1) - (math.log(delta) + np.log(a)) / (a - 1) + np.log((a - 1) / a)))
