"""The exact transport problem between two small histograms, compiled, with a basis that can be reused.

    minimise Σ_ij cost_ij V_ij   over   V ≥ 0,  V 1 = supply,  Vᵀ 1 = demand.

A primal network simplex on the complete bipartite graph of n rows and m columns. The basis is a spanning
tree of n + m nodes (rows 0 … n−1, columns n … n+m−1). Conditional gradient solves the same polytope again
and again under slowly changing costs, so the last tree is the next start: near convergence a solve is one
pass over the costs.

Supply and demand are whole numbers held in float64 (see ``round_weights``), hence flows are exact, ties are seen
as ties, and the tree is kept *strongly feasible* (an edge without flow points to the root; the last
blocking edge of the cycle leaves), which rules out cycling (Cunningham 1976; Ahuja, Magnanti & Orlin
1993, section 11.6).

A ``tree`` is int64 [6, n+m], one row per name below; ``flow`` and ``dual`` are float64 [n+m]; flow[v] is
what passes between v and its parent.
"""

from __future__ import annotations

import numpy as np

from fedgraph.compiled import compiled

PARENT, _DEPTH, _CHILD, _NEXT, _PREVIOUS, _STACK = range(6)
_RESOLUTION = 2.0**50


def round_weights(weights: np.ndarray) -> np.ndarray:
    """Weights as multiples of 2**-50, whole numbers that sum to 2**50 (an error of 1e-15): float64 [n].

    The largest one absorbs the rounding.
    """
    whole = np.rint(weights / weights.sum() * _RESOLUTION)
    whole[np.argmax(whole)] += _RESOLUTION - whole.sum()
    return whole


@compiled(nan=False)
def _attach(tree, node, parent):  # type: ignore[no-untyped-def]
    tree[PARENT, node] = parent
    follower = tree[_CHILD, parent]
    tree[_NEXT, node] = follower
    tree[_PREVIOUS, node] = -1
    if follower >= 0:
        tree[_PREVIOUS, follower] = node
    tree[_CHILD, parent] = node


@compiled(nan=False)
def _detach(tree, node):  # type: ignore[no-untyped-def]
    before = tree[_PREVIOUS, node]
    after = tree[_NEXT, node]
    if before >= 0:
        tree[_NEXT, before] = after
    else:
        tree[_CHILD, tree[PARENT, node]] = after
    if after >= 0:
        tree[_PREVIOUS, after] = before


@compiled(nan=False)
def plant_tree(supply, demand, row_order, column_order, tree, flow):  # type: ignore[no-untyped-def]
    """The north-west corner tree: rows and columns are matched greedily in the given orders.

    With both orders ascending in x and y it is optimal for cost_ij = −x_i y_j (the monotone coupling).
    Strongly feasible: on a tie the row moves on, so an empty edge always joins a child row to its column.
    """
    n = supply.size
    m = demand.size
    for v in range(n + m):
        tree[_CHILD, v] = -1
    i = 0
    j = 0
    row = row_order[0]
    column = column_order[0]
    tree[PARENT, row] = -1
    tree[_NEXT, row] = -1
    tree[_PREVIOUS, row] = -1
    flow[row] = 0.0
    left = supply[row]
    wanted = demand[column]
    column_is_new = True
    while True:
        amount = min(left, wanted)
        left -= amount
        wanted -= amount
        if column_is_new:
            _attach(tree, n + column, row)
            flow[n + column] = amount
        else:
            _attach(tree, row, n + column)
            flow[row] = amount
        if i == n - 1 and j == m - 1:
            return
        if left <= 0.0 and i < n - 1:
            i += 1
            row = row_order[i]
            left = supply[row]
            column_is_new = False
        else:
            j += 1
            column = column_order[j]
            wanted = demand[column]
            column_is_new = True


@compiled(nan=False)
def _find_root(tree):  # type: ignore[no-untyped-def]
    v = 0
    while tree[PARENT, v] >= 0:
        v = tree[PARENT, v]
    return v


@compiled(nan=False)
def _set_duals(cost, tree, dual):  # type: ignore[no-untyped-def]
    """dual_i + dual_{n+j} = cost_ij on every tree edge, zero at the root; depths on the way."""
    n = cost.shape[0]
    root = _find_root(tree)
    tree[_DEPTH, root] = 0
    dual[root] = 0.0
    tree[_STACK, 0] = root
    height = 1
    while height > 0:
        height -= 1
        parent = tree[_STACK, height]
        node = tree[_CHILD, parent]
        while node >= 0:
            tree[_DEPTH, node] = tree[_DEPTH, parent] + 1
            price = cost[node, parent - n] if node < n else cost[parent, node - n]
            dual[node] = price - dual[parent]
            tree[_STACK, height] = node
            height += 1
            node = tree[_NEXT, node]


