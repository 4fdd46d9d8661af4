"""Settings of ``nonprivate``: each key with its default, and the candidates that ``model: ceiling`` chooses from."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.learning import NETWORK_SHAPE_PREFIX, FittingScaling, NetworkShape, require_short_network_shape
from fedgraph.methods.base import Plan

CEILING_PARAM = "ceiling"
_ENOUGH, _MOST_FOLDS = 1000, 5  # validation nodes that folds: auto asks for, over all folds; and the most folds it takes
# validation nodes of all folds below which every labelled node validates once, and no early round is trusted
NONPRIVATE_CEILING_FEW = 100


@dataclass(frozen=True)
class Candidate:
    """One network with its training."""

    model: str  # its name
    hidden: int  # hidden units
    dropout: float  # on hidden layers
    input_dropout: float  # on the features
    rate: float  # step size
    decay: float  # L2 penalty
    alpha: float = 1.0  # teleport of the spread of its scores over the asked graph; 1: no spread
    columns: bool = False  # as in ``NetworkShape``
    hears: bool = False  # it reads the labels of a node's neighbours beside its row, when it answers, too

    def shape(self, num_features: int, num_classes: int, arguments: dict[str, Any]) -> NetworkShape:
        sizes = (num_features + num_classes * self.hears, num_classes, self.hidden, self.dropout, self.input_dropout)
        return NetworkShape(self.model, *sizes, arguments, self.columns)

    def __str__(self) -> str:
        spread = f", spread with α = {self.alpha:g}" if self.alpha < 1 else ""
        sizes = "" if self.model == "logistic" else f", {self.hidden} units, dropout {self.dropout:g}"
        heard = " with the labels of neighbours" if self.hears else ""
        return f"{self.model}{heard}{sizes}, rate {self.rate:g}, decay {self.decay:g}{spread}"


@dataclass(frozen=True)
class AskedParams:
    """What the plan made of public facts."""

    # nodes of the graph that will be asked over those that train, where it is a graph of its own; at most 1, and 1 where it is
    # the training graph or unknown
    share: float
    candidates: tuple[Candidate, ...]  # what is trained, in order
    folds: int = 1  # parts of the training nodes that validate in turn
    validation: float = 0.1  # the share of the labelled nodes that is in each of them


# Small on purpose: two ways to read features alone, four for graphs where neighbours agree, two for graphs where they do not.
# In the order of their cost: a later one that is far behind is left early (``phases``).
NONPRIVATE_CEILING_GRID = (
    Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4),
    Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4, alpha=0.25),
    Candidate("mlp", 64, 0.5, 0.2, 0.01, 1e-4),
    Candidate("gcn", 64, 0.5, 0.5, 0.01, 5e-4),
    Candidate("gcn", 64, 0.2, 0.0, 0.02, 0.0),
    Candidate("appnp", 64, 0.5, 0.5, 0.01, 5e-4),
    Candidate("gprgnn", 64, 0.5, 0.2, 0.01, 5e-4),
    Candidate("sage", 64, 0.5, 0.2, 0.01, 1e-4),
    Candidate("gcn-jk", 64, 0.5, 0.2, 0.01, 1e-5),
    Candidate("gat", 64, 0.5, 0.5, 0.01, 5e-4),
)
_HEARING = Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4, hears=True)  # where nodes ask, and neighbours' labels are known


class Params(Settings):
    """Settings of the unprotected learners."""

    model: str = Field("gcn", description="ceiling, logistic, mlp, gcn, gat, sage, gcn-jk, appnp, gprgnn, torch_geometric.nn.…")
    arguments: dict[str, Any] = Field({}, description="keyword arguments of a torch_geometric.nn class")
    among: list[str] = Field([], description="ceiling: only these models of the grid; empty: all")
    hidden: int = Field(64, ge=1, description="hidden units")
    rounds: int = Field(40, ge=1, description="FedAvg rounds, at most; of every candidate")
    local_epochs: int = Field(10, ge=1, description="full-batch steps per client and round")
    learning_rate: float = Field(0.01, gt=0, description="step size")
    weight_decay: float = Field(5e-4, ge=0, description="L2 penalty")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout on hidden layers")
    input_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the features")
    features: FittingScaling = Field(
        "unit",
        description="feature rows of length one (unit), or of sum one, as GCN and GAT were published; or columns of mean 0 and "
        "variance 1 over the training rows (default of model: ceiling where more than half of the entries are not zero)",
    )
    alpha: float = Field(0.25, gt=0, le=1, description="teleport probability of the spread of scores (logistic, mlp); 1: none")
    propagation_steps: int = Field(10, ge=0, description="power iterations over the asked graph (logistic, mlp)")
    validation: float = Field(0.1, ge=0, lt=1, description="share of training nodes that stops and chooses; 0: last round")
    folds: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="ceiling: parts of the training nodes that validate in turn, each of the share validation; auto: as many "
        "as make 1,000 validation nodes, at most 5",
    )
    members: int = Field(
        3, ge=1, description="ceiling: networks that answer together, where as many are within a standard error"
    )
    patience: int = Field(10, ge=1, description="rounds without a better validation loss or accuracy, then the candidate stops")
    refit: bool = Field(
        True, description="train again on all training nodes for the rounds found (not with a given validation mask)"
    )
    client_optimiser: ClassVar[str] = "adam"  # its moments persist, averaged over clients

    @model_validator(mode="after")
    def _network_exists(self) -> Self:
        known = list(dict.fromkeys(c.model for c in NONPRIVATE_CEILING_GRID))
        if self.model == CEILING_PARAM:
            if self.arguments:
                raise ValueError("arguments belong to one model; model: ceiling tries several")
            if not self.validation:
                raise ValueError("model: ceiling chooses on validation nodes; validation must be > 0")
            if self.folds != "auto" and self.folds * self.validation > 1:
                found = f"{self.folds} folds of {self.validation:g}"
                raise ValueError(f"{found} are more than all training nodes; lower one of them")
            if unknown := [m for m in self.among if m not in known]:
                raise ValueError(f"among: {unknown[0]!r} is not in the grid; allowed: {', '.join(known)}")
        else:
            if self.among:
                raise ValueError("among is for model: ceiling")
            if self.folds not in ("auto", 1):
                raise ValueError("folds is for model: ceiling")
            if self.model.startswith(NETWORK_SHAPE_PREFIX):
                from fedgraph.learning import networks  # not before it is used: it imports torch

                networks.require_callable_network(self.model, self.arguments)
            else:
                require_short_network_shape(self.model, self.arguments)
        return self

    def divided(self, num_labelled: int, tried: int) -> tuple[int, float]:
        """(parts of ``num_labelled`` nodes that validate in turn, share of each); one part where a single model is tried."""
        if self.model != CEILING_PARAM or tried == 1:
            return 1, self.validation
        if self.folds != "auto":
            return self.folds, self.validation
        of_one = max(1.0, self.validation * num_labelled)
        folds = max(1, min(math.ceil(_ENOUGH / of_one), _MOST_FOLDS, math.floor(1 / self.validation)))
        return folds, max(self.validation, 1 / folds) if folds * of_one < NONPRIVATE_CEILING_FEW else self.validation

    def candidates(self, asking: bool) -> tuple[Candidate, ...]:
        """What is trained, in order. asking: nodes ask, so that the ceiling may read the labels of their neighbours."""
        columns = self.features == "columns"
        if self.model == CEILING_PARAM:
            grid = (*NONPRIVATE_CEILING_GRID, _HEARING) if asking else NONPRIVATE_CEILING_GRID
            return tuple(replace(c, columns=columns) for c in grid if not self.among or c.model in self.among)
        sizes = (self.hidden, self.dropout, self.input_dropout)
        own = Candidate(self.model, *sizes, self.learning_rate, self.weight_decay, columns=columns)
        return (replace(own, alpha=self.alpha) if self.model in ("logistic", "mlp") else own,)


Planned: TypeAlias = Plan[Params, AskedParams]
