"""A commented scenario, written from what a person wants: data, what is private, trust, budgets."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph.errors import ScenarioError
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph

UNITS = ("node", "edge")
ASKED = ("private", "public")  # the people whose answers are wanted
TRUST = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)  # what every method of a draft can serve
NAME = re.compile(r"[^A-Za-z0-9_.-]+")
SCHEMA = "fedgraph.schema.json"
PROTOCOLS = {
    "asking": "everybody is private; who asks gives its own row and ties, and only it sees its answer",
    "inductive": "who asks is public with its ties: only the people one learns from are private",
    "transductive": "people, attributes and training labels are public: only who is tied to whom is private",
}


@dataclass(frozen=True)
class Data:
    """name, path: as in a scenario (path None for a named data set). title: for file names. found: a sentence that was read.

    clients: of a federation, 0 for one graph. split: it brought masks. crossing: edges between clients. graph: what was
    loaded; None for a named data set, of which only published counts are known.
    """

    name: str
    path: Path | None
    title: str
    found: str
    clients: int = 0
    split: bool = False
    crossing: int = 0
    graph: Graph | None = field(default=None, compare=False)

    @property
    def federation(self) -> bool:
        return self.clients > 0


@dataclass(frozen=True)
class Size:
    """How much a draft asks for. spare: also rows that add little. cheaper: which of a comparison's settings (0: the dearest).

    trust: how many of the levels of trust.
    """

    seeds: int = 3
    spare: bool = True
    cheaper: int = 0
    trust: int = len(TRUST)


@dataclass(frozen=True)
class Wanted:
    """What the scenario shall compare.

    asked: whether people whose answers are wanted are private, too. clients: of one graph that is dealt out; None: 10.
    parameters: of the data set, such as bounds of columns. fits: in words, how long it will take.
    """

    data: Data
    unit: str
    trust: tuple[Trust, ...]
    epsilons: tuple[float, ...]
    clients: int | None
    name: str | None
    asked: str = "private"
    parameters: Mapping[str, object] = field(default_factory=dict)
    size: Size = Size()
    fits: str = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ScenarioError(f"--unit is {self.unit!r}; allowed: {', '.join(UNITS)}")
        if self.asked not in ASKED:
            raise ScenarioError(f"--asked is {self.asked!r}; allowed: {', '.join(ASKED)}")
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

    @property
    def protocol(self) -> str:
        """What the answers about privacy mean to a scenario."""
        return "transductive" if self.unit == "edge" else "asking" if self.asked == "private" else "inductive"


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


def data_of(graph: str | None, federation: Path | None, parameters: Mapping[str, object]) -> Data:
    """What ``--graph`` or ``--federation`` names, looked at once so that faults show now. parameters: of the data set."""
    from fedgraph import data
    from fedgraph.data.base import resolve

    if federation is not None:
        loaded = data.load("own/federation", path=federation)
        assert isinstance(loaded, Graph)
        return _of_federation("own/federation", federation, federation.resolve().name, loaded.provenance.detail, loaded)
    path = Path(graph or "")
    if path.exists():
        name = "own/csv" if path.is_dir() else "own/npz"
        loaded = data.load(name, path=path, parameters=parameters)
        assert isinstance(loaded, Graph)
        return Data(name, path, path.resolve().stem, loaded.provenance.detail, split=bool(loaded.masks), graph=loaded)
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
    return Data(name, path, title, found, clients, bool(graph.masks), crossing, graph if path is not None else None)


def text(wanted: Wanted, folder: Path) -> str:
    """The YAML, commented. folder: where it will lie; the data's path is written relative to it."""
    from fedgraph.scenario import draft_federation, draft_graph, draft_rows  # what methods offer is not needed before

    data = wanted.data
    lines = [f"  - name: {data.name}"]
    if data.path is not None:
        lines.append(f"    label: {draft_rows.as_line(wanted.title)}   # its name in tables")
        lines.append(
            f"    path: {draft_rows.as_line(os.path.relpath(data.path.resolve(), folder.resolve()))}   # seen from this file"
        )
    if wanted.parameters:
        lines += ["    parameters:", *(f"      {key}: {draft_rows.as_line(value)}" for key, value in wanted.parameters.items())]
    question = (
        "Is it worth joining, for whom, and at what cost" if data.federation else "Which method, whom to trust, at what cost"
    )
    task, quick = (draft_federation if data.federation else draft_graph).parts(wanted)
    takes = f"# {wanted.fits}\n" if wanted.fits else ""
    return f"""\
# yaml-language-server: $schema={SCHEMA}
# (with that file an editor completes and checks these lines; it is made by: fedgraph schema --out {SCHEMA})
# {data.found}
{takes}name: {wanted.title}
title: {question}, on {wanted.title}, at {wanted.unit} level
seed: 0                          # root of every random stream; secret: fresh random bits that are never written
seeds: {wanted.size.seeds}                         # independent repetitions; an ε is about one of them
runtime: {{engine: ray, spread: cells}}   # serial: one process
datasets:
{chr(10).join(lines)}
tasks:
{task}
quick:                           # what --quick replaces: the same in half a minute
{quick}
"""
