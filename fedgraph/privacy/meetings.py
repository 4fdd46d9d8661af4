"""How often two classes are joined by edges, counted by matching numbers, which one node changes only little.

Of the edges among labelled nodes a public coin keeps a share. For two classes a < b, ν_ab is the largest number of kept edges
between a node of class a and one of class b of which no two share an end (a maximum matching). For one class, ν_aa is that of
the graph with two copies of every node of class a, (u, left) joined to (v, right) where uv is a kept edge.

**Guarantee** (any graph, no promise about degrees). Taking one vertex out of a graph lowers its matching number by 0 or 1
(a largest matching loses at most the edge at that vertex). A node z of class y is one vertex of ν_yb for b ≠ y and two of
ν_yy, and no vertex of any other. So

    relation        change of the c(c + 1)/2 numbers                                             Δ₂
    node-zero-out   c − 1 numbers by at most 1, one by at most 2                                  √(c + 3)
    node-replace    2(c − 2) by at most 1, ν_yy and ν_y'y' by at most 2, ν_yy' by at most 1       √(2c + 5)

(replace: z leaves its old class y and enters y′; where y = y′, each number falls by at most its share and rises by at most as
much, so the first line bounds it.) Where plain counts of edges are released instead, one node changes them by its degree, that
is by up to n − 1; matchings never count a node twice.

**Edge cases.** Fewer than two classes, or a relation that is not of nodes → ``PrivacyError``. Counts that are negative, not
finite or above the number of nodes → ``UnboundedValueError``.

Reference: largest matchings as low-sensitivity statistics of graphs: Kasiviswanathan, Nissim, Raskhodnikova & Smith, Analyzing
graphs with node differential privacy (TCC 2013), use flows in the same way.
"""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.sensitivity import Bound, require_finite
from fedgraph.privacy.units import Relation, Unit


@dataclass(frozen=True)
class MeetingCounts(Bound):
    """The numbers ν_ab, a ≤ b, of a graph with ``num_nodes`` nodes and ``num_classes`` classes, float64 [c(c + 1)/2]."""

    num_nodes: int
    num_classes: int

    def __post_init__(self) -> None:
        if self.num_classes < 2 or self.num_nodes < 1:
            raise PrivacyError(f"meetings need at least two classes and one node, found {self}")

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        c = self.num_classes
        if value.shape != (c * (c + 1) // 2,):
            raise UnboundedValueError(f"{c} classes meet in {c * (c + 1) // 2} ways, found shape {value.shape}")
        if value.min() < 0 or value.max() > self.num_nodes or not (value == np.round(value)).all():
            raise UnboundedValueError(
                f"matching numbers of {self.num_nodes} nodes are whole and lie in 0 … {self.num_nodes}, found "
                f"{value.min()} … {value.max()}"
            )
        return value


def sensitivity(relation: Relation, num_classes: int) -> float:
    """Δ₂ of all ν_ab together, by the table above.

    >>> sensitivity(Relation.NODE_ZERO_OUT, 6)
    3.0
    """
    if relation.unit is not Unit.NODE or num_classes < 2:
        raise PrivacyError(f"meetings of classes have no sensitivity under {relation.value} with {num_classes} classes")
    return math.sqrt(2 * num_classes + 5 if relation.replaces else num_classes + 3)
