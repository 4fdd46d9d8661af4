"""Gaussian sums of rows, sums over neighbours, counts, and sums of clipped gradients, at their worst-case neighbours.

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

**Gradients** whose rows read neighbours (``learning.neighbour_limits``): how far a hub moves all others.

Worst case: the same ring, and parameters that anybody may have broadcast, so large that a small move of a row turns its answer
around. The kernel has to project them on the ball that the proof speaks of; without that the rows move many times as far.
"""

import math
from collections.abc import Iterator
from unittest import mock

import numpy as np
import scipy.sparse as sp

from fedgraph.audit import lower_bound
from fedgraph.learning import example_gradients, neighbour_limits
from fedgraph.privacy import neighbour_sums, private_counts, sensitivity
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.neighbour_sums import priced_log_cap
from fedgraph.privacy.private_counts import OwnedRows
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim, Worlds, bench_sampler, twins

_DELTA = 1e-3
_MULTIPLIER = calibrate.gaussian_multiplier(1, 1.0, _DELTA)
_CLIP = 0.5
_RUNS = 10_000  # of wide sums
_RING, _NEAREST, _PROMISED = 150, 4, 4
_ZERO_OUT, _REPLACE = Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE


def cases() -> Iterator[BenchCase]:
    yield from _rows()
    yield from _edge()
    yield from _millions()
    yield from _degrees()
    yield from _columns()
    yield from _owners()
    yield from _gradients()


@bench_sampler
def _along(runs, rng, value, std, line):
    """value + Gaussian noise, as shipped, read along the unit vector of ``line``."""
    return GaussianNoise(std).apply(np.broadcast_to(value, (runs, value.size)), rng) @ (line / np.linalg.norm(line))


def _worlds(one: np.ndarray, other: np.ndarray, std: float) -> Worlds:
    """The noisy sums of both worlds, read along the line between them."""
    return _along(one, std, one - other), _along(other, std, one - other)


def _gaussian(
    name: str, relation: Relation, worlds: Worlds, broken: dict[str, object], multiplier: float = _MULTIPLIER, **more: int
) -> Iterator[BenchCase]:
    """Twins whose claim is one Gaussian release."""
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    return twins(name, relation.value, claim, worlds, broken, lower_bound.gaussian(), **more)


def _rows() -> Iterator[BenchCase]:
    others, own = np.array([[0.3, 0.4, 0.0], [0.0, -0.1, 0.2], [-0.5, 0.0, 0.0]]), np.array([2.0, 0.0, 0.0])
    bound = ClippedSum(_CLIP, 4)
    there, gone, turned = (
        bound.enforce(np.sum([L2Ball(_CLIP).enforce(row) for row in (*others, last)], axis=0)) for last in (own, 0 * own, -own)
    )
    std, replaced = (_MULTIPLIER * sensitivity.l2(bound, relation) for relation in (_ZERO_OUT, _REPLACE))
    unclipped = gone + 2 * _CLIP * own / np.linalg.norm(own)  # and still within the norm that a sum of four rows may have
    broken = {
        "noise × ⅔": _worlds(there, gone, std * 2 / 3),
        "sensitivity halved": _worlds(there, gone, std / 2),
        "row not clipped": _along(bound.enforce(unclipped), std, there - gone),
    }
    yield from _gaussian("gaussian-sum", _ZERO_OUT, _worlds(there, gone, std), broken)
    broken = {"replace priced as zero-out": _worlds(there, turned, std)}
    yield from _gaussian("gaussian-sum-replace", _REPLACE, _worlds(there, turned, replaced), broken)


def _edge() -> Iterator[BenchCase]:
    """An undirected edge changes two rows of AX, each by a unit row of X."""
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])  # unit rows
    path, edge = np.eye(4, k=2) + np.eye(4, k=-2), np.zeros((4, 4))
    edge[0, 1] = edge[1, 0] = 1.0
    sums = ((path + edge) @ features).ravel(), (path @ features).ravel()
    right, wrong = (_worlds(*sums, _MULTIPLIER * factor) for factor in (math.sqrt(2), 1.0))
    yield from _gaussian("edge-aggregate", Relation.EDGE_UNDIRECTED, right, {"√2 forgotten": wrong})


def _millions() -> Iterator[BenchCase]:
    """16.8 million other rows of the clip's length, all alike: as long a sum as they can give. One more row of that length."""
    others, own = np.full(64, 2.0**20 + 0.125), np.full(64, _CLIP / math.sqrt(64))
    std = _MULTIPLIER * sensitivity.l2(ClippedSum(_CLIP, 2**24 + 8), _ZERO_OUT)
    double, single = ((others.astype(dtype) + own.astype(dtype)).astype(np.float64) for dtype in (np.float64, np.float32))
    worlds, broken = (_along(double, std, own), _along(others, std, own)), {"sum in single precision": _along(single, std, own)}
    yield from _gaussian("gaussian-sum-of-millions", _ZERO_OUT, worlds, broken, runs=_RUNS)


