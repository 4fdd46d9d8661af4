"""Sums over records where a person may own several records and a record may have several owners.

A record e is a row of d numbers x_ec in [0, 1] with the set of its owners: an edge belongs to both its ends (node level), or to
the owners that the table names (entity level). Column c of the release is the largest weighted sum in which nobody counts more
than D times:

    f_c = max Σ_e w_e x_ec   over 0 ≤ w_e ≤ 1  with  Σ_{e owned by p} w_e ≤ D  for every person p.

**Guarantee** (all records of one person vanish; any graph, any number of owners of a record): 0 ≤ f_c − f'_c ≤ D, so the
vector of d columns changes by at most Δ₂ = D·√d.

The largest sum is a linear program (a Lipschitz extension: Kasiviswanathan, Nissim, Raskhodnikova & Smith 2013; Raskhodnikova &
Smith 2016). People with at most D records add no constraint and are left out. Where nobody has more, f is the plain sum.

**Rounding.** The solver's answer is checked: its weights are made feasible, its dual prices y ≥ 0 give an upper bound on f
(weak duality), and the released sum lies between both. A gap above ``_SLACK``·D is an error; half of Δ's surplus covers it.

*Proof*: ``docs/PRIVACY.md``, 5b.

**Edge cases.** NaN, a record without an owner, an owner twice → ``UnboundedValueError``. D < 1 → ``PrivacyError``. No record
→ 0.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import CountField, require_finite
from fedgraph.privacy.sensitivity import SensitivityBound
from fedgraph.privacy.units import Relation

_SLACK = 1e-3  # of D: how far a released sum may be below the largest one


@dataclass(frozen=True)
class OwnedRows(SensitivityBound):
    """Records [m, columns + k], numbers and then up to k owners (−1: no further one), become the sums f, float64 [columns].

    Numbers are clamped to [0, 1], and nobody counts more than ``limit`` times (the linear program of this module).
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
        return self.limit * (1 + 2 * _SLACK) * math.sqrt(self.columns)


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
    solver's answer is further than ``_SLACK``·D from the largest sum.

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
    if not above - total <= _SLACK * limit:
        raise PrivacyError(
            f"the solver's sum {total} may be {above - total:g} below the largest one; allowed: {_SLACK * limit:g}"
        )
    return total
