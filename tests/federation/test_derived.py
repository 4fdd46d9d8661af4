"""What is public although it was computed from private data: each is an assumption, where it is private at all."""

import ast
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fedgraph
from fedgraph import seeds
from fedgraph.data.base import splits
from fedgraph.federation import ALONE_WORLD, Federation, LeftOutOfWorld, World, WorldKind, world_of_trust
from fedgraph.methods.base import Budget, PublicCutEdgeFacts, method_kinds
from fedgraph.partition import dirichlet, uniform
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, Partition, Subgraph

PROTOCOLS = {"features": "inductive", "gap_node": "inductive", "gap_edge": "inductive-edges", "lpgnn": "transductive"}
PROTECTS_LABELS, PRIVATE_EDGES = {"features", "gap_node", "lpgnn"}, {"features", "gap_node", "gap_edge"}


def assumed(name: str, graph: Graph, split: str = "random", trust: Trust = Trust.CURATOR) -> tuple[Assumption, ...]:
    """What the plan of the method ``name`` states on ``graph``."""
    setting = protocols.divide(graph, PROTOCOLS[name], 0.8, seeds.seeded_generator(0, "s"), split)  # type: ignore[arg-type]
    held = setting.held
    if trust is Trust.CURATOR:
        whole = Subgraph(0, held, np.arange(held.num_nodes))
        partition = Partition((whole,), True, 0, "one curator", from_edges=False, from_labels=False)
    else:
        partition = dirichlet.split(held, dirichlet.Params(clients=3), seeds.seeded_generator(0, "d"))
    world = world_of_trust(Trust.NOBODY if name == "lpgnn" and trust is Trust.CURATOR else trust)
    facts = replace(setting, world=world, partition=partition).facts
    method = method_kinds.load(name)
    return method.plan(method.Params(), facts, Budget(2.0, 1e-4)).guarantee.protection.assumptions


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_was_made_from_labels_is_an_assumption_where_labels_are_protected(name: str, library: Graph) -> None:
    """So many of each class; a published split; clients dealt by label."""
    protects = name in PROTECTS_LABELS
    assert Assumption.SPLIT_FROM_LABELS not in assumed(name, library)
    assert (Assumption.SPLIT_FROM_LABELS in assumed(name, library, "per-class")) == protects
    whole = splits.per_class(library, 10, 5, seeds.seeded_generator(0, "split"))
    assert (Assumption.SPLIT_FROM_LABELS in assumed(name, replace(library, masks=(whole,)), "public")) == protects
    if name in ("features", "gap_edge"):
        stated = assumed(name, library, trust=Trust.OWN_CLIENT)
        assert (Assumption.MEMBERSHIP_FROM_LABELS in stated) == protects
        assert (Assumption.MEMBERSHIP_GIVEN in stated) == (not protects)


def bridged(library: Graph, there: bool) -> Graph:
    """Two halves of a circle of 240 nodes each of 120, and one bridge between them where ``there``."""
    n = 240
    half = [(i, i + 1) for start in (0, 120) for i in range(start, start + 119)]
    edges = np.array([*half, *([(5, 125)] if there else [])])
    upper = sp.coo_array((np.ones(len(edges), np.float32), edges.T), shape=(n, n)).tocsr()
    return replace(library.induced(np.arange(n)), adjacency=sp.csr_array(upper + upper.T))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_largest_component_is_an_assumption_where_edges_are_private(name: str, library: Graph) -> None:
    """One edge decides which nodes there are."""
    whole, cut = (protocols.largest_component(bridged(library, there)) for there in (True, False))
    assert (whole.num_nodes, cut.num_nodes) == (240, 120)
    assert cut.induced(np.arange(10)).nodes_from_edges
    assert (Assumption.COMPONENT_FROM_EDGES in assumed(name, whole)) == (name in PRIVATE_EDGES)
    assert Assumption.COMPONENT_FROM_EDGES not in assumed(name, bridged(library, there=True))


def every_world(graph: Graph, protocol: protocols.Protocol, cut: PublicCutEdgeFacts = "dropped") -> list[Federation]:
    """The same three owners with one curator, together, each alone, and without one of them."""
    dealt = uniform.split(graph, uniform.Params(clients=3), seeds.seeded_generator(0, "d"))
    owner = np.zeros(graph.num_nodes, dtype=np.int64)
    for share in dealt.subgraphs:
        owner[share.nodes] = share.client
    owned = replace(graph, owner=owner, owner_names=("a", "b", "c"))
    setting = protocols.divide(owned, protocol, 0.8, seeds.seeded_generator(0, "s"))
    federation = setting.dealt_to_owners(owned.owner_names, dealt, cut)
    together = [world_of_trust(trust) for trust in (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)]
    worlds = [*together, ALONE_WORLD, World(WorldKind.TOGETHER, Trust.OWN_CLIENT, LeftOutOfWorld(1, "b"))]
    return [federation.within(world, 2) for world in worlds]


