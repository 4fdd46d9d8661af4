"""The library: run a scenario, or compare methods on a graph that is already in memory.

import fedgraph
run = fedgraph.run("citeseer", quick=True)                      # a shipped scenario, a file, or a mapping
run = fedgraph.compare(data, ["features", "gap_node"], epsilons=[1, 8], trust=["curator", "sums"])
"""

import atexit
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal, SupportsFloat

import numpy as np
import yaml

from fedgraph import plugins, privacy
from fedgraph.cells import portable, store
from fedgraph.documents import sources
from fedgraph.errors import ScenarioError
from fedgraph.methods import method_kinds
from fedgraph.privacy import Trust
from fedgraph.runs import Run, open_run
from fedgraph.scenario import WANTED_TRUST, WANTED_WHOLE, shipped, usual
from fedgraph.scenario import read as scenarios
from fedgraph.types import Graph, GraphCollection

_CLIENTS = 10  # of a graph whose nodes have no owners


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    data_root: str | Path | None = None,
    quick: bool = False,
    seeds: int | None = None,
    resume: bool = False,
    runtime: str | None = None,
    changes: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Run:
    """Run a scenario and return its results.

    Args:
        scenario: A file, the name of a shipped scenario (``fedgraph ls scenarios``), or the mapping that the YAML would hold.
        out: The run's folder; by default ``runs/<name>-<time>``.
        data_root: The folder of the data; by default the environment variable ``FEDGRAPH_DATA``, then the user's cache.
        quick: Whether the scenario's own short form is run (its key ``quick``).
        seeds: How many seeds, in place of the scenario's; at least 1.
        resume: Whether ``out`` holds a run that was stopped, whose finished cells are kept.
        runtime: ``serial`` or ``ray``, in place of the scenario's.
        changes: Dotted keys with their new values, e.g. ``{"tasks.0.epsilons": [1, 8]}``; ε has no unit.
        quiet: Whether neither progress nor tables are printed.

    Returns:
        The finished run: its answer, its table, and the sheet of each row. A cell that fails is a row with its reason.

    Raises:
        ScenarioError: A key or a value is wrong; the line says which, where it stands, and what is allowed.
        DataError: Data are damaged or missing, or ``out`` is taken.
        RuntimeFailure: The engine cannot start, or no worker is left.

    Example:
        >>> import fedgraph
        >>> run = fedgraph.run("quickstart", quick=True, quiet=True)
        >>> print(run.answer)
    """
    settings = _as_changes(changes)
    if runtime is not None:
        settings.append(f"runtime.engine={runtime}")
    ready = _ready(scenario, settings, quick, seeds)
    return _started(ready, out, data_root, resume, quiet)


