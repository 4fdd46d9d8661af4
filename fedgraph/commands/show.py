"""``fedgraph show RUN``: the answer of a finished run, and its rows.

    fedgraph show runs/citeseer
    fedgraph show runs/citeseer --csv        every column of every row

Without an option it prints the answer, a table for each question, and where the page is.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedgraph.report import Row
    from fedgraph.runs import Run

HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph.runs import run as runs

    found = runs.open_run(options.run)
    print(found.table("row").to_csv(index=False).strip() if options.csv else text_of(found))
    if not options.csv and (options.run / "results.parquet").is_file():  # written with the page
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def text_of(found: Run) -> str:
    """The answer, then a table for each question: only rows that stand in one table can be compared.

    Rows that need the most trust come first, and within one level of trust those with the smallest provable ε.
    """
    scores = found.answered.scores
    groups: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for score in scores:
        groups.setdefault((score.asked, score.unit), []).append(score)
    tables = [_table(scores, here) for here in groups.values()]
    more = "Every column of every row, with the name that “fedgraph fit”, “sheet” and “export” take: fedgraph show RUN --csv"
    return "\n\n".join([*([found.notice] if found.notice else []), found.answer, *tables, more])


def _table(scores: tuple[Row, ...], here: list[Row]) -> str:
    from fedgraph.report import METRICS, attack_bounds, format_row, phrase_upper_bound, question_words

    asked = question_words.open_question_sentence(scores, here).removesuffix(",")
    unit = f"{here[0].unit_name} level" if here[0].unit in question_words.QUESTION_UNIT_WORDS else here[0].unit
    title = " · ".join([*([asked] if asked else []), here[0].dataset, unit, METRICS[here[0].metric]])
    lines = [["", "", "ε provable", "ε measured"]]
    for s in sorted(here, key=lambda s: (-s.trust.rank, round(s.provable, 1), -s.mean if math.isfinite(s.mean) else math.inf)):
        mean = format_row(s, 3) if math.isfinite(s.mean) else s.status
        measured = "—" if s.measured is None else attack_bounds.format_attack_bound(s)
        lines.append([mean, s.row, phrase_upper_bound(s.provable), measured])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in lines]
    return "\n".join([title, *text])
