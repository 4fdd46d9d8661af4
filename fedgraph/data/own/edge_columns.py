"""Columns of an own graph that were computed from its edges, such as a degree or a PageRank.

Such a column tells of other people's ties: a node that leaves changes the rows of its neighbours. Methods then rest on the
assumption ``features-from-edges``. A column counts as computed where its values, or their order, go along with the degree,
the clustering coefficient, PageRank or the eigenvector centrality. The user may contradict (``from_edges: false``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents.settings import Settings

_ALIKE = 0.98  # correlation, of values or of ranks, from which on a column counts as computed from edges
_MOST_PATHS = 10**8  # paths of two edges: beyond it no triangle is counted
_STEPS = 100  # of the power iterations
_DAMPING = 0.85  # PageRank's usual


class EdgeColumnRules(Settings):
    """Whether some columns were computed from edges."""

    from_edges: bool | None = Field(
        None, description="whether columns were computed from edges (degree, centrality); empty: looked for in the data"
    )


def notice_edge_columns(
    rules: EdgeColumnRules, features: sp.csr_array, adjacency: sp.csr_array, names: Sequence[str]
) -> tuple[bool, tuple[str, ...]]:
    """(whether features were computed from edges, remarks for the provenance)."""
    if rules.from_edges is False:
        return False, ()
    same = _columns_like_edges(features, adjacency, names)
    if not same:
        return bool(rules.from_edges), ()
    listed = ", ".join(f"{name} ({what})" for name, what in same.items())
    said = f"columns that go along with the edges: {listed}, taken as computed from them (else: from_edges: false)"
    return True, (said,)


def _columns_like_edges(features: sp.csr_array, adjacency: sp.csr_array, names: Sequence[str]) -> dict[str, str]:
    """Column → what of the edges it goes along with. features: CSR [n, d]. names: of the d columns."""
    degrees = np.diff(adjacency.indptr).astype(float)
    by_column = sp.csc_array(features)
    filled = np.diff(by_column.indptr)
    able = np.flatnonzero(filled >= 0.2 * max(1, int((degrees > 1).sum())))  # a centrality of nearly all nodes is not zero
    dense = {int(place): by_column[:, [place]].toarray().ravel() for place in able}
    dense = {place: values for place, values in dense.items() if np.unique(values).size > 2}
    measures = [(what, values) for what, values in _measures(adjacency, degrees) if np.ptp(values) > 0] if dense else []
    found: dict[str, str] = {}
    for place, column in dense.items():
        likeness, what = max(((_likeness(column, values), what) for what, values in measures), default=(0.0, ""))
        found |= {names[place]: what} if likeness >= _ALIKE else {}
    return found


def _likeness(column: np.ndarray, values: np.ndarray) -> float:
    from scipy.stats import rankdata  # not before it is used: every run lists all data sets

    pairs = ((column, values), (rankdata(column), rankdata(values)))
    return max(abs(float(np.corrcoef(one, other)[0, 1])) for one, other in pairs)


def _measures(adjacency: sp.csr_array, degrees: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "degree", degrees
    if float((degrees**2).sum()) <= _MOST_PATHS:
        triangles = np.asarray((adjacency @ adjacency).multiply(adjacency).sum(axis=1)).ravel()
        yield "clustering coefficient", triangles / np.maximum(degrees * (degrees - 1), 1)
    share = sp.diags_array(1 / np.maximum(degrees, 1)) @ adjacency
    ranks = np.full(degrees.size, 1 / degrees.size)
    vector = np.full(degrees.size, 1.0)
    for _ in range(_STEPS):
        ranks = (1 - _DAMPING) / degrees.size + _DAMPING * (share.T @ ranks + ranks[degrees == 0].sum() / degrees.size)
        vector = adjacency @ vector + vector
        vector /= np.linalg.norm(vector)
    yield "PageRank", ranks
    yield "eigenvector centrality", vector
