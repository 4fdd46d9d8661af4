"""Every table and figure of the four papers, printed beside ours: ``docs/papers.md``, from ``papers.yaml`` and ``docs/data``.

    python -m benchmarks.papers [--check] > docs/papers.md

``{node_level/table1_published|DPAR-EM0|Cora-ML}`` in ``papers.yaml`` is that row and column of that table, and ``[1]`` behind
it the second part of a cell of parts, without its deviation. A row is named by its first cell, or by as many as tell it, with
"; " between.
``--check`` compares the page with the tables and then makes recorded numbers of those tables again
(``benchmarks.tables --check``).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.pictures import table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "papers.md"
MARKS = {"yes": "✓", "half": "~", "no": "✗"}
_HEAD = """# The papers, item by item

{count} tables and figures of the four papers that fedgraph began with. ✓: made and printed in these documents; ~: made in
another form, which the line says; ✗: nothing to make it from. {marks}. A curve without numbers in its paper is “curve”.
`python -m benchmarks.papers` makes this page from the linked tables. A scenario alone is run by
`python -m fedgraph.run scenarios/NAME`, “rows: …” by `python -m benchmarks.rows scenarios/…`.

| | item | printed | ours | scenario or command |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Item:
    """One table or figure.

    Args:
        item: its paper and number.
        printed: what the paper says, in short.
        ours: what is made here; references in braces.
        made: ``yes``, ``half`` or ``no``.
        by: the scenario, or a command.
        tables: of ``docs/data`` that hold it.
    """

    item: str
    printed: str
    ours: str
    made: str
    by: str
    tables: tuple[str, ...] = ()


def items() -> list[Item]:
    every = yaml.safe_load((ROOT / "benchmarks" / "papers.yaml").read_text(encoding="utf-8"))
    return [Item(**{**one, "tables": tuple(one.get("tables", ()))}) for one in every]


def value(reference: str) -> str:
    """What a reference stands for. ``ValueError`` where its table has no such row or column."""
    place, _, part = reference.partition("[")
    name, row, column = place.split("|")
    rows = table(name)
    begins = row.split("; ")
    found = [r for r in rows if list(r.values())[: len(begins)] == begins and column in r]
    if len(found) != 1:
        raise ValueError(f"docs/data/{name}.csv has {len(found)} rows {row!r} with a column {column!r}; allowed: one")
    cell = found[0][column]
    if part:
        return re.split(r" [(±]", cell.split(" / ")[int(part.rstrip("]"))])[0]
    return f"{int(cell):,}" if cell.isdecimal() else cell


def page() -> str:
    """The whole page."""
    every = items()
    counts = Counter(one.made for one in every)
    marks = ", ".join(f"{MARKS[made]} {counts[made]}" for made in MARKS)
    lines = []
    for number, one in enumerate(every, start=1):
        ours = re.sub(r"\{([^{}]+)\}", lambda m: value(m[1]), one.ours)
        linked = ", ".join(f"[table](data/{name}.csv)" for name in one.tables)
        cells = (f"{number} {MARKS[one.made]}", one.item, one.printed, f"{ours} {linked}".strip(), one.by)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return _HEAD.format(count=len(every), marks=marks) + "".join(lines)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(f"unknown: {' '.join(arguments)}; allowed: --check", file=sys.stderr)
        return 2
    if not arguments:
        print(page(), end="")
        return 0
    if PAGE.read_text(encoding="utf-8") != page():
        print("docs/papers.md is not what its tables say: python -m benchmarks.papers > docs/papers.md", file=sys.stderr)
        return 1
    documents = sorted({f"docs/data/{name}.csv" for one in items() for name in one.tables})
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.tables", "--check", "--documents", *documents], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
