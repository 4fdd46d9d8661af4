"""A client that asks for more protection than the others: it sends a smaller share of the same bounded sum.

Every client adds the noise that the plan gives it. A client with an own ε multiplies its bounded value by a share w ≤ 1 first,

    message = w·value + N(0, std²I),

so that its units move the message by wΔ instead of Δ (a sampled row by wC instead of its clip C), and each of its releases of
noise multiplier m counts as m/w. Noise of the others, and so their ε, does not change. With all its releases Gaussian,
μ² = Σ n_i/m_i² in total, and

    w = min(1, μ(ε_own, δ)/μ),     μ(ε, δ): the Gaussian parameter worth (ε, δ).

Where batches are sampled, w is found by halving, and ends at or below the ε that was asked for.

**Guarantee.** For units of this client: its own ε, under the same relation, viewer, δ and assumptions as the plan's; behind
secure aggregation too, since a sum that holds w·value moves by wΔ. For units of other clients: the plan's ε.
That w ≤ 1 (that this client asked) is public. **Edge cases.** ε_own ≥ the plan's ε → w = 1, nothing changes. A release that is
not a Gaussian on a bounded value → ``PrivacyError``; so are noise-free plans (ε = ∞), which have no noise to hide in. Not for
prices per end of an edge: the other end may lie at a client that did not ask.

Sums over records of which one person may own several, and several people one: what all of one person's records can change.

A record e is a row of d numbers x_ec in [0, 1] and the set of its owners: an edge belongs to both its ends (node level), or to
whom the table names (entity level). Column c of the release is the largest weighed sum in which nobody counts more than D
times:

    f_c = max Σ_e w_e x_ec   over 0 ≤ w_e ≤ 1  with  Σ_{e owned by p} w_e ≤ D  for every person p.

**Guarantee** (all records of one person vanish, *every* graph, any number of owners of a record): 0 ≤ f_c − f'_c ≤ D, so the
vector of d columns changes by at most Δ₂ = D·√d.

*Proof.* Weights that are allowed without p's records are allowed with them (they get weight 0), so f' ≤ f. The best weights
with p's records, restricted to all others, are allowed without them; what is lost is Σ_{e of p} w_e x_ec ≤ D. □ A cut ("keep
the first D records of each person") has no such bound: whoever goes frees places, which others fill in turn.

The largest sum is a linear program (a Lipschitz extension: Kasiviswanathan, Nissim, Raskhodnikova & Smith 2013; Raskhodnikova &
Smith 2016). People with at most D records bind nothing and are left out of it. Where nobody has more, f is the plain sum.

**Rounding.** The solver is not believed: its weights are made feasible, its prices y ≥ 0 give an upper bound on f (weak
duality), and what is released lies between both. A gap above ``SLACK``·D is an error; half of Δ's surplus covers it.

**Edge cases.** NaN, a record without an owner, an owner twice → ``UnboundedValueError``. D < 1 → ``PrivacyError``. No record
→ 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, PoissonGaussian, Repeated
from fedgraph.privacy.fields import Count, Positive
from fedgraph.privacy.mechanisms.noise import GaussianNoise, Mechanism
from fedgraph.privacy.sensitivity import Bound, require_finite
from fedgraph.privacy.units import Relation

NOISED = (Gaussian, PoissonGaussian, FixedSizeGaussian)
HALVINGS = 12  # of the interval in which w is looked for, where releases are not all Gaussian
MARGIN = 1 - 1e-6  # of the share, for what rounding the product can add


@dataclass(frozen=True)
class ShrunkGaussianNoise(Mechanism):
    """share·value + N(0, std²) per entry, 0 < share ≤ 1. std in data units, > 0."""

    std: Positive
    share: Positive
    phrase: ClassVar[str] = "Gaussian noise of standard deviation {std:.6g} on {share:.4g} times the value"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share > 1:
            raise PrivacyError(f"ShrunkGaussianNoise.share must be at most 1, found {self.share}")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return GaussianNoise(self.std).apply(value * value.dtype.type(self.share * MARGIN), rng)

    def of_many(self, shares: int) -> ShrunkGaussianNoise:
        """Values of one share add up, and so do the variances of independent normals."""
        return ShrunkGaussianNoise(self.std * math.sqrt(shares), self.share)


def own_share(releases: Sequence[PlannedRelease], epsilon: float, delta: float) -> float:
    """w of a client that releases ``releases`` and asks for ``epsilon`` at ``delta``: in (0, 1].

    Raises:
        PrivacyError: a release is no Gaussian sum, or no share above 2⁻¹² is small enough.
    """
    for release in releases:
        if not isinstance(release.event, NOISED) or not isinstance(release.mechanism, GaussianNoise):
            raise PrivacyError(
                "a client's own ε is offered where everything that is released is a sum with Gaussian noise; the release "
                f"{release.path!r} is priced as {type(release.event).__name__}, with {release.mechanism.words}"
            )
    if not releases:
        return 1.0
    if all(isinstance(r.event, Gaussian) for r in releases):
        squared = sum(r.count / r.event.noise_multiplier**2 for r in releases if isinstance(r.event, Gaussian))
        return min(1.0, 1.0 / (calibrate.gaussian_multiplier(1, epsilon, delta) * math.sqrt(squared)))
    if _price(releases, 1.0, delta) <= epsilon:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _price(releases, middle, delta) <= epsilon else (low, middle)
    if not low:
        raise PrivacyError(f"no share of the value above {2.0**-HALVINGS:.2g} keeps ε = {epsilon:g}; ask for a larger ε")
    return low


def _price(releases: Sequence[PlannedRelease], kept: float, delta: float) -> float:
    return price(Composed(tuple(Repeated(_weaker(r.event, kept), r.count) for r in releases)), delta).epsilon


def _weaker(event: Event, kept: float) -> Event:
    """What a release costs whose rows all count ``kept`` times as much, under the same noise."""
    assert isinstance(event, NOISED)
    return replace(event, noise_multiplier=event.noise_multiplier / kept)


def applied(
    releases: Sequence[PlannedRelease], own: Mapping[int, float], num_clients: int, delta: float
) -> tuple[PlannedRelease, ...]:
    """The plan's releases, where client c of ``own`` keeps ε ≤ own[c]. ``PrivacyError`` as the module says."""
    if not own:
        return tuple(releases)
    shares = {}
    for client, epsilon in own.items():
        if not 0 <= client < num_clients or not 0 < epsilon < math.inf:
            raise PrivacyError(f"client {client} asks for ε = {epsilon}; allowed: clients 0 … {num_clients - 1}, 0 < ε < ∞")
        shares[client] = own_share([r for r in releases if r.client in (None, client)], epsilon, delta)
    found: list[PlannedRelease] = []
    for release in releases:
        for client in range(num_clients) if release.client is None else (release.client,):
            found.append(_shrunk(replace(release, client=client), shares.get(client, 1.0)))
    return tuple(found)


