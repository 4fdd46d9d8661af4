"""Node classification: accuracy against ε, one line for each level of trust."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from fedgraph.cells.entry import Entry
from fedgraph.cells.facts import NodeClassificationFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption
from fedgraph.report import accuracy_curves, attacks, beyond_accuracy, charts, plots, printed_numbers, traffic
from fedgraph.report.report_rows import Row, averaged_over, group_rows, mean_spread, rounded, rounded_up
from fedgraph.report.sections.base import Records, Section, Table
from fedgraph.worlds.world import Kind

KINDS = ("node_classification",)  # the tasks that this section speaks of


ASKED = {
    "inductive": "on the public test graph",
    "asking": "of nodes that ask with their own row and edges, where a method uses them, and stay private",
    "transductive": "on the unlabelled nodes of the graph whose edges are private (features and labels are public)",
    "inductive-edges": "on the public test graph (of the training graph, only the edges are private)",
}


PARTS = (
    "The graph was cut into nine balanced parts; seven train, one tests, one is dropped (the split of DPAR's released code). "
    "Parts are communities: training and test differ in their classes, and the test graph keeps most of its edges."
)


def build(records: Records, notice: str | None) -> Section:
    """Table of accuracies, and one panel per learner."""
    rows = group_rows(records.entries)
    every = [e.facts_as(NodeClassificationFacts) for e in records.entries]
    facts = next((f for f, e in zip(every, records.entries, strict=True) if e.world.kind is not Kind.WHOLE), every[0])
    seeds = len({e.seed for e in records.entries})
    protocol, known = facts.protocol, facts.public
    where = ASKED[protocol]
    if protocol == "inductive" and known != "test-graph":
        where = "of private test nodes, each from its own row"
    sentences = [
        f"{facts.train_nodes} training nodes; test accuracy {where}, {averaged_over(seeds)}.",
        *beyond_accuracy.describe_majority(rows),
        *([] if known == "test-graph" else [f"Public: {known}."]),
    ]
    if facts.split == "parts":
        sentences.append(PARTS)
    if (facts.clients or 0) > 1:
        shared = facts.cut_edges_shared
        known = "are known to both, and protected at both ends" if shared else "are held by nobody"
        sentences.append(
            f"Federated: {facts.clients} disjoint clients ({facts.partition}); {facts.cut_edges} edges run "
            f"between clients and {known}."
        )
    sentences += traffic.describe_traffic(every)
    sentences += attacks.describe_attacks(rows, records.among)
    tables = [
        _accuracies(rows),
        *beyond_accuracy.tabulate_measures(rows),
        *_best_edge_level(rows),
        *_against_papers(rows),
        _privacy(rows, records.among),
    ]
    grown = accuracy_curves.figures(records.name, records.entries, notice)
    figures = (*_figures(records, rows, notice), *grown, *_maps(records, notice))
    return Section(tuple(sentences), tuple(tables), figures)


def _accuracies(rows: Sequence[Row]) -> Table:
    """Learner × setting down, budget across."""
    budgets = sorted({(r.head.epsilon, r.head.calibrated_by) for r in rows})
    body = []
    for learner, world in dict.fromkeys((_name(r), r.head.world) for r in rows):
        own = {(r.head.epsilon, r.head.calibrated_by): r for r in rows if (_name(r), r.head.world) == (learner, world)}
        body.append((learner, world.trust.title, *(mean_spread(own[b], "accuracy") if b in own else "" for b in budgets)))
    readings = {reading for epsilon, reading in budgets if math.isfinite(epsilon)}
    header = tuple(
        f"ε = {rounded(e)}" + (f" ({reading})" if len(readings) > 1 and math.isfinite(e) else "") for e, reading in budgets
    )
    return Table(
        "Test accuracy", ("learner", "trust", *header), tuple(body), "ε as targeted; what it means for each row is below."
    )


def _against_papers(rows: Sequence[Row]) -> list[Table]:
    """Our means beside printed ones, and the difference in standard errors; nothing where no paper printed any."""
    body = []
    for row in rows:
        unit = row.protection.unit.value
        printed = printed_numbers.find(row.head.dataset, row.head.method, row.head.variant, row.head.epsilon, "accuracy", unit)
        if printed is None:
            continue
        mean, values = row.mean("accuracy"), row.values("accuracy")
        errors = printed_numbers.in_standard_errors(mean, row.deviation("accuracy"), len(values), printed.value)
        away = "—" if errors is None else f"{errors:+.1f}"
        prices = (rounded(row.published, 2), rounded_up(row.provable, 2))
        ours = (mean_spread(row, "accuracy"), f"{printed.value:.4f}", f"{mean - printed.value:+.3f}", away)
        body.append(
            (
                _name(row),
                row.head.world.trust.title,
                rounded(row.head.epsilon),
                row.head.calibrated_by,
                *ours,
                *prices,
                printed.source,
            )
        )
    if not body:
        return []
    header = ("learner", "trust", "ε", "noise chosen for", "ours", "printed", "difference", "in standard errors", "ε published", "ε provable", "source")  # fmt: skip  # noqa: E501
    note = "Standard errors of our mean over seeds; the papers print no spread, so theirs is not in it."
    return [Table("Beside the published numbers", header, tuple(body), note)]


def _best_edge_level(rows: Sequence[Row]) -> list[Table]:
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
            cells += (
                ["—", "—", "—"] if best is None else [_name(best), mean_spread(best, "accuracy"), rounded_up(best.provable, 2)]
            )
        body.append((trust.title, rounded(epsilon), *cells))
    if len({_name(r) for r in kept}) < 2:
        return []
    header = ("trust", "ε", "best", "accuracy", "ε provable", "best that reads no own edges", "accuracy", "ε provable")
    note = "Picked by test accuracy among the rows above, so optimistic where rows are close."
    return [Table("Best at a provable ε, edge level", header, tuple(body), note)]


def _privacy(rows: Sequence[Row], among: int) -> Table:
    body = []
    for row in rows:
        protection = row.protection
        prices = (rounded(row.published, 2), rounded_up(row.provable, 2), attacks.printed_bound(row))
        body.append(
            (
                _name(row),
                row.head.world.trust.title,
                rounded(row.head.epsilon),
                *prices,
                protection.unit.value,
                protection.relation.value,
            )
        )
    header = ("learner", "trust", "target ε", "ε published", "ε provable", "ε measured", "unit", "neighbouring relation")
    note = f"δ = {rows[0].head.delta:.3g} throughout. ∞: nothing is guaranteed. —: no claim, or not measured."
    note = " ".join([*attacks.contradictions(rows, among), note])
    return Table("Privacy of every row", header, tuple(body), note, on_page=False)


def _name(row: Row) -> str:
    return f"{row.head.method} · {row.head.variant}"


def _figures(records: Records, rows: Sequence[Row], notice: str | None) -> tuple[plots.Figure, ...]:
    learners = list(dict.fromkeys((r.head.method, r.head.variant) for r in rows if len(_budgets(rows, r)) > 1))
    if not learners:
        return ()
    levels = [
        (f"no privacy: {r.head.variant}, curator", r.mean("accuracy"))
        for r in rows
        if r.head.world.trust is Trust.CURATOR and math.isinf(r.head.epsilon) and len(_budgets(rows, r)) == 1
    ]

    panels = [
        charts.Panel(
            f"{method} · {variant}",
            "test accuracy",
            tuple(_lines([r for r in rows if (r.head.method, r.head.variant) == (method, variant)])),
            tuple(levels),
        )
        for method, variant in learners
    ]
    caption = "Test accuracy against ε, one line for each level of trust. Error bars: standard deviation over seeds."
    return charts.draw(f"{records.name}-accuracy", caption, panels, notice, shared=True)


def _lines(own: Sequence[Row]) -> list[charts.Series]:
    """One line for each level of trust and each reading of ε that noise was chosen for; ∞ belongs to all of them."""
    readings = list(dict.fromkeys(r.head.calibrated_by for r in own if math.isfinite(r.head.epsilon))) or ["none"]
    lines = []
    for trust in dict.fromkeys(r.head.world.trust for r in own):
        for reading in readings:
            line = [r for r in own if r.head.world.trust is trust and r.head.calibrated_by in (reading, "none")]
            line.sort(key=lambda r: r.head.epsilon)
            label = trust.title + (f", noise as {reading}" if len(readings) > 1 else "")
            lines.append(charts.over_budgets(label, line, "accuracy"))
    return lines


def _maps(records: Records, notice: str | None) -> tuple[plots.Figure, ...]:
    """One panel per mapped cell of the first seed; every learner has its own figure."""
    mapped: dict[tuple[str, str, Trust], list[tuple[Entry, dict[str, np.ndarray]]]] = {}
    for entry, arrays in zip(records.entries, records.artefacts, strict=True):
        if "map" in arrays:
            mapped.setdefault((entry.method, entry.variant, entry.world.trust), []).append((entry, arrays))
    found = []
    for (method, variant, trust), cells in mapped.items():

        def paint(axes: list[Axes], cells: list[tuple[Entry, dict[str, np.ndarray]]] = cells) -> None:
            for ax, (entry, arrays) in zip(axes, cells, strict=True):
                apart = rounded(entry.metrics.get("silhouette", math.nan), 3)
                reading = f" ({entry.calibrated_by})" if math.isfinite(entry.epsilon) else ""
                title = f"ε = {rounded(entry.epsilon)}{reading}, silhouette {apart}"
                plots.scatter(ax, arrays["map"], arrays["classes"], title, "class")

        caption = (
            f"{method} · {variant}, {trust.title}: t-SNE of the class scores that the trained model gives the training "
            "nodes (at most 1,000), coloured by true class; silhouette of the classes, 1 apart, 0 mixed. It reads private "
            "data: for the eyes of the data's holder."
        )
        tag = f"{method}-{variant}-{trust.value}".replace("/", "-").replace(" ", "-")
        found.append(plots.draw(f"{records.name}-map-{tag}", caption, len(cells), paint, notice, height=3.6))
    return tuple(found)


def _budgets(rows: Sequence[Row], of: Row) -> set[float]:
    return {r.head.epsilon for r in rows if (r.head.method, r.head.variant) == (of.head.method, of.head.variant)}
