"""The command ``fedgraph``: ``fedgraph COMMAND …``. Each command's own module is imported when it is used.

Exit status: 0 on success; 2 with one line on stderr where a file or an option is wrong; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fedgraph.errors import FedgraphError


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    p = argparse.ArgumentParser(prog="fedgraph", description="Private learning on graphs, and what an ε is worth.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a scenario and write its report", add_help=False)
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    run.set_defaults(do=_run)
    price = commands.add_parser("price", help="price an existing configuration: what does its privacy buy?")
    price.add_argument("files", nargs="*", type=Path, metavar="FILE", help="pyproject.toml, YAML, JSON, .py, a command line …")
    price.add_argument("--command", dest="words", metavar="TEXT", help="a command line to price, in place of a file")
    price.add_argument("--as", dest="system", metavar="SYSTEM", help="the system that the files belong to")
    price.add_argument("--fix", type=float, metavar="EPSILON", help="the settings of the same system that would buy this ε")
    price.add_argument("--json", action="store_true", help='print JSON (a list where several files are priced); ∞ is "inf"')
    price.add_argument("--details", action="store_true", help="with --json: every unit and viewer, the source, the order")
    price.add_argument("--html", type=Path, metavar="PAGE", help="write a self-contained page")
    price.set_defaults(do=_price)
    sheet = commands.add_parser("sheet", help="the privacy of one row on one page to sign, and as a record for the registry")
    sheet.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    sheet.add_argument("row", nargs="?", metavar="ROW", help="a row's name, as its link in the report; default: the answer")
    sheet.add_argument("--out", type=Path, metavar="DIR", help="where the two files go (default: the run's folder)")
    sheet.add_argument("--force", action="store_true", help="replace files that are already there")
    sheet.set_defaults(do=_sheet)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one invocation."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"]:
        return _run(words[1:])
    options = parser().parse_args(words)
    try:
        return int(options.do(options))
    except FedgraphError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1


def _run(words: Sequence[str]) -> int:
    from fedgraph import run

    return run.main(words)


def _price(options: argparse.Namespace) -> int:
    from fedgraph import pricing
    from fedgraph.errors import PricingError
    from fedgraph.pricing import _files, _json, _page, _text

    if bool(options.files) == bool(options.words):
        raise PricingError("name a FILE to price, or give a command line with --command")
    if options.words:
        document = _files.from_text(Path("command line"), options.words)
        quotes = [pricing.quote(document, pricing.reader_of(document, options.system), options.fix)]
    else:
        quotes = [pricing.price(path, options.system, options.fix) for path in options.files]
    if options.html:
        try:
            options.html.write_text(_page.of(quotes), encoding="utf-8")
        except OSError as error:
            raise PricingError(f"{options.html}: cannot be written: {error.strerror or error}") from error
    if options.json:
        found = [_json.of(q, options.details) for q in quotes]
        print(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print("\n\n".join(_text.of(q) for q in quotes))
    return 0


def _sheet(options: argparse.Namespace) -> int:
    from fedgraph.report import sheet

    return sheet.command(options)


if __name__ == "__main__":
    sys.exit(main())
