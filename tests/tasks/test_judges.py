"""Who judges a choice of settings: drawn among everybody by public coins, so that no label decides it."""

from dataclasses import replace

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.federation import Federation
from fedgraph.tasks.node_classification import paid_scores, protocols
from fedgraph.types import Graph


def judges(graph: Graph, protocol: protocols.Protocol) -> tuple[set[str], Federation]:
    rng = seeds.seeded_generator(0, "split")
    public: str = "test-graph" if protocol in ("transductive", "inductive-edges") else "nothing"
    setting = protocols.divide(graph, protocol, 0.8, rng, public=public)  # type: ignore[arg-type]
    left, found = paid_scores.split_judges(setting, protocol, seeds.seeded_generator(0, "judges"))
    return {found.graph.ids[row] for row in found.rows}, left


@pytest.mark.parametrize("protocol", ["inductive", "inductive-edges", "asking"])
def test_a_masked_label_moves_no_judge(protocol: protocols.Protocol, library: Graph) -> None:
    """With a permutation of the labelled one label less replaced 9 of 18, and their number told that of labels."""
    named = replace(library, names=replace(library.names, ids=tuple(f"p{k}" for k in range(library.num_nodes))))
    ours, left = judges(named, protocol)
    assert len(ours) == 48
    for gone in (0, 7, 150, library.num_nodes - 1):
        labels = library.labels.copy()
        labels[[gone, (gone + 11) % library.num_nodes]] = -1
        theirs, after = judges(replace(named, labels=labels), protocol)
        assert theirs == ours
        assert (after.num_train, after.held.num_nodes, after.held.ids) == (left.num_train, left.held.num_nodes, left.held.ids)


def test_where_labels_are_public_a_label_moves_at_most_its_own_judge_and_one_other(library: Graph) -> None:
    named = replace(library, names=replace(library.names, ids=tuple(f"p{k}" for k in range(library.num_nodes))))
    ours, _ = judges(named, "transductive")
    for gone in (0, 7, 150):
        labels = library.labels.copy()
        labels[gone] = -1
        assert len(ours ^ judges(replace(named, labels=labels), "transductive")[0]) <= 3
    assert np.isin(sorted(ours), named.ids).all()
