"""Worlds and trust: one word for each level, and names of any text keep keys, files, records and clients apart."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fedgraph
from fedgraph.cells.cell import Cell
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import ClientResultCellFacts, ParticipationCellFacts
from fedgraph.federation import ALONE_WORLD, LeftOutOfWorld, World, WorldKind, world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.report import table
from fedgraph.report.sections import participation
from fedgraph.report.sections.base import SectionRecords
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph

TEXTS = [
    "local", "secure", " without ", "/", ",", "", "🏦", "x" * 300, "local bank", "secure bank", "clients bank", "sums", "alone",
    "a without b", "%2F", "a/b", "b", "a", "curator", "own-client", "'", '"', "None", "\\",
]  # fmt: skip
names = st.sampled_from(TEXTS)
worlds = st.one_of(
    st.sampled_from([ALONE_WORLD, *map(world_of_trust, Trust)]),
    st.builds(
        lambda trust, client, name: World(WorldKind.TOGETHER, trust, LeftOutOfWorld(client, name)),
        st.sampled_from([Trust.SUMS, Trust.OWN_CLIENT, Trust.ACTIVE_SERVER]), st.just(0), names,
    ),
)  # fmt: skip
cells = st.builds(
    lambda task, dataset, method, variant, world, epsilon: Cell(task, dataset, method, variant, world, epsilon, "provable", 0),
    names, names, names, names, worlds, st.sampled_from([1.0, 4.0]),
)  # fmt: skip


def test_every_level_of_trust_has_one_word_one_viewer_and_the_streams_it_had() -> None:
    assert [t.value for t in Trust] == ["curator", "sums", "own-client", "active-server", "nobody"]
    assert {Trust.against(viewer).viewer for viewer in Viewer} == set(Viewer)
    assert [world_of_trust(t).stream_word for t in Trust] == ["central", "secure", "local", "active", "nobody"]
    assert ALONE_WORLD.stream_word == "alone"
    assert World(WorldKind.TOGETHER, Trust.SUMS, LeftOutOfWorld(3, "X")).stream_word == "secure without X"
    assert sorted(Trust, key=lambda t: t.rank) == list(reversed(Trust))


@pytest.mark.parametrize(
    ("kind", "trust", "left"),
    [
        (WorldKind.WHOLE, Trust.SUMS, False),
        (WorldKind.TOGETHER, Trust.CURATOR, False),
        (WorldKind.ALONE, Trust.CURATOR, False),
        (WorldKind.WHOLE, Trust.CURATOR, True),
        (WorldKind.ALONE, Trust.OWN_CLIENT, True),
    ],
)
def test_a_world_that_cannot_be_is_refused(kind: WorldKind, trust: Trust, left: bool) -> None:
    with pytest.raises(ValueError, match="no world is"):
        World(kind, trust, LeftOutOfWorld(0, "a") if left else None)


@given(st.lists(cells, unique=True, max_size=8))
def test_cells_of_any_names_have_keys_of_their_own(found: list[Cell]) -> None:
    assert len({cell.path for cell in found}) == len({cell.key for cell in found}) == len(found)


@given(worlds)
def test_a_world_is_a_value_that_files_give_back(world: World) -> None:
    assert World.from_dict(world.to_dict()) == world
    assert hash(World.from_dict(world.to_dict())) == hash(world)


def entry(cell: Cell, results: list[ClientResultCellFacts]) -> Result:
    facts = ParticipationCellFacts(results=tuple(results))
    return Result.of(cell, facts=facts, epsilon_provable=cell.epsilon, seconds=1.0)


def result(kind: str, client: str, value: float) -> ClientResultCellFacts:
    return ClientResultCellFacts(kind, client, 100, 25, {"accuracy": value}, 1.0, "the server")


@settings(max_examples=12)
@given(st.lists(cells, unique=True, min_size=1, max_size=8))
def test_every_row_of_the_results_finds_its_cell(found: list[Cell]) -> None:
    told = [("left-out", c.world.without.name) if c.world.without else ("all", "all") for c in found]
    entries = [entry(c, [result(*who, i / 10)]) for i, (c, who) in enumerate(zip(found, told, strict=True))]
    lines = table.tabulate(entries, {})
    again = table.results_of(lines)
    assert [one.row for one in again] == [c.row for c in found]
    assert [one.facts.results for one in again] == [one.facts.results for one in entries]
    assert len(set(lines["row"])) == len(table.rows_of(entries)) == len({c.row for c in found})


@settings(max_examples=25)
@given(st.lists(names.filter(lambda name: name != participation.EVERYBODY), unique=True, min_size=2, max_size=4))
def test_every_client_keeps_its_own_numbers(owners: list[str]) -> None:
    """Of being joined and of being left out, under both kinds of trust."""
    entries = []
    for step, trust in enumerate(participation.TRUST_WORDS):
        cell = Cell("t", "d", "features", "default", world_of_trust(trust), 4.0, "provable", 0)
        joined = [result("federated", name, (10 * step + k) / 100) for k, name in enumerate(owners)]
        entries.append(entry(cell, [result("federated", participation.EVERYBODY, 0.9), *joined]))
        for k, name in enumerate(owners):
            left = replace(cell, world=World(WorldKind.TOGETHER, trust, LeftOutOfWorld(k, name)))
            entries.append(entry(left, [result("left-out", name, (50 + 10 * step + k) / 100)]))
    found = participation.read(SectionRecords("participation", "t", "d", {}, tuple(entries)))
    for step, trust in enumerate(participation.TRUST_WORDS):
        for k, name in enumerate(owners):
            assert found.value("features", 4.0, participation.join(trust), name) == (10 * step + k) / 100
            assert found.value("features", 4.0, participation.leave_out(trust), name) == (50 + 10 * step + k) / 100


def owned(library: Graph, owners: tuple[str, ...]) -> Graph:
    owner = np.arange(library.num_nodes) % len(owners)
    return replace(library, owner=owner.astype(np.int64), owner_names=owners)


@settings(max_examples=3)
@given(st.lists(names.filter(lambda name: name != "all"), unique=True, min_size=2, max_size=4))
@example(["local bank", "secure bank", "clients bank"])
def test_owners_of_any_name_hold_what_their_world_says(owners: list[str]) -> None:
    """Whoever is left out is never trained on, also where names differ by a word of trust."""
    library = fedgraph.data.load("embedded/library")
    assert isinstance(library, Graph)
    graph = owned(library, tuple(owners))
    params = node_classification.Params(
        owners=True, epsilons=[1.0], methods=[{"method": "features", "steps": 1}], trust=["own-client"],
        participations=["federated", "curator", "left-out"], left_out="all", partition={"partition": "natural"},
    )  # fmt: skip
    where = CellContext("t", graph.name, graph, root=5, seeds=1, runtime=SerialRuntime())
    for cell in node_classification.cells(params, where):
        dealt, without = node_classification.train(params, cell, where).federation, cell.world.without
        held = set(np.concatenate([s.graph.owner for s in dealt.partition.subgraphs if s.graph.owner is not None]).tolist())
        everybody = set(range(len(owners)))
        assert held == (everybody if without is None else everybody - {without.client})
        assert dealt.world == cell.world
        assert dealt.facts.viewer is cell.world.viewer
