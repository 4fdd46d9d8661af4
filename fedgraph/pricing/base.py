"""The contract of a reader: what it finds in a foreign configuration, and what is made of it.

One entry of ``catalogue.yaml`` per system: what people call it, the versions it was checked with, what its files look like,
where that was read, what its authors say, and the parameters of what it reads. Its ``reader`` is a function of a file of
``readers``, ``read(document) -> Reading``: what the file says; ``PricingError`` in one line for what it cannot mean.

A reader prices nothing. What the file leaves out it asks by ``document.ask``, which gives back what the user says, or the worst
that it can be (then it is a question of ``questions.yaml``). It multiplies all noise by ``document.louder``. So the same few
lines answer "what is it worth", "what if 1 % take part" and "how much noise would buy ε": the file is read again.

What is known of each system: ``catalogue.yaml``, one entry a reader.

name, version      what people call it, and the versions that the reader was checked with
source, said       where its facts were read, and what its authors say of the option (in our words)
checked            package → (first, last) version, where it is installed as a package
calls              class or function → its parameters in their order; those after * go by name alone
ignored            options that choose data, model, logging or hardware, and change no price
reader             the file of ``readers`` and its function; ``KEY.read`` where it is left out
words              sentences of its quotes
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import yaml

from fedgraph.privacy.accounting.accountant import Price

_PINNED = (r"requirements[\w.-]*\.txt", r"pyproject\.toml", r"environment\.ya?ml", r"setup\.(py|cfg)")


@dataclass(frozen=True)
class System:
    name: str
    version: str
    source: str
    said: str = ""
    recognised: tuple[Mapping[str, list[str]], ...] = ()
    checked: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    reader: str = ""
    words: Mapping[str, str] = field(default_factory=dict)

    def newer(self, folder: Path) -> Iterator[str]:
        """A sentence for each file of a folder that asks for a later version than the last that was checked."""
        for path in sorted(p for p in folder.glob("*.*") if any(re.fullmatch(name, p.name) for name in _PINNED)):
            if not path.is_file() or path.stat().st_size > 1_000_000:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            for package, (_, last) in self.checked.items():
                asked = re.search(
                    rf"(?<![\w-]){re.escape(package)}(?:\[[^\]]*\])?\s*(?:==|>=|~=|>)\s*([0-9]+(?:\.[0-9]+)*)", text
                )
                if asked and parts(asked[1])[:2] > parts(last)[:2]:
                    yield f"{path.name} asks for {asked[0]}; this reader was checked with {package} up to {last}"


def parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]+", version))


@cache
def entries() -> Mapping[str, System]:
    """Every entry of ``catalogue.yaml``, by its reader."""
    text = resources.files("fedgraph.pricing").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return {name: System(**entry) for name, entry in yaml.safe_load(text).items()}


@cache
def places(call: str) -> Mapping[str, int]:
    """Parameter → place, of a class or function that some system has; those that go by name alone have none."""
    listed = next((system.calls[call] for system in entries().values() if call in system.calls), "")
    return {name: place for place, name in enumerate(listed.partition("*")[0].split())}


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Cost = Callable[[int, float], Price]  # (number of rounds, δ) → what they cost together
Setting = float | int | str | Callable[[], float]
SERVER = "the server, which sees each client's message"
SUMS = "the server and the other clients, who see sums over clients"
MODELS = "whoever receives the models; the server is trusted"
WORLD = "everybody, the server included"
RECIPIENT = "whoever receives the result; the holder of the data is trusted"


@dataclass(frozen=True)
class Row:
    """One guarantee: of which unit, between which worlds, from whom.

    cost: what ``rounds`` of it cost. delta: at which δ. why: one sentence, with the sensitivity and the composition.
    kind: ``provable`` (an upper bound) or ``lower bound`` (no analysis can show less).
    """

    unit: str
    relation: str
    viewer: str
    cost: Cost
    rounds: int
    delta: float
    why: str
    kind: str = "provable"


@dataclass(frozen=True)
class Published:
    """What the configuration, or its authors' formula for it, claims; epsilon None: no ε. scope: per round, total …"""

    epsilon: float | None
    delta: float | None
    scope: str
    words: str


@dataclass(frozen=True)
class Unknown:
    """A fact that the file does not hold. values: plausible ones for a table, worst first. worst: a value that bounds every
    other (a sampling rate of 1), used for the total; None where there is none, and then no total is given."""

    name: str
    question: str
    values: tuple[float, ...]
    worst: float | None = None


