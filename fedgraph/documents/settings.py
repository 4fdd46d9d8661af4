"""The base class of all settings of a scenario: frozen, without unknown keys, and with limits for numbers.

Pydantic alone reads ``true`` as 1, ``.inf`` as a number and 10¹² as a size. Here

- ``true`` and ``false`` are never numbers;
- NaN is never a value, and infinity only where the field says so (``InfiniteSetting``);
- a count has a largest value: its field's own (``le``), else that of its name in ``_MOST``, else ``_MOST_SETTING_COUNT``;
- a finite number lies between ``_LEAST_NUMBER`` and ``_MOST_NUMBER`` in size, or is 0;
- a list names nothing twice.

What a field says stands in its annotation, for example ``epsilons: Annotated[list[float], InfiniteSetting]``.

``validate`` reads plain data as such a model; the first problem becomes one line that names place, found and allowed.
"""

import inspect
import math
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from fedgraph import plugins
from fedgraph.documents import sources
from fedgraph.documents.sources import SHOWN, SourceLocation, YamlSource

SettingsSpec: TypeAlias = dict[str, Any]  # a plugin as a scenario writes it: its name, and its settings before they are read

_MOST_SETTING_COUNT = 1_000_000
_MOST_NUMBER = 1e12
_LEAST_NUMBER = 1e-100

# Counts that memory or time grows with at once: a value above these is a slip of the keyboard.
_MOST = {
    "hidden": 16_384, "layers": 100, "hops": 100, "feature_hops": 1_000, "label_hops": 1_000, "max_degree": 100_000,
    "seeds": 10_000, "seeds_of": 10_000, "folds": 1_000, "workers": 4_096, "gpus_per_worker": 1_024,
    "rounds": 20_000, "local_epochs": 10_000, "epochs": 100_000, "steps": 100_000, "propagation_steps": 10_000,
    "restarts": 1_000, "num_init": 1_000, "max_iterations": 10_000, "clusters": 10_000, "memory_gb": 4_096,
    "seed": 2**63 - 1, "attendance_seed": 2**63 - 1, "nodes": 10_000_000, "edges": 1_000_000_000,
    "num_sources": 100_000, "top": 10_000, "projection": 20_000,
}  # fmt: skip


@dataclass(frozen=True)
class SettingNotes:
    """What a field says about its values, beside its type."""

    infinite: bool = False  # Whether ∞ is a value
    per_dataset: bool = False  # Whether the keys of a mapping are names of the scenario's data sets


InfiniteSetting = SettingNotes(infinite=True)  # ∞ is a value here
PerDatasetSetting = SettingNotes(per_dataset=True)  # the keys of the mapping are names of the scenario's data sets


