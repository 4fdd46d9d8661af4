"""The log-likelihood ratio of two inputs, given what a mechanism released.

    log P(released | one) − log P(released | zero)

No test between the two inputs is better (Neyman & Pearson), so an attacker who knows both computes this. Entries and bits
are independent, so their ratios add up. The coins that choose which bits are sent do not depend on the input and cancel.

**Edge cases.** A value sent in clear has no ratio; the sign of what is returned says which input is nearer. A mechanism
without a rule here → ``PrivacyError``.
"""

import numpy as np
from scipy.linalg import blas, lapack

from fedgraph.errors import PrivacyError
from fedgraph.privacy.mechanisms import blocks, noise


def _of_release(mechanism: noise.NoiseMechanism, released: np.ndarray, one: np.ndarray, zero: np.ndarray) -> float:
    """log P(released | one) − log P(released | zero) of one release.

    mechanism: what released it. released: what was sent. one: one of the two inputs after their bound, of the same shape. zero:
    the other. ``PrivacyError``: the mechanism has no likelihood ratio here.

    >>> round(_of_release(noise.GaussianNoise(1.0), np.array([2.0]), np.array([1.0]), np.array([-1.0])), 6)
    4.0
    """
    if isinstance(mechanism, noise.GaussianNoise | noise.Disclose):
        variance = mechanism.std**2 if isinstance(mechanism, noise.GaussianNoise) else 1.0
        return float((np.square(released - zero).sum() - np.square(released - one).sum()) / (2 * variance))
    if isinstance(mechanism, noise.LaplaceNoise):
        return float((np.abs(released - zero).sum() - np.abs(released - one).sum()) / mechanism.scale)
    if isinstance(mechanism, noise.KaryResponse):
        return mechanism.epsilon * float(np.count_nonzero(released == one) - np.count_nonzero(released == zero))
    if isinstance(mechanism, noise.MultiBitEncoder):
        return _of_bits(mechanism, released, one, zero)
    raise PrivacyError(f"there is no likelihood ratio here for {mechanism.words}")


def of_blocks(
    mechanism: noise.NoiseMechanism, released: np.ndarray, one: np.ndarray, zero: np.ndarray, sizes: tuple[int, ...]
) -> list[float]:
    """The ratio of each block of rows.

    Args:
        mechanism: what released them; ``PerBlock``, or one that is applied to every row alike. Of one block alone it may be
            any.
        released: what was sent, [rows, h].
        one: one of the two inputs after their bound, of the same shape.
        zero: the other.
        sizes: rows of each block.

    Raises:
        PrivacyError: a mechanism has no likelihood ratio here.
    """
    if len(sizes) == 1 and not isinstance(mechanism, blocks.PerBlock):
        return [_of_release(mechanism, released, one, zero)]
    parts = mechanism.parts if isinstance(mechanism, blocks.PerBlock) else (mechanism,) * len(sizes)
    each = zip(*(blocks.split(m, sizes) for m in (released, one, zero)), strict=True)
    return [_of_release(part, *three) for part, three in zip(parts, each, strict=True)]


def of_coins(gram: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Estimated log-likelihood ratios of m coins x = ±1, given the Gaussian values Σ_j h_j x_j + N(0, s² I).

    x̂ = (G + I)⁻¹ y is the linear estimate of least mean square error, which takes off what coins have along one another.
    Returned is 2 x̂_j / [(G + I)⁻¹]_jj. For one coin alone that is the exact log-likelihood ratio of +1 against −1. No coin:
    nothing.

    Args:
        gram: G = HᵀH/s² [m, m]; it is overwritten.
        along: y = Hᵀr/s² [m], r being what was seen.

    Returns:
        float64 [m].

    Raises:
        PrivacyError: products that are not finite, or not those of real vectors.

    >>> of_coins(np.array([[4.0]]), np.array([3.0])).tolist()
    [6.0]
    """
    if not along.size:
        return np.zeros(0)
    gram[np.diag_indices_from(gram)] += 1.0
    factor, failed = lapack.dpotrf(np.asfortranarray(gram, dtype=np.float64), lower=1, overwrite_a=1)
    inverse, failed_too = lapack.dpotri(factor, lower=1, overwrite_c=1)
    found = 2.0 * blas.dsymv(1.0, inverse, along.astype(np.float64), lower=1) / np.diag(inverse)
    if failed or failed_too or not np.isfinite(found).all():
        raise PrivacyError("coins cannot be read: products of what they change are not finite, or not those of real vectors")
    return np.asarray(found)


def _of_bits(mechanism: noise.MultiBitEncoder, released: np.ndarray, one: np.ndarray, zero: np.ndarray) -> float:
    chosen = released != 0
    plus = [noise.chance_of_bit(x, mechanism.low, mechanism.high, mechanism.epsilon_per_bit)[chosen] for x in (one, zero)]
    likely = [np.where(released[chosen] > 0, p, 1 - p) for p in plus]
    with np.errstate(divide="ignore"):
        return float((np.log(likely[0]) - np.log(likely[1])).sum())
