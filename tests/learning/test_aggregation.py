"""Sums over neighbours: against a dense product, on awkward rows, and bounded neighbourhoods by public coins."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedgraph.learning import aggregation, neighbour_limits
from fedgraph.types import Graph


def random_graph(n: int, degree: float, seed: int) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < degree / n, k=1).astype(np.float32)
    return sp.csr_array(upper + upper.T)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sums_are_the_dense_product(index: type) -> None:
    adjacency = random_graph(40, 6, 0)
    wide = sp.csr_array((adjacency.data, adjacency.indices.astype(index), adjacency.indptr.astype(index)), shape=(40, 40))
    rows = np.random.default_rng(1).standard_normal((40, 7)).astype(np.float32)
    assert np.allclose(aggregation.aggregate_neighbours(wide, rows), adjacency.toarray() @ rows, atol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_product_for_a_gpu_gives_the_same_sums(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU's tensors: both factors of torch's product are of one precision."""
    adjacency, rows = random_graph(40, 6, 0), np.random.default_rng(1).standard_normal((40, 7)).astype(kind)
    weights = sp.csr_array(adjacency.astype(np.float64) * 0.3)
    plain = aggregation.aggregate_neighbours(adjacency, rows, kind), aggregation.aggregate_weighted_neighbours(weights, rows)
    devices = itertools.cycle([SimpleNamespace(type="cuda"), torch.device("cpu")])  # asked which one, then for its tensors
    monkeypatch.setattr(aggregation, "torch_device", lambda: next(devices))
    assert np.array_equal(aggregation.aggregate_neighbours(adjacency, rows, kind), plain[0])
    assert np.allclose(aggregation.aggregate_weighted_neighbours(weights, rows), plain[1], atol=1e-12)


def test_unit_length_never_exceeds_one() -> None:
    rng = np.random.default_rng(0)
    rows = (10 ** rng.uniform(-18, 18, (5000, 1)) * rng.standard_normal((5000, 6))).astype(np.float32)
    rows[7] = 0
    norms = np.linalg.norm(aggregation.scale_to_unit_length(rows).astype(np.float64), axis=1)
    assert norms.max() <= 1.0
    assert norms[7] == 0
    assert np.delete(norms, 7).min() > 1 - 1e-5


@pytest.mark.parametrize(("size", "alike"), [(3_000, False), (70_000, True), (70_000, False)])
def test_one_of_many_neighbours_moves_a_sum_by_at_most_one(size: int, alike: bool) -> None:
    """The rounding of large sums is part of the sensitivity: in single precision alone it would add up to 0.005 here."""
    rng = np.random.default_rng(size)
    rows = np.ones((size, 3)) if alike else rng.uniform(0.5, 1.5, (size, 3))
    indices = np.arange(1, size, dtype=np.int32)
    change = 0.0
    for left_out in rng.choice(indices, 40, replace=False):
        kept = np.concatenate([indices, indices[indices != left_out]])
        both = sp.csr_array((np.ones(kept.size, np.float32), kept, [0, size - 1, kept.size]), shape=(2, size))
        sums = aggregation.aggregate_hop(both, rows.astype(np.float32)).astype(np.float64)
        change = max(change, float(np.linalg.norm(sums[0] - sums[1])))
    assert 0.98 < change <= 1.0


@pytest.mark.parametrize("degree", [1, 3, 100])
def test_bounded_graphs_are_symmetric_subgraphs(degree: int) -> None:
    adjacency = random_graph(60, 12, 2)
    found = neighbour_limits.at_most(adjacency, degree, np.arange(60))
    assert np.diff(found.indptr).max() <= degree
    assert (abs(found - found.T)).nnz == 0
    assert (found > adjacency).nnz == 0
    if degree == 100:
        assert (found != adjacency).nnz == 0


def test_coins_belong_to_ids_and_not_to_positions(library: Graph) -> None:
    """A shuffled graph with the same public ids keeps the same edges."""
    ids = np.arange(1000, 1000 + library.num_nodes)
    order = np.random.default_rng(0).permutation(library.num_nodes)
    shuffled = sp.csr_array(library.adjacency[order][:, order])
    first = neighbour_limits.at_most(library.adjacency, 2, ids)
    second = neighbour_limits.at_most(shuffled, 2, ids[order])
    assert (sp.csr_array(first[order][:, order]) != second).nnz == 0
    other = neighbour_limits.at_most(library.adjacency, 2, ids, coin=1)
    assert (first != other).nnz > 0
