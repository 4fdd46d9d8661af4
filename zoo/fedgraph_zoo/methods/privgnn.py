"""PrivGnn: noisy answers of teachers on private neighbourhoods label a public graph, on which a student learns.

Round q: a fresh, secret coin of rate γ per private node says who takes part. Of those with a label the K whose features are
most like the q-th public query form a subgraph, a graph convolution network is trained on it, and its posterior for the query,
read in the public graph, is released with noise. The student is trained on that graph, of which nobody knows a label, with
the largest entry of each noisy posterior as the label of its query. Federated, every client has a teacher of its own for each
query, and posteriors are averaged.

**Guarantee.** Node level, zero-out: a node without label takes no part, so "drawn and gone" and "not drawn" are the same, and
one coin amplifies one answer. Two posteriors are at most √2 apart in L2, as (1, 0) and (0, 1) are, whatever the teacher is, so
an answer is a Gaussian with Poisson sampling. Who is unlike the query pays as much as who is like it.

Published: Laplace noise of scale 1/ε on each entry of a posterior, which the released code (iyempissy/privGnn at 6a23b2ca)
prices at a distance of 1, with Poisson sampling; posteriors are up to 2 apart in L1. ``epsilon_published`` is the price that
its accountant gives a Gaussian at that distance; it chooses no noise for a total. The released code draws samples of fixed
size, which amplify another relation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.learning import NetworkShape, descents, fitting, torch, unit_matrix_rows
from fedgraph.methods import base
from fedgraph.privacy import (
    Assumption,
    Desk,
    GaussianNoise,
    PlannedRelease,
    Relation,
    SimplexRows,
    Unit,
    aggregation_noise,
    sensitivity,
)
from fedgraph.types import Graph, Subgraph

REFERENCE = """\
@article{olatunji2023releasing,
  title = {Releasing Graph Neural Networks with Differential Privacy Guarantees},
  author = {Olatunji, Iyiola E. and Funke, Thorben and Khosla, Megha},
  journal = {Transactions on Machine Learning Research}, year = {2023},
  doi = {10.48550/arXiv.2109.08907}}
"""

_ONE_ANSWER = SimplexRows(1)


class Params(Settings):
    queries: int = Field(60, ge=1, description="public nodes that are asked; each is paid for")
    sampling_rate: float = Field(0.3, gt=0, le=1, description="γ, probability that a private node takes part in an answer")
    neighbours: int = Field(100, ge=1, description="K, private nodes of most similar features that a teacher is trained on")
    hidden: int = Field(32, ge=1, description="hidden units of teachers and student")
    teacher_epochs: int = Field(60, ge=1, description="Adam steps of a teacher")
    student_epochs: int = Field(100, ge=1, description="Adam steps of the student")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    public: Graph  # the graph that is asked about
    rows: sp.csr_array  # CSR [n, d], its features at unit length


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    graph: Graph  # of the client
    rows: sp.csr_array  # CSR [n_i, d], its features at unit length


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    seed: int  # of the student
    answers: tuple[np.ndarray, ...] = ()  # noisy mean posteriors so far, float [c] each, in the order of queries


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One release per query."""
    public = facts.public_graph
    if public is None:
        raise ScenarioError("privgnn labels a public graph: set the task's protocol: inductive")
    relation, delta2 = Relation.NODE_ZERO_OUT, sensitivity.l2(_ONE_ANSWER, Relation.NODE_ZERO_OUT)
    mechanism, event = base.PLAN_WITHOUT_NOISE
    queries, published, min_clients = min(params.queries, public.num_nodes), None, 1
    if budget.private:
        pipeline = aggregation_noise.NodeAggregation(queries, params.sampling_rate, hops=0, replaced=False)
        reading = budget.calibrated_by
        found = aggregation_noise.node_level(pipeline, 0.0, budget.epsilon, budget.delta, reading, 1.0).gradient
        multiplier = found / delta2 if reading == "published" else found  # published: Δ = 1
        std, min_clients = base.gradient_std(multiplier, delta2, facts)
        mechanism, event = GaussianNoise(std), pipeline.gradient_event(multiplier)
        published = aggregation_noise.claimed_epsilon(pipeline, multiplier * delta2, 1.0, budget.delta)
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *base.assume_public_facts(facts))
    made = Made(public, unit_matrix_rows(public.features))
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=False)
    release = PlannedRelease("answer", _ONE_ANSWER, mechanism, event, range(queries))
    schedule = base.PlanSchedule(queries, (release,), min_clients)
    return base.Plan("privgnn", params, facts, guarantee, schedule, made, published)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    """Which public nodes are asked, by public coins: int64 [queries, 1]."""
    chosen = rng.permutation(plan.made.public.num_nodes)[: plan.schedule.rounds]
    return base.State({"queries": chosen[:, None]}, Memory(int(rng.integers(2**31))))


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    return Work(subgraph.graph, unit_matrix_rows(subgraph.graph.features))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The noisy posterior of this round's query."""
    query = int(model["queries"][round_, 0])

    def posterior() -> np.ndarray:
        drawn = descents.draw_poisson_mask(work.graph.num_nodes, plan.params.sampling_rate, streams.generator("batch"))
        taking = np.flatnonzero(drawn & (work.graph.labels >= 0))
        like = (work.rows[taking] @ plan.made.rows[[query]].T).toarray().ravel()
        nearest = taking[np.argsort(-like, kind="stable")[: plan.params.neighbours]]
        return _posterior(plan, work.graph, nearest, query)[None]

    return {"answer": desk.release("answer", posterior)}


