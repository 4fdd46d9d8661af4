"""What could a second message bring to ``label_hop``? More than labels, and more than one hop, at prices that flatter them.

    python -m benchmarks.second_messages [--graphs facebook100/simmons81 …] [--epsilons 1 2 4] [--seeds 3]

Protocol asking, one trusted curator, δ = 1/n_train. Each message is heard through one's own edges, beside what the method says.
A logistic regression is fitted on the training nodes in clear, to the method's scores alone and to both; the gain is the
difference on the nodes that ask. Every price is paid with a *second* ε, as large as the first, so a method that had to share
one ε would gain less.

* ``predictions``: who asks says what its own row predicts, by randomised response at pure ε (it released nothing before).
* ``directions``: everybody says the eight strongest directions of its row (found in clear), of norm 1, with Gaussian noise.
* ``hop 2``: every training node adds up its neighbours' answers with the log cap (``privacy.neighbour_sums``), clips, adds
  Gaussian noise, and says that.

A line per graph and ε: for each message the gain without noise and with it, each with its standard error over seeds.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.linear_model import LogisticRegression

from fedgraph import data, runtime, seeds
from fedgraph.federation import rounds
from fedgraph.methods import label_hop
from fedgraph.methods.base import Budget, Plan, State
from fedgraph.methods.label_hop.releases import Made, Params
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.mechanisms.local_bits import ABSENT_LABEL, MaskedResponse
from fedgraph.privacy.neighbour_sums import priced_log_cap
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, Partition, Subgraph
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import world_of_trust

GRAPHS = [f"facebook100/{name}" for name in ("simmons81", "usfca72", "vassar85", "brandeis99", "uchicago30")]
GRAPHS += ["planetoid/cora", "planetoid/citeseer", "citation_full/cora_ml"]
DIRECTIONS, CLIPPED = 8, 0.9  # of the rows; quantile of the norms (in clear) to which sums of the second hop are clipped


def directions(graph: Graph) -> np.ndarray:
    """[n, 8]: rows along their strongest directions, none longer than 1."""
    rows = graph.features.astype(np.float64)
    along = rows @ svds(rows, DIRECTIONS, random_state=0)[2].T
    return np.asarray(along / max(float(np.linalg.norm(along, axis=1).max()), 1e-12))


def second_hop(adjacency: sp.csr_array, said: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """(sums over neighbours with the log cap, clipped; what one node changes of all of them; how often an own word returns)."""
    cap, degrees = priced_log_cap(adjacency.shape[0]), np.diff(adjacency.indptr)
    one, two = adjacency.nonzero()
    weights = sp.csr_array((cap.factors[np.maximum(degrees[one], degrees[two])], (one, two)), shape=adjacency.shape)
    sums = weights @ said
    norms = np.linalg.norm(sums, axis=1)
    clip = float(np.quantile(norms, CLIPPED))
    clipped = sums * np.minimum(1, clip / np.maximum(norms, 1e-12))[:, None]
    return clipped, math.hypot(cap.sensitivity_l2(), clip), np.asarray(weights.sum(axis=1)).reshape(-1, 1)


def planned(
    name: str, graph: Graph, epsilon: float, seed: int, params: Params
) -> tuple[Plan[Params, Made], protocols.ProtocolSetting, Partition]:
    """At one trusted curator, test nodes asking."""
    made = protocols.make_protocol_setting(graph, "asking", 0.8, seeds.seeded_generator(seed, "split", name))
    whole = (Subgraph(0, made.held, np.arange(made.held.num_nodes)),)
    partition = Partition(whole, True, 0, "one curator", from_edges=False, from_labels=False)
    facts = DealtWorld(world_of_trust(Trust.CURATOR), made, partition, "dropped", 1).facts
    return label_hop.plan(params, facts, Budget(epsilon, 1 / made.num_train)), made, partition


def trained(plan: Plan[Params, Made], partition: Partition, engine: Runtime, seed: int, name: str) -> State[label_hop.Memory]:
    """The last state; plans with the same seed and name meet the same draws."""
    shared = engine.share(f"{name}:{seed}", partition)
    state: State[label_hop.Memory] = rounds.run_rounds(
        engine, shared, plan, seed, (name,), (name,), rounds.RoundPrefixes()
    ).state
    engine.forget(shared)
    return state


def one_seed(name: str, graph: Graph, epsilon: float, seed: int, engine: Runtime) -> dict[tuple[str, str], float] | None:
    """(message, free or priced) → gain in accuracy; None where the method itself leaves its hop out."""
    plan, made, partition = planned(name, graph, epsilon, seed, Params())
    state = trained(plan, partition, engine, seed, name)
    held, delta = made.held, 1 / made.num_train
    answers = state.memory.answers
    if answers is None:
        return None
    scores = np.log(label_hop.predict(plan, state, made.asked) + 1e-9)
    alone = label_hop.predict(plan, state, protocols.graph_without_edges(made.asked)).argmax(axis=1)
    rng, noise = np.random.default_rng(seed), calibrate.calibrate_gaussian(1, epsilon, delta)
    degrees, adjacency = np.maximum(np.diff(held.adjacency.indptr), 1)[:, None], held.adjacency
    training = np.setdiff1d(np.arange(held.num_nodes), made.asking)

    def gain(heard: np.ndarray) -> float:
        beside = heard / np.sqrt(degrees)
        first = scores / scores.std()
        both = np.hstack([first, beside / max(float(beside[training].std()), 1e-12)])
        right = [_right(inputs, training, held.labels, made) for inputs in (first, both)]
        return right[1] - right[0]

    predicted = np.full(held.num_nodes, ABSENT_LABEL)
    predicted[made.asking] = alone[made.asking]
    in_clear = np.asarray(predicted.reshape(-1, 1) == np.arange(held.num_classes), dtype=np.float64)
    response = MaskedResponse(epsilon, held.num_classes, replaces=False)
    rows, centred = (
        directions(held),
        answers - answers.max(axis=1, keepdims=True) * answers.sum(axis=1).max() / held.num_classes,
    )
    centred = centred / max(float(np.linalg.norm(centred, axis=1).max()), 1e-12)
    sums, change, returns = second_hop(adjacency, centred)

    def gaussian(value: np.ndarray, sensitivity: float) -> np.ndarray:
        return np.asarray(value + rng.normal(0, noise * sensitivity, value.shape))

    return {
        ("predictions", "free"): gain(adjacency @ in_clear),
        ("predictions", "priced"): gain(adjacency @ response.apply(predicted, rng)),
        ("directions", "free"): gain(adjacency @ rows),
        ("directions", "priced"): gain(adjacency @ gaussian(rows, 1.0)),
        ("hop 2", "free"): gain(adjacency @ sums - returns * centred),
        ("hop 2", "priced"): gain(adjacency @ gaussian(sums, change) - returns * centred),
    }


def _right(inputs: np.ndarray, training: np.ndarray, labels: np.ndarray, made: protocols.ProtocolSetting) -> float:
    model = LogisticRegression(max_iter=300).fit(inputs[training], labels[training])
    return float((model.predict(inputs[made.asking]) == made.truth[made.asking]).mean())


def line(found: list[dict[tuple[str, str], float]]) -> str:
    """Mean gains and their standard errors."""

    def shown(values: list[float]) -> str:
        error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return f"{np.mean(values):+.3f} ± {error:.3f}"

    each: Callable[[tuple[str, str]], str] = lambda key: shown([one[key] for one in found])  # noqa: E731
    messages = ("predictions", "directions", "hop 2")
    return "  ".join(f"{m}: free {each((m, 'free'))}, priced {each((m, 'priced'))}" for m in messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    with runtime.start("serial") as engine:
        for name in args.graphs:
            graph = data.load(name, root=args.data_root)
            if not isinstance(graph, Graph):
                raise SystemExit(f"{name} is a collection of graphs; this needs one graph")
            for epsilon in args.epsilons:
                found = [one_seed(name, graph, epsilon, seed, engine) for seed in range(args.seeds)]
                made = [one for one in found if one is not None]
                print(f"{name:24} ε = {epsilon:<4g} {line(made) if made else 'the hop is left out'}", flush=True)


if __name__ == "__main__":
    main()
