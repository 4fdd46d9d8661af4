"""What every command does before it prints; and, at the import, a warning of another distribution of our import name."""

import io
import os
import re
import sys
import warnings


def replace_unprintable() -> None:
    """Makes the terminal print ``?`` in place of a character that its encoding lacks, and go on.

    An encoding without Greek letters (``PYTHONIOENCODING=ascii``) would otherwise end a run at its first ε. It changes standard
    output and standard error of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _warn_of_another_fedgraph(places: list[str]) -> None:
    """One warning where CMU's distribution ``fedgraph``, which imports under the same name, is installed, too.

    Not in ``fedgraph/__init__.py``, which is the other's where that was installed last. places: folders of the import path.
    """
    for place in places:
        try:
            found = next((n for n in os.listdir(place or ".") if re.fullmatch(r"fedgraph-[^-]+\.(dist|egg)-info", n)), None)
        except OSError:
            continue
        if found:
            warnings.warn(
                f"{os.path.join(place, found)}: the distribution 'fedgraph' (CMU's FedGraph) and 'fedgraph-privacy' have one "
                "import name, and the files of one may have replaced the other's; allowed: one of them in an environment "
                "(pip uninstall fedgraph fedgraph-privacy, then install one)",
                stacklevel=4,
            )
            return


_warn_of_another_fedgraph(sys.path)
