"""Graph clustering: scores against ε beside the size-only row, the distance matrix, a map of the clusters."""

import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from fedgraph.cells.facts import GraphClusteringFacts
from fedgraph.report import attacks, charts, plots
from fedgraph.report.report_rows import Row, group_rows, mean_spread, rounded, rounded_up
from fedgraph.report.sections.base import ENCODERS, Records, Section, Table, describe_solver

KINDS = ("graph_clustering",)  # the tasks that this section speaks of

METRICS = ("ari", "nmi", "purity", "silhouette")
ASKED = {"accuracy": "accuracy, SVM", "knn5": "accuracy, 5 nearest"}
HOW = {"gw": "GW", "fgw": "FGW", "mean": "distance of mean rows", "histogram": "distance of histograms"}


def build(records: Records, notice: str | None) -> Section:
    """Scores, losses per path, and what the geometry looks like."""
    rows = group_rows(records.entries)
    facts = records.entries[0].facts_as(GraphClusteringFacts)
    seeds = len({e.seed for e in records.entries})
    sentences = (
        f"{facts.clients} clients ({facts.partition}), {facts.mean_nodes:.2f} nodes and {facts.mean_edges:.2f} "
        f"edges on average; {seeds} seed{'s' if seeds > 1 else ''}. Scores compare clusters with the label of each centre "
        "node, which the simulator knows and the server does not.",
        "The number of nodes of every released graph is public, so a release has shown something only above the rows "
        "“graph size” and “constant embedding” (the encoder on ½ everywhere). “size and degrees” is raw data: its ε is ∞.",
        *describe_solver([e.facts_as(GraphClusteringFacts).solver for e in records.entries]),
        *attacks.describe_attacks(rows, records.among),
    )
    return Section(sentences, (_table(rows),), _figures(records, rows, notice))


def _table(rows: Sequence[Row]) -> Table:
    body = []
    asked = [m for m in ("accuracy", "knn5") if any(m in r.entries[0].metrics for r in rows)]
    for row in rows:
        paths = row.head.paths
        embedding = rounded_up(row.path("embedding"), 2) if "embedding" in paths else "—"
        model = rounded_up(row.path("model"), 2) if "model" in paths else "nothing sent" if paths else "—"
        target = "none" if not paths else "no noise" if math.isinf(row.head.epsilon) else rounded(row.head.epsilon)
        scores = tuple(mean_spread(row, m) for m in (*METRICS, "spectral_ari", *asked))
        prices = (rounded(row.published, 2), embedding, model, rounded_up(row.provable, 2), attacks.printed_bound(row))
        body.append((_name(row), row.protection.unit.value, target, *scores, *prices))
    header = (
        "what is released", "unit", "target ε", "ARI", "NMI", "purity", "silhouette", "ARI, spectral",
        *(ASKED[m] for m in asked), "ε published", "ε provable: embedding", "ε provable: model path", "ε provable: all",
        "ε measured",
    )  # fmt: skip
    note = (
        "“ε = 1/n”: each graph its own, the largest is shown. Unit graph: all of one client. Unit node: ego-networks overlap, "
        "and the worst node's loss is the sum over all clients that hold it. With FedAvg in clear the target is each graph's, "
        "as published, and leaves the updates out; elsewhere it covers everything that is released. "
    )
    if asked:
        note += "Accuracies: five folds; the labels of the other four are given to the server."
    return Table("Clusters and privacy", header, tuple(body), note)


def _name(row: Row) -> str:
    """What is released and how it is compared."""
    if not row.head.paths:
        return str(row.head.method)
    facts, clear = row.head.facts_as(GraphClusteringFacts), math.isinf(row.head.epsilon)
    compared = HOW[facts.how]
    if not facts.label:
        rule = ", ε = 1/n" if facts.rule == "1/n" else ""
        return f"{compared} of the embedding, {'in clear' if clear else ENCODERS[facts.encoder] + rule}"
    return f"{facts.label}: {compared}{', in clear' if clear else ''}"


def _figures(records: Records, rows: Sequence[Row], notice: str | None) -> tuple[plots.Figure, ...]:
    encoded = sorted((r for r in rows if r.head.paths), key=lambda r: r.head.epsilon)
    size_only = next((r for r in rows if not r.head.paths), None)

    panels = []
    for metric in ("ari", "nmi", "purity"):
        lines = []
        for variant in dict.fromkeys(_encoder(r) for r in encoded):
            own = [r for r in encoded if _encoder(r) == variant]
            lines.append(charts.over_budgets(variant, own, metric))
        levels = (("graph size only", size_only.mean(metric)),) if size_only else ()
        panels.append(charts.Panel(metric.upper() if metric != "purity" else metric, "score", tuple(lines), levels))
    caption = "Clustering scores against the ε of each encoded graph (∞: no encoding). Dashed: graph size alone."
    found = [*charts.draw(f"{records.name}-scores", caption, panels, notice, height=3.6)]
    for entry, arrays in zip(records.entries, records.artefacts, strict=True):
        by_geometry = entry.facts_as(GraphClusteringFacts).how == "gw"
        if "distances" in arrays and by_geometry and (math.isinf(entry.epsilon) or entry.epsilon == encoded[0].head.epsilon):
            tag = "" if entry.variant == "encoded" else "-" + re.sub("[^A-Za-z0-9]+", "-", entry.variant)
            how = "t-SNE" if records.settings.get("map") == "tsne" else "classical-MDS"
            found.append(_geometry(records.name + tag, entry.epsilon, arrays, how, notice))
    return tuple(found)


def _encoder(row: Row) -> str:
    """The line that a row belongs to: what is released and compared, whatever the rule of ε."""
    facts = row.head.facts_as(GraphClusteringFacts)
    what = facts.label or facts.encoder.replace("multi-bit", "multi-bit encoder")
    return f"{what}, {HOW[facts.how]}"


def _geometry(name: str, epsilon: float, arrays: dict[str, np.ndarray], how: str, notice: str | None) -> plots.Figure:
    order = np.lexsort((arrays["truth"], arrays["clusters"]))
    edges = np.flatnonzero(np.diff(arrays["clusters"][order])) + 1
    what = "no encoding" if math.isinf(epsilon) else f"ε = {epsilon:g}"

    def paint(axes: list[Axes]) -> None:
        plots.heatmap(axes[0], arrays["distances"][np.ix_(order, order)], f"GW distance matrix, {what}", edges.tolist())
        plots.scatter(axes[1], arrays["map"], arrays["clusters"], "clusters (2-D map of the distances)", "cluster")
        plots.scatter(axes[2], arrays["map"], arrays["truth"], "label of the centre node", "class")

    tag = "clear" if math.isinf(epsilon) else f"eps{epsilon:g}"
    caption = f"Pairwise Gromov-Wasserstein discrepancies and their {how} map, {what}, first seed."
    return plots.draw(f"{name}-geometry-{tag}", caption, 3, paint, notice)
