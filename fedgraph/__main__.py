"""``python -m fedgraph``: the command ``fedgraph``."""

import sys

from fedgraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