def compare(
    data: Any,
    methods: Sequence[str | Mapping[str, Any]] | str | None = None,
    epsilons: Sequence[float] | float | None = None,
    trust: Sequence[str] | str | None = None,
    *,
    seeds: int = 1,
    clients: int | None = None,
    split: str = "auto",
    protocol: str = "auto",
    delta: float | None = None,
    label: str | None = None,
    id: str | None = None,
    ends: Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Sequence[float]] | None = None,
    out: str | Path | None = None,
    attack: Mapping[str, Any] | None = None,
    seed: int = 0,
    name: str = "compared",
    runtime: str = "serial",
    quiet: bool | Literal["bar"] = True,
) -> Run:
    """Train methods on one graph in memory, at every ε and level of trust, and return the results.

    Args:
        data: What ``fedgraph.read`` reads: a path, two pandas tables ``(nodes, edges)``, a NetworkX graph, a PyG ``Data``,
            ``(adjacency [n, n], features [n, d], labels [n])``, or what it gave. Of a list of small graphs a whole graph is
            private.
        methods: Names (``fedgraph ls methods``), or mappings with settings, e.g. ``{"method": "nonprivate", "model": "gat"}``.
            By default the rows of the draft that ``fedgraph new`` writes.
        epsilons: Targets of ε, each above 0; ``math.inf`` trains without noise. By default those of the draft: 1, 4 and 8.
        trust: Whom the people in the data trust: ``curator``, ``sums``, ``own-client``, ``active-server``, or ``nobody``. By
            default those of the draft: the first three.
        seeds: How many repetitions with other random numbers; at least 1.
        clients: Into how many clients the graph is dealt, where its nodes have no owners; at least 1, by default 10.
        split: ``random`` (four fifths train), ``public`` (the masks of ``data``), or ``auto`` (public where there are masks).
        protocol: ``inductive``, ``asking``, ``transductive``, or ``auto``: for methods that protect nodes ``asking`` (who asks
            is private, too) if all of them serve it, else ``inductive``; for those that protect edges ``transductive``.
        delta: δ of every guarantee, between 0 and 1; by default a tenth of one over the nodes, and at most 10⁻⁴.
        label: The column, or the attribute of a node, that is predicted; found where it is plain.
        id: The column that names people; found where it is plain.
        ends: The two columns of the ends of ties; found where they are plain.
        columns: How columns are read, as under ``parameters`` of ``own/read``: ``bounds``, ``text``, ``empty``, ``drop``.
        bounds: The least and the largest value of columns, known without the data; they stand above those in ``columns``.
        out: The run's folder. By default nothing stays: the folder goes when the process ends.
        attack: How rows of node classification are attacked, as a scenario's ``attack`` says; by default they are not.
        seed: Names all random numbers; the same seed gives the same results.
        name: What the results call the graph.
        runtime: ``serial`` or ``ray``.
        quiet: Whether neither progress nor tables are printed; ``bar``: progress alone is.

    Returns:
        The finished run, with one row for each method, ε and level of trust.

    Raises:
        ScenarioError, DataError: An argument is wrong, or the graph is inconsistent; the line says what is allowed.
    """
    from fedgraph.data import Reading, read

    methods = [methods] if isinstance(methods, (str, Mapping)) else methods
    trust = [trust] if isinstance(trust, str) else trust
    _require_sound(methods, trust, epsilons, seeds, clients, seed, columns, bounds)
    seeds, seed = int(seeds), int(seed)
    wanted = usual.USUAL_BUDGETS if epsilons is None else [epsilons] if isinstance(epsilons, SupportsFloat) else epsilons
    budgets = [e if math.isfinite(e) else "inf" for e in map(float, wanted)]
    columns = dict(columns or {})
    if bounds:
        columns["bounds"] = {**columns.get("bounds", {}), **bounds}
    found = data if isinstance(data, Reading) else read(data, label, id, ends, columns=columns, name=name)
    given = _graphs_of(found.graph, name)
    first = next(iter(given.values()))
    if not isinstance(first, Graph):
        raise TypeError(f"{name} is a {type(first).__name__}; allowed here: one Graph")
    if clients is None:
        clients = min(_CLIENTS, first.num_nodes)
    elif clients > first.num_nodes and first.owner is None:
        raise ScenarioError(f"clients is {clients:,}; allowed: at most {first.num_nodes:,}, as many as there are people")
    trusted = WANTED_TRUST if trust is None else tuple(map(privacy.trust.called, trust))
    tasks = _tasks(given, methods, trusted, budgets, clients=clients, split=split, protocol=protocol, delta=delta)
    if attack is not None:
        tasks = [{**task, "attack": dict(attack)} if task["task"] == "node_classification" else task for task in tasks]
    parameters = portable(dict(found.parameters))
    datasets = [{"name": "own/object", "label": one, "parameters": parameters} for one in given]
    asked = {"name": name, "seed": seed, "seeds": seeds, "runtime": {"engine": runtime}, "datasets": datasets, "tasks": tasks}
    return _started(_ready(asked, [], False, None), out or _passing_folder(), None, False, quiet, given)


def _as_changes(changes: Mapping[str, Any] | None) -> list[str]:
    """Each change as the command line writes it: ``key=value``, the value as YAML, whole."""
    if not isinstance(changes or {}, Mapping):
        raise ScenarioError(f"changes is {sources.shorten(changes)}; allowed: a mapping of dotted keys, such as {{'seeds': 3}}")
    found = []
    for key, value in (changes or {}).items():
        if not isinstance(key, str) or "=" in key:
            raise ScenarioError(f"changes: key {sources.shorten(key)}; allowed: a dotted key, such as 'tasks.0.epsilons'")
        try:
            text = yaml.safe_dump(_plain(value), default_flow_style=True, width=math.inf, allow_unicode=True)
        except (yaml.YAMLError, RecursionError):
            allowed = "allowed: numbers, texts, true, false, null, and lists and mappings of them"
            raise ScenarioError(f"changes: {key} is a {type(value).__name__} or holds what YAML cannot; {allowed}") from None
        found.append(f"{key}={text}")
    return found


