"""LinkTeller on Twitch as its paper plays it: a network learns on one language, and answers for the people of another.

    python -m benchmarks.linkteller [--learn es] [--attack ru ptbr engb fr de] [--nodes 500] [--seeds 3] [--average symmetric]

A GCN of two layers without privacy learns on all people of ``--learn``. The owner of another language's graph asks it for
answers and shows probabilities; the attacker holds the rows of ``--nodes`` of these people, changes one row at a time, and
looks whose answers move. Every pair of the asked people is judged. Two ways to average over neighbours:

    first-order   I + D^(−½) A D^(−½): what a direct neighbour adds is told from what comes over two edges
    symmetric     D̃^(−½) (A + I) D̃^(−½), as in fedgraph's own GCN: people with many common neighbours look like neighbours

Printed for each language and each way to choose whom to ask: how many pairs have an edge, and the area under the ROC curve
(AUC) of edges against strangers of three kinds,

    uniform       every pair without an edge
    by degree     of these, drawn so that their ends have the degrees that ends of edges have
    two hops      of these, the pairs with a common neighbour

and the precision of the best so many pairs as there are edges. People are chosen at random among those with an edge
(unconstrained), or from the third with the fewest or the most edges (low, high). Reference: Wu, Long, Zhang & Li, IEEE S&P
2022.
Needs ``FEDGRAPH_DATA``; without it generated graphs take the place of the languages, and the lines say so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import log_softmax
from torch.nn import functional

from fedgraph import data
from fedgraph.attacks import linkteller
from fedgraph.audit import operating_points
from fedgraph.learning import unit_matrix_rows
from fedgraph.learning.tensors import to_torch_matrix
from fedgraph.types import Graph

STEPS, RATE, DECAY, HIDDEN, DROPPED = 200, 0.01, 5e-4, 64, 0.5
CHANGE = 1e-3
CHOICES = ("unconstrained", "low", "high")
MOST = 20_000  # strangers of a kind
Norm = Literal["first-order", "symmetric"]


@dataclass(frozen=True)
class Told:
    """edges: pairs with an edge among those asked. auc: kind of strangers → area. precision: of the best ``edges`` pairs."""

    edges: int
    auc: dict[str, float]
    precision: float


@dataclass(frozen=True, eq=False)
class Network:
    """Weights [d, h], bias [h], weights [h, c], bias [c], and how it averages over neighbours."""

    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    norm: Norm

    def asked(self, spread: sp.csr_array, rows: sp.csr_array) -> Callable[[sp.csr_array], np.ndarray]:
        """Rows that differ from ``rows`` in few nodes → float64 [n, c] log-probabilities. spread: of ``averaging``."""
        first, second, third, last = self.weights
        seen = unit_matrix_rows(rows).astype(np.float64) @ first
        before, columns = spread @ seen + second, spread.tocsc()

        def answers(features: sp.csr_array) -> np.ndarray:
            changed = np.unique((features - rows).nonzero()[0])
            now = unit_matrix_rows(sp.csr_array(features[changed])).astype(np.float64) @ first
            hidden = np.maximum(before + columns[:, changed] @ (now - seen[changed]), 0.0) if changed.size else before.clip(0.0)
            return np.asarray(log_softmax(spread @ (hidden @ third) + last, axis=1))

        return answers


def averaging(adjacency: sp.csr_array, norm: Norm) -> sp.csr_array:
    """CSR [n, n], float64."""
    n = adjacency.shape[0]
    loops = sp.eye_array(n, format="csr")
    within = sp.csr_array(adjacency.astype(np.float64) + (loops if norm == "symmetric" else 0 * loops))
    root = sp.diags_array(1.0 / np.sqrt(np.maximum(np.asarray(within.sum(axis=1)).ravel(), 1.0)))
    scaled = sp.csr_array(root @ within @ root)
    return scaled if norm == "symmetric" else sp.csr_array(scaled + loops)


def learnt(graph: Graph, norm: Norm, seed: int) -> Network:
    """A network after training on every label of ``graph``: Adam on the mean cross-entropy, dropout on the hidden layer."""
    torch.manual_seed(seed)
    spread = to_torch_matrix(averaging(graph.adjacency, norm).astype(np.float32))
    rows = to_torch_matrix(sp.csr_array(unit_matrix_rows(graph.features)))
    shapes = ((graph.num_features, HIDDEN), (HIDDEN,), (HIDDEN, graph.num_classes), (graph.num_classes,))
    parts = [torch.nn.Parameter(torch.randn(s) / s[0] ** 0.5 if len(s) > 1 else torch.zeros(s)) for s in shapes]
    steps = torch.optim.Adam(parts, lr=RATE, weight_decay=DECAY)
    known = torch.tensor(np.flatnonzero(graph.labels >= 0))
    target = torch.tensor(graph.labels)[known]
    for _ in range(STEPS):
        hidden = functional.dropout(torch.relu(spread @ (rows @ parts[0]) + parts[1]), DROPPED)
        loss = functional.cross_entropy((spread @ (hidden @ parts[2]) + parts[3])[known], target)
        steps.zero_grad()
        torch.autograd.backward(loss)
        steps.step()
    first, second, third, last = (p.detach().numpy().astype(np.float64) for p in parts)
    return Network((first, second, third, last), norm)


def chosen(graph: Graph, count: int, which: str, rng: np.random.Generator) -> np.ndarray:
    """int64 [≤ count]: who is asked, of those with an edge: anybody, or of the third with the fewest or the most edges."""
    able = np.flatnonzero(graph.degrees > 0)
    if which != "unconstrained":
        able = able[np.argsort(graph.degrees[able], kind="stable")]
        third = max(count, able.size // 3)
        able = able[:third] if which == "low" else able[-third:]
    return np.sort(rng.permutation(able)[:count])


def attacked(graph: Graph, network: Network, nodes: np.ndarray, rng: np.random.Generator) -> Told:
    """Every pair of ``nodes``, judged by how much one's row moves the other's answer."""
    spread = averaging(graph.adjacency, network.norm)
    first, second = np.triu_indices(nodes.size, 1)
    pairs = np.column_stack([nodes[first], nodes[second]])
    scores = linkteller.influence_of(pairs, graph.features, CHANGE, network.asked(spread, graph.features))
    joined = np.asarray(graph.adjacency[pairs[:, 0], pairs[:, 1]]).ravel() != 0
    apart = np.flatnonzero(~joined)
    near = sp.csr_array(graph.adjacency @ graph.adjacency)
    two_hops = np.asarray(near[pairs[apart, 0], pairs[apart, 1]]).ravel() != 0
    weight = graph.degrees[pairs[apart]].astype(float).prod(axis=1)
    like_edges = rng.choice(apart, min(MOST, apart.size), p=weight / weight.sum())
    kinds = {"uniform": apart, "by degree": like_edges, "two hops": apart[two_hops]}
    count = int(joined.sum())
    best = np.argsort(-scores, kind="stable")[:count]
    return Told(
        count, {name: _area(scores, joined, strangers) for name, strangers in kinds.items()}, float(joined[best].mean())
    )


def _area(scores: np.ndarray, joined: np.ndarray, strangers: np.ndarray) -> float:
    both = np.concatenate([np.flatnonzero(joined), strangers])
    return operating_points.audited_roc_area(scores[both], joined[both])


def language(name: str) -> Graph:
    """``twitch/name``, or a generated graph in its place."""
    found = data.load(f"twitch/{name}", when_unavailable="synthetic")
    assert isinstance(found, Graph)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learn", default="es")
    parser.add_argument("--attack", nargs="+", default=["ru", "ptbr", "engb", "fr", "de"])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--average", nargs="+", default=["first-order", "symmetric"], choices=["first-order", "symmetric"])
    args = parser.parse_args()
    source = language(args.learn)
    print(f"learns on {source.name}: {source.num_nodes} nodes, {source.provenance.source}")
    for norm in args.average:
        networks = [learnt(source, norm, seed) for seed in range(args.seeds)]
        for name in args.attack:
            target = language(name)
            for place, which in enumerate(CHOICES):
                rngs = [np.random.default_rng([seed, place]) for seed in range(args.seeds)]
                found = [
                    attacked(target, net, chosen(target, args.nodes, which, r), r)
                    for net, r in zip(networks, rngs, strict=True)
                ]
                areas = {kind: [t.auc[kind] for t in found] for kind in found[0].auc}
                told = "  ".join(f"{kind} {np.mean(values):.4f} ± {np.std(values):.4f}" for kind, values in areas.items())
                edges, precision = np.mean([t.edges for t in found]), np.mean([t.precision for t in found])
                print(f"{norm:11} {name:5} {which:13} {edges:6.0f} edges  AUC {told}  precision {precision:.3f}", flush=True)


if __name__ == "__main__":
    main()
