"""Frozen descriptions of what was released. An event says what happened; the accountants say what it costs.

Notation: Δ₁, Δ₂ are L1 / L2 sensitivities under the guarantee's neighbouring relation (``sensitivity``
states and proves them). A *noise multiplier* is standard deviation / Δ₂. Pricing lives in
``accountant``; remembering lives in ``ledger``. The three are never merged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedgraph.errors import PrivacyError, UnknownEventError


@dataclass(frozen=True)
class Event:
    """Base of all events; abstract. Every field is checked by its name when an event is built.

    **Edge cases.**

        NaN, a negative number              PrivacyError, in every field
        noise_multiplier, epsilon, rho      0 and ∞ are allowed: no noise / no loss, nothing said / no privacy
        sampling_rate, delta                in [0, 1]
        batch_size, num_bits, count         an integer ≥ 0 (of any size)
        touched_rows, num_rows, num_values  an integer ≥ 1 (num_values ≥ 2)
        knee, silent                        an integer ≥ 1, an integer ≥ 0
        gate                                a ``NoisyDegreeBits``
    """

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            allowed = _allowed(f.name, value)
            if allowed:
                raise PrivacyError(f"{type(self).__name__}.{f.name} must be {allowed}, found {value!r}")


_LEAST_INTEGER = {"batch_size": 0, "num_bits": 0, "count": 0, "touched_rows": 1, "num_rows": 1, "num_values": 2}
_LEAST_INTEGER |= {"knee": 1, "silent": 0}
_KINDS: dict[str, tuple[type, str]] = {
    "event": (Event, "an event"),
    "reason": (str, "a text"),
    "replaced": (bool, "True or False"),
}


def _allowed(name: str, value: Any) -> str:
    """What the field must be, if ``value`` is not that; else the empty string."""
    if name in _KINDS:
        return "" if isinstance(value, _KINDS[name][0]) else _KINDS[name][1]
    if name == "gate":
        return "" if isinstance(value, NoisyDegreeBits) else "a NoisyDegreeBits"
    if name == "events":
        return "" if isinstance(value, tuple) and all(isinstance(e, Event) for e in value) else "a tuple of events"
    if name in _LEAST_INTEGER:
        least = _LEAST_INTEGER[name]
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        return "" if whole and value >= least else f"an integer ≥ {least}"
    if not isinstance(value, (int, float, np.floating)) or math.isnan(value) or value < 0:
        return "a number ≥ 0"
    if name in ("sampling_rate", "delta") and value > 1:
        return "in [0, 1]"
    return ""


@dataclass(frozen=True)
class Gaussian(Event):
    """value + N(0, s²I), ‖value − value'‖₂ ≤ Δ₂, noise_multiplier = s / Δ₂ (0: no noise; ∞: nothing said)."""

    noise_multiplier: float


@dataclass(frozen=True)
class Laplace(Event):
    """value + Laplace(b) per entry, ‖value − value'‖₁ ≤ Δ₁, noise_multiplier = b / Δ₁."""

    noise_multiplier: float


@dataclass(frozen=True)
class RandomizedResponse(Event):
    """One of ``num_values`` values, the true one with probability e^ε / (e^ε + num_values − 1)."""

    epsilon: float
    num_values: int


@dataclass(frozen=True)
class MultiBit(Event):
    """``num_bits`` bits of the protected unit, each with likelihood ratio at most e^epsilon_per_bit."""

    epsilon_per_bit: float
    num_bits: int


@dataclass(frozen=True)
class BoundedRange(Event):
    """One pick of an exponential mechanism whose log-ratios lie in an interval of length ``epsilon``
    (one-shot Gumbel with scale 2Δ/ε picks k times: ``Repeated(BoundedRange(ε), k)``)."""

    epsilon: float


@dataclass(frozen=True)
class PureDP(Event):
    """Any mechanism proven ε-DP."""

    epsilon: float


