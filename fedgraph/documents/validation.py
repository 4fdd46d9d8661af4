"""Plain data as a described model; the first problem becomes one line that names place, found and allowed."""

import typing
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fedgraph import plugins
from fedgraph.documents.lines import SHOWN, Location, Source, one_line
from fedgraph.documents.settings import Settings

Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], data: object, source: Source, at: Location) -> Model:
    """``data`` as ``model``; the first problem becomes a ``ScenarioError`` at its line."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # a misspelt key is also a missing one
        where = tuple(p for p in problem["loc"] if not (isinstance(p, str) and "[" in p))
        raise source.error((*at, *where), _explain(model, where, problem)) from None


def _explain(model: type[BaseModel], where: Location, problem: ErrorDetails) -> str:
    key = ".".join(str(p) for p in where)
    if problem["type"] == "extra_forbidden":
        allowed, now = _keys(model, where[:-1]), _todays_key(model, where)
        if now:
            return f"the key {one_line(key)} is called {now!r} now: write {now}: …"
        return f"unknown key {one_line(key)}{plugins.suggest(str(where[-1]), allowed)}; allowed: {', '.join(allowed)}"
    if problem["type"] == "missing" and isinstance(where[-1], int):
        return f"{'.'.join(str(p) for p in where[:-1])}: entry {where[-1] + 1} of the list is missing"
    if problem["type"] == "missing":
        return f"missing key {key!r}; it is needed here"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] in ("model_type", "model_attributes_type"):
        message = f"a mapping was expected; allowed keys: {', '.join(_keys(model, where))}"
    if problem["type"] == "tuple_type":
        message = "a list was expected, such as [one, other]"
    if problem["type"] == "too_long" and problem["ctx"]["field_type"] == "Tuple":
        message = f"a list of {problem['ctx']['max_length']} entries was expected"
    found = repr(problem.get("input"))
    return f"{key or 'this'}: found {found if len(found) <= SHOWN else found[:SHOWN] + '…'}; {message[0].lower()}{message[1:]}"


def _todays_key(model: type[BaseModel], where: Location) -> str | None:
    """What a key of an earlier version is called now; None for a key that never was."""
    nearest = _nearest(model, where[:-1])
    if not issubclass(nearest, Settings):
        return None
    return next((name for name in nearest.model_fields if nearest.says(name).formerly == where[-1]), None)


def _keys(model: type[BaseModel], where: Location) -> list[str]:
    """The keys allowed at ``where`` below ``model`` (best effort: the nearest described model)."""
    return list(_nearest(model, where).model_fields)


def _nearest(model: type[BaseModel], where: Location) -> type[BaseModel]:
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
    for argument in typing.get_args(annotation):
        if (inner := _model_inside(argument)) is not None:
            return inner
    return None
