"""Local DP embeddings for Gromov-Wasserstein (Jin & Chen): FedAvg on small graphs, then encoded embeddings.

Clients train a shared GCN or GIN: R rounds of FedAvg or FedProx with E full-batch steps each (Algorithm 3). A client is one
small graph with node labels (an ego-network), or holds several graphs, with a label each (scores are pooled) or node labels.
Every s rounds, or once at the end, each client sends its embedding in [0, 1]^(n×h) through an encoder. Algorithm 3 trains once
more before that. Then every row depends on all that the client holds, so this is done only if that is priced as one
(``client``).

Two paths are priced apart and together: **model**, the updates, by ``training``; and **embedding**, where retrievals add up.

    fedavg      as in the paper: updates in clear, ε = ∞
    dp_fedavg   client-level DP-FedAvg (McMahan, Ramage, Talwar & Zhang 2018): every client's whole update is clipped to norm C
    dp_sgd      one step a round: every graph's gradient is clipped to norm C, and a client sends the sum over its graphs
    public      no update leaves a client: the encoder is trained on public labelled nodes
    none        no update leaves a client: the encoder is its random start

Public coins draw who takes part before the run, so every release can be planned. Before each round but the first, a client
leaves for good with the drop-out probability. Of the others a share trains; all of them are asked for embeddings in retrieval
rounds. For a client that left, the server keeps its last embedding.

The unit is the graph if clients hold whole graphs (graph-replace of known size; each graph is priced alone, and the worst
counts), or if ``unit: graph`` is set: then all that a client holds is one unit. Otherwise it is the node, which may be in
several ego-networks, and pays for all of them. Under ``fedavg`` the budget is each graph's, as in the paper, so a node may pay
more; under every other training it is the unit's, for all releases. ``EncoderSettings`` says where text, proof and released
code disagree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph import learning, privacy, seeds
from fedgraph.documents import Settings
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import layouts, shared_gnn, torch
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("jin2022gromov", "sajadmanesh2021locally")


def _most_bits(epsilon: float, num_entries: int) -> int:
    """m* = max(1, min(d, ⌊ε/2.18⌋)) (Sajadmanesh & Gatica-Perez 2021, Proposition 3.3)."""
    privacy.require_positive("epsilon", epsilon)
    return max(1, min(num_entries, math.floor(epsilon / 2.18)))


_EncoderReleaseKind = Literal["rows", "mean", "labels"]
_PooledEncoderName = Literal["gaussian", "multi-bit", "response"]

_IN_CLEAR = privacy.Disclose("no noise: the graph's own vector")


@dataclass(frozen=True)
class _PooledEncoder:
    """How one vector of a whole graph, a histogram of classes, is sent; another graph may have any other histogram.

        gaussian    + N(0, s²), Δ₂ = √2 (``SimplexRows(1)``)                                        the multiplier is s/√2
        multi-bit   m of the c entries, one bit each at ε/m (``MultiBitEncoder`` on one row)         pure ε
        response    the largest class alone, through c-ary randomised response                      pure ε

    The price is that of one graph; for the unit ``node``, each client that holds the node is priced whole.
    """

    by: _PooledEncoderName  # the mechanism
    epsilon: float  # ε of one release; ∞: in clear
    mu: float  # μ of one release, if it is Gaussian
    width: int  # c, entries of the vector
    bits: int | None = None  # m, entries that are sent; None: by ``_most_bits``

    def of_client(self) -> tuple[privacy.SensitivityBound, privacy.NoiseMechanism, privacy.Event]:
        """Bound, mechanism and price of one graph's release."""
        simplex = privacy.SimplexRows(1)
        if math.isinf(self.epsilon):
            return simplex, _IN_CLEAR, privacy.Unprotected("the vector is sent without noise")
        if self.by == "gaussian":
            std = privacy.sensitivity.l2(simplex, privacy.Relation.GRAPH_REPLACE) / self.mu
            return simplex, privacy.GaussianNoise(std), privacy.Gaussian(1.0 / self.mu)
        if self.by == "response":
            return (
                privacy.Box(0, self.width - 1),
                privacy.KaryResponse(self.epsilon, self.width),
                privacy.RandomizedResponse(self.epsilon, self.width),
            )
        m = min(self.bits, self.width) if self.bits is not None else _most_bits(self.epsilon, self.width)
        return simplex, privacy.MultiBitEncoder(self.epsilon / m, m), privacy.MultiBit(self.epsilon / m, m)

    def value(self, vector: np.ndarray) -> np.ndarray:
        """What is released of a vector float64 [c]: the vector as one row, or its largest class."""
        if self.by == "response" and math.isfinite(self.epsilon):
            return np.array([int(vector.argmax())], dtype=np.int64)
        return np.asarray(vector, dtype=np.float64)[None, :]

    def read(self, received: np.ndarray) -> np.ndarray:
        """The server's estimate, float64 [1, c]: bits made unbiased, a response as one 1. Post-processing."""
        mechanism = self.of_client()[1]
        if isinstance(mechanism, privacy.MultiBitEncoder):
            return np.asarray(mechanism.rectify(received))
        if isinstance(mechanism, privacy.KaryResponse):
            return np.eye(self.width)[received]
        return np.asarray(received)


