"""How often classes are joined by edges, counted by matching numbers, which one node changes only little.

Public coins put every node on one of two sides, and keep each edge between the sides with a public probability r. The matching
number of a kind of edges is the largest number of kept edges of this kind of which no two share an end. The numbers are

    how many labelled nodes each class has                                                                c numbers
    edges between nodes of one class, and between nodes of two classes; for each of R values of r         2R numbers
    where wanted, edges between class a and class b, for a ≤ b; for each of S values of r                 S·c(c + 1)/2 numbers

**Guarantee** (any graph, no promise about degrees). Taking one vertex out of a graph lowers its matching number by 0 or 1
(a largest matching loses at most the edge at that vertex). A node z of class y is one vertex of every graph of the second line,
and in the third of the graphs {y, b}, and no vertex of any other. So

    relation        changes by at most 1                                              Δ₂
    node-zero-out   1 count, 2R numbers, and Sc more                                  √(1 + 2R + Sc)
    node-replace    2 counts, 2R numbers (z leaves and enters), S(2c − 1) more        √(2 + 2R + S(2c − 1))

Where plain counts of edges are released instead, one node changes them by its degree, that is by up to n − 1; matchings never
count a node twice.

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

RATES = (1.0, 1 / 4, 1 / 16, 1 / 64)  # r: of any density from one neighbour to hundreds, one of them leaves many unmatched
CLASS_RATES = (1 / 2, 1 / 8, 1 / 32)


@dataclass(frozen=True)
class MeetingCounts(Bound):
    """Nodes per class and matching numbers of a graph with ``num_nodes`` nodes and ``num_classes`` classes, float64 [length].

    by_class: whether the third line is there.
    """

    num_nodes: int
    num_classes: int
    by_class: bool

    def __post_init__(self) -> None:
        if self.num_classes < 2 or self.num_nodes < 1:
            raise PrivacyError(f"meetings need at least two classes and one node, found {self}")

    @property
    def rates(self) -> tuple[float, ...]:
        return RATES

    @property
    def class_rates(self) -> tuple[float, ...]:
        return CLASS_RATES if self.by_class else ()

    @property
    def length(self) -> int:
        c = self.num_classes
        return c + 2 * len(RATES) + len(self.class_rates) * c * (c + 1) // 2

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.shape != (self.length,):
            raise UnboundedValueError(f"meetings of {self.num_classes} classes are {self.length} numbers, found {value.shape}")
        if value.min() < 0 or value.max() > self.num_nodes or not (value == np.round(value)).all():
            raise UnboundedValueError(
                f"counts and matching numbers of {self.num_nodes} nodes are whole and lie in 0 … {self.num_nodes}, found "
                f"{value.min()} … {value.max()}"
            )
        return value

    def change(self, relation: Relation) -> float:
        """Δ₂ of all numbers together, by the table above.

        >>> MeetingCounts(10, 6, by_class=True).change(Relation.NODE_ZERO_OUT) ** 2
        27.0
        """
        if relation.unit is not Unit.NODE:
            raise PrivacyError(f"meetings of classes have no sensitivity under {relation.value}")
        twice, c = relation.replaces, self.num_classes
        return math.sqrt((2 if twice else 1) + 2 * len(RATES) + len(self.class_rates) * (2 * c - 1 if twice else c))


def least_change(length: int, relation: Relation) -> float:
    """The least Δ₂ of meetings that are ``length`` numbers. ``PrivacyError`` where none are."""
    tables = [MeetingCounts(1, c, by_class) for c in range(2, length + 1) for by_class in (False, True)]
    fitting = [table.change(relation) for table in tables if table.length == length]
    if not fitting:
        raise PrivacyError(f"no meetings of classes are {length} numbers")
    return min(fitting)