@dataclass(frozen=True)
class Reading:
    """rows: the guarantees, the claimed one first. settings: the options that hold the noise, as the user would write them;
    None where no setting can buy more (``no_fix`` says why). assumed: what the price takes for granted and somebody may change.
    people: how many units there are in all, where the file says so: a δ above one over them is said."""

    rows: tuple[Row, ...]
    published: tuple[Published, ...] = ()
    unprotected: tuple[str, ...] = ()
    not_priced: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    settings: Mapping[str, Setting] | None = None
    no_fix: str = ""
    assumed: tuple[str, ...] = ()
    people: float | None = None


def no_claim(words: str) -> tuple[Published, ...]:
    """What a file publishes that states no ε."""
    return (Published(None, None, "none", words),)


@dataclass(frozen=True)
class Priced:
    """A row and its prices. total is None where a missing fact without a worst case stands in the way."""

    row: Row
    per_round: Price
    total: Price | None

    def to_dict(self, price: Price | None) -> dict[str, Json]:
        """One of its prices as JSON."""
        return {
            "epsilon": None if price is None else _number(price.epsilon),
            "delta": self.row.delta if price is None else price.delta,
            "unit": self.row.unit,
            "relation": self.row.relation,
            "theorem": f"{price.accountant}: {price.theorem}"
            if price
            else "a missing fact leaves the total open: see questions",
        }


@dataclass(frozen=True)
class Asked:
    """A question, and the headline's total ε for each plausible answer."""

    unknown: Unknown
    answers: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Fix:
    """Settings that buy ``target``, and what they provably cost; settings None: none do, and ``why``."""

    target: float
    settings: Mapping[str, float | int | str] | None
    epsilon: float | None
    why: str


@dataclass(frozen=True)
class Quote:
    """Everything that is said about one file."""

    path: str
    system: System
    reading: Reading
    rows: tuple[Priced, ...]
    asked: tuple[Asked, ...] = ()
    fix: Fix | None = None
    place: tuple[Path, int] | None = None  # the file and line of the call that the price hangs on, where there is one

    @property
    def headline(self) -> Priced:
        return self.rows[0]

    def to_dict(self, details: bool = False) -> dict[str, Json]:
        """What ``--json`` prints: total, per_round, published, unprotected, questions; with ``details`` also every row and the
        source. ∞ is the string ``"inf"``, as in results.json; an ε that a missing fact leaves open is null."""
        top, reading, system, fix = self.headline, self.reading, self.system, self.fix
        published: list[Json] = [
            {"epsilon": _number(p.epsilon), "delta": p.delta, "scope": p.scope, "words": p.words} for p in reading.published
        ]
        out: dict[str, Json] = {
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
            settings: Json = None if fix.settings is None else {name: _number(value) for name, value in fix.settings.items()}
            out["fix"] = {"epsilon": fix.target, "settings": settings, "provable": _number(fix.epsilon), "why": fix.why}
        if details:
            out["details"] = {
                "file": self.path, "system": system.name, "version": system.version, "source": system.source,
                "authors_say": system.said, "published": published, "assumed": list(reading.assumed),
                "order": list(reading.order), "guarantees": [
                    {"unit": row.unit, "relation": row.relation, "viewer": row.viewer, "kind": row.kind, "rounds": row.rounds,
                     "delta": row.delta, "per_round": _number(priced.per_round.epsilon),
                     "total": None if priced.total is None else _number(priced.total.epsilon), "why": row.why}
                    for priced in self.rows for row in (priced.row,)
                ],
            }  # fmt: skip
        return out


def _number(value: float | int | str | None) -> Json:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def rounded_up(value: float, digits: int = 4) -> float:
    """``value`` to ``digits`` significant digits, never below it.

    >>> rounded_up(20640.3), rounded_up(1.0)
    (20650.0, 1.0)
    """
    if not math.isfinite(value) or value <= 0:
        return value
    places = digits - 1 - math.floor(math.log10(value))
    near = round(value, places)
    return near if near >= value * (1 - 1e-12) else round(value + 10.0**-places / 2, places)


def written_epsilon(epsilon: float | None) -> str:
    """An ε for people: ∞, a dash for none, four digits rounded up."""
    if epsilon is None:
        return "–"
    if math.isinf(epsilon):
        return "∞"
    up = rounded_up(epsilon)
    return f"{up:.4g}" if up < 1e4 else f"{up:.3e}".replace("e+0", "e").replace("e+", "e")