def _shares_of_classes(labels: np.ndarray, width: int) -> np.ndarray:
    """float64 [c]: shares of the classes among labels int64 [n], −1 where unknown; uniform where none is known."""
    counts = np.bincount(labels[labels >= 0], minlength=width).astype(np.float64)
    return counts / counts.sum() if counts.sum() else np.full(width, 1.0 / width)


_LocalEncoderName = Literal["multi-bit", "multi-bit-total", "multi-bit-node", "gaussian-as-coded", "none"]
_EncoderRule = Literal["epsilon", "1/n"]

_NO_ENCODING = privacy.Disclose("no encoding: the embedding itself")


@dataclass(frozen=True)
class EncoderSettings:
    """How the embedding of a graph of n nodes, in [0, 1]^(n×h), is sent, at ε_n = ε, or ε/n by rule "1/n".

        multi-bit          m bits of every row at ε_n/(m·n) each: ε_n per graph (Jin & Chen, Algorithm 1 as its proof counts)
        multi-bit-total    m bits of the whole matrix at ε_n/(m·n) each (Algorithm 1 read literally): ε_n/n per graph
        multi-bit-node     m bits of every row at ε_n/m each (LPGNN), priced as a graph: n·ε_n
        gaussian-as-coded  H + N(0, ε_n²), the released code: no ε-LDP; (ε, δ) with Δ₂ = √(2n) (softmax rows) or √(n·h)
        none               in clear: ε = ∞

    Each bit that is sent at budget a has likelihood ratio at most e^a; bits of the protected unit add up.
    """

    encoder: _LocalEncoderName
    epsilon: float  # ε of one release of a graph, before ``rule``
    rule: _EncoderRule  # ``epsilon``, or ``1/n`` of it for a graph of n nodes
    width: int  # h, numbers per node
    softmax: bool  # whether rows are probability vectors
    bits: int | None = None  # m, entries that are sent; None: by ``_most_bits``

    def epsilon_of(self, num_nodes: int) -> float:
        """ε_n of a graph of this size."""
        return self.epsilon / num_nodes if self.rule == "1/n" else self.epsilon

    def of_graph(self, num_nodes: int) -> tuple[privacy.NoiseMechanism, privacy.Event]:
        """(mechanism, price) of one graph's release."""
        if self.encoder == "none" or math.isinf(self.epsilon):
            return _NO_ENCODING, privacy.Unprotected("the embedding is sent without encoding")
        epsilon = self.epsilon_of(num_nodes)
        if self.encoder == "gaussian-as-coded":
            moves = math.sqrt(2 * num_nodes if self.softmax else num_nodes * self.width)  # Δ₂
            return privacy.GaussianNoise(epsilon), privacy.Gaussian(epsilon / moves)
        in_total = self.encoder == "multi-bit-total"
        available = num_nodes * self.width if in_total else self.width
        m = min(self.bits, available) if self.bits is not None else _most_bits(epsilon, available)
        if self.encoder == "multi-bit-node":
            return privacy.MultiBitEncoder(epsilon / m, m), privacy.MultiBit(epsilon / m, m * num_nodes)
        each = epsilon / (m * num_nodes)
        return privacy.MultiBitEncoder(each, m, in_total), privacy.MultiBit(each, m * (1 if in_total else num_nodes))

    def of_client(self, sizes: Sequence[int]) -> tuple[privacy.SensitivityBound, privacy.NoiseMechanism, privacy.Event]:
        """Bound, mechanism and price of the release of a client with graphs of these sizes."""
        on_simplex = self.softmax and self.encoder == "gaussian-as-coded"
        bound: privacy.SensitivityBound = privacy.SimplexRows(sum(sizes)) if on_simplex else privacy.Box(0.0, 1.0)
        made = {n: self.of_graph(n) for n in sorted(set(sizes))}
        if len(sizes) == 1:
            return bound, *made[sizes[0]]
        return (
            bound,
            privacy.PerBlock(tuple(made[n][0] for n in sizes), tuple(sizes)),
            _worst([event for _, event in made.values()]),
        )

    def pure_losses(self, sizes: Sequence[Sequence[int]], retrievals: Sequence[int]) -> list[list[float]]:
        """For each client and graph the pure ε of all its retrievals, of the whole graph whatever the unit is; ∞: not pure."""

        def of_all_bits(num_nodes: int) -> float:
            mechanism = self.of_graph(num_nodes)[0]
            if not isinstance(mechanism, privacy.MultiBitEncoder):
                return math.inf
            return mechanism.epsilon_per_bit * mechanism.num_sampled * (1 if mechanism.in_total else num_nodes)

        once = {n: of_all_bits(n) for n in {n for own in sizes for n in own}}
        return [[times * once[n] if times else 0.0 for n in own] for own, times in zip(sizes, retrievals, strict=True)]


