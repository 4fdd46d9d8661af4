"""The contract of a reader: what it finds in a foreign configuration, and what is made of it.

One entry of ``catalogue.yaml`` per system: what people call it, the versions it was checked with, what its files look like,
where that was read, what its authors say, and the parameters of what it reads. Its ``reader`` is a function of a file of
``readers``, ``read(document) -> Reading``: what the file says; ``PricingError`` in one line for what it cannot mean.

A reader prices nothing. What the file leaves out it asks by ``document.ask``, which gives back what the user says, or the worst
that it can be (then it is a question of ``questions.yaml``). It multiplies all noise by ``document.louder``. So the same few
lines answer "what is it worth", "what if 1 % take part" and "how much noise would buy ε": the file is read again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedgraph.pricing import costs
from fedgraph.pricing.costs import Cost

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


def in_clear(
    unit: str,
    viewer: str,
    reason: str,
    no_fix: str,
    rounds: int = 1,
    relation: str = "zero-out",
    *,
    published: tuple[Published, ...] | None = None,
    unprotected: tuple[str, ...] = ("everything",),
    not_priced: tuple[str, ...] = (),
) -> Reading:
    """Nothing protects the unit: ∞, because."""
    row = Row(unit, relation, viewer, costs.unprotected(reason), max(rounds, 1), 0.0, reason)
    claim = no_claim("no ε is stated") if published is None else published
    return Reading((row,), claim, unprotected, not_priced, no_fix=no_fix)
