"""``fedgraph show RUN``: the answer of a finished run, and its rows.

    fedgraph show runs/citeseer
    fedgraph show runs/citeseer --csv        every column of every row
    fedgraph show runs/citeseer --all        every sentence, note and table of the page

Without an option it prints the answer, a table for each question, and where the page is.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.errors import DataError

if TYPE_CHECKING:
    from fedgraph.report import Score
    from fedgraph.runs import Run

SHOWN = ("trust", "epsilon", "epsilon_provable", "epsilon_measured")  # keys of the columns in the terminal
HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")
    parser.add_argument("--all", action="store_true", help="print every sentence, note and table of the page instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph.runs import run as runs

    if options.all:
        whole = options.run / "tables.txt"
        if not whole.is_file():
            raise DataError(f"{options.run}: no tables.txt: no finished run; allowed: --csv")
        print(whole.read_text(encoding="utf-8").rstrip())
        return 0
    found = runs.open_run(options.run)
    print(found.table().to_csv(index=False).strip() if options.csv else text_of(found))
    if not options.csv and (options.run / "results.json").is_file():  # written with the page
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def text_of(found: Run) -> str:
    """The answer, then a table for each question: only rows that stand in one table can be compared.

    Rows that need the most trust come first, and within one level of trust those with the smallest provable ε.
    """
    scores = found.answered.scores
    groups: dict[tuple[tuple[str, ...], str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.asked, score.unit), []).append(score)
    tables = [_table(scores, here) for here in groups.values()]
    more = "Every column of every row, with the name that “fedgraph sheet” takes: fedgraph show RUN --csv; every table: --all"
    return "\n\n".join([*([found.notice] if found.notice else []), found.answer, *tables, more])


def _table(scores: tuple[Score, ...], here: list[Score]) -> str:
    from fedgraph.report import SCORE_METRICS, TABLE_COLUMNS, fill_column_cell, format_score_mean, question_words

    asked = question_words.open_question_sentence(scores, here).removesuffix(",")
    unit = f"{here[0].unit_name} level" if here[0].unit in question_words.QUESTION_UNIT_WORDS else here[0].unit
    title = " · ".join([*([asked] if asked else []), here[0].dataset, unit, SCORE_METRICS[here[0].metric]])
    picked = [column for column in TABLE_COLUMNS if column.key in SHOWN]
    lines = [["", *(column.title for column in picked)]]
    for s in sorted(here, key=lambda s: (-s.trust.rank, round(s.provable, 1), -s.mean if math.isfinite(s.mean) else math.inf)):
        mean = format_score_mean(s, 3) if math.isfinite(s.mean) else s.status
        lines.append([f"{mean:<15} {s.name}", *(fill_column_cell(column, s).text for column in picked)])
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    text = []
    for mean, trust, *others in lines:
        right = "  ".join(f"{x:>{w}}" for x, w in zip(others, widths[2:], strict=True))
        text.append(f"{mean:<{widths[0]}}  {trust:<{widths[1]}}  {right}")
    return "\n".join([title, *text])