def _worst(events: Sequence[privacy.Event]) -> privacy.Event:
    """The price of the worst of several graphs."""
    gaussian = [e.noise_multiplier for e in events if isinstance(e, privacy.Gaussian)]
    pure = [e.epsilon_per_bit * e.num_bits for e in events if isinstance(e, privacy.MultiBit)]
    if len(gaussian) == len(events):
        return privacy.blocks.worst_gaussian(gaussian)
    return privacy.blocks.worst_pure(pure) if len(pure) == len(events) else events[0]


_UPDATE = privacy.Disclose("plain FedAvg: the change of the parameters")
_VOCABULARY = privacy.Disclose("plain FedAvg: which features the client's nodes have (the sparsity of its update)")


@dataclass(frozen=True)
class _Attendance:
    """Who takes part in which round."""

    training: tuple[tuple[int, ...], ...]  # for each round of updates the clients, sorted, that send one
    present: tuple[tuple[int, ...], ...]  # for each round 0 … R the clients that have not left
    retrievals: tuple[int, ...]  # rounds in which embeddings are sent
    trains: tuple[tuple[int, ...], ...]  # for each client the rounds of its updates
    sends: tuple[tuple[int, ...], ...]  # for each client the rounds of its embeddings
    everyone: bool  # whether no client is ever missing


def _draw_attendance(
    num_clients: int, rounds: int, period: int | None, fraction: float, dropout: float, seed: int
) -> _Attendance:
    """R = ``rounds`` rounds of updates, then a retrieval in round R; also one every ``period`` rounds before."""
    retrievals = (*(r for r in range(rounds) if period and (r + 1) % period == 0), rounds)
    if fraction == 1.0 and dropout == 0.0:
        every, updates = tuple(range(num_clients)), tuple(range(rounds))
        return _Attendance(
            (every,) * rounds, (every,) * (rounds + 1), retrievals, (updates,) * num_clients, (retrievals,) * num_clients, True
        )
    rng = seeds.seeded_generator(seed, "attendance")
    here = np.arange(num_clients)
    training, present = [], []
    for round_ in range(rounds + 1):
        if round_:
            here = here[rng.random(here.size) >= dropout]
        present.append(tuple(int(c) for c in here))
        if round_ < rounds:
            count = min(here.size, max(1, round(fraction * here.size)))
            training.append(tuple(int(c) for c in np.sort(rng.choice(here, count, replace=False))) if count else ())
    trains = tuple(tuple(r for r, who in enumerate(training) if c in who) for c in range(num_clients))
    sends = tuple(tuple(r for r in retrievals if c in present[r]) for c in range(num_clients))
    return _Attendance(tuple(training), tuple(present), retrievals, trains, sends, False)


def _idle_attendance(num_clients: int, dropout: float, seed: int) -> _Attendance:
    """Nobody trains: a round in which the encoder is broadcast, and one retrieval."""
    table = _draw_attendance(num_clients, 1, None, 1.0, dropout, seed)
    return replace(table, training=((),), trains=((),) * num_clients)


def _updates_in_clear(table: _Attendance) -> list[privacy.PlannedRelease]:
    """The releases of the model path of ``fedavg``, without noise."""
    event = privacy.Unprotected("FedAvg updates are sent in clear")
    whose: list[tuple[int | None, range | tuple[int, ...]]] = [(c, own) for c, own in enumerate(table.trains) if own]
    if table.everyone:
        whose = [(None, range(len(table.training)))]
    found = []
    for client, own in whose:
        found.append(privacy.PlannedRelease("vocabulary", privacy.Unbounded(), _VOCABULARY, event, own[:1], client=client))
        found.append(privacy.PlannedRelease("model", privacy.Unbounded(), _UPDATE, event, own, client=client))
    return found


_UpdateTraining = Literal["fedavg", "dp_fedavg", "dp_sgd", "public", "none"]
_UpdatesSeen = Literal["sum", "each"]
_UpdateUnit = Literal["node", "graph"]

_CLIPPED_ONLY = privacy.Disclose("clipped, but no noise was asked for")
_NO_NOISE = privacy.Unprotected("updates are sent without noise")


@dataclass(frozen=True)
class _Shares:
    """The budgets of the updates and of the embeddings."""

    training: float  # ε
    embedding: float  # ε
    training_mu: float = 0.0
    embedding_mu: float = 0.0
    squares: bool = False  # whether both paths are Gaussian, and share μ²; else they share ε, and only updates have δ


def _split_budget(training: _UpdateTraining, share: float, budget: base.Budget, gaussian_embedding: bool) -> _Shares:
    """The budget, divided; embeddings get all of it if updates are not protected."""
    part = share if training in ("dp_fedavg", "dp_sgd") else 0.0
    if not budget.private:
        return _Shares(math.inf, math.inf, math.inf, math.inf)
    mu = 1.0 / privacy.calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    squares = (math.sqrt(part) * mu, math.sqrt(1.0 - part) * mu)
    return _Shares(part * budget.epsilon, (1.0 - part) * budget.epsilon, *squares, squares=gaussian_embedding)


def _most_entered(counts: np.ndarray, facts: base.PublicFacts, unit: _UpdateUnit) -> int:
    """M, the largest number of releases that one unit enters. counts: int64 [clients], number of releases of each client."""
    if unit == "graph" or facts.holdings is None:
        return int(counts.max(initial=0))
    return int(np.asarray(facts.holdings.T @ counts).max(initial=0))


