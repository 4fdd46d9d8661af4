"""The library: run a scenario, or compare methods on a graph that is already in memory.

import fedgraph
run = fedgraph.run("citeseer", quick=True)                      # a shipped scenario, a file, or a mapping
run = fedgraph.compare(data, ["features", "gap_node"], epsilons=[1, 8], trust=["curator", "sums"])
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.methods.base import kinds
from fedgraph.runs.run import Run, open_run
from fedgraph.scenario import read as scenarios
from fedgraph.scenario import shipped
from fedgraph.scenario.draft import SETTINGS
from fedgraph.types import Graph


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

    scenario: a file, the name of a shipped scenario, or the mapping that the YAML would hold. out: the run's folder (default
    ``runs/<name>-<time>``). changes: dotted key → value, as ``--set``. quick, seeds, resume, runtime, data_root: as on the
    command line. quiet: no progress and no tables. Raises ``ScenarioError`` in one line for anything wrong.
    """
    settings = [
        f"{key}={yaml.safe_dump(value, default_flow_style=True).split(chr(10))[0]}" for key, value in (changes or {}).items()
    ]
    if runtime is not None:
        settings.append(f"runtime.engine={runtime}")
    ready = _ready(scenario, settings, quick, seeds)
    return _started(ready, out, data_root, resume, quiet)


def compare(
    data: Any,
    methods: Sequence[str | Mapping[str, Any]] = ("features", "gap_node", "nonprivate"),
    epsilons: Sequence[float] = (1.0, 8.0),
    trust: Sequence[str] = ("curator",),
    *,
    seeds: int = 1,
    clients: int = 10,
    split: str = "auto",
    delta: float | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    name: str = "compared",
    runtime: str = "serial",
    quiet: bool = True,
) -> Run:
    """Train ``methods`` on one graph in memory, at every ε and level of trust, and return the results.

    data: a ``torch_geometric.data.Data`` (``x``, ``edge_index``, ``y``), a NetworkX graph (node attributes ``x`` and ``y``), a
    ``fedgraph.types.Graph``, or the arrays ``(adjacency, features, labels)``. methods: names, or mappings with settings, e.g.
    ``{"method": "nonprivate", "model": "torch_geometric.nn.GAT"}``; node-level and edge-level methods are compared apart.
    trust: curator, sums (clients behind secure sums), nobody (the server sees each client). delta: of every guarantee;
    default one over the number of training nodes. split: random (four fifths train), public (the masks that ``data`` brings),
    auto (public where there are masks). Labels of −1 are unknown. Raises ``ScenarioError`` in one line.
    """
    from fedgraph.data.own import objects

    graph = objects.graph_of(data, name)
    for who in trust:
        if who not in SETTINGS:
            raise ScenarioError(f"trust names {who!r}; allowed: {', '.join(SETTINGS)}")
    specs = [{"method": m} if isinstance(m, str) else dict(m) for m in methods]
    settings = [SETTINGS[who] for who in trust]
    dealt = {"partition": "natural"} if graph.owner is not None else {"partition": "louvain", "clients": clients}
    common = {
        "task": "node_classification",
        "settings": settings,
        "split": ("public" if graph.masks else "random") if split == "auto" else split,
        "partition": dealt,
        "epsilons": [e if math.isfinite(e) else "inf" for e in map(float, epsilons)],
        "delta": "1/n_train" if delta is None else delta,
    }
    tasks = _by_unit(specs, common)
    if not tasks:
        raise ScenarioError("methods is empty; name at least one, see: fedgraph ls methods")
    asked = {
        "name": name,
        "seed": seed,
        "seeds": seeds,
        "runtime": {"engine": runtime},
        "datasets": [{"name": "own/object", "label": name}],
        "tasks": tasks,
    }
    return _started(_ready(asked, [], False, None), out, None, False, quiet, {name: graph})


def _by_unit(specs: Sequence[dict[str, Any]], common: dict[str, Any]) -> list[dict[str, Any]]:
    """One task for the methods that can keep all nodes private, one for the others; a task without methods is left out."""
    tasks = []
    for label, protocol in (("node-level", "inductive"), ("edge-level", "transductive")):
        own = [s for s in specs if _keeps_nodes(s) == (protocol == "inductive")]
        if own:
            tasks.append({**common, "label": label, "protocol": protocol, "methods": own})
    return tasks


def _keeps_nodes(spec: Mapping[str, Any]) -> bool:
    """Whether the method can be used where nodes are private; a name that is none is refused when the scenario is read."""
    name = spec.get("method")
    return name not in plugins.names("methods") or kinds.method(str(name)).OFFERS.serves("inductive")


def _ready(asked: str | Path | Mapping[str, Any], changes: list[str], quick: bool, seeds: int | None) -> scenarios.Ready:
    if not isinstance(asked, Mapping):
        return scenarios.load(shipped.find(asked), changes, quick=quick, seeds=seeds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        try:
            path.write_text(yaml.safe_dump(dict(asked), sort_keys=False, allow_unicode=True), encoding="utf-8")
        except yaml.YAMLError as error:
            raise ScenarioError(
                f"the scenario holds something that is no plain value: {' '.join(str(error).split())}"
            ) from None
        try:
            return scenarios.load(path, changes, quick=quick, seeds=seeds)
        except ScenarioError as error:
            raise ScenarioError(str(error).replace(str(path), "scenario")) from None


def _started(
    ready: scenarios.Ready,
    out: str | Path | None,
    data_root: str | Path | None,
    resume: bool,
    quiet: bool,
    given: Mapping[str, Graph] | None = None,
) -> Run:
    from fedgraph.runs import experiment
    from fedgraph.runs.console import Console

    folder = Path(out) if out is not None else Path("runs") / f"{ready.scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    root = None if data_root is None else Path(data_root)
    experiment.run(ready, folder, root, resume=resume, console=Console(quiet=quiet), given=given)
    return open_run(folder)