def _degrees() -> Iterator[BenchCase]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    cap, hubs, ids = priced_log_cap(_RING + 1), (_hub(True), _hub(False)), np.arange(_RING + 1)
    std, steep = _MULTIPLIER * cap.sensitivity_l2(), np.maximum(0.0, 2 * cap.factors - 1)

    def release(graphs: list[sp.csr_array], messages: np.ndarray, std: float) -> Worlds:
        there, gone = ((graph @ messages[:, None])[:_RING].ravel() for graph in graphs)
        return _worlds(there, gone, std)

    right, wrong = (
        release([neighbour_limits.log_weights(hub, factors) for hub in hubs], np.ones(ids.size), std)
        for factors in (cap.factors, steep)
    )
    claimed = _MULTIPLIER * neighbour_sums.sensitivity(_ZERO_OUT, _PROMISED, rows_released=False)
    cut = [neighbour_limits.at_most(hub, _PROMISED, ids) for hub in hubs]
    broken = {
        "h twice as steep": wrong,
        "cut with refill priced as √D": release(cut, np.where(ids % 2, 1.0, -1.0), claimed),
    }
    yield from _gaussian("log-cap-hop", _ZERO_OUT, right, broken, runs=_RUNS)


def _hub(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(_RING)
    ends = [np.column_stack([own, (own + step) % _RING]) for step in range(1, _NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(_RING, _RING)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return sp.csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(_RING + 1, _RING + 1))


def _columns() -> Iterator[BenchCase]:
    """Zero-out and replace; each with a price that forgets something."""
    people, bound = [[31.0, 2e4, 0.1], [58.0, 3e4, 0.2], [77.0, 1e9, -1.0]], private_counts.ColumnCounts(3, 4, pooled=False)

    def counted(own: list[float]) -> np.ndarray:
        line, brackets = private_counts.number_line(np.array([*people, own])), private_counts.widest_brackets(3)
        return bound.enforce(private_counts.positions(line, brackets)).ravel()

    for relation, other in ((_ZERO_OUT, [math.nan] * 3), (_REPLACE, [-40.0, -5e4, -0.3])):
        counts, std = (counted([40.0, 5e4, 0.3]), counted(other)), _MULTIPLIER * bound.change(relation)
        broken = {"noise × ⅔": _worlds(*counts, std * 2 / 3), "columns counted as one": _worlds(*counts, std / 3**0.5)}
        yield from _gaussian(f"column-counts-{relation.value}", relation, _worlds(*counts, std), broken, runs=_RUNS)


def _owners() -> Iterator[BenchCase]:
    """30 records of a hub, of which five count, beside 30 of others."""
    columns, records = 3, np.arange(30)
    others = np.concatenate([np.full((30, columns), 0.5), np.column_stack([records + 1, records + 41])], axis=1)
    own = np.concatenate([np.ones((30, columns)), np.column_stack([np.zeros(30), records + 1])], axis=1)
    bound, everything = OwnedRows(5, columns), OwnedRows(60, columns)

    def released(counted: OwnedRows, priced: float) -> Worlds:
        return _worlds(counted.enforce(np.concatenate([others, own])), counted.enforce(others), _MULTIPLIER * priced)

    delta_2 = bound.sensitivity_l2(Relation.NODE_LINKS)
    broken = {
        "noise × ⅔": released(bound, delta_2 * 2 / 3),
        "one record priced, not all of a person's": released(bound, math.sqrt(columns)),
        "nobody's records counted": released(everything, delta_2),
    }
    yield from _gaussian("owned-records", Relation.NODE_LINKS, released(bound, delta_2), broken)


def _gradients() -> Iterator[BenchCase]:
    """The kernel under the log cap, and what it would do without a projection, or without the clip."""
    cap, scale, bound, multiplier = priced_log_cap(_RING + 1), 5.0, 2.0, calibrate.gaussian_multiplier(1, 2.0, _DELTA)
    std = multiplier * neighbour_sums.gradient_sensitivity(cap, _CLIP, bound, scale)
    weights = [neighbour_limits.log_weights(_hub(there), cap.factors) for there in (True, False)]
    features = [sp.csr_array(np.append(np.ones(_RING), own)[:, None]) for own in (1.0, 0.0)]
    both = [neighbour_limits.rows(f, w, scale) for f, w in zip(features, weights, strict=True)]
    middle = (both[0][0, 1] + both[1][0, 1]) / 2  # between what a row reads with the hub and without it
    reads = 1e4 * np.array([[0.0, 0.0], [1.0, -1.0]])

    def worlds() -> Worlds:
        vector = neighbour_limits.limit_weights(np.concatenate([reads.T.ravel(), -middle * reads[1]]), 2, bound)
        labels = [np.append(np.zeros(_RING, dtype=np.int64), own) for own in (0, -1)]
        sums = (example_gradients.outer(vector, r, y, 2, _CLIP).total() for r, y in zip(both, labels, strict=True))
        return _worlds(*sums, std)

    right = worlds()
    with mock.patch.object(neighbour_limits, "limit_weights", lambda vector, inputs, bound: vector):
        broken = {"parameters not projected": worlds()}
    yield from _gaussian("neighbour-gradients", _ZERO_OUT, right, broken, multiplier, runs=_RUNS)
