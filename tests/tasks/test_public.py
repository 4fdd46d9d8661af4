"""What ``public:`` names, and that nothing else of a private test node is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph import data, plugins, seeds
from fedgraph.data.base import PublishedRequest
from fedgraph.errors import FedgraphError, PrivacyError
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
    one, two = (made(library, PublicSet(mask=f, name="first forty")) for f in (file, as_booleans))
    assert one.public_graph is not None
    assert two.public_graph is not None
    assert one.public == "first forty"
    assert np.array_equal(one.public_graph.features.toarray(), library.features[np.arange(40)].toarray())
    assert np.array_equal(one.public_graph.features.toarray(), two.public_graph.features.toarray())
    assert one.num_train + (one.truth >= 0).sum() == library.num_nodes - 40


@pytest.mark.parametrize(
    ("text", "says"),
    [("7\n900\n", "ids run from 7 to 900; allowed: 0 to 299"), ("a\nb\n", "not a list of node ids"), (None, "ids.txt")],
)
def test_a_bad_mask_is_one_line(text: str | None, says: str, library: Graph, tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FedgraphError, match=says):
        made(library, PublicSet(mask=file))


def test_a_public_set_is_one_thing() -> None:
    with pytest.raises(ValidationError, match="found share and dataset"):
        PublicSet(share=0.1, dataset="planetoid/cora")
    with pytest.raises(ValidationError, match="none of them"):
        PublicSet()


def test_another_data_set_needs_the_same_columns(library: Graph) -> None:
    with pytest.raises(FedgraphError, match="feature columns"):
        made(replace(library, provenance=replace(library.provenance, source="synthetic")), PublicSet(dataset="planetoid/cora"))


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


def test_a_public_data_set_is_searched_where_the_run_was_told_to(
    library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--data-root`` was searched for the private graph and not for the public one."""
    asked: list[tuple[Path, ...]] = []

    def searched(name: str, request: PublishedRequest) -> Graph:
        asked.append(request.roots)
        return library

    monkeypatch.setenv("FEDGRAPH_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(plugins.load("data", "embedded"), "load", searched)
    for root in (tmp_path, None):
        data.set_data_search_root(root)
        assert made(library, PublicSet(dataset="embedded/library")).public_graph is not None
        assert data.data_search_root() == root
    assert asked == [(tmp_path, tmp_path / "elsewhere"), (tmp_path / "elsewhere",)]
