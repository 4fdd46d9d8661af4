"""A quote: everything that is said about one file, as JSON, as text for a terminal, as one HTML page without script or link,
and as SARIF 2.1.0, which shows in a pull request the line that costs privacy.
"""

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from fedgraph.pricing.documents import System
from fedgraph.pricing.facts import OpenFact, Tree
from fedgraph.pricing.readings import Claim, Reading, Row
from fedgraph.privacy import Epsilon

WIDTH = 110
_TITLE = 13  # columns of what stands before a sentence
QUOTES_FOLDER = resources.files("fedgraph.pricing")
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "unprotected": "Nothing bounds what one unit gives away (ε = ∞).",
    "too-dear": "The provable ε lies above what was asked for.",
    "open": "A missing fact leaves the total ε open.",
    "priced": "The provable ε.",
}
_NOISE = re.compile(r"noise|sigma|epsilon|\beps\b|dp_|privacy|filters|mods", re.I)


@dataclass(frozen=True)
class PricedRow:
    """A row and its prices.

    Attributes:
        row: What is priced.
        per_round: What one round costs, at the δ of the total.
        total: What all rounds cost. None where a missing fact that has no worst case stands in the way.
    """

    row: Row
    per_round: Epsilon
    total: Epsilon | None

    @property
    def counted(self) -> str:
        """The rounds that the theorem beside it prices: all of them, or one where the total is open."""
        rounds = f"{self.row.rounds:,} round{'' if self.row.rounds == 1 else 's'}"
        return f"one of {rounds}" if self.total is None and self.row.rounds > 1 else rounds

    def to_dict(self, price: Epsilon | None) -> dict[str, Tree]:
        """One of its prices as JSON."""
        theorem = f"{price.accountant}: {price.theorem}" if price else "a missing fact leaves the total open: see questions"
        epsilon, delta = (_number(price.epsilon), price.delta) if price else (None, self.row.delta)
        return {"epsilon": epsilon, "delta": delta, "unit": self.row.unit, "relation": self.row.relation, "theorem": theorem}


@dataclass(frozen=True)
class Question:
    """A question, and what each answer to it would mean.

    Attributes:
        unknown: The fact that is missing.
        answers: Pairs of a plausible value and the total ε of the headline with it.
    """

    unknown: OpenFact
    answers: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Fix:
    """What would buy a wanted ε in the same system.

    Attributes:
        target: The ε that was asked for; above 0.
        settings: Option → value that buys it, rounded towards more noise. None where no setting does.
        epsilon: What these settings provably cost; None without settings.
        why: What the settings take for granted, or why there are none.
    """

    target: float
    settings: Mapping[str, float] | None
    epsilon: float | None
    why: str


@dataclass(frozen=True)
class Quote:
    """Everything that is said about one file.

    Attributes:
        path: The file, as it was named.
        system: The system that wrote it.
        reading: What its reader found.
        rows: The guarantees with their prices, in the order of ``reading.rows``.
        asked: The questions that the file leaves open.
        fix: What would buy the wanted ε; None where nobody asked.
        place: File and line of the call that the price hangs on; None where there is no such call.
    """

    path: str
    system: System
    reading: Reading
    rows: tuple[PricedRow, ...]
    asked: tuple[Question, ...] = ()
    fix: Fix | None = None
    place: tuple[Path, int] | None = None  # the file and line of the call that the price hangs on, where there is one

    @property
    def headline(self) -> PricedRow:
        """The first row: what the file claims."""
        return self.rows[0]

    def to_dict(self, details: bool = False) -> dict[str, Tree]:
        """The quote as ``--json`` prints it.

        Args:
            details: Whether every row, the source, the assumptions and the order of steps are wanted, too.

        Returns:
            A mapping with ``total``, ``per_round``, ``published``, ``unprotected`` and ``questions``; with ``fix`` where one
            was asked for, and with ``details``. ∞ is the text ``"inf"``. An ε that a missing fact leaves
            open is None.
        """
        top, reading, system, fix = self.headline, self.reading, self.system, self.fix
        keys = ("epsilon", "delta", "scope", "words")
        published: list[Tree] = [{key: _number(vars(p)[key]) for key in keys} for p in reading.published]
        out: dict[str, Tree] = {
            "total": top.to_dict(top.total),
            "per_round": top.to_dict(top.per_round),
            "published": published[0] if published else None,
            "unprotected": [*reading.unprotected, *(f"not priced: {name}" for name in reading.not_priced)],
            "questions": [
                {"missing": a.unknown.name, "question": a.unknown.question,
                 "table": [{a.unknown.name: value, "epsilon": _number(epsilon)} for value, epsilon in a.answers]}
                for a in self.asked
            ],
        }  # fmt: skip
        if fix is not None:
            settings = None if fix.settings is None else {name: _number(value) for name, value in fix.settings.items()}
            out["fix"] = {"epsilon": fix.target, "settings": settings, "provable": _number(fix.epsilon), "why": fix.why}
        if details:
            out["details"] = {
                "file": self.path, "system": system.name, "version": system.version, "source": system.source,
                "authors_say": system.said, "published": published, "assumed": list(reading.assumed),
                "order": list(reading.order), "guarantees": [
                    {"unit": row.unit, "relation": row.relation, "viewer": row.viewer, "rounds": row.rounds,
                     "delta": row.delta, "per_round": _number(priced.per_round.epsilon),
                     "total": None if priced.total is None else _number(priced.total.epsilon), "why": row.why}
                    for priced in self.rows for row in (priced.row,)
                ],
            }  # fmt: skip
        return out


