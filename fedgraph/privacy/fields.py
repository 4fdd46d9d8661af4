"""Checked field types of events, mechanisms and bounds: a value is checked when the record is built.

Every type of a number refuses NaN, negative numbers and booleans. The functions below check what a field type cannot: a single
number, an interval, an array. All arrays of privacy/ have the type ``ArrayField``.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from fedgraph.errors import PrivacyError, UnboundedValueError


@dataclass(frozen=True)
class FieldCheck:
    """A rule for the values of a field."""

    words: str  # completes “must be …” in the error
    accepts: Callable[[object], bool]  # value → whether the field may hold it


def _number(value: object, least: float = 0, most: float = math.inf) -> bool:
    """Whether ``value`` is a number in [least, most]; NaN is not, because its comparisons are False."""
    kind = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return kind and bool(least <= value <= most)  # type: ignore[operator]


def _integer(least: int) -> FieldCheck:
    return FieldCheck(f"an integer ≥ {least}", lambda v: isinstance(v, (int, np.integer)) and _number(v, least))


LevelField: TypeAlias = Annotated[float, FieldCheck("a number ≥ 0", _number)]
RateField: TypeAlias = Annotated[float, FieldCheck("in [0, 1]", lambda v: _number(v, 0, 1))]
NumberField: TypeAlias = Annotated[int, _integer(0)]
CountField: TypeAlias = Annotated[int, _integer(1)]
ChoicesField: TypeAlias = Annotated[int, _integer(2)]
EventFlagField: TypeAlias = Annotated[bool, FieldCheck("True or False", lambda v: isinstance(v, bool))]
PositiveField: TypeAlias = Annotated[float, FieldCheck("a finite number > 0", lambda v: _number(v) and 0 < v < math.inf)]
ReasonField: TypeAlias = Annotated[str, FieldCheck("a text", lambda v: isinstance(v, str))]


@dataclass(frozen=True)
class CheckedFields:
    """A frozen record whose fields are checked when it is built.

    A field is checked where its type is one of this module's, or another ``Annotated`` type with a ``FieldCheck``. Other fields
    may hold anything that a subclass does not refuse itself.

    Raises:
        PrivacyError: a value that the type of its field does not accept.
    """

    def __post_init__(self) -> None:
        for name, check in checks_of(type(self)).items():
            value = getattr(self, name)
            if not check.accepts(value):
                raise PrivacyError(f"{type(self).__name__}.{name} must be {check.words}, found {value!r}")


_CHECKS: dict[type[CheckedFields], dict[str, FieldCheck]] = {}  # the types of a class are read once


def checks_of(kind: type[CheckedFields]) -> dict[str, FieldCheck]:
    """Field name → check, of every field of ``kind`` whose type has a check."""
    if kind not in _CHECKS:
        hints = get_type_hints(kind, include_extras=True)
        declared = {f.name: [m for m in get_args(hints[f.name]) if isinstance(m, FieldCheck)] for f in dataclasses.fields(kind)}
        _CHECKS[kind] = {name: checks[0] for name, checks in declared.items() if checks}
    return _CHECKS[kind]


def require_positive(name: str, value: float) -> None:
    """Raises ``PrivacyError`` unless ``value`` is a finite number above 0. name: what it is, for the error."""
    if not (math.isfinite(value) and value > 0):
        raise PrivacyError(f"{name} must be a finite number > 0, found {value}")


def require_event_interval(name: str, low: float, high: float) -> None:
    """Raises ``PrivacyError`` unless both limits are finite and ``low`` < ``high``. name: of what, for the error."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise PrivacyError(f"{name} needs finite low < high, found [{low}, {high}]")


def require_finite(value: np.ndarray) -> None:
    """Raises ``UnboundedValueError`` if an entry of ``value`` is NaN or infinite."""
    if not np.isfinite(value).all():
        raise UnboundedValueError("the value to release holds NaN or infinity, which no bound and no noise can cover")


ArrayField: TypeAlias = npt.NDArray[np.float64]
