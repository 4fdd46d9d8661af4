"""The bench as a table: ``python -m tests.mutants [mechanisms|methods] [--seed N] [--runs N]``.

Exit status: 0 when every mutant was caught and nothing sound accused; 1 otherwise.
"""

import argparse
import sys

from tests.mutants import bench, methods

parser = argparse.ArgumentParser(prog="python -m tests.mutants", description="Sound mechanisms and methods, and broken twins.")
parser.add_argument("what", nargs="?", choices=["mechanisms", "methods"], default="mechanisms", help="(default mechanisms)")
parser.add_argument("--seed", type=int, default=0, metavar="N", help="root seed, >= 0 (default 0)")
parser.add_argument("--runs", type=int, default=methods.MUTANT_RUNS, metavar="N", help="of a method (default 300)")
options = parser.parse_args()
if options.what == "methods":
    print("Not to be told by any attack here:")
    for name, why in methods.UNSEEN_MUTANTS.items():
        print(f"  {name}: {why}")
    cases = list(methods.list_mutant_cases(options.runs, options.seed))
    found = bench.run_bench(cases, options.seed, error_rate=methods.MUTANT_ERROR_RATE, tell=print)
else:
    found = bench.run_bench(bench.all_bench_cases(), options.seed, tell=print)
print("✗ a deliberately broken twin of the case above it. Lower bounds hold for all sound ones together")
print(f"with confidence {found.confidence:.2%}; ceiling: the largest ε that counting this many runs per world could show.")
print(found.summary)
sys.exit(0 if found.ok else 1)
