"""How strongly neighbours in a public test graph pull an answer: not at all, by a fixed number, or as measured.

    python -m benchmarks.coupling [--method features] [--datasets citation_full/cora_ml …] [--epsilon 8] [--seeds 2]

One curator, δ = 1/n_train, four nodes in five train. A seed is trained once, and its scores are answered in all ways
(``label_hop`` has no fixed one), so only the coupling differs along a line. A line for each data set, with the mean accuracy of
each way, and with the mean difference of ``auto`` from ``none`` and its standard error over seeds.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedgraph import data, runtime, seeds
from fedgraph.federation import rounds
from fedgraph.methods import features
from fedgraph.methods.base import Budget, method_kinds
from fedgraph.runtime.base import Runtime
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, Partition, Subgraph

WAYS: dict[str, dict[str, dict[str, object]]] = {  # method → way → settings
    "features": {"none": {"coupling": 0.0}, "fixed": {"coupling": features.FEATURES_MOST_HEARD}, "auto": {}},
    "label_hop": {"none": {"propagation_steps": 0}, "auto": {}},
}
DATASETS = (
    "citation_full/cora_ml", "coauthor/cs", "planetoid/pubmed", "facebook100/mit8", "facebook100/simmons81", "geom_gcn/actor",
    "geom_gcn/chameleon", "geom_gcn/squirrel", "twitch/ptbr", "twitch/de", "amazon/photo", "facebook100/usfca72",
)  # fmt: skip


def one_seed(method: str, name: str, graph: Graph, epsilon: float, seed: int, engine: Runtime) -> dict[str, float]:
    """Way → test accuracy."""
    made = protocols.divide(graph, "inductive", 0.8, seeds.seeded_generator(seed, "split", name))
    held = made.held.num_nodes
    partition = Partition(
        (Subgraph(0, made.held, np.arange(held)),), True, 0, "one curator", from_edges=False, from_labels=False
    )
    facts = replace(made, partition=partition).facts
    learner = method_kinds.load_classifier(method)
    plan = learner.plan(learner.Params(), facts, Budget(epsilon, 1 / held))
    shared = engine.share(f"{name}:{seed}", partition)
    state = rounds.run(engine, shared, plan, seed, (name,), (name,), rounds.RoundPrefixes()).state
    engine.forget(shared)
    found = {}
    for way, settings in WAYS[method].items():
        params = learner.Params.model_validate(settings)
        answers = learner.predict(replace(plan, params=params), state, made.asked)
        tested = made.truth >= 0
        found[way] = float((answers.argmax(axis=1) == made.truth)[tested].mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--method", choices=WAYS, default="features")
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    with runtime.start("serial") as engine:
        for name in args.datasets:
            graph = data.load(name, root=Path(args.data_root) if args.data_root else None)
            if not isinstance(graph, Graph):
                raise SystemExit(f"{name} is a collection of graphs; this needs one graph")
            found = [one_seed(args.method, name, graph, args.epsilon, seed, engine) for seed in range(args.seeds)]
            means = ", ".join(f"{way} {np.mean([f[way] for f in found]):.3f}" for way in WAYS[args.method])
            gains = np.array([f["auto"] - f["none"] for f in found])
            error = f" ± {gains.std(ddof=1) / np.sqrt(gains.size):.3f}" if gains.size > 1 else ""
            print(f"{name}: {means}; auto − none {gains.mean():+.3f}{error}", flush=True)


if __name__ == "__main__":
    main()
