"""The text files of the TU Dortmund benchmark: one line per arc, node or graph, numbers split by commas or white space.

    A                 two numbers: the nodes that an arc joins, counted from 1 over all graphs; both of one graph
    graph_indicator   the graph of each node, counted from 1; the nodes of a graph follow one another
    graph_labels      the class of each graph
    node_labels       the kind of each node, counted from 0
    node_attributes   numbers of each node

Every error is a ``DataError`` of the form ``file:line: found; allowed``. Empty lines at the end are skipped.
"""

import numpy as np

from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError


def arcs(raw: RawFiles, file: str, owner: np.ndarray) -> np.ndarray:
    """int64 [m, 2], counted from 0. owner: of :func:`indicator`."""
    found = _whole(raw, file, 2, 1, owner.size, "nodes of the graph indicator")
    ends = found - 1
    apart = np.flatnonzero(owner[ends[:, 0]] != owner[ends[:, 1]])
    if apart.size:
        one, two = found[apart[0]]
        graphs = f"{owner[one - 1] + 1} and {owner[two - 1] + 1}"
        raise DataError(f"{raw.folder / file}:{apart[0] + 1}: {one}, {two} joins graphs {graphs}; allowed: nodes of one graph")
    return ends


def indicator(raw: RawFiles, file: str) -> np.ndarray:
    """int64 [nodes]: each node's graph, counted from 0, never falling and without a gap."""
    found = _whole(raw, file, 1, 1, None, "graphs")[:, 0]
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
    return _as_many(raw, file, _whole(raw, file, 1, None, None, "")[:, 0], num_graphs, "graphs")


def kinds(raw: RawFiles, file: str, num_nodes: int, num_kinds: int) -> np.ndarray:
    """int64 [nodes] in 0 … num_kinds − 1."""
    return _as_many(raw, file, _whole(raw, file, 1, 0, num_kinds - 1, "kinds of nodes")[:, 0], num_nodes, "nodes")


def attributes(raw: RawFiles, file: str, num_nodes: int, width: int) -> np.ndarray:
    """float64 [nodes, width], finite."""
    return _as_many(raw, file, _numbers(raw, file, width), num_nodes, "nodes")


def _as_many(raw: RawFiles, file: str, found: np.ndarray, wanted: int, what: str) -> np.ndarray:
    if len(found) != wanted:
        allowed = f"{wanted}, one for each of the {what} of the indicator"
        raise DataError(f"{raw.folder / file}: {len(found)} lines; allowed: {allowed}")
    return found


def _whole(raw: RawFiles, file: str, columns: int, low: int | None, high: int | None, what: str) -> np.ndarray:
    """int64 [lines, columns] in low … high (None: no limit)."""
    found = _numbers(raw, file, columns)
    least, most = (-(2**53) if low is None else low), (2**53 if high is None else high)
    wrong = np.argwhere((found != np.rint(found)) | (found < least) | (found > most))
    if wrong.size:
        line, column = wrong[0]
        limits = "" if low is None else f" {low} … {high}, the {what}" if high is not None else f" ≥ {low}"
        raise DataError(f"{raw.folder / file}:{line + 1}: {found[line, column]:.12g}; allowed: whole numbers{limits}")
    return found.astype(np.int64)


def _numbers(raw: RawFiles, file: str, columns: int) -> np.ndarray:
    """float64 [lines, columns], finite."""
    cells = [line.replace(b",", b" ").split() for line in raw.read(file).split(b"\n")]
    while cells and not cells[-1]:
        cells.pop()
    for number, line in enumerate(cells, start=1):
        if len(line) != columns:
            found_here = f"numbers in this line: {len(line)}"
            raise DataError(f"{raw.folder / file}:{number}: {found_here}; allowed: {columns} in every line")
    try:
        found = np.array(cells, dtype=np.float64).reshape(-1, columns)
    except ValueError:
        number, cell = next((i, c) for i, line in enumerate(cells, start=1) for c in line if not _is_number(c))
        shown = cell[:40].decode(errors="replace")
        raise DataError(f"{raw.folder / file}:{number}: {shown!r}; allowed: numbers") from None
    wrong = np.argwhere(~np.isfinite(found))
    if wrong.size:
        raise DataError(f"{raw.folder / file}:{wrong[0, 0] + 1}: {found[tuple(wrong[0])]}; allowed: finite numbers")
    return found


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