@dataclass(frozen=True)
class ApproxDP(Event):
    """Any mechanism proven (ε, δ)-DP; composes by basic composition only (e.g. objective perturbation)."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class ZCDP(Event):
    """Any mechanism proven ρ-zCDP (Bun & Steinke 2016)."""

    rho: float


@dataclass(frozen=True)
class PoissonGaussian(Event):
    """A sum of rows, each included by its own fresh secret coin of rate ``sampling_rate``, each row bounded
    by the clip C, plus N(0, (noise_multiplier·C)²I).

    The protected unit appears in at most ``touched_rows`` rows. ``replaced`` False (zero-out): its own row
    vanishes and the other touched_rows − 1 change; True: all of them change.
    """

    noise_multiplier: float
    sampling_rate: float
    touched_rows: int = 1
    replaced: bool = False


@dataclass(frozen=True)
class FixedSizeGaussian(Event):
    """As ``PoissonGaussian``, but a batch of exactly ``batch_size`` of ``num_rows`` rows is drawn without
    replacement, afresh each step. ``replaced`` True: all touched rows are replaced; False: the own row vanishes (its place in
    the batch stays), the other touched_rows − 1 change."""

    noise_multiplier: float
    batch_size: int
    num_rows: int
    touched_rows: int = 1
    replaced: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size > self.num_rows or self.touched_rows > self.num_rows:
            raise PrivacyError(
                f"a batch of {self.batch_size} and {self.touched_rows} touched rows must fit into num_rows = {self.num_rows}"
            )


@dataclass(frozen=True)
class NoisyDegreeBits(Event):
    """Of each of ``num_rows`` nodes one bit, [degree + N(0, noise_std²) ≤ threshold]; the protected node's own bit is shown to
    nobody but itself. It counts once in the degree of each of its neighbours."""

    noise_std: float
    threshold: float
    num_rows: int


@dataclass(frozen=True)
class GatedSums(Event):
    """Sums over neighbours plus N(0, noise_std²I), in the graph of those nodes alone whose bit of ``gate`` is 1, edges weighed
    by the degree cap of ``knee`` and ``silent`` (0: every edge weighs 1); the protected node's own row is shown to nobody but
    itself. All sums with an equal gate lie behind the same bits, whose price is part of theirs (``accounting.degree_gate``)."""

    gate: NoisyDegreeBits
    noise_std: float
    knee: int
    silent: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.silent <= self.knee:
            raise PrivacyError(f"a log cap falls from degree {self.knee} on, so it cannot be 0 from degree {self.silent} on")


@dataclass(frozen=True)
class SampledOnce(Event):
    """``event`` run on a secret sample of the units, drawn once with rate ``sampling_rate``: either by independent coins, where
    "sampled and zeroed" and "not sampled" give the same output law (zero-out), or a fixed number of them without replacement
    (rate = that number / all of them), where ``event`` is priced for replaced units (``amplification``)."""

    event: Event
    sampling_rate: float


@dataclass(frozen=True)
class Repeated(Event):
    """``event``, ``count`` times, adaptively."""

    event: Event
    count: int


@dataclass(frozen=True)
class Composed(Event):
    """All ``events``, adaptively, in order."""

    events: tuple[Event, ...]


@dataclass(frozen=True)
class Unprotected(Event):
    """Sent in clear: ε = ∞. ``reason`` says what and why."""

    reason: str


def all_types() -> dict[str, type[Event]]:
    """Name → class of every event defined here."""
    return {c.__name__: c for c in Event.__subclasses__()}


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


def to_dict(event: Event) -> dict[str, Any]:
    """A JSON-ready description; infinities become the string ``"inf"``."""
    out: dict[str, Any] = {"type": type(event).__name__}
    for f in dataclasses.fields(event):
        value = getattr(event, f.name)
        if isinstance(value, Event):
            value = to_dict(value)
        elif isinstance(value, tuple):
            value = [to_dict(v) for v in value]
        elif isinstance(value, float) and math.isinf(value):
            value = "inf"
        out[f.name] = value
    return out


def from_dict(data: dict[str, Any]) -> Event:
    """Inverse of ``to_dict``; ``UnknownEventError`` for a type that is not defined here."""
    kinds = all_types()
    kind = data.get("type")
    if kind not in kinds:
        raise UnknownEventError(f"unknown event type {kind!r}; allowed: {', '.join(sorted(kinds))}")
    values: dict[str, Any] = {}
    for f in dataclasses.fields(kinds[kind]):
        value = data[f.name]
        if isinstance(value, dict):
            value = from_dict(value)
        elif isinstance(value, list):
            value = tuple(from_dict(v) for v in value)
        elif value == "inf":
            value = math.inf
        values[f.name] = value
    return kinds[kind](**values)
