"""Private nodes that ask: an answer is made from what is released, and from what ``Offers.reads`` says, of the node alone."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import plugins, seeds
from fedgraph.methods.base import Budget, MethodReads, method_kinds
from fedgraph.partition import uniform
from fedgraph.tasks.node_classification import protocols
from fedgraph.tasks.node_classification.protocols import PublicSet, PublicSetChoice
from fedgraph.types import Graph
from tests.trainings import train

PRIVATE = [
    name
    for name in plugins.names("methods")
    if (offers := method_kinds.load(name).OFFERS).private_test_nodes and not offers.never_private
]


def alone(graph: Graph, node: int, own_edges: bool) -> Graph:
    """Everybody else with another row and other edges; the node's own edges stay where they may be read."""
    others = np.arange(graph.num_nodes) != node
    dense = graph.features.toarray()
    dense[others] = np.random.default_rng(node).permutation(dense[others][:, ::-1], axis=0)
    edges = np.zeros((graph.num_nodes, graph.num_nodes), dtype=graph.adjacency.dtype)
    if own_edges:
        edges[node] = edges[:, node] = graph.adjacency[[node]].toarray().ravel()
    return dataclasses.replace(graph, features=sp.csr_array(dense), adjacency=sp.csr_array(edges))


@pytest.mark.parametrize(
    ("protocol", "public"), [("inductive", "nothing"), ("asking", PublicSet(share=0.2))], ids=["nothing", "share"]
)
@pytest.mark.parametrize("name", PRIVATE)
def test_an_answer_to_a_private_node_follows_from_its_own_data(
    name: str, protocol: protocols.Protocol, public: PublicSetChoice, library: Graph
) -> None:
    method = method_kinds.load_classifier(name)
    setting = protocols.divide(library, protocol, 0.8, seeds.seeded_generator(0, "split"), public=public)
    assert not setting.test_graph_public
    partition = uniform.split(setting.held, uniform.Params(clients=1), seeds.seeded_generator(0, "deal"))
    dealt = dataclasses.replace(setting, partition=partition)
    settings = next(s.settings for s in method.OFFERS.situations if s.given in (protocol, "inductive"))
    plan = method.plan(method.Params(**settings), dealt.facts, Budget(4.0, 1e-3))
    state = train(plan, partition).state
    reads = None if method.OFFERS.reads is None else method.OFFERS.reads(plan)
    assert reads in (MethodReads.OWN_ROW, MethodReads.OWN_EDGES), f"{name} answers a private node from {reads}"
    asked = setting.question(plan, lambda: 4.0)
    answers = method.predict(plan, state, asked)
    rows = setting.asking if setting.asking.size else np.arange(asked.num_nodes)
    for node in rows[:3]:
        other = method.predict(plan, state, alone(asked, int(node), reads is MethodReads.OWN_EDGES))
        assert np.allclose(answers[node], other[node], rtol=1e-5, atol=1e-7), f"node {node} was answered from others' data"
        assert not np.allclose(answers, other), "the data of others were changed"
