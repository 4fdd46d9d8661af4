"""Quotes as text for a terminal, as one HTML page without script or link, and as SARIF 2.1.0, which shows in a pull request the
line that costs privacy.
"""

import json
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from fedgraph.pricing.base import Published, Quote, written_epsilon
from fedgraph.pricing.formats import Tree

WIDTH = 110
FOLDER = resources.files("fedgraph.pricing")
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    "unprotected": "Nothing bounds what one unit gives away (ε = ∞).",
    "too-dear": "The provable ε lies above what was asked for.",
    "open": "A missing fact leaves the total ε open.",
    "priced": "The provable ε.",
}
NOISE = re.compile(r"noise|sigma|epsilon|\beps\b|dp_|privacy|filters|mods", re.I)


def html(quotes: Sequence[Quote]) -> str:
    """Self-contained, readable in the dark and on a phone."""
    return rendered("page.html", True, quotes=quotes)


def printed(quote: Quote) -> str:
    """For a terminal: published, provable, unprotected, questions, fix; lines of at most ``WIDTH`` columns."""
    said = {"assumed": quote.reading.assumed, "order": quote.reading.order, "unprotected": quote.reading.unprotected,
            "not priced": quote.reading.not_priced}  # fmt: skip
    return rendered("page.txt", False, q=quote, said=said, claim=claim_words, wrapped=_wrapped).rstrip()


def _wrapped(title: str, sentence: str, gap: int = 13) -> str:
    wrapper = textwrap.TextWrapper(WIDTH, initial_indent=title.ljust(gap), subsequent_indent=" " * gap, break_long_words=False)
    return wrapper.fill(" ".join(sentence.split()))


def rendered(name: str, escaped: bool, folder: Traversable = FOLDER, **values: object) -> str:
    """A template of ``folder`` with ``values``. escaped: for HTML."""
    import jinja2  # only a page needs it

    settings = jinja2.Environment(autoescape=escaped, undefined=jinja2.StrictUndefined, trim_blocks=not escaped)
    return settings.from_string(folder.joinpath(name).read_text(encoding="utf-8")).render(shown=written_epsilon, **values)


def claim_words(said: Published) -> str:
    """The ε that a file states, as tables show it."""
    return "no ε" if said.epsilon is None else f"ε = {written_epsilon(said.epsilon)}"


def sarif(quotes: Sequence[Quote], limit: float | None = None) -> str:
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