def _plan_protected(
    training: _UpdateTraining,
    clip: float,
    seen: _UpdatesSeen,
    unit: _UpdateUnit,
    facts: base.PublicFacts,
    table: _Attendance,
    given: _Shares,
    delta: float,
) -> tuple[list[privacy.PlannedRelease], int]:
    """(releases of the model path of ``dp_fedavg`` or ``dp_sgd``, least number of clients in every sum; 0: no sum).

    One graph changes one client's clipped value by at most 2C (unit ``graph``); a node that k clients hold changes all their
    values, each by at most 2C. M is the largest number of values that a unit enters, over rounds and holders. Each is priced as
    one Gaussian release of multiplier z, so a unit pays √M/z in μ, and z follows from the budget of the path.

        updates: each   the server sees every noisy value: std = 2C·z at each client; k values of a round compose to k·(1/z)²
        updates: sum    the server sees one sum a round. k changes add up *before* the noise, (k·2C)², and cost the charged
                        k·(1/z)² if the sum has std 2C·z·√k; each of n − 1 clients (one may collude) adds its share
    """
    counts = np.array([len(own) for own in table.trains], dtype=np.int64)
    entered = _most_entered(counts, facts, unit)
    if not entered:
        return [], 0
    least = min(len(who) for who in table.training)
    if seen == "sum" and least < 2:
        raise PrivacyError(f"updates: sum hides a client among the others of a round; some round has {least} client(s)")
    noised: tuple[privacy.NoiseMechanism, privacy.Event] = _CLIPPED_ONLY, _NO_NOISE
    if math.isfinite(given.training):
        if given.squares:
            multiplier = math.sqrt(entered) / given.training_mu
        else:
            multiplier = privacy.calibrate.gaussian_multiplier(entered, given.training, delta)
        std = 2.0 * clip * multiplier
        if seen == "sum":
            together = _most_entered((counts > 0).astype(np.int64), facts, unit)
            std *= math.sqrt(together / (least - 1))
        noised = privacy.GaussianNoise(std), privacy.Gaussian(multiplier)
    found = []
    for client, own in enumerate(table.trains):
        if own:
            graphs = len(facts.graphs[client]) if facts.graphs else 1
            kernel = privacy.sensitivity.kernel_name(clip_gradients)
            bound: privacy.SensitivityBound = (
                privacy.ClippedSum(clip, graphs, kernel) if training == "dp_sgd" else privacy.L2Ball(clip)
            )
            found.append(privacy.PlannedRelease("model", bound, *noised, own, client=client))
    return found, least if seen == "sum" else 0


_OF_ENCODING = (  # settings that no update reads
    "bits_per_row",
    "encoder",
    "epsilon_rule",
    "rectify",
    "embedding",
    "release",
    "pooled_by",
    "client_epsilons",
)
_MERGING = {"client_momentum": 0.0, "aggregate": "mean", "trim": 0.2}  # no settings, but a part of names of streams


_OwnEpsilon = Annotated[float, Field(gt=0)]


class Params(Settings):
    training: _UpdateTraining = Field(
        "fedavg",
        description="fedavg: updates in clear (the paper); dp_fedavg: clipped, noisy updates; dp_sgd: clipped, noisy "
        "gradients; public: trained on public labelled nodes; none: a random encoder",
    )
    unit: _UpdateUnit = Field(
        "node", description="one graph per client: protect a node at all its clients, or a client's whole graph"
    )
    training_share: float = Field(0.5, gt=0, lt=1, description="share of the budget for the updates (dp_fedavg, dp_sgd)")
    clip: float = Field(1.0, gt=0, allow_inf_nan=False, description="norm C of a client's update, or of a graph's gradient")
    updates: _UpdatesSeen = Field(
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
    personal: ClassVar[bool] = True  # read by nothing, as ``promised_degree``, but a part of names of streams
    release: _EncoderReleaseKind = Field(
        "rows", description="rows: every node's embedding; one graph per client: mean of them, or labels: shares of its classes"
    )
    pooled_by: _PooledEncoderName = Field(
        "gaussian", description="mechanism of mean and labels: gaussian, multi-bit or response"
    )
    encoder: _LocalEncoderName = Field(
        "multi-bit", description="multi-bit, multi-bit-total, multi-bit-node, gaussian-as-coded or none"
    )
    epsilon_rule: _EncoderRule = Field("epsilon", description="a graph's ε: the budget, or the budget times 1/n for n nodes")
    client_epsilons: dict[int, _OwnEpsilon] | None = Field(
        None, description="stricter ε of clients' own, at most the row's, by the client's number (from 0)"
    )
    bits_per_row: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entries of each row (or of the matrix) that are sent; auto: max(1, min(h, floor(ε/2.18)))"
    )
    rectify: bool = Field(False, description="the server makes multi-bit embeddings unbiased before it compares them")
    promised_degree: ClassVar[None] = None

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """The settings with ``_MERGING``, without ``client_epsilons`` if there are none, as names of streams need them."""
        given = [(k, v) for k, v in super().__repr_args__() if k != "client_epsilons" or v is not None]
        return [*given, *_MERGING.items()]

    @property
    def training_key(self) -> str:
        """The settings that shape updates: rows with the same key share their training.

        The key names its random streams, so another field changes the noise of every training.
        """
        merging = json.dumps(_MERGING, separators=(",", ":"))[1:-1]
        given = self.model_dump_json(exclude=set(_OF_ENCODING))
        return given.replace('"client_fraction":', f'{merging},"client_fraction":', 1)

    @property
    def protects(self) -> bool:
        """Whether updates leave a client clipped and noisy."""
        return self.training in ("dp_fedavg", "dp_sgd")

    @property
    def on_simplex(self) -> bool:
        """Whether each row of an embedding is a distribution over classes."""
        return self.embedding == "softmax"

    @property
    def releases_labels(self) -> bool:
        """Whether a graph is sent as the shares of its classes."""
        return self.release == "labels"

    @property
    def norm(self) -> shared_gnn.GinNorm:
        """The normalisation of gin's layers."""
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


