"""Does noise help Gromov-Wasserstein to leave saddle points? Each start beside equally many random ones."""

import math
import statistics
from collections.abc import Callable, Sequence

from fedgraph.cells.facts import GraphStartsFacts
from fedgraph.report import charts, plots
from fedgraph.report.phrases import averaged_over, phrase, read_phrases, rounded, say_count
from fedgraph.report.report_rows import Row, group_rows
from fedgraph.report.sections.base import Records, Section, Table, tabulate

KINDS = ("graph_starts",)  # the tasks that this section speaks of

WORDS = read_phrases()["starts"]


def build(records: Records, notice: str | None) -> Section:
    """A table, two panels, and the answer in words."""
    rows = group_rows(records.entries)
    named = {str(r.head.variant): r for r in rows}
    facts = _facts(rows[0])
    seeds = len(rows[0].entries)
    means = averaged_over(seeds, "repetition", "error")
    sentences = [
        phrase("graph_starts", "asked", repeated=say_count(seeds, "repetition"), facts=facts, means=means),
        *(_answer(named) if seeds > 1 else ["One repetition has no standard error: nothing is concluded."]),
    ]
    return Section(tuple(sentences), (_table(rows),), _figures(records, rows, notice))


def _facts(row: Row) -> GraphStartsFacts:
    return row.head.facts_as(GraphStartsFacts)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; 0 for one value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _answer(named: dict[str, Row]) -> list[str]:
    product, nudged = named["product"], named["nudged"]
    saddles, aside = nudged.mean("lower"), standard_error(nudged.values("lower"))
    found = [phrase("graph_starts", "saddles", share=f"{saddles:.1%} ± {aside:.1%}")]
    alone, beside = (
        [r for r in named.values() if _facts(r).noise is not None and _facts(r).with_product == both] for both in (False, True)
    )
    lower = [r for r in alone if r.mean("noised_objective") < product.mean("objective")]
    if lower:
        listed = ", ".join(f"{r.mean('noised_objective'):.4g} at {_facts(r).noise:g}" for r in lower)
        found.append(phrase("graph_starts", "dip", listed=listed, clear=product.mean("objective")))
    for tried, rival in ((alone, "two random"), (alone, "product, one random"), (beside, "product, two random")):
        found.append(_against(tried, named[rival]))
    return found


def _against(noisy: Sequence[Row], rival: Row) -> str:
    """The noise level of the largest mean gain against a rival of as many descents: picking it after the fact favours noise."""
    best = max(noisy, key=lambda r: r.mean("gain"))
    apart = [a - b for a, b in zip(best.values("gain"), rival.values("gain"), strict=True)]
    mean, error = statistics.fmean(apart), standard_error(apart)
    verdict = (
        "noise ends lower" if mean > 2 * error else "the random vertices end lower" if mean < -2 * error else "no difference"
    )
    both = " together with p qᵀ" if _facts(best).with_product else ""
    sure = "" if abs(mean) <= 2 * error else ", by more than two standard errors"
    ours, theirs = (f"{r.mean('gain'):+.2%} ± {standard_error(r.values('gain')):.2%}" for r in (best, rival))
    facts = {"best": _facts(best), "rival": _facts(rival), "start": WORDS[str(rival.head.variant)]}
    told = {"ours": ours, "theirs": theirs, "apart": f"{mean:+.2%} ± {error:.2%}", "verdict": verdict + sure}
    return phrase("graph_starts", "against", **facts, both=both, **told)


def _name(row: Row) -> str:
    name = str(row.head.variant)
    if name in WORDS:
        return WORDS[name]
    both = "from p qᵀ, and " if _facts(row).with_product else ""
    return f"{both}from the coupling that solves the problem noised by {_facts(row).noise:g}"


def _with_error(row: Row, metric: str, scale: float = 1.0, digits: int = 4) -> str:
    found = row.values(metric)
    error = f" ± {scale * standard_error(found):.{digits}f}" if len(found) > 1 else ""
    return "—" if not found else f"{scale * row.mean(metric):.{digits}f}{error}"


def _table(rows: Sequence[Row]) -> Table:
    columns: dict[str, Callable[[Row], str]] = {
        "start": _name,
        "descents": lambda r: str(_facts(r).descents),
        "mean GW, clear problem": lambda r: _with_error(r, "objective"),
        "gain, %": lambda r: _with_error(r, "gain", 100, 2),
        "lower, % of pairs": lambda r: _with_error(r, "lower", 100, 1),
        "higher, % of pairs": lambda r: _with_error(r, "higher", 100, 1),
        "mean GW, noised problem": lambda r: _with_error(r, "noised_objective"),
        "iterations": lambda r: rounded(r.mean("iterations"), 1),
    }
    ordered = sorted(rows, key=lambda r: _facts(r).descents)
    return tabulate("Where descents end", ordered, columns, phrase("graph_starts", "table"))


def _figures(records: Records, rows: Sequence[Row], notice: str | None) -> tuple[plots.Figure, ...]:
    named = {str(r.head.variant): r for r in rows}
    levels = sorted({noise for r in rows if (noise := _facts(r).noise) is not None})
    by_level = {(_facts(r).noise, _facts(r).with_product): r for r in rows}
    noisy, joined = ([by_level[level, beside] for level in levels] for beside in (False, True))

    def line(label: str, metric: str, shown: Sequence[Row]) -> charts.Series:
        return charts.Series(label, levels, [r.mean(metric) for r in shown], [standard_error(r.values(metric)) for r in shown])

    both = (line("noised problem (Figure 5)", "noised_objective", noisy), line("clear problem, from there", "objective", noisy))
    gains = (line("noise, 2 descents", "gain", noisy), line("p qᵀ and noise, 3", "gain", joined))
    rivals = tuple(
        (f"{n}, {_facts(named[n]).descents}", named[n].mean("gain")) for n in WORDS if n not in ("product", "nudged")
    )
    clear = (("clear problem, from p qᵀ", named["product"].mean("objective")),)
    across = "standard deviation of the noise"
    panels = (
        charts.Panel("mean GW", "mean discrepancy", both, clear, across),
        charts.Panel("gain over p qᵀ, clear problem", "gain", gains, rivals, across),
    )
    return charts.draw(f"{records.name}-starts", phrase("graph_starts", "figure"), panels, notice)
