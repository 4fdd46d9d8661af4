"""What every plan must say beside its number: public disputes, tuning, features that were computed from all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedgraph import data, plugins, seeds
from fedgraph.methods.base import Budget, Plan, assume_public_derived_facts
from fedgraph.privacy.units import Assumption, Relation, Viewer
from fedgraph.types import Graph
from tests.public_facts import public_facts, sides


def plan_of(name: str, graph: Graph, epsilon: float, from_rows: bool = False) -> Plan:
    split = sides(graph, 0.8, seeds.seeded_generator(0, "split"))
    n = split.train.num_nodes
    facts = public_facts(n, graph.num_features, graph.num_classes, (n,), Viewer.CURATOR_TRUSTED, None, split.test)
    module = plugins.load("methods", name)
    told = replace(facts, columns_from_rows=from_rows, features_from_edges=graph.features_from_edges)
    found: Plan = module.plan(module.Params(), told, Budget(epsilon, 1e-3))
    return found


def test_gap_at_node_level_is_publicly_disputed_and_says_so(library: Graph) -> None:
    for epsilon in (1.0, np.inf):
        assert any("IEEE S&P 2024, arXiv 2311.06888" in note for note in plan_of("gap_node", library, epsilon).notes)


@pytest.mark.parametrize("name", ["features", "sage_node"])
def test_features_made_from_all_rows_or_from_edges_are_an_assumption(name: str, library: Graph) -> None:
    derived = {Assumption.COLUMNS_PUBLIC, Assumption.FEATURES_FROM_EDGES}
    plain = set(plan_of(name, library, 4.0).guarantee.protection.assumptions)
    told = set(plan_of(name, replace(library, features_from_edges=True), 4.0, from_rows=True).guarantee.protection.assumptions)
    assert derived <= told
    assert not derived & plain
    assert Assumption.UNTUNED in plain


@pytest.mark.parametrize("relation", Relation)
def test_where_edges_alone_are_private_no_assumption_follows_from_them(relation: Relation) -> None:
    """Whether columns go along with edges is looked up in the edges; features are public with all that they say."""
    facts = public_facts(9, 2, 2, (9,), Viewer.CURATOR_TRUSTED, features_from_edges=True)
    found = assume_public_derived_facts(facts, relation, edges_private=True)
    assert (Assumption.FEATURES_FROM_EDGES in found) is not relation.links_alone


@pytest.mark.dataset
@pytest.mark.parametrize(
    "name", ["citation_full/cora_ml", "planetoid/pubmed", "coauthor/cs", "amazon/photo", "facebook100/simmons81"]
)
def test_vocabularies_codes_and_tf_idf_are_declared_by_their_data_sets(name: str) -> None:
    assert data.load(name).columns_from_rows
