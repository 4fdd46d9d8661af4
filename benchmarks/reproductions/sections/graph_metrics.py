"""Ways to compare small graphs, and what one edge or node does to each: Figures 11 and 12 of Jin & Chen."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import spearmanr

from benchmarks.reproductions.facts import GraphMetricsCellFacts
from benchmarks.reproductions.phrases import fill_phrase
from fedgraph.report import charts, phrases
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.report.table import Line, format_row_mean, mean_of, values
from fedgraph.types import counted

KINDS = ("graph_metrics",)  # the tasks that this section speaks of

_GED, _SIZE = "GED", "graph size"
_EDITS = ("edge_removed", "edge_added", "node_removed")


def build(records: SectionRecords) -> Section:
    """Tables of distances and of single edits, the graphs themselves, matrices and box charts."""
    rows = records.rows
    arrays = {(e.method, e.seed): dict(e.artefacts) for e in records.entries}
    facts = rows[0].facts
    assert isinstance(facts, GraphMetricsCellFacts)
    sentences = [
        fill_phrase("graph_metrics", "collection", facts=facts, repeated=counted(len(rows[0].cells), "repetition")),
        *_alike(rows, arrays),
        *_moved(rows),
    ]
    if not any(r.method == _GED for r in rows):
        sentences.append(fill_phrase("graph_metrics", "no_edit_distance"))
    tables = (_pairs(rows, arrays), _edits(rows))
    return Section(tuple(sentences), tables, _figures(rows, arrays))


_Arrays = dict[tuple[str, int], dict[str, np.ndarray]]


def _upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(matrix.shape[0], 1)]


def _seeds(row: Line) -> list[int]:
    return [e.seed for e in row.cells]


def _alike(rows: Sequence[Line], arrays: _Arrays) -> list[str]:
    edit = next((r for r in rows if r.method == _GED), None)
    if edit is None:
        return []
    same = {s: _upper(arrays[_GED, s]["distances"]) == 0 for s in _seeds(edit)}
    count = sum(int(m.sum()) for m in same.values())
    total = sum(m.size for m in same.values())
    if not count:
        return ["No two of these graphs are isomorphic."]
    means = []
    for row in rows:
        if row is not edit:
            found = np.concatenate([_upper(arrays[row.method, s]["distances"])[same[s]] for s in _seeds(row)])
            means.append(f"{row.method} {found.mean():.3g}")
    return [fill_phrase("graph_metrics", "isomorphic", count=count, total=total, means=", ".join(means))]


def _moved(rows: Sequence[Line]) -> list[str]:
    found = []
    for row in rows:
        typical = mean_of(row, "pairs_median")
        if row.method not in (_GED, _SIZE) and typical > 0:
            parts = []
            for name in (name for name in _EDITS if values(row, f"{name}_median")):
                middle, high = (mean_of(row, f"{name}_{what}") / typical for what in ("median", "high"))
                parts.append(f"{name.replace('_', ' ')} {middle:.1%} (95 % of them below {high:.1%})")
            found.append(fill_phrase("graph_metrics", "moved", method=row.method, parts="; ".join(parts)))
    return [*found, fill_phrase("graph_metrics", "hide")] if found else []


def _pairs(rows: Sequence[Line], arrays: _Arrays) -> SectionTable:
    body = []
    for row in rows:
        rank = "—"
        if row.method != _GED and (_GED, 0) in arrays:
            names = (_GED, row.method)
            both = [tuple(_upper(arrays[name, s]["distances"]) for name in names) for s in _seeds(row)]
            ranks = [spearmanr(*pair).statistic for pair in both if all(np.ptp(values) > 0 for values in pair)]
            rank = phrases.rounded(float(np.mean(ranks))) if ranks else "—"
        ties = []
        for s in _seeds(row):
            own = arrays[row.method, s]
            equal = _upper(own["labels"][:, None] == own["labels"][None, :])
            values = _upper(own["distances"])
            if equal.any() and not equal.all() and values[~equal].mean() > 0:
                ties.append(values[equal].mean() / values[~equal].mean())
        kin = phrases.rounded(float(np.mean(ties))) if ties else "—"
        body.append((row.method, format_row_mean(row, "pairs_median"), format_row_mean(row, "pairs_mean"), rank, kin))
    header = ("distance", "median", "mean", "rank correlation with GED", "same label / other label")
    return SectionTable("Pairs of graphs", header, tuple(body), fill_phrase("graph_metrics", "pairs"))


def _edits(rows: Sequence[Line]) -> SectionTable:
    body = []
    for row in rows:
        for name in _EDITS:
            if values(row, f"{name}_median"):
                told = tuple(format_row_mean(row, f"{name}_{what}") for what in ("median", "high", "largest"))
                typical = mean_of(row, "pairs_median")
                share = phrases.rounded(mean_of(row, f"{name}_median") / typical) if typical > 0 else "—"
                body.append((row.method, name.replace("_", " "), *told, share))
    header = ("distance", "edit", "median", "95 %", "largest", "median / median of different graphs")
    return SectionTable("One edge or node", header, tuple(body), "Discrepancy of a graph to itself after one random edit.")


def _figures(rows: Sequence[Line], arrays: _Arrays) -> tuple[charts.Figure, ...]:
    rows = [r for r in rows if r.method != _SIZE]
    first = arrays[rows[0].method, 0]
    sizes = first["sizes"]
    starts = np.concatenate([[0], np.cumsum(sizes)])

    graphs = []
    for index in range(len(sizes)):
        inside = [(i, j) for i, j in first["edges"] if starts[index] <= i < starts[index + 1]]
        title = f"graph {index + 1}, label {first['labels'][index]}"
        graphs.append(
            _plot_graph(first["places"], inside, range(starts[index], starts[index + 1]), int(first["labels"][index]), title)
        )
    shown = [(r, arrays[r.method, 0]["distances"][: len(sizes), : len(sizes)]) for r in rows]
    matrices = tuple(_plot_matrix(m, r.method) for r, m in shown)
    boxes = []
    for row in (r for r in rows if r.method != _GED):
        own = arrays[row.method, 0]
        moved = {name.replace("_", " "): own[name] for name in _EDITS if name in own}
        level = ("two different graphs", row.cells[0].metrics["pairs_median"])
        boxes.append(_plot_boxes(moved, row.method, "discrepancy after one edit", level))
    return (
        charts.Figure("The first graphs of the first repetition.", tuple(graphs), live=False),
        charts.Figure("Their distances (Figure 11).", matrices, live=False),
        charts.Figure(fill_phrase("graph_metrics", "edits"), tuple(boxes)),
    )


def _plot_graph(
    places: np.ndarray, edges: Sequence[tuple[int, int]], nodes: Sequence[int], group: int, title: str
) -> charts.Panel:
    """A small graph at ``places`` [N, 2]: some of its nodes, in the colour of a group, and edges among them."""
    import altair
    import pandas

    x, y = charts.bare(altair.X, "x"), charts.bare(altair.Y, "y")
    ends = pandas.DataFrame([(*places[i], *places[j]) for i, j in edges], columns=["x", "y", "x2", "y2"])
    lines = (
        altair.Chart(ends, title=title, width=200, height=200)
        .mark_rule(color=charts.INK)
        .encode(x, y, altair.X2("x2"), altair.Y2("y2"))
    )
    dots = altair.Chart(pandas.DataFrame(places[list(nodes)], columns=["x", "y"]))
    return lines + dots.mark_point(filled=True, size=60, opacity=1, color=f"hsl({137 * group % 360}, 60%, 45%)").encode(x, y)


def _plot_matrix(matrix: np.ndarray, title: str) -> charts.Panel:
    """A small matrix with its numbers."""
    import altair
    import pandas

    i, j = np.indices(matrix.shape)
    table = pandas.DataFrame({"i": i.ravel(), "j": j.ravel(), "v": matrix.ravel()})
    axis = altair.Axis(labelExpr="datum.value + 1", labelAngle=0)
    place = [altair.X("j:O", title="", axis=axis), altair.Y("i:O", title="", axis=axis)]
    base = altair.Chart(table, title=title, width=260, height=260)
    drawn = base.mark_rect().encode(*place, altair.Color("v:Q", title=None, scale=altair.Scale(scheme="viridis")))
    named = base.mark_text(fontSize=11, color="white", stroke="black", strokeWidth=0.3)
    return drawn + named.encode(*place, altair.Text("v:Q", format=".2g"))


def _plot_boxes(groups: Mapping[str, np.ndarray], title: str, what: str, level: tuple[str, float]) -> charts.Panel:
    """A box for each group of values, and a dashed line at ``level``, (label, value)."""
    import altair
    import pandas

    table = pandas.DataFrame([{"group": name, "value": float(v)} for name, values in groups.items() for v in np.ravel(values)])
    boxes = altair.Chart(table, title=title, width=240, height=charts.HEIGHT).mark_boxplot(color="#1f6fb2")
    drawn = boxes.encode(altair.X("group:N", title=None, axis=altair.Axis(labelAngle=0)), altair.Y("value:Q", title=what))
    line = altair.Chart(pandas.DataFrame({"value": [level[1]], "label": [level[0]]}))
    named = line.mark_text(align="left", dx=4, dy=-7, color=charts.INK, fontSize=11).encode(
        altair.Y("value:Q"), altair.Text("label:N"), x=altair.value(0)
    )
    return drawn + line.mark_rule(strokeDash=[5, 4], color=charts.INK).encode(altair.Y("value:Q")) + named
