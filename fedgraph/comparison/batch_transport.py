"""Many small transport problems at once on torch's device: an exact simplex, one pivot of every pair at a time.

Where ``transport`` walks trees, a batch holds the inverse of every basis as a matrix of −1, 0 and 1 (row r, column v: what
one more unit at node v sends through basic edge r), so that a pivot is a handful of dense operations. An edge (row i, column
n + j) is the column e_i − e_{n+j}; the most negative reduced cost of a pair enters (Dantzig's rule).

Flows are whole numbers, int64. Every row supplies 1/``BATCH_TRANSPORT_FINE`` of a unit more and the last column wants them all
(Orden 1956): no basis is degenerate then, so that nothing cycles. Rounding takes the extra away exactly, while rows are fewer
than ``BATCH_TRANSPORT_FINE`` / 2.

Shapes: B pairs padded to N rows and M columns, S = N + M nodes. Padding is never entered (its cost is infinite) and never left.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

BATCH_TRANSPORT_FINE = 4096
_NONE = torch.iinfo(torch.int64).max


class BatchTransportBasis(NamedTuple):
    """Bases of B pairs.

    Attributes:
        cells: int64 [B, S], i · M + j of each basic edge, −1 for the root's and the padding's own.
        inverse: int8 [B, S, S].
        flow: int64 [B, S], in 1/``BATCH_TRANSPORT_FINE``.
        dual: float64 [B, S]; the reduced cost of (i, j) is cost_ij − dual_i + dual_{N+j}.
    """

    cells: torch.Tensor
    inverse: torch.Tensor
    flow: torch.Tensor
    dual: torch.Tensor

    def take(self, which: torch.Tensor) -> BatchTransportBasis:
        return BatchTransportBasis(*(part[which] for part in self))

    def put(self, which: torch.Tensor, other: BatchTransportBasis) -> None:
        for mine, theirs in zip(self, other, strict=True):
            mine[which] = theirs


def corner_batch_transport(
    supply: torch.Tensor, demand: torch.Tensor, row_order: torch.Tensor, column_order: torch.Tensor, sizes: torch.Tensor
) -> BatchTransportBasis:
    """The north-west corner basis in the given orders, as ``transport.plant_transport_tree``; duals are left zero.

    supply, demand: int64 [B, N] and [B, M], zero at padding. Orders: int64, the same shapes, padding last. sizes: [B, 2].

    A node arrives when all before it in its own order are used up. In order of arrival its edge leads to the latest node of the
    other kind, and cuts off itself alone if the next to arrive is of its own kind, else everything that follows.
    """
    (pairs, num_rows), num_columns = supply.shape, demand.shape[1]
    real, last = sizes.sum(1, keepdim=True), sizes[:, 1:] - 1
    fine = (supply * BATCH_TRANSPORT_FINE + (supply > 0)).gather(1, row_order)
    coarse = (demand * BATCH_TRANSPORT_FINE).gather(1, column_order).scatter_add(1, last, sizes[:, :1])
    times = torch.cat([fine.cumsum(1) - fine, coarse.cumsum(1) - coarse], 1)
    nodes = torch.cat([row_order, num_rows + column_order], 1)
    k = torch.arange(times.shape[1], device=times.device).expand(pairs, -1)
    is_padding = torch.where(k < num_rows, k >= sizes[:, :1], k - num_rows >= sizes[:, 1:])
    times = torch.where(is_padding, _NONE - 1, times)
    times[:, 0] = -1  # the root arrives first, then the first column
    times, arrival = times.sort(dim=1, stable=True)
    nodes = nodes.gather(1, arrival)
    place = torch.empty_like(nodes).scatter_(1, nodes, k)
    is_row = nodes < num_rows
    rows = nodes.gather(1, torch.where(is_row, k, 0).cummax(1).values)
    columns = nodes.gather(1, torch.where(is_row, 0, k).cummax(1).values) - num_rows
    inner = (k > 0) & (k < real)
    ends = fine.sum(1, keepdim=True)
    following = torch.where(k + 1 < real, times.roll(-1, 1), ends)
    alone = (is_row == is_row.roll(-1, 1)) | (k + 1 >= real)
    until = torch.where(alone & (k > 0), k, real - 1)
    sign = torch.where(is_row | (k == 0), 1, -1).to(torch.int8)
    below = (place[:, None, :] >= k[:, :, None]) & (place[:, None, :] <= until[:, :, None])
    return BatchTransportBasis(
        torch.where(inner, rows * num_columns + columns, -1),
        below * sign[:, :, None],
        torch.where(inner, following - times, 0),
        torch.zeros(times.shape, dtype=torch.float64, device=times.device),
    )


def _pivot_bases(
    basis: BatchTransportBasis, cell: torch.Tensor, reduced: torch.Tensor, go: torch.Tensor, num_columns: int
) -> None:
    """Let the edge ``cell`` [B] of reduced cost ``reduced`` [B] enter, in place, where ``go`` [B] says so."""
    nodes = basis.inverse.shape[1]
    row, column = cell // num_columns, nodes - num_columns + cell % num_columns
    index = torch.stack([row, column], 1)[:, None, :].expand(-1, nodes, 2)
    ends = basis.inverse.gather(2, index)
    change = (ends[:, :, 0] - ends[:, :, 1]) * go[:, None]
    amount, leaving = torch.where(change > 0, basis.flow, _NONE).min(1)
    leaving, amount = leaving[:, None], torch.where(go, amount, 0)[:, None]
    basis.flow.sub_(amount * change.long())
    basis.flow.scatter_(1, leaving, torch.where(go[:, None], amount, basis.flow.gather(1, leaving)))
    basis.cells.scatter_(1, leaving, torch.where(go[:, None], cell[:, None], basis.cells.gather(1, leaving)))
    own = basis.inverse.gather(1, leaving[:, :, None].expand(-1, 1, nodes))
    change.scatter_(1, leaving, 0)
    basis.inverse.sub_(change[:, :, None] * own)
    basis.dual.add_(torch.where(go, reduced, 0.0)[:, None] * own[:, 0])


def improve_batch_transport(
    basis: BatchTransportBasis, cost: torch.Tensor, tolerance: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pivot every pair to an optimal basis, in place: (bool [B] any pivot, bool [B] the safety limit was not met).

    tolerance: float64 [B]; an edge enters while its reduced cost is below −tolerance. Pairs that are done leave the batch when
    they are half of it.
    """
    # In place; cost: float64 [B, N, M], infinite at padding.
    basis.dual.copy_(torch.bmm(batch_transport_at_cells(basis, cost)[:, None, :], basis.inverse.double())[:, 0])
    moved = torch.zeros_like(tolerance, dtype=torch.bool)
    left = torch.arange(len(cost), device=cost.device)
    mine, prices, slack = basis, cost, tolerance
    rows = cost.shape[1]
    for step in range(100 * basis.dual.shape[1] ** 2):
        one = torch.ones_like(mine.dual)  # the lowest reduced cost of each pair: one pass writes all, one reads them
        left_side = torch.stack([-mine.dual[:, :rows], one[:, :rows]], 2)
        reduced = torch.baddbmm(prices, left_side, torch.stack([one[:, rows:], mine.dual[:, rows:]], 1))
        best, cell = reduced.flatten(1).min(1)
        go = best < -slack
        if step % 4 == 0:  # asking costs a wait for the device
            busy = int(go.sum())
            if 2 * busy <= len(left):
                if mine is not basis:
                    basis.put(left, mine)
                if busy == 0:
                    return moved, torch.ones_like(moved)
                left = left[go]
                mine, prices, slack = basis.take(left), cost[left], tolerance[left]
                best, cell, go = best[go], cell[go], go[go]
        moved[left] |= go
        _pivot_bases(mine, cell, best, go, cost.shape[2])
    if mine is not basis:
        basis.put(left, mine)
    finished = torch.ones_like(moved)
    finished[left] = False
    return moved, finished


