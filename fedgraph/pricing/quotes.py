"""A quote: everything that is said about one file, as JSON and as text for a terminal."""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from fedgraph.pricing.documents import OpenFact, System, Table, Tree
from fedgraph.pricing.readings import Claim, Reading, Row
from fedgraph.privacy import Epsilon

_WIDTH, _TITLE = 110, 13  # columns of a terminal, and of what stands before a sentence


@dataclass(frozen=True)
class PricedRow:
    """A row and its prices."""

    row: Row
    per_round: Epsilon  # what one round costs, at the δ of the total
    total: Epsilon | None  # what all rounds cost; None where a missing fact that has no worst case stands in the way

    @property
    def counted(self) -> str:
        """The rounds that the theorem beside it prices: all of them, or one where the total is open."""
        rounds = f"{self.row.rounds:,} round{'' if self.row.rounds == 1 else 's'}"
        return f"one of {rounds}" if self.total is None and self.row.rounds > 1 else rounds


@dataclass(frozen=True)
class Question:
    """A question, and what each answer to it would mean."""

    unknown: OpenFact
    answers: tuple[tuple[float, float], ...]  # a plausible value, and the total ε of the headline with it


@dataclass(frozen=True)
class Fix:
    """What would buy a wanted ε in the same system."""

    target: float  # the ε that was asked for; above 0
    settings: Mapping[str, float] | None  # option → value that buys it, rounded towards more noise; None where none does
    epsilon: float | None  # what these settings provably cost
    why: str  # what the settings take for granted, or why there are none


@dataclass(frozen=True)
class Quote:
    """Everything that is said about one file."""

    path: str  # as it was named
    system: System
    reading: Reading
    rows: tuple[PricedRow, ...]  # in the order of ``reading.rows``
    asked: tuple[Question, ...] = ()
    fix: Fix | None = None  # None where nobody asked

    @property
    def headline(self) -> PricedRow:
        """The first row: what the file claims."""
        return self.rows[0]

    def verdict(self, limit: float) -> int:
        """The exit status of a gate: 0 (at most ``limit``), 1 (above), 2 (open, or at a δ that gives somebody away)."""
        top, people = self.headline, self.reading.people
        if top.total is None:
            return 2
        return 1 if top.total.epsilon > limit else 2 if people and top.row.delta > 1 / people else 0

    def to_dict(self) -> Table:
        """The quote as ``--json`` prints it: ``total``, ``per_round``, ``published``, ``unprotected``, ``questions``, ``fix``.

        ∞ is the text ``"inf"``; an ε that a missing fact leaves open is None.
        """
        top, reading, fix = self.headline, self.reading, self.fix
        published = [{key: _number(vars(p)[key]) for key in ("epsilon", "delta", "scope", "words")} for p in reading.published]
        open_ = "a missing fact leaves the total open: see questions"

        def priced(of: Epsilon | None) -> Table:
            said = {"epsilon": None if of is None else _number(of.epsilon), "delta": top.row.delta if of is None else of.delta}
            return said | {"unit": top.row.unit, "relation": top.row.relation,
                           "theorem": open_ if of is None else f"{of.accountant}: {of.theorem}"}  # fmt: skip

        def asked(of: Question) -> Table:
            name = of.unknown.name
            answers: list[Tree] = [{name: value, "epsilon": _number(epsilon)} for value, epsilon in of.answers]
            return {"missing": name, "question": of.unknown.question, "table": answers}

        out: Table = {
            "total": priced(top.total), "per_round": priced(top.per_round), "published": published[0] if published else None,
            "unprotected": [*reading.unprotected, *(f"not priced: {names}" for names in reading.not_priced)],
            "questions": [asked(a) for a in self.asked],
        }  # fmt: skip
        if fix is not None:
            settings = None if fix.settings is None else {name: _number(value) for name, value in fix.settings.items()}
            out["fix"] = {"epsilon": fix.target, "settings": settings, "provable": _number(fix.epsilon), "why": fix.why}
        return out


def _number(value: float | int | str | None) -> Tree:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def readable(epsilon: float | None) -> str:
    """An ε for people: ∞, a dash for none, else four significant digits, never below it.

    >>> readable(20640.3), readable(1.0), readable(float("inf"))
    ('2.065e4', '1', '∞')
    """
    if epsilon is None:
        return "–"
    if math.isinf(epsilon):
        return "∞"
    if epsilon > 0:
        places = 3 - math.floor(math.log10(epsilon))
        near = round(epsilon, places)
        epsilon = near if near >= epsilon * (1 - 1e-12) else round(epsilon + 10.0**-places / 2, places)
    return f"{epsilon:.4g}" if epsilon < 1e4 else f"{epsilon:.3e}".replace("e+0", "e").replace("e+", "e")


def claimed(said: Claim) -> str:
    """The ε that a file states, as tables show it."""
    return "no ε" if said.epsilon is None else f"ε = {readable(said.epsilon)}"


def text(quote: Quote) -> str:
    """One quote for a terminal, wrapped: what is published, provable and unprotected, the questions and the fix."""
    said = {key.replace("_", " "): vars(quote.reading)[key] for key in ("assumed", "order", "unprotected", "not_priced")}
    import jinja2  # only a text needs it

    settings = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
    source = settings.from_string(resources.files("fedgraph.pricing").joinpath("page.txt").read_text(encoding="utf-8"))
    return source.render(q=quote, said=said, claim=claimed, wrapped=_wrapped, shown=readable).rstrip()


def _wrapped(title: str, sentence: str) -> str:
    indent = " " * _TITLE
    wrapper = textwrap.TextWrapper(_WIDTH, initial_indent=title.ljust(_TITLE), subsequent_indent=indent, break_long_words=False)
    return wrapper.fill(" ".join(sentence.split()))
