"""Settings of ``local_dp``: the shared model, who takes part, and the encoder; and what is promised under them: the unit, who
must not learn it, on which assumptions.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import GinNorm, shared_gnn
from fedgraph.methods.base import PublicFacts, assume_public_setting
from fedgraph.methods.local_dp.encoders import EncoderReleaseKind, EncoderRule, LocalEncoderName, PooledEncoderName
from fedgraph.methods.local_dp.updates import UpdatesSeen, UpdateTraining, UpdateUnit
from fedgraph.privacy import Assumption, Protection, Relation

_OF_ENCODING = (  # no update needs these
    "bits_per_row",
    "encoder",
    "epsilon_rule",
    "rectify",
    "embedding",
    "release",
    "pooled_by",
    "client_epsilons",
)
_MERGING = {"client_momentum": 0.0, "aggregate": "mean", "trim": 0.2}  # the server's rule: no settings, but in names of streams


_OwnEpsilon = Annotated[float, Field(gt=0)]


class Params(Settings):
    training: UpdateTraining = Field(
        "fedavg",
        description="fedavg: updates in clear (the paper); dp_fedavg: clipped, noisy updates; dp_sgd: clipped, noisy "
        "gradients; public: trained on public labelled nodes; none: a random encoder",
    )
    unit: UpdateUnit = Field(
        "node", description="one graph per client: protect a node at all its clients, or a client's whole graph"
    )
    training_share: float = Field(0.5, gt=0, lt=1, description="share of the budget for the updates (dp_fedavg, dp_sgd)")
    clip: float = Field(1.0, gt=0, allow_inf_nan=False, description="norm C of a client's update, or of a graph's gradient")
    updates: UpdatesSeen = Field(
        "sum", description="what the server sees of protected updates: sum (secure aggregation) or each"
    )
    projection: int | None = Field(
        None,
        ge=1,
        description="feature columns kept: directions of the public nodes, random ones where none are public (default: all)",
    )
    momentum: float = Field(0.0, ge=0, lt=1, description="heavy-ball momentum at the server (dp_fedavg, dp_sgd)")
    server_rate: float = Field(1.0, gt=0, allow_inf_nan=False, description="server's step on the mean update (dp_fedavg)")
    public_steps: int = Field(200, ge=1, description="Adam steps on the public nodes (public)")
    public_rate: float = Field(0.01, gt=0, allow_inf_nan=False, description="their step size (public)")
    model: shared_gnn.SharedGnnModel = Field("gcn", description="shared model: gcn (two layers) or gin")
    hidden: int = Field(16, ge=1, description="hidden units of the shared model")
    layers: int = Field(5, ge=1, description="message rounds of gin (the gcn has two)")
    pooling: shared_gnn.SharedGnnPooling = Field(
        "mean", description="where clients hold whole graphs: mean or sum of node scores; none: labels belong to nodes"
    )
    normalise: Literal["batch"] | bool = Field(
        "batch",
        description="gin: batch normalisation; true: each row by its own root mean square after every layer; false: nothing",
    )
    batch_size: int | None = Field(None, ge=1, description="gin: graphs per step, a local epoch is one pass; none: all of them")
    rounds: int = Field(60, ge=1, description="FedAvg rounds before embeddings are retrieved")
    local_epochs: int = Field(2, ge=1, description="full-batch steps per client and round")
    optimiser: Literal["descent", "momentum", "adam"] = Field(
        "descent", description="local steps: gradient descent, with heavy-ball momentum 0.9, or Adam; from scratch each round"
    )
    learning_rate: float = Field(4.0, gt=0, allow_inf_nan=False, description="step size of the local steps")
    proximal: float = Field(0.0, ge=0, allow_inf_nan=False, description="FedProx weight μ of ½‖w − w₀‖²; 0 is FedAvg")
    client_fraction: float = Field(1.0, gt=0, le=1, description="share of the clients still there that train in a round")
    dropout: float = Field(0.0, ge=0, lt=1, description="probability that a client leaves for good before a round")
    retrieval_period: int | None = Field(
        None, ge=1, description="rounds between retrievals of embeddings; none: one, at the end"
    )
    keep_every: int | None = Field(
        None, ge=1, description="rounds between copies of the model that the server keeps, to look at training (default: none)"
    )
    attendance_seed: int = Field(0, ge=0, description="root of the public coins of who takes part")
    embedding: shared_gnn.SharedGnnSource = Field(
        "softmax", description="softmax output, or hidden: x/(1 + x) of the last hidden layer"
    )
    personal: ClassVar[bool] = True  # one graph per client: embed after one more local training (Algorithm 3)
    release: EncoderReleaseKind = Field(
        "rows", description="rows: every node's embedding; one graph per client: mean of them, or labels: shares of its classes"
    )
    pooled_by: PooledEncoderName = Field(
        "gaussian", description="mechanism of mean and labels: gaussian, multi-bit or response"
    )
    encoder: LocalEncoderName = Field(
        "multi-bit", description="multi-bit, multi-bit-total, multi-bit-node, gaussian-as-coded or none"
    )
    epsilon_rule: EncoderRule = Field("epsilon", description="a graph's ε: the budget, or the budget times 1/n for n nodes")
    client_epsilons: dict[int, _OwnEpsilon] | None = Field(
        None, description="stricter ε of clients' own, at most the row's, by the client's number (from 0)"
    )
    bits_per_row: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entries of each row (or of the matrix) that are sent; auto: max(1, min(h, floor(ε/2.18)))"
    )
    rectify: bool = Field(False, description="the server makes multi-bit embeddings unbiased before it compares them")
    promised_degree: ClassVar[None] = None  # no promise

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Without own ε where nobody has one: then they shape no noise. How updates are merged is no setting, but names
        random streams.
        """
        given = [(k, v) for k, v in super().__repr_args__() if k != "client_epsilons" or v is not None]
        return [*given, *_MERGING.items()]

    @property
    def training_key(self) -> str:
        """What shapes the updates: rows with one key share their training, and its random streams."""
        merging = json.dumps(_MERGING, separators=(",", ":"))[1:-1]
        given = self.model_dump_json(exclude=set(_OF_ENCODING))
        return given.replace('"client_fraction":', f'{merging},"client_fraction":', 1)

    @property
    def protects(self) -> bool:
        """Whether updates leave a client clipped and noisy."""
        return self.training in ("dp_fedavg", "dp_sgd")

    @property
    def on_simplex(self) -> bool:
        return self.embedding == "softmax"

    @property
    def releases_labels(self) -> bool:
        return self.release == "labels"

    @property
    def norm(self) -> GinNorm:
        """Of gin's layers."""
        return "batch" if self.normalise == "batch" else "rows" if self.normalise else "none"

    @model_validator(mode="after")
    def _parts_that_go_together(self) -> Self:
        if self.model == "gin" and self.norm == "batch" and self.training == "dp_sgd":
            raise ValueError(
                "normalise: batch mixes graphs, and dp_sgd clips the gradient of each alone; write normalise: true or false"
            )
        if self.batch_size is not None and (self.model != "gin" or self.training == "dp_sgd"):
            raise ValueError("batch_size is for model: gin, and not for training: dp_sgd")
        if self.release == "mean" and self.embedding != "softmax":
            raise ValueError("release: mean is a histogram of classes: it needs embedding: softmax")
        if self.training == "none" and self.release == "mean":
            raise ValueError("release: mean of a random encoder says nothing of classes: train it, or write release: labels")
        if self.client_epsilons is not None and not (self.release == "rows" and self.encoder != "gaussian-as-coded"):
            raise ValueError("client_epsilons are for release: rows, by an encoder that reads ε as ε (not gaussian-as-coded)")
        if self.encoder == "gaussian-as-coded" and self.training in ("dp_fedavg", "dp_sgd"):
            raise ValueError("encoder gaussian-as-coded reads ε as a standard deviation: no budget is left to train with")
        return self


