"""Label hop: who only asks, and who is masked, is in no count of how classes meet, nor of what a training got right, so one
node moves them by what is priced.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph import data
from fedgraph.learning import meetings
from fedgraph.methods import label_hop
from fedgraph.methods.base import PlanStreams
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph, Subgraph
from tests.mutants.code import Breaks, CodeMutant
from tests.trainings import planned


class _Exact(Desk):
    """Keeps what is released before noise, by its path."""

    def release(self, path: str, value: Any) -> Released:
        self.exact = getattr(self, "exact", {}) | {path: np.asarray(value() if callable(value) else value)}
        return super().release(path, value)


def _exact(plan: Any, whole: Subgraph, round_: int) -> dict[str, np.ndarray]:
    streams, model = (
        PlanStreams(0, ("c", "client", 0, "round", round_), ""),
        label_hop.start(plan, np.random.default_rng(0)).model,
    )
    desk = _Exact("c", 0, round_, plan.schedule.of_client(0), streams.generator("noise"))
    label_hop.client(plan, label_hop.prepare(plan, whole), model, round_, streams, desk)
    return desk.exact


def _without(graph: Graph, nodes: np.ndarray) -> Graph:
    """The same graph, where ``nodes`` have no edge."""
    keep = sp.diags_array((~np.isin(np.arange(graph.num_nodes), nodes)).astype(np.float32), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    return replace(graph, adjacency=adjacency)


def _nobody_without_a_label_counts() -> None:
    for epsilon in (1.0, 8.0):  # two numbers of how classes meet, or one for each pair
        plan, partition, _ = planned("label_hop", 0, Trust.CURATOR, data.load("embedded/library"), epsilon)
        whole, bound = partition.subgraphs[0], next(r.bound for r in plan.schedule.releases if r.path == "meetings")
        graph, asking = whole.graph, np.flatnonzero(np.isin(whole.nodes, plan.facts.asking))

        def counted(graph: Graph, plan: Any = plan, whole: Subgraph = whole) -> np.ndarray:
            return _exact(plan, replace(whole, graph=graph), 0)["meetings"]

        found = counted(graph)
        assert asking.size
        assert np.array_equal(found, counted(_without(graph, asking))), "who asks is counted"
        assert found[: graph.num_classes].sum() == (graph.labels >= 0).sum() - (graph.labels[asking] >= 0).sum()
        for node in np.flatnonzero(graph.labels >= 0)[::60]:
            masked = replace(graph, labels=np.where(np.arange(graph.num_nodes) == node, -1, graph.labels))
            left = counted(masked)
            assert np.array_equal(left, counted(_without(masked, np.array([node])))), "a masked node is counted"
            assert np.linalg.norm(found - left) <= bound.change(plan.params.protects) * (1 + 1e-9), (
                "one node moves more than is priced"
            )


def _class_0() -> Breaks:
    honest = meetings.count
    return [(meetings, "count", lambda edges, labels, *how: honest(edges, np.maximum(labels, 0), *how))]


def _nobody_without_a_label_is_judged() -> None:
    plan, partition, _ = planned("label_hop", 0, Trust.CURATOR, data.load("embedded/library"), 4.0)
    whole = partition.subgraphs[0]
    (rows,) = _exact(plan, whole, plan.made.judges).values()
    assert rows[whole.graph.labels >= 0].any()
    assert not rows[whole.graph.labels < 0].any(), "who asks, or is masked, is counted"
    assert np.linalg.norm(rows, axis=1).max() <= np.sqrt(2) * (1 + 1e-9), "one node moves more than is priced"


def _right_0() -> Breaks:
    honest = label_hop.judged_counts
    return [(label_hop, "judged_counts", lambda scores, labels: honest(scores, np.maximum(labels, 0)))]


MUTANTS = [
    CodeMutant("label_hop judges askers and masked nodes as class 0", _right_0, _nobody_without_a_label_is_judged),
    CodeMutant("label_hop counts askers and masked nodes as class 0", _class_0, _nobody_without_a_label_counts),
]
