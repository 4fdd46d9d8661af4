"""The one record of facts: what a reader finds in a foreign configuration, or in the record of a run.

A reader is a function ``(document) -> Reading`` in a file of ``readers``; its entry of ``catalogue.yaml`` names it. It
prices nothing: it says what the file says, as events of ``fedgraph.privacy``, and raises ``PricingError`` in one line for what
the file cannot mean. What the file leaves out it asks by ``document.ask``, and it multiplies all noise by ``document.louder``.
So the same lines answer three questions, because the file is only read again: what is it worth, what if 1 % take part, and how
much noise would buy a given ε.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedgraph.privacy import (
    Composed,
    Event,
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    PureDP,
    Repeated,
    Unprotected,
    amplification,
    events,
    price,
)

TO_SERVER = "the server, which sees each client's message"
TO_SUMS = "the server and the other clients, who see sums over clients"
WITH_MODELS = "whoever receives the models; the server is trusted"
TO_RECIPIENT = "whoever receives the result; the holder of the data is trusted"
SEVERAL = (2, 10)  # records of one person, shown beside the price of one
SELECTED = "early stopping, tuning and metrics on private data are not counted"
SECRET = "Amplification holds for viewers who do not learn who was sampled."
COMPOSED = "Clip, sum, noise; steps compose adaptively; everything after a noised sum is post-processing."
_UNITS = 10**9  # units of a fixed-size sample whose number is not known; its share is rounded up to so many parts


@dataclass(frozen=True)
class Row:
    """One guarantee: of which unit, between which worlds, from whom."""

    unit: str  # whose data are protected, such as ``example``, ``client``, ``edge``
    relation: str  # ``zero-out`` (the unit vanishes), ``replace`` (it becomes another one), or a relation of graphs
    viewer: str  # from whom the unit is hidden, in words
    event: Event  # what one round releases
    rounds: int  # how many rounds there are; 0 or more
    delta: float  # the δ in [0, 1) of the total
    why: str  # one sentence with the sensitivity and the composition


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
    not_priced: tuple[str, ...] = ()  # what of the file is not counted: options, filters, cells
    order: tuple[str, ...] = ()  # sentences that say what happens in which order, and how it composes
    settings: Mapping[str, float] | None = None  # options that hold the noise, times ``louder``; None where none does
    assumed: tuple[str, ...] = ()  # what the price takes for granted and somebody may change from outside
    people: float | None = None  # how many units there are in all; a δ above one over them is told
    closed: bool = True  # whether answers close it; False: nothing makes a total of it


def in_clear(unit: str, viewer: str, reason: str, relation: str = "zero-out", delta: float = 0.0, rounds: int = 1) -> Row:
    """The row of a unit that nothing protects: ∞, because."""
    return Row(unit, relation, viewer, Unprotected(reason), max(rounds, 1), delta, reason)


def without_claim(words: str) -> tuple[Claim, ...]:
    """What a file publishes that states no ε."""
    return (Claim(None, None, "none", words),)


@dataclass(frozen=True)
class Sums:
    """Noised sums of clipped contributions, all of one kind."""

    multiplier: float  # standard deviation of the noise (of Laplace noise: its scale) over the clip; 0 or more
    count: int  # how many there are; of shuffled batches the passes, in each of which a row is in one sum
    sampling: str = "none"  # ``poisson``, ``fixed`` (drawn afresh without replacement), or ``none``: no amplification
    rate: float = 1.0  # the share of the units in a sum
    draws: int = 1  # independent draws that go into one sum
    units: int | None = None  # units to draw from, where they are known
    laplace: bool = False  # Laplace noise, and a clip in L1
    answer: Event | None = None  # of randomised answers in place of sums: what one costs
    how: str = ""  # these in words

    @property
    def words(self) -> str:
        if self.answer is not None:
            return self.how if self.count == 1 else f"{self.count:,} × {self.how}"
        how = {"poisson": "Poisson-sampled at rate {:g}", "fixed": "fixed-size batches of a share {:g}"}.get(self.sampling)
        said = "a row in one sum of each, no amplification"
        if how is not None:
            said = how.format(self.rate) if self.rate < 1 else "all units in each, no amplification"
        noise = f"Laplace noise of scale {self.multiplier:.6g}" if self.laplace else f"noise std = {self.multiplier:.6g}"
        return f"{self.count:,} sum{'' if self.count == 1 else 's'} with {noise}·clip, {said}"

    def event(self, replaced: bool, records: int = 1) -> Event:
        """One sum, for a unit of ``records`` rows: its own vanishes, or is replaced, and the others change."""
        if self.answer is not None:
            return self.answer
        reach = 2 * records * self.draws - (0 if replaced else 1)
        if self.laplace:
            whole, hidden = (
                _over(reach, self.multiplier),
                _over(2 if replaced or self.sampling == "fixed" else 1, self.multiplier),
            )
            amplified = amplification.amplified_epsilon(hidden, self.rate) if records == 1 and 0 < hidden < math.inf else whole
            return events.Laplace(self.multiplier / reach) if whole <= amplified else PureDP(amplified)
        if self.sampling == "poisson":
            return PoissonGaussian(self.multiplier, self.rate, records * self.draws, replaced)
        if self.sampling == "fixed" and records == 1:
            units = self.units or _UNITS
            return FixedSizeGaussian(
                self.multiplier, min(units, math.ceil(self.rate * units * (1 - 1e-12))), units, 1, replaced
            )
        return Gaussian(self.multiplier / (2 * records - (0 if replaced else 1)))


def _over(reach: float, multiplier: float) -> float:
    return reach / multiplier if multiplier else math.inf


def rows_of_sums(
    cells: Sequence[Sequence[Sums]],
    unit: str,
    viewer: str,
    delta: float,
    twice: bool = False,
    people: tuple[int, ...] = SEVERAL,
    relations: tuple[str, ...] = ("zero-out", "replace"),
) -> tuple[Row, ...]:
    """Rows for zero-out and replace, and for a person with several records.

    Args:
        cells: For each way in which a unit can take part, the sums that it may be in; the dearest is the price.
        unit: Whose data a row is.
        viewer: From whom it is hidden.
        delta: The δ of the total.
        twice: Whether a row that vanishes may turn its contribution round (2·clip), as inside a clipped mean of several rows.
        people: Numbers of records of one person that get rows of their own.
        relations: What becomes of the unit.
    """

    def row(unit: str, relation: str, records: int, why: str) -> Row:
        replaced = twice or relation == "replace"
        if len(cells) == len(cells[0]) == 1:
            [[alone]] = cells
            return Row(unit, relation, viewer, alone.event(replaced, records), alone.count, delta, why)
        each = [Composed(tuple(Repeated(s.event(replaced, records), s.count) for s in cell)) for cell in cells]
        return Row(unit, relation, viewer, dearest(each, delta), 1, delta, why)

    widest = max(cells, key=len)
    said = "; ".join(s.words for s in widest[:3]) + (f"; and {len(widest) - 3} more kinds" if len(widest) > 3 else "")
    moved = "" if all(s.answer for s in widest) else "; sensitivity {}clip"
    out = [row(unit, r, 1, said + moved.format("2·" if twice or r == "replace" else "")) for r in relations]
    for k in people if unit in ("example", "record") else ():
        out.append(row("user", relations[0], k, f"a person with {k} records: one vanishes, and the others change"))
    return tuple(out)


def dearest(each: Sequence[Event], delta: float) -> Event:
    """The one that costs most: what a unit pays that takes part in one of them only."""
    return each[0] if len(each) == 1 else max(each, key=lambda event: price(event, delta).epsilon)