def _plain(value: object) -> object:
    """A value as YAML holds it: paths are texts, arrays and tuples are lists; what is not known stays as it is."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    return str(value) if isinstance(value, PurePath) else value


def _require_sound(
    methods: object,
    trust: object,
    epsilons: object,
    seeds: object,
    clients: object,
    seed: object,
    columns: object,
    bounds: object,
) -> None:
    """``ScenarioError`` in one line that names the first argument of the wrong kind, and what is allowed."""
    wrong = (
        (methods is None or isinstance(methods, Sequence), f"methods is {methods!r}", "a list of names, or of mappings"),
        (trust is None or _are_texts(trust), f"trust is {trust!r}", "a list of names"),
        (epsilons is None or _are_numbers(epsilons), f"epsilons is {epsilons!r}", "a list of numbers above 0"),
        (_is_whole(seeds, 1), f"seeds is {seeds!r}", "a whole number, 1 or more"),
        (clients is None or _is_whole(clients, 1), f"clients is {clients!r}", "a whole number, 1 or more"),
        (_is_whole(seed, 0), f"seed is {seed!r}", "a whole number, 0 or more"),
        (columns is None or isinstance(columns, Mapping), f"columns is {columns!r}", "a mapping, such as {'text': 'one-hot'}"),
        (bounds is None or isinstance(bounds, Mapping), f"bounds is {bounds!r}", "a mapping, such as {'age': [0, 120]}"),
    )
    for sound, found, allowed in wrong:
        if not sound:
            raise ScenarioError(f"{found}; allowed: {allowed}")


def _is_whole(given: object, least: int) -> bool:
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool) and int(given) >= least


def _are_texts(given: object) -> bool:
    return isinstance(given, Sequence) and all(isinstance(one, str) for one in given)


def _are_numbers(given: object) -> bool:
    if isinstance(given, str):
        return False
    return isinstance(given, SupportsFloat) or (
        isinstance(given, Sequence) and all(isinstance(e, (SupportsFloat, str)) for e in given)
    )


def _graphs_of(whole: Graph | GraphCollection, name: str) -> dict[str, Graph | GraphCollection]:
    """The graph under its name; of many small ones first one row per graph, then the collection itself."""
    from fedgraph.data import collection_as_rows

    if isinstance(whole, Graph):
        return {name: whole}
    return {name: collection_as_rows(whole), f"{name}{WANTED_WHOLE}": whole}


def _tasks(
    given: Mapping[str, Graph | GraphCollection],
    methods: Sequence[str | Mapping[str, Any]] | None,
    trusted: tuple[Trust, ...],
    budgets: Sequence[object],
    *,
    clients: int,
    split: str,
    protocol: str,
    delta: float | None,
) -> list[dict[str, Any]]:
    """The draft's task with what the caller says; of methods that were named one for each unit that they protect."""
    (name, graph), listed = next(iter(given.items())), len(given) > 1
    if not isinstance(graph, Graph):
        raise TypeError(f"{name} is a {type(graph).__name__}; allowed here: one Graph")
    whole = given.get(f"{name}{WANTED_WHOLE}")
    drafted = usual.node_task(graph, whole if isinstance(whole, GraphCollection) else None, protocol)
    drafted = usual.with_trust(drafted, trusted) | {"epsilons": budgets} | ({"datasets": [name]} if listed else {})
    if "clients" in drafted["partition"]:
        drafted["partition"] = {**drafted["partition"], "clients": clients}
    said: dict[str, object] = {} if delta is None else {"delta": float(delta)}
    drafted |= said | ({} if split == "auto" else {"split": split})
    if methods is None:
        return [drafted if protocol == "auto" else {**drafted, "protocol": protocol}]
    specs = [{"method": m} if isinstance(m, str) else dict(m) for m in methods]
    embedders = [spec for spec in specs if listed and _embeds(spec)]
    common = {key: value for key, value in drafted.items() if key not in ("label", "protocol", "methods")}
    tasks = _by_unit([s for s in specs if s not in embedders], common, protocol, said)
    tasks += _of_whole_graphs(embedders, drafted["partition"], budgets, f"{name}{WANTED_WHOLE}")
    if not tasks:
        raise ScenarioError("methods is empty; name at least one, see: fedgraph ls methods")
    return tasks


