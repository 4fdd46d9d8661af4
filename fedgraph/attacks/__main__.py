"""Command line: ``python -m fedgraph.attacks mutants [--seed N] [--runs N]``: whole methods, sound and broken, told apart.

Exit status: 0 when every mutant was caught and no sound method accused; 1 otherwise; 2 when an option is wrong.
"""

import argparse
import sys
from collections.abc import Sequence

from fedgraph.attacks.base import mutants
from fedgraph.audit import bench
from fedgraph.printing import replace_unprintable


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one invocation."""
    replace_unprintable()
    parser = argparse.ArgumentParser(prog="python -m fedgraph.attacks", description="Whole methods, sound and broken.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="mutants")
    command = commands.add_parser("mutants", help="run every method many times on two neighbouring inputs, and broken twins")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="root seed, ≥ 0 (default 0)")
    command.add_argument("--runs", type=int, default=mutants.MUTANT_RUNS, metavar="N", help="runs in each world (default 300)")
    args = parser.parse_args(arguments)
    if args.seed < 0 or args.runs < 2:
        print(f"--seed {args.seed} --runs {args.runs}: a seed is ≥ 0, and a world needs two runs or more", file=sys.stderr)
        return 2
    print("Not to be told by any attack here:")
    for name, why in mutants.UNSEEN_MUTANTS.items():
        print(f"  {name}: {why}")
    report = bench.show_bench(
        list(mutants.list_mutant_cases(args.runs, args.seed)), args.seed, None, False, mutants.MUTANT_ERROR_RATE
    )
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
