"""Gaussian sums of rows, sums over neighbours, and counts, at their worst-case neighbours.

**Rows**: one row vanishes (Δ = C), also from among millions, one is replaced (Δ = 2C), one edge comes or goes (Δ = √2).

Worst case: the unit's row is longer than the clip and points one way (replace: the opposite way in the
other world). The score is the release along the line between the two worlds, which is sufficient, so the
audit sees everything there is to see.

**Neighbours** at node level: the log cap, where one node changes as much as possible.

Worst case: a ring in which everybody knows four others, and a hub that knows everybody. The hub's own row stays hidden; all
messages point one way, so that what the hub moves adds up over rows. The score is the noisy rows along that movement.

**Counts of columns**, what private ranks are made of. One person's row vanishes (Δ = √d), or becomes another (Δ = √(2d)).

Worst case: the person is in a bin of every column, and the row that replaces it in another bin of each. The score is the noisy
counts along that movement.

**Records with owners**: all records of one person vanish (Δ = D·√d), whatever others own beside it.

Worst case: a hub whose records say 1 in every column, and who is in more of them than count. The score is the noisy sum along
what the hub moves.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from fedgraph.audit.bench import Case, Claim, Sampler, sampler
from fedgraph.audit.lower_bound import gaussian
from fedgraph.learning.sampling import bounded, weighted
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.neighbour_sums import log_cap, sensitivity
from fedgraph.privacy.owned_rows import OwnedRows
from fedgraph.privacy.private_counts import ColumnCounts, column_sensitivity, on_line, positions, widest
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball, sensitivity_l2
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
CLIP = 0.5
OTHERS = np.array([[0.3, 0.4, 0.0], [0.0, -0.1, 0.2], [-0.5, 0.0, 0.0]])
OWN = np.array([2.0, 0.0, 0.0])
RUNS = 10_000  # of wide sums
RING, _NEAREST, PROMISED = 150, 4, 4
_LONG_BUT_PLAUSIBLE = 2 * CLIP  # unclipped, and still within the norm that a sum of four rows may have


def cases() -> Iterator[Case]:
    """Zero-out, replace, edge; each with its mutants."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim = Claim.of(Gaussian(multiplier), DELTA)
    yield from _zero_out(multiplier, claim)
    yield from _replace(multiplier, claim)
    yield from _edge(multiplier, claim)
    yield from _millions(multiplier, claim)
    yield from _degrees()
    yield from _columns()
    yield from _owners(multiplier, claim)


def _zero_out(multiplier: float, claim: Claim) -> Iterator[Case]:
    delta_2 = sensitivity_l2(ClippedSum(CLIP, 4), Relation.NODE_ZERO_OUT)
    with_, without = clipped_sum(OWN), clipped_sum(np.zeros(3))
    along = with_ - without

    def release(value: np.ndarray, std: float) -> Sampler:
        return noisy(value, std, along)

    std = multiplier * delta_2
    relation = Relation.NODE_ZERO_OUT.value
    sound = Case("gaussian-sum", relation, claim, release(with_, std), release(without, std), gaussian())
    yield sound
    yield sound.broken("noise × ⅔", release(with_, std * 2 / 3), release(without, std * 2 / 3))
    yield sound.broken("sensitivity halved", release(with_, std / 2), release(without, std / 2))
    unclipped = without + _LONG_BUT_PLAUSIBLE * OWN / np.linalg.norm(OWN)
    yield sound.broken("row not clipped", release(ClippedSum(CLIP, 4).enforce(unclipped), std))


def _replace(multiplier: float, claim: Claim) -> Iterator[Case]:
    bound = ClippedSum(CLIP, 4)
    one, other = clipped_sum(OWN), clipped_sum(-OWN)

    def release(value: np.ndarray, relation: Relation) -> Sampler:
        return noisy(value, multiplier * sensitivity_l2(bound, relation), one - other)

    right, wrong = Relation.NODE_REPLACE, Relation.NODE_ZERO_OUT
    sound = Case("gaussian-sum-replace", right.value, claim, release(one, right), release(other, right), gaussian())
    yield sound
    yield sound.broken("replace priced as zero-out", release(one, wrong), release(other, wrong))


def _edge(multiplier: float, claim: Claim) -> Iterator[Case]:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])  # unit rows
    path = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=float)
    edge = np.zeros((4, 4))
    edge[0, 1] = edge[1, 0] = 1.0
    with_, without = ((path + edge) @ features).ravel(), (path @ features).ravel()

    def release(value: np.ndarray, delta_2: float) -> Sampler:
        return noisy(value, multiplier * delta_2, with_ - without)

    root = math.sqrt(2)  # an undirected edge changes two rows of AX, each by a unit row of X
    relation = Relation.EDGE_UNDIRECTED.value
    sound = Case("edge-aggregate", relation, claim, release(with_, root), release(without, root), gaussian())
    yield sound
    yield sound.broken("√2 forgotten", release(with_, 1.0), release(without, 1.0))


def _millions(multiplier: float, claim: Claim) -> Iterator[Case]:
    """16.8 million other rows of the clip's length, all alike: as long a sum as they can give. One more row of that length."""
    width = 64
    others = np.full(width, 2.0**20 + 0.125)
    own = np.full(width, CLIP / math.sqrt(width))
    std = multiplier * sensitivity_l2(ClippedSum(CLIP, 2**24 + 8), Relation.NODE_ZERO_OUT)

    def total(dtype: type) -> np.ndarray:
        return np.asarray(others.astype(dtype) + own.astype(dtype), dtype=np.float64)

    there, back = (noisy(value, std, own) for value in (total(np.float64), others))
    sound = Case("gaussian-sum-of-millions", Relation.NODE_ZERO_OUT.value, claim, there, back, gaussian(), runs=RUNS)
    yield sound
    yield sound.broken("sum in single precision", noisy(total(np.float32), std, own))


