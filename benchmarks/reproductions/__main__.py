"""``python -m benchmarks.reproductions NAME [options of fedgraph run]``: a scenario of this folder, in one process."""

import sys

from benchmarks import reproductions
from fedgraph.run import main as run


def main(arguments: list[str]) -> int:
    """As ``fedgraph run``; 2 where no scenario here has the name."""
    known = sorted(path.stem for path in reproductions.HERE.glob("ldp_gw_*.yaml"))
    if not arguments or arguments[0] not in known:
        print(f"name a scenario of this folder; allowed: {', '.join(known)}", file=sys.stderr)
        return 2
    reproductions.register()
    return run([str(reproductions.HERE / f"{arguments[0]}.yaml"), "--runtime", "serial", *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
