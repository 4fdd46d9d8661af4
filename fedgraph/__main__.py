"""``python -m fedgraph``: the command ``fedgraph``."""

import sys

from fedgraph.commands.base import main

if __name__ == "__main__":
    sys.exit(main())
