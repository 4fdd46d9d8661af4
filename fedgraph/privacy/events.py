"""Frozen descriptions of what was released. An event says what happened; the accountants say what it costs.

Notation: Δ₁, Δ₂ are L1 / L2 sensitivities under the guarantee's neighbouring relation (``sensitivity``
states and proves them). A *noise multiplier* is standard deviation / Δ₂. Pricing lives in
``accountant``; remembering lives in ``ledger``. The three are never merged.

The type of a field says what it may hold, and is checked when an event is built:

    type         accepts
    Level        a number ≥ 0; 0 is no noise or no loss, ∞ is nothing said or no privacy
    Rate         a number in [0, 1]
    Count        an integer ≥ 1        Number       an integer ≥ 0 (of any size)      Choices   an integer ≥ 2
    Flag         True or False         Reason       a text

These types are in ``fields``. No field has a default.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy.fields import Check, Checked, Choices, Count, Flag, Level, Number, Rate, Reason, field_checks


@dataclass(frozen=True)
class Event(Checked):
    """Base of all events; abstract. Every field has one of the types above, or is an event or a tuple of events."""

    def __post_init__(self) -> None:
        unsaid = [field.name for field in dataclasses.fields(self) if field.name not in field_checks(type(self))]
        if unsaid:
            named = f"{type(self).__name__}.{unsaid[0]}"
            raise PrivacyError(f"{named} says not what it may hold: declare it as Level, Rate, Count or the like")
        super().__post_init__()


Inner: TypeAlias = Annotated[Event, Check("an event", lambda v: isinstance(v, Event))]
Events: TypeAlias = Annotated[
    tuple[Event, ...], Check("a tuple of events", lambda v: isinstance(v, tuple) and all(isinstance(e, Event) for e in v))
]


@dataclass(frozen=True)
class Gaussian(Event):
    """value + N(0, s²I), ‖value − value'‖₂ ≤ Δ₂, noise_multiplier = s / Δ₂ (0: no noise; ∞: nothing said)."""

    noise_multiplier: Level


@dataclass(frozen=True)
class Laplace(Event):
    """value + Laplace(b) per entry, ‖value − value'‖₁ ≤ Δ₁, noise_multiplier = b / Δ₁."""

    noise_multiplier: Level


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """One of ``num_values`` values, the true one with probability e^ε / (e^ε + num_values − 1)."""

    epsilon: Level
    num_values: Choices


@dataclass(frozen=True)
class MultiBit(Event):
    """``num_bits`` bits of the protected unit, each with likelihood ratio at most e^epsilon_per_bit."""

    epsilon_per_bit: Level
    num_bits: Number


@dataclass(frozen=True)
class BoundedRange(Event):
    """One pick of an exponential mechanism whose log-ratios lie in an interval of length ``epsilon``
    (one-shot Gumbel with scale 2Δ/ε picks k times: ``Repeated(BoundedRange(ε), k)``)."""

    epsilon: Level


@dataclass(frozen=True)
class PureDP(Event):
    """Any mechanism proven ε-DP."""

    epsilon: Level


@dataclass(frozen=True)
class ApproxDP(Event):
    """Any mechanism proven (ε, δ)-DP; composes by basic composition only (e.g. objective perturbation)."""

    epsilon: Level
    delta: Rate


@dataclass(frozen=True)
class ZCDP(Event):
    """Any mechanism proven ρ-zCDP (Bun & Steinke 2016)."""

    rho: Level


@dataclass(frozen=True)
class PoissonGaussian(Event):
    """A sum of rows, each included by its own fresh secret coin of rate ``sampling_rate``, each row bounded
    by the clip C, plus N(0, (noise_multiplier·C)²I).

    The protected unit appears in at most ``touched_rows`` rows. ``replaced`` False (zero-out): its own row
    vanishes and the other touched_rows − 1 change; True: all of them change.
    """

    noise_multiplier: Level
    sampling_rate: Rate
    touched_rows: Count
    replaced: Flag


