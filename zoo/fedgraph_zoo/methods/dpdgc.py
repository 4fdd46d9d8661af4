"""DPDGC at edge level: a network reads rows of the adjacency matrix, is trained with noise, and its outputs are released once.

Rounds 0 … T−1: clients send noisy sums of clipped gradients of a logistic regression from a node's row of the adjacency matrix
(at unit length) to its label. Round T: every node's class probabilities by the averaged parameters are released with noise. The
server then trains a classifier on public rows and the released ones (*decoupled*: features never pass along an edge), and how
much of them to read is chosen on public labels.

**Guarantee.** Edge level, features and labels are public. An undirected edge is in the rows of both its ends. Each row's
clipped gradient becomes any other: Δ₂ = 4C for the sum. Each row of probabilities becomes any other, at most √2 away:
Δ₂ = 2. All are Gaussians of one composition. Published: one row is replaced, 2C, and a released row moves by its own norm, 1.

``batch: B`` is the released code's training: each step reads B labelled rows, drawn in secret without replacement, of which an
edge touches two. As published one noise scale then serves both stages (``dpdgc_claim``); it is priced here with both rows.

``neighbours: k`` chooses the noise so that any k edges of one node are protected together at ε (the paper's k-neighbour level,
but with public features): they are in k + 1 rows, so Δ₂ = 2(k + 1)C and √(2(k + 1)). What is printed for one edge is then less.

Federated, who sees what: the server sees each client's sums and rows (behind secure aggregation: their sums), clients see the
parameters. A client's rows hold edges among its own nodes; edges between clients are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.special import softmax

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import (
    Descended,
    FeatureMatrix,
    Layout,
    descents,
    layouts,
    per_sample,
    torch,
    torch_device,
    unit_matrix_rows,
)
from fedgraph.learning import public_training as public
from fedgraph.methods import base
from fedgraph.methods.base import node_caps, noisy_hops
from fedgraph.privacy import (
    Composed,
    Desk,
    EndsClippedSum,
    EndsSimplexRows,
    Event,
    FixedSizeGaussian,
    Gaussian,
    GaussianNoise,
    NoiseMechanism,
    PlannedRelease,
    Relation,
    Repeated,
    Trust,
    Unit,
    calibrate,
    gaussian,
    sensitivity,
)
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo import dpdgc_claim

REFERENCE = r"""@inproceedings{chien2023differentially,
  title = {Differentially Private Decoupled Graph Convolutions for Multigranular Topology Protection},
  author = {Chien, Eli and Chen, Wei-Ning and Pan, Chao and Li, Pan and {\"O}zg{\"u}r, Ayfer and Milenkovic, Olgica},
  booktitle = {Advances in Neural Information Processing Systems}, year = {2023},
  doi = {10.48550/arXiv.2307.06422}}
"""

_ENDS = 2  # rows that one edge turns
_CLAIMED_GRADIENT, _CLAIMED_ROWS = 2.0, 1.0  # Δ₂ as published: in clips, and in norms of a released row


_K_EDGES = (
    "Any {k} edges of one node, which turn {rows} rows, are protected together at ε ≤ {epsilon:.4g}; the ε of this row is of "
    "one edge."
)


class Params(Settings):
    neighbours: int = Field(1, ge=1, description="edges of one node that are protected together at ε: k-neighbour level")
    steps: int = Field(40, ge=0, description="gradient steps of the network on adjacency rows T; 0: no edge is read (ε = 0)")
    batch: int = Field(0, ge=0, description="labelled rows of a gradient step, drawn without replacement; 0: all nodes' rows")
    rows_share: ClassVar[float] = 0.5  # share of the squared loss for the released rows
    clip: float = Field(0.5, gt=0, description="norm to which a row's gradient is clipped")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    hidden: int = Field(64, ge=1, description="hidden units of the public encoder of features")
    classifier: int = Field(32, ge=0, description="hidden units of the classifier; 0: logistic regression")
    epochs: int = Field(100, ge=1, description="Adam steps of the encoder, half of the classifier's")
    folds: int = Field(5, ge=2, description="folds of the encoder's out-of-fold rows")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    attributes: Graph  # every node's public features and labels
    layout: Layout  # of the network on adjacency rows


@dataclass(frozen=True, eq=False)
class Work:
    """A client's rows."""

    x: FeatureMatrix  # its adjacency rows over all nodes, [n_i, n], at unit length
    labels: torch.Tensor  # int64 [n_i], −1 where unknown
    nodes: np.ndarray  # int64 [n_i], whose rows they are


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    seed: int  # of the classifier
    descended: Descended  # how far the private network is
    released: np.ndarray | None = None  # float [n, c], noisy probabilities as they came; None until then
    scores: np.ndarray | None = None  # float [n, c], of the classifier; None until it is trained


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """T gradients and one release of rows, priced at 4C and 2."""
    attributes = base.require_public_attributes("dpdgc", facts)
    if facts.cut_edges_shared:
        raise ScenarioError("dpdgc reads edges within a client: write cut_edges: dropped, or use method: gap_edge")
    relation, n, steps = Relation.EDGE_UNDIRECTED, facts.num_nodes, params.steps
    bounds = (EndsClippedSum(params.clip, n, sensitivity.kernel_name(per_sample.clipped_sum)), EndsSimplexRows(n))
    true = tuple(sensitivity.l2(bound, relation) for bound in bounds)
    noised: tuple[tuple[NoiseMechanism, Event], ...] = (base.PLAN_WITHOUT_NOISE,) * 2
    published, min_clients, notes = 0.0 if budget.private else None, 1, tuple[str, ...]()
    labelled = int((attributes.labels >= 0).sum())
    if params.batch:
        _require_one_whole(params, facts, labelled)
    if budget.private and steps:
        stds, published = (_batch_stds if params.batch else _whole_stds)(params, budget, labelled, true)
        shares = [base.gradient_std(1.0, std, facts) for std in stds]
        min_clients = shares[0][1]
        events: list[Event] = [Gaussian(std / change) for std, change in zip(stds, true, strict=True)]
        if params.neighbours > 1:
            rows = (1 + params.neighbours) / _ENDS
            moved = math.sqrt(steps * (rows * true[0] / stds[0]) ** 2 + rows * (true[1] / stds[1]) ** 2)
            together = gaussian.epsilon(moved, budget.delta)
            notes = (_K_EDGES.format(k=params.neighbours, epsilon=together, rows=1 + params.neighbours),)
        if params.batch:
            events[0] = _batch_step(stds[0] / params.clip, params.batch, labelled)
        noised = tuple((GaussianNoise(share), event) for (share, _), event in zip(shares, events, strict=True))
    releases = (
        PlannedRelease("gradient", bounds[0], *noised[0], range(steps)),
        PlannedRelease("rows", bounds[1], *noised[1], range(steps, steps + 1)),
    )
    made = Made(attributes, Layout((n, facts.num_classes)))
    guarantee = base.guarantee_from_public_facts(facts, relation, base.FACTS_ATTRIBUTES_PUBLIC, budget.delta, per_end=False)
    schedule = base.PlanSchedule(steps + 1 if steps else 0, releases if steps else (), min_clients)
    return base.Plan("dpdgc", params, facts, guarantee, schedule, made, published, notes=notes)


def _require_one_whole(params: Params, facts: base.PublicFacts, labelled: int) -> None:
    if facts.num_clients > 1 or params.neighbours > 1 or params.batch > labelled:
        raise ScenarioError(
            f"dpdgc: batch: {params.batch} with neighbours: {params.neighbours} at {facts.num_clients} clients; allowed: "
            f"one client, neighbours: 1, and at most the {labelled} labelled rows, or batch: 0"
        )


def _whole_stds(
    params: Params, budget: base.Budget, labelled: int, true: tuple[float, ...]
) -> tuple[tuple[float, float], float]:
    """(noise of a gradient, of the rows; published ε) where every step reads all rows."""
    steps, whole = params.steps, calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    wanted = whole * math.sqrt(steps / (1 - params.rows_share)), whole / math.sqrt(params.rows_share)
    claimed = (_CLAIMED_GRADIENT * params.clip, _CLAIMED_ROWS)
    rows = (1 + params.neighbours) / _ENDS  # so many times those that one edge turns
    priced = claimed if budget.calibrated_by == "published" else true
    stds = (wanted[0] * (priced[0] * rows), wanted[1] * (priced[1] * math.sqrt(rows)))
    return stds, gaussian.epsilon(math.hypot(math.sqrt(steps) * claimed[0] / stds[0], claimed[1] / stds[1]), budget.delta)


def _batch_stds(
    params: Params, budget: base.Budget, labelled: int, true: tuple[float, ...]
) -> tuple[tuple[float, float], float]:
    """The same where a step reads a batch: as published one noise scale for both stages, else by shares of the squared loss."""
    how = (params.batch, labelled, params.steps, budget.delta)
    if budget.calibrated_by == "published":
        scale = dpdgc_claim.noise_scale(budget.epsilon, *how)
        return (scale * _CLAIMED_GRADIENT * params.clip, scale * _CLAIMED_ROWS), dpdgc_claim.epsilon(scale, *how)
    to_step = true[0] / params.clip * params.batch / labelled * math.sqrt(params.steps / (1 - params.rows_share))
    to_rows = 1 / math.sqrt(params.rows_share)

    def cost(m: float) -> Event:
        step = _batch_step(m * to_step, params.batch, labelled)
        return Composed((Repeated(step, params.steps), Gaussian(m * to_rows)))

    found = calibrate.noise_multiplier_of(cost, budget.epsilon, budget.delta)
    stds = (found * to_step * params.clip, found * to_rows * true[1])
    # the released code has one noise scale: what it would say of the smaller of the two
    return stds, dpdgc_claim.epsilon(min(stds[0] / (_CLAIMED_GRADIENT * params.clip), stds[1] / _CLAIMED_ROWS), *how)


def _batch_step(multiplier: float, batch: int, labelled: int) -> Event:
    return FixedSizeGaussian(multiplier, batch, labelled, touched_rows=_ENDS, replaced=True)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    descended = node_caps.descent_of(plan.params).start(plan.made.layout.start(rng))
    memory = Memory(int(rng.integers(2**63)), descended)
    if not plan.params.steps:
        return base.State({}, replace(memory, scores=_learnt(plan, memory)))
    return base.State({"parameters": descended.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    own, labels = subgraph.graph.adjacency.tocoo(), plan.made.attributes.labels[subgraph.nodes]
    there = (np.ones(own.nnz, np.float32), (own.coords[0], subgraph.nodes[own.coords[1]]))
    rows = sp.csr_array(there, shape=(subgraph.nodes.size, plan.facts.num_nodes))
    return Work(FeatureMatrix(unit_matrix_rows(rows)), torch.tensor(labels, device=torch_device()), subgraph.nodes)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The noisy gradient sum; in round T the noisy probabilities of the client's nodes."""
    if round_ < plan.params.steps:

        def gradient() -> np.ndarray:
            labels = _batch(plan, work, streams) if plan.params.batch else work.labels
            return per_sample.clipped_sum(plan.made.layout, model["parameters"], work.x, labels, plan.params.clip)

        return {"gradient": desk.release("gradient", gradient)}

    def rows() -> np.ndarray:
        found = _probabilities(layouts.logits(plan.made.layout, model["parameters"], work.x))
        return noisy_hops.send_rows(plan, work.nodes, found)

    return {"rows": desk.release("rows", rows)}


def _batch(plan: Planned, work: Work, streams: base.PlanStreams) -> torch.Tensor:
    """Labels of this step's rows, −1 elsewhere."""
    labelled = np.flatnonzero(work.labels.cpu().numpy() >= 0)
    mask = np.zeros(len(work.labels), dtype=bool)
    mask[labelled[descents.draw_fixed_mask(labelled.size, plan.params.batch, streams.generator("batch"))]] = True
    return descents.mask_labels(work.labels, mask)


def _probabilities(scores: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(scores.astype(np.float64), axis=1))


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """One step; the averaged parameters before the last round; then the classifier."""
    memory, steps = state.memory, plan.params.steps
    if inbox.round == steps:
        memory = replace(memory, released=noisy_hops.receive(plan, inbox, "rows"))
        return base.State(state.model, replace(memory, scores=_learnt(plan, memory)))
    rows = np.float32(plan.params.batch or (plan.made.attributes.labels >= 0).sum())
    after = node_caps.descent_of(plan.params).step(memory.descended, inbox.sums["gradient"] / rows, inbox.round)
    shown = after.average if inbox.round == steps - 1 else after.parameters
    return base.State({"parameters": shown}, replace(memory, descended=after))


def _learnt(plan: Planned, memory: Memory) -> np.ndarray:
    """float [n, c], of a classifier on public rows and, where they help on public labels, the released ones."""
    p, labels, classes = plan.params, plan.made.attributes.labels, plan.facts.num_classes
    encoder = public.PublicTrainingEncoder("classes", p.hidden, p.folds, public.PublicTrainingSteps(p.epochs, 0.01, 5e-4))
    inputs = [public.encode(plan.made.attributes, encoder).own]
    if memory.released is not None:
        inputs.append((memory.released - 1 / classes).astype(np.float32))
    widths = (*((p.classifier,) if p.classifier else ()), classes)
    how = public.PublicTrainingSteps(2 * p.epochs, 0.02, 1e-3)
    rng = np.random.default_rng(memory.seed)
    return public.classify(inputs, labels, widths, how, True, rng).scores(inputs)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores from what was released; ``graph`` is not read."""
    return base.require_received(plan, state.memory.scores)


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """For each pair [m, 2] the log-likelihood ratio of the released rows of both ends, the edge there against not, times s².

    graph: what is known, without the pairs; other pairs in question are left out. Gradients are not read. None where nothing
    was released.
    """
    if state.memory.released is None:
        return None
    ratios, known = np.zeros(len(pairs)), graph.adjacency.tolil()
    for place, (one, two) in enumerate(pairs):
        for end, other in ((one, two), (two, one)):
            without = np.zeros((1, graph.num_nodes), dtype=np.float32)
            without[0, known.rows[end]] = 1
            with_it = without.copy()
            with_it[0, other] = 1
            both = FeatureMatrix(unit_matrix_rows(sp.csr_array(np.concatenate([without, with_it]))))
            zero, there = _probabilities(layouts.logits(plan.made.layout, state.model["parameters"], both))
            ratios[place] += (state.memory.released[end] - (zero + there) / 2) @ (there - zero)
    return ratios


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.EDGE,),
    reads=lambda plan: base.MethodReads.NOTHING,
    situations=(
        base.MethodSituation("transductive", settings={"steps": 5}),
        base.MethodSituation("transductive", (Trust.CURATOR,), {"steps": 5, "batch": 20}),
    ),
    evidence=evidence,
)
