"""Graph classification: each row beside the row of graph sizes, the published number, and the best possible at its ε."""

import functools
import math
import statistics
from collections.abc import Callable, Sequence

from fedgraph.cells import GraphClassificationCellFacts
from fedgraph.privacy import best_accuracy
from fedgraph.report import attack_bounds, charts, plots, printed_numbers
from fedgraph.report.phrases import fill_phrase, phrase_average, phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.rows import Row, format_row_mean, group_rows
from fedgraph.report.sections import base
from fedgraph.report.sections.base import SECTION_ENCODERS, Section, SectionRecords, SectionTable, tabulate_section

_PART = "graph_classification"
KINDS = (_PART,)  # the tasks that this section speaks of

_SIZE, _SVM = "graph size", "SVM"
_LEAKS = (_SIZE, "size and degrees", "constant embedding")
_TUNED = {"tuned_on_test": "SVM tuned on the test graphs"}
_LOOKED_AT = read_phrases()["looked_at"]


def build(records: SectionRecords, notice: str | None) -> Section:
    """Accuracies, privacy, published numbers, bounds; and the plain words for them."""
    rows = group_rows(records.entries)
    facts = records.entries[0].facts_as(GraphClassificationCellFacts)
    folds = phrase_average(len({e.seed for e in records.entries}), "fold")
    own = "kept by each client of its own, " if records.settings.get("held_out") == "clients" else ""
    sentences = [
        fill_phrase(_PART, "collection", facts=facts, folds=folds, own=own),
        fill_phrase(_PART, "trained"),
        fill_phrase(_PART, "blind"),
        *_explained(rows),
        *(_printed_spreads(rows) if _judge(rows) == _SVM else []),
        *_unsolved(rows),
        *base.describe_section_solver(
            [e.facts_as(GraphClassificationCellFacts).solver for e in records.entries], records.settings
        ),
        *attack_bounds.explain_attack_bounds(rows, records.among),
    ]
    printed = _beside(rows) if _judge(rows) == _SVM else []  # published are accuracies of support vector machines
    tables = [_accuracies(rows), *printed, *_bounds(rows), *base.tabulate_section_measures(rows)]
    return Section(tuple(sentences), tuple(tables), _figures(records, rows, notice))


def _facts(row: Row) -> GraphClassificationCellFacts:
    return row.head.facts_as(GraphClassificationCellFacts)


def _explained(rows: Sequence[Row]) -> list[str]:
    bounded = [r for r in rows if _facts(r).bayes_balanced is not None]
    tiny = [r for r in bounded if (_facts(r).rule, _facts(r).encoder) == ("1/n", "multi-bit")]
    size = next((r for r in rows if r.head.method == _SIZE), None)
    if not tiny or size is None:
        return []
    low, median, high = _facts(tiny[0]).graph_epsilon or (math.nan,) * 3
    bound = max(_facts(r).bayes_balanced or 0.0 for r in tiny)
    found = [fill_phrase(_PART, "fair_coins", low=low, median=median, high=high, bound=bound)]
    for r in tiny:
        at = (_facts(r).model, printed_numbers.PRINTED_PER_GRAPH, "accuracy")
        printed = printed_numbers.find_printed_number(r.head.dataset, "local_dp", *at)
        if printed and _judge(rows) == _SVM:
            need = best_accuracy.epsilon_for(printed.value)
            by = {"size": size.mean_of("accuracy"), "ours": r.mean_of("accuracy"), "need": need, "times": need / median}
            found.append(fill_phrase(_PART, "would_need", printed=printed.value, model=_facts(r).model.upper(), **by))
    return [*found, _useful(rows, size)]


def _printed_spreads(rows: Sequence[Row]) -> list[str]:
    """Printed ± that are smaller than chance allows over folds of a tenth of the collection."""
    dataset = str(rows[0].head.dataset)
    size = printed_numbers.PRINTED_TEST_GRAPHS.get(dataset)
    if size is None:
        return []
    found = []
    for p in (p for p in printed_numbers.PRINTED_NUMBERS if (p.dataset, p.metric) == (dataset, "accuracy")):
        chance = math.sqrt(p.value * (1 - p.value) / size)
        if p.spread and p.spread < 0.8 * chance:
            found.append(f"{p.value:.4f} ± {p.spread:.4f} (chance: {chance:.4f})")
    return [fill_phrase(_PART, "spreads", size=size, found="; ".join(found))] if found else []


def _unsolved(rows: Sequence[Row]) -> list[str]:
    counts = [asked for r in rows for e in r.results if (asked := e.facts_as(GraphClassificationCellFacts).solver.asked)]
    if not counts:
        return []
    solved, pairs = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return [fill_phrase(_PART, "votes", judge=_judge(rows), pairs=pairs, spared=pairs - solved, share=1 - solved / pairs)]


def _judge(rows: Sequence[Row]) -> str:
    return _facts(rows[0]).classifier


def _useful(rows: Sequence[Row], size: Row) -> str:
    """The smallest ε tried at which an encoder is above graph size by two standard errors of the paired difference."""
    level = {e.seed: e.metrics["accuracy"] for e in size.results}
    able = sorted((r for r in rows if _facts(r).bayes_balanced is not None), key=lambda r: r.head.epsilon)
    for row in able:
        gaps = [e.metrics["accuracy"] - level[e.seed] for e in row.results if e.seed in level]
        if len(gaps) > 1 and (mean := statistics.fmean(gaps)) > 2 * statistics.stdev(gaps) / math.sqrt(len(gaps)):
            return fill_phrase(_PART, "useful", name=_name(row), at=phrase_number(row.head.epsilon), mean=mean)
    tried = able[-1].head.epsilon if able else math.nan
    return fill_phrase(_PART, "untested" if len(level) < 2 else "useless", tried=phrase_number(tried))