@dataclass(frozen=True)
class FixedSizeGaussian(Event):
    """As ``PoissonGaussian``, but a batch of exactly ``batch_size`` of ``num_rows`` rows is drawn without
    replacement, afresh each step. ``replaced`` True: all touched rows are replaced; False: the own row vanishes (its place in
    the batch stays), the other touched_rows − 1 change."""

    noise_multiplier: Level
    batch_size: Number
    num_rows: Count
    touched_rows: Count
    replaced: Flag

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.num_rows or self.touched_rows > self.num_rows:
            raise PrivacyError(
                f"a batch of {self.batch_size} and {self.touched_rows} touched rows must fit into num_rows = {self.num_rows}"
            )


@dataclass(frozen=True)
class MentionedGaussian(Event):
    """A sum of rows, each drawn by its own fresh secret coin of rate ``sampling_rate`` and bounded by the clip C, plus noise of
    standard deviation noise_multiplier·C. A unit that is not drawn changes each drawn row of its at most ``others`` neighbours
    with a coin of ``mention_rate`` (zero-out; ``accounting.mentions``). heavy: the noise is √W N(0, ·), W ~ Exp(1)."""

    noise_multiplier: Level
    sampling_rate: Rate
    mention_rate: Rate
    others: Number
    heavy: Flag


@dataclass(frozen=True)
class SampledOnce(Event):
    """``event`` run on a secret sample of the units, drawn once with rate ``sampling_rate``: either by independent coins, where
    "sampled and zeroed" and "not sampled" give the same output law (zero-out), or a fixed number of them without replacement
    (rate = that number / all of them), where ``event`` is priced for replaced units (``amplification``)."""

    event: Inner
    sampling_rate: Rate


@dataclass(frozen=True)
class Repeated(Event):
    """``event``, ``count`` times, adaptively."""

    event: Inner
    count: Number


@dataclass(frozen=True)
class Composed(Event):
    """All ``events``, adaptively, in order."""

    events: Events


@dataclass(frozen=True)
class OneOf(Event):
    """One of ``alternatives``, chosen by what was released before."""

    alternatives: Events


Choice: TypeAlias = Annotated[OneOf, Check("a OneOf", lambda v: isinstance(v, OneOf))]


@dataclass(frozen=True)
class PartOf(Event):
    """``event``, one release of the alternative with this index of ``whole``. Its price is that of ``whole``, which is
    counted once for all releases of one alternative, and once more where one of another, or one too many, is there."""

    event: Inner
    whole: Choice
    index: Number


@dataclass(frozen=True)
class Selected(Event):
    """The best by its own released score of K trials, each of a candidate drawn at random: what was chosen privately.

    candidates: all that one trial of each releases, its score among it. K ≥ 1 is truncated negative binomial with η = shape
    (0: logarithmic, 1: geometric) and γ = stop; only the best trial is shown.
    """

    candidates: Events
    shape: Level
    stop: Rate


@dataclass(frozen=True)
class Unprotected(Event):
    """Sent in clear: ε = ∞. ``reason`` says what and why."""

    reason: Reason


def all_types(base: type[Event] = Event) -> dict[str, type[Event]]:
    """Name → class of every event that is defined, at any depth."""
    return {name: kind for c in base.__subclasses__() for name, kind in ({c.__name__: c} | all_types(c)).items()}


def flatten(event: Event, count: int = 1) -> Iterator[tuple[Event, int]]:
    """The leaves of ``event`` with how often each happens; ``SampledOnce`` is a leaf."""
    if isinstance(event, Composed):
        for inner in event.events:
            yield from flatten(inner, count)
    elif isinstance(event, Repeated):
        if event.count:
            yield from flatten(event.event, count * event.count)
    else:
        yield event, count


def to_dict(event: Event) -> dict[str, object]:
    """A JSON-ready description; infinities become the string ``"inf"``."""
    values = {f.name: plain(getattr(event, f.name)) for f in dataclasses.fields(event)}
    return {"type": type(event).__name__, **values}


def plain(value: object) -> object:
    """JSON-ready: events become mappings, tuples lists, and infinities the string ``"inf"``."""
    if isinstance(value, Event):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def from_dict(data: Mapping[str, object]) -> Event:
    """Inverse of ``to_dict``; ``UnknownEventError`` for a type that is not defined here."""
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
