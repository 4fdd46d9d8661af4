"""Node classification: accuracy against ε, one line for each level of trust."""

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from fedgraph.cells import CellEntry, NodeClassificationCellFacts
from fedgraph.privacy import Assumption, Trust
from fedgraph.report import attack_bounds, charts, plots, printed_numbers
from fedgraph.report.phrases import fill_phrase, phrase_average, phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.report_rows import ReportRow, format_row_mean, group_report_rows
from fedgraph.report.result_files import read_result_curve
from fedgraph.report.sections import base
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section
from fedgraph.worlds import WorldKind

_PART = "node_classification"
KINDS = (_PART,)  # the tasks that this section speaks of

_ASKED = read_phrases()["asked_nodes"]


def build(records: SectionRecords, notice: str | None) -> Section:
    """Table of accuracies, and one panel per learner."""
    rows = group_report_rows(records.entries)
    every = [e.facts_as(NodeClassificationCellFacts) for e in records.entries]
    facts = next((f for f, e in zip(every, records.entries, strict=True) if e.world.kind is not WorldKind.WHOLE), every[0])
    seeds = len({e.seed for e in records.entries})
    protocol, known = facts.protocol, facts.public
    where = _ASKED[protocol]
    if protocol == "inductive" and known != "test-graph":
        where = "of private test nodes, each from its own row"
    where = where.replace("nodes", f"{facts.one}s")
    sentences = [
        f"{facts.train_nodes} training {facts.one}s; test accuracy {where}, {phrase_average(seeds)}.",
        *base.describe_section_majority(rows),
        *([] if known == "test-graph" else [f"Public: {known}."]),
    ]
    if facts.split == "parts":
        sentences.append(fill_phrase(_PART, "parts"))
    if (facts.clients or 0) > 1:
        shared = facts.cut_edges_shared
        known = "are known to both, and protected at both ends" if shared else "are held by nobody"
        sentences.append(fill_phrase(_PART, "federated", facts=facts, known=known))
    sentences += _describe_traffic(every)
    sentences += attack_bounds.explain_attack_bounds(rows, records.among)
    tables = [_accuracies(rows), *base.tabulate_section_measures(rows), *_best_edge_level(rows), *_against_papers(rows)]
    tables.append(_privacy(rows, records.among))
    grown = _curves(records.name, records.entries, notice)
    figures = (*_figures(records, rows, notice), *grown, *_maps(records, notice))
    return Section(tuple(sentences), tuple(tables), figures)


def _accuracies(rows: Sequence[ReportRow]) -> SectionTable:
    budgets = sorted({(r.head.epsilon, r.head.calibrated_by) for r in rows})
    body = []
    for learner, world in dict.fromkeys((r.name, r.head.world) for r in rows):
        own = {(r.head.epsilon, r.head.calibrated_by): r for r in rows if (r.name, r.head.world) == (learner, world)}
        body.append((learner, world.trust.title, *(format_row_mean(own[b], "accuracy") if b in own else "" for b in budgets)))
    readings = {reading for epsilon, reading in budgets if math.isfinite(epsilon)}
    named = [(phrase_number(e), f" ({reading})" if len(readings) > 1 and math.isfinite(e) else "") for e, reading in budgets]
    header = ("learner", "trust", *(f"ε = {budget}{reading}" for budget, reading in named))
    return SectionTable("Test accuracy", header, tuple(body), "ε as targeted; what it means for each row is below.")


def _against_papers(rows: Sequence[ReportRow]) -> list[SectionTable]:
    found = []
    for row in rows:
        named = (row.head.dataset, row.head.method, row.head.variant, row.head.epsilon)
        printed = printed_numbers.find_printed_number(*named, "accuracy", row.protection.unit.value)
        if printed is not None:
            found.append((row, printed, *printed_numbers.compare_printed_number(row, "accuracy", printed)))
    columns: dict[str, Callable[[tuple[ReportRow, printed_numbers.PrintedNumber, str, str]], str]] = {
        "learner": lambda one: one[0].name,
        "trust": lambda one: one[0].head.world.trust.title,
        "ε": lambda one: phrase_number(one[0].head.epsilon),
        "noise chosen for": lambda one: one[0].head.calibrated_by,
        "ours": lambda one: format_row_mean(one[0], "accuracy"),
        "printed": lambda one: f"{one[1].value:.4f}",
        "difference": lambda one: one[2],
        "in standard errors": lambda one: one[3],
        "ε published": lambda one: phrase_number(one[0].published, 2),
        "ε provable": lambda one: phrase_upper_bound(one[0].provable, 2),
        "source": lambda one: one[1].source,
    }
    return [tabulate_section("Beside the published numbers", found, columns, fill_phrase(_PART, "beside"))] if found else []


