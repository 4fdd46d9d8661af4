"""The text files of the TU Dortmund benchmark: one line per arc, node or graph, numbers split by commas or white space.

    A                 two numbers: the nodes that an arc joins, counted from 1 over all graphs; both of one graph
    graph_indicator   the graph of each node, counted from 1; the nodes of a graph follow one another
    graph_labels      the class of each graph
    node_labels       the kind of each node, counted from 0
    node_attributes   numbers of each node

Every error is a ``DataError`` of the form ``file:line: found; allowed``. Empty lines at the end are skipped.
"""

import numpy as np

from fedgraph.data.base.faults import Faults
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError


def arcs(raw: RawFiles, file: str, owner: np.ndarray) -> np.ndarray:
    """int64 [m, 2], counted from 0. owner: of :func:`indicator`."""
    found = _whole(raw, file, 2, 1, owner.size, "nodes of the graph indicator")
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


def kinds(raw: RawFiles, file: str, num_nodes: int, num_kinds: int | None) -> np.ndarray:
    """int64 [nodes] in 0 … num_kinds − 1; any whole numbers where nobody knows how many kinds there are."""
    low, high = (None, None) if num_kinds is None else (0, num_kinds - 1)
    return _as_many(raw, file, _whole(raw, file, 1, low, high, "kinds of nodes")[:, 0], num_nodes, "nodes")


def attributes(raw: RawFiles, file: str, num_nodes: int, width: int | None) -> np.ndarray:
    """float64 [nodes, width], finite. width: None: as in the first line."""
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
    limits = "" if low is None else f" {low} … {high}, the {what}" if high is not None else f" ≥ {low}"
    faults = Faults()
    for line, column in np.argwhere((found != np.rint(found)) | (found < least) | (found > most)):
        faults.note(f"{raw.folder / file}:{line + 1}", f"{found[line, column]:.12g}; allowed: whole numbers{limits}")
    faults.refuse()
    return found.astype(np.int64)


def _numbers(raw: RawFiles, file: str, columns: int | None) -> np.ndarray:
    """float64 [lines, columns], finite. columns: None: as in the first line."""
    cells = [line.replace(b",", b" ").split() for line in raw.read(file).split(b"\n")]
    while cells and not cells[-1]:
        cells.pop()
    width = columns if columns is not None else len(cells[0]) if cells else 1
    faults = Faults()
    for number, line in enumerate(cells, start=1):
        if len(line) != width:
            faults.note(f"{raw.folder / file}:{number}", f"numbers in this line: {len(line)}; allowed: {width} in every line")
    faults.refuse()
    try:
        found = np.array(cells, dtype=np.float64).reshape(-1, width)
    except ValueError:
        found = np.zeros((0, width))
        for number, cell in ((i, c) for i, line in enumerate(cells, start=1) for c in line if not _is_number(c)):
            faults.note(f"{raw.folder / file}:{number}", f"{cell[:40].decode(errors='replace')!r}; allowed: numbers")
    for line, column in np.argwhere(~np.isfinite(found)):
        faults.note(f"{raw.folder / file}:{line + 1}", f"{found[line, column]}; allowed: finite numbers")
    faults.refuse()
    return found


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
