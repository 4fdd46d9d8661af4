"""A commented scenario, written from what a person wants: data, unit, trust, budgets."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import ScenarioError
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph

UNITS = ("node", "edge")
TRUST = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)  # what every method of a draft can serve
NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Data:
    """name, path: as in a scenario (path None for a named data set). title: for file names. found: a sentence that was read.

    clients: of a federation, 0 for one graph. split: it brought masks. crossing: edges between clients.
    """

    name: str
    path: Path | None
    title: str
    found: str
    clients: int = 0
    split: bool = False
    crossing: int = 0

    @property
    def federation(self) -> bool:
        return self.clients > 0


@dataclass(frozen=True)
class Wanted:
    """What the scenario shall compare. clients: of one graph that is dealt out; None: 10."""

    data: Data
    unit: str
    trust: tuple[Trust, ...]
    epsilons: tuple[float, ...]
    clients: int | None
    name: str | None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ScenarioError(f"--unit is {self.unit!r}; allowed: {', '.join(UNITS)}")
        for who in self.trust:
            if who not in TRUST:
                raise ScenarioError(
                    f"--trust: few methods serve {who.value}, so it has no draft (see attacks.yaml for active-server and "
                    f"lpgnn_ablation.yaml for nobody); allowed: {', '.join(t.value for t in TRUST)}"
                )
        if len(set(self.trust)) < len(self.trust):
            raise ScenarioError("--trust names somebody twice; allowed: each once")
        if self.clients is not None and self.clients < 2:
            raise ScenarioError(f"--clients is {self.clients}; allowed: 2 or more")
        if self.clients is not None and self.data.federation:
            raise ScenarioError("--clients is for one graph that is dealt out; a federation brings its clients")

    @property
    def title(self) -> str:
        """The scenario's name."""
        return NAME.sub("-", self.name or self.data.title).strip("-.") or "scenario"


def budgets(given: Sequence[object]) -> tuple[float, ...]:
    """Positive numbers, inf allowed; ``ScenarioError`` names the first that is none."""
    found = []
    for value in given:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not number > 0:
            raise ScenarioError(f"--epsilons holds {value!r}; allowed: numbers > 0, or inf for no privacy")
        found.append(number)
    if len(set(found)) < len(found):
        raise ScenarioError("--epsilons holds a number twice; allowed: each once")
    return tuple(found)


def data_of(graph: str | None, federation: Path | None) -> Data:
    """What ``--graph`` or ``--federation`` names, looked at once so that faults show now."""
    from fedgraph import data
    from fedgraph.data.base import resolve

    if federation is not None:
        loaded = data.load("own/federation", path=federation)
        assert isinstance(loaded, Graph)
        return _of_federation("own/federation", federation, federation.resolve().name, loaded.provenance.detail, loaded)
    path = Path(graph or "")
    if path.exists():
        name = "own/csv" if path.is_dir() else "own/npz"
        loaded = data.load(name, path=path)
        return Data(name, path, path.resolve().stem, loaded.provenance.detail)
    if "/" not in str(graph) or str(graph).startswith((".", "/")):
        raise ScenarioError(f"--graph: {graph} is neither a file, nor a folder, nor a data set (fedgraph ls data)")
    family, dataset = resolve(str(graph))
    planned = data.load(f"{family}/{dataset}", stand_in=True)
    if not isinstance(planned, Graph):
        raise ScenarioError(f"--graph: {graph} is a collection of graphs; copy a scenario for those: fedgraph cp ldp_gw_table1")
    found = f"{family}/{dataset}: about {planned.num_nodes} nodes, {planned.num_edges} edges, {planned.num_classes} classes"
    if planned.owner is not None:
        return _of_federation(f"{family}/{dataset}", None, f"{family}-{dataset}", found, planned)
    return Data(f"{family}/{dataset}", None, dataset, found)


def _of_federation(name: str, path: Path | None, title: str, found: str, graph: Graph) -> Data:
    """``ScenarioError`` for a single client: nobody is there to join."""
    owner = graph.owner
    assert owner is not None
    clients = len(graph.owner_names)
    if clients < 2:
        raise ScenarioError(f"--federation: {found}; allowed: two clients or more (one graph is --graph)")
    arcs = graph.adjacency.tocoo()
    crossing = int((owner[arcs.coords[0]] != owner[arcs.coords[1]]).sum()) // 2
    return Data(name, path, title, found, clients, bool(graph.masks), crossing)


def text(wanted: Wanted, folder: Path) -> str:
    """The YAML, commented. folder: where it will lie; the data's path is written relative to it."""
    from fedgraph.scenario import draft_federation  # what methods offer is not needed before

    data = wanted.data
    path = ""
    if data.path is not None:
        relative = os.path.relpath(data.path.resolve(), folder.resolve())
        path = f"\n    path: {_quoted(relative)}          # relative to this file"
    question = (
        "Is it worth joining, for whom, and at what cost" if data.federation else "Which method, whom to trust, at what cost"
    )
    if data.federation:
        task = draft_federation.task(wanted.unit, wanted.trust, wanted.epsilons, data.clients, data.split, data.crossing)
        quick = draft_federation.quick(wanted.unit, wanted.trust, wanted.epsilons, task, data.crossing)
    else:
        task, quick = _task(wanted), "  seeds: 1"
    return f"""\
# {data.found}
name: {wanted.title}
title: {question}, on {wanted.title}, at {wanted.unit} level
seed: 0                          # root of every random stream; secret: fresh random bits that are never written
seeds: 3                         # independent repetitions; an ε is about one of them
datasets:
  - name: {data.name}{path}
tasks:
{task}
quick:                           # what --quick replaces
{quick}
"""


def _task(wanted: Wanted) -> str:
    """A node classification of one graph that is dealt out."""
    from fedgraph.scenario import draft_rows

    edge = wanted.unit == "edge"
    trust = ", ".join(t.value for t in wanted.trust)
    epsilons = ", ".join("inf" if math.isinf(e) else f"{e:g}" for e in wanted.epsilons)
    protocol = "transductive" if edge else "inductive"
    said = (
        "only edges are private; features and training labels are public" if edge else "test nodes and their edges are public"
    )
    return f"""\
  - task: node_classification
    label: {wanted.unit}-level
    trust: [{trust}]       # curator: one holds all; sums: all that the server sees; own-client: it sees each message
    partition: {{partition: louvain, clients: {wanted.clients or 10}}}   # who holds which node: or uniform, dirichlet
    protocol: {protocol}         # {said}
    epsilons: [{epsilons}]       # privacy budgets ε (no unit); inf: no privacy
    delta: 1/n_train             # δ of every guarantee; 1/n_train: one over the number of training nodes
    methods:
{draft_rows.as_yaml(draft_rows.offered("graph", wanted.unit))}"""


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"[A-Za-z0-9_./-]+", value) else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