def _own_epsilon(params: Params, client: int, num_clients: int, budget: float) -> float:
    """ε of one client's releases: its own if it states one, else the row's. ``ScenarioError`` if it is above the row's, or for
    clients that do not exist.
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


def _protection_of(params: Params, facts: base.PublicFacts, whole: bool) -> privacy.Protection:
    relation = privacy.Relation.GRAPH_REPLACE if whole else privacy.Relation.NODE_REPLACE
    assumed = [privacy.Assumption.MODEL_GIVEN] if params.training == "fedavg" else []
    assumed += [privacy.Assumption.UNTUNED, *base.assume_public_setting(facts, relation)]
    if facts.graphs:
        assumed.append(privacy.Assumption.SIZES_PUBLIC)
    if params.protects and params.updates == "sum":
        assumed.append(privacy.Assumption.UPDATES_SUMMED)
    if facts.public_graph is not None and (params.training == "public" or params.projection is not None):
        assumed.append(privacy.Assumption.PUBLIC_NODES)
    if params.training == "public":
        assumed.append(privacy.Assumption.PUBLIC_LABELS)
    return privacy.Protection(relation, facts.viewer, tuple(dict.fromkeys(assumed)))


def _notes_of(params: Params, facts: base.PublicFacts, whole: bool) -> tuple[str, ...]:
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


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of settings and public facts."""

    network: shared_gnn.SharedGnn  # the shared model
    projection: np.ndarray | None  # public projection of features, [d, k], or None
    public: Graph | None  # the public graph that trains (``training: public``), else None
    attendance: _Attendance
    sent: tuple[privacy.PlannedRelease, ...]  # this and the next one as in ``method_kinds.EmbedderMethodMade``
    sizes: tuple[tuple[int, ...], ...]
    encoding: EncoderSettings  # how rows are encoded
    pooled: _PooledEncoder | None  # how a graph is sent as one vector; None: every node has a row
    personal: bool  # whether a client embeds with parameters that it has trained once more
    graph_epsilons: list[list[float]]  # as in ``method_kinds.EmbedderMethodMade``


Planned: TypeAlias = base.Plan[Params, _Made]


_MOMENTUM = 0.9  # heavy ball at clients


@dataclass(frozen=True, eq=False)
class _Part:
    """One graph, ready for the network of the features that it has."""

    inputs: shared_gnn.SharedGnnInputs
    network: shared_gnn.SharedGnn
    where: np.ndarray  # int64, places of this network's parameters among those of the shared model


@dataclass(frozen=True, eq=False)
class Work(_Part):
    """All that a client holds, as one graph."""

    weight: float  # in the average, in (0, 1]
    batches: shared_gnn.SharedGnnBatches | None = None  # draws some graphs for each step; None: steps read all
    graphs: tuple[_Part, ...] = ()  # each of its graphs (``dp_sgd``), else empty


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    several, graph = plan.facts.graphs, _viewed(plan, subgraph.graph)
    sizes = several[subgraph.client] if several else None
    made, weight = _part(plan, graph, sizes), graph.num_nodes / sum(plan.facts.clients)
    if sizes is not None:
        weight = len(sizes) / sum(map(len, several))
    apart: tuple[_Part, ...] = ()
    if plan.params.training == "dp_sgd":
        rows = np.split(np.arange(graph.num_nodes), np.cumsum(sizes or (graph.num_nodes,))[:-1])
        apart = tuple(_part(plan, graph.induced(own), (own.size,) if several else None) for own in rows)
    batches = shared_gnn.SharedGnnBatches(graph.adjacency, sizes) if plan.params.batch_size is not None and sizes else None
    return Work(made.inputs, made.network, made.where, weight, batches, apart)


def _part(plan: Planned, graph: Graph, sizes: tuple[int, ...] | None) -> _Part:
    inputs = shared_gnn.prepare(plan.made.network, graph, sizes)
    return _Part(inputs, *shared_gnn.select_inputs(plan.made.network, inputs))


