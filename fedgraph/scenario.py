"""From YAML to a validated, frozen scenario. Every error is one line: ``file:line: found; allowed; hint``.

The top level is described by ``Scenario`` below; each task, method and partition brings its own ``Params``
(pydantic, frozen, unknown keys forbidden), found by file name. PyYAML reads ``1e-6`` as a string and
``inf`` as a word: both are accepted where a number is wanted.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedgraph import plugins
from fedgraph.errors import ScenarioError

Location = tuple[str | int, ...]


class RuntimeSettings(BaseModel):
    """Where the work runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    engine: Literal["ray", "serial"] = Field("ray", description="ray, or serial for one process")
    workers: int | None = Field(None, ge=1, description="actors in the pool; default one per CPU")
    gpus_per_worker: float | None = Field(None, ge=0, description="default: the cluster's GPUs divided evenly")


class DatasetSettings(BaseModel):
    """One data set; ``path`` for ``own/npz`` and ``own/csv``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(description="family/dataset, e.g. planetoid/citeseer")
    label: str = Field("", description="its name in tables; default the name. Needed where two share a name")
    root: Path | None = Field(None, description="folder in PyG's raw layout; never written to")
    path: Path | None = Field(None, description="one's own file or folder")
    when_unavailable: Literal["error", "synthetic"] = Field("error", description="no files and no network: stop, or a stand-in")
    parameters: dict[str, Any] = Field(default_factory=dict, description="of generated and own data")
    enabled: bool = Field(True, description="false: listed, and left out until --set datasets.N.enabled=true")


class Scenario(BaseModel):
    """A whole experiment. tasks: validated by their own modules, see ``TaskSettings``."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="names the run's folder")
    title: str = Field("", description="one sentence: what is compared")
    seed: int = Field(0, ge=0, description="root of every random stream")
    seeds: int = Field(1, ge=1, description="independent repetitions")
    runtime: RuntimeSettings = RuntimeSettings()
    datasets: list[DatasetSettings] = Field(default_factory=list, description="each task that needs data runs on each of them")
    tasks: list[dict[str, Any]] = Field(min_length=1, description="what to run, see fedgraph/tasks")
    quick: dict[str, Any] = Field(default_factory=dict, description="dotted keys that --quick replaces")


@dataclass(frozen=True)
class TaskSettings:
    """One task with its validated parameters. label: unique within the scenario. datasets: those it runs on; none: all."""

    label: str
    kind: str
    params: Any
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ready:
    """A scenario with its tasks validated, and the plain mapping it came from (resolved)."""

    scenario: Scenario
    tasks: tuple[TaskSettings, ...]
    resolved: dict[str, Any]


class _Source:
    """The file, and on which line each key stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            if node is not None:
                self._walk(node, ())
            self.data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            raise ScenarioError(f"{path}:{line}: not YAML: {getattr(error, 'problem', error)}") from error

    def _walk(self, node: yaml.Node, at: Location) -> None:
        self.lines[at] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            seen: dict[Any, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value in seen:
                    raise ScenarioError(f"{self.path}:{line}: key {key.value!r} appears twice; first on line {seen[key.value]}")
                seen[key.value] = line
                self._walk(value, (*at, key.value))
                self.lines[(*at, key.value)] = line
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self._walk(value, (*at, index))

    def line(self, at: Location) -> int:
        """The line of ``at``, or of the nearest key above it."""
        parts = tuple(str(p) if not isinstance(p, int) else p for p in at)
        while parts and parts not in self.lines:
            parts = parts[:-1]
        return self.lines.get(parts, 1)

    def error(self, at: Location, message: str) -> ScenarioError:
        return ScenarioError(f"{self.path}:{self.line(at)}: {message}")


def load(path: Path, changes: Sequence[str] = (), quick: bool = False, seeds: int | None = None) -> Ready:
    """Read, change (``--quick``, ``--seeds``, then ``--set key=value`` …) and validate a scenario file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    source = _Source(path, text)
    if not isinstance(source.data, dict):
        raise ScenarioError(f"{path}:1: a scenario is a mapping of keys, found {type(source.data).__name__}")
    data = _in_todays_words(source.data)
    if quick:
        for key, value in (data.get("quick") or {"seeds": 1}).items():
            _assign(data, key, value, lambda m: source.error(("quick",), m))
    if seeds is not None:
        data["seeds"] = seeds
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise ScenarioError(f"--set {change}: expected key=value, e.g. --set tasks.0.epsilons=[1,8]")
        _assign(data, key, yaml.safe_load(value), lambda m, c=change: ScenarioError(f"--set {c}: {m}"))
    scenario = validate(Scenario, data, source, ())
    scenario = scenario.model_copy(update={"datasets": [d for d in scenario.datasets if d.enabled]})
    shown = [d.label or d.name for d in scenario.datasets]
    for index, name in enumerate(shown):
        if name in shown[:index]:
            raise source.error(("datasets", index), f"two data sets are called {name!r}; give each its own 'label'")
    tasks = tuple(_task(source, index, task, shown) for index, task in enumerate(scenario.tasks))
    labels = [t.label for t in tasks]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            raise source.error(("tasks", index), f"two tasks are labelled {label!r}; give each its own 'label'")
    resolved = scenario.model_dump(mode="json")
    resolved["tasks"] = [
        {"task": t.kind, "label": t.label, **({"datasets": list(t.datasets)} if t.datasets else {})}
        | t.params.model_dump(mode="json")
        for t in tasks
    ]
    resolved.pop("quick")
    return Ready(scenario, tasks, resolved)


