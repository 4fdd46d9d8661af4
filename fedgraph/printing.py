"""What every command does before it prints."""

import io
import sys


def replace_unprintable() -> None:
    """Makes the terminal print ``?`` in place of a character that its encoding lacks, and go on.

    An encoding without Greek letters (``PYTHONIOENCODING=ascii``) would otherwise end a run at its first ε. It changes standard
    output and standard error of this process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