def _best_edge_level(rows: Sequence[ReportRow]) -> list[SectionTable]:
    """At each ε the best edge-level row that provably keeps it, with and without a node's use of its own edges."""
    kept = [r for r in rows if r.protection.unit.value == "edge" and r.provable <= r.head.epsilon * (1 + 1e-9) < math.inf]
    body = []
    asked = {(r.head.world.trust, float(r.head.epsilon)) for r in kept}
    for trust, epsilon in sorted(asked, key=lambda one: (-one[0].rank, one[1])):
        here = [r for r in kept if (r.head.world.trust, r.head.epsilon) == (trust, epsilon)]
        without = [r for r in here if Assumption.OWN_EDGES_KNOWN not in r.protection.assumptions]
        cells = []
        for among in (here, without):
            best = max(among, key=lambda r: r.mean("accuracy"), default=None)
            if best is None:
                cells += ["—"] * 3
            else:
                cells += [best.name, format_row_mean(best, "accuracy"), phrase_upper_bound(best.provable, 2)]
        body.append((trust.title, phrase_number(epsilon), *cells))
    if len({r.name for r in kept}) < 2:
        return []
    header = ("trust", "ε", "best", "accuracy", "ε provable", "best that reads no own edges", "accuracy", "ε provable")
    note = "Picked by test accuracy among the rows above, so optimistic where rows are close."
    return [SectionTable("Best at a provable ε, edge level", header, tuple(body), note)]


def _privacy(rows: Sequence[ReportRow], among: int) -> SectionTable:
    columns: dict[str, Callable[[ReportRow], str]] = {
        "learner": lambda r: r.name,
        "trust": lambda r: r.head.world.trust.title,
        "target ε": lambda r: phrase_number(r.head.epsilon),
        "ε published": lambda r: phrase_number(r.published, 2),
        "ε provable": lambda r: phrase_upper_bound(r.provable, 2),
        "ε measured": attack_bounds.format_attack_bound,
        "unit": lambda r: r.protection.unit.value,
        "neighbouring relation": lambda r: r.protection.relation.value,
    }
    note = f"δ = {rows[0].head.delta:.3g} throughout. ∞: nothing is guaranteed. —: no claim, or not measured."
    note = " ".join([*attack_bounds.find_contradicting_attack_bounds(rows, among), note])
    return tabulate_section("Privacy of every row", rows, columns, note, on_page=False)


def _figures(records: SectionRecords, rows: Sequence[ReportRow], notice: str | None) -> tuple[plots.PlotFigure, ...]:
    learners = list(dict.fromkeys((r.head.method, r.head.variant) for r in rows if len(_budgets(rows, r)) > 1))
    if not learners:
        return ()
    levels = [
        (f"no privacy: {r.head.variant}, curator", r.mean("accuracy"))
        for r in rows
        if r.head.world.trust is Trust.CURATOR and math.isinf(r.head.epsilon) and len(_budgets(rows, r)) == 1
    ]

    panels = []
    for learner in learners:
        lines = _lines([r for r in rows if (r.head.method, r.head.variant) == learner])
        panels.append(charts.ChartPanel(" · ".join(learner), "test accuracy", tuple(lines), tuple(levels)))
    return charts.draw_chart(f"{records.name}-accuracy", fill_phrase(_PART, "figure"), panels, notice, shared=True)


