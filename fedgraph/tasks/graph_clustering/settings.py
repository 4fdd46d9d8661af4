"""What a scenario writes about clustering small graphs, and the rows that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from fedgraph.attacks import canary_graphs
from fedgraph.comparison import SpaceMetric, SpaceWeights
from fedgraph.documents import SettingsSpec
from fedgraph.methods import method_kinds
from fedgraph.tasks.base import require_distinct_cells, task_offers
from fedgraph.tasks.base.graphs import graph_settings
from fedgraph.tasks.base.graphs.graph_settings import (
    GRAPH_WEIGHTS_WORDS,
    GraphEncoders,
    GraphEpsilons,
    GraphModel,
    GraphSolverSettings,
    OwnGraphEpsilons,
)
from fedgraph.tasks.base.task_offers import TaskRowKeys
from fedgraph.tasks.graph_clustering.compared_clients import ClientComparison

PLAIN_CLUSTERING = "encoded"  # the variant of the paper's encoder at a plain ε


class ClusteringRowKeys(TaskRowKeys):
    """The keys of an entry of ``methods`` that are the task's."""

    epsilons: OwnGraphEpsilons = Field(None, description="budgets of this row; default the task's")
    compare: Annotated[list[ClientComparison] | None, Field(min_length=1)] = Field(
        None, description="how releases are compared: gw, fgw, mean, histogram"
    )


_Entry = Annotated[GraphModel, AfterValidator(task_offers.check_row_keys(ClusteringRowKeys))]


class Params(GraphSolverSettings):
    """Models, budgets, and how the server compares, clusters and classifies."""

    methods: list[_Entry] = Field(
        default_factory=lambda: [{"method": name} for name in method_kinds.list_names(lambda offers: offers.serves("ego"))],
        min_length=1,
        description="method: file name in fedgraph/methods (default: all that serve here), then its settings; label names the "
        "rows, epsilons are budgets of this entry alone, compare a list of gw, fgw, mean, histogram (default gw; histogram "
        "where a graph sends one vector)",
    )
    partition: SettingsSpec = Field(
        default_factory=lambda: {"partition": "ego", "clients": 200, "hops": 1},
        description="which small graphs of one graph are the clients; of a collection each graph is one",
    )
    epsilons: GraphEpsilons = Field(
        min_length=1, description="ε of each client's encoded graph: a number, 1/n for n nodes, inf for no encoding"
    )
    encoders: GraphEncoders = Field(["multi-bit"], min_length=1, description="what finite ε are read by")
    max_graphs: int | None = Field(None, ge=20, description="of a collection, a stratified sample of this many graphs")
    seeds: int | None = Field(None, ge=1, description="repetitions of this task, at most the scenario's seeds")
    public_share: float = Field(0.0, ge=0, lt=1, description="share of the graph's nodes, held by no client, that are public")
    labels: Literal["all", "others"] = Field(
        "all",
        description="labels that train: all that a client holds, or others: without those of the centres, which are asked",
    )
    classify: bool = Field(False, description="also classify each graph, given the labels of four in five of the others")
    clusters: int | None = Field(None, ge=2, description="clusters; default the number of classes")
    metric: SpaceMetric = Field("euclidean", description="distance between rows: euclidean, cosine or correlation")
    weights: SpaceWeights = Field("uniform", description=GRAPH_WEIGHTS_WORDS)
    alpha: float = Field(0.5, ge=0, le=1, description="weight of structure in the fused discrepancy")
    num_init: int = Field(3, ge=1, description="k-means starts; the lowest inertia counts")
    max_iterations: int = Field(20, ge=1, description="k-means iterations")
    attack: canary_graphs.GraphAttack | None = Field(
        None, description="toss a coin for each graph, and read what is released: a lower bound on ε"
    )
    map: Literal["mds", "tsne"] = Field("mds", description="picture of the distances: mds, or tsne as in the paper")

    @model_validator(mode="before")
    @classmethod
    def _one_or_several(cls, given: Any) -> Any:
        if isinstance(given, dict) and "method" in given:
            if "methods" in given:
                raise ValueError("method is one, methods a list of them: write one of the two")
            given = {k: v for k, v in given.items() if k != "method"} | {"methods": [given["method"]]}
        return given

    @field_validator("methods")
    @classmethod
    def _entries(cls, methods: list[SettingsSpec]) -> list[SettingsSpec]:
        require_distinct_cells("the model", [m.get("label", "") for m in methods])
        for m in methods:
            pooled = m.get("release", "rows") != "rows"
            for how in _compared(m):
                if (how == "histogram") != pooled:
                    allowed = "histogram" if pooled else "gw, fgw, mean"
                    raise ValueError(f"compare of {m.get('label', m['method'])!r}: found {how!r}; allowed: {allowed}")
        return methods

    @field_validator("clusters")
    @classmethod
    def _no_more_than_clients(cls, clusters: int | None, info: ValidationInfo) -> int | None:
        partition = info.data.get("partition") or {}
        written = partition != cls.model_fields["partition"].get_default(call_default_factory=True)
        dealt = partition.get("clients") if written else None  # of a collection the default deals nothing
        for key, most in {"partition.clients": dealt, "max_graphs": info.data.get("max_graphs")}.items():
            if clusters is not None and isinstance(most, int) and clusters > most:
                raise ValueError(f"allowed: at most {most}, as many clients as {key} makes")
        return clusters

    @property
    def dealt_clients(self) -> int | None:
        """Number of clients that ``partition`` makes of one graph; None where only the data say it."""
        found = self.partition.get("clients")
        return found if isinstance(found, int) else None

    @model_validator(mode="after")
    def _can_be_solved(self) -> Params:
        self.options()
        if self.loss != "square":
            raise ValueError(
                "loss: kl has no barycentres here, which k-means needs; allowed: square (kl: graph_classification)"
            )
        return self