def _viewed(plan: Planned, graph: Graph) -> Graph:
    matrix = plan.made.projection
    return graph if matrix is None else replace(graph, features=sp.csr_array(graph.features @ matrix))


def train_locally(params: Params, work: Work, before: torch.Tensor) -> torch.Tensor:
    """The parameters after ``local_epochs`` steps (or passes, with ``batch_size``) from ``before``, with FedProx's pull."""
    vector, first, second, step = before, torch.zeros_like(before), torch.zeros_like(before), 0
    for epoch in range(params.local_epochs):
        parts = [work.inputs]
        if work.batches is not None and params.batch_size is not None:
            parts = work.batches.inputs(work.inputs, params.batch_size, epoch)
        for part in parts:
            seen: list[torch.Tensor] = []
            found, rate, step = shared_gnn.gradient(work.network, vector, part, seen), params.learning_rate, step + 1
            found = found + params.proximal * (vector - before) if params.proximal else found
            if params.optimiser == "adam":
                first, second = 0.9 * first + 0.1 * found, 0.999 * second + 0.001 * found * found
                moved = rate * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
            else:
                first = _MOMENTUM * first + found if params.optimiser == "momentum" else found
                moved = rate * first
            vector = shared_gnn.moved_statistics(work.network, vector - moved, seen)
    return vector


def update_of(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters], the change by local training, not clipped; zero for parameters that the client does not use."""
    before = layouts.to_device(parameters[work.where])
    update = np.zeros_like(parameters)
    update[work.where] = (train_locally(params, work, before) - before).cpu().numpy()
    return update


def clip_gradients(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters], the sum of the gradients of the client's graphs, each clipped to norm ``clip``."""
    total = np.zeros_like(parameters)
    for graph in work.graphs:
        total[graph.where] += clip_gradient(params, graph, parameters)
    return total


def clip_gradient(params: Params, graph: _Part, parameters: np.ndarray) -> np.ndarray:
    """float32, the gradient of one graph, clipped to norm ``clip``, for the parameters in ``graph.where``."""
    before = layouts.to_device(parameters[graph.where])
    found = shared_gnn.gradient(graph.network, before, graph.inputs).cpu().numpy()
    return privacy.L2Ball(params.clip).enforce(found)


def embedding_of(plan: Planned, work: Work, parameters: np.ndarray) -> np.ndarray:
    """The value that is released in a retrieval round: rows, or one vector of the graph. parameters: the broadcast ones."""
    pooled, params = plan.made.pooled, plan.params
    if pooled is not None and params.release == "labels":
        return pooled.value(_shares_of_classes(work.inputs.labels.cpu().numpy(), pooled.width))
    before = layouts.to_device(parameters[work.where])
    now = train_locally(params, work, before) if plan.made.personal else before
    rows = shared_gnn.embed(work.network, now, work.inputs, params.embedding)
    return rows if pooled is None else pooled.value(rows.mean(axis=0))


def _on_public(plan: Planned, parameters: np.ndarray, public: Graph) -> np.ndarray:
    """The parameters after full-batch training on the public labelled nodes, which no client holds."""
    part = _part(plan, _viewed(plan, public), None)
    start, how = layouts.to_device(parameters[part.where]), plan.params
    gradient = partial(shared_gnn.gradient, part.network, given=part.inputs)
    found = learning.descend_by_adam(start, gradient, how.public_steps, how.public_rate, 0.0)
    after = parameters.copy()
    after[part.where] = found.cpu().numpy()
    return after


def _step_of(plan: Planned, velocity: np.ndarray, inbox: base.PlanInbox) -> np.ndarray:
    """The change of the parameters, with momentum: the mean noisy update, or minus the mean noisy gradient of graphs."""
    params = plan.params
    training = plan.made.attendance.training[inbox.round]
    if params.training == "dp_sgd":
        count, rate = sum(len(plan.made.sizes[c]) for c in training), -params.learning_rate
    else:
        count, rate = len(training), params.server_rate
    return params.momentum * velocity + np.float32(rate / count) * inbox.sums["model"]


def _averaged(
    plan: Planned, before: np.ndarray, training: tuple[int, ...], changes: list[np.ndarray], where: Mapping[int, np.ndarray]
) -> np.ndarray:
    """The parameters after a round in clear: FedAvg's weighted average over the clients that trained.

    before: float32 [p]. changes: for each client that trained, float32, weighted by its share of all clients. where: client →
    entries of ``before`` that it changes.
    """
    counts = np.array([len(s) if plan.facts.graphs else sum(s) for s in plan.made.sizes], dtype=np.float64)
    missing = len(training) < plan.facts.num_clients
    scale = np.float32(counts.sum() / counts[list(training)].sum()) if missing else None
    parameters = before.copy()
    for client, change in zip(training, changes, strict=True):
        parameters[where[client]] += change if scale is None else change * scale
    return parameters


