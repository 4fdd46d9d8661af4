"""How sums of clipped rows stay within the clip in floating point, for any number of rows.

A row's gradient gᵢ is a sum of products of single-precision numbers; as real numbers those products are exact. Rows are
scaled so that ‖gᵢ‖ ≤ c, and everything after that is done in double precision, unit roundoff u = 2⁻⁵³.

**Theorem.** Let no product pass through more than m = 2n + 64 roundings on its way into the sum Ŝ, in any order, blocked,
threaded or fused, and let the lengths of each row's products add up to at most κc. Then (Higham 2002, Lemma 3.1)

    ‖Ŝ − Σᵢ gᵢ‖ ≤ γ·κ·n·c,   γ = mu/(1 − mu),      so      ‖Ŝ − Ŝ'‖ ≤ c·(1 + 2γκn)

for sums that differ in one row (2c instead of c where it is replaced, (2k − 1)c where k rows change). Stored in single
precision a sum of norm at most 1.01·n·c moves by 2⁻²⁴ of that in either world, 2.02·n·2⁻²⁴·c together. ``room`` returns the
share of the clip that c may be, so that stored sums differ by at most the clip. Up to 4,096 rows they are stored in single
precision (which costs 0.05 % of the clip), beyond in double precision.

κ = 1 where a row's gradient is one outer product per layer. Where it adds several (a node and its neighbours), they may
cancel: the length of the sum is small, but its rounding is not. There κ = ``SPREAD``, and a row whose products are longer
than κ times its clip is scaled by them instead of by its norm; that needs 98 % of it to cancel.

**What is assumed.** A row's own numbers (activations, errors) are functions of this row and of public shapes alone, which
holds for products of a matrix with a matrix, row by row. Underflow (numbers below 10⁻³⁸) is not counted.

**Edge cases.** More rows than the theorem has room for (``room`` below one half: 4·10⁷ rows at κ = 1, 5·10⁶ at κ = 64) →
``DataError``.
"""

import numpy as np

from fedgraph.errors import DataError

SPREAD = 64.0
SINGLE = 4096  # rows up to which a sum is stored in single precision
NORM = 2.0**-34  # what is added to a squared norm, in units of the squared length of all products: covers its rounding
ROW = 2.0**-20  # of the clip, for the rounding of a row's own scale


def room(num_rows: int, spread: float = 1.0) -> tuple[type, float]:
    """(type in which the sum of at most ``num_rows`` clipped rows is stored, the share of the clip that a row may have).

    num_rows: a public number. spread: κ.

    >>> room(1000)[1] > 0.999, room(10**6)[1] > 0.999, room(10**6, SPREAD)[1] > 0.94
    (True, True, True)
    """
    operations = (2 * num_rows + 64) * 2.0**-53
    added = 2 * operations / (1 - operations) * spread * num_rows
    dtype: type = np.float32 if num_rows <= SINGLE else np.float64
    if dtype is np.float32:
        added += 2.02 * num_rows * 2.0**-24
    if not added < 1:
        raise DataError(f"{num_rows} rows in one sum of clipped gradients: rounding may exceed the clip; use more clients")
    return dtype, (1 - ROW) / (1 + added)
