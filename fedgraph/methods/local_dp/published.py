"""Local DP: the multi-bit encoder as LDP-GW and LPGNN state it, and what the LDP-GW code releases.

Each sent bit at budget a has likelihood ratio at most e^a; bits of the protected unit add up.

    LDP-GW, Algorithm 1, read literally   m bits of the whole [n, h] matrix at ε/(mn)   provable ε/n
    LDP-GW, m bits of every row           m·n bits at ε/(mn)                            provable ε
    LPGNN, m of d features of one node    m bits at ε/m                                 provable ε
    LDP-GW, released code                 H + N(0, ε²): "ε" is a standard deviation     ε-LDP: ∞; (ε, δ): Gaussian

For the last, entries in [0, 1] give Δ₂ ≤ √(n·h); softmax rows (on the simplex) Δ₂ ≤ √(2n).

**Guarantee.** Graph-replace (LPGNN: node-replace), size n public, one retrieval; all of it conditional on
the shared model, whose FedAvg updates are not protected at all (that path is ∞ unless trained with DP).

**Edge cases.** n, h, m < 1 or ε not finite and > 0 → ``PrivacyError``.
"""

import math

from fedgraph.errors import PrivacyError
from fedgraph.privacy import Event, Gaussian, MultiBit, require_positive


def claimed_local_entries(epsilon: float, num_entries: int) -> int:
    """m* = max(1, min(d, ⌊ε/2.18⌋)) (Sajadmanesh & Gatica-Perez 2021, Proposition 3.3).
    epsilon: ε > 0, finite. num_entries: d ≥ 1. Raises ``PrivacyError``: ε is not finite and > 0.
    """
    require_positive("epsilon", epsilon)
    return max(1, min(num_entries, math.floor(epsilon / 2.18)))


def claimed_local_encoder_event(epsilon: float, num_sampled: int, num_rows: int, in_total: bool) -> Event:
    """Algorithm 1 at ε/(m·n) per bit.
    epsilon: ε > 0, finite. num_sampled: m ≥ 1, entries that are sent. num_rows: n ≥ 1. in_total: m bits in all (literal
    reading); else m bits in each row. Raises ``PrivacyError``: a number out of its range.
    """
    require_positive("epsilon", epsilon)
    if num_sampled < 1 or num_rows < 1:
        raise PrivacyError(f"need at least one entry and one row, found {num_sampled} and {num_rows}")
    return MultiBit(epsilon / (num_sampled * num_rows), num_sampled * (1 if in_total else num_rows))


def claimed_local_code_event(noise_std: float, num_rows: int, num_columns: int, softmax: bool) -> Event:
    """H + N(0, noise_std²) with Δ₂ = √(2n) for softmax rows, √(n·h) for entries in [0, 1].
    noise_std: standard deviation per entry, finite and > 0. num_rows: n ≥ 1. num_columns: h ≥ 1. Raises ``PrivacyError``: a
    number out of its range.
    """
    require_positive("noise_std", noise_std)
    if num_columns < 1 or num_rows < 1:
        raise PrivacyError(f"need at least one row and one column, found {num_rows} and {num_columns}")
    return Gaussian(noise_std / math.sqrt(2 * num_rows if softmax else num_rows * num_columns))
