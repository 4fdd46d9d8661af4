"""The table of deployed configurations as Markdown: what the docs page is made of.

``python -m fedgraph.pricing.markdown_table FOLDER`` prints it for every file of a folder and every ``pyproject.toml`` one level
below, so
that one command repeats each of its numbers: ``python -m fedgraph.pricing.markdown_table tests/pricing/files``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from fedgraph import pricing
from fedgraph.pricing.base import Priced, Quote, shown

HEAD = """\
# What deployed noise buys

What options that people can switch on today are worth: for each file below, the ε that its configuration (or its authors'
formula) states, and the ε that fedgraph can prove for the noise it adds. Every file was written for this page with documented
defaults or examples of the system. `{command}`
makes this page again, and `fedgraph price FILE` prints one entry with all its units, viewers, assumptions and open questions.

How to read it. *Published* is what the file or its authors state, and for what. *Provable* is an upper bound for the unit, the
neighbouring worlds and the viewer of its row; ∞ means that nothing is proven, not that somebody was attacked; ≥ marks a lower
bound, below which no analysis can come. “open” stands where a fact is missing: the answers show the price for plausible ones. A
large number is not a fault of the system: most of these options do what their documentation says, and each entry ends with what
its authors themselves say of it. A number can be wrong where a reader is: each names the version and the place it was read.

"""


def files(folder: Path) -> list[Path]:
    """What is priced, sorted by name."""
    apps = list(folder.glob("*/pyproject.toml"))
    return sorted([*filter(Path.is_file, folder.glob("*.*")), *apps], key=str)


def page(folder: Path, command: str) -> str:
    """The whole page."""
    quotes = [pricing.price(path) for path in files(folder)]
    quotes.sort(key=lambda q: (q.system.lower(), q.path))
    return HEAD.format(command=command) + "\n".join(_lines(quotes, folder)) + "\n"


def _lines(quotes: list[Quote], folder: Path) -> Iterator[str]:
    yield (
        "| system, file | published | provable, first row: per round → total, or the range where a fact is missing | unit, "
        "worlds, viewer |"
    )
    yield "|---|---|---|---|"
    for q in quotes:
        said = "; ".join(_claim(p.epsilon) + (f" ({p.scope})" if p.epsilon is not None else "") for p in q.reading.published)
        row = q.headline.row
        worth = _range(q) or _prices(q.headline)
        yield f"| {q.system}, `{_name(q, folder)}` | {said or '–'} | {worth} | {row.unit}, {row.relation}, {row.viewer} |"
    yield ""
    for q in quotes:
        yield from _entry(q, folder)


def _entry(q: Quote, folder: Path) -> Iterator[str]:
    yield f"## {q.system}: `{_name(q, folder)}`"
    yield ""
    yield from (f"- {line}" for line in _comment(Path(q.path)))
    for said in q.reading.published:
        at = "" if said.delta is None else f" at δ = {said.delta:g}"
        scope = f", {said.scope}" if said.scope != "none" else ""
        yield f"- Published: {_claim(said.epsilon)}{at}{scope}: {said.words}."
    for priced in q.rows:
        row = priced.row
        label = "Lower bound" if row.kind == "lower bound" else "Provable"
        seen = f"for one {row.unit} ({row.relation}), seen by {row.viewer}"
        yield f"- {label}: {_prices(priced)} {seen}: {row.why}; δ = {row.delta:g}."
    for asked in q.asked:
        cells = ", ".join(f"{value:g} → {shown(epsilon)}" for value, epsilon in asked.answers)
        yield f"- Question: {asked.unknown.question} ({asked.unknown.name} → ε in total: {cells})"
    for sentence in q.reading.order:
        yield f"- {sentence}"
    for sentence in q.reading.unprotected:
        yield f"- Not protected: {sentence}."
    for sentence in q.reading.not_priced:
        yield f"- Not priced: {sentence}."
    if q.said:
        yield f"- The authors say: {q.said}"
    yield f"- Written for {q.version}. Source: {q.source}."
    yield ""


def _range(q: Quote) -> str:
    """Where a missing fact leaves the total open: from the smallest to the largest answer to the first such question."""
    if q.headline.total is not None:
        return ""
    asked = next(a for a in q.asked if a.unknown.worst is None)
    epsilons = [epsilon for _, epsilon in asked.answers]
    return f"open: {shown(min(epsilons))} to {shown(max(epsilons))} by {asked.unknown.name}"


def _comment(path: Path) -> list[str]:
    """What the first lines of the file say of it, if they are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    said = []
    for line in lines:
        if not line.startswith("#"):
            break
        said.append(line.lstrip("# "))
    return [" ".join(said)] if said else []


def _prices(priced: Priced) -> str:
    mark = "≥ " if priced.row.kind == "lower bound" else ""
    total = "open" if priced.total is None else mark + shown(priced.total.epsilon)
    return f"{mark}{shown(priced.per_round.epsilon)} → {total}"


def _claim(epsilon: float | None) -> str:
    return "no ε" if epsilon is None else f"ε = {shown(epsilon)}"


def _name(q: Quote, folder: Path) -> str:
    return str(Path(q.path).relative_to(folder))


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/pricing/files")
    print(page(where, f"python -m fedgraph.pricing.markdown_table {where}"), end="")