def wander_batch_transport(basis: BatchTransportBasis, cost: torch.Tensor, tolerance: torch.Tensor) -> torch.Tensor:
    """To optimal bases of the same cost, in place, as ``transport.wander_transport_tree``: bool [B], whether an edge
    entered.
    """
    pairs, num_rows, num_columns = cost.shape
    entered = torch.zeros_like(tolerance, dtype=torch.bool)
    number = torch.arange(1, num_columns + 1, device=cost.device)
    for row in range(num_rows):
        reduced = cost[:, row] - basis.dual[:, row, None] + basis.dual[:, num_rows:]
        here = torch.where(basis.cells // num_columns == row, basis.cells % num_columns, num_columns)
        basic = torch.zeros((pairs, num_columns + 1), dtype=torch.bool, device=cost.device).scatter_(1, here, True)
        tied = torch.where((reduced <= tolerance[:, None]) & ~basic[:, :-1], number, 0).amax(1)
        go = tied > 0
        entered |= go
        _pivot_bases(basis, row * num_columns + (tied - 1).clamp(min=0), torch.zeros_like(tolerance), go, num_columns)
    return entered


def batch_transport_amounts(basis: BatchTransportBasis) -> torch.Tensor:
    """float64 [B, S], what every basic edge carries, in units of supply."""
    return torch.where(basis.cells >= 0, (basis.flow + BATCH_TRANSPORT_FINE // 2) // BATCH_TRANSPORT_FINE, 0).double()


def batch_transport_at_cells(basis: BatchTransportBasis, matrix: torch.Tensor) -> torch.Tensor:
    """float64 [B, S], the entries of ``matrix`` [B, N, M] on the basic edges, 0 for the root and padding."""
    return torch.where(basis.cells >= 0, matrix.flatten(1).gather(1, basis.cells.clamp(min=0)), 0.0)


def batch_transport_coupling(basis: BatchTransportBasis, num_rows: int, num_columns: int) -> torch.Tensor:
    """float64 [B, N, M], the coupling that the basis carries, in units of supply."""
    out = torch.zeros((len(basis.cells), num_rows * num_columns), dtype=torch.float64, device=basis.cells.device)
    return out.scatter_add_(1, basis.cells.clamp(min=0), batch_transport_amounts(basis)).view(-1, num_rows, num_columns)
