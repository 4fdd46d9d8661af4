"""``fedgraph price``: what is the privacy of a run, or of an existing configuration, worth?

    fedgraph price --run "python train.py --epochs 3" --given delta=1e-5
    fedgraph price pyproject.toml --fix 8
    fedgraph price --command "compute_dp_sgd_privacy --N=6000 --batch_size=60 --noise_multiplier=1 --epochs=9" --json

``--run`` runs the command and counts what Opacus, Flower's and FLARE's filters do in it. Files are read as data; nothing in
them is run, and a Python file alone has questions and no price.

Exit status: 0; with ``--at-most EPSILON`` 1 where a total lies above it, and 2 where a missing fact leaves a total open, or its
δ is above one over the people. 2 with one line on stderr where a file or an option is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedgraph.pricing import Quote

HELP = "price a run or an existing configuration: what does its privacy buy?"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="pyproject.toml, YAML, JSON, a job's folder, .py …")
    parser.add_argument("--run", metavar="COMMAND", help="run this command and price what it does")
    parser.add_argument("--command", dest="words", metavar="TEXT", help="a command line to price, in place of a file")
    parser.add_argument("--as", dest="system", metavar="SYSTEM", help="the system that the files belong to")
    answer = 'an answer, "sampling rate=0.01", or a YAML file of answers'
    parser.add_argument("--given", action="append", default=[], metavar="FACT", help=answer)
    parser.add_argument("--fix", type=float, metavar="EPSILON", help="the settings of the same system that would buy this ε")
    ties = "a folder as for 'fedgraph new': what the ties of its people are worth at the ε that was found"
    parser.add_argument("--edges", metavar="GRAPH", help=ties)
    parser.add_argument("--at-most", type=float, metavar="EPSILON", help="exit status 1 where a total lies above, 2 where open")
    parser.add_argument("--json", action="store_true", help='print JSON (a list where several files are priced); ∞ is "inf"')


def run(options: argparse.Namespace) -> int:
    from fedgraph import pricing
    from fedgraph.errors import PricingError
    from fedgraph.pricing import quotes

    if [bool(options.files), bool(options.words), options.run is not None].count(True) != 1:
        raise PricingError("name a FILE to price, a command to run with --run, or a command line to read with --command")
    if options.at_most is not None and not options.at_most >= 0:
        raise PricingError(f"--at-most {options.at_most:g}: an ε is a number ≥ 0")
    given = pricing.given_facts(options.given)
    if options.run is not None:
        found = [pricing.run(options.run, given, options.fix)]
    elif options.words:
        found = [pricing.price_command(options.words, options.system, options.fix, given)]
    else:
        found = [pricing.price(path, options.system, options.fix, given) for path in options.files]
    if options.json:
        priced = [q.to_dict() for q in found]
        print(json.dumps(priced[0] if len(priced) == 1 else priced, ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print("\n\n".join(quotes.text(q) for q in found))
    if options.edges is not None:
        print(_worth_of_edges(found[0], options.edges))
    if options.at_most is None:
        return 0
    return max(quote.verdict(options.at_most) for quote in found)


_SEEDS = 3  # of the comparison
_ALONE, _TIED = "features", "label_hop"  # a model of rows; the same with the noisy labels of neighbours


def _worth_of_edges(quote: Quote, data: str) -> str:
    """What a model of the rows alone reaches at the ε and δ of a quote, and what one reaches that hears neighbours, too.

    Both protect everything of one person: row, label and ties. Raises ``PricingError`` where the quote has no finite ε.
    """
    import fedgraph
    from fedgraph.errors import PricingError
    from fedgraph.report import format_row_mean

    total = quote.headline.total
    if total is None or not 0 < total.epsilon < math.inf or not total.delta:
        raise PricingError(
            "--edges: nothing has a finite ε at a δ here, so there is nothing to compare at; answer what is asked"
        )
    compared = fedgraph.compare(
        data, [_ALONE, _TIED], epsilons=[total.epsilon], delta=total.delta, trust="curator", protocol="asking", seeds=_SEEDS
    )
    rows = {row.method: row for row in compared.rows}
    alone, tied = rows[_ALONE].accuracy, rows[_TIED].accuracy
    told = {
        method: f"{format_row_mean(row, 'accuracy')} ({method}, ε = {row.epsilon_provable:.4g})" for method, row in rows.items()
    }
    said = f"at ε = {total.epsilon:.4g} and δ = {total.delta:.3g} for everything of one person, {_SEEDS} seeds"
    return (
        f"\nties         {data}, {said}\n"
        f"  rows alone {told[_ALONE]}\n"
        f"  with ties  {told[_TIED]}: {tied - alone:+.3f}\n"
        "  exact accuracies of private people, for the eyes of the data's holder alone"
    )