def _lines(own: Sequence[ReportRow]) -> list[charts.ChartSeries]:
    readings = list(dict.fromkeys(r.head.calibrated_by for r in own if math.isfinite(r.head.epsilon))) or ["none"]
    lines = []
    for trust in dict.fromkeys(r.head.world.trust for r in own):
        for reading in readings:
            line = [r for r in own if r.head.world.trust is trust and r.head.calibrated_by in (reading, "none")]
            line.sort(key=lambda r: r.head.epsilon)
            label = trust.title + (f", noise as {reading}" if len(readings) > 1 else "")
            lines.append(charts.chart_over_budgets(label, line, "accuracy"))
    return lines


def _maps(records: SectionRecords, notice: str | None) -> tuple[plots.PlotFigure, ...]:
    mapped: dict[tuple[str, str, Trust], list[tuple[CellEntry, dict[str, np.ndarray]]]] = {}
    for entry, arrays in zip(records.entries, records.artefacts, strict=True):
        if "map" in arrays:
            mapped.setdefault((entry.method, entry.variant, entry.world.trust), []).append((entry, arrays))
    found = []
    for (method, variant, trust), cells in mapped.items():
        panels = []
        for entry, arrays in cells:
            apart = phrase_number(entry.metrics.get("silhouette", math.nan), 3)
            reading = f" ({entry.calibrated_by})" if math.isfinite(entry.epsilon) else ""
            title = f"ε = {phrase_number(entry.epsilon)}{reading}, silhouette {apart}"
            panels.append(plots.plot_scatter(arrays["map"], arrays["classes"], title, "class"))
        caption = fill_phrase(_PART, "map", row=f"{method} · {variant}", trust=trust.title)
        tag = f"{method}-{variant}-{trust.value}".replace("/", "-").replace(" ", "-")
        found.append(plots.PlotFigure(f"{records.name}-map-{tag}", caption, tuple(panels), notice, live=False))
    return tuple(found)


def _budgets(rows: Sequence[ReportRow], of: ReportRow) -> set[float]:
    return {r.head.epsilon for r in rows if (r.head.method, r.head.variant) == (of.head.method, of.head.variant)}


def _curves(name: str, entries: Sequence[CellEntry], notice: str | None) -> tuple[plots.PlotFigure, ...]:
    drawn = [e for e in entries if read_result_curve(e)]
    panels = []
    for learner in dict.fromkeys((e.method, e.variant) for e in drawn):
        own = [e for e in drawn if (e.method, e.variant) == learner]
        lines = []
        for world, epsilon in dict.fromkeys((e.world, e.epsilon) for e in own):
            values: dict[float, list[float]] = {}
            for e in own:
                if (e.world, e.epsilon) == (world, epsilon):
                    for round_, accuracy in read_result_curve(e):
                        values.setdefault(float(round_), []).append(accuracy)
            means = [statistics.fmean(v) for v in values.values()]
            spread = [statistics.stdev(v) if len(v) > 1 else 0.0 for v in values.values()]
            keys = (f"ε = {phrase_number(epsilon)}", world.words)
            lines.append(charts.ChartSeries(", ".join(keys), list(values), means, spread, keys))
        title = " · ".join(dict.fromkeys(learner))
        panels.append(charts.ChartPanel(title, "test accuracy", tuple(lines), xlabel="rounds", heads=("Budget", "Trust")))
    return charts.draw_chart(f"{name}-curves", fill_phrase(_PART, "curves"), panels, notice, shared=True)


def _describe_traffic(facts: Sequence[NodeClassificationCellFacts]) -> list[str]:
    """What travelled between clients and server, who answered, and how long that takes. Nothing for cells without messages."""
    sent = [(f.sent, f.rounds) for f in facts if f.sent is not None and f.sent.up]
    if not sent:
        return []
    most, rounds = max(sent, key=lambda s: (s[0].up + s[0].down) * s[1])
    times = "; ".join(f"{name} {_time(most.seconds[name])} ({words})" for name, words in most.links.items())
    found = [fill_phrase(_PART, "travels", rounds=rounds, down=most.down, up=most.up, times=times)]
    some = next((f for f in facts if f.sent is not None and f.sent.answering is not None), None)
    if some is not None and some.sent is not None:
        found.append(fill_phrase(_PART, "partial", answering=some.sent.answering, clients=some.clients))
    return found


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
