"""Sums over neighbours: the one step of a graph network that reads private edges.

    (AH)_v = Σ_{u ∈ N(v)} H_u,      rows of H of norm at most 1.

A compiled loop over the CSR indices adds rows in their stored order: no edge weights are read, no N × N or
edge × width array exists, and the result does not depend on threads. On a GPU torch's sparse product is used.

**Rounding.** A hop is priced at sensitivity 1, so what rounding adds is taken off the rows' length (``_hop_rounding``). Sums of
h ≤ n rows of norm ≤ 1 are taken in double precision, off by at most n²·2⁻⁵³ in norm, and stored in single precision, off by at
most n·2⁻²⁴ more; neighbours differ by twice that at worst. From 2¹⁶ nodes on sums are stored in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fedgraph.compiled import compiled
from fedgraph.errors import DataError
from fedgraph.learning.tensors import to_torch_matrix, torch, torch_device

_SLACK = 1e-6  # rows are scaled to 1 − SLACK, so that rounding in float32 cannot push a norm above 1
_SINGLE = 2**16  # below so many nodes a hop is stored in single precision, and rounding costs less than 1 % of the rows' length


@compiled(reassociate=False)
def _add_rows(indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """out = W·rows, in double precision; without ``weights`` all of them are 1."""
    total = np.empty(rows.shape[1], dtype=np.float64)
    for node in range(indptr.size - 1):
        total[:] = 0
        for position in range(indptr[node], indptr[node + 1]):
            row, weight = rows[indices[position]], weights[position] if weights.size else 1.0
            for column in range(total.size):
                total[column] += weight * row[column]
        for column in range(total.size):
            out[node, column] = total[column]


def aggregate_neighbours(adjacency: sp.csr_array, rows: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """A·rows for a 0/1 matrix A (CSR [n, m], data ignored), summed in float64; rows [m, h] → ``dtype`` [n, h]. Rows are
    read as float32, or as float64 where ``dtype`` is."""
    kind = np.float64 if dtype is np.float64 and rows.dtype == np.float64 else np.float32
    return _aggregate(adjacency, np.zeros(0), rows.astype(kind, copy=False), dtype)


def _aggregate(matrix: sp.csr_array, weights: np.ndarray, rows: np.ndarray, dtype: type) -> np.ndarray:
    if torch_device().type == "cuda":
        values = weights if weights.size else np.ones(matrix.nnz)
        whole = to_torch_matrix(sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape), torch.float64)
        return (whole @ torch.tensor(rows, dtype=torch.float64, device=torch_device())).cpu().numpy().astype(dtype)
    out = np.empty((matrix.shape[0], rows.shape[1]), dtype=dtype)
    parts = (matrix.indptr, matrix.indices, weights, np.ascontiguousarray(rows))
    _add_rows(*map(_only_read, parts), out)
    return out


def _only_read(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to: a loop is compiled once for arrays of a user, and of a worker, whose arrays are so."""
    view = array.view()
    view.flags.writeable = False
    return view


def aggregate_weighted_neighbours(weights: sp.csr_array, rows: np.ndarray) -> np.ndarray:
    """W·rows, added in their stored order: float64 [n, h].

    With 0 ≤ W ≤ 1 and rows of norm at most 1, n terms at most, a row of the result is off by less than n²·2⁻⁵² in norm.
    weights: W, CSR [n, m] of float64. rows: [m, h], read as float32.
    """
    values = np.ascontiguousarray(weights.data, dtype=np.float64)
    return _aggregate(weights, values, rows.astype(np.float32, copy=False), np.float64)


def scale_to_unit_length(rows: np.ndarray, length: float = 1.0) -> np.ndarray:
    """Each row scaled to L2 norm ``length``, less ``_SLACK`` for rounding. A row of zeros stays zero (0/0 = 0).

    **Guarantee.** Every row of the result has norm at most ``length``, also after rounding, or the input held NaN
    or infinity, which the desk refuses.
    rows: float [n, h]. length: above 0. Returns float32 [n, h].
    """
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    scale = np.divide(length * (1.0 - _SLACK), norms, out=np.zeros_like(norms), where=norms > 0)
    return np.multiply(rows, scale.astype(np.float32)[:, None], dtype=np.float32, casting="same_kind")


