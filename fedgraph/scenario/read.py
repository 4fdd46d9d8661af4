"""From YAML to a validated, frozen scenario. Every error is one line: ``file:line: found; allowed; hint``.

The top level is described by ``Scenario`` below; each task, method and partition brings its own ``Params``
(pydantic, frozen, unknown keys forbidden), found by file name. PyYAML reads ``1e-6`` as a string and
``inf`` as a word: both are accepted where a number is wanted.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from fedgraph import documents, plugins
from fedgraph.data import base as families
from fedgraph.documents import Settings, SourceLocation, YamlSource, sources
from fedgraph.errors import ScenarioError
from fedgraph.privacy import budget_book

if TYPE_CHECKING:
    from fedgraph.tasks import TaskOffers

_MOST_LABEL = 80
_UNCOUNTED = "none"  # of a budget


class ScenarioRuntime(Settings):
    """Where the work runs."""

    engine: Literal["ray", "serial"] = Field("ray", description="ray, or serial for one process")
    workers: int | None = Field(None, ge=1, description="actors in the pool; default one per CPU")
    gpus_per_worker: float | None = Field(None, ge=0, description="default: the cluster's GPUs divided evenly")
    spread: Literal["cells", "clients"] = Field(
        "clients", description="clients: a federation's rounds run at client and server actors; cells: inside one worker"
    )
    silence: float = Field(600.0, ge=10, description="seconds without a sign of life after which a worker counts as dead")


class ScenarioDataset(Settings):
    """One data set; ``path`` for ``own/…``."""

    name: str = Field(description="family/dataset, e.g. planetoid/citeseer")
    label: str = Field("", description="its name in tables; default the name. Needed where two share a name")
    root: Path | None = Field(None, description="folder in PyG's raw layout; never written to")
    path: Path | None = Field(None, description="one's own file or folder")
    when_unavailable: Literal["error", "synthetic"] = Field("error", description="no files and no network: stop, or a stand-in")
    parameters: dict[str, object] = Field(default_factory=dict, description="of generated and own data")
    enabled: bool = Field(True, description="false: listed, and left out until --set datasets.N.enabled=true")


class Scenario(Settings):
    """A whole experiment, as its file describes it. Its tasks are validated by their own modules (``ScenarioTask``)."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    name: str = Field(max_length=_MOST_LABEL, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="names the run's folder")
    title: str = Field("", description="one sentence: what is compared")
    seed: Annotated[int, Field(ge=0)] | Literal["secret"] = Field(
        0, description="root of every random stream; secret: noise and samples from the operating system, never written"
    )
    budget: str | None = Field(
        None,
        description="a book of fedgraph budget (a file, or postgresql://host/database#book), charged before a release; "
        "needs seed: secret and one data set. Of own data, where nothing is said: what FEDGRAPH_BUDGET names, or a file "
        "beside the data (people.budget beside people); none: nothing is counted",
    )
    seeds: int = Field(1, ge=1, description="independent repetitions")
    runtime: ScenarioRuntime = ScenarioRuntime()
    datasets: list[ScenarioDataset] = Field(default_factory=list, description="each task that needs data runs on each of them")
    tasks: list[dict[str, object]] = Field(min_length=1, description="what to run, see fedgraph/tasks")
    quick: dict[str, object] = Field(default_factory=dict, description="dotted keys that --quick replaces")


@dataclass(frozen=True)
class ScenarioTask:
    """One task with its validated parameters."""

    label: str  # Its name in tables; unique within the scenario
    kind: str  # The file of ``fedgraph/tasks`` that runs it
    params: Settings  # Its settings
    datasets: tuple[str, ...] = ()  # Labels of the data sets that it runs on; empty for all
    at: SourceLocation = ()  # Where it stands in the scenario


