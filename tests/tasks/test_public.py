"""What ``public:`` names, and that nothing else of a private test node is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation import Federation
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.tasks import node_classification
from fedgraph.tasks.node_classification import protocols
from fedgraph.tasks.node_classification.protocols import PublicSet, PublicSetChoice
from fedgraph.types import Graph
from tests.public_facts import public_facts


def made(graph: Graph, public: PublicSetChoice, protocol: protocols.Protocol = "inductive") -> Federation:
    return protocols.divide(graph, protocol, 0.8, seeds.seeded_generator(0, "split"), public=public)


def planned(setting: Federation) -> features.Planned:
    held = setting.held
    facts = public_facts(
        held.num_nodes, held.num_features, held.num_classes, (held.num_nodes,), Viewer.CURATOR_TRUSTED, None,
        setting.public_graph, public_name=setting.public, asking=setting.asking,
    )  # fmt: skip
    return features.plan(features.Params(), facts, Budget(1.0, 1e-3))


@pytest.mark.parametrize("public", ["test-graph", "nothing"])
def test_the_test_graph_is_public_unless_another_word_is_written(public: PublicSetChoice, library: Graph) -> None:
    setting, known = made(library, public), public == "test-graph"
    assert setting.public == public
    assert setting.test_graph_public == (setting.public_graph is not None) == known
    assert np.array_equal(setting.held.labels, made(library, "test-graph").held.labels), "the same nodes train"
    stated = planned(setting).guarantee.protection.assumptions
    assert (Assumption.TEST_GRAPH_PUBLIC in stated) == known
    assert Assumption.PUBLIC_NODES not in stated


def test_a_share_is_public_without_labels_and_neither_trains_nor_is_tested(library: Graph) -> None:
    setting, usual = made(library, PublicSet(share=0.1)), made(library, "test-graph")
    assert setting.public_graph is not None
    assert setting.public_graph.num_nodes == 30
    assert (setting.public_graph.labels == -1).all()
    assert setting.num_train == usual.num_train - 30
    assert np.array_equal(setting.truth, usual.truth), "a share comes from those that would train"
    assert setting.public == "share 0.1"
    assert Assumption.PUBLIC_NODES in planned(setting).guarantee.protection.assumptions


def test_a_mask_names_the_public_nodes(library: Graph, tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("\n".join(str(i) for i in range(40)))
    as_booleans = tmp_path / "mask.npy"
    np.save(as_booleans, np.arange(library.num_nodes) < 40)
    one, two = (made(library, PublicSet(mask=f)) for f in (file, as_booleans))
    assert one.public_graph is not None
    assert two.public_graph is not None
    assert one.public == file.name
    assert np.array_equal(one.public_graph.features.toarray(), library.features[np.arange(40)].toarray())
    assert np.array_equal(one.public_graph.features.toarray(), two.public_graph.features.toarray())
    assert one.num_train + (one.truth >= 0).sum() == library.num_nodes - 40


def test_asking_keeps_everything_and_shows_edges_to_nobody_who_did_not_say_so(library: Graph) -> None:
    setting = made(library, "test-graph", "asking")
    assert setting.public == "nothing"
    assert setting.held.num_nodes == library.num_nodes
    assert setting.held.num_edges == library.num_edges
    assert (setting.held.labels[setting.asking] == -1).all()
    assert np.array_equal(setting.truth[setting.asking], library.labels[setting.asking])
    assert setting.num_train == library.num_nodes - setting.asking.size == 240
    plan = planned(setting)
    assert plan.facts.num_train == 240
    assert setting.question(plan, lambda: 1.0).num_edges == 0


def test_edge_level_has_no_asking_nodes() -> None:
    with pytest.raises(PrivacyError, match="answers-private"):
        Protection(
            Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC, Assumption.ANSWERS_PRIVATE)
        )


def test_what_is_public_is_chosen_where_it_means_something() -> None:
    """Of one graph, test nodes are held: ``public: nothing`` would promise what nobody keeps."""
    with pytest.raises(ValidationError, match="protocol inductive or asking"):
        node_classification.Params(
            methods=[{"method": "features"}], trust=["curator"], epsilons=[1], protocol="transductive", public="nothing"
        )
