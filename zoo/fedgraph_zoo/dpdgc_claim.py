"""The ε that DPDGC's released code (thupchnsky/dp-gnn at 6ea28473, with autodp 0.2) reads off its noise at edge level.

``dpdgc_edp.py`` and ``noisy_sgd.py`` calibrate one scale s for T = ⌊epochs·n/B⌋ steps and one release. A step reads B of n rows
without replacement (``adj.py``, which runs epochs·⌈n/B⌉ steps); ``prepare_optimizer(…, 2.0)`` gives it std 2sC, as one replaced
row moves it by 2C. The release has std s·1e-8: an entry of one row adds a column of W, of length 1e-8. An undirected edge turns
two rows, so 4C and √2·1e-8: ε = 1 at B = 256 is truly .947. With 2√2 for the release it is 1.001, and 2.068 where the factor
2.0 is overlooked. But ``em.py`` norms W in a copy (``state_dict()["weight"] = …``), so columns stay at .08 and more, not 1e-8:
as run nothing bounds the release.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, logsumexp

from fedgraph.privacy import ArrayField, calibrate, rdp

_LARGEST = 100  # order
_ORDERS: ArrayField = 1 + np.arange(1, 100 * (_LARGEST - 1) + 1) / 100


def _log_vajda(noise_scale: float) -> ArrayField:
    """ln V(l) of two Gaussians one sensitivity apart, at l = 2, 4 … 100: float64 [50]."""
    power = np.arange(2.0, _LARGEST + 1, 2)
    x = np.linspace(-12.0, _LARGEST / noise_scale + 12.0, 20001)
    log_ratio = x / noise_scale - 1 / (2 * noise_scale**2)
    with np.errstate(divide="ignore"):
        log_excess = np.where(
            log_ratio > 1,
            log_ratio + np.log1p(-np.exp(-np.abs(log_ratio))),
            np.log(np.abs(np.expm1(np.minimum(log_ratio, 1.0)))),
        )
    log_density = -np.square(x) / 2 - math.log(math.sqrt(2 * math.pi)) + math.log(x[1] - x[0])
    return np.asarray(logsumexp(log_density + power[:, None] * log_excess, axis=1))


@lru_cache(maxsize=256)
def _step_moments(noise_scale: float, share: float) -> ArrayField:
    """(α − 1)·RDP(α) of one step at α = 1, 2 … 100, with γ the share and f(α) = α/2s².

    The bound of Wang, Balle & Kasiviswanathan 2019 (arXiv 1808.00087), Theorem 27, with V(l) = E (dP/dQ − 1)ˡ:

        ln(1 + Σ_{j ≥ 2} γʲ C(α, j) min{4 √(V(2⌊j/2⌋) V(2⌈j/2⌉)), 2e^((j − 1) f(j))})
    """
    whole = np.arange(1.0, _LARGEST + 1)
    if share == 1:
        return np.asarray((whole - 1) * whole / (2 * noise_scale**2))
    vajda, j = _log_vajda(noise_scale), np.arange(2, _LARGEST + 1)
    below, above = vajda[j // 2 - 1], vajda[np.minimum((j + 1) // 2, len(vajda)) - 1]
    each = np.minimum(math.log(4) + (below + above) / 2, math.log(2) + (j - 1) * j / (2 * noise_scale**2))
    ways = gammaln(whole[:, None] + 1) - gammaln(j + 1.0) - gammaln(np.maximum(whole[:, None] - j, 0) + 1)
    terms = np.where(j <= whole[:, None], ways + j * math.log(share) + each, -math.inf)
    return np.asarray(np.logaddexp(0.0, logsumexp(terms, axis=1)))


def epsilon(noise_scale: float, batch: int, rows: int, steps: int, delta: float) -> float:
    """The published ε: steps (chords between whole orders) and the release, α/2s², as ``rdp.converted`` converts.

    Args:
        noise_scale: s > 0.
        batch: B ≤ n.
        rows: n, with labels.
        steps: T.
        delta: δ in (0, 1).
    """
    moments = steps * np.interp(_ORDERS, np.arange(1.0, _LARGEST + 1), _step_moments(noise_scale, batch / rows)) / (_ORDERS - 1)
    return rdp.converted(moments + _ORDERS / (2 * noise_scale**2), _ORDERS, delta)[0]


def noise_scale(claimed: float, batch: int, rows: int, steps: int, delta: float) -> float:
    """The noise scale at which ``epsilon`` is at most a claim.

    Raises:
        PrivacyError: no noise is enough.

    >>> round(noise_scale(1.0, 256, 2031, 100 * 2031 // 256, 1e-5), 2)
    29.5
    """
    return calibrate.published(lambda scale: epsilon(scale, batch, rows, steps, delta), claimed)
