"""Frozen records of what was released. An event says what happened; the accountants say what it costs.

Notation: Δ₁, Δ₂ are L1 / L2 sensitivities under the guarantee's neighbouring relation (``sensitivity``
states and proves them). A *noise multiplier* is standard deviation / Δ₂. ``accountant`` prices
events and ``ledger`` keeps them.

The type of a field (``fields``) says what it may hold, and is checked when an event is built. A ``LevelField`` may be 0 or ∞:
as a multiplier 0 is no noise and ∞ no information, as an ε 0 is no loss and ∞ no privacy.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy import fields
from fedgraph.privacy.fields import (
    CheckedFields,
    ChoicesField,
    CountField,
    EventFlagField,
    FieldCheck,
    LevelField,
    NumberField,
    RateField,
    ReasonField,
)


@dataclass(frozen=True)
class Event(CheckedFields):
    """Abstract base of all events. An event says what one release did, not what it costs.

    Every field of a subclass has a type of ``fields``, or is an event or a tuple of events. No field has a default.

    Raises:
        PrivacyError: the value of a field is not allowed, or a subclass has a field without a checked type.
    """

    def __post_init__(self) -> None:
        unchecked = [field.name for field in dataclasses.fields(self) if field.name not in fields.checks_of(type(self))]
        if unchecked:
            named = f"{type(self).__name__}.{unchecked[0]}"
            raise PrivacyError(f"event field {named} needs a checked type of privacy.fields, such as LevelField or RateField")
        super().__post_init__()


_Inner: TypeAlias = Annotated[Event, FieldCheck("an event", lambda v: isinstance(v, Event))]
_Events: TypeAlias = Annotated[
    tuple[Event, ...], FieldCheck("a tuple of events", lambda v: isinstance(v, tuple) and all(isinstance(e, Event) for e in v))
]


@dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a value of bounded L2 sensitivity.

        value + N(0, s²I),      ‖value − value'‖₂ ≤ Δ₂

    **Edge cases.** A multiplier of 0 is no noise (ε = ∞). A multiplier of ∞ releases no information and costs nothing.
    """

    noise_multiplier: LevelField  # s / Δ₂, ≥ 0


@dataclass(frozen=True)
class Laplace(Event):
    """Laplace noise on a value of bounded L1 sensitivity.

        value + Laplace(b) per entry,      ‖value − value'‖₁ ≤ Δ₁

    **Edge cases.** As for ``Gaussian``.
    """

    noise_multiplier: LevelField  # b / Δ₁, ≥ 0


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """One of ``num_values`` values: the true one with probability e^ε / (e^ε + num_values − 1), the others equally likely."""

    epsilon: LevelField  # ε of the answer, ≥ 0
    num_values: ChoicesField  # number of values, ≥ 2


@dataclass(frozen=True)
class MultiBit(Event):
    """Random bits about one unit, each with a likelihood ratio of at most e^epsilon_per_bit."""

    epsilon_per_bit: LevelField  # ε of one bit, ≥ 0
    num_bits: NumberField  # bits of the protected unit that are sent, ≥ 0


@dataclass(frozen=True)
class BoundedRange(Event):
    """One pick of an exponential mechanism, whose log-ratios lie in an interval of length ``epsilon``.

    A one-shot Gumbel pick of k candidates, with noise of scale 2Δ/ε, is ``Repeated(BoundedRange(ε), k)``.
    """

    epsilon: LevelField  # the length of that interval, ≥ 0


@dataclass(frozen=True)
class PureDP(Event):
    """Any mechanism that is proven ε-DP."""

    epsilon: LevelField  # ε, ≥ 0


@dataclass(frozen=True)
class ApproxDP(Event):
    """Any mechanism that is proven (ε, δ)-DP, for example objective perturbation.

    Rényi and zCDP accountants add its ε and δ to the rest (basic composition). Loss distributions compose it as randomised
    response with a loss of ∞ of mass δ.
    """

    epsilon: LevelField  # ε, ≥ 0
    delta: RateField  # δ, in [0, 1]


