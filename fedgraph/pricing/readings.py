"""The contract of a reader: what it finds in a foreign configuration.

A reader is a function ``read(document) -> Reading`` in a file of ``readers``. Its entry of ``catalogue.yaml`` names it.

A reader prices nothing. It says what the file says, and raises ``PricingError`` in one line for what the file cannot mean.

- What the file leaves out it asks by ``document.ask``. That gives back what the user says, or the worst that it can be. In the
  second case it becomes a question of the quote.
- It multiplies all noise by ``document.louder``.

So the same few lines answer three questions, because the file is only read again: what is it worth, what if 1 % take part, and
how much noise would buy a given ε.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedgraph.pricing import costs
from fedgraph.pricing.costs import CostOfRounds

ReadingSetting = float | int | str | Callable[[], float]
PRICE_TO_SERVER = "the server, which sees each client's message"
PRICE_TO_SUMS = "the server and the other clients, who see sums over clients"
PRICE_WITH_MODELS = "whoever receives the models; the server is trusted"
PRICE_TO_WORLD = "everybody, the server included"
PRICE_TO_RECIPIENT = "whoever receives the result; the holder of the data is trusted"


@dataclass(frozen=True)
class ReadingRow:
    """One guarantee: of which unit, between which worlds, from whom.

    Attributes:
        unit: Whose data are protected, such as ``example``, ``client``, ``edge``.
        relation: How two neighbouring worlds differ: ``zero-out`` (the unit vanishes), ``replace`` (it becomes another one), or
            a relation of graphs, such as ``edge-undirected``.
        viewer: From whom the unit is hidden, in words.
        cost: What a number of rounds costs at a δ.
        rounds: How many rounds there are; 0 or more.
        delta: The δ in [0, 1) of the total.
        why: One sentence with the sensitivity and the composition.
        kind: ``provable`` for an upper bound, or ``lower bound`` for what no analysis can improve.
    """

    unit: str
    relation: str
    viewer: str
    cost: CostOfRounds
    rounds: int
    delta: float
    why: str
    kind: str = "provable"


@dataclass(frozen=True)
class PublishedReading:
    """What the configuration, or its authors' formula for it, claims.

    Attributes:
        epsilon: The ε that is claimed; None where the file states none.
        delta: The δ of that claim; None where the file states none.
        scope: What the claim counts: ``total``, ``per round``, ``per feature``, or ``none``.
        words: Where the claim stands.
    """

    epsilon: float | None
    delta: float | None
    scope: str
    words: str


@dataclass(frozen=True)
class Reading:
    """What a reader finds in a file.

    Attributes:
        rows: The guarantees. The first one is the headline: what the file claims, or the dearest.
        published: What the file or its authors claim.
        unprotected: What no row covers, each in a few words.
        not_priced: Options that are known to matter and are not counted.
        order: Sentences that say what happens in which order, and how it composes.
        settings: The options that hold the noise, as the user would write them, with the noise times ``document.louder``. None
            where no setting buys more privacy.
        no_fix: What to do in that case.
        assumed: What the price takes for granted and somebody may change from outside.
        people: How many units there are in all, where the file says it. A δ above one over them is told.
    """

    rows: tuple[ReadingRow, ...]
    published: tuple[PublishedReading, ...] = ()
    unprotected: tuple[str, ...] = ()
    not_priced: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    settings: Mapping[str, ReadingSetting] | None = None
    no_fix: str = ""
    assumed: tuple[str, ...] = ()
    people: float | None = None


def row_in_clear(unit: str, relation: str, viewer: str, reason: str, rounds: int = 1, delta: float = 0.0) -> ReadingRow:
    """The row of a unit that nothing protects: ∞, because."""
    return ReadingRow(unit, relation, viewer, costs.cost_of_unprotected(reason), rounds, delta, reason)


def reading_without_claim(words: str) -> tuple[PublishedReading, ...]:
    """What a file publishes that states no ε."""
    return (PublishedReading(None, None, "none", words),)


def reading_in_clear(unit: str, viewer: str, reason: str, no_fix: str, rounds: int = 1, relation: str = "zero-out") -> Reading:
    """Nothing protects the unit: ∞, because."""
    row = row_in_clear(unit, relation, viewer, reason, max(rounds, 1))
    return Reading((row,), reading_without_claim("no ε is stated"), ("everything",), no_fix=no_fix)
