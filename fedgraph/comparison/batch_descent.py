"""The conditional gradient of ``descent`` for thousands of pairs at once, on a GPU where there is one.

The same descent, step for step: same start, exact transport (``batch_transport``), exact line search and stopping rules, kept
per pair. Where optimal vertices are unique it ends where the compiled path ends, up to rounding. Where many are optimal, as
with whole-number distances, its pivots meet others, and a pair may end at another local minimum, on the whole neither better
nor worse; rounding of matrix products decides ties too: there a number may depend on the device and on the pairs beside it.

Pairs of like sizes are packed together (either side within a factor of 1.5) and padded, as many as ``_MEMORY`` bytes hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from fedgraph.comparison import batch_transport as transport
from fedgraph.comparison.batch_transport import BatchTransportBasis
from fedgraph.comparison.descent import PRODUCT, RANDOM, draw_restart_orders
from fedgraph.comparison.metric_space import PackedMetricSpaces

_MEMORY = 2**28  # bytes of a batch on the CPU; on a GPU a sixteenth of it, which several processes may share
_RATIO = 1.5


class _Work(NamedTuple):
    """B pairs in mid-descent, padded to N rows and M columns: number int64 [B], the pair's place in the batch. c [B, N, N],
    d [B, M, M]. base [B, N, M]: (1 − α) M, infinite at padding. w [B, N, M]: −C T D. Of each pair [B]: scale, one over its
    supply; constant, the fixed sums of F; tolerance of a reduced cost; quadratic ⟨w, T⟩ and linear ⟨base, T⟩; at_vertex bool.
    """

    number: torch.Tensor
    c: torch.Tensor
    d: torch.Tensor
    base: torch.Tensor
    w: torch.Tensor
    scale: torch.Tensor
    constant: torch.Tensor
    tolerance: torch.Tensor
    quadratic: torch.Tensor
    linear: torch.Tensor
    at_vertex: torch.Tensor

    def value(self, alpha: float) -> torch.Tensor:
        return self.linear + alpha * (self.constant + 2.0 * self.quadratic)


def solve_by_batch_descent(
    packed: PackedMetricSpaces,
    pairs: np.ndarray,
    alpha: float,
    start: int,
    restarts: int,
    seed: np.uint64,
    limits: tuple[int, float, float],
    device: torch.device | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``descent.solve_by_descent``: (values, iterations, converged) of ``pairs`` int64 [k, 2], without couplings.

    device: by default the CUDA device, else the CPU. Raises ``ValueError`` for ``BATCH_TRANSPORT_FINE`` / 2 points or more in
    the smaller space of a pair.
    """
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    memory = torch.cuda.get_device_properties(device).total_memory // 16 if device.type == "cuda" else _MEMORY
    sizes = np.diff(packed.point_at)
    pairs = np.where((sizes[pairs[:, 0]] > sizes[pairs[:, 1]])[:, None], pairs[:, ::-1], pairs)
    if pairs.size and 2 * sizes[pairs[:, 0]].max() >= transport.BATCH_TRANSPORT_FINE:
        raise ValueError(
            f"the batched solver needs fewer than {transport.BATCH_TRANSPORT_FINE // 2} points in the smaller space of a pair"
        )
    values = np.full(len(pairs), np.inf)
    steps = np.zeros(len(pairs), np.int64)
    done = np.zeros(len(pairs), np.bool_)
    for which in _batches(sizes[pairs], memory):
        for attempt in range(restarts + 1):
            mode = start if attempt == 0 else RANDOM
            begun = _begin(packed, pairs[which], alpha, mode, (seed, attempt), device)
            value, iterations, converged = _descend(*begun, alpha, limits)
            better = value < values[which]
            won = which[better]
            values[won], steps[won], done[won] = value[better], iterations[better], converged[better]
    return values, steps, done


def order_for_batch_descent(sizes: np.ndarray) -> np.ndarray:
    """The order in which pairs of like sizes follow each other: int64 [k].

    Args:
        sizes: int64 [k, 2], points of both spaces.
    """
    kinds = _kinds(np.sort(sizes, axis=1))
    return np.lexsort((kinds[:, 1], kinds[:, 0]))


