"""Prints the section of CHANGELOG.md for a tag: ``python3 .ci/notes.py v0.3.0``.

The version must be that of pyproject.toml, and its section must have a date.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """The lines below the version's heading. SystemExit with one line where something does not fit."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag} and pyproject.toml says {version}; allowed: v{version}")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## {re.escape(version)} \(([^)\n]*)\)\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", section[1]):
        raise SystemExit(f"CHANGELOG.md has no line '## {version} (YYYY-MM-DD)'")
    return section[2].strip()


if __name__ == "__main__":
    sys.stdout.write(notes(sys.argv[1]) + "\n")
