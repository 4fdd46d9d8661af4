"""Graph clustering: scores against ε beside the size-only row, the distance matrix, a map of the clusters."""

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedgraph.cells import GraphClusteringCellFacts, Result
from fedgraph.report import attack_bounds, charts, plots, printed_numbers
from fedgraph.report.phrases import fill_phrase, phrase_count, phrase_number, phrase_upper_bound
from fedgraph.report.rows import Row, format_row_mean, group_rows
from fedgraph.report.sections import base
from fedgraph.report.sections.base import SECTION_ENCODERS, Section, SectionRecords, SectionTable, tabulate_section

KINDS = ("graph_clustering",)  # the tasks that this section speaks of

_METRICS = {"ari": "ARI", "nmi": "NMI", "purity": "purity", "silhouette": "silhouette", "spectral_ari": "ARI, spectral"}
_ASKED = {"accuracy": "accuracy, SVM", "knn5": "accuracy, 5 nearest"}
_HOW = {"gw": "GW", "fgw": "FGW", "mean": "distance of mean rows", "histogram": "distance of histograms"}


def build(records: SectionRecords, notice: str | None) -> Section:
    """Scores, losses per path, and what the geometry looks like."""
    rows = group_rows(records.entries)
    facts = records.entries[0].facts_as(GraphClusteringCellFacts)
    seeds = phrase_count(len({e.seed for e in records.entries}), "seed")
    sentences = (
        fill_phrase("graph_clustering", "clients", facts=facts, seeds=seeds),
        fill_phrase("graph_clustering", "sizes"),
        *base.describe_section_solver([e.facts_as(GraphClusteringCellFacts).solver for e in records.entries], records.settings),
        *attack_bounds.explain_attack_bounds(rows, records.among),
    )
    return Section(sentences, (_table(rows), *_beside(records, rows)), _figures(records, rows, notice))


def _table(rows: Sequence[Row]) -> SectionTable:
    asked = {m: title for m, title in _ASKED.items() if any(m in r.head.metrics for r in rows)}
    columns: dict[str, Callable[[Row], str]] = {
        "what is released": _name,
        "unit": lambda r: r.protection.unit.value,
        "target ε": lambda r: (
            "none" if not r.head.paths else "no noise" if math.isinf(r.head.epsilon) else phrase_number(r.head.epsilon)
        ),
        **{title: functools.partial(format_row_mean, metric=metric) for metric, title in (_METRICS | asked).items()},
        "mean GW": functools.partial(format_row_mean, metric="gw_mean"),
        "± over pairs": lambda r: phrase_number(r.mean_of("gw_spread")),
        "ε published": lambda r: phrase_number(r.published, 2),
        "ε provable: embedding": lambda r: phrase_upper_bound(r.path("embedding"), 2) if "embedding" in r.head.paths else "—",
        "ε provable: model path": lambda r: (
            phrase_upper_bound(r.path("model"), 2) if "model" in r.head.paths else "nothing sent" if r.head.paths else "—"
        ),
        "ε provable: all": lambda r: phrase_upper_bound(r.provable, 2),
        "ε measured": attack_bounds.format_attack_bound,
    }
    note = fill_phrase("graph_clustering", "table") + " " + (fill_phrase("graph_clustering", "asked") if asked else "")
    return tabulate_section("Clusters and privacy", rows, columns, note)


def _beside(records: SectionRecords, rows: Sequence[Row]) -> list[SectionTable]:
    """What Jin & Chen print of ego-networks (Table 4) and of pairs among five of them (Figure 4), where it is asked here."""
    asked = records.settings.get("partition")
    if not isinstance(asked, Mapping) or asked.get("partition") != "ego":
        return []
    hops = f"{asked.get('hops', 1)}-hop"
    facts = records.entries[0].facts_as(GraphClusteringCellFacts)
    body: list[tuple[str, ...]] = []
    means = {"mean nodes": facts.mean_nodes, "mean edges": facts.mean_edges, "mean degree": facts.mean_degree}
    for (metric, ours), error in zip(means.items(), facts.standard_errors, strict=True):
        printed = printed_numbers.find_printed_number(records.dataset, "ego", hops, math.inf, metric)
        if printed and asked.get("centres") == "training":
            away = f"{(ours - printed.value) / error:+.1f}" if error else "—"
            numbers = (f"{ours:.2f} ± {error:.2f}", f"{printed.value:g}", f"{ours - printed.value:+.2f}", away)
            body.append((f"{metric}, {hops}", *numbers, printed.source))
    # Rows at ε = 1/n joined: what names their cells is the largest ε, and so the smallest graph, of each seed.
    joined: dict[tuple[object, ...], list[Result]] = {}
    for row in rows:
        each = _facts(row).rule == "1/n"
        joined.setdefault((row.head.method, row.head.variant, None if each else row.head.epsilon), []).extend(row.results)
    for row in (Row(tuple(entries), "") for entries in joined.values()):
        among = f"{asked.get('clients')} of {hops}"
        at = printed_numbers.PRINTED_PER_GRAPH if _facts(row).rule == "1/n" else row.head.epsilon
        printed = printed_numbers.find_printed_number(records.dataset, str(row.head.method), among, at, "gw_mean")
        if printed and row.values("gw_mean"):
            mean = f"{row.mean_of('gw_mean'):.3f} ± {row.mean_of('gw_spread'):.3f}"
            apart = printed_numbers.compare_printed_number(row, "gw_mean", printed)
            coded = SECTION_ENCODERS[_facts(row).encoder]
            rule = "1/n" if at == printed_numbers.PRINTED_PER_GRAPH else at
            name = _name(row) + ("" if math.isinf(at) else f", {coded}, ε = {rule}")
            body.append((name, mean, f"{printed.value:g} ± {printed.spread:g}", *apart, printed.source))
    header = ("what", "ours", "printed", "difference", "in standard errors", "source")
    note = fill_phrase("graph_clustering", "beside")
    return [SectionTable("Beside the published numbers", header, tuple(body), note)] if body else []


