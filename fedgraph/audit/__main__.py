"""Command line: ``python -m fedgraph.audit mechanisms [--seed N] [--only NAME] [--json]``.

Exit status: 0 when every mutant was caught and no sound mechanism accused; 1 otherwise; 2 with one line on
stderr when an option is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from fedgraph.audit import mechanisms
from fedgraph.audit.cases import Case
from fedgraph.errors import FedgraphError, ScenarioError


def parser() -> argparse.ArgumentParser:
    """The options of ``fedgraph.audit``."""
    p = argparse.ArgumentParser(prog="python -m fedgraph.audit", description="Measure what is claimed.")
    audits = p.add_subparsers(dest="audit", required=True, metavar="mechanisms")
    m = audits.add_parser("mechanisms", help="run every mechanism, and its broken twins, on worst-case neighbouring inputs")
    m.add_argument("--seed", type=int, default=0, metavar="N", help="root seed, ≥ 0 (default 0)")
    m.add_argument("--only", metavar="NAME", help="one mechanism and its mutants, e.g. gaussian-sum")
    m.add_argument("--json", action="store_true", help="one JSON document on stdout in place of the table")
    return p


def main(arguments: Sequence[str] | None = None, cases: Iterable[Case] | None = None) -> int:
    """Exit status of one invocation. cases: what to audit, if not everything."""
    args = parser().parse_args(arguments)
    try:
        if args.seed < 0:
            raise ScenarioError(f"--seed {args.seed}: a root seed is an integer ≥ 0")
        report = mechanisms.run(args.seed, args.only, cases)
    except FedgraphError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2 if isinstance(error, ScenarioError) else 1
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        show(report)
    return 0 if report.ok else 1


def show(report: mechanisms.Report) -> None:
    """The table, what its numbers mean, and the summary as the last line."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    table = Table(title="Mechanism audit", title_justify="left", header_style="bold")
    for name in (
        "mechanism",
        "unit, relation",
        "ε claimed",
        "δ claimed",
        "lower bound",
        "ceiling",
        "method",
        "runs",
        "verdict",
    ):
        table.add_column(
            name, justify="left" if name in ("mechanism", "unit, relation", "method", "verdict") else "right", no_wrap=True
        )
    for row in report.rows:
        name = row.mechanism if row.mutant is None else f"  ✗ {row.mutant}"
        symbol = "ε" if row.measures == "epsilon" else "δ"
        numbers = (f"{row.epsilon:.3g}", f"{row.delta:.3g}", f"{symbol} ≥ {row.lower_bound:.3g}", f"{row.ceiling:.2f}")
        table.add_row(name, row.relation, *numbers, row.method, f"{row.runs:,}", row.verdict)
    console.print(table)
    print("✗ a deliberately broken twin of the mechanism above it. Lower bounds hold for all sound mechanisms together")
    print(f"with confidence {report.confidence:.2%}; ceiling: the largest ε that counting this many runs per world could show.")
    print(report.summary)


if __name__ == "__main__":
    sys.exit(main())