@dataclass(frozen=True)
class PoissonGaussian(Event):
    """A noisy sum of a Poisson sample of rows: each row is in the sum by its own fresh secret coin.

    Each row is bounded by the clip C in L2 norm. The sum gets N(0, (noise_multiplier·C)²I).

    **Edge cases.** Rate 0 or a multiplier of ∞ costs nothing. Rate 1 is a ``Gaussian`` of sensitivity (2·touched_rows − 1)·C,
    or 2·touched_rows·C where rows are replaced.

    Attributes:
        noise_multiplier: std / C, ≥ 0.
        sampling_rate: probability of each coin, in [0, 1].
        touched_rows: largest number of rows that one protected unit may appear in, ≥ 1.
        replaced: False (zero-out): the unit's own row vanishes, and the other touched_rows − 1 change. True: all of them
            change.
    """

    noise_multiplier: LevelField
    sampling_rate: RateField
    touched_rows: CountField
    replaced: EventFlagField


@dataclass(frozen=True)
class FixedSizeGaussian(Event):
    """As ``PoissonGaussian``, for a secret batch of fixed size, drawn without replacement and afresh in each step.

    **Edge cases.** An empty batch costs nothing. A batch of all rows is a ``Gaussian``, as at rate 1.

    Attributes:
        noise_multiplier: std / C, ≥ 0.
        batch_size: rows in a batch, 0 … num_rows.
        num_rows: rows to draw from, ≥ 1.
        touched_rows: rows that one unit may appear in, 1 … num_rows.
        replaced: True: all touched rows are replaced. False: the own row vanishes (its place in the batch stays), and the other
            touched_rows − 1 change.

    Raises:
        PrivacyError: the batch or the touched rows do not fit into ``num_rows``.
    """

    noise_multiplier: LevelField
    batch_size: NumberField
    num_rows: CountField
    touched_rows: CountField
    replaced: EventFlagField

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.num_rows or self.touched_rows > self.num_rows:
            raise PrivacyError(
                f"a batch of {self.batch_size} and {self.touched_rows} touched rows must fit into num_rows = {self.num_rows}"
            )


@dataclass(frozen=True)
class EpochGaussian(Event):
    """One pass over fixed batches: a noisy sum for each of ``num_batches`` disjoint groups of rows, one after another.

    Each row is bounded by the clip C in L2 norm, and is in exactly one of the sums. Which one is public. Every sum gets
    N(0, (noise_multiplier·C)²I). The sums that a unit's rows are in move by at most reach·C together, where reach is
    2·touched_rows − 1, or 2·touched_rows where rows are replaced, and most in L2 norm where all of these rows are in one batch:

        price = that of ``Gaussian(noise_multiplier / reach)``

    One step costs as much as the whole pass, because the rows may be in its batch; so a pass is one event.
    """

    noise_multiplier: LevelField  # std / C, ≥ 0
    num_batches: CountField  # batches in a pass, ≥ 1. The price does not depend on it.
    touched_rows: CountField  # largest number of rows that one protected unit may appear in, ≥ 1
    replaced: EventFlagField  # as in ``PoissonGaussian``


@dataclass(frozen=True)
class MentionedGaussian(Event):
    """A noisy sum of rows, in which a unit that is not drawn may change the rows of its neighbours (``accounting.pld``).

    Each row is in the sum by its own fresh secret coin, and bounded by the clip C. A unit that is not drawn changes each drawn
    row of its neighbours with another coin. Relation: zero-out.
    """

    noise_multiplier: LevelField  # std / C, ≥ 0
    sampling_rate: RateField  # of the coin of a row, in [0, 1]
    mention_rate: RateField  # of the coin by which a drawn row reads a neighbour that was not drawn, in [0, 1]
    others: NumberField  # neighbours that one unit has, at most; ≥ 0
    heavy: EventFlagField  # the noise is √W·N(0, std²I), with one W ~ Exp(1) for all entries, in the place of N(0, std²I)


@dataclass(frozen=True)
class SampledOnce(Event):
    """``event`` was run on one secret sample of the units.

    The sample is drawn in one of two ways (``accounting.amplification``): by independent coins, where "sampled and zeroed" and
    "not sampled" give the same output law (zero-out); or as a fixed number of units without replacement, where ``event`` is
    priced for replaced units.
    """

    event: _Inner  # everything that was run on the sample
    sampling_rate: RateField  # probability of the coins, or fixed number / number of units; in [0, 1]


