"""Command line: ``python -m fedgraph.audit mechanisms [--seed N] [--only NAME] [--json]``.

Exit status: 0 when every mutant was caught and no sound mechanism accused; 1 otherwise; 2 with one line on
stderr when an option is wrong.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

from fedgraph.audit import bench
from fedgraph.errors import FedgraphError, ScenarioError
from fedgraph.printing import replace_unprintable


def main(arguments: Sequence[str] | None = None, cases: Iterable[bench.BenchCase] | None = None) -> int:
    """Exit status of one invocation. cases: what to audit, if not everything."""
    replace_unprintable()
    parser = argparse.ArgumentParser(prog="python -m fedgraph.audit", description="Measure what is claimed.")
    audits = parser.add_subparsers(dest="audit", required=True, metavar="mechanisms")
    m = audits.add_parser("mechanisms", help="run every mechanism, and its broken twins, on worst-case neighbouring inputs")
    m.add_argument("--seed", type=int, default=0, metavar="N", help="root seed, ≥ 0 (default 0)")
    m.add_argument("--only", metavar="NAME", help="one mechanism and its mutants, e.g. gaussian-sum")
    m.add_argument("--json", action="store_true", help="one JSON document on stdout in place of the table")
    args = parser.parse_args(arguments)
    try:
        if args.seed < 0:
            raise ScenarioError(f"--seed {args.seed}: a root seed is an integer ≥ 0")
        chosen = list(bench.all_bench_cases() if cases is None else cases)
        report = bench.show_bench(chosen, args.seed, args.only, args.json)
        return 0 if report.ok else 1
    except FedgraphError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2 if isinstance(error, ScenarioError) else 1


if __name__ == "__main__":
    sys.exit(main())