class Settings(BaseModel):
    """The base class of all settings.

    Its fields are frozen, unknown keys are refused, and numbers are checked as the module says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Settings and class constants, as they are declared: ``Plan.fingerprint_text`` names both, since both shape noise."""
        kinds = [kind for kind in reversed(type(self).__mro__) if issubclass(kind, Settings) and kind is not Settings]
        names = dict.fromkeys(name for kind in kinds for name in inspect.get_annotations(kind))
        known = {*type(self).model_fields, *type(self).__class_vars__}
        yield from ((name, getattr(self, name)) for name in names if name in known and not name.startswith("_"))

    @classmethod
    def says(cls, field: str) -> SettingNotes:
        """What a field says about its values; the defaults of ``SettingNotes`` where it says nothing."""
        return next((m for m in cls.model_fields[field].metadata if isinstance(m, SettingNotes)), SettingNotes())

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_as_number(cls, value: object, info: ValidationInfo) -> object:
        annotation = cls.model_fields[str(info.field_name)].annotation
        if not _mentions(annotation, (bool, Any, object)) and any(isinstance(v, bool) for v in _leaves(value)):
            raise ValueError("true and false (in YAML also yes, no, on, off) are not allowed here")
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _numbers_that_can_be_meant(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        field, says = cls.model_fields[name], cls.says(name)
        if _mentions(field.annotation, (Any, object)):  # settings of a plugin: checked by its own model
            return value
        bounded = any(hasattr(m, "le") or hasattr(m, "lt") for m in field.metadata)
        for number in _leaves(value):
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                _check(number, says.infinite, None if bounded else _MOST.get(name))
        if isinstance(value, (list, tuple)):
            for index, entry in enumerate(value):
                if entry in value[:index]:
                    twice = entry.value if isinstance(entry, Enum) else entry
                    raise ValueError(f"{twice!r} appears twice; allowed: each entry once")
        return value


def _check(number: int | float, infinite: bool, most: float | None) -> None:
    """``ValueError`` for a number that cannot be meant. most: a limit of its own (None: the general one)."""
    if isinstance(number, float) and math.isnan(number):
        raise ValueError("NaN is not a number; allowed: finite numbers")
    if isinstance(number, float) and math.isinf(number):
        if not (infinite and number > 0):
            raise ValueError("an infinite number is not allowed here; allowed: finite numbers")
        return
    limit = most if most is not None else _MOST_SETTING_COUNT if isinstance(number, int) else _MOST_NUMBER
    if abs(number) > limit:
        raise ValueError(f"too large; allowed: at most {limit:,.12g}")
    if 0 < abs(number) < _LEAST_NUMBER:
        raise ValueError(f"too small; allowed: 0 where 0 makes sense, else at least {_LEAST_NUMBER:g}")


def _leaves(value: object) -> Iterator[object]:
    """Everything inside lists, tuples and mappings that is none of these. Models check themselves."""
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from _leaves(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _leaves(entry)
    else:
        yield value


def _mentions(annotation: object, wanted: tuple[object, ...]) -> bool:
    """Whether one of ``wanted``, or a model (which checks its own fields), is somewhere inside a type."""
    if annotation in wanted or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return True
    return any(_mentions(argument, wanted) for argument in typing.get_args(annotation) if not isinstance(argument, str))


Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], data: object, source: YamlSource, at: SourceLocation) -> Model:
    """Plain data as an instance of ``model``. at: the place of ``data`` in ``source``, for the line of an error.

    Raises:
        ScenarioError: The first problem, in one line that names place, found and allowed. A key that is not known comes first.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # a misspelt key is also a missing one
        where = tuple(p for p in problem["loc"] if not (isinstance(p, str) and "[" in p))
        raise source.error((*at, *where), _explain(model, where, problem)) from None


def _explain(model: type[BaseModel], where: SourceLocation, problem: ErrorDetails) -> str:
    key = ".".join(str(p) for p in where)
    if problem["type"] == "extra_forbidden":
        nearest = _nearest_model(model, where[:-1])
        allowed = list(nearest.model_fields)
        hint = plugins.suggest_plugin_name(str(where[-1]), allowed)
        return f"unknown key {sources.shorten(key)}{hint}; allowed: {', '.join(allowed)}"
    if problem["type"] == "missing" and isinstance(where[-1], int):
        return f"{'.'.join(str(p) for p in where[:-1])}: entry {where[-1] + 1} of the list is missing"
    if problem["type"] == "missing":
        return f"missing key {key!r}; it is needed here"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] in ("model_type", "model_attributes_type"):
        message = f"a mapping was expected; allowed keys: {', '.join(_nearest_model(model, where).model_fields)}"
    if problem["type"] == "tuple_type":
        message = "a list was expected, such as [one, other]"
    if problem["type"] == "too_long" and problem["ctx"]["field_type"] == "Tuple":
        message = f"a list of {problem['ctx']['max_length']} entries was expected"
    if not key and problem["type"] == "value_error":  # of several keys together: the sentence says what was found
        return message
    found = repr(problem.get("input"))
    return f"{key or 'this'}: found {found if len(found) <= SHOWN else found[:SHOWN] + '…'}; {message[0].lower()}{message[1:]}"


def _nearest_model(model: type[BaseModel], where: SourceLocation) -> type[BaseModel]:
    """The described model that holds the keys at ``where``, or the nearest one above."""
    current = model
    for part in where:
        if isinstance(part, int):
            continue
        found = current.model_fields.get(part)
        inner = _model_inside(found.annotation) if found is not None else None
        if inner is None:
            break
        current = inner
    return current


def _model_inside(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((m for each in typing.get_args(annotation) if (m := _model_inside(each)) is not None), None)
