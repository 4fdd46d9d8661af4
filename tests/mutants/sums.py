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
from functools import partial

import numpy as np
import scipy.sparse as sp

from fedgraph.audit import lower_bound
from fedgraph.learning import neighbour_limits
from fedgraph.privacy import neighbour_sums, private_counts, sensitivity
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.neighbour_sums import priced_log_cap
from fedgraph.privacy.private_counts import OwnedRows
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim, BenchSampler, bench_sampler

_EPSILON, _DELTA = 1.0, 1e-3
_CLIP = 0.5
_OTHERS = np.array([[0.3, 0.4, 0.0], [0.0, -0.1, 0.2], [-0.5, 0.0, 0.0]])
_OWN = np.array([2.0, 0.0, 0.0])
_RUNS = 10_000  # of wide sums
RING_OF_SUMS, _NEAREST, _PROMISED = 150, 4, 4
_LONG_BUT_PLAUSIBLE = 2 * _CLIP  # unclipped, and still within the norm that a sum of four rows may have


def cases() -> Iterator[BenchCase]:
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    yield from _zero_out(multiplier, claim)
    yield from _replace(multiplier, claim)
    yield from _edge(multiplier, claim)
    yield from _millions(multiplier, claim)
    yield from _degrees()
    yield from _columns()
    yield from _owners(multiplier, claim)


def _zero_out(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    bound, relation = ClippedSum(_CLIP, 4), Relation.NODE_ZERO_OUT
    with_, without = _clipped_sum(_OWN), _clipped_sum(np.zeros(3))
    std = multiplier * sensitivity.l2(bound, relation)
    worlds = noisy_sum_worlds(with_, without, std)
    sound = BenchCase("gaussian-sum", relation.value, claim, *worlds, lower_bound.gaussian())
    yield sound
    yield sound.broken("noise × ⅔", *noisy_sum_worlds(with_, without, std * 2 / 3))
    yield sound.broken("sensitivity halved", *noisy_sum_worlds(with_, without, std / 2))
    unclipped = without + _LONG_BUT_PLAUSIBLE * _OWN / np.linalg.norm(_OWN)
    yield sound.broken("row not clipped", audited_noisy_sums(bound.enforce(unclipped), std, with_ - without))


def _replace(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    one, other, right = _clipped_sum(_OWN), _clipped_sum(-_OWN), Relation.NODE_REPLACE

    def released(priced: Relation) -> tuple[BenchSampler, BenchSampler]:
        return noisy_sum_worlds(one, other, multiplier * sensitivity.l2(ClippedSum(_CLIP, 4), priced))

    sound = BenchCase("gaussian-sum-replace", right.value, claim, *released(right), lower_bound.gaussian())
    yield sound
    yield sound.broken("replace priced as zero-out", *released(Relation.NODE_ZERO_OUT))


def _edge(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])  # unit rows
    path = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=float)
    edge = np.zeros((4, 4))
    edge[0, 1] = edge[1, 0] = 1.0
    sums = ((path + edge) @ features).ravel(), (path @ features).ravel()
    # an undirected edge changes two rows of AX, each by a unit row of X
    worlds = noisy_sum_worlds(*sums, multiplier * math.sqrt(2))
    sound = BenchCase("edge-aggregate", Relation.EDGE_UNDIRECTED.value, claim, *worlds, lower_bound.gaussian())
    yield sound
    yield sound.broken("√2 forgotten", *noisy_sum_worlds(*sums, multiplier * 1.0))