def _hop_rounding(num_rows: int) -> tuple[type, float]:
    """How a hop over ``num_rows`` rows (a public number) is stored, and how much rounding can add to what one row changes."""
    double = num_rows**2 * 2.0**-52
    return (np.float32, num_rows * 2.0**-23 + double) if num_rows < _SINGLE else (np.float64, double)


def require_simple(adjacency: sp.csr_array) -> None:
    """Refuse a graph for which no sensitivity is proven: what one edge changes is proven for simple undirected graphs only.
    adjacency: CSR [n, n]. Raises ``DataError``: it has a loop, a weight other than 1, an edge that appears twice, or a directed
    edge.
    """
    if adjacency.diagonal().any():
        raise DataError("a node is its own neighbour; the sensitivity is for graphs without self-loops: remove them")
    ordered = adjacency if adjacency.has_canonical_format else sp.csr_array(adjacency, copy=True)
    ordered.sum_duplicates()
    if ordered.nnz and not (ordered.data == 1).all():
        raise DataError("an edge has a weight or appears twice; the sensitivity is for simple graphs: keep each edge once")
    if (ordered != ordered.T).nnz:
        raise DataError("the graph is directed; the sensitivity is for undirected edges: symmetrise it")


def with_cut(adjacency: sp.csr_array, nodes: np.ndarray, cut: np.ndarray, num_nodes: int) -> sp.csr_array:
    """A client's rows over all nodes: CSR [n_i, num_nodes], entries 1, columns global ids.
    adjacency: its inner edges, CSR [n_i, n_i]. nodes: int64 [n_i], global id of each of its rows. cut: int64 [m, 2], (own row,
    global id of a node held elsewhere). Raises ``DataError``: an edge is given twice, or a cut edge leads to a node of its own.
    """
    rows, columns = adjacency.tocoo().coords
    own, other = np.concatenate([rows, cut[:, 0]]), np.concatenate([nodes[columns], cut[:, 1]])
    found = sp.csr_array((np.ones(own.size, dtype=np.int32), (own, other)), shape=(len(nodes), num_nodes))
    if found.nnz and found.data.max() > 1:
        raise DataError("an edge between clients is given twice; its sensitivity is for simple graphs: give each edge once")
    if np.isin(cut[:, 1], nodes).any():
        raise DataError("an edge between clients leads to a node of the same client: it belongs into the client's own graph")
    return found


def aggregate_hop(adjacency: sp.csr_array, rows: np.ndarray) -> np.ndarray:
    """A·scale_to_unit_length(rows), which is what GAP's aggregation releases before noise.

    **Guarantee.** Taking one row out of any number of sums changes each by at most 1 in norm as stored, rounding included: rows
    are shorter than 1 by what ``_hop_rounding`` says of their number.
    adjacency: a, CSR [n, m]; its values are not read. rows: float [m, h]. Returns [n, h], float32 for fewer than 2¹⁶ rows, else
    float64.
    """
    dtype, added = _hop_rounding(rows.shape[0])
    return aggregate_neighbours(adjacency, scale_to_unit_length(rows, 1.0 - added), dtype)


def place_aggregated_rows(parts: Sequence[np.ndarray], members: Sequence[np.ndarray], num_rows: int) -> np.ndarray:
    """The rows of all clients at their global places.
    parts: [n_i, h] each, at least one. members: global ids of each part's rows. Returns [num_rows, h] with row members[i][k] =
    parts[i][k]; rows of nobody are zero.
    """
    out = np.zeros((num_rows, parts[0].shape[1]), dtype=parts[0].dtype)
    for rows, nodes in zip(parts, members, strict=True):
        out[nodes] = rows
    return out
