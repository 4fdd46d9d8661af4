"""What one edge or one node can change in sums over neighbours: the sensitivity of an aggregation.

The value is M = A·H, [n, h], where row v is Σ_{u ∈ N(v)} H_u and every ‖H_u‖₂ ≤ 1 (fixed before the graph is
read, or already released: adaptive composition allows both). Largest ‖M − M'‖_F over neighbours:

    relation          rows of M                Δ₂          why
    edge-directed     released                 1           one row gains or loses one H_u
    edge-undirected   released                 √2          rows u and v each gain or lose one vector of norm ≤ 1
    node-zero-out     kept by their owners     √D          at most D other rows lose one vector; v's own row is not shown
    node-zero-out     released                 √(D + D²)   … and v's own row, a sum of ≤ D vectors, vanishes
    node-replace      kept                     2√D         the same D rows exchange one vector for another
    node-replace      released                 2√(D + D²)  … and v's own row becomes another sum of ≤ D vectors

An undirected edge has two ends, at its two rows; each end alone changes one row by at most 1 (``END``), so where the rows are
released apart, with independent noise, an edge costs two Gaussians of Δ₂ = 1: together what √2 costs at once.

Node level holds under ``promised-degree`` D only. A sampler that cuts larger neighbourhoods to D lets others
refill the freed slots, which changes further rows; the published analyses of GAP-NDP do not count that, and neither
does the promise.

**Edge cases.** A relation that is not listed, a node relation without D, D < 1 → ``PrivacyError``.

Reference: Sajadmanesh et al., GAP (USENIX Security 2023), Lemmas 1 and 2, with Δ = 1 and √D; the edge-undirected
line is ours: their Δ = 1 counts one of the two rows that an undirected edge changes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.sensitivity import Bound, require_count
from fedgraph.privacy.units import Relation, Unit

END = 1.0  # Δ₂ of one end of an undirected edge


@dataclass(frozen=True)
class NeighbourSums(Bound):
    """Rows that are sums of at most ``max_terms`` vectors of norm at most 1.

    The vectors are scaled where they are made (``learning.propagation.aggregation.unit_length``); here each row is checked
    against what such a sum can be: finite, and of norm at most max_terms. cap: how edges are weighed; None: each by 1.
    """

    additive: ClassVar[bool] = True
    max_terms: int
    cap: DegreeCap | None = None

    def __post_init__(self) -> None:
        require_count("NeighbourSums.max_terms", self.max_terms)

    def enforce(self, value: np.ndarray) -> np.ndarray:
        squares = np.einsum("ij,ij->i", value, value, dtype=np.float64)  # NaN or infinity in a row makes its square so
        found = float(squares.max(initial=0.0))
        if not found <= (self.max_terms * (1 + 1e-5)) ** 2:
            raise UnboundedValueError(
                f"a sum of {self.max_terms} vectors of norm at most 1 has norm at most {self.max_terms}, "
                f"found {math.sqrt(found) if found >= 0 else found}: the vectors were not scaled, or hold NaN"
            )
        return value


def sensitivity(relation: Relation, degree: int | None = None, rows_released: bool = True) -> float:
    """Δ₂ of one aggregation, by the table above.

    relation: which inputs are neighbours. degree: the promised maximum degree D (node level only).
    rows_released: whether anybody but its owner sees a row.

    >>> sensitivity(Relation.EDGE_DIRECTED), round(sensitivity(Relation.EDGE_UNDIRECTED) ** 2, 12)
    (1.0, 2.0)
    >>> sensitivity(Relation.NODE_ZERO_OUT, degree=9, rows_released=False)
    3.0
    """
    if relation is Relation.EDGE_DIRECTED:
        return 1.0
    if relation is Relation.EDGE_UNDIRECTED:
        return math.sqrt(2.0)
    if relation.unit is not Unit.NODE:
        raise PrivacyError(f"an aggregation over neighbours has no sensitivity under {relation.value}")
    if degree is None or degree < 1:
        raise PrivacyError(
            f"node level needs a promised maximum degree D ≥ 1, found {degree}: without it one node changes any row"
        )
    rows = degree + degree**2 if rows_released else degree
    return (2.0 if relation.replaces else 1.0) * math.sqrt(rows)