def _millions(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    """16.8 million other rows of the clip's length, all alike: as long a sum as they can give. One more row of that length."""
    width = 64
    others = np.full(width, 2.0**20 + 0.125)
    own = np.full(width, _CLIP / math.sqrt(width))
    std = multiplier * sensitivity.l2(ClippedSum(_CLIP, 2**24 + 8), Relation.NODE_ZERO_OUT)

    def total(dtype: type) -> np.ndarray:
        return np.asarray(others.astype(dtype) + own.astype(dtype), dtype=np.float64)

    there, back = (audited_noisy_sums(value, std, own) for value in (total(np.float64), others))
    relation = Relation.NODE_ZERO_OUT.value
    sound = BenchCase("gaussian-sum-of-millions", relation, claim, there, back, lower_bound.gaussian(), runs=_RUNS)
    yield sound
    yield sound.broken("sum in single precision", audited_noisy_sums(total(np.float32), std, own))


def _clipped_sum(own: np.ndarray) -> np.ndarray:
    rows = [L2Ball(_CLIP).enforce(row) for row in (*_OTHERS, own)]
    return ClippedSum(_CLIP, 4).enforce(np.sum(rows, axis=0))


@bench_sampler
def audited_noisy_sums(runs: int, rng: np.random.Generator, value: np.ndarray, std: float, along: np.ndarray) -> np.ndarray:
    """value + Gaussian noise, as shipped, read along the unit vector of ``along``."""
    direction = along / np.linalg.norm(along)
    return np.asarray(GaussianNoise(std).apply(np.broadcast_to(value, (runs, value.size)), rng) @ direction)


def noisy_sum_worlds(one: np.ndarray, other: np.ndarray, std: float) -> tuple[BenchSampler, BenchSampler]:
    """The noisy sums of both worlds, read along the line between them."""
    return audited_noisy_sums(one, std, one - other), audited_noisy_sums(other, std, one - other)


def _degrees() -> Iterator[BenchCase]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    claim, cap = BenchClaim.of(Gaussian(multiplier), _DELTA), priced_log_cap(RING_OF_SUMS + 1)
    hubs, ids, relation = (audited_sums_hub(True), audited_sums_hub(False)), np.arange(RING_OF_SUMS + 1), Relation.NODE_ZERO_OUT
    ones, signs = np.ones((ids.size, 1)), np.where(ids % 2, 1.0, -1.0)[:, None]

    def release(graphs: list[sp.csr_array], messages: np.ndarray, std: float) -> tuple[BenchSampler, BenchSampler]:
        there, gone = ((graph @ messages)[:RING_OF_SUMS].ravel() for graph in graphs)
        return noisy_sum_worlds(there, gone, std)

    std, steep = multiplier * cap.sensitivity_l2(), np.maximum(0.0, 2 * cap.factors - 1)
    worlds = release([neighbour_limits.log_weights(hub, cap.factors) for hub in hubs], ones, std)
    sound = BenchCase("log-cap-hop", relation.value, claim, *worlds, lower_bound.gaussian(), runs=_RUNS)
    yield sound
    yield sound.broken("h twice as steep", *release([neighbour_limits.log_weights(hub, steep) for hub in hubs], ones, std))
    claimed = multiplier * neighbour_sums.sensitivity(relation, _PROMISED, rows_released=False)
    cut = release([neighbour_limits.at_most(hub, _PROMISED, ids) for hub in hubs], signs, claimed)
    yield sound.broken("cut with refill priced as √D", *cut)


def audited_sums_hub(there: bool) -> sp.csr_array:
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
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    claim, bound = BenchClaim.of(Gaussian(multiplier), _DELTA), private_counts.ColumnCounts(3, 4, pooled=False)

    def counted(own: np.ndarray) -> np.ndarray:
        line, brackets = private_counts.number_line(np.vstack([_PEOPLE, own])), private_counts.widest_brackets(3)
        return bound.enforce(private_counts.positions(line, brackets)).ravel()

    for relation, other in ((Relation.NODE_ZERO_OUT, np.full(3, np.nan)), (Relation.NODE_REPLACE, _ANOTHER)):
        release = partial(noisy_sum_worlds, counted(_PERSON), counted(other))
        right = bound.change(relation)
        name, worlds = f"column-counts-{relation.value}", release(multiplier * right)
        sound = BenchCase(name, relation.value, claim, *worlds, lower_bound.gaussian())
        yield sound
        yield sound.broken("noise × ⅔", *release(multiplier * (right * 2 / 3)))
        yield sound.broken("columns counted as one", *release(multiplier * (right / 3**0.5)))


def _owners(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    """30 records of a hub, of which five count, beside 30 of others."""
    columns, records = 3, np.arange(30)
    others = np.concatenate([np.full((30, columns), 0.5), np.column_stack([records + 1, records + 41])], axis=1)
    own = np.concatenate([np.ones((30, columns)), np.column_stack([np.zeros(30), records + 1])], axis=1)
    bound, everything = OwnedRows(5, columns), OwnedRows(60, columns)

    def released(counted: OwnedRows, priced: float) -> tuple[BenchSampler, BenchSampler]:
        with_, without = counted.enforce(np.concatenate([others, own])), counted.enforce(others)
        return noisy_sum_worlds(with_, without, multiplier * priced)

    delta_2 = bound.sensitivity_l2(Relation.NODE_LINKS)
    sound = BenchCase("owned-records", Relation.NODE_LINKS.value, claim, *released(bound, delta_2), lower_bound.gaussian())
    yield sound
    yield sound.broken("noise × ⅔", *released(bound, delta_2 * 2 / 3))
    yield sound.broken("one record priced, not all of a person's", *released(bound, math.sqrt(columns)))
    yield sound.broken("nobody's records counted", *released(everything, delta_2))
