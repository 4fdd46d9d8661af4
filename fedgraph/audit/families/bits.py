"""The multi-bit encoder: a graph of n rows, m bits of each row or of the whole matrix, all bits of the unit.

Worst case: every entry at the top of the box in one world, at the bottom in the other (an L-layer network
lets one node do that to every row, and a graph is one client's own). Each bit is then +1 with e^a/(e^a + 1)
or 1/(e^a + 1), and the number of +1 is sufficient.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.audit.closed_form import bits
from fedgraph.privacy.events import MultiBit
from fedgraph.privacy.mechanisms.noise import MultiBitEncoder
from fedgraph.privacy.units import Relation

EPSILON = 1.0
NUM_ROWS, NUM_COLUMNS = 4, 3
BITS_PER_ROW = 2
BITS_IN_TOTAL = 5
RUNS_IN_TOTAL = 5_000  # the encoder draws one matrix per call here


def cases() -> Iterator[Case]:
    """m bits per row: a = ε/(m·n); m bits in total: a = ε/m."""
    relation = Relation.GRAPH_REPLACE.value
    total = BITS_PER_ROW * NUM_ROWS
    claim = Claim.of(MultiBit(EPSILON / total, total), 0.0)
    high, low = (per_row(v, EPSILON / total) for v in (1.0, 0.0))
    sound = Case("multi-bit-per-row", relation, claim, high, low, bits(total))
    yield sound
    wrong = EPSILON / BITS_PER_ROW
    yield sound.broken("budget not divided by the rows", per_row(1.0, wrong), per_row(0.0, wrong))
    wrong = EPSILON / NUM_ROWS
    yield sound.broken("budget not divided by the row's bits", per_row(1.0, wrong), per_row(0.0, wrong))

    claim = Claim.of(MultiBit(EPSILON / BITS_IN_TOTAL, BITS_IN_TOTAL), 0.0)
    high, low = (in_total(v, EPSILON / BITS_IN_TOTAL) for v in (1.0, 0.0))
    sound = Case("multi-bit-in-total", relation, claim, high, low, bits(BITS_IN_TOTAL), runs=RUNS_IN_TOTAL)
    yield sound
    yield sound.broken("budget not divided by the bits", in_total(1.0, EPSILON), in_total(0.0, EPSILON))


@sampler
def per_row(runs: int, rng: np.random.Generator, value: float, per_bit: float) -> np.ndarray:
    """Rows are encoded independently, so ``runs`` graphs are one tall matrix."""
    encoder = MultiBitEncoder(per_bit, BITS_PER_ROW)
    encoded = encoder.apply(np.full((runs * NUM_ROWS, NUM_COLUMNS), value), rng)
    return np.asarray(np.count_nonzero(encoded.reshape(runs, -1) == 1.0, axis=1).astype(float))


@sampler
def in_total(runs: int, rng: np.random.Generator, value: float, per_bit: float) -> np.ndarray:
    """One call per graph."""
    encoder = MultiBitEncoder(per_bit, BITS_IN_TOTAL, in_total=True)
    matrix = np.full((NUM_ROWS, NUM_COLUMNS), value)
    return np.array([np.count_nonzero(encoder.apply(matrix, rng) == 1.0) for _ in range(runs)], dtype=float)