def own_epsilon(params: Params, client: int, num_clients: int, budget: float) -> float:
    """ε of one client's releases: its own where it states one, else the row's. ``ScenarioError`` for one above the row's, which
    would break the row's promise, and for clients that are not there.
    """
    own = params.client_epsilons or {}
    if not set(own) <= set(range(num_clients)):
        raise ScenarioError(f"client_epsilons: found clients {sorted(own)}; allowed: 0 … {num_clients - 1}")
    if own.get(client, budget) > budget:
        raise ScenarioError(
            f"client_epsilons: client {client} asks for ε = {own[client]:g} where the row promises ε = {budget:g}; a client's "
            "own ε may only be stricter: write the largest of them in the row's epsilons"
        )
    return own.get(client, budget)


def protection_of(params: Params, facts: PublicFacts, whole: bool) -> Protection:
    relation = Relation.GRAPH_REPLACE if whole else Relation.NODE_REPLACE
    assumed = [Assumption.MODEL_GIVEN] if params.training == "fedavg" else []
    assumed += [Assumption.UNTUNED, *assume_public_setting(facts, relation)]
    if facts.graphs:
        assumed.append(Assumption.SIZES_PUBLIC)
    if params.protects and params.updates == "sum":
        assumed.append(Assumption.UPDATES_SUMMED)
    if facts.public_graph is not None and (params.training == "public" or params.projection is not None):
        assumed.append(Assumption.PUBLIC_NODES)
    if params.training == "public":
        assumed.append(Assumption.PUBLIC_LABELS)
    return Protection(relation, facts.viewer, tuple(dict.fromkeys(assumed)))


def notes_of(params: Params, facts: PublicFacts, whole: bool) -> tuple[str, ...]:
    """Sentences for the report."""
    found = []
    if whole and facts.holdings is not None:
        most = int(np.asarray(facts.holdings.sum(axis=0)).max(initial=0))
        found.append(
            f"The unit is all that one client holds. A node may be held by up to {most} clients: the stated ε covers its copy "
            "at each of them, and its losses at all of them together add up."
        )
    if params.protects and facts.graphs:
        found.append(
            "The updates protect everything that a client holds at once, so each of its graphs too."
            if params.training == "dp_fedavg"
            else "Gradients are clipped graph by graph: the updates protect each graph, not all of a client at once."
        )
    return tuple(found)
