"""How much one edge or one node can change sums over neighbours, and gradients that read such sums.

**Log cap** (``PricedDegreeCap``): edge weights that need no promise about degrees.

A sum over neighbours gives every edge uv of a simple graph the weight W_uv = h(max(d_u, d_v)), where d counts neighbours and

    h(d) = 1 up to D,    h(d) = max(0, 1 − s·(H_{d−1} − H_{D−1})) beyond,    s = 1/(H_{m₀−1} − H_{D−1}),    h = 0 from m₀ on.

H_k is the k-th harmonic number; D, m₀ and n (nodes of the graph, or of one client's graph) are public. This is the *log cap*.
Row u of a sum is R_u = Σ_v W_uv x_v with ‖x_v‖ ≤ 1.

**Guarantee** (node-zero-out, any graph, row z seen by nobody but its owner). Let m = d_z. Without z

    Σ_{u≠z} ‖ΔR_u‖² ≤ m(h(m) + s)² + s²·min(m, n − 1 − m),          Σ_{u≠z} ‖ΔR_u‖ ≤ m(h(m) + s) + s·min(m, n − 1 − m).

``sensitivity_l2`` (squared) and ``sensitivity_l1`` are the largest values over m; from 100 nodes on the first is s·√(n − 1) to
four digits. Where a platform enforces degrees of at most M, only m ≤ M counts, and m₀ = M. Replacing a node is two removals
(take it out of either world): twice the value. Self-loops of constant weight would
be free; graphs here have none.

Proofs, also of what rounding adds: ``docs/proofs.md``.

**Edge cases.** Fewer than two nodes: nothing can change, and the value for two is used. Where the log cap costs more than
plain sums (Δ₂ = √(n − 1), or √M), as on tiny graphs, ``priced_log_cap`` returns plain sums. D < 1, M < 1 → ``PrivacyError``.

**Plain sums** (``sensitivity``).

The value is M = A·H, [n, h], where row v is Σ_{u ∈ N(v)} H_u and every ‖H_u‖₂ ≤ 1 (fixed before the graph is
read, or already released: adaptive composition allows both). Largest ‖M − M'‖_F over neighbours:

    relation          rows of M                Δ₂          why
    edge-directed     released                 1           one row gains or loses one H_u
    edge-undirected   released                 √2          rows u and v each gain or lose one vector of norm ≤ 1
    node-zero-out     kept by their owners     √D          at most D other rows lose one vector; v's own row is not shown
    node-zero-out     released                 √(D + D²)   … and v's own row, a sum of ≤ D vectors, vanishes
    node-replace      kept                     2√D         the same D rows exchange one vector for another
    node-replace      released                 2√(D + D²)  … and v's own row becomes another sum of ≤ D vectors

An undirected edge has two ends, at its two rows; each end alone changes one row by at most 1 (``NEIGHBOUR_SUM_END``), so where
the rows are released apart, with independent noise, an edge costs two Gaussians of Δ₂ = 1: together what √2 costs at once.

Node level holds under ``promised-degree`` D only: a sampler that cuts larger neighbourhoods lets others refill the freed slots.

**Edge cases.** A relation that is not listed, a node relation without D, D < 1 → ``PrivacyError``.

Reference: Sajadmanesh et al., GAP (USENIX Security 2023), Lemmas 1 and 2, with Δ = 1 and √D; the edge-undirected
line is ours: their Δ = 1 counts one of the two rows that an undirected edge changes.

**Gradients** (``gradient_sensitivity``): a sum of clipped gradients whose rows hold sums over neighbours, without any
promise.

Row u of a multinomial logistic regression is w_u = [x_u; a_u; 1]: its own features, ‖x_u‖ ≤ 1, and

    a_u = P(R_u / c),   R_u = Σ_v W_uv x_v  with the weights of the log cap,   P the projection on the unit ball,

c public. With p_u = softmax(Θᵀw_u), g_u = w_u ⊗ (p_u − e_y), clipped to norm C. The part Θ_a of Θ that reads a_u is kept at a
Frobenius norm of at most B (public; the kernel projects it, whatever it is handed).

**Guarantee** (node-zero-out, every graph). A node that goes changes Σ_u clip(g_u) by at most

    Δ = C + min(L·Δ₁/c, 2C·(n − 1)),     L = √2 + (√3/2)·B,

Δ₁ = ``PricedDegreeCap.sensitivity_l1()``; replacing a node is two removals, 2Δ. Also for any batch that was drawn without
looking at the data: its coins are the same in both worlds, and every sum of some of the rows obeys the same bound.

**Edge cases.** c, B or C that is zero, negative or not finite → ``PrivacyError``.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import digamma

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import ArrayField, CountField, require_finite, require_positive
from fedgraph.privacy.sensitivity import SensitivityBound
from fedgraph.privacy.units import Relation, Unit

_ROUNDING = 2.0**-50
_WORTH_IT = 4.1  # M / typical degree from which the log cap beats plain sums under an enforced limit: ln(M/d) > √2


@dataclass(frozen=True)
class PricedDegreeCap:
    """h, the weight of an edge by the larger degree of its two ends.

    Raises:
        PrivacyError: a number out of its range.
    """

    num_nodes: int  # n ≥ 1, nodes of the graph
    knee: int = 1  # D ≥ 1; edges weigh 1 up to it
    silent: int | None = None  # m₀ > D, the degree from which on edges weigh 0; None: every edge weighs 1 (plain sums)
    limit: int | None = None  # M ≥ 1 where a platform enforces one, else None

    def __post_init__(self) -> None:
        if self.num_nodes < 1 or self.knee < 1 or (self.limit is not None and self.limit < 1):
            raise PrivacyError(f"a degree cap needs nodes, knee and limit of at least 1, found {self}")
        if self.silent is not None and self.silent <= self.knee:
            raise PrivacyError(f"a log cap falls from degree {self.knee} on, so it cannot be 0 from degree {self.silent} on")

    @property
    def slope(self) -> float:
        """s; 0 for plain sums."""
        return 0.0 if self.silent is None else 1.0 / _harmonic_between(self.knee, self.silent)

    @cached_property
    def factors(self) -> ArrayField:
        """float64 [num_nodes]: h(0) … h(n − 1)."""
        degrees = np.arange(max(2, self.num_nodes), dtype=np.float64)
        if self.silent is None:
            return np.ones_like(degrees)
        fallen = self.slope * (digamma(np.maximum(degrees, self.knee)) - digamma(self.knee))
        return np.where(degrees >= self.silent, 0.0, np.clip(1.0 - fallen, 0.0, 1.0))

    def changes(self) -> tuple[ArrayField, ArrayField]:
        """(Σ ‖ΔR_u‖², Σ ‖ΔR_u‖) at most for a removed node of degree m = 0, 1 …, without rounding: two arrays of float64."""
        others = max(2, self.num_nodes) - 1
        m = np.arange(min(others, others if self.limit is None else self.limit) + 1, dtype=np.float64)
        s, direct = self.slope, self.factors[: m.size]
        indirect = np.minimum(m, others - m)
        squares, lengths = m * (direct + s) ** 2 + s**2 * indirect, m * (direct + s) + s * indirect
        return squares, lengths

    def sensitivity_l2(self, replaces: bool = False) -> float:
        """Δ₂ of one sum over neighbours, rounding included.

        Args:
            replaces: whether a node is replaced (two removals), not zeroed.

        >>> round(PricedDegreeCap(6401, 10, 3200).sensitivity_l2(), 2), round(PricedDegreeCap(401).sensitivity_l2(), 2)
        (13.75, 20.0)
        """
        exact = math.sqrt(float(self.changes()[0].max()))
        return (2 if replaces else 1) * (exact + math.sqrt(self.num_nodes) * self.num_nodes**2 * _ROUNDING)

    def sensitivity_l1(self, replaces: bool = False) -> float:
        """Largest Σ_u ‖ΔR_u‖₂ over the rows of others, rounding included.

        replaces: whether a node is replaced (two removals), not zeroed.
        """
        exact = float(self.changes()[1].max())
        return (2 if replaces else 1) * (exact + self.num_nodes**3 * _ROUNDING)


def priced_log_cap(num_nodes: int, knee: int = 1, limit: int | None = None) -> PricedDegreeCap:
    """The log cap of a graph, or plain sums where those cost less.

    Of the ratio of signal to noise D = 1 leaves no edge less than any other D does: h_D/s is H_{m₀−1} − H_{max(d, D)−1}.

    Args:
        num_nodes: n ≥ 1.
        knee: D ≥ 1.
        limit: M, enforced by the platform; None where there is none.

    Returns:
        The rule of least Δ₂ (zero-out, rows not released).
    """
    ends = {(num_nodes - 1) // 2} | ({limit} if limit is not None and limit < num_nodes else set())
    rules = [
        PricedDegreeCap(num_nodes, knee, None, limit),
        *(PricedDegreeCap(num_nodes, knee, m, limit) for m in ends if m > knee),
    ]
    return min(rules, key=PricedDegreeCap.sensitivity_l2)


def priced_limited_cap(num_nodes: int, limit: int, typical: int, knee: int = 1) -> PricedDegreeCap:
    """The rule for graphs whose platform enforces a limit.

    Args:
        num_nodes: n ≥ 1.
        limit: M, the enforced limit.
        typical: a public guess of the usual degree.
        knee: D ≥ 1.

    Returns:
        ``priced_log_cap`` where M is more than 4.1 times the usual degree, else plain sums.
    """
    return (
        priced_log_cap(num_nodes, knee, limit) if limit > _WORTH_IT * typical else PricedDegreeCap(num_nodes, knee, None, limit)
    )


def _harmonic_between(low: int, high: int) -> float:
    """H_{high−1} − H_{low−1}."""
    return float(digamma(high) - digamma(low))


NEIGHBOUR_SUM_END = 1.0  # Δ₂ of one end of an undirected edge


@dataclass(frozen=True)
class NeighbourSums(SensitivityBound):
    """Rows [n, h] that are sums of at most ``max_terms`` vectors of norm at most 1.

    The vectors are scaled where they are computed (``learning.aggregation.scale_to_unit_length``). ``enforce`` only
    checks that each row is finite and of norm at most max_terms.
    """

    additive: ClassVar[bool] = True
    max_terms: CountField  # largest number of vectors in a row, ≥ 1
    cap: PricedDegreeCap | None = None  # weights of the edges; None: all are 1

    def enforce(self, value: np.ndarray) -> np.ndarray:
        squares = np.einsum("ij,ij->i", value, value, dtype=np.float64)  # NaN or infinity in a row makes its square so
        found = float(squares.max(initial=0.0))
        if not found <= (self.max_terms * (1 + 1e-5)) ** 2:
            raise UnboundedValueError(
                f"a sum of {self.max_terms} vectors of norm at most 1 has norm at most {self.max_terms}, "
                f"found {math.sqrt(found) if found >= 0 else found}: the vectors were not scaled, or hold NaN"
            )
        return value


@dataclass(frozen=True)
class NeighbourCounts(SensitivityBound):
    """The number of neighbours of each node, [num_nodes].

    Enforced by clamping every count into 0 … num_nodes − 1, which moves no two counts further apart.
    """

    num_nodes: int  # number of nodes

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.shape != (self.num_nodes,):
            raise UnboundedValueError(f"degrees must be [{self.num_nodes}], found {value.shape}")
        return np.asarray(np.clip(value, 0, self.num_nodes - 1))

    def sensitivity_l1(self, relation: Relation) -> float:
        """Δ₁: an undirected edge counts at both its ends (2), a directed one at one end (1).

        ``PrivacyError``: a relation that is not of edges.
        """
        if relation is Relation.EDGE_UNDIRECTED:
            return 2.0
        if relation is Relation.EDGE_DIRECTED:
            return 1.0
        raise PrivacyError(f"degrees are bounded for edges, found {relation.value}: a node changes those of all its neighbours")


def sensitivity(relation: Relation, degree: int | None = None, rows_released: bool = True) -> float:
    """Δ₂ of one sum over neighbours, by the table above.

    Args:
        relation: which two inputs are neighbours.
        degree: the promised maximum degree D ≥ 1; node level only.
        rows_released: whether anybody but its owner sees a row; node level only.

    Raises:
        PrivacyError: node level without D, or a relation that is neither of edges nor of nodes.

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


