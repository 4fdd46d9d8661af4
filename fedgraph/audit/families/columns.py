"""Counts of columns: what private ranks are made of. One person's row vanishes (Δ = √d), or becomes another (Δ = √(2d)).

Worst case: the person is in a bin of every column, and the row that replaces it in another bin of each. The score is the noisy
counts along that movement.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, Sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.audit.families.sums import noisy
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.private_counts import ColumnCounts, column_sensitivity, on_line, positions, widest
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
OTHERS = np.array([[31.0, 2e4, 0.1], [58.0, 3e4, 0.2], [77.0, 1e9, -1.0]])
OWN, ANOTHER = np.array([40.0, 5e4, 0.3]), np.array([-40.0, -5e4, -0.3])


def cases() -> Iterator[Case]:
    """Zero-out and replace; each with a price that forgets something."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim, bound = Claim.of(Gaussian(multiplier), DELTA), ColumnCounts(3, 4, pooled=False)

    def counted(own: np.ndarray) -> np.ndarray:
        return bound.enforce(positions(on_line(np.vstack([OTHERS, own])), widest(3)))

    for relation, other in ((Relation.NODE_ZERO_OUT, np.full(3, np.nan)), (Relation.NODE_REPLACE, ANOTHER)):
        one, two = counted(OWN), counted(other)

        def release(delta_2: float, one: np.ndarray = one, two: np.ndarray = two) -> tuple[Sampler, Sampler]:
            return tuple(noisy(value.ravel(), multiplier * delta_2, (one - two).ravel()) for value in (one, two))  # type: ignore

        right = column_sensitivity(bound, relation)
        sound = Case(f"column-counts-{relation.value}", relation.value, claim, *release(right), gaussian())
        yield sound
        yield sound.broken("noise × ⅔", *release(right * 2 / 3))
        yield sound.broken("columns counted as one", *release(right / 3**0.5))
