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

from fedgraph.audit.bench import BenchCase, BenchClaim, BenchSampler, bench_sampler
from fedgraph.audit.lower_bound import gaussian_lower_bound
from fedgraph.learning.neighbour_limits import limit_neighbour_weights, limit_neighbours
from fedgraph.privacy.accounting.calibrate import calibrate_gaussian
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.neighbour_sums import log_neighbour_cap, neighbour_sum_sensitivity
from fedgraph.privacy.owned_rows import OwnedRows
from fedgraph.privacy.private_counts import (
    ColumnCounts,
    column_count_sensitivity,
    count_line,
    count_positions,
    widest_count_brackets,
)
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball, sensitivity_l2
from fedgraph.privacy.units import Relation

_EPSILON, _DELTA = 1.0, 1e-3
_CLIP = 0.5
_OTHERS = np.array([[0.3, 0.4, 0.0], [0.0, -0.1, 0.2], [-0.5, 0.0, 0.0]])
_OWN = np.array([2.0, 0.0, 0.0])
_RUNS = 10_000  # of wide sums
RING_OF_SUMS, _NEAREST, _PROMISED = 150, 4, 4
_LONG_BUT_PLAUSIBLE = 2 * _CLIP  # unclipped, and still within the norm that a sum of four rows may have


def cases() -> Iterator[BenchCase]:
    """Zero-out, replace, edge; each with its mutants."""
    multiplier = calibrate_gaussian(1, _EPSILON, _DELTA)
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    yield from _zero_out(multiplier, claim)
    yield from _replace(multiplier, claim)
    yield from _edge(multiplier, claim)
    yield from _millions(multiplier, claim)
    yield from _degrees()
    yield from _columns()
    yield from _owners(multiplier, claim)


def _zero_out(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    delta_2 = sensitivity_l2(ClippedSum(_CLIP, 4), Relation.NODE_ZERO_OUT)
    with_, without = _clipped_sum(_OWN), _clipped_sum(np.zeros(3))
    along = with_ - without

    def release(value: np.ndarray, std: float) -> BenchSampler:
        return noisy_sums(value, std, along)

    std = multiplier * delta_2
    relation = Relation.NODE_ZERO_OUT.value
    sound = BenchCase("gaussian-sum", relation, claim, release(with_, std), release(without, std), gaussian_lower_bound())
    yield sound
    yield sound.broken("noise × ⅔", release(with_, std * 2 / 3), release(without, std * 2 / 3))
    yield sound.broken("sensitivity halved", release(with_, std / 2), release(without, std / 2))
    unclipped = without + _LONG_BUT_PLAUSIBLE * _OWN / np.linalg.norm(_OWN)
    yield sound.broken("row not clipped", release(ClippedSum(_CLIP, 4).enforce(unclipped), std))


def _replace(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    bound = ClippedSum(_CLIP, 4)
    one, other = _clipped_sum(_OWN), _clipped_sum(-_OWN)

    def release(value: np.ndarray, relation: Relation) -> BenchSampler:
        return noisy_sums(value, multiplier * sensitivity_l2(bound, relation), one - other)

    right, wrong = Relation.NODE_REPLACE, Relation.NODE_ZERO_OUT
    sound = BenchCase(
        "gaussian-sum-replace", right.value, claim, release(one, right), release(other, right), gaussian_lower_bound()
    )
    yield sound
    yield sound.broken("replace priced as zero-out", release(one, wrong), release(other, wrong))


def _edge(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])  # unit rows
    path = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=float)
    edge = np.zeros((4, 4))
    edge[0, 1] = edge[1, 0] = 1.0
    with_, without = ((path + edge) @ features).ravel(), (path @ features).ravel()

    def release(value: np.ndarray, delta_2: float) -> BenchSampler:
        return noisy_sums(value, multiplier * delta_2, with_ - without)

    root = math.sqrt(2)  # an undirected edge changes two rows of AX, each by a unit row of X
    relation = Relation.EDGE_UNDIRECTED.value
    sound = BenchCase("edge-aggregate", relation, claim, release(with_, root), release(without, root), gaussian_lower_bound())
    yield sound
    yield sound.broken("√2 forgotten", release(with_, 1.0), release(without, 1.0))