@dataclass(frozen=True)
class Repeated(Event):
    """``event``, ``count`` times, adaptively."""

    event: _Inner  # what is repeated
    count: NumberField  # how often, ≥ 0; 0 costs nothing


@dataclass(frozen=True)
class Composed(Event):
    """All ``events``, adaptively, in order."""

    events: _Events  # what happened; empty: nothing


@dataclass(frozen=True)
class OneOf(Event):
    """One of ``alternatives``, chosen by what was released before."""

    alternatives: _Events  # what may happen


_Choice: TypeAlias = Annotated[OneOf, FieldCheck("a OneOf", lambda v: isinstance(v, OneOf))]


@dataclass(frozen=True)
class PartOf(Event):
    """One release of one alternative of a choice.

    Its price is that of the whole choice, counted once for all releases of one alternative. It is counted once more where a
    release of another alternative, or one too many, is there.
    """

    event: _Inner  # what this release alone does
    whole: _Choice  # the choice
    index: NumberField  # of the alternative in ``whole``, ≥ 0


@dataclass(frozen=True)
class Selected(Event):
    """The best of K trials by their released scores; each trial is of a candidate drawn at random, and K is secret.

    K ≥ 1 follows the truncated negative binomial distribution of ``accounting.selection``. Only the best trial is shown.

    **Edge cases.** stop = 0 or an infinite shape defines no distribution: ε = ∞.
    """

    candidates: _Events  # for each candidate, everything that one trial of it releases, its score included
    shape: LevelField  # η ≥ 0 of that distribution; 0: logarithmic, 1: geometric
    stop: RateField  # γ in [0, 1]; 1 is a single trial


@dataclass(frozen=True)
class Unprotected(Event):
    """A value that was sent in clear: ε = ∞."""

    reason: ReasonField  # what was sent and why, for reports


def all_types(base: type[Event] = Event) -> dict[str, type[Event]]:
    """Name → class of every subclass of ``base``, at any depth."""
    return {name: kind for c in base.__subclasses__() for name, kind in ({c.__name__: c} | all_types(c)).items()}


def flatten(event: Event, count: int = 1) -> Iterator[tuple[Event, int]]:
    """The leaves of an event, each with the number of its occurrences.

    Args:
        event: ``Composed`` and ``Repeated`` are opened; all others are leaves, ``SampledOnce`` included.
        count: occurrences of ``event`` itself.

    Yields:
        (leaf, occurrences), in order; leaves that occur 0 times are left out.
    """
    if isinstance(event, Composed):
        for inner in event.events:
            yield from flatten(inner, count)
    elif isinstance(event, Repeated):
        if event.count:
            yield from flatten(event.event, count * event.count)
    else:
        yield event, count


def to_dict(event: Event) -> dict[str, object]:
    """The event as JSON: ``type``, the name of its class, and its fields; infinities become the string ``"inf"``."""
    values = {f.name: plain(getattr(event, f.name)) for f in dataclasses.fields(event)}
    return {"type": type(event).__name__, **values}


def plain(value: object) -> object:
    """``value`` as JSON: events become mappings, tuples become lists, infinities become the string ``"inf"``."""
    if isinstance(value, Event):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def from_dict(data: Mapping[str, object]) -> Event:
    """Inverse of ``to_dict``.

    Raises:
        UnknownEventError: no event has this type.
        KeyError: a field is missing.
        PrivacyError: the value of a field is not allowed.
    """
    kinds, kind = all_types(), data.get("type")
    if kind not in kinds:
        raise UnknownEventError(f"unknown event type {kind!r}; allowed: {', '.join(sorted(kinds))}")
    known = kinds[str(kind)]
    return known(**{f.name: _read(data[f.name]) for f in dataclasses.fields(known)})


def _read(value: object) -> object:
    if isinstance(value, Mapping):
        return from_dict(value)
    if isinstance(value, list):
        return tuple(_read(v) for v in value)
    return math.inf if value == "inf" else value
