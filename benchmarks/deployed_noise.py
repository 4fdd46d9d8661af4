"""What the privacy of deployed systems buys: ``docs/data/deployed_noise.csv`` from the files that are priced there.

``python -m benchmarks.deployed_noise FOLDER`` prints the table for every file of a folder and every ``pyproject.toml`` a level
below, so that one command repeats each of its numbers: ``python -m benchmarks.deployed_noise tests/pricing/files``.
"""

import csv
import io
import sys
from pathlib import Path

from fedgraph import pricing
from fedgraph.pricing.quotes import PricedRow, Quote, claimed, readable


def table(folder: Path, command: str) -> str:
    """One line for each file of a folder. command: what makes it again."""
    quotes = [pricing.price(path) for path in (*filter(Path.is_file, folder.glob("*.*")), *folder.glob("*/pyproject.toml"))]
    quotes.sort(key=lambda quote: (_name(quote).lower(), quote.path))
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    out.write(f"# `{command}`; provable: per round → total, or the range where a fact is missing\n")
    write(("system", "file", "published", "provable", "unit", "worlds", "viewer"))
    for quote in quotes:
        said = "; ".join(claimed(p) + ("" if p.epsilon is None else f" ({p.scope})") for p in quote.reading.published) or "–"
        row = quote.headline.row
        place = Path(quote.path).relative_to(folder)
        write((_name(quote), place, said, _worth(quote), row.unit, row.relation, row.viewer))
    return out.getvalue()


def _worth(quote: Quote) -> str:
    """Per round → total; where a missing fact leaves it open, from the smallest to the largest answer to that question."""
    if quote.headline.total is not None:
        return _prices(quote.headline)
    asked = max((a for a in quote.asked if a.unknown.worst is None), key=lambda a: len(a.answers))
    epsilons = [epsilon for _, epsilon in asked.answers]
    return f"open: {readable(min(epsilons))} to {readable(max(epsilons))} by {asked.unknown.name}"


def _prices(priced: PricedRow) -> str:
    total = "open" if priced.total is None else readable(priced.total.epsilon)
    return f"{readable(priced.per_round.epsilon)} → {total}"


def _name(quote: Quote) -> str:
    """The system; of a neutral description what its first comment names."""
    first = _comment(quote).partition(",")[0]
    return first if quote.system.name == "neutral description" and _comment(quote) else quote.system.name


def _comment(quote: Quote) -> str:
    """What the first lines of the file say of it, if they are comments."""
    said = []
    for line in Path(quote.path).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        said.append(line.removeprefix("#").strip())
    return " ".join(said)


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/pricing/files")
    print(table(where, f"python -m benchmarks.deployed_noise {where}"), end="")