@dataclass(frozen=True)
class ReadyScenario:
    """A scenario that can be run."""

    scenario: Scenario  # The top level
    tasks: tuple[ScenarioTask, ...]  # The validated tasks, in their order
    resolved: dict[str, object]  # The plain mapping that it came from, with every default written out
    source: YamlSource  # The file
    quick: bool = False  # Whether it was shrunk by ``--quick``

    @property
    def book(self) -> str | None:
        """The budget that is charged; None where nothing is counted."""
        return None if self.scenario.budget == _UNCOUNTED else self.scenario.budget

    def place(self, task: ScenarioTask, entry: int | None) -> str:
        """Where a task or an entry of its methods stands.

        Args:
            task: The task.
            entry: The number of its entry (``Cell.entry``); None for the task.

        Returns:
            ``file:line``, or the option that gave the value.
        """
        return self.source.place((*task.at, *(() if entry is None else ("methods", entry))))


def from_file(path: Path, changes: Sequence[str] = (), quick: bool = False, seeds: int | None = None) -> ReadyScenario:
    """Read, change and validate a scenario file.

    Changes are made in this order: ``--quick``, ``--seeds``, then each ``--set``. What ``--quick`` would change is validated in
    every case, so that a slip there is found before somebody needs it.

    Args:
        path: The file.
        changes: Texts ``key=value`` with a dotted key, such as ``tasks.0.epsilons=[1,8]``. The value is YAML.
        quick: Whether the keys under ``quick`` are replaced; without that key, one seed is run.
        seeds: How many repetitions there are; None for what the file says.

    Returns:
        The scenario with its tasks.

    Raises:
        ScenarioError: One line, for the first thing that is wrong.
    """
    source = YamlSource.read(path)
    if not isinstance(source.data, dict):
        raise ScenarioError(f"{path}:1: a scenario is a mapping of keys, found {type(source.data).__name__}")
    data = copy.deepcopy(source.data)
    if not isinstance(data.get("quick", {}), dict):
        found = sources.shorten(data["quick"])
        raise source.error(("quick",), f"quick: a mapping of dotted keys was expected, found {found}")
    if data.get("quick") and not quick:
        _changed(source, data, changes, True, seeds)
    return _changed(source, data, changes, quick, seeds)


def _changed(
    source: YamlSource, given: dict[str, object], changes: Sequence[str], quick: bool, seeds: int | None
) -> ReadyScenario:
    """The scenario ``given`` with what the command line changes."""
    data = copy.deepcopy(given)
    source.changes.clear()
    if quick:
        asked = data.get("quick")
        for key, value in (asked if isinstance(asked, dict) and asked else {"seeds": 1}).items():
            at = sources.assign_key(data, key, copy.deepcopy(value), lambda m: source.error(("quick",), m))
            source.changes[at] = f"{source.name}:{source.line(('quick', key))}"
    if seeds is not None:
        data["seeds"] = seeds
        source.changes["seeds",] = f"--seeds {seeds}"
    for change in changes:
        key, equals, value = change.partition("=")
        what = f"--set {sources.shorten(change)[1:-1]}"
        if not equals:
            raise ScenarioError(f"{what}: expected key=value, e.g. --set tasks.0.epsilons=[1,8]")
        new = YamlSource(what, value, lined=False)
        source.changes[sources.assign_key(data, key, new.data, functools.partial(new.error, ()))] = what
    return replace(_validated(source, data), quick=quick)


