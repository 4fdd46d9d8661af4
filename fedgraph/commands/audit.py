"""``fedgraph audit``: attacks every mechanism, sound and deliberately broken, and must tell them apart.

    fedgraph audit
    fedgraph audit mechanisms …

Everything after the word is handed to ``python -m fedgraph.audit``; without more, ``mechanisms`` is run. Its exit status is
that of the audit.
"""

import argparse

HELP = "attack every mechanism, sound and broken, and tell them apart"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="as python -m fedgraph.audit takes them")


def run(options: argparse.Namespace) -> int:
    from fedgraph.audit import __main__ as command

    return int(command.main(options.arguments or ["mechanisms"]) or 0)
