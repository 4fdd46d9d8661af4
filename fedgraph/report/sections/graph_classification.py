"""Graph classification: each row beside the row of graph sizes, the published number, and the best possible at its ε."""

import math
from collections.abc import Sequence

from fedgraph.cells.facts import GraphClassificationFacts
from fedgraph.privacy.accounting import bayes
from fedgraph.report import attacks, beyond_accuracy, charts, plots, printed_numbers
from fedgraph.report.report_rows import Row, averaged_over, group_rows, mean_spread, rounded, rounded_up
from fedgraph.report.sections.base import ENCODERS, Records, Section, Table, describe_solver

KINDS = ("graph_classification",)  # the tasks that this section speaks of

SIZE, SVM = "graph size", "SVM"
LEAKS = (SIZE, "size and degrees", "constant embedding")
TUNED = {"tuned_on_test": "SVM tuned on the test graphs"}
LOOKED_AT = {
    "model_on_training": "the model on its training graphs",
    "model_by_validation": "the model, round picked on validation graphs",
    "model_tuned_on_test": "the model, round tuned on the test graphs",
}


def build(records: Records, notice: str | None) -> Section:
    """Accuracies, privacy, published numbers, bounds; and the plain words for them."""
    rows = group_rows(records.entries)
    facts = records.entries[0].facts_as(GraphClassificationFacts)
    folds = len({e.seed for e in records.entries})
    train, validation, test = facts.folds
    sentences = [
        f"{facts.graphs} graphs of {facts.mean_nodes:.1f} nodes on average; {facts.partition}; "
        f"{averaged_over(folds, 'fold')} of {train} training, {validation} validation and {test} test "
        f"graphs; always answering the larger class is right for {facts.majority:.1%}.",
        "Models are trained on the training graphs: on node labels as in the paper (atoms, secondary structures; degrees where "
        "there are none), or on graph labels with pooled scores; only then is the model itself a classifier. The number of "
        "nodes of every graph is public, so a release has shown something only above the rows that see sizes alone.",
        "Gromov-Wasserstein compares distances inside a graph only. A model trained on graph labels moves all nodes of a graph "
        "to one side together, which it cannot see; one trained on node labels spreads the nodes of a graph, which it can.",
        *_explained(rows),
        *(_printed_spreads(rows) if _judge(rows) == SVM else []),
        *_unsolved(rows),
        *describe_solver([e.facts_as(GraphClassificationFacts).solver for e in records.entries]),
        *attacks.describe_attacks(rows, records.among),
    ]
    printed = _beside(rows) if _judge(rows) == SVM else []  # published are accuracies of support vector machines
    beyond = beyond_accuracy.tabulate_measures(rows)
    tables = [_accuracies(rows), *printed, *_bounds(rows), *beyond]
    return Section(tuple(sentences), tuple(tables), _figures(records, rows, notice))


def _facts(row: Row) -> GraphClassificationFacts:
    return row.head.facts_as(GraphClassificationFacts)


def _explained(rows: Sequence[Row]) -> list[str]:
    """Why a correct encoder cannot give the published numbers at ε = 1/|V|, and what would be needed."""
    tiny = [
        r for r in rows if (_facts(r).rule, _facts(r).encoder) == ("1/n", "multi-bit") and _facts(r).bayes_balanced is not None
    ]
    size = next((r for r in rows if r.head.method == SIZE), None)
    if not tiny or size is None:
        return []
    low, median, high = _facts(tiny[0]).graph_epsilon or (math.nan,) * 3
    bound = max(_facts(r).bayes_balanced or 0.0 for r in tiny)
    found = [
        f"At ε = 1/|V| a graph's release is {low:.3g}- to {high:.3g}-DP (median {median:.3g}). Then its bits are almost fair "
        f"coins: of two equally likely graphs of one size no classifier, however clever, names the right one in more than "
        f"{bound:.1%} of cases. What a row shows beyond that comes from the size of the matrix, which is sent in clear, or "
        "from the model, which is not protected, or from another mechanism. It cannot come from a correct encoder.",
    ]
    for r in tiny:
        printed = printed_numbers.find(r.head.dataset, "local_dp", _facts(r).model, printed_numbers.PER_GRAPH, "accuracy")
        if printed and _judge(rows) == SVM:
            need = bayes.needed_epsilon(printed.value)
            name, ours = _facts(r).model.upper(), r.mean("accuracy")
            found.append(
                f"The paper prints {printed.value:.1%} for its encoded {name} embeddings; here graph size alone gives "
                f"{size.mean('accuracy'):.1%} and the correct encoder {ours:.1%}. On equally likely graphs of one size "
                f"{printed.value:.1%} would need ε ≥ {need:.2f} per graph, {need / median:.0f} times the default."
            )
    return [*found, _useful(rows, size)]