_LEVELS = {"gap": "edge", "sage": "node"}  # methods of version 0.1 that held two, and the level that was meant where none stood


def _in_todays_words(data: Any) -> Any:
    """``data`` with methods as this version names them: ``method: gap, level: node`` of version 0.1 is ``method: gap_node``."""
    if isinstance(data, list):
        return [_in_todays_words(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    found = {key: _in_todays_words(value) for key, value in data.items()}
    name = found.get("method")
    if isinstance(name, str) and name in _LEVELS:
        level = found.pop("level", _LEVELS[name])
        found["method"] = f"{name}_{level}"
    return found


def _task(source: _Source, index: int, task: dict[str, Any], shown: Sequence[str]) -> TaskSettings:
    at: Location = ("tasks", index)
    settings = dict(task)
    kind = settings.pop("task", None)
    if kind is None:
        raise source.error(at, f"a task needs the key 'task'; allowed values: {', '.join(plugins.names('tasks'))}")
    label = settings.pop("label", kind)
    only = settings.pop("datasets", [])
    if not isinstance(only, list) or not set(map(str, only)) <= set(shown):
        raise source.error(
            (*at, "datasets"), f"a list of the scenario's data sets was expected, found {only!r}; allowed: {shown}"
        )
    module = _plugin(source, (*at, "task"), "tasks", kind)
    params = validate(module.Params, settings, source, at)
    if getattr(module, "NEEDS_DATA", True) and not shown:
        raise source.error((*at, "task"), f"task {kind!r} needs data: add (or enable) a data set under the key 'datasets'")
    for where, package, spec in module.plugins_of(params):
        spec = dict(spec)
        key = package.removesuffix("s")
        name = spec.pop(key, None)
        if name is None:
            raise source.error((*at, *where), f"missing key {key!r}; allowed values: {', '.join(plugins.names(package))}")
        inner = _plugin(source, (*at, *where, key), package, name)
        validate(inner.Params, {k: v for k, v in spec.items() if k != "label"}, source, (*at, *where))
    return TaskSettings(str(label), kind, params, tuple(map(str, only)))


def _plugin(source: _Source, at: Location, package: str, name: Any) -> types.ModuleType:
    try:
        return plugins.load(package, str(name))
    except ScenarioError as error:
        raise source.error(at, str(error)) from None


def validate(model: type[BaseModel], data: Any, source: _Source, at: Location) -> Any:
    """``data`` as ``model``; the first problem becomes a ``ScenarioError`` at its line."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # a misspelt key is also a missing one
        where = tuple(p for p in problem["loc"] if not (isinstance(p, str) and "[" in p))
        raise source.error((*at, *where), _explain(model, where, problem)) from None


def _explain(model: type[BaseModel], where: Location, problem: Any) -> str:
    key = ".".join(str(p) for p in where)
    if problem["type"] == "extra_forbidden":
        allowed = _keys(model, where[:-1])
        return f"unknown key {key!r}{plugins.suggest(str(where[-1]), allowed)}; allowed: {', '.join(allowed)}"
    if problem["type"] == "missing":
        return f"missing key {key!r}; it is needed here"
    found = problem.get("input")
    message = problem["msg"].removeprefix("Value error, ")
    return f"{key}: found {found!r}; {message[0].lower()}{message[1:]}"


def _keys(model: type[BaseModel], where: Location) -> list[str]:
    """The keys allowed at ``where`` below ``model`` (best effort: the nearest described model)."""
    current: Any = model
    for part in where:
        if isinstance(part, int):
            continue
        found = current.model_fields.get(part)
        inner = _model_inside(found.annotation) if found is not None else None
        if inner is None:
            break
        current = inner
    return list(current.model_fields)


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        if (inner := _model_inside(argument)) is not None:
            return inner
    return None


def _assign(data: Any, key: str, value: Any, error: Any) -> None:
    """Set the dotted ``key`` (numbers index lists) in nested ``data``."""
    *path, last = key.split(".")
    at = data
    for part in path:
        if isinstance(at, list) and part.isdigit() and int(part) < len(at):
            at = at[int(part)]
        elif isinstance(at, dict):
            at = at.setdefault(part, {})
        else:
            raise error(f"there is no {part!r} in {key!r}")
    if isinstance(at, list):
        if not last.isdigit() or int(last) >= len(at):
            raise error(f"{last!r} is not a position in {'.'.join(path)!r}, which has {len(at)} entries")
        at[int(last)] = value
    elif isinstance(at, dict):
        at[last] = value
    else:
        raise error(f"{'.'.join(path)!r} is a single value and has no key {last!r}")