def _validated(source: YamlSource, data: dict[str, object]) -> ReadyScenario:
    scenario = documents.settings.validate(Scenario, data, source, ())
    for index, dataset in enumerate(scenario.datasets):
        _dataset(source, index, dataset)
        if dataset.label:
            _label(source, ("datasets", index, "label"), dataset.label, slashes=True)
    every = [d.label or d.name for d in scenario.datasets]
    # --quick may leave some out, and what is said of those stays
    written = source.data.get("datasets") if isinstance(source.data, dict) else None
    every += [str(d.get("label") or d.get("name")) for d in written if isinstance(d, dict)] if isinstance(written, list) else []
    _require_apart(source, "datasets", "data sets are called", [d.label or d.name for d in scenario.datasets])
    own = [d.model_copy(update={"path": _beside(source, d.path)}) for d in scenario.datasets if d.enabled]
    written = scenario.budget
    scenario = scenario.model_copy(update={"datasets": own, "budget": _book(source, written, own)})
    if scenario.budget not in (None, _UNCOUNTED) and (scenario.seed != "secret" or len(own) != 1):
        needs = f"budget needs seed: secret (found {scenario.seed}) and one data set (found {len(own)})"
        why = "noise that can be computed again protects nobody, and a budget is of the people of one data set"
        if written is None:
            why += (
                f". FEDGRAPH_BUDGET, or its place beside the data, names {scenario.budget}; budget: none rehearses without it"
            )
        raise source.error(("budget",), f"{needs}: {why}")
    names = [d.label or d.name for d in scenario.datasets]
    tasks = tuple(_task(source, index, task, names, list(dict.fromkeys(every))) for index, task in enumerate(scenario.tasks))
    _require_apart(source, "tasks", "tasks are labelled", [t.label for t in tasks])
    resolved = scenario.model_dump(mode="json", exclude={"quick"})
    resolved["tasks"] = []
    for t in tasks:
        only = {"datasets": list(t.datasets)} if t.datasets else {}
        told = _as_plain(t.params.model_dump(mode="json"), t.params.model_dump())
        for key in (key for key, held in t.params if isinstance(held, dict) and type(t.params).says(key).per_dataset):
            told[key] = {name: value for name, value in told[key].items() if name in names}  # of those that are left
        resolved["tasks"].append({"task": t.kind, "label": t.label} | only | told)
    return ReadyScenario(scenario, tasks, resolved, source)


def _as_plain(dumped: Any, held: Any) -> Any:
    """What pydantic dumped, with the ∞ that it leaves out where it knows no type, as in rows of methods."""
    if isinstance(dumped, dict):
        return {key: _as_plain(value, held[key]) for key, value in dumped.items()} if isinstance(held, dict) else dumped
    if isinstance(dumped, list):
        return [_as_plain(*both) for both in zip(dumped, held, strict=True)]
    return held if dumped is None else dumped


def _require_apart(source: YamlSource, key: str, words: str, labels: Sequence[str]) -> None:
    """``ScenarioError`` where two labels are equal."""
    for index, label in enumerate(labels):
        if label in labels[:index]:
            raise source.error((key, index), f"two {words} {label!r}; give each its own 'label'")


def _book(source: YamlSource, given: str | None, data: Sequence[ScenarioDataset]) -> str | None:
    """The place of the budget: the file that is named, the URL, or of own data what ``budget_book.find`` finds."""
    if given is None:
        own = [d for d in data if d.name.startswith("own/")]
        return budget_book.find(None, *(d.path for d in own)) if own else None
    if given == _UNCOUNTED or budget_book.is_url(given):
        return given
    return str(_beside(source, Path(given)))


def _beside(source: YamlSource, given: Path | None) -> Path | None:
    """Relative paths of one's own files begin at the scenario's folder; where nothing is there, at the folder one is in."""
    if given is None or given.is_absolute() or given.parts[:1] == ("~",):
        return given
    beside = Path(source.name).parent / given
    return beside if beside.exists() or not given.exists() else given


def _dataset(source: YamlSource, index: int, dataset: ScenarioDataset) -> None:
    """``ScenarioError`` for a data set that does not exist, or whose settings do not belong to it."""
    at: SourceLocation = ("datasets", index)
    try:
        family, name = families.parse_data_name(dataset.name)
    except ScenarioError as error:
        raise source.error((*at, "name"), str(error)) from None
    if (model := families.data_settings(family, name)) is not None:
        documents.settings.validate(model, dataset.parameters, source, (*at, "parameters"))
    elif dataset.parameters:
        raise source.error((*at, "parameters"), f"data set {dataset.name!r} takes neither parameters nor a path")
    if dataset.name == "own/object":  # a graph in memory, given by the library
        return
    if family == "own" and dataset.path is None:
        raise source.error(at, f"data set {dataset.name!r} needs a path: the file or folder of your own data")
    if family != "own" and dataset.path is not None:
        raise source.error((*at, "path"), f"data set {dataset.name!r} takes no path; use own/read for a file")