def _printed_spreads(rows: Sequence[Row]) -> list[str]:
    """Printed ± that are smaller than chance allows over folds of a tenth of the collection."""
    dataset = str(rows[0].head.dataset)
    size = printed_numbers.TEST_GRAPHS.get(dataset)
    if size is None:
        return []
    found = []
    for printed in printed_numbers.ALL:
        chance = math.sqrt(printed.value * (1 - printed.value) / size)
        if printed.dataset == dataset and printed.metric == "accuracy" and printed.spread and printed.spread < 0.8 * chance:
            found.append(f"{printed.value:.4f} ± {printed.spread:.4f} (chance: {chance:.4f})")
    if not found:
        return []
    return [
        f"Over folds of {size} test graphs an accuracy a spreads by √(a(1 − a)/{size}) by chance alone. Printed with less than "
        f"0.8 of that: {'; '.join(found)}. Those ± are not spreads over such folds; what they are is not stated."
    ]


def _unsolved(rows: Sequence[Row]) -> list[str]:
    """What lower bounds spared, where votes are all that is asked for."""
    counts = [asked for r in rows for e in r.entries if (asked := e.facts_as(GraphClassificationFacts).solver.asked)]
    if not counts:
        return []
    solved, pairs = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return [
        f"Accuracy is that of the first vote ({_judge(rows)}); no support vector machine was trained. Of {pairs:,} pairs of a "
        f"test graph and another, lower bounds showed {pairs - solved:,} ({1 - solved / pairs:.0%}) to be too far to matter; "
        "they were not solved, and no vote depends on them."
    ]


def _judge(rows: Sequence[Row]) -> str:
    """What the column of accuracies is called."""
    return _facts(rows[0]).classifier


def _useful(rows: Sequence[Row], size: Row) -> str:
    """The smallest ε tried at which an encoder is above graph size by two standard errors of the paired difference."""
    level = _by_seed(size)
    for row in sorted((r for r in rows if _facts(r).bayes_balanced is not None), key=lambda r: r.head.epsilon):
        own = _by_seed(row)
        gaps = [own[s] - level[s] for s in own if s in level]
        if len(gaps) > 1:
            mean = sum(gaps) / len(gaps)
            deviation = math.sqrt(sum((g - mean) ** 2 for g in gaps) / (len(gaps) - 1))
            if mean > 2 * deviation / math.sqrt(len(gaps)):
                return (
                    f"The first useful release is {_name(row)} at ε = {rounded(row.head.epsilon)} per graph: "
                    f"{mean:+.1%} above graph size, more than two standard errors."
                )
    tried = max((r.head.epsilon for r in rows if _facts(r).bayes_balanced is not None), default=math.nan)
    if len(level) < 2:
        return f"One fold has no standard error: it does not test whether a release (up to ε = {rounded(tried)}) is of use."
    return f"No multi-bit release tried, up to ε = {rounded(tried)} per graph, is above graph size by two standard errors."


def _by_seed(row: Row) -> dict[int, float]:
    return {e.seed: e.metrics["accuracy"] for e in row.entries}


def _name(row: Row) -> str:
    facts = _facts(row)
    if not facts.encoder:
        return str(row.head.method)
    rule = ", ε = 1/n" if facts.rule == "1/n" else ""
    if row.head.method not in LEAKS and not row.values("accuracy"):
        return f"{facts.label}: the model itself"
    what = f"{row.head.method} of {facts.label}'s width" if row.head.method in LEAKS else f"GW of {facts.label} embedding"
    return f"{what}, {ENCODERS[facts.encoder]}{rule}"


def _accuracies(rows: Sequence[Row]) -> Table:
    neighbours = sorted({m for r in rows for m in r.head.metrics if m.startswith("knn")}, key=lambda m: int(m[3:]))
    tuned, looked_at = ([m for m in names if any(m in r.head.metrics for r in rows)] for names in (TUNED, LOOKED_AT))
    body = []
    for row in sorted(rows, key=lambda r: r.head.method not in LEAKS):
        paths = row.head.paths
        epsilon = (
            "—" if not _facts(row).encoder else "no encoding" if math.isinf(row.head.epsilon) else rounded(row.head.epsilon)
        )
        scores = tuple(mean_spread(row, m) for m in ("accuracy", *tuned, *neighbours, "model", *looked_at))
        mean = rounded(row.mean("gw_mean")) if row.values("gw_mean") else "—"
        path = tuple(rounded_up(row.path(p), 2) if p in paths else "—" for p in ("embedding", "model"))
        body.append(
            (
                _name(row),
                epsilon,
                *scores,
                mean,
                rounded(row.published),
                *path,
                rounded_up(row.provable, 2),
                attacks.printed_bound(row),
            )
        )
    header = (
        "what is compared", "largest ε", _judge(rows), *(TUNED[m] for m in tuned),
        *(f"k-NN, k = {m[3:]}" for m in neighbours), "the model itself", *(LOOKED_AT[m] for m in looked_at), "mean GW",
        "ε published",
        "ε provable: embedding", "ε provable: model path", "ε provable: all", "ε measured",
    )  # fmt: skip
    note = (
        f"{_unit(rows)}; δ = {rows[0].head.delta:.3g}. Rows of raw data are ∞: nothing hides them. "
        "“ε = 1/n”: each graph its own, the largest is shown. The first rows see the public sizes only (the second the "
        "degrees, too, which are not public)."
    )
    if tuned:
        note += (
            " “Tuned on the test graphs” picks C and γ, or the model's round, on the graphs it reports: no result, but what "
            "that would print."
        )
    return Table("Accuracy and privacy", header, tuple(body), note)


