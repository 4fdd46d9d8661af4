"""``python -m fedgraph``: the command ``fedgraph``."""

import sys

from fedgraph.commands import main

if __name__ == "__main__":
    sys.exit(main())
