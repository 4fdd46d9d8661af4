"""``labels: others``: the labels of the centres, which are asked, train nobody; the truth is asked of the graph itself."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph import seeds
from fedgraph.partition import ego
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import graph_clustering
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.graph_clustering import _centres_of, _without_labels_of
from fedgraph.types import Graph


def test_centres_are_hidden_from_every_client(library: Graph) -> None:
    whole = ego.split(library, ego.Params(clients=80, hops=1), seeds.seeded_generator(0, "egos"))
    centres = _centres_of(whole)
    hidden = _without_labels_of(whole, centres)
    for before, after in zip(whole.subgraphs, hidden.subgraphs, strict=True):
        asked = np.isin(after.nodes, centres)
        assert (after.graph.labels[asked] == -1).all()
        assert np.array_equal(after.graph.labels[~asked], before.graph.labels[~asked])
    shared = sum(int(np.isin(s.nodes, centres).sum()) for s in whole.subgraphs)
    assert shared > len(centres), "some centre lies in another's network, and is hidden there, too"


@pytest.mark.parametrize("labels", ["all", "others"])
def test_the_release_changes_and_the_truth_does_not(labels: str, library: Graph) -> None:
    method = {"method": "local_dp", "rounds": 3, "compare": ["gw"], "label": "m"}  # its distances are kept, with the truth
    partition = {"partition": "ego", "clients": 12, "hops": 1}
    params = graph_clustering.Params(methods=[method], epsilons=[np.inf], partition=partition, num_init=1, labels=labels)  # type: ignore[arg-type]
    where = CellContext("t", library.name, library, root=3, seeds=1, runtime=SerialRuntime())
    cell = next(c for c in graph_clustering.cells(params, where) if c.method == "local_dp")
    held = graph_clustering.deal(params, 0, where)
    known = [int(s.graph.labels[s.center]) for s in held.subgraphs]
    assert (min(known) == -1) == (labels == "others")
    found = graph_clustering.run(params, cell, where)
    assert set(found.artefacts["truth"]) <= set(range(library.num_classes))