def _unit(rows: Sequence[Row]) -> str:
    """What one ε protects; a promised degree protects a node, not the graph."""
    of_nodes = [_name(r) for r in rows if r.head.protection and r.head.protection.unit.value == "node"]
    words = "Unit: one graph of known size"
    return words + (f", but one node, at the promised degree, in {' and '.join(of_nodes)}" if of_nodes else "")


def _beside(rows: Sequence[Row]) -> list[Table]:
    body = []
    for row in rows:
        facts = _facts(row)
        wanted = [(row.head.method, "baseline", math.inf, "accuracy")]
        if row.head.method == "local_dp":
            at = printed_numbers.PER_GRAPH if facts.rule == "1/n" else row.head.epsilon
            wanted = [("local_dp", facts.model, at, "accuracy")]
            if math.isinf(row.head.epsilon):
                wanted.append(("model", facts.model, math.inf, "model"))
        for method, variant, epsilon, metric in wanted:
            printed = printed_numbers.find(row.head.dataset, method, variant, epsilon, "accuracy")
            if printed is None or not row.values(metric):
                continue
            mean = row.mean(metric)
            errors = printed_numbers.in_standard_errors(mean, row.deviation(metric), len(row.values(metric)), printed.value)
            name = f"the {facts.label} itself" if metric == "model" else _name(row)
            away = "—" if errors is None else f"{errors:+.1f}"
            spread_printed = f"{printed.value:.4f} ± {printed.spread:.4f}"
            body.append((name, mean_spread(row, metric), spread_printed, f"{mean - printed.value:+.3f}", away, printed.source))
    header = ("row", "ours", "printed", "difference", "in standard errors", "source")
    note = "Standard errors of our mean over folds; how many repetitions the printed ± stands for is not stated."
    return [Table("Beside the published numbers", header, tuple(body), note)] if body else []


def _bounds(rows: Sequence[Row]) -> list[Table]:
    body = []
    for row in rows:
        facts = _facts(row)
        if facts.graph_epsilon is not None:
            low, median, high = facts.graph_epsilon
            limits = (f"{facts.bayes_balanced:.3f}", f"{facts.bayes_given_size:.3f}")
            body.append((_name(row), f"{low:.3g} / {median:.3g} / {high:.3g}", *limits, mean_spread(row, "accuracy")))
    header = (
        "release",
        "ε of a graph: least / median / largest",
        "bound, size given, classes balanced",
        "bound, size included",
        "measured",
    )
    note = (
        "Bounds on any classifier of the release: e^ε/(1 + e^ε) averaged over graphs; with sizes included, an oracle that "
        "knows the share of classes at every size of this collection (fitted to it, so optimistic). A measured value above the "
        "first bound shows what size and the unprotected model give away."
    )
    return [Table("What the release can show at most", header, tuple(body), note)] if body else []


def _figures(records: Records, rows: Sequence[Row], notice: str | None) -> tuple[plots.Figure, ...]:
    """Accuracy against ε, one panel per model; dashed: what sizes give, and the values without encoding."""
    fixed = [(str(r.head.method), r.mean("accuracy")) for r in rows if r.head.method in LEAKS[:2]]
    rows = [r for r in rows if r.head.method not in LEAKS]
    models = list(dict.fromkeys(_facts(r).label for r in rows if _facts(r).label))
    encoded = {m: [r for r in rows if _facts(r).label == m and math.isfinite(r.head.epsilon)] for m in models}
    models = [m for m in models if encoded[m]]
    if not models:
        return ()

    panels = []
    for model in models:
        lines = []
        for encoder in dict.fromkeys(_facts(r).encoder for r in encoded[model]):
            own = sorted((r for r in encoded[model] if _facts(r).encoder == encoder), key=lambda r: r.head.epsilon)
            lines.append(charts.over_budgets(ENCODERS[encoder], own, "accuracy"))
        clear = [r for r in rows if _facts(r).label == model and math.isinf(r.head.epsilon)]
        levels = [*fixed, *(("no encoding", r.mean("accuracy")) for r in clear)]
        panels.append(charts.Panel(f"GW of {model} embedding", f"{_judge(rows)} test accuracy", tuple(lines), tuple(levels)))
    caption = (
        "Accuracy against ε under both readings: as a budget (multi-bit) and as a standard deviation (as coded). The leftmost "
        "ε is the largest 1/|V|. Dashed: rows that see no embedding, and the embedding in clear."
    )
    return charts.draw(f"{records.name}-accuracy", caption, panels, notice)
