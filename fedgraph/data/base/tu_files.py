"""The text files of the TU Dortmund benchmark: one line per arc, node or graph, numbers split by commas or white space.

    A                 two numbers: the nodes that an arc joins, counted from 1 over all graphs; both of one graph
    graph_indicator   the graph of each node, counted from 1; the nodes of a graph follow one another
    graph_labels      the class of each graph
    node_labels       the kind of each node, counted from 0
    node_attributes   numbers of each node

Every error is a ``DataError`` of the form ``file:line: found; allowed``. Empty lines at the end are skipped.
"""

import numpy as np

from fedgraph.data.base import arrays
from fedgraph.data.base.files import Faults, RawFiles
from fedgraph.errors import DataError


def arcs(raw: RawFiles, file: str, owner: np.ndarray) -> np.ndarray:
    """int64 [m, 2], counted from 0. owner: of :func:`indicator`."""
    given = arrays.numbers(raw, file, 2, blanks=True)
    found = arrays.whole(given, owner.size + 1, raw, file, least=1, what="nodes of the graph indicator")
    ends = found - 1
    faults = Faults()
    for line in np.flatnonzero(owner[ends[:, 0]] != owner[ends[:, 1]]):
        one, two = found[line]
        graphs = f"{owner[one - 1] + 1} and {owner[two - 1] + 1}"
        faults.note(f"{raw.folder / file}:{line + 1}", f"{one}, {two} joins graphs {graphs}; allowed: nodes of one graph")
    faults.refuse()
    return ends


def indicator(raw: RawFiles, file: str) -> np.ndarray:
    """int64 [nodes]: each node's graph, counted from 0, never falling and without a gap."""
    found = arrays.whole(arrays.numbers(raw, file, 1, blanks=True)[:, 0], None, raw, file, least=1)
    if not found.size:
        raise DataError(f"{raw.folder / file}: empty; allowed: one line per node")
    steps = np.diff(found, prepend=0)
    wrong = np.flatnonzero((steps < 0) | (steps > 1))
    if wrong.size:
        at = int(wrong[0])
        before = f"graph {found[at - 1]} or {found[at - 1] + 1}, as the line before is {found[at - 1]}" if at else "graph 1"
        raise DataError(f"{raw.folder / file}:{at + 1}: graph {found[at]}; allowed: {before}")
    return found - 1


def classes(raw: RawFiles, file: str, num_graphs: int) -> np.ndarray:
    """int64 [graphs]: each graph's class, as written."""
    found = arrays.whole(arrays.numbers(raw, file, 1, blanks=True)[:, 0], None, raw, file, least=None)
    return _as_many(raw, file, found, num_graphs, "graphs")


def kinds(raw: RawFiles, file: str, num_nodes: int, num_kinds: int | None) -> np.ndarray:
    """int64 [nodes] in 0 … num_kinds − 1; any whole numbers where nobody knows how many kinds there are."""
    given = arrays.numbers(raw, file, 1, blanks=True)[:, 0]
    found = arrays.whole(given, num_kinds, raw, file, least=None if num_kinds is None else 0, what="kinds of nodes")
    return _as_many(raw, file, found, num_nodes, "nodes")


def attributes(raw: RawFiles, file: str, num_nodes: int, width: int | None) -> np.ndarray:
    """float64 [nodes, width], finite. width: None: as in the first line."""
    return _as_many(raw, file, arrays.numbers(raw, file, width, blanks=True), num_nodes, "nodes")


def _as_many(raw: RawFiles, file: str, found: np.ndarray, wanted: int, what: str) -> np.ndarray:
    if len(found) != wanted:
        allowed = f"{wanted}, one for each of the {what} of the indicator"
        raise DataError(f"{raw.folder / file}: {len(found)} lines; allowed: {allowed}")
    return found