def _posterior(plan: Planned, graph: Graph, nodes: np.ndarray, query: int) -> np.ndarray:
    """float [c]: what a network trained on the subgraph of ``nodes`` says of the query; uniform where there is no node."""
    if nodes.size == 0:
        return np.full(graph.num_classes, 1 / graph.num_classes)
    part = graph.induced(np.sort(nodes))
    scores = _scores(plan, part, part.labels, plan.params.teacher_epochs, 0, lambda step: step, plan.made.public)
    return torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=1).numpy()[query]


def _scores(
    plan: Planned, graph: Graph, labels: np.ndarray, epochs: int, seed: int, of_step: Callable[[int], int], asked: Graph
) -> np.ndarray:
    """[n, c] for ``asked``, of a network that is trained on ``graph``."""
    shape = NetworkShape("gcn", plan.facts.num_features, plan.facts.num_classes, plan.params.hidden)
    network, before = fitting.build_network_for_fitting(shape, seed), fitting.start_fitting(shape, seed)
    inputs, how = fitting.prepare_fitting_inputs(graph), fitting.FittingSteps(epochs, 0, 0.01, 5e-4)
    after = fitting.continue_fitting(network, inputs, labels, before, how, of_step)
    return fitting.score_after_fitting(network, after.vector, fitting.prepare_fitting_inputs(asked))


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Keep the mean of the clients' answers."""
    answer = inbox.sums["answer"][0] / inbox.num_clients
    return base.State(state.model, Memory(state.memory.seed, (*state.memory.answers, answer)))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores of the student, which learns on the public graph."""
    answers, public, seed = state.memory.answers, plan.made.public, state.memory.seed
    if len(answers) < plan.schedule.rounds:
        raise RuntimeFailure("privgnn was asked for predictions before its last answer")
    labels = np.full(public.num_nodes, -1, dtype=np.int64)
    labels[state.model["queries"][:, 0]] = np.array(answers).argmax(axis=1)
    return _scores(plan, public, labels, plan.params.student_epochs, seed, lambda step: seed + step, graph)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(base.MethodSituation("inductive", settings={"queries": 4, "teacher_epochs": 5, "student_epochs": 20}),),
)
