"""``fedgraph budget``: a book that remembers what was spent on people, and refuses what would exceed their budget.

    fedgraph budget init BOOK --unit node --epsilon 8 --delta 1e-6 --people people.csv
    fedgraph budget init BOOK --from OLD --epsilon 12
    fedgraph budget show BOOK

``init`` makes a new book for the people of a list, in a file or (``postgresql://host/database#book``) in a database; with
``--from`` for those of another book, whose charges it carries on. ``show`` prints each charge, and groups of people with what
they have spent.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.errors import PrivacyError
from fedgraph.privacy import Unit

if TYPE_CHECKING:
    from fedgraph.privacy import budget_book as books

HELP = "make or show a budget that lasts: what was spent on which people"
_BAR = 30  # characters of the bar that shows how much is spent


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    init = actions.add_parser("init", help="make a book for the people of a list, or one that carries another one on")
    init.add_argument("book", metavar="BOOK", help="a new file, or postgresql://host/database#book")
    init.add_argument("--unit", choices=[unit.value for unit in Unit], help="what one person's data is")
    init.add_argument("--epsilon", type=float, metavar="ε", help="the most that each person may spend")
    init.add_argument("--delta", type=float, metavar="δ", help="of that ε; below one over the number of people")
    of_ids = "their ids: the first column (a first line 'id' is left out)"
    init.add_argument("--people", type=Path, metavar="CSV", help=of_ids)
    init.add_argument("--from", dest="old", metavar="OLD", help="a book whose people, cap and charges are taken over")
    show = actions.add_parser("show", help="what was spent, by what, on how many people")
    show.add_argument("book", metavar="BOOK")


def run(options: argparse.Namespace) -> int:
    from fedgraph.data import id_rows
    from fedgraph.privacy import budget_book

    if options.action == "show":
        print(_budget_book_text(budget_book.read(options.book)))
        return 0
    old = None if options.old is None else budget_book.read(options.old)
    missing = [f"--{name}" for name in ("unit", "epsilon", "delta", "people") if getattr(options, name) is None]
    if old is None and missing:
        raise PrivacyError(
            f"{options.book}: {', '.join(missing)} is not said; needed for a book that carries no other on (--from)"
        )
    people = list(old.row) if old is not None and options.people is None else [cells[0] for cells in id_rows(options.people)]
    unit = old.unit if old is not None and options.unit is None else Unit(options.unit)
    epsilon = old.epsilon if old is not None and options.epsilon is None else options.epsilon
    delta = old.delta if old is not None and options.delta is None else options.delta
    book = budget_book.create(options.book, unit, epsilon, delta, people, old)
    carried = f", {len(book.charges):,} charges of {options.old} carried on" if old is not None else ""
    print(f"{options.book}: ε = {book.epsilon:g} at δ = {book.delta:g} for each of {book.num_people:,} people{carried}")
    return 0


def _budget_book_text(book: books.BudgetBook) -> str:
    from fedgraph.privacy import budget_book

    lines = [f"{book.place}: one {book.unit.value}, ε = {book.epsilon:g} at δ = {book.delta:g}, {book.num_people:,} people"]
    for number, charge in enumerate(book.charges, start=1):
        spent = f"ε = {budget_book.jointly([charge.dearest], book.delta):.4g} alone, on {int(charge.people.sum()):,} people"
        lines.append(f"  {number}. {charge.written}  {charge.what}: {spent}, hidden from {charge.protection.viewer.words}")
    for group in book.groups():
        part = min(1.0, group.epsilon / book.epsilon)
        bar = "█" * round(_BAR * part) + "░" * (_BAR - round(_BAR * part))
        which = ", ".join(str(k + 1) for k in group.charges) or "nothing"
        lines.append(f"  {bar} {group.epsilon:.4g} of {book.epsilon:g} spent by {group.num_people:,} people (charges: {which})")
    lines.append(f"  last line: {book.head} (keep it elsewhere: a book that was put back shows another one)")
    return "\n".join(lines)
