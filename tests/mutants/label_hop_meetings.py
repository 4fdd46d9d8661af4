"""Label hop: who only asks, and who is masked, is in no count of how classes meet, nor of what a training got right, so one
node moves them by what is priced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph import data
from fedgraph.learning import meetings
from fedgraph.methods import label_hop
from fedgraph.methods.base import PlanStreams
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.private_counts import MeetingCounts
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph, Subgraph
from tests.mutants.code import CodeMutant
from tests.trainings import planned


class _Exact(Desk):
    """Keeps what is counted before noise."""

    counted: np.ndarray

    def release(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> Released:
        if path == "meetings":
            self.counted = np.asarray(value() if callable(value) else value)
        return super().release(path, value)


def _without(graph: Graph, nodes: np.ndarray) -> Graph:
    """The same graph, where ``nodes`` have no edge."""
    keep = sp.diags_array((~np.isin(np.arange(graph.num_nodes), nodes)).astype(np.float32), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    return replace(graph, adjacency=adjacency)


def _nobody_without_a_label_counts() -> None:
    library = data.load("embedded/library")
    assert isinstance(library, Graph)
    for epsilon in (1.0, 8.0):  # two numbers of how classes meet, or one for each pair
        plan, partition, _ = planned("label_hop", 0, Trust.CURATOR, library, epsilon)
        whole, model = partition.subgraphs[0], label_hop.start(plan, np.random.default_rng(0)).model

        def counted(graph: Graph, plan: Any = plan, whole: Subgraph = whole, model: Any = model) -> np.ndarray:
            streams = PlanStreams(0, ("c", "client", 0, "round", 0), "")
            desk = _Exact("c", 0, 0, plan.schedule.of_client(0), streams.generator("noise"))
            label_hop.client(plan, label_hop.prepare(plan, replace(whole, graph=graph)), model, 0, streams, desk)
            return desk.counted

        graph, asking = whole.graph, np.flatnonzero(np.isin(whole.nodes, plan.facts.asking))
        assert asking.size
        assert np.array_equal(counted(graph), counted(_without(graph, asking))), "who asks is counted"
        bound = next(r.bound for r in plan.schedule.releases if r.path == "meetings")
        assert isinstance(bound, MeetingCounts)
        assert counted(graph)[: graph.num_classes].sum() == (graph.labels >= 0).sum() - (graph.labels[asking] >= 0).sum()
        for node in np.flatnonzero(graph.labels >= 0)[::30]:
            masked = replace(graph, labels=np.where(np.arange(graph.num_nodes) == node, -1, graph.labels))
            assert np.array_equal(counted(masked), counted(_without(masked, np.array([node])))), "a masked node is counted"
            moved = np.linalg.norm(counted(graph) - counted(masked))
            assert moved <= bound.change(plan.params.protects) * (1 + 1e-9), "one node moves more than is priced"


def _class_0() -> list[tuple[object, str, object]]:
    honest = meetings.count

    def counted(adjacency: sp.csr_array, labels: np.ndarray, ids: np.ndarray, rules: Any) -> np.ndarray:
        return honest(adjacency, np.maximum(labels, 0), ids, rules)

    return [(meetings, "count", counted)]


def _nobody_without_a_label_is_judged() -> None:
    library = data.load("embedded/library")
    assert isinstance(library, Graph)
    found, partition, _ = planned("label_hop", 0, Trust.CURATOR, library, 4.0)
    plan: Any = found
    model, judges = label_hop.start(plan, np.random.default_rng(0)).model, plan.made.judges

    class Exact(Desk):
        rows: np.ndarray

        def release(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> Released:
            self.rows = np.asarray(value() if callable(value) else value)
            return super().release(path, value)

    streams = PlanStreams(0, ("c", "client", 0, "round", judges), "")
    desk = Exact("c", 0, judges, plan.schedule.of_client(0), streams.generator("noise"))
    whole = partition.subgraphs[0]
    label_hop.client(plan, label_hop.prepare(plan, whole), model, judges, streams, desk)
    assert desk.rows[whole.graph.labels >= 0].any()
    assert not desk.rows[whole.graph.labels < 0].any(), "who asks, or is masked, is counted"
    assert np.linalg.norm(desk.rows, axis=1).max() <= np.sqrt(2) * (1 + 1e-9), "one node moves more than is priced"


def _right_0() -> list[tuple[object, str, object]]:
    honest = label_hop.judged_counts
    return [(label_hop, "judged_counts", lambda scores, labels: honest(scores, np.maximum(labels, 0)))]


MUTANTS = [
    CodeMutant("label_hop judges askers and masked nodes as class 0", _right_0, _nobody_without_a_label_is_judged),
    CodeMutant("label_hop counts askers and masked nodes as class 0", _class_0, _nobody_without_a_label_counts),
]
