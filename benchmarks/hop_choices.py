"""Two choices of ``label_hop`` on the same draws: what its test of the edges takes from the rows, and the correlation ρ.

    python -m benchmarks.hop_choices [--graphs geom_gcn/chameleon …] [--epsilons 1 4 8] [--seeds 10] [--count]

Protocol asking, one trusted curator, δ = 1/n_train. ``never_worse`` compares two trainings with draws of their own, so a small
cost drowns in them. Here the rows alone are trained twice with the same draws: with the noise of the whole budget, and with the
larger noise that is left where the test was made and no hop. Where a hop was made, its answers are heard with each ρ, and once
more without what was measured of meetings (``guessed``): as if like classes met four times as often as others.

``--count`` trains nothing: each seed draws a split and the noise of the test of the edges. The line says in how many
of them the hop is made, and in how many it would be if dense neighbourhoods had to tell twice as much
(``SOME_TO_RELEASE_LABELS`` in its budget).
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.never_worse import MADE
from fedgraph import data, runtime, seeds
from fedgraph.federation import rounds
from fedgraph.learning.propagation import meetings
from fedgraph.learning.propagation.meetings import MeetingReading
from fedgraph.methods import label_hop
from fedgraph.methods.base import Budget, Plan, State
from fedgraph.methods.label_hop.releases import (
    ENOUGH_TO_RELEASE_LABELS,
    SOME_TO_RELEASE_LABELS,
    LabelHopTraining,
    Made,
    Params,
    label_hop_answering,
)
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, Partition, Subgraph
from fedgraph.worlds import protocols
from fedgraph.worlds.federation import Federation
from fedgraph.worlds.world import world_of_trust

GRAPHS = ["made/no-likeness", "made/no-edges", "geom_gcn/chameleon", "geom_gcn/actor", "twitch/ptbr"]
GRAPHS += ["facebook100/simmons81", "facebook100/vassar85", "facebook100/uchicago30", "facebook100/mich67"]
GRAPHS += ["made/heterophilous", "made/regular", "planetoid/cora", "amazon/photo"]
CORRELATIONS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1)
GUESSED = 4.0


def planned(
    name: str, graph: Graph, epsilon: float, seed: int, params: Params
) -> tuple[Plan[Params, Made], protocols.ProtocolSetting, Partition]:
    """At one trusted curator, test nodes asking."""
    made = protocols.make_setting(graph, "asking", 0.8, seeds.seeded_generator(seed, "split", name))
    whole = (Subgraph(0, made.held, np.arange(made.held.num_nodes)),)
    partition = Partition(whole, True, 0, "one curator", from_edges=False, from_labels=False)
    facts = Federation(world_of_trust(Trust.CURATOR), made, partition, "dropped", 1).facts
    return label_hop.plan(params, facts, Budget(epsilon, 1 / made.num_train)), made, partition


def trained(plan: Plan[Params, Made], partition: Partition, engine: Runtime, seed: int, name: str) -> State[label_hop.Memory]:
    """The last state; plans with the same seed and name meet the same draws."""
    shared = engine.share(f"{name}:{seed}", partition)
    state: State[label_hop.Memory] = rounds.run(engine, shared, plan, seed, (name,), (name,), rounds.RoundPrefixes()).state
    engine.forget(shared)
    return state


def noisier(plan: Plan[Params, Made], factor: float) -> Plan[Params, Made]:
    """The same steps with so many times the noise."""
    own = [r.mechanism for r in plan.schedule.releases if isinstance(r.mechanism, GaussianNoise)]
    noises = [GaussianNoise(mechanism.std * factor) for mechanism in own]
    releases = tuple(replace(r, mechanism=m) for r, m in zip(plan.schedule.releases, noises, strict=True))
    return replace(plan, schedule=replace(plan.schedule, releases=releases))


def one_seed(name: str, graph: Graph, epsilon: float, seed: int, engine: Runtime) -> tuple[float, list[float] | None]:
    """(rows with the noise beside the test, less rows with the whole budget; accuracy with each ρ, and guessed; or None)."""
    plan, made, partition = planned(name, graph, epsilon, seed, Params())
    tested = made.truth >= 0

    def right(which: Plan[Params, Made], state: State[label_hop.Memory]) -> float:
        answers = label_hop.predict(which, state, made.asked).argmax(axis=1)
        return float((answers == made.truth)[tested].mean())

    state = trained(plan, partition, engine, seed, name)
    if state.memory.hop:
        heard = [replace(plan, params=plan.params.model_copy(update={"correlation": rho})) for rho in CORRELATIONS]
        with_each = [right(which, state) for which in heard]
        return math.nan, [*with_each, _without_meetings(plan, state, made, tested)]
    whole, _, _ = planned(name, graph, epsilon, seed, Params(label_epsilon=0))
    alone = plan.made.parts.alone
    less = noisier(whole, 1.0 if alone is None else _total(alone) / _total(whole.made.parts.beside))
    both = [right(which, trained(which, partition, engine, seed, name)) for which in (less, whole)]
    return both[0] - both[1], None


def _without_meetings(
    plan: Plan[Params, Made], state: State[label_hop.Memory], made: protocols.ProtocolSetting, tested: np.ndarray
) -> float:
    """Accuracy of votes and rows where nobody measured how classes meet."""
    classes, answers = made.held.num_classes, state.memory.answers
    alike = MeetingReading(np.full(classes, 1 / classes), np.ones((classes, classes)) + (GUESSED - 1) * np.eye(classes), 1.0)
    by = label_hop_answering(plan.made.parts.labels, classes, plan.params.protects.replaces)
    heard = meetings.vote(made.asked.adjacency, np.asarray(answers), alike, by, plan.params.correlation)
    rows = np.log(label_hop.predict(plan, state, protocols.graph_without_edges(made.asked)) + 1e-9)
    return float(((rows + heard).argmax(axis=1) == made.truth)[tested].mean())


def tested_edges(name: str, graph: Graph, epsilon: float, seed: int, engine: Runtime) -> tuple[bool, bool]:
    """Whether the hop is made on this draw; whether it would be with twice the limit for dense neighbourhoods."""
    plan, _, partition = planned(name, graph, epsilon, seed, Params())
    test_alone = replace(plan, schedule=replace(plan.schedule, rounds=1))
    memory = trained(test_alone, partition, engine, seed, name).memory
    by = label_hop_answering(plan.made.parts.labels, graph.num_classes, plan.params.protects.replaces)
    told = meetings.information_of(label_hop.label_hop_meetings(plan, memory), by, plan.params.correlation)
    return memory.hop, memory.hop and told >= min(ENOUGH_TO_RELEASE_LABELS, 2 * SOME_TO_RELEASE_LABELS)


def _total(training: LabelHopTraining) -> float:
    return training.noise / math.sqrt(training.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--count", action="store_true", help="in how many draws the hop is made; nothing is trained")
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    with runtime.start("serial") as engine:
        for name in args.graphs:
            read = "synthetic/block_model" if name in MADE else name
            graph = data.load(read, root=args.data_root, parameters=MADE.get(name))
            if not isinstance(graph, Graph):
                raise SystemExit(f"{name} is a collection of graphs; this needs one graph")
            for epsilon in args.epsilons:
                if args.count:
                    drawn = [tested_edges(name, graph, epsilon, seed, engine) for seed in range(args.seeds)]
                    made, still = np.sum(drawn, axis=0)
                    print(f"{name:22} ε = {epsilon:<4g} {made} hops of {args.seeds}; {still} with twice the limit", flush=True)
                    continue
                found = [one_seed(name, graph, epsilon, seed, engine) for seed in range(args.seeds)]
                costs = [cost for cost, heard in found if heard is None]
                heard = [accuracies for _, accuracies in found if accuracies is not None]
                said = f"{name:22} ε = {epsilon:<4g} {len(heard)} hops of {len(found)}"
                if costs:
                    error = np.std(costs, ddof=1) / math.sqrt(len(costs)) if len(costs) > 1 else math.nan
                    said += f"; without: the test costs {-np.mean(costs):+.4f} ± {error:.4f}"
                if heard:
                    means = np.mean(heard, axis=0)
                    said += "; with: ρ " + ", ".join(f"{r:g} {m:.3f}" for r, m in zip(CORRELATIONS, means[:-1], strict=True))
                    said += f"; guessed {means[-1]:.3f}"
                print(said, flush=True)


if __name__ == "__main__":
    main()