def _lipschitz(bound: float) -> float:
    """L: how far a row's gradient moves at most when its neighbours' part moves by 1.

    >>> round(_lipschitz(2.0), 4)
    3.1463
    """
    require_positive("bound", bound)
    return math.sqrt(2) + math.sqrt(3) / 2 * bound


def gradient_scale(cap: PricedDegreeCap, clip: float, bound: float) -> float:
    """The c at which all other rows together move the sum as much as a node's own row: L·Δ₁/C.

    Args:
        cap: weights of the edges, and number of nodes.
        clip: C, finite and > 0.
        bound: B, finite and > 0.

    Raises:
        PrivacyError: a number out of its range.
    """
    require_positive("clip", clip)
    return _lipschitz(bound) * cap.sensitivity_l1() / clip


def gradient_sensitivity(cap: PricedDegreeCap, clip: float, bound: float, scale: float, replaces: bool = False) -> float:
    """Δ of one sum of clipped gradients, in data units: C + min(L·Δ₁/c, 2C·(n − 1)), twice that where a node is replaced.

    Args:
        cap: weights of the edges, and number of nodes.
        clip: C, finite and > 0.
        bound: B, the largest norm of Θ_a, finite and > 0.
        scale: c, finite and > 0.
        replaces: whether a node is replaced, not zeroed.

    Raises:
        PrivacyError: a number out of its range.
    """
    require_positive("clip", clip)
    require_positive("scale", scale)
    others = min(_lipschitz(bound) * cap.sensitivity_l1() / scale, 2 * clip * (cap.num_nodes - 1))
    return (2 if replaces else 1) * (clip + others)
