"""The bench as a table: ``python -m tests.mutants [mechanisms|methods] [--seed N] [--runs N]``.

``mechanisms``: what is released, judged by its law, and then the faults of the code, each found by a check of its own.

Exit status: 0 when every mutant was caught and nothing sound accused; 1 otherwise.
"""

import argparse
import sys

from tests.mutants import bench, code, methods

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
ok = found.ok
if options.what == "mechanisms":
    faults = code.all_code_mutants()
    caught, accused = code.judge_code_mutants(faults)
    print(f"{caught} of {len(faults)} faults of the code caught, {accused} of {len(faults)} checks accuse the code as it is")
    ok = ok and (caught, accused) == (len(faults), 0)
sys.exit(0 if ok else 1)