def _name(row: Row) -> str:
    facts = _facts(row)
    if not facts.encoder:
        return str(row.head.method)
    rule = ", ε = 1/n" if facts.rule == "1/n" else ""
    if row.head.method not in _LEAKS and not row.values("accuracy"):
        return f"{facts.label}: the model itself"
    what = f"{row.head.method} of {facts.label}'s width" if row.head.method in _LEAKS else f"GW of {facts.label} embedding"
    return f"{what}, {SECTION_ENCODERS[facts.encoder]}{rule}"


def _accuracies(rows: Sequence[Row]) -> SectionTable:
    neighbours = sorted({m for r in rows for m in r.head.metrics if m.startswith("knn")}, key=lambda m: int(m[3:]))
    measured = {m for r in rows for m in r.head.metrics}
    tuned, looked_at = ({m: title for m, title in names.items() if m in measured} for names in (_TUNED, _LOOKED_AT))
    scores = {"accuracy": _judge(rows)} | tuned | {m: f"k-NN, k = {m[3:]}" for m in neighbours}
    scores |= {"model": "the model itself"} | looked_at
    columns: dict[str, Callable[[Row], str]] = {
        "what is compared": _name,
        "largest ε": lambda r: (
            "—" if not _facts(r).encoder else "no encoding" if math.isinf(r.head.epsilon) else phrase_number(r.head.epsilon)
        ),
        **{title: functools.partial(format_row_mean, metric=metric) for metric, title in scores.items()},
        "mean GW": lambda r: phrase_number(r.mean_of("gw_mean")),
        "ε published": lambda r: phrase_number(r.published),
        "ε provable: embedding": functools.partial(_path, path="embedding"),
        "ε provable: model path": functools.partial(_path, path="model"),
        "ε provable: all": lambda r: phrase_upper_bound(r.provable, 2),
        "ε measured": attack_bounds.format_attack_bound,
    }
    of_nodes = [_name(r) for r in rows if r.head.protection and r.head.protection.unit.value == "node"]
    unit = "Unit: one graph of known size"  # a promised degree protects a node, not the graph
    unit += f", but one node, at the promised degree, in {' and '.join(of_nodes)}" if of_nodes else ""
    note = fill_phrase(_PART, "table", unit=unit, delta=rows[0].head.delta)
    note += f" {fill_phrase(_PART, 'tuned')}" if tuned else ""
    return tabulate_section("Accuracy and privacy", sorted(rows, key=lambda r: r.head.method not in _LEAKS), columns, note)


def _path(row: Row, path: str) -> str:
    return phrase_upper_bound(row.path(path), 2) if path in row.head.paths else "—"


def _beside(rows: Sequence[Row]) -> list[SectionTable]:
    body = []
    for row in rows:
        facts = _facts(row)
        wanted = [(row.head.method, "baseline", math.inf, "accuracy")]
        if row.head.method == "local_dp":
            at = printed_numbers.PRINTED_PER_GRAPH if facts.rule == "1/n" else row.head.epsilon
            wanted = [("local_dp", facts.model, at, "accuracy")]
            if math.isinf(row.head.epsilon):
                wanted.append(("model", facts.model, math.inf, "model"))
        for method, variant, epsilon, metric in wanted:
            printed = printed_numbers.find_printed_number(row.head.dataset, method, variant, epsilon, "accuracy")
            if printed is None or not row.values(metric):
                continue
            name = f"the {facts.label} itself" if metric == "model" else _name(row)
            spread = f"{printed.value:.4f} ± {printed.spread:.4f}"
            away = printed_numbers.compare_printed_number(row, metric, printed)
            body.append((name, format_row_mean(row, metric), spread, *away, printed.source))
    header = ("row", "ours", "printed", "difference", "in standard errors", "source")
    return [SectionTable("Beside the published numbers", header, tuple(body), fill_phrase(_PART, "beside"))] if body else []


def _bounds(rows: Sequence[Row]) -> list[SectionTable]:
    limited = [row for row in rows if _facts(row).graph_epsilon is not None]
    columns: dict[str, Callable[[Row], str]] = {
        "release": _name,
        "ε of a graph: least / median / largest": lambda r: " / ".join(f"{e:.3g}" for e in _facts(r).graph_epsilon or ()),
        "bound, size given, classes balanced": lambda r: f"{_facts(r).bayes_balanced:.3f}",
        "bound, size included": lambda r: f"{_facts(r).bayes_given_size:.3f}",
        "measured": functools.partial(format_row_mean, metric="accuracy"),
    }
    note = fill_phrase(_PART, "bounds")
    return [tabulate_section("What the release can show at most", limited, columns, note)] if limited else []


def _figures(records: SectionRecords, rows: Sequence[Row], notice: str | None) -> tuple[plots.PlotFigure, ...]:
    fixed = [(str(r.head.method), r.mean_of("accuracy")) for r in rows if r.head.method in _LEAKS[:2]]
    rows = [r for r in rows if r.head.method not in _LEAKS]
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
            lines.append(charts.chart_over_budgets(SECTION_ENCODERS[encoder], own, "accuracy"))
        clear = [r for r in rows if _facts(r).label == model and math.isinf(r.head.epsilon)]
        levels = [*fixed, *(("no encoding", r.mean_of("accuracy")) for r in clear)]
        ylabel = f"{_judge(rows)} test accuracy"
        panels.append(charts.ChartPanel(f"GW of {model} embedding", ylabel, tuple(lines), tuple(levels)))
    return charts.draw_chart(f"{records.name}-accuracy", fill_phrase(_PART, "figure"), panels, notice)