def _embeds(spec: Mapping[str, Any]) -> bool:
    """Whether the method releases embeddings of whole graphs; a name that is none is refused when the scenario is read."""
    named = str(spec.get("method"))
    return named in plugins.names("methods") and method_kinds.load(named).OFFERS.kind == "embedder"


def _of_whole_graphs(
    specs: Sequence[dict[str, Any]], dealt: Mapping[str, object], epsilons: Sequence[object], dataset: str
) -> list[dict[str, Any]]:
    """Graphs classified by what is released of them, and grouped where nothing is trained on labels."""
    if not specs:
        return []
    common = {"datasets": [dataset], "epsilons": epsilons}
    tasks = [{**common, "task": "graph_classification", "partition": dealt, "folds": 5, "methods": specs, "baselines": []}]
    blind = [{**spec, "compare": ["mean"]} for spec in specs if spec.get("training") == "none" and "compare" not in spec]
    return tasks + ([{**common, "task": "graph_clustering", "methods": blind}] if blind else [])


def _passing_folder() -> Path:
    """A folder that goes when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="fedgraph-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home / "run"


def _by_unit(
    specs: Sequence[dict[str, Any]], common: dict[str, Any], asked: str, of_links: Mapping[str, object]
) -> list[dict[str, Any]]:
    """One task for the methods that can keep all nodes private, one for the others, one for links; none without methods.

    asked: a protocol for all of them, or ``auto``. of_links: δ at links, where the user named one.
    """
    places: dict[str, list[dict[str, Any]]] = {}
    for spec in specs:
        places.setdefault(_unit_of(spec), []).append(spec)
    links, nodes = places.pop("links", []), places.get("node", [])
    tasks = []
    if asked != "auto":
        if own := [spec for spec in specs if spec not in links]:
            tasks.append({**common, "label": asked, "protocol": asked, "methods": own})
    else:
        at_nodes = "asking" if all(_serves(spec, "asking") for spec in nodes) else "inductive"
        for unit, protocol in (("node", at_nodes), ("edge", "transductive")):
            if unit in places:
                tasks.append({**common, "label": f"{unit}-level", "protocol": protocol, "methods": places[unit]})
    if links:
        kept = {key: value for key, value in common.items() if key not in ("split", "delta", "train_fraction")}
        tasks.append({**kept, **of_links, "task": "link_prediction", "label": "links", "methods": links})
    return tasks


def _unit_of(spec: Mapping[str, Any]) -> str:
    """What a method is compared by: ``node``, ``edge``, or ``links``; a name that is none is refused when it is read."""
    if _serves(spec, "inductive"):
        return "node"
    return "links" if method_kinds.load(str(spec["method"])).OFFERS.kind == "linker" else "edge"


def _serves(spec: Mapping[str, Any], protocol: Literal["asking", "inductive"]) -> bool:
    """Whether the method serves a protocol; true of a name that is none, which is refused when the scenario is read."""
    name = spec.get("method")
    return name not in plugins.names("methods") or method_kinds.load(str(name)).OFFERS.serves(protocol)


def _ready(
    asked: str | Path | Mapping[str, Any], changes: list[str], quick: bool, seeds: int | None
) -> scenarios.ReadyScenario:
    if not isinstance(asked, Mapping):
        return scenarios.from_file(shipped.find(asked), changes, quick=quick, seeds=seeds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        try:
            path.write_text(yaml.safe_dump(_plain(asked), sort_keys=False, allow_unicode=True), encoding="utf-8")
        except (yaml.YAMLError, RecursionError) as error:
            raise ScenarioError(
                f"the scenario holds something that is no plain value: {' '.join(str(error).split())}"
            ) from None
        try:
            return scenarios.from_file(path, changes, quick=quick, seeds=seeds)
        except ScenarioError as error:
            raise ScenarioError(str(error).replace(str(path), "scenario")) from None


def _started(
    ready: scenarios.ReadyScenario,
    out: str | Path | None,
    data_root: str | Path | None,
    resume: bool,
    quiet: bool | Literal["bar"],
    given: Mapping[str, Graph | GraphCollection] | None = None,
) -> Run:
    from fedgraph.runs import Console, experiment

    root = None if data_root is None else Path(data_root)
    with store.folder_for(None if out is None else Path(out), ready.scenario.name) as folder:
        experiment.run(ready, folder, root, resume=resume, console=Console(quiet=bool(quiet), bar=quiet == "bar"), given=given)
    return open_run(folder)
