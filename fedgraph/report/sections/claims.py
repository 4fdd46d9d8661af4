"""Claims: for each paper, its published ε beside the ε that can be proven and a lower bound."""

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from fedgraph.cells.entry import CellEntry
from fedgraph.cells.task_facts import ClaimCellFacts
from fedgraph.report import plots
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section

KINDS = ("claims",)  # the tasks that this section speaks of


def build(records: SectionRecords, notice: str | None) -> Section:
    """One table per paper, and one picture: how far each claim is from its proof."""
    papers = dict.fromkeys(e.method for e in records.entries)
    sentences = (_verdict(records.entries), fill_phrase("claims", "how_priced"), fill_phrase("claims", "lower_bounds"))
    tables = tuple(_table(paper, [e for e in records.entries if e.method == paper]) for paper in papers)
    return Section(sentences, tables, (_figure(records, notice),))


def _verdict(entries: Sequence[CellEntry]) -> str:
    """What becomes of the claims, in one sentence. Not every row is a paper's own claim: some look at a part of one."""
    claimed = [e for e in entries if math.isfinite(e.epsilon)]
    refuted = [e for e in claimed if _known(_bound(e)) and _bound(e) > e.epsilon * (1 + 1e-6)]
    proven = [e for e in claimed if e not in refuted and e.epsilon_provable <= e.epsilon * (1 + 1e-6)]
    papers = ", ".join(dict.fromkeys(str(e.method) for e in refuted))
    counts = {"claimed": len(claimed), "proven": len(proven), "refuted": len(refuted)}
    return fill_phrase("claims", "verdict", **counts, named=f" ({papers})" if papers else "")


def _table(paper: str, entries: list[CellEntry]) -> SectionTable:
    """Inputs that all rows share stand once, below the table."""
    every = [e.facts_as(ClaimCellFacts).inputs for e in entries]
    shared = {k: v for k, v in every[0].items() if all(i.get(k) == v for i in every)}
    columns: dict[str, Callable[[CellEntry], str]] = {
        "mechanism": lambda e: e.facts_as(ClaimCellFacts).mechanism,
        "ε claimed": lambda e: phrase_number(e.epsilon),
        "δ": lambda e: f"{e.facts_as(ClaimCellFacts).delta:.3g}",
        "ε published": lambda e: phrase_number(e.epsilon_published, 2),
        "ε provable": lambda e: phrase_upper_bound(e.epsilon_provable, 2),
        "ε at least": lambda e: phrase_number(_bound(e), 2),
        "why": lambda e: e.theorem,
        "noise and inputs": lambda e: _listed({k: v for k, v in e.facts_as(ClaimCellFacts).inputs.items() if k not in shared}),
    }
    note = f"For all rows: {_listed(shared)}. " if shared else ""
    return tabulate_section(paper, entries, columns, note + "—: no such number; ∞: nothing is guaranteed.")


def _listed(inputs: Mapping[str, float | str]) -> str:
    return ", ".join(f"{k} = {phrase_number(v) if isinstance(v, float) else v}" for k, v in inputs.items())


def _figure(records: SectionRecords, notice: str | None) -> plots.PlotFigure:
    shown = [e for e in records.entries if math.isfinite(e.epsilon) and (_known(e.epsilon_provable) or _known(_bound(e)))]

    def paint(axes: list[Axes]) -> None:
        provable = ("provable", plots.PLOT_COLOURS[0], "o", lambda e: e.epsilon_provable)
        for kind, colour, marker, value in (provable, ("at least", plots.PLOT_COLOURS[1], "v", _bound)):
            points = [(e.epsilon, value(e)) for e in shown if _known(value(e))]
            axes[0].scatter([p[0] for p in points], [p[1] for p in points], s=30, color=colour, marker=marker, label=kind)
        low, high = min(e.epsilon for e in shown), max(e.epsilon for e in shown)
        axes[0].plot([low, high], [low, high], color="#4c566a", ls="--", lw=1, label="as claimed")
        axes[0].set(xscale="log", yscale="log", xlabel="ε claimed", ylabel="ε", title="What claimed ε are worth")
        axes[0].legend(frameon=False)
        axes[0].grid(alpha=0.25)

    caption = "Every claim against its provable ε and its lower bound."
    return plots.draw_plot(f"{records.name}-claims", caption, 1, paint, notice, 4.4)


def _bound(entry: CellEntry) -> float:
    return entry.metrics["epsilon_lower_bound"]


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
