"""Quotes as SARIF 2.1.0, which shows in a pull request the line that costs privacy."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedgraph.pricing.base import Quote, written_epsilon
from fedgraph.pricing.command_lines import Tree

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    "unprotected": "Nothing bounds what one unit gives away (ε = ∞).",
    "too-dear": "The provable ε lies above what was asked for.",
    "open": "A missing fact leaves the total ε open.",
    "priced": "The provable ε.",
}
NOISE = re.compile(r"noise|sigma|epsilon|\beps\b|dp_|privacy|filters|mods", re.I)


def report(quotes: Sequence[Quote], limit: float | None = None) -> str:
    """One result for each file, at the call or the option that it hangs on.

    Args:
        quotes: What was priced.
        limit: The ε that is allowed; a total above it is an error.
    """
    rules: list[Tree] = [{"id": name, "shortDescription": {"text": words}} for name, words in RULES.items()]
    results: list[Tree] = [result for quote in quotes for result in _results(quote, limit)]
    driver: dict[str, Tree] = {"name": "fedgraph price", "rules": rules}
    run: dict[str, Tree] = {"tool": {"driver": driver}, "results": results, "columnKind": "utf16CodeUnits"}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def _results(quote: Quote, limit: float | None) -> Iterator[Tree]:
    top = quote.headline
    total = None if top.total is None else top.total.epsilon
    dear = limit is not None and total is not None and total > limit
    rule = "open" if total is None else "unprotected" if math.isinf(total) else "too-dear" if dear else "priced"
    level = {"priced": "note", "open": "warning"}.get(rule, "error" if limit is not None else "warning")
    said = "open" if total is None else f"ε = {written_epsilon(total)}"
    asked = "".join(f" Question: {a.unknown.question}" for a in quote.asked)
    seen = f"for one {top.row.unit} ({top.row.relation}), seen by {top.row.viewer}"
    text = f"{quote.system.name}: {said} in total {seen}: {top.row.why}.{asked}"
    path, line = quote.place if quote.place and quote.place[0].exists() else _place(Path(quote.path))
    where: dict[str, Tree] = {"artifactLocation": {"uri": path.as_posix()}, "region": {"startLine": max(line, 1)}}
    yield {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [{"physicalLocation": where}]}


def _place(path: Path) -> tuple[Path, int]:
    """The first line that speaks of noise, where no call is known."""
    if not path.is_file():
        return path, 1
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return path, next((number for number, line in enumerate(lines, 1) if NOISE.search(line)), 1)