@dataclass(frozen=True)
class ClusteringRow:
    """One line of the table at one budget.

    Attributes:
        variant: The name of the row's cells: label, comparison, encoder and rule, as far as they are not the usual ones.
        index: The place of its entry in ``methods``.
        encoder: What a finite ε is read by.
        rule: How ε is meant: ``1/n`` for a graph of n nodes, or ``epsilon``, a number.
        epsilon: A number > 0, or ``1/n``.
        named: The label of the entry, or empty.
    """

    variant: str
    index: int
    encoder: str
    rule: str
    how: ClientComparison
    epsilon: float | str
    named: str


def _compared(entry: SettingsSpec) -> list[ClientComparison]:
    return list(entry.get("compare", ["gw" if entry.get("release", "rows") == "rows" else "histogram"]))


def list_clustering_rows(params: Params) -> list[ClusteringRow]:
    """All rows, in order: entries, their budgets, encoders, comparisons."""
    found = []
    for index, entry in enumerate(params.methods):
        pooled = entry.get("release", "rows") != "rows"
        for value in [graph_settings.parse_epsilon(e) for e in entry.get("epsilons", params.epsilons)]:
            for encoder in params.encoders[:1] if graph_settings.is_in_clear(value) or pooled else params.encoders:
                rule = "1/n" if isinstance(value, str) else "epsilon"
                usual = graph_settings.is_in_clear(value) or pooled or (encoder == "multi-bit" and rule == "epsilon")
                base = PLAIN_CLUSTERING if usual else f"{encoder}/{rule}"
                for how in _compared(entry):
                    parts = [entry["label"]] if "label" in entry else []
                    parts += [how] if how not in ("gw", "histogram") else []
                    name = " · ".join([*parts, *([base] if base != PLAIN_CLUSTERING or not parts else [])])
                    found.append(ClusteringRow(name, index, encoder, rule, how, value, str(entry.get("label", ""))))
    return found
