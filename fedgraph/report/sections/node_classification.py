"""Node classification: who trained, what was asked, numbers beyond accuracy, curves over rounds, maps of nodes."""

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from fedgraph.cells import NodeClassificationCellFacts, Result
from fedgraph.privacy import Trust
from fedgraph.report import attack_bounds, charts, plots, printed_numbers
from fedgraph.report.phrases import fill_phrase, phrase_average, phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.rows import Row, format_row_mean, group_rows
from fedgraph.report.sections import base
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section
from fedgraph.worlds import WorldKind

_PART = "node_classification"
KINDS = (_PART,)  # the tasks that this section speaks of

_ASKED = read_phrases()["asked_nodes"]


def build(records: SectionRecords, notice: str | None) -> Section:
    """What the page says beside the answer and the table of all rows."""
    rows = group_rows(records.entries)
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
    tables = (*base.tabulate_section_measures(rows), *_against_papers(rows))
    return Section(tuple(sentences), tables, (*_curves(records.name, records.entries, notice), *_maps(records, notice)))


def _against_papers(rows: Sequence[Row]) -> list[SectionTable]:
    found = []
    for row in rows:
        named = (row.head.dataset, row.head.method, row.head.variant, row.head.epsilon)
        printed = printed_numbers.find_printed_number(*named, "accuracy", row.protection.unit.value)
        if printed is not None:
            found.append((row, printed, *printed_numbers.compare_printed_number(row, "accuracy", printed)))
    columns: dict[str, Callable[[tuple[Row, printed_numbers.PrintedNumber, str, str]], str]] = {
        "learner": lambda one: one[0].who,
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


def _maps(records: SectionRecords, notice: str | None) -> tuple[plots.PlotFigure, ...]:
    mapped: dict[tuple[str, str, Trust], list[tuple[Result, dict[str, np.ndarray]]]] = {}
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


def _curves(name: str, entries: Sequence[Result], notice: str | None) -> tuple[plots.PlotFigure, ...]:
    drawn = [e for e in entries if e.facts_as(NodeClassificationCellFacts).curve]
    panels = []
    for learner in dict.fromkeys((e.method, e.variant) for e in drawn):
        own = [e for e in drawn if (e.method, e.variant) == learner]
        lines = []
        for world, epsilon in dict.fromkeys((e.world, e.epsilon) for e in own):
            values: dict[float, list[float]] = {}
            for e in own:
                if (e.world, e.epsilon) == (world, epsilon):
                    for round_, accuracy in e.facts_as(NodeClassificationCellFacts).curve:
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
