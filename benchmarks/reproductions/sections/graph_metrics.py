"""Ways to compare small graphs, and what one edge or node does to each: Figures 11 and 12 of Jin & Chen."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import spearmanr

from benchmarks.reproductions.facts import GraphMetricsCellFacts
from benchmarks.reproductions.phrases import fill_phrase
from fedgraph.report import plots
from fedgraph.report.phrases import phrase_count, phrase_number
from fedgraph.report.rows import Row, format_row_mean, group_rows
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable

KINDS = ("graph_metrics",)  # the tasks that this section speaks of

_GED, _SIZE = "GED", "graph size"
_EDITS = ("edge_removed", "edge_added", "node_removed")


def build(records: SectionRecords, notice: str | None) -> Section:
    """Tables of distances and of single edits, the graphs themselves, matrices and box plots."""
    rows = group_rows(records.entries)
    arrays = {(e.method, e.seed): a for e, a in zip(records.entries, records.artefacts, strict=True)}
    facts = rows[0].head.facts_as(GraphMetricsCellFacts)
    sentences = [
        fill_phrase("graph_metrics", "collection", facts=facts, repeated=phrase_count(len(rows[0].results), "repetition")),
        *_alike(rows, arrays),
        *_moved(rows),
    ]
    if not any(r.head.method == _GED for r in rows):
        sentences.append(fill_phrase("graph_metrics", "no_edit_distance"))
    tables = (_pairs(rows, arrays), _edits(rows))
    return Section(tuple(sentences), tables, _figures(records, rows, arrays, notice))


_Arrays = dict[tuple[str, int], dict[str, np.ndarray]]


def _upper(matrix: np.ndarray) -> np.ndarray:
    return matrix[np.triu_indices(matrix.shape[0], 1)]


def _seeds(row: Row) -> list[int]:
    return [e.seed for e in row.results]


def _alike(rows: Sequence[Row], arrays: _Arrays) -> list[str]:
    edit = next((r for r in rows if r.head.method == _GED), None)
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
            found = np.concatenate([_upper(arrays[row.head.method, s]["distances"])[same[s]] for s in _seeds(row)])
            means.append(f"{row.head.method} {found.mean():.3g}")
    return [fill_phrase("graph_metrics", "isomorphic", count=count, total=total, means=", ".join(means))]


def _moved(rows: Sequence[Row]) -> list[str]:
    found = []
    for row in rows:
        typical = row.mean_of("pairs_median")
        if row.head.method not in (_GED, _SIZE) and typical > 0:
            parts = []
            for name in (name for name in _EDITS if row.values(f"{name}_median")):
                middle, high = (row.mean_of(f"{name}_{what}") / typical for what in ("median", "high"))
                parts.append(f"{name.replace('_', ' ')} {middle:.1%} (95 % of them below {high:.1%})")
            found.append(fill_phrase("graph_metrics", "moved", method=row.head.method, parts="; ".join(parts)))
    return [*found, fill_phrase("graph_metrics", "hide")] if found else []


def _pairs(rows: Sequence[Row], arrays: _Arrays) -> SectionTable:
    body = []
    for row in rows:
        rank = "—"
        if row.head.method != _GED and (_GED, 0) in arrays:
            names = (_GED, row.head.method)
            both = [tuple(_upper(arrays[name, s]["distances"]) for name in names) for s in _seeds(row)]
            ranks = [spearmanr(*pair).statistic for pair in both if all(np.ptp(values) > 0 for values in pair)]
            rank = phrase_number(float(np.mean(ranks))) if ranks else "—"
        ties = []
        for s in _seeds(row):
            own = arrays[row.head.method, s]
            equal = _upper(own["labels"][:, None] == own["labels"][None, :])
            values = _upper(own["distances"])
            if equal.any() and not equal.all() and values[~equal].mean() > 0:
                ties.append(values[equal].mean() / values[~equal].mean())
        kin = phrase_number(float(np.mean(ties))) if ties else "—"
        body.append((str(row.head.method), format_row_mean(row, "pairs_median"), format_row_mean(row, "pairs_mean"), rank, kin))
    header = ("distance", "median", "mean", "rank correlation with GED", "same label / other label")
    return SectionTable("Pairs of graphs", header, tuple(body), fill_phrase("graph_metrics", "pairs"))


def _edits(rows: Sequence[Row]) -> SectionTable:
    body = []
    for row in rows:
        for name in _EDITS:
            if row.values(f"{name}_median"):
                values = tuple(format_row_mean(row, f"{name}_{what}") for what in ("median", "high", "largest"))
                typical = row.mean_of("pairs_median")
                share = phrase_number(row.mean_of(f"{name}_median") / typical) if typical > 0 else "—"
                body.append((str(row.head.method), name.replace("_", " "), *values, share))
    header = ("distance", "edit", "median", "95 %", "largest", "median / median of different graphs")
    return SectionTable("One edge or node", header, tuple(body), "Discrepancy of a graph to itself after one random edit.")


def _figures(records: SectionRecords, rows: Sequence[Row], arrays: _Arrays, notice: str | None) -> tuple[plots.PlotFigure, ...]:
    rows = [r for r in rows if r.head.method != _SIZE]
    first = arrays[rows[0].head.method, 0]
    sizes = first["sizes"]
    starts = np.concatenate([[0], np.cumsum(sizes)])

    def graphs(axes: list[Axes]) -> None:
        for index, ax in enumerate(axes):
            for i, j in first["edges"]:
                if starts[index] <= i < starts[index + 1]:
                    ax.plot(*first["places"][[i, j]].T, color="#4c566a", lw=1.2, zorder=1)
            own = first["places"][starts[index] : starts[index + 1]]
            colour = plots.PLOT_COLOURS[int(first["labels"][index]) % len(plots.PLOT_COLOURS)]
            ax.scatter(own[:, 0], own[:, 1], s=40, color=colour, zorder=2)
            ax.set(title=f"graph {index + 1}, label {first['labels'][index]}", xticks=[], yticks=[])

    def matrices(axes: list[Axes]) -> None:
        for ax, row in zip(axes, rows, strict=True):
            shown = arrays[row.head.method, 0]["distances"][: len(sizes), : len(sizes)]
            ax.imshow(shown, cmap="viridis")
            for (i, j), value in np.ndenumerate(shown):
                colour = "white" if value < 0.6 * max(float(shown.max()), 1e-12) else "black"
                ax.text(j, i, f"{value:.2g}", ha="center", va="center", fontsize=8, color=colour)
            ticks = range(len(sizes)), [str(k + 1) for k in range(len(sizes))]
            ax.set_xticks(*ticks)
            ax.set_yticks(*ticks)
            ax.set_title(str(row.head.method))

    moved = [r for r in rows if r.head.method != _GED]

    def boxes(axes: list[Axes]) -> None:
        for ax, row in zip(axes, moved, strict=True):
            own = arrays[row.head.method, 0]
            names = [n for n in _EDITS if n in own]
            ax.boxplot([own[n] for n in names], tick_labels=[n.replace("_", " ") for n in names], showfliers=True)
            ax.axhline(row.results[0].metrics["pairs_median"], ls="--", lw=1, color="#4c566a", label="two different graphs")
            ax.set(title=str(row.head.method), ylabel="discrepancy after one edit")
            ax.legend(frameon=False, fontsize=8)

    return (
        plots.draw_plot(f"{records.name}-graphs", "The first graphs of the first repetition.", len(sizes), graphs, notice, 2.8),
        plots.draw_plot(f"{records.name}-matrices", "Their distances (Figure 11).", len(rows), matrices, notice, 4.2),
        plots.draw_plot(f"{records.name}-edits", fill_phrase("graph_metrics", "edits"), len(moved), boxes, notice, 4.2),
    )
