"""Where PrivGnn loses its accuracy: teachers, too few labels, or the noise.   python zoo/benchmarks/privgnn_parts.py

Cora, half of the nodes private. One line for each setting without noise: how many teachers say the right class of their query;
what the student reaches on their answers, and what it would on the true classes of the same queries. Then the answers of the
first setting with noise: the student, and a ridge regression on all entries of the posteriors (weight chosen in sight of the
test, so it is an upper line of what another student could reach).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from fedgraph import data, seeds
from fedgraph.learning import unit_matrix_rows, walks
from fedgraph.methods import (
    Budget,
    PlanStreams,
    PublicFacts,
    State,
)
from fedgraph.privacy import Desk, Viewer
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo.methods import privgnn

SETTINGS: tuple[Mapping[str, object], ...] = (
    {"queries": 60},
    {"queries": 60, "neighbours": 300},
    {"queries": 60, "sampling_rate": 1.0},
    {"queries": 150, "neighbours": 300},
)
EPSILONS, DELTA = (1.0, 8.0, 40.0), 1 / 1354


def main() -> None:
    graph = data.load("planetoid/cora")
    assert isinstance(graph, Graph)
    setting = protocols.divide(graph, "inductive", 0.5, seeds.seeded_generator(0, "split"))
    held, public = setting.held, setting.public_graph
    assert public is not None
    everybody = np.arange(held.num_nodes)
    facts = PublicFacts(
        num_nodes=held.num_nodes, num_features=held.num_features, num_classes=held.num_classes, clients=(held.num_nodes,),
        viewer=Viewer.CURATOR_TRUSTED, members=(everybody,), membership_from_edges=False, membership_from_labels=False,
        holdings=None, cut_edges="dropped", public="test-graph", public_graph=public, public_attributes=None, colluders=1,
        split_from_edges=False, split_from_labels=False, component_from_edges=False, columns_from_rows=False,
        features_from_edges=False,
    )  # fmt: skip

    def student(plan: privgnn.Planned, state: State[privgnn.Memory], answers: np.ndarray) -> float:
        done = State(state.model, privgnn.Memory(state.memory.seed, tuple(answers)))
        return float((privgnn.predict(plan, done, setting.asked).argmax(axis=1) == setting.truth).mean())

    subgraph, kept = Subgraph(0, held, everybody), None
    for settings in SETTINGS:
        plan = privgnn.plan(privgnn.Params(**settings), facts, Budget(math.inf, DELTA))
        state = privgnn.start(plan, seeds.seeded_generator(0, "start"))
        work, answers = privgnn.prepare(plan, subgraph), []
        for round_ in range(plan.schedule.rounds):
            desk = Desk("parts", 0, round_, plan.schedule.releases, seeds.seeded_generator(0, "noise", round_))
            sent = privgnn.client(plan, work, state.model, round_, PlanStreams(0, ("parts", round_)), desk)
            answers.append(sent["answer"].value[0])
        found, asked = np.array(answers), state.model["queries"][:, 0]
        right = float((found.argmax(axis=1) == setting.truth[asked]).mean())
        perfect = student(plan, state, np.eye(held.num_classes)[setting.truth[asked]])
        print(
            f"{settings}: teachers {right:.3f}, student {student(plan, state, found):.3f}, on true classes {perfect:.3f}",
            flush=True,
        )
        kept = kept or (plan, state, found, asked)
    assert kept is not None
    plan, state, found, asked = kept
    near = walks.symmetric_matrix(sp.csr_array(public.adjacency))
    rows = (near @ (near @ unit_matrix_rows(public.features))).toarray()
    for epsilon in EPSILONS:
        std = privgnn.plan(privgnn.Params(), facts, Budget(epsilon, DELTA)).schedule.releases[0].mechanism.std  # type: ignore[attr-defined]
        noisy = found + std * seeds.seeded_generator(0, "noise", epsilon).standard_normal(found.shape)
        votes = noisy - noisy.mean(axis=1, keepdims=True)
        gram = rows[asked] @ rows[asked].T
        ridge = [rows @ rows[asked].T @ np.linalg.solve(gram + w * np.eye(asked.size), votes) for w in (0.01, 0.1, 1.0, 10.0)]
        best = max(float((r.argmax(axis=1) == setting.truth).mean()) for r in ridge)
        print(f"ε = {epsilon:g}: noise {std:.2f}, student {student(plan, state, noisy):.3f}, ridge {best:.3f}", flush=True)


if __name__ == "__main__":
    main()
