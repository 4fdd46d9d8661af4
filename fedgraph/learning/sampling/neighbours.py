"""Builds the matrix Π that aggregates logits from the chosen neighbours: column limits, fallbacks, rows without a choice.

Everything here reads released indices and values, public ids and public coins, so it is post-processing.
A *choice* is [S, K] indices with [S, K] weights, one row per source; −1 marks an entry that was cut.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest entries of each row, largest first, ties to the smaller index: int64 [rows, k]."""
    count = values.shape[1]
    if k == count or values.shape[0] == 0:
        return np.argsort(-values, axis=1, kind="stable")[:, :k].astype(np.int64)
    edge = -np.partition(-values, k - 1, axis=1)[:, k - 1 : k]
    out = np.empty((values.shape[0], k), np.int64)
    for row, line in enumerate(values):
        candidates = np.flatnonzero(line >= edge[row])
        out[row] = candidates[np.argsort(-line[candidates], kind="stable")[:k]]
    return out


def limit_mentions(sources: np.ndarray, chosen: np.ndarray, most: int, priority: np.ndarray) -> np.ndarray:
    """``chosen`` with −1 where more than ``most`` *other* rows name a node; a row may always name its own node.

    sources: int [S], the node of each row. chosen: int [S, K], best first. priority: public coins [S]; first
    choices go before second ones, and among equals the smaller coin wins. A function of Π and coins alone,
    so which entries survive tells nothing that Π does not.
    """
    kept = chosen.copy()
    rows, ranks = np.nonzero((chosen >= 0) & (chosen != sources[:, None]))
    columns = chosen[rows, ranks]
    order = np.lexsort((priority[rows], ranks, columns))
    sorted_columns = columns[order]
    first = np.searchsorted(sorted_columns, sorted_columns, side="left")
    beyond = order[np.arange(order.size) - first >= most]
    kept[rows[beyond], ranks[beyond]] = -1
    return kept


def aggregation(
    num_nodes: int,
    sources: np.ndarray,
    chosen: np.ndarray,
    weights: np.ndarray,
    tail: np.ndarray,
    tau: float,
    columns: Literal["clip", "normalise", "none"],
) -> sp.csr_array:
    """Π, CSR [num_nodes, num_nodes]: chosen rows at ``sources``, one-hot rows at ``tail`` (int), nothing elsewhere.

    Off-diagonal columns of the chosen rows are scaled to L1 norm at most tau (``clip``, DPAR Algorithm 2,
    line 3) or all chosen columns to exactly tau (``normalise``, as the released code does). A source whose
    choices were all cut, or weigh nothing, falls back on its own node.
    """
    rows, ranks = np.nonzero(chosen >= 0)
    entries = (weights[rows, ranks], (sources[rows], chosen[rows, ranks]))
    pi = sp.csr_array(sp.coo_array(entries, shape=(num_nodes, num_nodes)))
    pi = scale_columns(pi, tau, columns)
    pi.eliminate_zeros()
    empty = sources[np.diff(pi.indptr)[sources] == 0]
    alone = np.concatenate([tail, empty])
    return sp.csr_array(pi + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=pi.shape))


def scale_columns(pi: sp.csr_array, tau: float, columns: Literal["clip", "normalise", "none"]) -> sp.csr_array:
    """Columns of ``pi`` with their L1 norm limited; see ``aggregation``."""
    if columns == "none":
        return pi
    coo = pi.tocoo()
    row, column = coo.coords
    counted = np.abs(coo.data) if columns == "normalise" else np.abs(coo.data) * (row != column)
    mass = np.bincount(column, counted, minlength=pi.shape[1])
    with np.errstate(divide="ignore"):
        scale = np.where(mass > 0, tau / np.maximum(mass, 1e-300), 1.0)
    if columns == "clip":
        scale = np.where(row == column, 1.0, np.minimum(scale, 1.0)[column])
        return sp.csr_array(sp.coo_array((coo.data * scale, (row, column)), shape=pi.shape))
    return sp.csr_array(sp.coo_array((coo.data * scale[column], (row, column)), shape=pi.shape))