def _shrunk(release: PlannedRelease, kept: float) -> PlannedRelease:
    if kept >= 1 or not isinstance(release.mechanism, GaussianNoise):
        return release
    return replace(release, mechanism=ShrunkGaussianNoise(release.mechanism.std, kept), event=_weaker(release.event, kept))


SLACK = 1e-3  # of D: how far a released sum may be below the largest one


@dataclass(frozen=True)
class OwnedRows(Bound):
    """Records [m, columns + k]: ``columns`` numbers, clamped into 0 … 1, then up to k owners (−1: no further one).

    limit: D, what one person counts for at most. Enforced by the program above: [columns], float64.
    """

    limit: Count
    columns: Count

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.ndim != 2 or value.shape[1] <= self.columns:
            raise UnboundedValueError(f"OwnedRows needs {self.columns} columns and owners, found shape {value.shape}")
        rows, owners = np.clip(value[:, : self.columns], 0.0, 1.0), value[:, self.columns :].astype(np.int64)
        return largest_sums(rows.astype(np.float64), incidence(owners), self.limit)

    def sensitivity_l2(self, relation: Relation) -> float:
        """Δ₂. ``PrivacyError`` for a relation under which other things change than the records of one owner."""
        if relation not in (Relation.NODE_LINKS, Relation.ENTITY_LINKS):
            raise PrivacyError(f"records of one owner are bounded, found {relation.value}")
        return self.limit * (1 + 2 * SLACK) * math.sqrt(self.columns)


def incidence(owners: np.ndarray) -> sp.csr_array:
    """CSR [people, m] of zeros and ones. owners: int64 [m, k], −1 where there is no further one."""
    if len(owners) and (owners.max(axis=1) < 0).any():
        raise UnboundedValueError("a record has no owner: nothing bounds how often it counts")
    records = np.repeat(np.arange(len(owners)), owners.shape[1])
    flat = owners.ravel()
    people, numbers = np.unique(flat[flat >= 0], return_inverse=True)
    found = sp.csr_array((np.ones(numbers.size), (numbers, records[flat >= 0])), shape=(people.size, len(owners)))
    if found.nnz < numbers.size:
        raise UnboundedValueError("a record names one owner twice")
    return found


def largest_sums(rows: np.ndarray, owned: sp.csr_array, limit: int) -> np.ndarray:
    """float64 [d], f of every column.

    Args:
        rows: float64 [m, d] in [0, 1].
        owned: CSR [people, m], 1 where a person owns a record.
        limit: D ≥ 1.

    Raises:
        PrivacyError: the solver's answer is further than ``SLACK``·D from the largest sum.

    >>> star = incidence(np.array([[0, 1], [0, 2], [0, 3]]))
    >>> largest_sums(np.array([[1.0, 0.2], [1.0, 0.9], [1.0, 0.5]]), star, 2).round(6).tolist()
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
    if not above - total <= SLACK * limit:
        raise PrivacyError(
            f"the solver's sum {total} may be {above - total:g} below the largest one; allowed: {SLACK * limit:g}"
        )
    return total
