"""What every command does before it prints."""

import io
import sys


def replace_unprintable() -> None:
    """Print ``?`` in place of a character that the terminal's encoding lacks (``PYTHONIOENCODING=ascii``), and go on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
