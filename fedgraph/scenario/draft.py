"""A commented scenario, written from what a person wants: data, what is private, trust, budgets."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedgraph.data.own import graph_rows
from fedgraph.data.own.graph_folders import is_collection
from fedgraph.errors import ScenarioError
from fedgraph.scenario.wanted import TRUST as TRUST
from fedgraph.scenario.wanted import Data as Data
from fedgraph.scenario.wanted import Size as Size
from fedgraph.scenario.wanted import Wanted as Wanted
from fedgraph.types import Graph, GraphCollection

FEWEST_LABELLED = 5
FEWEST_OF_A_CLASS = 4  # graphs
SCHEMA = "fedgraph.schema.json"


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
    if is_collection(path):
        return _of_collection(path, parameters)
    if path.exists():
        name = "own/csv" if path.is_dir() else "own/npz"
        loaded = data.load(name, path=path, parameters=parameters)
        assert isinstance(loaded, Graph)
        if (labelled := int((loaded.labels >= 0).sum())) < FEWEST_LABELLED:
            raise ScenarioError(
                f"--graph: {labelled} nodes have a label; allowed: {FEWEST_LABELLED} or more, since some train and others test"
            )
        return Data(
            name,
            path,
            path.resolve().stem,
            loaded.provenance.detail,
            split=bool(loaded.masks),
            graph=loaded,
            people=loaded.num_nodes,
        )
    if "/" not in str(graph) or str(graph).startswith((".", "/")):
        raise ScenarioError(f"--graph: {graph} is neither a file, nor a folder, nor a data set (fedgraph ls data)")
    family, dataset = resolve(str(graph))
    planned = data.load(f"{family}/{dataset}", stand_in=True)
    if not isinstance(planned, Graph):
        raise ScenarioError(f"--graph: {graph} is a collection of graphs; copy a scenario for those: fedgraph cp ldp_gw_table1")
    found = f"{family}/{dataset}: about {planned.num_nodes} nodes, {planned.num_edges} edges, {planned.num_classes} classes"
    if planned.owner is not None:
        return _of_federation(f"{family}/{dataset}", None, f"{family}-{dataset}", found, planned)
    return Data(f"{family}/{dataset}", None, dataset, found, people=planned.num_nodes)


def _of_collection(path: Path, parameters: Mapping[str, object]) -> Data:
    from fedgraph import data

    loaded = data.load("own/graphs", path=path, parameters=parameters)
    assert isinstance(loaded, GraphCollection)
    counts = np.bincount(loaded.labels, minlength=2)
    if int(counts.min()) < FEWEST_OF_A_CLASS:
        named = [f"{name}: {count}" for name, count in zip(loaded.classes, counts.tolist(), strict=False)]
        raise ScenarioError(
            f"--graph: graphs of each class are {', '.join(named[:8])}; allowed: two classes or more of {FEWEST_OF_A_CLASS} "
            "graphs or more, since some train and others test"
        )
    return Data(
        name="own/graphs",
        path=path,
        title=path.resolve().name,
        found=loaded.provenance.detail,
        graph=graph_rows.rows_of(loaded),
        people=len(loaded.graphs),
        collection=loaded,
        owners=loaded.owner is not None,
        least_class=int(counts.min()),
    )


def _of_federation(name: str, path: Path | None, title: str, found: str, graph: Graph) -> Data:
    """``ScenarioError`` for a single client: nobody is there to join."""
    owner = graph.owner
    assert owner is not None
    clients = len(graph.owner_names)
    if clients < 2:
        raise ScenarioError(f"--federation: {found}; allowed: two clients or more (one graph is --graph)")
    arcs = graph.adjacency.tocoo()
    crossing = int((owner[arcs.coords[0]] != owner[arcs.coords[1]]).sum()) // 2
    kept = graph if path is not None else None
    return Data(name, path, title, found, clients, bool(graph.masks), crossing, kept, graph.num_nodes)


def text(wanted: Wanted, folder: Path) -> str:
    """The YAML, commented. folder: where it will lie; the data's path is written relative to it."""
    from fedgraph.scenario import draft_collection, draft_federation, draft_graph  # what methods offer is not needed before

    data = wanted.data
    lines = _dataset(wanted, folder, wanted.title, {"rows": True} if data.collection is not None else {})
    if data.collection is not None:
        lines += _dataset(wanted, folder, f"{wanted.title}{draft_collection.WHOLE}", {})
    question = (
        "Is it worth joining, for whom, and at what cost" if data.federation else "Which method, whom to trust, at what cost"
    )
    kind = draft_federation if data.federation else draft_graph if data.collection is None else draft_collection
    task, quick = kind.parts(wanted)
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


def _dataset(wanted: Wanted, folder: Path, label: str, more: Mapping[str, object]) -> list[str]:
    """An entry of ``datasets``. more: parameters beside those that were wanted."""
    from fedgraph.scenario.draft_rows import as_line

    data, parameters = wanted.data, {**wanted.parameters, **more}
    lines = [f"  - name: {data.name}"]
    if data.path is not None:
        lines.append(f"    label: {as_line(label)}   # its name in tables")
        lines.append(f"    path: {as_line(os.path.relpath(data.path.resolve(), folder.resolve()))}   # seen from this file")
    return lines + (
        ["    parameters:", *(f"      {key}: {as_line(value)}" for key, value in parameters.items())] if parameters else []
    )