def clipped_sum(own: np.ndarray) -> np.ndarray:
    """Σ rows, each in its L2 ball; checked against what such a sum can be."""
    rows = [L2Ball(CLIP).enforce(row) for row in (*OTHERS, own)]
    return ClippedSum(CLIP, 4).enforce(np.sum(rows, axis=0))


@sampler
def noisy(runs: int, rng: np.random.Generator, value: np.ndarray, std: float, along: np.ndarray) -> np.ndarray:
    """value + Gaussian noise, as shipped, read along the unit vector of ``along``."""
    direction = along / np.linalg.norm(along)
    return np.asarray(GaussianNoise(std).apply(np.broadcast_to(value, (runs, value.size)), rng) @ direction)


def _degrees() -> Iterator[Case]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim, cap = Claim.of(Gaussian(multiplier), DELTA), log_cap(RING + 1)
    there, gone = hub(True), hub(False)
    ones, signs = np.ones((RING + 1, 1)), np.where(np.arange(RING + 1) % 2, 1.0, -1.0)[:, None]

    def release(one: sp.csr_array, other: sp.csr_array, messages: np.ndarray, std: float) -> tuple[Sampler, Sampler]:
        values = [(matrix @ messages)[:RING].ravel() for matrix in (one, other)]
        return noisy(values[0], std, values[0] - values[1]), noisy(values[1], std, values[0] - values[1])

    std = multiplier * cap.sensitivity_l2()
    right = (weighted(there, cap.factors), weighted(gone, cap.factors))
    present, absent = release(*right, ones, std)
    sound = Case("log-cap-hop", Relation.NODE_ZERO_OUT.value, claim, present, absent, gaussian(), runs=RUNS)
    yield sound
    steep = np.maximum(0.0, 2 * cap.factors - 1)
    yield sound.broken("h twice as steep", *release(weighted(there, steep), weighted(gone, steep), ones, std))
    ids = np.arange(RING + 1)
    cut = (bounded(there, PROMISED, ids), bounded(gone, PROMISED, ids))
    claimed = multiplier * sensitivity(Relation.NODE_ZERO_OUT, PROMISED, rows_released=False)
    yield sound.broken("cut with refill priced as √D", *release(*cut, signs, claimed))


def hub(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(RING)
    ends = [np.column_stack([own, (own + step) % RING]) for step in range(1, _NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(RING, RING)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both), dtype=np.float32)
    return sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=(RING + 1, RING + 1))


PEOPLE = np.array([[31.0, 2e4, 0.1], [58.0, 3e4, 0.2], [77.0, 1e9, -1.0]])
_PERSON, ANOTHER = np.array([40.0, 5e4, 0.3]), np.array([-40.0, -5e4, -0.3])


def _columns() -> Iterator[Case]:
    """Zero-out and replace; each with a price that forgets something."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim, bound = Claim.of(Gaussian(multiplier), DELTA), ColumnCounts(3, 4, pooled=False)

    def counted(own: np.ndarray) -> np.ndarray:
        return bound.enforce(positions(on_line(np.vstack([PEOPLE, own])), widest(3)))

    for relation, other in ((Relation.NODE_ZERO_OUT, np.full(3, np.nan)), (Relation.NODE_REPLACE, ANOTHER)):
        one, two = counted(_PERSON), counted(other)

        def release(delta_2: float, one: np.ndarray = one, two: np.ndarray = two) -> tuple[Sampler, Sampler]:
            return tuple(noisy(value.ravel(), multiplier * delta_2, (one - two).ravel()) for value in (one, two))  # type: ignore

        right = column_sensitivity(bound, relation)
        sound = Case(f"column-counts-{relation.value}", relation.value, claim, *release(right), gaussian())
        yield sound
        yield sound.broken("noise × ⅔", *release(right * 2 / 3))
        yield sound.broken("columns counted as one", *release(right / 3**0.5))


def _owners(multiplier: float, claim: Claim) -> Iterator[Case]:
    """30 records of a hub, of which five count, beside 30 of others."""
    columns, records = 3, np.arange(30)
    others = np.concatenate([np.full((30, columns), 0.5), np.column_stack([records + 1, records + 41])], axis=1)
    own = np.concatenate([np.ones((30, columns)), np.column_stack([np.zeros(30), records + 1])], axis=1)
    bound, everything = OwnedRows(5, columns), OwnedRows(60, columns)

    def released(counted: OwnedRows, priced: float) -> tuple[Sampler, Sampler]:
        with_, without = counted.enforce(np.concatenate([others, own])), counted.enforce(others)
        return noisy(with_, multiplier * priced, with_ - without), noisy(without, multiplier * priced, with_ - without)

    delta_2 = bound.sensitivity_l2(Relation.NODE_LINKS)
    sound = Case("owned-records", Relation.NODE_LINKS.value, claim, *released(bound, delta_2), gaussian())
    yield sound
    yield sound.broken("noise × ⅔", *released(bound, delta_2 * 2 / 3))
    yield sound.broken("one record priced, not all of a person's", *released(bound, math.sqrt(columns)))
    yield sound.broken("nobody's records counted", *released(everything, delta_2))
