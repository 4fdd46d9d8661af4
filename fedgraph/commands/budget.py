"""``fedgraph budget``: a file that remembers what was spent on people, and refuses what would exceed their budget.

    fedgraph budget init FILE --unit node --epsilon 8 --delta 1e-6 --people people.csv
    fedgraph budget show FILE

``init`` makes a new file for the people of a list; ``show`` prints each charge, and groups of people with what they have spent.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.errors import PrivacyError
from fedgraph.privacy import Unit

if TYPE_CHECKING:
    from fedgraph.privacy import BudgetBook

HELP = "make or show a budget that lasts: what was spent on which people"
_BAR = 30  # characters of the bar that shows how much is spent


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    init = actions.add_parser("init", help="make a budget file for the people of a list")
    init.add_argument("file", type=Path, metavar="FILE")
    init.add_argument("--unit", choices=[unit.value for unit in Unit], required=True, help="what one person's data is")
    init.add_argument("--epsilon", type=float, required=True, metavar="ε", help="the most that each person may spend")
    init.add_argument("--delta", type=float, required=True, metavar="δ", help="of that ε; below one over the number of people")
    of_ids = "their ids: the first column (a first line 'id' is left out)"
    init.add_argument("--people", type=Path, required=True, metavar="CSV", help=of_ids)
    show = actions.add_parser("show", help="what was spent, by what, on how many people")
    show.add_argument("file", type=Path, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    from fedgraph.privacy import budget_book

    if options.action == "init":
        people = _read_ids(options.people)
        book = budget_book.create(options.file, Unit(options.unit), options.epsilon, options.delta, people)
        print(f"{options.file}: ε = {book.epsilon:g} at δ = {book.delta:g} for each of {book.num_people:,} people")
        return 0
    print(_budget_book_text(budget_book.read(options.file)))
    return 0


def _read_ids(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row and row[0].strip()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PrivacyError(f"{path}: {error}; allowed: a CSV file of ids") from error
    return [row[0] for row in (rows[1:] if _has_header(rows) else rows)]


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first line names columns: by a usual word for ids, or by a word where the second line has a number."""
    from fedgraph.data import CSV_ID_COLUMNS, csv_number

    first, second = ([*rows, [], []])[:2]
    pairs = zip(first[1:], second[1:], strict=False)
    worded = any(math.isnan(csv_number(cell)) and not math.isnan(csv_number(below)) for cell, below in pairs)
    return worded or (bool(rows) and rows[0][0].casefold() in CSV_ID_COLUMNS)


def _budget_book_text(book: BudgetBook) -> str:
    from fedgraph.privacy import settle

    lines = [f"{book.path}: one {book.unit.value}, ε = {book.epsilon:g} at δ = {book.delta:g}, {book.num_people:,} people"]
    for number, charge in enumerate(book.charges, start=1):
        spent = f"ε = {settle.jointly([charge.dearest], book.delta):.4g} alone, on {int(charge.people.sum()):,} people"
        lines.append(f"  {number}. {charge.written}  {charge.what}: {spent}, hidden from {charge.protection.viewer.words}")
    for group in book.groups():
        part = min(1.0, group.epsilon / book.epsilon)
        bar = "█" * round(_BAR * part) + "░" * (_BAR - round(_BAR * part))
        which = ", ".join(str(k + 1) for k in group.charges) or "nothing"
        lines.append(f"  {bar} {group.epsilon:.4g} of {book.epsilon:g} spent by {group.num_people:,} people (charges: {which})")
    if book.torn:
        lines.append(
            f"  {book.torn:,} bytes at the end are no whole line and are not counted: a charge was broken off, or cut off"
        )
    lines.append(f"  last line: {book.head} (keep it elsewhere: a file that was cut off at its end shows another one)")
    return "\n".join(lines)
