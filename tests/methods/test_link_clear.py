"""Links without privacy: heuristics are networkx's, and the encoder learns."""

from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fedgraph.learning import links
from fedgraph.methods import link_clear
from fedgraph.types import Graph


def test_adamic_adar_is_that_of_networkx(library: Graph) -> None:
    asked = links.draw_pairs(library.num_nodes, 200, np.random.default_rng(2))
    graph = nx.from_scipy_sparse_array(library.adjacency)
    theirs = [score for _, _, score in nx.adamic_adar_index(graph, [tuple(p) for p in asked.tolist()])]
    assert link_clear.adamic_adar(library.adjacency, asked) == pytest.approx(theirs)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As in every process of a run (``runtime.process``): several threads add up in an order that changes the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_the_encoder_learns_and_repeats(library: Graph, model: str) -> None:
    rows = link_clear.encoder_rows(library, 0, model)
    assert np.array_equal(rows, link_clear.encoder_rows(library, 0, model))
    edges = links.list_all(library.adjacency)
    against = links.draw_pairs(library.num_nodes, 500, np.random.default_rng(0), library.adjacency)
    score = np.concatenate([np.einsum("ij,ij->i", rows[p[:, 0]], rows[p[:, 1]]) for p in (edges, against)])
    assert roc_auc_score(np.arange(len(score)) < len(edges), score) > 0.8
