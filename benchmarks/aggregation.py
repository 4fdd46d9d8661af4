"""What a noisy hop costs beside a plain sparse-dense product, and what a perturbed graph takes.

    python benchmarks/aggregation.py                  a scaled graph (default 60,000 nodes, 2.7 M edges, 100 features)
    python benchmarks/aggregation.py --amazon         1,790,731 nodes, 80,966,832 edges, 100 features (about 4 GB)
    python benchmarks/aggregation.py --edgerand 3.5   EdgeRand on a graph of Physics' size instead

A hop is all that GAP's client and server do for it: scale rows to unit norm, sum over neighbours, check the bound, add
float32 Gaussian noise, scale again. It is compared with the bare product A @ H of scipy and of torch on the same arrays.
Seconds are CPU seconds of one thread, best of ``--repeats``; memory is the peak resident size of this process.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch

from fedgraph.learning.layers.torch_matrices import to_torch_matrix
from fedgraph.learning.propagation.aggregation import aggregate_hop, scale_to_unit_length
from fedgraph.privacy.mechanisms.edge_mechanisms import (
    BYTES_PER_EDGE_CELL,
    EdgeRand,
    EdgeTriangle,
    distinct_edge_cells,
    edges_of_cells,
    num_edge_cells,
)
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.neighbour_sums import NeighbourSums


def main() -> None:
    """Parse options and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=60_000)
    parser.add_argument("--edges", type=int, default=2_700_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--amazon", action="store_true", help="the size of GAP's Amazon graph")
    parser.add_argument("--edgerand", type=float, metavar="EPSILON", help="34,493 nodes and 247,962 edges through EdgeRand")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.edgerand is not None:
        return perturb(options.edgerand)
    nodes, edges = (1_790_731, 80_966_832) if options.amazon else (options.nodes, options.edges)
    return aggregate(nodes, edges, options.width, options.repeats)


def aggregate(nodes: int, edges: int, width: int, repeats: int) -> None:
    """One noisy hop against the bare products."""
    adjacency = random_graph(nodes, edges, np.random.default_rng(0))
    rows = np.random.default_rng(1).standard_normal((nodes, width), dtype=np.float32)
    print(f"{nodes:,} nodes, {adjacency.nnz // 2:,} edges, {width} features; after generating: {peak():.2f} GB")
    bound, noise, rng = NeighbourSums(nodes), GaussianNoise(1.0), np.random.default_rng(2)
    aggregate_hop(adjacency[:10], rows)  # compiles
    product = sp.csr_array((np.ones(adjacency.nnz, np.float32), adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    ours = seconds(lambda: scale_to_unit_length(noise.apply(bound.enforce(aggregate_hop(adjacency, rows)), rng)), repeats)
    print(f"noisy hop              {ours:8.3f} s   peak {peak():.2f} GB")
    scipys = seconds(lambda: product @ rows, repeats)
    print(f"scipy A @ H            {scipys:8.3f} s   ratio {ours / scipys:.2f}")
    matrix, dense = to_torch_matrix(product), torch.from_numpy(rows)
    torchs = seconds(lambda: matrix @ dense, repeats)
    print(f"torch A @ H, 1 thread  {torchs:8.3f} s   ratio {ours / torchs:.2f}")


def perturb(epsilon: float) -> None:
    """EdgeRand at the size of Physics, up to the symmetric graph that a server trains on."""
    nodes, edges = 34_493, 247_962
    value = edges_of_cells(distinct_edge_cells(num_edge_cells(nodes), edges, np.random.default_rng(0)))
    before, began = peak(), time.process_time()
    bound = EdgeTriangle(nodes)
    out = EdgeRand(epsilon, nodes, 10**12).apply(bound.enforce(value), np.random.default_rng(1))
    spent = time.process_time() - began
    ends = np.concatenate([out, out[:, ::-1]])
    graph = sp.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))
    print(f"EdgeRand at ε = {epsilon:g}: {edges:,} edges became {graph.nnz // 2:,} in {spent:.2f} CPU s; peak {peak():.2f} GB")
    print(f"{(peak() - before) * 1e9 / len(out):.0f} bytes per edge, {BYTES_PER_EDGE_CELL} are reckoned with")


def random_graph(nodes: int, edges: int, rng: np.random.Generator) -> sp.csr_array:
    """Uniform undirected edges without self-loops; repeated draws are kept once. CSR with int32 indices, one byte per entry."""
    one = rng.integers(nodes, size=edges, dtype=np.int32)
    two = (one + rng.integers(1, nodes, size=edges, dtype=np.int32)) % np.int32(nodes)
    ends = np.concatenate([one, two]), np.concatenate([two, one])
    graph = sp.csr_array((np.ones(2 * edges, dtype=np.int8), ends), shape=(nodes, nodes))
    graph.sum_duplicates()
    return graph


def seconds(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest of ``repeats`` calls."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def peak() -> float:
    """Peak resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
