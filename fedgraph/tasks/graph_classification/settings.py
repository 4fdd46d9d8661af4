"""What a scenario writes about classifying the graphs of a collection."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedgraph.attacks import canary_graphs
from fedgraph.comparison import IndefiniteKernelHandling, SpaceMetric, SpaceWeights
from fedgraph.documents import PerDatasetSetting, SettingNotes, SettingsSpec
from fedgraph.tasks.base.graphs.graph_settings import (
    GRAPH_WEIGHTS_WORDS,
    DistinctGraphSettings,
    GraphEncoders,
    GraphEpsilons,
    GraphModels,
    GraphSolverSettings,
)

_Baseline = Literal["shortest-path kernel", "GW(A)", "FGW(A, X)"]


class Params(GraphSolverSettings):
    """Models, budgets, encoders, and how the server compares and classifies."""

    methods: GraphModels = Field(
        min_length=1, description="shared models: method, label, settings, and if wanted own epsilons, compare: false, fused"
    )
    epsilons: GraphEpsilons = Field(
        min_length=1, description="ε of a graph: a number, 1/n for a graph of n nodes, inf for no encoding"
    )
    epsilons_of: Annotated[dict[str, GraphEpsilons], SettingNotes(infinite=True, per_dataset=True)] = Field(
        {}, description="epsilons on single data sets, by name"
    )
    encoders: GraphEncoders = Field(["multi-bit"], min_length=1, description="what finite ε are read by")
    baselines: Annotated[list[_Baseline], DistinctGraphSettings] = Field(
        ["shortest-path kernel", "GW(A)", "FGW(A, X)"], description="rows on raw data"
    )
    partition: SettingsSpec = Field(
        default_factory=lambda: {"partition": "dirichlet", "clients": 10}, description="how graphs are dealt to clients"
    )
    seeds: int | None = Field(None, ge=1, description="repetitions of this task, at most the scenario's seeds")
    seeds_of: Annotated[dict[str, Annotated[int, Field(ge=1)]], PerDatasetSetting] = Field(
        {}, description="repetitions on single data sets, by name"
    )
    folds: int = Field(10, ge=2, description="seed s tests fold s (mod folds) of a stratified cross-validation")
    validation: float = Field(0.2, gt=0, lt=1, description="share of all graphs that choose C and γ")
    held_out: Literal["folds", "clients"] = Field(
        "folds",
        description="folds: of all graphs; clients: each keeps 1/folds of its own to test, and a share validation of its own",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="δ at which losses that are not pure are priced")
    metric: SpaceMetric = Field("euclidean", description="distance between rows: euclidean, cosine or correlation")
    weights: SpaceWeights = Field("uniform", description=GRAPH_WEIGHTS_WORDS)
    alpha: float = Field(0.5, ge=0, le=1, description="weight of structure in the fused discrepancy")
    neighbours: list[Annotated[int, Field(ge=1)]] = Field([5, 20], description="k of the nearest-neighbour votes")
    classifier: Literal["svm", "neighbours"] = Field(
        "svm", description="svm, with votes beside it; neighbours: the first vote is the accuracy, and far pairs stay unsolved"
    )
    tuned_on_test: bool = Field(
        False, description="also accuracies with C, γ and the round picked on the test graphs: no result, what that would print"
    )
    handling: IndefiniteKernelHandling = Field("clip", description="negative eigenvalues of the kernel: as_is, clip or shift")
    max_graphs: int | None = Field(None, ge=20, description="use a stratified sample of this many graphs")
    max_graphs_of: Annotated[dict[str, Annotated[int, Field(ge=20)]], PerDatasetSetting] = Field(
        {}, description="max_graphs on single data sets, by name"
    )
    max_degree: int = Field(64, ge=1, description="largest one-hot degree, where nodes have no features (or degrees is true)")
    degrees: bool = Field(False, description="one-hot degrees before the features of nodes that have some")
    attributes: bool = Field(True, description="false: of nodes with numeric attributes and a kind, the one-hot kinds only")
    attack: canary_graphs.GraphAttack | None = Field(None, description="toss a coin for each graph: a lower bound on ε")

    @model_validator(mode="after")
    def _votes(self) -> Self:
        self.options()
        if self.classifier == "neighbours" and (self.tuned_on_test or not self.neighbours):
            raise ValueError("classifier: neighbours needs a k in neighbours, and has nothing to be tuned_on_test")
        if self.classifier == "neighbours" and self.loss != "square":
            raise ValueError("classifier: neighbours skips far pairs by bounds for the square loss; write loss: square")
        return self

    @property
    def only_nearest(self) -> int | None:
        """The largest k, if votes are all that is wanted of the distances."""
        return max(self.neighbours) if self.classifier == "neighbours" else None
