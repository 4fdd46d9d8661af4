"""Accuracy over rounds: ``curves.csv``, one line per kept round of each cell, and a figure."""

import csv
import io
import statistics
from collections.abc import Sequence

from fedgraph.cells.entry import Entry
from fedgraph.cells.facts import NodeClassificationFacts
from fedgraph.report import charts, plots
from fedgraph.report.report_rows import rounded
from fedgraph.report.result_files import NAMING, naming_of

COLUMNS = (*NAMING, "round", "accuracy")


def write_curves(entries: Sequence[Entry]) -> str | None:
    """CSV text of all curves; None where no cell kept one."""
    rows = [[*naming_of(e), *point] for e in entries for point in _curve(e)]
    if not rows:
        return None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return out.getvalue()


def figures(name: str, entries: Sequence[Entry], notice: str | None) -> tuple[plots.Figure, ...]:
    """One panel per method, one line per level of trust and budget, means over seeds."""
    drawn = [e for e in entries if _curve(e)]
    panels = []
    for learner in dict.fromkeys((e.method, e.variant) for e in drawn):
        own = [e for e in drawn if (e.method, e.variant) == learner]
        lines = []
        for world, epsilon in dict.fromkeys((e.world, e.epsilon) for e in own):
            values: dict[float, list[float]] = {}
            for e in own:
                if (e.world, e.epsilon) == (world, epsilon):
                    for round_, accuracy in _curve(e):
                        values.setdefault(float(round_), []).append(accuracy)
            means = [statistics.fmean(v) for v in values.values()]
            spread = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values.values()]
            keys = (f"ε = {rounded(epsilon)}", world.words)
            lines.append(charts.Series(", ".join(keys), list(values), means, spread, keys))
        title = " · ".join(dict.fromkeys(learner))
        panels.append(charts.Panel(title, "test accuracy", tuple(lines), xlabel="rounds", heads=("Budget", "Trust")))
    caption = "Test accuracy after some of the rounds (curves.csv). It reads true labels: for the experimenter's eyes."
    return charts.draw(f"{name}-curves", caption, panels, notice, shared=True)


def _curve(entry: Entry) -> tuple[tuple[int, float], ...]:
    return entry.facts.curve if isinstance(entry.facts, NodeClassificationFacts) else ()
