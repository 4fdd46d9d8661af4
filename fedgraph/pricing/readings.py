"""The contract of a reader: what it finds in a foreign configuration, or in the record of a run.

A reader is a function ``(document) -> Reading`` in a file of ``readers``; its entry of ``catalogue.yaml`` names it. It prices
nothing: it says what the file says, and raises ``PricingError`` in one line for what the file cannot mean. What the file leaves
out it asks by ``document.ask``, and it multiplies all noise by ``document.louder``. So the same lines answer three questions,
because the file is only read again: what is it worth, what if 1 % take part, and how much noise would buy a given ε.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fedgraph.pricing import costs
from fedgraph.pricing.costs import CostOfRounds

Setting = float | int | str | Callable[[], float]
TO_SERVER = "the server, which sees each client's message"
TO_SUMS = "the server and the other clients, who see sums over clients"
WITH_MODELS = "whoever receives the models; the server is trusted"
TO_RECIPIENT = "whoever receives the result; the holder of the data is trusted"
SEVERAL = (2, 10)  # records of one person, shown beside the price of one
SELECTED = "early stopping, tuning and metrics on private data are not counted"
SECRET = "Amplification holds for viewers who do not learn who was sampled."
COMPOSED = "Clip, sum, noise; steps compose adaptively; everything after a noised sum is post-processing."


@dataclass(frozen=True)
class Row:
    """One guarantee: of which unit, between which worlds, from whom."""

    unit: str  # whose data are protected, such as ``example``, ``client``, ``edge``
    relation: str  # ``zero-out`` (the unit vanishes), ``replace`` (it becomes another one), or a relation of graphs
    viewer: str  # from whom the unit is hidden, in words
    cost: CostOfRounds  # what a number of rounds costs at a δ
    rounds: int  # how many rounds there are; 0 or more
    delta: float  # the δ in [0, 1) of the total
    why: str  # one sentence with the sensitivity and the composition
    kind: str = "provable"  # ``provable`` for an upper bound, or ``lower bound`` for what no analysis can improve


@dataclass(frozen=True)
class Claim:
    """What the configuration, or its authors' formula for it, claims."""

    epsilon: float | None  # None where the file states none
    delta: float | None  # None where the file states none
    scope: str  # what the claim counts: ``total``, ``per round``, ``per feature``, or ``none``
    words: str  # where the claim stands


@dataclass(frozen=True)
class Reading:
    """What a reader finds in a file."""

    rows: tuple[Row, ...]  # the first one is the headline: what the file claims, or the dearest
    published: tuple[Claim, ...] = ()
    unprotected: tuple[str, ...] = ()  # what no row covers, each in a few words
    not_priced: tuple[str, ...] = ()  # options that are known to matter and are not counted
    order: tuple[str, ...] = ()  # sentences that say what happens in which order, and how it composes
    settings: Mapping[str, Setting] | None = None  # options that hold the noise, times ``louder``; None where none does
    no_fix: str = ""  # what to do in that case
    assumed: tuple[str, ...] = ()  # what the price takes for granted and somebody may change from outside
    people: float | None = None  # how many units there are in all; a δ above one over them is told


def row_in_clear(unit: str, relation: str, viewer: str, reason: str, rounds: int = 1, delta: float = 0.0) -> Row:
    """The row of a unit that nothing protects: ∞, because."""
    return Row(unit, relation, viewer, costs.cost_of_unprotected(reason), rounds, delta, reason)


def without_claim(words: str) -> tuple[Claim, ...]:
    """What a file publishes that states no ε."""
    return (Claim(None, None, "none", words),)


def in_clear(unit: str, viewer: str, reason: str, no_fix: str, rounds: int = 1, relation: str = "zero-out") -> Reading:
    """Nothing protects the unit: ∞, because."""
    row = row_in_clear(unit, relation, viewer, reason, max(rounds, 1))
    return Reading((row,), without_claim("no ε is stated"), ("everything",), no_fix=no_fix)


def replace_why(row: Row, why: str) -> Row:
    """The same guarantee, in other words."""
    return replace(row, why=why)


@dataclass(frozen=True)
class Sums:
    """Noised sums of clipped rows, all of one kind."""

    multiplier: float  # standard deviation of the noise over the clip; 0 or more
    count: int  # how many there are; of shuffled batches the passes, in each of which a row is in one sum
    sampling: str = "poisson"  # ``poisson``, ``fixed`` (drawn afresh without replacement), or ``none``: no amplification
    rate: float = 1.0  # the share of the rows in a sum
    draws: int = 1  # independent draws that go into one sum

    @property
    def words(self) -> str:
        how = {"poisson": "Poisson-sampled at rate {:g}", "fixed": "fixed-size batches of a share {:g}"}
        said = how.get(self.sampling, "a row in one sum of each, no amplification").format(self.rate)
        return f"{self.count:,} sum{'' if self.count == 1 else 's'} with noise std = {self.multiplier:g}·clip, {said}"

    def cost(self, replaced: bool, records: int) -> CostOfRounds:
        """The cost of one sum, for a unit of ``records`` rows."""
        if self.sampling == "none" or (self.sampling == "fixed" and records > 1):
            return costs.cost_of_gaussian(self.multiplier, replaced, records)
        if self.sampling == "fixed":
            return costs.cost_of_fixed_size(self.multiplier, self.rate, replaced)
        return costs.cost_of_poisson(self.multiplier, self.rate, replaced, records * self.draws)


def rows_of_sums(
    cells: Sequence[Sequence[Sums]],
    unit: str,
    viewer: str,
    delta: float,
    twice: bool = False,
    people: tuple[int, ...] = SEVERAL,
) -> tuple[Row, ...]:
    """Rows for zero-out and replace, and for a person with several records.

    Args:
        cells: For each way in which a row can take part, the sums that it may be in; the dearest is the price.
        unit: Whose data a row is.
        viewer: From whom it is hidden.
        delta: The δ of the total.
        twice: Whether a row that vanishes may turn its contribution round (2·clip), as inside a clipped mean of several rows.
        people: Numbers of records of one person that get rows of their own.
    """

    def cost(replaced: bool, records: int) -> CostOfRounds:
        each = [costs.cost_of_several([(s.cost(replaced, records), s.count) for s in cell]) for cell in cells]
        return costs.cost_of_dearest(each)

    single = cells[0][0] if len(cells) == 1 and len(cells[0]) == 1 else None
    whole, rounds = (single.cost, single.count) if single else (cost, 1)
    widest = max(cells, key=len)
    said = "; ".join(s.words for s in widest[:3]) + (f"; and {len(widest) - 3} more kinds" if len(widest) > 3 else "")
    out = []
    for relation, replaced in (("zero-out", twice), ("replace", True)):
        why = f"{said}; sensitivity {'2·' if replaced else ''}clip"
        out.append(Row(unit, relation, viewer, whole(replaced, 1), rounds, delta, why))
    for k in people if unit == "example" else ():
        out.append(
            Row("user", "zero-out", viewer, whole(twice, k), rounds, delta, f"a person with {k} records, which may all vanish")
        )
    return tuple(out)
