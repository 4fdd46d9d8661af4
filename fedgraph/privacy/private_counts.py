"""Counts and sums of low sensitivity: histograms of columns, matching numbers, and sums over records with several owners.

**Columns** (``ColumnCounts``): how many people have a value in each of a few bins; private ranks of numbers are computed from
these counts.

A number x lies at u = sign(x)·log₂(1 + |x|), cut to ±``_WIDEST``, on a line that is the same for all data. Of each column a
public bracket [a, b] of that line has ``COUNT_BINS`` bins of one width, and one bin on either side. A person counts once in
each column; an empty cell and a masked row (all zeros) do not count.

**Guarantee** (any rows, any brackets). One person adds 1 to at most one bin of each of d columns; where the counts of all
columns are added up (*pooled*), 1/d to a bin for each column, a vector v ≥ 0 with ‖v‖₂ ≤ ‖v‖₁ ≤ 1. So

    relation        d columns                                    pooled               Δ₂
    node-zero-out   the person's own counts vanish               v vanishes           √d, or 1
    node-replace    each column: one count less, one more        ‖v − v′‖² ≤ 2        √(2d), or √2

Brackets narrow from round to round on noisy counts alone, which is post-processing.

**Edge cases.** Positions that are not whole numbers from −1 (not counted) to ``COUNT_BINS`` + 1, or a matrix of another width
or of more rows → ``UnboundedValueError``. No column or no row, or a relation that is not of nodes → ``PrivacyError``.

Reference: histograms have sensitivity one: Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity (TCC 2006).

**Meetings** (``MeetingCounts``): how often classes are joined by edges, counted by matching numbers.

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

**Edge cases.** Fewer than two classes, or a relation that is not of nodes → ``PrivacyError``. Counts that are negative, not
finite or above the number of nodes → ``UnboundedValueError``.

Reference: largest matchings as low-sensitivity statistics of graphs: Kasiviswanathan, Nissim, Raskhodnikova & Smith, Analyzing
graphs with node differential privacy (TCC 2013), use flows in the same way.

**Owned records** (``OwnedRows``): sums over records where a person may own several and a record may have several owners.

A record e is a row of d numbers x_ec in [0, 1] with the set of its owners: an edge belongs to both its ends (node level), or to
the owners that the table names (entity level). Column c of the release is the largest weighted sum in which nobody counts more
than D times:

    f_c = max Σ_e w_e x_ec   over 0 ≤ w_e ≤ 1  with  Σ_{e owned by p} w_e ≤ D  for every person p.

**Guarantee** (all records of one person vanish; any graph, any number of owners of a record): 0 ≤ f_c − f'_c ≤ D, so the
vector of d columns changes by at most Δ₂ = D·√d.

The largest sum is a linear program (a Lipschitz extension: Kasiviswanathan, Nissim, Raskhodnikova & Smith 2013; Raskhodnikova &
Smith 2016). People with at most D records add no constraint and are left out. Where nobody has more, f is the plain sum.

**Rounding.** The solver's answer is checked: its weights are made feasible, its dual prices y ≥ 0 give an upper bound on f
(weak duality), and the released sum lies between both. A gap above ``_SUM_SLACK``·D is an error; half of Δ's surplus covers it.

*Proof*: ``docs/PRIVACY.md``, 5b.

**Edge cases.** NaN, a record without an owner, an owner twice → ``UnboundedValueError``. D < 1 → ``PrivacyError``. No record
→ 0.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import CountField, require_finite
from fedgraph.privacy.sensitivity import SensitivityBound
from fedgraph.privacy.units import Relation, Unit

COUNT_BINS = 16
_WIDEST = 40.0  # in powers of two: numbers up to 10¹²
_TRIMMED = 0.025  # share of the people on either side that may lie outside a bracket: absurd entries do not widen it
_SUM_SLACK = 1e-3  # of D: how far a released sum may be below the largest one
_SURE = 3.0  # standard deviations of the noise above which a bin surely has people


@dataclass(frozen=True)
class ColumnCounts(SensitivityBound):
    """Positions, whole numbers [n, num_columns], become counts: float64 [num_columns, BINS + 2], or [1, BINS + 2] where pooled.

    Raises:
        PrivacyError: no column or no row.
    """

    additive: ClassVar[bool] = True
    num_columns: int  # d ≥ 1
    num_rows: int  # the largest n, ≥ 1; a row is one person
    pooled: bool  # whether the counts of all columns are added up, 1/d to a bin for each column

    def __post_init__(self) -> None:
        if self.num_columns < 1 or self.num_rows < 1:
            raise PrivacyError(f"counts of columns need a column and a row, found {self}")

    def enforce(self, value: np.ndarray) -> np.ndarray:
        shaped = value.ndim == 2 and value.shape[1] == self.num_columns and value.shape[0] <= self.num_rows
        if not shaped or value.dtype.kind != "i" or ((value < -1) | (value > COUNT_BINS + 1)).any():
            raise UnboundedValueError(
                f"positions are whole numbers from −1 to {COUNT_BINS + 1}, at most {self.num_rows} rows of "
                f"{self.num_columns}; found "
                f"{value.dtype} of shape {value.shape}, {value.min(initial=0)} … {value.max(initial=0)}"
            )
        counts = np.stack([np.bincount(column[column >= 0], minlength=COUNT_BINS + 2) for column in value.T]).astype(np.float64)
        return counts.sum(axis=0, keepdims=True) / self.num_columns if self.pooled else counts

    def change(self, relation: Relation) -> float:
        """Δ₂ of all counts together, by the table above. ``PrivacyError``: a relation that is not of nodes."""
        if relation.unit is not Unit.NODE:
            raise PrivacyError(f"counts of columns have no sensitivity under {relation.value}")
        return math.sqrt((1 if self.pooled else self.num_columns) * (2 if relation.replaces else 1))


def number_line(values: np.ndarray) -> np.ndarray:
    """u of each number: sign(x)·log₂(1 + |x|), cut to ±``_WIDEST``.

    Args:
        values: numbers of any shape; NaN stays NaN.

    Returns:
        float64, of the same shape.
    """
    exact = np.asarray(values, dtype=np.float64)
    return np.asarray(np.clip(np.sign(exact) * np.log2(1 + np.abs(exact)), -_WIDEST, _WIDEST))


def widest_brackets(num_columns: int) -> np.ndarray:
    """The brackets of the first round, float64 [num_columns, 2]: the whole line for every column."""
    return np.tile([-_WIDEST, _WIDEST], (num_columns, 1))


def bin_edges(brackets: np.ndarray) -> np.ndarray:
    """float64 [d, BINS + 1]: where the bins of each bracket begin and end."""
    low, high = brackets[:, :1], brackets[:, 1:]
    return np.asarray(low + (high - low) * np.arange(COUNT_BINS + 1) / COUNT_BINS)


def positions(line: np.ndarray, brackets: np.ndarray) -> np.ndarray:
    """The bin in which each person counts, in each column.

    Args:
        line: u, float64 [n, d].
        brackets: float64 [d or 1, 2], where the bins of a column begin and end.

    Returns:
        int64 [n, d]: 0 below the bracket, 1 … BINS in it, BINS + 1 above, −1 for NaN.

    Raises:
        PrivacyError: the brackets are not finite intervals of that shape. The check reads the brackets alone, so an active
            server learns nothing from a client that stops here.
    """
    allowed = f"[{line.shape[1]} or 1, 2], finite, low < high"
    if brackets.dtype.kind != "f" or brackets.ndim != 2 or brackets.shape not in ((line.shape[1], 2), (1, 2)):
        said = f"{brackets.dtype} of shape {brackets.shape}"
        raise PrivacyError(f"brackets of columns are refused: found {said}; allowed: {allowed}")
    low, high = brackets.astype(np.float64).T
    wrong = ~(np.isfinite(low) & np.isfinite(high) & (low < high))
    if wrong.any():
        column = int(wrong.argmax())
        raise PrivacyError(f"brackets of columns are refused: found [{low[column]}, {high[column]}]; allowed: {allowed}")
    with np.errstate(invalid="ignore", over="ignore"):
        place = np.clip(np.floor((line - low) / (high - low) * COUNT_BINS) + 1, 0, COUNT_BINS + 1)
    return np.where(np.isnan(line), -1, place).astype(np.int64)


def narrowed_brackets(brackets: np.ndarray, counts: np.ndarray, std: float) -> np.ndarray:
    """The brackets of the next round: from the first to the last bin with people in it.

    The first such bin is where the count to its left exceeds ``_TRIMMED`` of all people and what noise alone would give, or
    where one count surely exceeds the noise. If there is no such bin, the bracket stays.

    Args:
        brackets: float64 [d, 2], those of this round.
        counts: float64 [d, BINS + 2], noisy.
        std: standard deviation of the noise in each count.

    Returns:
        float64 [d, 2].
    """
    found = brackets.copy()
    for column, own in enumerate(counts):
        edges = bin_edges(brackets)[column]
        few = _TRIMMED * max(own.sum(), 0.0)
        least = few + 2 * std * np.sqrt(np.arange(COUNT_BINS) + 2)
        surely = own[1:-1] > max(few, _SURE * std)
        begins = np.flatnonzero((np.cumsum(own)[1:-1] > least) | surely)
        ends = np.flatnonzero((np.cumsum(own[::-1])[1:-1] > least) | surely[::-1])
        if begins.size and ends.size and begins[0] < COUNT_BINS - ends[0]:
            found[column] = edges[begins[0]], edges[COUNT_BINS - ends[0]]
    return found


def shares_below(counts: np.ndarray) -> np.ndarray:
    """Share of people below each edge of the bins, made non-decreasing.

    Args:
        counts: float64 [d, BINS + 2], noisy.

    Returns:
        float64 [d, BINS + 1] in [0, 1].
    """
    below = np.cumsum(counts, axis=1)[:, :-1] / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    rising = np.maximum.accumulate(below, axis=1)
    falling = np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.clip((rising + falling) / 2, 0.0, 1.0))


_MEETING_COUNT_RATES = (1.0, 1 / 4, 1 / 16, 1 / 64)  # r: from one neighbour to hundreds, one of them leaves many unmatched
_CLASS_RATES = (1 / 2, 1 / 8, 1 / 32)


@dataclass(frozen=True)
class MeetingCounts(SensitivityBound):
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
        return _MEETING_COUNT_RATES

    @property
    def class_rates(self) -> tuple[float, ...]:
        return _CLASS_RATES if self.by_class else ()

    @property
    def length(self) -> int:
        c = self.num_classes
        return c + 2 * len(_MEETING_COUNT_RATES) + len(self.class_rates) * c * (c + 1) // 2

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
        return math.sqrt(
            (2 if twice else 1) + 2 * len(_MEETING_COUNT_RATES) + len(self.class_rates) * (2 * c - 1 if twice else c)
        )


def least_change(length: int, relation: Relation) -> float:
    """The least Δ₂ of ``MeetingCounts`` of this length.

    Args:
        length: number of counts.
        relation: a relation of nodes.

    Raises:
        PrivacyError: no ``MeetingCounts`` has this length, or a relation that is not of nodes.
    """
    tables = [MeetingCounts(1, c, by_class) for c in range(2, length + 1) for by_class in (False, True)]
    fitting = [table.change(relation) for table in tables if table.length == length]
    if not fitting:
        raise PrivacyError(f"no meetings of classes are {length} numbers")
    return min(fitting)


@dataclass(frozen=True)
class OwnedRows(SensitivityBound):
    """Records [m, columns + k], numbers and then up to k owners (−1: no further one), become the sums f, float64 [columns].

    Numbers are clamped to [0, 1], and nobody counts more than ``limit`` times (a linear program).
    """

    limit: CountField  # D ≥ 1, the most that one person counts for in each column
    columns: CountField  # d ≥ 1, numbers of a record

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.ndim != 2 or value.shape[1] <= self.columns:
            raise UnboundedValueError(f"OwnedRows needs {self.columns} columns and owners, found shape {value.shape}")
        rows, owners = np.clip(value[:, : self.columns], 0.0, 1.0), value[:, self.columns :].astype(np.int64)
        return _largest_sums(rows.astype(np.float64), _incidence(owners), self.limit)

    def sensitivity_l2(self, relation: Relation) -> float:
        """Δ₂ of the sums, in units of a record's largest number: D·√d, and a little more for the gap of the solver.

        Args:
            relation: ``node-links`` or ``entity-links``, under which all records of one owner vanish.

        Raises:
            PrivacyError: another relation.
        """
        if relation not in (Relation.NODE_LINKS, Relation.ENTITY_LINKS):
            raise PrivacyError(f"OwnedRows needs the relation node-links or entity-links, found {relation.value}")
        return self.limit * (1 + 2 * _SUM_SLACK) * math.sqrt(self.columns)


def _incidence(owners: np.ndarray) -> sp.csr_array:
    """CSR [people, m], 1 where a person owns a record.

    owners: int64 [m, k], −1: no further owner. ``UnboundedValueError``: a record has no owner, or one owner twice.
    """
    if len(owners) and (owners.max(axis=1) < 0).any():
        raise UnboundedValueError("a record has no owner: nothing bounds how often it counts")
    records = np.repeat(np.arange(len(owners)), owners.shape[1])
    flat = owners.ravel()
    people, numbers = np.unique(flat[flat >= 0], return_inverse=True)
    found = sp.csr_array((np.ones(numbers.size), (numbers, records[flat >= 0])), shape=(people.size, len(owners)))
    if found.nnz < numbers.size:
        raise UnboundedValueError("a record names one owner twice")
    return found


def _largest_sums(rows: np.ndarray, owned: sp.csr_array, limit: int) -> np.ndarray:
    """float64 [d], f of every column.

    rows: float64 [m, d] in [0, 1]. owned: CSR [people, m], 1 where a person owns a record. limit: D ≥ 1. ``PrivacyError``: the
    solver's answer is further than ``_SUM_SLACK``·D from the largest sum.

    >>> star = _incidence(np.array([[0, 1], [0, 2], [0, 3]]))
    >>> _largest_sums(np.array([[1.0, 0.2], [1.0, 0.9], [1.0, 0.5]]), star, 2).round(6).tolist()
    [2.0, 1.4]
    """
    many = sp.csr_array(owned[np.diff(owned.indptr) > limit])
    bound = np.zeros(len(rows), dtype=bool)
    bound[many.indices] = True
    free = rows[~bound].sum(axis=0)
    if not many.shape[0]:
        return np.asarray(free)
    inside = sp.csr_array(sp.csc_array(many)[:, np.flatnonzero(bound)])
    return np.array([total + _largest(column, inside, limit) for total, column in zip(free, rows[bound].T, strict=True)])


def _largest(column: np.ndarray, owned: sp.csr_array, limit: int) -> float:
    from scipy.optimize import linprog  # not before it is used: every run lists all methods

    found = linprog(-column, A_ub=owned, b_ub=np.full(owned.shape[0], float(limit)), bounds=(0, 1), method="highs")
    if found.x is None:
        raise PrivacyError(f"the largest sum in which nobody counts more than {limit} times was not found: {found.message}")
    weights = np.clip(found.x, 0.0, 1.0)
    weights /= max(1.0, float((owned @ weights).max()) / limit)
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    above = limit * prices.sum() + np.maximum(column - owned.T @ prices, 0.0).sum()
    total = float(weights @ column)
    if not above - total <= _SUM_SLACK * limit:
        raise PrivacyError(
            f"the solver's sum {total} may be {above - total:g} below the largest one; allowed: {_SUM_SLACK * limit:g}"
        )
    return total