@pytest.mark.parametrize("given", ["columns_from_rows", "features_from_edges", "nodes_from_edges"])
@pytest.mark.parametrize("protocol", ["inductive", "inductive-edges", "transductive", "asking"])
def test_what_the_data_were_made_from_is_told_in_every_world(protocol: protocols.Protocol, given: str, library: Graph) -> None:
    """The method states an assumption of what it is told, and of nothing else."""
    told = {"nodes_from_edges": "component_from_edges"}.get(given, given)
    rows_public = protocol in ("inductive-edges", "transductive")  # whoever reads all rows may know what was made of them
    for value, own in itertools.product((True, False), repeat=2):  # and of own data by ties, which are private
        source = replace(library.provenance, source="own") if own else library.provenance
        for world in every_world(replace(library, provenance=source, **{given: value}), protocol):
            expected = value and not (given == "columns_from_rows" and rows_public and not own)
            assert getattr(world.facts, told) == expected, world.world.words


def test_who_asks_has_its_number_of_the_world_that_it_asks_in(library: Graph) -> None:
    """Everybody else is labelled here, so whoever has no label asks; a client that is left out takes its numbers along."""
    assert (library.labels >= 0).all()
    for world in every_world(library, "asking"):
        labels = np.zeros(world.facts.num_nodes, dtype=np.int64)
        for share in world.partition.subgraphs:
            labels[share.nodes] = share.graph.labels
        assert np.array_equal(world.facts.asking, np.flatnonzero(labels < 0)), world.world.words
        assert world.facts.num_train == world.num_train == (labels >= 0).sum()


@pytest.mark.parametrize("cut", ["dropped", "protected"])
def test_edges_between_clients_are_stated_where_some_client_is_told_of_them(cut: PublicCutEdgeFacts, library: Graph) -> None:
    for world in every_world(library, "inductive-edges", cut):
        told = any(share.cut is not None for share in world.partition.subgraphs)
        assert world.facts.cut_edges == (cut if told else "dropped"), world.world.words
        assert told == (cut != "dropped" and world.world.joined)


SAFE = {  # a default that is the more private choice, or no choice about privacy: room/file → parameter or field
    "sampled_once": "None: nothing is amplified",
    "colluders": "None where nobody may collude; a Protection needs its number with that assumption, and refuses one without",
    "promises": "none is taken as kept before the data are read: looking them up can only raise ε",
    "shared_rounds": "what is shared is recorded in every ledger that builds on it",
    "shared_key": "the same",
    "cut_edges": "dropped: no client is told of edges that leave it",
    "asked_is_public": "False: what is asked stays private",
    "public": "of a scenario: the user's key, whose default the schema shows",
}
WORDS = (
    "from_",
    "sampled",
    "public",
    "shared",
    "replaced",
    "per_end",
    "holdings",
    "colluders",
    "cut_edges",
    "disjoint",
    "touched",
)


def defaults(path: Path) -> list[str]:
    """``file:line name`` of each parameter or field with a default whose name speaks of what is given, shared or sampled."""
    pairs: list[tuple[str, ast.expr | None, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            every = [*node.args.posonlyargs, *node.args.args]
            given = [*zip(every[len(every) - len(node.args.defaults) :], node.args.defaults, strict=True)]
            given += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            pairs += [(a.arg, d, node.lineno) for a, d in given]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs.append((node.target.id, node.value, node.lineno))
    found = []
    for name, value, line in pairs:
        required = value is None or ast.unparse(value) == "field(kw_only=True)"
        settings = isinstance(value, ast.Call) and ast.unparse(value.func) == "Field"  # of a scenario: the schema shows it
        if not required and not settings and name not in SAFE and any(word in name for word in WORDS):
            found.append(f"{path.name}:{line} {name}")
    return found


def test_no_default_is_the_less_private_choice() -> None:
    rooms = Path(fedgraph.__file__).parent
    files = [p for room in ("privacy", "partition", "federation") for p in (rooms / room).rglob("*.py")]
    files += [rooms / "methods" / "base" / "contract.py", rooms / "types.py"]
    files += (rooms / "tasks" / "node_classification").glob("[ap]*.py")  # who is asked, and what is public
    there = [found for path in files for found in defaults(path)]
    assert not there, "give these no default, or say in SAFE why it is the more private choice:\n" + "\n".join(there)