@compiled(nan=False)
def _shift_subtree(tree, dual, top, n, row_shift):  # type: ignore[no-untyped-def]
    """Depths below ``top`` anew; rows rise by ``row_shift`` and columns fall by it."""
    tree[_DEPTH, top] = tree[_DEPTH, tree[PARENT, top]] + 1
    tree[_STACK, 0] = top
    height = 1
    while height > 0:
        height -= 1
        parent = tree[_STACK, height]
        dual[parent] += row_shift if parent < n else -row_shift
        node = tree[_CHILD, parent]
        depth = tree[_DEPTH, parent] + 1
        while node >= 0:
            tree[_DEPTH, node] = depth
            tree[_STACK, height] = node
            height += 1
            node = tree[_NEXT, node]


@compiled(nan=False)
def pivot_tree(tree, flow, dual, row, column_node, n, reduced):  # type: ignore[no-untyped-def]
    """Let the edge (row, column) enter with reduced cost ``reduced`` < 0: move flow round its cycle, drop one edge."""
    # The two paths to the apex; the edges that lose flow bound what can move.
    a = row
    b = column_node
    most = np.inf
    leaving = -1
    leaves_on_row_side = False
    while a != b:
        if tree[_DEPTH, a] >= tree[_DEPTH, b]:
            if a < n and flow[a] < most:
                most = flow[a]
                leaving = a
                leaves_on_row_side = True
            a = tree[PARENT, a]
        else:
            if b >= n and flow[b] <= most:
                most = flow[b]
                leaving = b
                leaves_on_row_side = False
            b = tree[PARENT, b]
    if most > 0.0:
        apex = a
        a = row
        while a != apex:
            flow[a] += -most if a < n else most
            a = tree[PARENT, a]
        b = column_node
        while b != apex:
            flow[b] += most if b < n else -most
            b = tree[PARENT, b]
    # Hang the cut-off part by its end of the new edge, reversing the path up to the edge that left.
    top = row if leaves_on_row_side else column_node
    parent = column_node if leaves_on_row_side else row
    node = top
    amount = most
    while True:
        above = tree[PARENT, node]
        carried = flow[node]
        _detach(tree, node)
        _attach(tree, node, parent)
        flow[node] = amount
        if node == leaving:
            break
        parent = node
        amount = carried
        node = above
    _shift_subtree(tree, dual, top, n, reduced if top < n else -reduced)


@compiled(nan=False)
def improve_tree(cost, tree, flow, dual, tolerance):  # type: ignore[no-untyped-def]
    """Pivot from the given tree to an optimal one; returns the number of pivots, or −1 at the safety limit.

    cost: float64 [n, m]. An edge enters while its reduced cost is below −tolerance: the best of one row,
    rows in turn.
    """
    n, m = cost.shape
    _set_duals(cost, tree, dual)
    columns = dual[n : n + m]
    pivots = 0
    limit = 100 * (n + m) * (n + m)
    clean_rows = 0
    row = n - 1
    while clean_rows < n:
        row = row + 1 if row + 1 < n else 0
        clean_rows += 1
        own = dual[row]
        entering = 0
        for j in range(m):  # counting first: this loop runs on vectors, and most rows stop here
            entering += cost[row, j] - columns[j] < own - tolerance
        if entering > 0:
            reduced = np.inf
            best = 0
            for j in range(m):
                candidate = cost[row, j] - columns[j] - own
                if candidate < reduced:
                    reduced = candidate
                    best = j
            pivot_tree(tree, flow, dual, row, n + best, n, reduced)
            pivots += 1
            if pivots >= limit:
                return -1
            clean_rows = 0
    return pivots


@compiled(nan=False)
def wander_tree(cost, tree, flow, dual, tolerance):  # type: ignore[no-untyped-def]
    """From one optimal tree to another of the same cost; returns how many edges entered (0: none is tied).

    One sweep over the rows: the last edge of a row whose reduced cost is zero, up to the tolerance, enters.
    Where many vertices are optimal, as with whole-number distances, a descent must not stop at the first.
    """
    n, m = cost.shape
    columns = dual[n : n + m]
    entered = 0
    for row in range(n):
        own = dual[row]
        tied = -1
        for j in range(m):
            if cost[row, j] - columns[j] - own <= tolerance and tree[PARENT, row] != n + j and tree[PARENT, n + j] != row:
                tied = j
        if tied >= 0:
            pivot_tree(tree, flow, dual, row, n + tied, n, 0.0)
            entered += 1
    return entered