def _millions(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    """16.8 million other rows of the clip's length, all alike: as long a sum as they can give. One more row of that length."""
    width = 64
    others = np.full(width, 2.0**20 + 0.125)
    own = np.full(width, _CLIP / math.sqrt(width))
    std = multiplier * sensitivity_l2(ClippedSum(_CLIP, 2**24 + 8), Relation.NODE_ZERO_OUT)

    def total(dtype: type) -> np.ndarray:
        return np.asarray(others.astype(dtype) + own.astype(dtype), dtype=np.float64)

    there, back = (noisy_sums(value, std, own) for value in (total(np.float64), others))
    sound = BenchCase(
        "gaussian-sum-of-millions", Relation.NODE_ZERO_OUT.value, claim, there, back, gaussian_lower_bound(), runs=_RUNS
    )
    yield sound
    yield sound.broken("sum in single precision", noisy_sums(total(np.float32), std, own))


def _clipped_sum(own: np.ndarray) -> np.ndarray:
    """Σ rows, each in its L2 ball; checked against what such a sum can be."""
    rows = [L2Ball(_CLIP).enforce(row) for row in (*_OTHERS, own)]
    return ClippedSum(_CLIP, 4).enforce(np.sum(rows, axis=0))


@bench_sampler
def noisy_sums(runs: int, rng: np.random.Generator, value: np.ndarray, std: float, along: np.ndarray) -> np.ndarray:
    """value + Gaussian noise, as shipped, read along the unit vector of ``along``."""
    direction = along / np.linalg.norm(along)
    return np.asarray(GaussianNoise(std).apply(np.broadcast_to(value, (runs, value.size)), rng) @ direction)


def _degrees() -> Iterator[BenchCase]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    multiplier = calibrate_gaussian(1, _EPSILON, _DELTA)
    claim, cap = BenchClaim.of(Gaussian(multiplier), _DELTA), log_neighbour_cap(RING_OF_SUMS + 1)
    there, gone = hub_of_sums(True), hub_of_sums(False)
    ones, signs = np.ones((RING_OF_SUMS + 1, 1)), np.where(np.arange(RING_OF_SUMS + 1) % 2, 1.0, -1.0)[:, None]

    def release(one: sp.csr_array, other: sp.csr_array, messages: np.ndarray, std: float) -> tuple[BenchSampler, BenchSampler]:
        values = [(matrix @ messages)[:RING_OF_SUMS].ravel() for matrix in (one, other)]
        return noisy_sums(values[0], std, values[0] - values[1]), noisy_sums(values[1], std, values[0] - values[1])

    std = multiplier * cap.sensitivity_l2()
    right = (limit_neighbour_weights(there, cap.factors), limit_neighbour_weights(gone, cap.factors))
    present, absent = release(*right, ones, std)
    sound = BenchCase("log-cap-hop", Relation.NODE_ZERO_OUT.value, claim, present, absent, gaussian_lower_bound(), runs=_RUNS)
    yield sound
    steep = np.maximum(0.0, 2 * cap.factors - 1)
    yield sound.broken(
        "h twice as steep", *release(limit_neighbour_weights(there, steep), limit_neighbour_weights(gone, steep), ones, std)
    )
    ids = np.arange(RING_OF_SUMS + 1)
    cut = (limit_neighbours(there, _PROMISED, ids), limit_neighbours(gone, _PROMISED, ids))
    claimed = multiplier * neighbour_sum_sensitivity(Relation.NODE_ZERO_OUT, _PROMISED, rows_released=False)
    yield sound.broken("cut with refill priced as √D", *release(*cut, signs, claimed))


def hub_of_sums(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(RING_OF_SUMS)
    ends = [np.column_stack([own, (own + step) % RING_OF_SUMS]) for step in range(1, _NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(RING_OF_SUMS, RING_OF_SUMS)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both), dtype=np.float32)
    return sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=(RING_OF_SUMS + 1, RING_OF_SUMS + 1))


_PEOPLE = np.array([[31.0, 2e4, 0.1], [58.0, 3e4, 0.2], [77.0, 1e9, -1.0]])
_PERSON, _ANOTHER = np.array([40.0, 5e4, 0.3]), np.array([-40.0, -5e4, -0.3])


def _columns() -> Iterator[BenchCase]:
    """Zero-out and replace; each with a price that forgets something."""
    multiplier = calibrate_gaussian(1, _EPSILON, _DELTA)
    claim, bound = BenchClaim.of(Gaussian(multiplier), _DELTA), ColumnCounts(3, 4, pooled=False)

    def counted(own: np.ndarray) -> np.ndarray:
        return bound.enforce(count_positions(count_line(np.vstack([_PEOPLE, own])), widest_count_brackets(3)))

    for relation, other in ((Relation.NODE_ZERO_OUT, np.full(3, np.nan)), (Relation.NODE_REPLACE, _ANOTHER)):
        one, two = counted(_PERSON), counted(other)

        def release(delta_2: float, one: np.ndarray = one, two: np.ndarray = two) -> tuple[BenchSampler, BenchSampler]:
            return tuple(noisy_sums(value.ravel(), multiplier * delta_2, (one - two).ravel()) for value in (one, two))  # type: ignore

        right = column_count_sensitivity(bound, relation)
        sound = BenchCase(f"column-counts-{relation.value}", relation.value, claim, *release(right), gaussian_lower_bound())
        yield sound
        yield sound.broken("noise × ⅔", *release(right * 2 / 3))
        yield sound.broken("columns counted as one", *release(right / 3**0.5))


def _owners(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    """30 records of a hub, of which five count, beside 30 of others."""
    columns, records = 3, np.arange(30)
    others = np.concatenate([np.full((30, columns), 0.5), np.column_stack([records + 1, records + 41])], axis=1)
    own = np.concatenate([np.ones((30, columns)), np.column_stack([np.zeros(30), records + 1])], axis=1)
    bound, everything = OwnedRows(5, columns), OwnedRows(60, columns)

    def released(counted: OwnedRows, priced: float) -> tuple[BenchSampler, BenchSampler]:
        with_, without = counted.enforce(np.concatenate([others, own])), counted.enforce(others)
        return noisy_sums(with_, multiplier * priced, with_ - without), noisy_sums(
            without, multiplier * priced, with_ - without
        )

    delta_2 = bound.sensitivity_l2(Relation.NODE_LINKS)
    sound = BenchCase("owned-records", Relation.NODE_LINKS.value, claim, *released(bound, delta_2), gaussian_lower_bound())
    yield sound
    yield sound.broken("noise × ⅔", *released(bound, delta_2 * 2 / 3))
    yield sound.broken("one record priced, not all of a person's", *released(bound, math.sqrt(columns)))
    yield sound.broken("nobody's records counted", *released(everything, delta_2))
