"""LinkTeller on Twitch as its paper plays it: a network learns on one language, and answers for the people of another.

    python -m benchmarks.linkteller [--learn es] [--attack ru engb fr ptbr de] [--nodes 500] [--seeds 3]

A GCN of two layers without privacy learns on all people of ``--learn``. The owner of another language's graph asks it for
answers and shows them; the attacker holds the rows of ``--nodes`` of these people, changes one row at a time, and looks whose
answers move. Every pair of the asked people is judged. Printed for each language and each way to choose whom to ask: how many
pairs have an edge, and the area under the ROC curve (AUC) of edges against strangers of three kinds:

    uniform      every pair without an edge
    by degree    of these, drawn so that their ends have the degrees that ends of edges have
    two hops     of these, the pairs with a common neighbour

and the precision of the best so many pairs as there are edges, which is what a thief would take. People are chosen at random
(unconstrained), or from those with the fewest or the most edges (low, high), as in Wu et al. 2022, Section VI. Needs
``FEDGRAPH_DATA``; without it generated graphs take the place of the languages, and the first line says so.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph import data
from fedgraph.attacks import linkteller
from fedgraph.audit import one_run
from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.networks import Shape
from fedgraph.types import Graph

STEPS, RATE, DECAY, HIDDEN = 200, 0.01, 5e-4, 64
CHANGE = 1e-3
CHOICES = ("unconstrained", "low", "high")
MOST = 20_000  # strangers of a kind


@dataclass(frozen=True)
class Told:
    """edges: pairs with an edge among those asked. auc: kind of strangers → area. precision: of the best ``edges`` pairs."""

    edges: int
    auc: dict[str, float]
    precision: float


def learnt(graph: Graph, seed: int) -> tuple[fitting.Network, np.ndarray]:
    """(network, its parameters) after training on every label of ``graph``."""
    shape = Shape("gcn", graph.num_features, graph.num_classes, HIDDEN)
    network = fitting.made(shape, seed)
    how = fitting.Steps(STEPS, 0, RATE, DECAY)
    begun = fitting.start(shape, seed)
    after = fitting.trained(network, fitting.inputs(graph), graph.labels, begun, how, lambda step: seed + step)
    return network, after.vector


def chosen(graph: Graph, count: int, which: str, rng: np.random.Generator) -> np.ndarray:
    """int64 [≤ count]: who is asked, of those with an edge: anybody, or of the third with the fewest or the most edges."""
    able = np.flatnonzero(graph.degrees > 0)
    if which != "unconstrained":
        able = able[np.argsort(graph.degrees[able], kind="stable")]
        third = max(count, able.size // 3)
        able = able[:third] if which == "low" else able[-third:]
    return np.sort(rng.permutation(able)[:count])


def attacked(graph: Graph, network: fitting.Network, vector: np.ndarray, nodes: np.ndarray, rng: np.random.Generator) -> Told:
    """Every pair of ``nodes``, judged by how much one's row moves the other's answer."""

    def ask(features: sp.csr_array) -> np.ndarray:
        answers = fitting.scores(network, vector, fitting.inputs(replace(graph, features=features)))
        return np.asarray(softmax(answers.astype(np.float64), axis=1))

    first, second = np.triu_indices(nodes.size, 1)
    pairs = np.column_stack([nodes[first], nodes[second]])
    scores = linkteller.of_pairs(pairs, graph.features, CHANGE, ask)
    joined = np.asarray(graph.adjacency[pairs[:, 0], pairs[:, 1]]).ravel() != 0
    apart = np.flatnonzero(~joined)
    two_hops = np.asarray(sp.csr_array(graph.adjacency @ graph.adjacency)[pairs[apart, 0], pairs[apart, 1]]).ravel() != 0
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
    return one_run.area(scores[both], joined[both])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learn", default="es")
    parser.add_argument("--attack", nargs="+", default=["ru", "engb", "fr", "ptbr", "de"])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    source = data.load(f"twitch/{args.learn}", when_unavailable="synthetic")
    assert isinstance(source, Graph)
    print(f"learns on {source.name}: {source.num_nodes} nodes, {source.provenance.source}")
    for name in args.attack:
        target = data.load(f"twitch/{name}", when_unavailable="synthetic")
        assert isinstance(target, Graph)
        for which in CHOICES:
            found = []
            for seed in range(args.seeds):
                rng = np.random.default_rng([seed, CHOICES.index(which)])
                network, vector = learnt(source, seed)
                found.append(attacked(target, network, vector, chosen(target, args.nodes, which, rng), rng))
            areas = {kind: [t.auc[kind] for t in found] for kind in found[0].auc}
            told = "  ".join(f"{kind} {np.mean(values):.4f} ± {np.std(values):.4f}" for kind, values in areas.items())
            edges, precision = np.mean([t.edges for t in found]), np.mean([t.precision for t in found])
            print(f"{name:5} {which:14} {edges:6.0f} edges  AUC {told}  precision {precision:.3f}", flush=True)


if __name__ == "__main__":
    main()
