"""What cells of the tasks here found, for their sections of the report."""

from dataclasses import dataclass

from fedgraph.cells.task_facts import CELL_FACTS_RECORDS, TaskFacts


@dataclass(frozen=True, kw_only=True)
class GraphMetricsCellFacts(TaskFacts):
    """Of ways to compare graphs.

    Attributes:
        graphs: How many were drawn.
        compared: How many of these are compared pair by pair.
        mean_nodes: Of a graph.
        edits: Random edits of each kind and graph.
    """

    kind: str = "graph_metrics"
    graphs: int = 0
    compared: int = 0
    mean_nodes: float = 0.0
    edits: int = 0


@dataclass(frozen=True, kw_only=True)
class GraphStartsCellFacts(TaskFacts):
    """Of starts of a descent.

    Attributes:
        descents: Of each pair.
        pairs: How many were solved.
        graphs: How many the pairs are drawn from.
        hops: Radius of an ego-network.
        noise: Its standard deviation in the start; None for a start without noise.
        with_product: Whether it stands beside the published start, the product of the weights.
    """

    kind: str = "graph_starts"
    descents: int = 0
    pairs: int = 0
    graphs: int = 0
    hops: int = 0
    noise: float | None = None
    with_product: bool = False


CELL_FACTS_RECORDS |= {
    record.kind: record for record in (GraphMetricsCellFacts, GraphStartsCellFacts)
}  # so that runs are read back