def _facts(row: Row) -> GraphClusteringCellFacts:
    return row.head.facts_as(GraphClusteringCellFacts)


def _name(row: Row) -> str:
    if not row.head.paths:
        return str(row.head.method)
    facts, clear = _facts(row), math.isinf(row.head.epsilon)
    compared = _HOW[facts.how]
    rule = ", ε = 1/n" if facts.rule == "1/n" else ""
    if not facts.label:
        return f"{compared} of the embedding, {'in clear' if clear else SECTION_ENCODERS[facts.encoder] + rule}"
    return f"{facts.label}: {compared}{', in clear' if clear else rule}"


def _figures(records: SectionRecords, rows: Sequence[Row], notice: str | None) -> tuple[plots.PlotFigure, ...]:
    encoded = sorted((r for r in rows if r.head.paths), key=lambda r: r.head.epsilon)
    panels = _discrepancies(encoded)
    caption = fill_phrase("graph_clustering", "figure")
    found = [*charts.draw_chart(f"{records.name}-scores", caption, panels, notice)]
    for entry, arrays in zip(records.entries, records.artefacts, strict=True):
        by_geometry = entry.facts_as(GraphClusteringCellFacts).how == "gw"
        if "distances" in arrays and by_geometry and (math.isinf(entry.epsilon) or entry.epsilon == encoded[0].head.epsilon):
            tag = "" if entry.variant == "encoded" else "-" + re.sub("[^A-Za-z0-9]+", "-", entry.variant)
            how = "t-SNE" if records.settings.get("map") == "tsne" else "classical-MDS"
            found.append(_geometry(records.name + tag, entry.epsilon, arrays, how, notice))
            if "coupling" in arrays:
                found.append(_matched(records.name + tag, entry.epsilon, arrays, notice))
    return tuple(found)


def _discrepancies(encoded: Sequence[Row]) -> list[charts.ChartPanel]:
    """The mean discrepancy of all pairs against ε (Figures 5 and 8 to 10), one panel an encoder, for they differ by orders."""
    rows = [r for r in encoded if r.values("gw_mean")]
    clear = tuple(("no encoding", r.mean_of("gw_mean")) for r in rows if math.isinf(r.head.epsilon))[:1]
    found = []
    for variant in dict.fromkeys(_encoder(r) for r in rows if math.isfinite(r.head.epsilon)):
        own = [r for r in rows if _encoder(r) == variant and math.isfinite(r.head.epsilon)]
        line = charts.chart_over_budgets(variant, own, "gw_mean")
        found.append(charts.ChartPanel("mean GW of pairs", "mean discrepancy", (line,), clear))
    return found


def _encoder(row: Row) -> str:
    facts = _facts(row)
    what = facts.label or facts.encoder.replace("multi-bit", "multi-bit encoder")
    return f"{what}, {_HOW[facts.how]}"


def _budget(epsilon: float) -> tuple[str, str]:
    return ("no encoding", "clear") if math.isinf(epsilon) else (f"ε = {epsilon:g}", f"eps{epsilon:g}")


def _matched(name: str, epsilon: float, arrays: dict[str, np.ndarray], notice: str | None) -> plots.PlotFigure:
    what, tag = _budget(epsilon)
    one, two = arrays["matched"].tolist()
    coupling = arrays["coupling"]
    order = np.argsort(coupling @ np.arange(coupling.shape[1]) / coupling.sum(axis=1), kind="stable")

    down = f"nodes of client {one}, ordered by what they meet"
    panels = (
        plots.plot_heatmap(coupling[order], f"coupling T of clients {one} and {two}, {what}", f"nodes of client {two}", down),
        plots.plot_matching(arrays["places_one"], arrays["places_two"], coupling, (f"client {one}", f"client {two}")),
    )
    caption = (
        f"What Gromov-Wasserstein matched, {what}, first seed: the coupling of the two largest clients. Places are maps of the "
        "released rows' distances; a line is as dark as the mass that it carries."
    )
    return plots.PlotFigure(f"{name}-matched-{tag}", caption, panels, notice, live=False)


def _geometry(name: str, epsilon: float, arrays: dict[str, np.ndarray], how: str, notice: str | None) -> plots.PlotFigure:
    order = np.lexsort((arrays["truth"], arrays["clusters"]))
    edges = np.flatnonzero(np.diff(arrays["clusters"][order])) + 1
    what, tag = _budget(epsilon)

    matrix, across = arrays["distances"][np.ix_(order, order)], "client graphs, by cluster"
    panels = (
        plots.plot_heatmap(matrix, f"GW distance matrix, {what}", across, "", edges.tolist()),
        plots.plot_scatter(arrays["map"], arrays["clusters"], "clusters (2-D map of the distances)", "cluster"),
        plots.plot_scatter(arrays["map"], arrays["truth"], "label of the centre node", "class"),
    )
    caption = f"Pairwise Gromov-Wasserstein discrepancies and their {how} map, {what}, first seed."
    return plots.PlotFigure(f"{name}-geometry-{tag}", caption, panels, notice, live=False)
