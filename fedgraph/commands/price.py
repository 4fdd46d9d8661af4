"""``fedgraph price FILE``: what the privacy of an existing configuration is worth."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

HELP = "price an existing configuration: what does its privacy buy?"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="pyproject.toml, YAML, JSON, .py, a command line …")
    parser.add_argument("--command", dest="words", metavar="TEXT", help="a command line to price, in place of a file")
    parser.add_argument("--as", dest="system", metavar="SYSTEM", help="the system that the files belong to")
    parser.add_argument("--fix", type=float, metavar="EPSILON", help="the settings of the same system that would buy this ε")
    parser.add_argument("--json", action="store_true", help='print JSON (a list where several files are priced); ∞ is "inf"')
    parser.add_argument("--details", action="store_true", help="with --json: every unit and viewer, the source, the order")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a self-contained page")


def run(options: argparse.Namespace) -> int:
    from fedgraph import pricing
    from fedgraph.errors import PricingError
    from fedgraph.pricing import as_json, as_text, documents, html_page

    if bool(options.files) == bool(options.words):
        raise PricingError("name a FILE to price, or give a command line with --command")
    if options.words:
        document = documents.from_text(Path("command line"), options.words)
        quotes = [pricing.quote(document, pricing.reader_of(document, options.system), options.fix)]
    else:
        quotes = [pricing.price(path, options.system, options.fix) for path in options.files]
    if options.html:
        try:
            options.html.write_text(html_page.of(quotes), encoding="utf-8")
        except OSError as error:
            raise PricingError(f"{options.html}: cannot be written: {error.strerror or error}") from error
    if options.json:
        found = [as_json.of(q, options.details) for q in quotes]
        print(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False, indent=1, allow_nan=False))
    else:
        print("\n\n".join(as_text.of(q) for q in quotes))
    return 0