def _received_embedding(plan: Planned, client: int, received: np.ndarray) -> np.ndarray:
    """The server's estimate of an embedding: bits are made unbiased if the settings say so."""
    pooled, mechanism = plan.made.pooled, plan.made.sent[client].mechanism
    if pooled is not None:
        return pooled.read(received)
    if not plan.params.rectify:
        return received
    own = mechanism.parts if isinstance(mechanism, privacy.PerBlock) else (mechanism,)  # of each graph
    parts = zip(own, privacy.blocks.split(received, plan.made.sizes[client]), strict=True)
    return np.concatenate([m.rectify(h) if isinstance(m, privacy.MultiBitEncoder) else h for m, h in parts])


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers."""

    embeddings: tuple[np.ndarray | None, ...]  # for each client the latest one, as received or made unbiased; None: none
    kept: np.ndarray  # float32 [copies, num_parameters], the broadcast model every ``keep_every`` rounds
    where: Mapping[int, np.ndarray] = field(default_factory=dict)  # client → places of its parameters, int64 (``fedavg``)
    velocity: np.ndarray | None = None  # of protected updates, float32 [num_parameters]; else None


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """The releases of updates, and for each client an encoded embedding in each of its retrieval rounds."""
    clients = facts.num_clients
    if params.training in ("public", "none"):
        table = _idle_attendance(clients, params.dropout, params.attendance_seed)
    else:
        drawn = (params.client_fraction, params.dropout, params.attendance_seed)
        table = _draw_attendance(clients, params.rounds, params.retrieval_period, *drawn)
    net, projection = _network(params, facts)
    whole = bool(facts.graphs) or params.unit == "graph"
    unit: _UpdateUnit = "graph" if whole else "node"
    _shares_of_classes = params.release != "rows" and params.pooled_by == "gaussian"
    given = _split_budget(params.training, params.training_share, budget, _shares_of_classes)
    sizes = facts.graphs or tuple((n,) for n in facts.clients)
    encoding, pooled = _encoders(params, facts, budget, net, table, given, whole)
    sent, graph_epsilons = [], list[list[float]]()
    share = encoding.epsilon / budget.epsilon if budget.private else 1.0  # a client's own ε scales its encoding's
    for client, graphs in enumerate(sizes):
        own = _own_epsilon(params, client, len(sizes), budget.epsilon)
        mine = encoding if own == budget.epsilon else replace(encoding, epsilon=own * share)
        noised = mine.of_client(graphs) if pooled is None else pooled.of_client()
        sent.append(privacy.PlannedRelease("embedding", *noised, table.sends[client], client=client))
        graph_epsilons += mine.pure_losses([graphs], [sent[-1].count])
    of_model = _updates_in_clear(table) if params.training == "fedavg" else []
    least = 0
    if params.protects:
        how = (params.training, params.clip, params.updates, unit)
        of_model, least = _plan_protected(*how, facts, table, given, budget.delta)
    as_published = params.training == "fedavg" and params.release == "rows" and params.encoder != "none" and budget.private
    key = params.training_key
    made = _Made(
        network=net,
        projection=projection,
        public=facts.public_graph if params.training == "public" else None,
        attendance=table,
        sent=tuple(sent),
        sizes=sizes,
        encoding=encoding,
        pooled=pooled,
        personal=not facts.graphs and params.training != "none",
        graph_epsilons=graph_epsilons,
    )
    published = encoding.epsilon_of(min(min(own) for own in sizes)) if as_published else None
    sums = base.PlanSums(paths=(("model", least),) if least else ())
    holdings = None if whole else facts.holdings
    guarantee = privacy.Guarantee(_protection_of(params, facts, whole), budget.delta, holdings, per_end=False)
    rounds, releases = len(table.training) + 1, (*of_model, *(r for r in sent if r.count))
    if params.protects and of_model:
        key = f"{key}/{of_model[0].mechanism}/{of_model[0].event}"
    schedule = base.PlanSchedule(rounds, releases, 1, shared_rounds=table.retrievals[0], shared_key=key)
    notes = _notes_of(params, facts, whole)
    return base.Plan("local_dp", params, facts, guarantee, schedule, made, published, sums=sums, notes=notes)


def _network(params: Params, facts: base.PublicFacts) -> tuple[shared_gnn.SharedGnn, np.ndarray | None]:
    """(the shared model, the public projection [d, k] of its features, or None)."""
    if params.training == "public" and facts.public_graph is None:
        raise ScenarioError("training: public needs labelled public nodes: write public_share in the task")
    if facts.graphs and params.release != "rows":
        raise ScenarioError(f"release: {params.release} is for clients of one graph each; where they hold several: rows")
    d, k = facts.num_features, params.projection
    projection = None
    if k is not None and k < d and facts.public_graph is not None:
        projection = learning.projection.basis_of(facts.public_graph, k)
    elif k is not None and k < d:
        projection = (seeds.seeded_generator(0, "projection", d, k).standard_normal((d, k)) / math.sqrt(k)).astype(np.float32)
    inputs = d if projection is None else projection.shape[1]
    how = (params.hidden, params.layers, facts.num_classes, params.pooling, params.norm)
    return shared_gnn.make(params.model, inputs, *how), projection


def _encoders(
    params: Params,
    facts: base.PublicFacts,
    budget: base.Budget,
    net: shared_gnn.SharedGnn,
    table: _Attendance,
    given: _Shares,
    whole: bool,
) -> tuple[EncoderSettings, _PooledEncoder | None]:
    """(how rows are encoded; how one vector of a graph is sent, or None).

    A unit's budget is divided among all the embeddings that it enters. Under ``fedavg`` each graph's release has all of it, as
    in the paper. given: the budgets. whole: whether the unit is a graph.
    """
    width = shared_gnn.embedding_width(net, params.embedding)
    bits = None if params.bits_per_row == "auto" else params.bits_per_row
    entered = _most_entered(np.array([len(own) for own in table.sends]), facts, "graph" if whole else "node")
    times = 1 if params.training == "fedavg" else max(1, entered)
    epsilon = given.embedding / times if params.encoder != "gaussian-as-coded" else budget.epsilon
    softmax = params.embedding == "softmax"
    encoding = EncoderSettings(params.encoder, epsilon, params.epsilon_rule, width, softmax, bits)
    if params.release == "rows":
        return encoding, None
    mu, classes = given.embedding_mu / math.sqrt(times), facts.num_classes
    return encoding, _PooledEncoder(params.pooled_by, given.embedding / times, mu, classes, bits)


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    """Random parameters, or those after training on public nodes."""
    parameters = plan.made.network.layout.start(rng)
    if plan.made.public is not None:
        parameters = _on_public(plan, parameters, plan.made.public)
    velocity = np.zeros_like(parameters) if plan.params.protects else None
    nothing = (None,) * plan.facts.num_clients
    copies = parameters[:0].reshape(0, parameters.size)
    return base.State({"parameters": parameters}, _Memory(nothing, copies, velocity=velocity))


def client(
    plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The change of the parameters, and in retrieval rounds the encoded embedding.

    Algorithm 3 embeds with locally trained parameters, which depend on every node of the client. If clients hold several
    graphs, or nobody trains, the broadcast model embeds, and a row depends only on its own neighbourhood. In clear, only
    parameters that a client uses are sent; protected, all of them.
    """
    table, params = plan.made.attendance, plan.params
    trains, sends = table.trains[desk.client], table.sends[desk.client]
    if round_ not in trains and round_ not in sends:
        return {}
    before = layouts.to_device(model["parameters"][work.where])
    sent = {}
    if round_ in trains and params.protects:
        made = clip_gradients if params.training == "dp_sgd" else update_of
        sent["model"] = desk.release("model", made(params, work, model["parameters"]))
    elif round_ in trains:
        change = (train_locally(params, work, before) - before).cpu().numpy() * np.float32(work.weight)
        sent["change"] = desk.release("model", change)
        if round_ == trains[0]:
            sent["where"] = desk.release("vocabulary", work.where)
    if round_ in sends:
        sent["embedding"] = desk.release("embedding", embedding_of(plan, work, model["parameters"]))
    return sent


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """The next model, and the latest embedding of every client."""
    table, known = plan.made.attendance, state.memory
    where, embeddings, kept, velocity = dict(known.where), list(known.embeddings), known.kept, known.velocity
    before, model = state.model["parameters"], state.model
    if inbox.round < plan.params.rounds and "change" in inbox.each:
        training = table.training[inbox.round]
        new = [c for c in training if c not in where]
        where.update(zip(new, inbox.each.get("where", []), strict=True))
        model = {"parameters": _averaged(plan, before, training, inbox.each["change"], where)}
    if "model" in inbox.sums and velocity is not None:
        velocity = _step_of(plan, velocity, inbox)
        model = {"parameters": before + velocity}
    if plan.params.keep_every and inbox.round < plan.params.rounds and (inbox.round + 1) % plan.params.keep_every == 0:
        kept = np.concatenate([kept, model["parameters"][None]])
    if "embedding" in inbox.each:
        for client, rows in zip(table.present[inbox.round], inbox.each["embedding"], strict=True):
            embeddings[client] = _received_embedding(plan, client, rows)
    return base.State(model, _Memory(tuple(embeddings), kept, where, velocity))


def answers(plan: Planned, parameters: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """[graphs, c] scores of several graphs in clear, whose nodes follow one another in ``graph``."""
    return shared_gnn.score_graphs(plan.made.network, parameters, graph, sizes)


def in_clear(plan: Planned, state: base.State[_Memory], subgraph: Subgraph) -> np.ndarray:
    """float64 [n, h], the embedding of all nodes of a client by the trained model, not encoded."""
    work = prepare(plan, subgraph)
    parameters = layouts.to_device(state.model["parameters"][work.where])
    return shared_gnn.embed(work.network, parameters, work.inputs, plan.params.embedding)


OFFERS: base.Offers[Params, _Made, Work, _Memory] = base.Offers(
    kind="embedder",
    units=(privacy.Unit.NODE, privacy.Unit.GRAPH),
    situations=(
        base.MethodSituation("ego", (privacy.Trust.OWN_CLIENT,), {"rounds": 2}),
        base.MethodSituation("collection", (privacy.Trust.OWN_CLIENT,), {"rounds": 2}),
    ),
)
