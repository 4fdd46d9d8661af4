"""What every plan must say beside its number, what enters the names of its random streams, and odd public graphs."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import ValidationError

from fedgraph import data, plugins, seeds
from fedgraph.documents.settings import Settings
from fedgraph.learning import PublicTrainingSteps
from fedgraph.learning.public_training import PublicTrainingEncoder
from fedgraph.methods import features, link_owners
from fedgraph.methods.base import Budget, Plan, State, assume_public_derived_facts
from fedgraph.privacy.units import Assumption, Relation, Viewer
from fedgraph.types import Graph, graph_without_edges
from tests.public_facts import public_facts, sides


def plan_of(
    name: str, graph: Graph, epsilon: float, from_rows: bool = False, public: Graph | None = None, **settings: object
) -> Plan:
    split = sides(graph, 0.8, seeds.seeded_generator(0, "split"))
    n, public = split.train.num_nodes, public or split.test
    facts = public_facts(n, graph.num_features, graph.num_classes, (n,), Viewer.CURATOR_TRUSTED, None, public)
    module = plugins.load("methods", name)
    told = replace(facts, columns_from_rows=from_rows, features_from_edges=graph.features_from_edges)
    found: Plan = module.plan(module.Params(**settings), told, Budget(epsilon, 1e-3))
    return found


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("lacking", ["features", "adjacency"])
def test_features_plans_and_predicts_on_public_graphs_without_words_or_edges(lacking: str, pairs: bool, library: Graph) -> None:
    public = library.induced(np.arange(60))
    public = replace(public, **{lacking: sp.csr_array(getattr(public, lacking).shape, dtype=np.float32)})
    plan = plan_of("features", library, 1.0, public=public, pairs=pairs)
    found = features.predict(plan, features.start(plan, np.random.default_rng(0)), public)
    assert found.shape == (60, public.num_classes)
    assert np.isfinite(found).all()


def test_a_coupling_of_nothing_hears_no_edge_and_any_other_does(library: Graph) -> None:
    public, same = library.induced(np.arange(60)), []
    for coupling in (0.0, 3.0):
        plan = plan_of("features", library, 1.0, coupling=coupling, pairs=False)
        weights = np.random.default_rng(0).standard_normal((plan.made.basis.shape[1] + 1, 4)).astype(np.float32)
        state = State({}, features.Memory(weights, weights.ravel()))
        same.append(np.allclose(*(features.predict(plan, state, graph) for graph in (public, graph_without_edges(public)))))
    assert same == [True, False]


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


def test_streams_do_not_follow_the_names_of_classes() -> None:
    """A class with another name must not draw other numbers. Where a setting is new, write the new fingerprint here."""
    encoder = PublicTrainingEncoder("classes", 64, 4, PublicTrainingSteps(60, 0.01, 5e-4))
    how = "Fitting(epochs=60, rate=0.01, decay=0.0005)"
    assert encoder.stream_words == f"Encoder(output='classes', hidden=64, folds=4, how={how})"
    facts = public_facts(100, 20, 3, (100,), Viewer.SERVER)
    assert features.plan(features.Params(steps=3), facts, Budget(1.0, 1e-5)).fingerprint == "d1b1073ad801a3f2"


def test_a_constant_names_noise_as_a_setting_does() -> None:
    """Were it left out, another constant would put the same noise on another value, and the difference would show both."""

    class Base(Settings):
        steps: int = 3
        share: ClassVar[float] = 0.5
        rate: float = 1.0

    class Longer(Base):
        steps: int = 4
        knee: ClassVar[int] = 1

    assert repr(Base(rate=2.0)) == "Base(steps=3, share=0.5, rate=2.0)"
    assert repr(Longer()) == "Longer(steps=4, share=0.5, rate=1.0, knee=1)"
    with pytest.raises(ValidationError):
        Base(share=0.9)  # type: ignore[call-arg]


def _planned(graph: Graph, method: str = "features", seed: int = 0, **given: object) -> Plan:
    """Three clients of 30 people each, whom ``seed`` deals; ``graph`` is public."""
    members = tuple(np.sort(part) for part in np.random.default_rng(seed).permutation(90).reshape(3, 30))
    named = {"public_graph": graph} if method == "features" else {"public_attributes": graph, "public_name": "attributes"}
    columns = (graph.num_features, graph.num_classes)
    facts = public_facts(90, *columns, (30, 30, 30), Viewer.SERVER, members=members, **(named | given))  # type: ignore[arg-type]
    module = {"features": features, "link_owners": link_owners}[method]
    settings: Any = module.Params()
    return module.plan(settings, facts, Budget(2.0, 1e-5))  # type: ignore[no-any-return, attr-defined]


def test_other_public_data_or_other_holders_draw_other_noise(library: Graph) -> None:
    """Else the difference of two runs under one written seed is the difference of what they bound, without noise."""
    public = library.induced(np.arange(90))
    labels, rows, edges = public.labels.copy(), public.features.tolil(), public.adjacency.tolil()
    labels[7], rows[3, 5] = (labels[7] + 1) % 4, 1.0 - rows[3, 5]
    edges[2, 80] = edges[80, 2] = 1.0 - edges[2, 80]
    others = [
        replace(public, labels=labels),
        replace(public, features=sp.csr_array(rows.tocsr())),
        replace(public, adjacency=sp.csr_array(edges.tocsr())),
        replace(public, num_classes=public.num_classes + 1),
    ]
    prints = [_planned(graph).fingerprint for graph in (public, *others)]
    prints += [_planned(public, seed=seed).fingerprint for seed in (1, 2)]
    assert len(set(prints)) == len(prints)
    assert _planned(replace(public)).fingerprint == prints[0]
    alone = [_planned(graph_without_edges(graph), "link_owners") for graph in (public, others[1])]
    assert alone[0].fingerprint != alone[1].fingerprint
    assert alone[0].shared_fingerprint != alone[1].shared_fingerprint


def test_who_holds_whom_names_no_stream_where_private_edges_decided_it(library: Graph) -> None:
    plans = [_planned(library.induced(np.arange(90)), seed=seed) for seed in (0, 1)]
    louvain = [replace(p, facts=replace(p.facts, membership_from_edges=True)) for p in plans]
    assert plans[0].fingerprint != plans[1].fingerprint
    assert louvain[0].fingerprint == louvain[1].fingerprint != plans[0].fingerprint