def _kinds(sizes: np.ndarray) -> np.ndarray:
    return np.ceil(np.log(sizes) / np.log(_RATIO)).astype(np.int64)


def _batches(sizes: np.ndarray, memory: int) -> Iterator[np.ndarray]:
    """Numbers of pairs that are solved together; sizes: int64 [k, 2]."""
    kinds, kind = np.unique(_kinds(sizes), axis=0, return_inverse=True)
    for number in range(len(kinds)):
        members = np.flatnonzero(kind.ravel() == number)
        n, m = (int(s) for s in sizes[members].max(axis=0))
        each = 16 * (n * n + m * m) + 80 * n * m + 16 * (n + m) ** 2  # what a pair takes at the peak, copies included
        for at in range(0, len(members), max(1, memory // each)):
            yield members[at : at + max(1, memory // each)]


def _begin(
    packed: PackedMetricSpaces, pairs: np.ndarray, alpha: float, mode: int, named: tuple[np.uint64, int], device: torch.device
) -> tuple[_Work, BatchTransportBasis]:
    (c, p, cp, whole, order, x), (d, q, dq, wanted, column_order, y) = (
        _side(packed, pairs[:, s], mode, device) for s in (0, 1)
    )
    sizes = torch.tensor(np.diff(packed.point_at)[pairs], device=device)
    real = (p > 0)[:, :, None] & (q > 0)[:, None, :]
    if mode == RANDOM:
        of_rows, of_columns = order.cpu().numpy(), column_order.cpu().numpy()
        for k, (a, b) in enumerate(pairs):
            n, m = np.diff(packed.point_at)[[a, b]]
            draw_restart_orders(*named, packed.names[a], packed.names[b], of_rows[k, :n], of_columns[k, :m])
        order, column_order = torch.tensor(of_rows, device=device), torch.tensor(of_columns, device=device)
    even = torch.tensor(packed.even[pairs].all(axis=1), device=device)[:, None]
    supply = torch.where(even, sizes[:, 1:] * (p > 0), whole)
    demand = torch.where(even, sizes[:, :1] * (q > 0), wanted)
    basis = transport.corner_batch_transport(supply, demand, order, column_order, sizes)
    base = (
        (1.0 - alpha) * torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist").square() if alpha < 1.0 else 0.0 * real
    )
    widest = torch.tensor(packed.widest[pairs].prod(axis=1), device=device)
    largest = torch.where(real, base, 0.0).amax((1, 2)) / (1.0 - alpha) if alpha < 1.0 else 0.0
    work = _Work(
        number=torch.arange(len(pairs), device=device),
        c=c,
        d=d,
        base=torch.where(real, base, torch.inf),
        w=-cp[:, :, None] * dq[:, None, :],
        scale=1.0 / supply.sum(1).double(),
        constant=torch.tensor(packed.own[pairs].sum(axis=1), device=device),
        tolerance=1e-14 * (largest + widest),
        quadratic=-(p * cp).sum(1) * (q * dq).sum(1),
        linear=(p * (torch.where(real, base, 0.0) * q[:, None, :]).sum(2)).sum(1),
        at_vertex=torch.full((len(pairs),), mode != PRODUCT, device=device),
    )
    return (work if mode == PRODUCT else _moved(work, basis)), basis


def _side(packed: PackedMetricSpaces, spaces: np.ndarray, mode: int, device: torch.device) -> tuple[torch.Tensor, ...]:
    """One side's distances, weights, products, whole, order and features, one space per pair, padded with zeros
    (the order with the numbers of the padding).
    """
    names, index = np.unique(spaces, return_inverse=True)
    sizes = np.diff(packed.point_at)[names]
    width = int(sizes.max())
    distances = np.zeros((len(names), width, width))
    lines = np.zeros((3, len(names), width))
    orders = np.tile(np.arange(width), (len(names), 1))
    features = np.zeros((len(names), width, packed.features.shape[1]))
    for k, (space, n) in enumerate(zip(names, sizes, strict=True)):
        own = slice(packed.point_at[space], packed.point_at[space + 1])
        distances[k, :n, :n] = packed.distances[packed.matrix_at[space] : packed.matrix_at[space + 1]].reshape(n, n)
        lines[:, k, :n] = packed.weights[own], packed.products[own], packed.whole[own]
        orders[k, :n], features[k, :n] = packed.order[own], packed.features[own]
    made = (distances, lines[0], lines[1], lines[2].astype(np.int64), orders, features)
    return tuple(torch.tensor(part, device=device)[torch.tensor(index, device=device)] for part in made)


def _descend(
    work: _Work, basis: BatchTransportBasis, alpha: float, limits: tuple[int, float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The loop of ``descent._descend``; pairs leave the batch as they finish."""
    values = np.zeros(len(work.w))
    steps = np.zeros(len(work.w), np.int64)
    done = np.zeros(len(work.w), np.bool_)
    for iteration in range(1, limits[0] + 1):
        cost = work.base + (4.0 * alpha if alpha < 1.0 else 1.0) * work.w
        pivoted, optimal = transport.improve_batch_transport(basis, cost, work.tolerance)
        settled = work.at_vertex & ~pivoted
        asked = settled.nonzero()[:, 0]
        if len(asked):
            other = basis.take(asked)
            settled[asked] = ~transport.wander_batch_transport(other, cost[asked], work.tolerance[asked])
            basis.put(asked, other)
        del cost
        before = work.value(alpha)
        after = _stepped(work, basis, alpha)
        value = after.value(alpha)
        change = (before - value).abs()
        ended = settled | (change <= limits[2]) | (change <= limits[1] * value.abs())
        leaves = ended if iteration < limits[0] else torch.ones_like(ended)
        if leaves.any():
            at = work.number[leaves].cpu().numpy()
            values[at] = torch.where(settled, before, value)[leaves].clamp(min=0.0).cpu().numpy()
            steps[at] = iteration
            done[at] = (ended & (settled | optimal))[leaves].cpu().numpy()
            stay = (~leaves).nonzero()[:, 0]
            after, basis = _Work(*(part[stay] for part in after)), basis.take(stay)
        work = after
        if not len(work.number):
            break
    return values, steps, done


def _moved(work: _Work, basis: BatchTransportBasis) -> _Work:
    """At the basis' vertex V: w, ⟨w, V⟩ and ⟨base, V⟩ of T = V."""
    flow = transport.batch_transport_amounts(basis) * work.scale[:, None]
    dense = transport.batch_transport_coupling(basis, *work.w.shape[1:])
    w = torch.bmm(torch.bmm(work.c, dense), work.d).mul_(-work.scale[:, None, None])
    quadratic, linear = ((flow * transport.batch_transport_at_cells(basis, matrix)).sum(1) for matrix in (w, work.base))
    return work._replace(w=w, quadratic=quadratic, linear=linear)


def _stepped(work: _Work, basis: BatchTransportBasis, alpha: float) -> _Work:
    """To the exact minimum of F on the segment from T to the basis' vertex."""
    end = _moved(work, basis)
    cross = (transport.batch_transport_amounts(basis) * transport.batch_transport_at_cells(basis, work.w)).sum(1) * work.scale
    slope = end.linear - work.linear + 4.0 * alpha * (cross - work.quadratic)
    bend = 2.0 * alpha * (end.quadratic - 2.0 * cross + work.quadratic)
    inside = (-slope / torch.where(bend > 0.0, 2.0 * bend, 1.0)).clamp(0.0, 1.0)
    step = torch.where(bend > 0.0, inside, (bend + slope < 0.0).double())
    stay, whole = 1.0 - step, step == 1.0
    return end._replace(
        w=torch.where(whole[:, None, None], end.w, work.w + step[:, None, None] * (end.w - work.w)),
        quadratic=stay * stay * work.quadratic + 2.0 * step * stay * cross + step * step * end.quadratic,
        linear=stay * work.linear + step * end.linear,
        at_vertex=whole,
    )
