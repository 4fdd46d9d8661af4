"""Does noise help Gromov-Wasserstein to leave saddle points? Each start beside equally many random ones."""

import math
import statistics
from collections.abc import Sequence

from benchmarks.reproductions.facts import GraphStartsCellFacts
from benchmarks.reproductions.phrases import fill_phrase, read_phrases
from fedgraph.report import charts, phrases
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.report.table import Line, mean_of, values
from fedgraph.types import counted

KINDS = ("graph_starts",)  # the tasks that this section speaks of

_WORDS = read_phrases()["starts"]


def build(records: SectionRecords) -> Section:
    """A table, two panels, and the answer in words."""
    rows = records.rows
    named = {r.variant: r for r in rows}
    facts = _facts(rows[0])
    seeds = len(rows[0].cells)
    means = phrases.average(seeds, "repetition", "error")
    sentences = [
        fill_phrase("graph_starts", "asked", repeated=counted(seeds, "repetition"), facts=facts, means=means),
        *(_answer(named) if seeds > 1 else ["One repetition has no standard error: nothing is concluded."]),
    ]
    return Section(tuple(sentences), (_table(rows),), _figures(rows))


def _facts(row: Line) -> GraphStartsCellFacts:
    assert isinstance(row.facts, GraphStartsCellFacts)
    return row.facts


def _standard_error(values: Sequence[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _answer(named: dict[str, Line]) -> list[str]:
    product, nudged = named["product"], named["nudged"]
    saddles, aside = mean_of(nudged, "lower"), _standard_error(values(nudged, "lower"))
    found = [fill_phrase("graph_starts", "saddles", share=f"{saddles:.1%} ± {aside:.1%}")]
    noisy = [r for r in named.values() if _facts(r).noise is not None]
    alone, beside = ([r for r in noisy if _facts(r).with_product == both] for both in (False, True))
    lower = [r for r in alone if mean_of(r, "noised_objective") < mean_of(product, "objective")]
    if lower:
        listed = ", ".join(f"{mean_of(r, 'noised_objective'):.4g} at {_facts(r).noise:g}" for r in lower)
        found.append(fill_phrase("graph_starts", "dip", listed=listed, clear=mean_of(product, "objective")))
    for tried, rival in ((alone, "two random"), (alone, "product, one random"), (beside, "product, two random")):
        found.append(_against(tried, named[rival]))
    return found


def _against(noisy: Sequence[Line], rival: Line) -> str:
    """The noise level of the largest mean gain against a rival of as many descents: picking it after the fact favours noise."""
    best = max(noisy, key=lambda r: mean_of(r, "gain"))
    apart = [a - b for a, b in zip(values(best, "gain"), values(rival, "gain"), strict=True)]
    mean, error = statistics.fmean(apart), _standard_error(apart)
    worse = "the random vertices end lower" if mean < -2 * error else "no difference"
    verdict = "noise ends lower" if mean > 2 * error else worse
    both = " together with p qᵀ" if _facts(best).with_product else ""
    sure = "" if abs(mean) <= 2 * error else ", by more than two standard errors"
    ours, theirs = (f"{mean_of(r, 'gain'):+.2%} ± {_standard_error(values(r, 'gain')):.2%}" for r in (best, rival))
    facts = {"best": _facts(best), "rival": _facts(rival), "start": _WORDS[rival.variant]}
    told = {"ours": ours, "theirs": theirs, "apart": f"{mean:+.2%} ± {error:.2%}", "verdict": verdict + sure}
    return fill_phrase("graph_starts", "against", **facts, both=both, **told)


def _name(row: Line) -> str:
    name = row.variant
    if name in _WORDS:
        return _WORDS[name]
    both = "from p qᵀ, and " if _facts(row).with_product else ""
    return f"{both}from the coupling that solves the problem noised by {_facts(row).noise:g}"


def _with_error(row: Line, metric: str, scale: float = 1.0, digits: int = 4) -> str:
    found = values(row, metric)
    error = f" ± {scale * _standard_error(found):.{digits}f}" if len(found) > 1 else ""
    return "—" if not found else f"{scale * mean_of(row, metric):.{digits}f}{error}"


def _table(rows: Sequence[Line]) -> SectionTable:
    lines = [
        {
            "start": _name(r),
            "descents": str(_facts(r).descents),
            "mean GW, clear problem": _with_error(r, "objective"),
            "gain, %": _with_error(r, "gain", 100, 2),
            "lower, % of pairs": _with_error(r, "lower", 100, 1),
            "higher, % of pairs": _with_error(r, "higher", 100, 1),
            "mean GW, noised problem": _with_error(r, "noised_objective"),
            "iterations": phrases.rounded(mean_of(r, "iterations"), 1),
        }
        for r in sorted(rows, key=lambda r: _facts(r).descents)
    ]
    return SectionTable.of("Where descents end", lines, fill_phrase("graph_starts", "table"))


def _figures(rows: Sequence[Line]) -> tuple[charts.Figure, ...]:
    named = {r.variant: r for r in rows}
    levels = sorted({noise for r in rows if (noise := _facts(r).noise) is not None})
    by_level = {(_facts(r).noise, _facts(r).with_product): r for r in rows}
    noisy, joined = ([by_level[level, beside] for level in levels] for beside in (False, True))

    def line(panel: str, up: str, label: str, metric: str, shown: Sequence[Line]) -> list[charts.Point]:
        return [
            charts.Point(panel, up, label, level, mean_of(r, metric), _standard_error(values(r, metric)))
            for level, r in zip(levels, shown, strict=True)
        ]

    gain = "gain over p qᵀ, clear problem"
    points = [
        *line("mean GW", "mean discrepancy", "noised problem (Figure 5)", "noised_objective", noisy),
        *line("mean GW", "mean discrepancy", "clear problem, from there", "objective", noisy),
        *line(gain, "gain", "noise, 2 descents", "gain", noisy),
        *line(gain, "gain", "p qᵀ and noise, 3", "gain", joined),
    ]
    others = [n for n in _WORDS if n not in ("product", "nudged")]
    points += line("mean GW", "mean discrepancy", "clear problem, from p qᵀ", "objective", [named["product"]] * len(levels))
    for n in others:
        points += line(gain, "gain", f"{n}, {_facts(named[n]).descents}", "gain", [named[n]] * len(levels))
    caption, across = fill_phrase("graph_starts", "figure"), "standard deviation of the noise"
    return charts.draw_lines(caption, points, across=across)
