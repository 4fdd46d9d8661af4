"""What every plan must say beside its number: public disputes, tuning, features that were computed from all rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedgraph import data, plugins, seeds
from fedgraph.methods.base import NO_PUBLIC_DERIVED_FACTS, Budget, Plan
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.types import Graph
from tests.public_facts import public_facts, sides


def plan_of(name: str, graph: Graph, epsilon: float, from_rows: bool = False) -> Plan:
    split = sides(graph, 0.8, seeds.seeded_generator(0, "split"))
    n = split.train.num_nodes
    facts = public_facts(n, graph.num_features, graph.num_classes, (n,), Viewer.CURATOR_TRUSTED, None, split.test)
    module = plugins.load("methods", name)
    derived = replace(NO_PUBLIC_DERIVED_FACTS, columns_from_rows=from_rows, features_from_edges=graph.features_from_edges)
    told = replace(facts, derived=derived)
    found: Plan = module.plan(module.Params(), told, Budget(epsilon, 1e-3))
    return found


@pytest.mark.parametrize("name", ["features", "gap_node", "sage_node", "dpar"])
def test_what_columns_and_features_were_made_from_is_an_assumption(name: str, library: Graph) -> None:
    def assumed(graph: Graph, from_rows: bool = False) -> set[Assumption]:
        told = {Assumption.COLUMNS_PUBLIC, Assumption.FEATURES_FROM_EDGES, Assumption.UNTUNED}
        return told & set(plan_of(name, graph, 4.0, from_rows).guarantee.protection.assumptions)

    assert assumed(library) == {Assumption.UNTUNED}
    assert assumed(library, from_rows=True) == {Assumption.UNTUNED, Assumption.COLUMNS_PUBLIC}
    assert assumed(replace(library, features_from_edges=True)) == {Assumption.UNTUNED, Assumption.FEATURES_FROM_EDGES}


@pytest.mark.dataset
@pytest.mark.parametrize(
    "name", ["citation_full/cora_ml", "planetoid/pubmed", "coauthor/cs", "amazon/photo", "facebook100/simmons81"]
)
def test_vocabularies_codes_and_tf_idf_are_declared_by_their_data_sets(name: str) -> None:
    assert data.load(name).columns_from_rows
