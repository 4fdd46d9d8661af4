"""What clients hold, what is public, what may be asked and who judges: nothing private leaves through the question."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.federation import Federation
from fedgraph.methods import features, gap_edge, nonprivate
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.tasks import node_classification
from fedgraph.tasks.node_classification import paid_scores, protocols
from fedgraph.tasks.node_classification.protocols import PublicSet, PublicSetChoice
from fedgraph.types import Graph
from tests.public_facts import public_facts


def made(graph: Graph, protocol: protocols.Protocol, public: PublicSetChoice = "test-graph") -> Federation:
    return protocols.divide(graph, protocol, 0.8, seeds.seeded_generator(0, "split"), public=public)


def planned(setting: Federation) -> features.Planned:
    held = setting.held
    facts = public_facts(
        held.num_nodes, held.num_features, held.num_classes, (held.num_nodes,), Viewer.CURATOR_TRUSTED, None,
        setting.public_graph, public_name=setting.public, asking=setting.asking,
    )  # fmt: skip
    return features.plan(features.Params(), facts, Budget(1.0, 1e-3))


def test_transductive_masks_test_labels_and_publishes_no_edge(library: Graph) -> None:
    setting, inductive = made(library, "transductive"), made(library, "inductive")
    assert inductive.num_train == setting.num_train == inductive.held.num_nodes == (setting.held.labels >= 0).sum() == 240
    hidden = setting.truth >= 0
    assert hidden.sum() == 60
    assert (setting.held.labels[hidden] == -1).all()
    assert np.array_equal(setting.truth[hidden], library.labels[hidden])
    assert (setting.truth[~hidden] == -1).all()
    assert setting.public_graph is None
    assert setting.public_attributes is not None
    assert setting.public_attributes.num_edges == 0
    assert setting.held.num_edges == library.num_edges
    assert library.labels.min() >= 0, "the original is untouched"


@pytest.mark.parametrize(("spent", "edges"), [(1.0, 0), (0.0, 0), (math.inf, 720)])
def test_private_edges_are_withheld_from_the_question(spent: float, edges: int, library: Graph) -> None:
    setting = made(library, "transductive")
    facts = public_facts(
        300, 240, 4, (300,), Viewer.CURATOR_TRUSTED, public_attributes=setting.public_attributes, members=(np.arange(300),)
    )
    plan = gap_edge.plan(gap_edge.Params(hops=1), facts, Budget(1.0, 1e-5))
    assert setting.question(plan, lambda: spent).num_edges == edges


def test_asking_keeps_everything_and_shows_edges_to_nobody_who_did_not_say_so(library: Graph) -> None:
    setting = made(library, "asking")
    assert setting.public == "nothing"
    assert (setting.held.num_nodes, setting.held.num_edges) == (library.num_nodes, library.num_edges)
    assert (setting.held.labels[setting.asking] == -1).all()
    assert np.array_equal(setting.truth[setting.asking], library.labels[setting.asking])
    plan = planned(setting)
    assert setting.num_train == library.num_nodes - setting.asking.size == plan.facts.num_train == 240
    assert setting.question(plan, lambda: 1.0).num_edges == 0


@pytest.mark.parametrize("public", ["test-graph", "nothing"])
def test_the_test_graph_is_public_and_shown_whole_unless_another_word_is_written(
    public: PublicSetChoice, library: Graph
) -> None:
    setting, known = made(library, "inductive", public), public == "test-graph"
    assert setting.public == public
    assert setting.test_graph_public == (setting.public_graph is not None) == known
    assert np.array_equal(setting.held.labels, made(library, "inductive").held.labels), "the same nodes train"
    stated = planned(setting).guarantee.protection.assumptions
    assert (Assumption.TEST_GRAPH_PUBLIC in stated) == known
    assert Assumption.PUBLIC_NODES not in stated
    if known:
        facts = public_facts(240, 240, 4, (240,), Viewer.CURATOR_TRUSTED, public_graph=setting.public_graph)
        plan = nonprivate.plan(nonprivate.Params(), facts, Budget(math.inf, 1e-5))
        assert setting.question(plan, lambda: 1.0) is setting.asked


def test_a_share_is_public_without_labels_and_neither_trains_nor_is_tested(library: Graph) -> None:
    setting, usual = made(library, "inductive", PublicSet(share=0.1)), made(library, "inductive")
    assert setting.public_graph is not None
    assert setting.public_graph.num_nodes == 30
    assert (setting.public_graph.labels == -1).all()
    assert setting.num_train == usual.num_train - 30
    assert np.array_equal(setting.truth, usual.truth), "a share comes from those that would train"
    assert setting.public == "share 0.1"
    assert Assumption.PUBLIC_NODES in planned(setting).guarantee.protection.assumptions


def test_a_mask_names_the_public_nodes(library: Graph, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("\n".join(str(i) for i in range(40)))
    np.save(tmp_path / "mask.npy", np.arange(library.num_nodes) < 40)
    for name in ("ids.txt", "mask.npy"):
        found = made(library, "inductive", PublicSet(mask=tmp_path / name))
        assert found.public_graph is not None
        assert found.public == name
        assert (found.public_graph.features != library.features[np.arange(40)]).nnz == 0
        assert found.num_train + (found.truth >= 0).sum() == library.num_nodes - 40


def test_what_nobody_keeps_is_not_promised() -> None:
    """Of one graph, test nodes are held, so none is nothing; at edge level no node asks privately."""
    row: dict[str, object] = {"methods": [{"method": "features"}], "trust": ["curator"], "epsilons": [1]}
    with pytest.raises(ValidationError, match="protocol inductive or asking"):
        node_classification.Params(**row, protocol="transductive", public="nothing")
    stated = (Assumption.FEATURES_LABELS_PUBLIC, Assumption.ANSWERS_PRIVATE)
    with pytest.raises(PrivacyError, match="answers-private"):
        Protection(Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, stated)


@pytest.mark.parametrize(("protocol", "most"), [("inductive", 0), ("inductive-edges", 0), ("asking", 0), ("transductive", 3)])
def test_a_masked_label_moves_no_judge(protocol: protocols.Protocol, most: int, library: Graph) -> None:
    """Judges are drawn among everybody by public coins; with a permutation of the labelled one label less replaced 9 of 18,
    and their number told that of labels. Where labels are public, one moves at most its own judge and one other.
    """
    named = replace(library, names=replace(library.names, ids=tuple(f"p{k}" for k in range(library.num_nodes))))

    def judges(graph: Graph) -> tuple[set[str], tuple[object, ...]]:
        setting = made(graph, protocol, "test-graph" if protocol in ("transductive", "inductive-edges") else "nothing")
        left, found = paid_scores.split_judges(setting, protocol, seeds.seeded_generator(0, "judges"))
        return {found.graph.ids[row] for row in found.rows}, (left.num_train, left.held.num_nodes, left.held.ids)

    ours, left = judges(named)
    assert most or len(ours) == 48
    for gone in (0, 7, 150, named.num_nodes - 1):
        labels = named.labels.copy()
        labels[[gone] if most else [gone, (gone + 11) % named.num_nodes]] = -1
        theirs, after = judges(replace(named, labels=labels))
        assert len(ours ^ theirs) <= most
        assert most or after == left