def _number(value: float | int | str | None) -> Tree:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def round_up_quote(value: float) -> float:
    """``value`` to four significant digits, never below it.

    >>> round_up_quote(20640.3), round_up_quote(1.0)
    (20650.0, 1.0)
    """
    if not math.isfinite(value) or value <= 0:
        return value
    places = 3 - math.floor(math.log10(value))
    near = round(value, places)
    return near if near >= value * (1 - 1e-12) else round(value + 10.0**-places / 2, places)


def quoted_epsilon(epsilon: float | None) -> str:
    """An ε for people: ∞, a dash for none, four digits rounded up."""
    if epsilon is None:
        return "–"
    if math.isinf(epsilon):
        return "∞"
    up = round_up_quote(epsilon)
    return f"{up:.4g}" if up < 1e4 else f"{up:.3e}".replace("e+0", "e").replace("e+", "e")


def price_quotes_as_html(quotes: Sequence[Quote]) -> str:
    """One page for several quotes. It holds no script and no link, and is readable in the dark and on a phone."""
    return render_quotes("page.html", True, quotes=quotes)


def price_quote_as_text(quote: Quote) -> str:
    """One quote for a terminal.

    Args:
        quote: What is printed.

    Returns:
        What is published, provable and unprotected, the questions and the fix. Sentences are wrapped at ``WIDTH`` columns.
    """
    said = {key.replace("_", " "): vars(quote.reading)[key] for key in ("assumed", "order", "unprotected", "not_priced")}
    return render_quotes("page.txt", False, q=quote, said=said, claim=quoted_claim, wrapped=_wrapped).rstrip()


def _wrapped(title: str, sentence: str) -> str:
    indent = " " * _TITLE
    wrapper = textwrap.TextWrapper(WIDTH, initial_indent=title.ljust(_TITLE), subsequent_indent=indent, break_long_words=False)
    return wrapper.fill(" ".join(sentence.split()))


def render_quotes(name: str, escaped: bool, folder: Traversable = QUOTES_FOLDER, **values: object) -> str:
    """A template of ``folder`` with ``values``. escaped: for HTML."""
    import jinja2  # only a page needs it

    settings = jinja2.Environment(autoescape=escaped, undefined=jinja2.StrictUndefined, trim_blocks=not escaped)
    return settings.from_string(folder.joinpath(name).read_text(encoding="utf-8")).render(shown=quoted_epsilon, **values)


def quoted_claim(said: Claim) -> str:
    """The ε that a file states, as tables show it."""
    return "no ε" if said.epsilon is None else f"ε = {quoted_epsilon(said.epsilon)}"


def price_quotes_as_sarif(quotes: Sequence[Quote], limit: float | None = None) -> str:
    """Quotes as SARIF 2.1.0, one result for each, at the call or the option that its price hangs on.

    Args:
        quotes: What was priced.
        limit: The ε that is allowed. A total above it is an error; None: every result is a note or a warning.

    Returns:
        JSON text that ends with a line break.
    """
    rules: list[Tree] = [{"id": name, "shortDescription": {"text": words}} for name, words in _RULES.items()]
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
    said = "open" if total is None else f"ε = {quoted_epsilon(total)}"
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
    return path, next((number for number, line in enumerate(lines, 1) if _NOISE.search(line)), 1)