def _task(source: YamlSource, index: int, task: dict[str, object], names: Sequence[str], every: Sequence[str]) -> ScenarioTask:
    """One task, validated with everything inside it. names: of the enabled data sets; every: of all."""
    at: SourceLocation = ("tasks", index)
    settings = dict(task)
    if (kind := settings.pop("task", None)) is None:
        raise source.error(at, f"a task needs the key 'task'; allowed values: {', '.join(plugins.names('tasks'))}")
    module = _plugin(source, (*at, "task"), "tasks", kind)
    label = _label(source, (*at, "label"), settings.pop("label", kind))
    only = settings.pop("datasets", [])
    if not isinstance(only, list) or not all(name in names for name in only) or len(set(only)) < len(only):
        allowed = f"found {sources.shorten(only)}; allowed: {list(names)}"
        raise source.error((*at, "datasets"), f"a list of the scenario's data sets, each once, was expected, {allowed}")
    params = documents.settings.validate(module.Params, settings, source, at)
    task_offers: TaskOffers[Any] = module.TASK
    if not names:
        raise source.error((*at, "task"), f"task {kind!r} needs data: add (or enable) a data set under the key 'datasets'")
    _require_known_data(source, at, params, every)
    for where, package, spec in module.plugins_of(params):
        spec = dict(spec)
        key = package.removesuffix("s")
        if (name := spec.pop(key, None)) is None:
            raise source.error((*at, *where), f"missing key {key!r}; allowed values: {', '.join(plugins.names(package))}")
        inner = _plugin(source, (*at, *where, key), package, name)
        refuses = task_offers.refuses if package == "methods" else None
        if refuses is not None and (problem := refuses(params, str(name))):
            raise source.error((*at, *where, key), problem)
        if package == "methods" and "label" in spec:
            _label(source, (*at, *where, "label"), spec.pop("label"))
        documents.settings.validate(inner.Params, spec, source, (*at, *where))
    return ScenarioTask(label, str(kind), params, tuple(map(str, only)), at)


def _label(source: YamlSource, at: SourceLocation, label: object, slashes: bool = False) -> str:
    """A name for tables and files; ``ScenarioError`` for anything else. slashes: it may hold ``/``."""
    without = "" if slashes else " without '/'"
    allowed = f"allowed: 1 to {_MOST_LABEL} printable characters{without}, such as 'price-of-trust'"
    found = f"label: found {sources.shorten(label)}"
    if not isinstance(label, str):
        raise source.error(at, f"{found}, which is not text (write it in quotes); {allowed}")
    if not (0 < len(label) <= _MOST_LABEL and label.isprintable() and label.strip() == label and (slashes or "/" not in label)):
        raise source.error(at, f"{found}; {allowed}")
    if label.strip(".") == "":
        raise source.error(at, f"{found}, which is no name of a file; {allowed}")
    return label


def _require_known_data(source: YamlSource, at: SourceLocation, params: Settings, every: Sequence[str]) -> None:
    """``ScenarioError`` where a setting given per data set names one that the scenario does not have."""
    named = [(field, list(held)) for field, held in params if isinstance(held, dict) and type(params).says(field).per_dataset]
    for field, name in [(field, name) for field, names in named for name in names if name not in every]:
        unknown = f"unknown data set {sources.shorten(name)}{plugins.suggest_plugin_name(name, list(every))}"
        raise source.error((*at, field, name), f"{field}: {unknown}; allowed: {', '.join(every)}")


def _plugin(source: YamlSource, at: SourceLocation, package: str, name: object) -> types.ModuleType:
    try:
        return plugins.load(package, str(name))
    except ScenarioError as error:
        raise source.error(at, str(error)) from None
