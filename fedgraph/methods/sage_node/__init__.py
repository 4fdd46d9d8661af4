"""SAGE at node level: noisy sums of clipped subgraph gradients, one release per step.

A row is a training node with its bounded neighbourhood. Under promised degree D a node lies in at most D + 1 rows (one
layer) or D² + D + 1 (two layers); neighbours are chosen by public coins (``sampling.neighbour_sampling``), the clip is a
public number and batches are fresh: three things the released code does otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from fedgraph.errors import ScenarioError
from fedgraph.learning.clipping import subgraphs
from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.layers import graphsage
from fedgraph.learning.layers.models import Layout, logits, on_device
from fedgraph.learning.layers.sparse import FeatureMatrix, device, unit_rows
from fedgraph.learning.optimisers.dp_training import Descended, Descent, fixed_mask, masked, poisson_mask
from fedgraph.learning.sampling.neighbour_sampling import bounded
from fedgraph.learning.views.projection import project, public_basis
from fedgraph.methods.base import (
    Budget,
    Inbox,
    Kind,
    Plan,
    PublicFacts,
    Situation,
    State,
    Streams,
    gradient_std,
    setting_assumptions,
)
from fedgraph.methods.sage_node.params import Params
from fedgraph.privacy.accounting import subgraph_noise
from fedgraph.privacy.claims.sage import affected_subgraphs
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.units import Assumption, Protection
from fedgraph.types import Graph, Subgraph

REFERENCE = """@article{daigavane2021node,
  title = {Node-Level Differentially Private Graph Neural Networks},
  author = {Daigavane, Ameya and Madan, Gagan and Sinha, Aditya and Thakurta, Abhradeep Guha and Aggarwal, Gaurav and Jain, Prateek},
  journal = {arXiv preprint arXiv:2111.15521}, year = {2021}}
@inproceedings{wu2022linkteller,
  title = {{LinkTeller}: Recovering Private Edges from Graph Neural Networks via Influence Analysis},
  author = {Wu, Fan and Long, Yunhui and Zhang, Ce and Li, Bo},
  booktitle = {IEEE Symposium on Security and Privacy}, year = {2022}}"""  # fmt: skip  # noqa: E501

KIND: Kind = "classifier"
SITUATIONS = (
    Situation("inductive", settings={"steps": 5, "projection": 16}),
    Situation("inductive", ("central",), {"steps": 3, "projection": 16, "layers": 2, "degree": 3}),
)

COIN = 0  # names the public coins that choose neighbours


@dataclass(frozen=True, eq=False)
class Work:
    """A client's rows: aggregated features (one layer) or subgraphs (two layers), and labels."""

    rows: FeatureMatrix | subgraphs.Roots
    labels: torch.Tensor


@dataclass(frozen=True, eq=False)
class Made:
    """stage: what a step costs. basis: public directions [d, k] that features are projected on, or None. widths: layout of one
    layer's parameters, or of two.
    """

    stage: subgraph_noise.Stage
    basis: np.ndarray | None
    network: graphsage.Widths | Layout


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """One noise multiplier for all steps; each client's event is priced for its own number of rows."""
    if facts.public_graph is None:
        raise ScenarioError("sage_node is tested on a public graph: set the task's protocol: inductive")
    touched = affected_subgraphs(params.degree, params.layers)
    stage = subgraph_noise.Stage(
        params.steps, params.sampling_rate, touched, params.batches == "fixed", params.protects.replaces
    )
    mechanism: Mechanism = Disclose("no noise was asked for")
    events: list[Any] = [Unprotected("no noise")] * facts.num_clients
    published, min_clients = None, 1
    if budget.private:
        sizes = facts.client_sizes
        multiplier = subgraph_noise.noise_multiplier(stage, sizes, budget.epsilon, budget.delta, budget.calibrated_by)
        std, min_clients = gradient_std(multiplier, params.clip, facts)
        mechanism, events = GaussianNoise(std), [stage.event(multiplier, n) for n in sizes]
        published = subgraph_noise.published_epsilon(stage, multiplier, sizes, budget.delta)
    bound = ClippedSum(params.clip, facts.num_nodes)
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.HYPERPARAMETERS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        Assumption.TEST_GRAPH_PUBLIC,
        Assumption.PROMISED_DEGREE,
        *setting_assumptions(facts),
    )
    return Plan(
        method="sage_node",
        params=params,
        rounds=params.steps,
        releases=tuple(
            PlannedRelease("model", bound, mechanism, event, range(params.steps), client=client)
            for client, event in enumerate(events)
        ),
        protection=Protection(params.protects, facts.viewer, assumed, params.degree),
        delta=budget.delta,
        facts=facts,
        epsilon_published=published,
        min_clients=min_clients,
        made=_made(params, facts, stage),
        notes=(f"A node is in at most {touched} training subgraphs, if no node has more than {params.degree} neighbours.",),
    )


def _made(params: Params, facts: PublicFacts, stage: subgraph_noise.Stage) -> Made:
    known = facts.public_graph
    basis = public_basis(known, params.projection) if params.projection and known is not None else None
    inputs = facts.num_features if basis is None else basis.shape[1]
    two = graphsage.Widths(inputs, params.hidden, facts.num_classes)
    return Made(stage, basis, two if params.layers == 2 else Layout((2 * inputs, facts.num_classes)))


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[Descended]:
    memory = _descent(plan).start(plan.made.network.start(rng))
    return State({"parameters": memory.parameters}, memory)


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    graph = subgraph.graph
    adjacency = bounded(graph.adjacency, plan.params.degree, subgraph.nodes, COIN)
    return Work(_rows(plan, graph, adjacency), torch.tensor(graph.labels, device=device()))


def client(
    plan: Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """The noisy sum of this batch's clipped subgraph gradients."""
    stage = plan.made.stage

    def gradient() -> np.ndarray:
        rng, n = streams.generator("batch"), len(work.labels)
        mask = fixed_mask(n, stage.batch_size(n), rng) if stage.fixed else poisson_mask(n, stage.rate, rng)
        labels, network, clip = masked(work.labels, mask), plan.made.network, plan.params.clip
        if isinstance(work.rows, subgraphs.Roots) and isinstance(network, graphsage.Widths):
            return subgraphs.clipped_sum(network, model["parameters"], work.rows, labels, clip)
        assert isinstance(work.rows, FeatureMatrix)
        assert isinstance(network, Layout)
        return clipped_gradient_sum(network, model["parameters"], work.rows, labels, clip)

    return {"gradient": desk.release("model", gradient)}


def server(plan: Plan[Params, Made], state: State[Descended], inbox: Inbox) -> State[Descended]:
    """One step on the mean over the public batch sizes."""
    stage, sizes = plan.made.stage, plan.facts.client_sizes
    rows = sum(stage.batch_size(n) if stage.fixed else stage.rate * n for n in sizes)
    memory = _descent(plan).step(state.memory, inbox.sums["gradient"] / np.float32(rows), inbox.round)
    return State({"parameters": memory.parameters}, memory)


def predict(plan: Plan[Params, Made], state: State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph, its neighbourhoods bounded in the same way."""
    adjacency = bounded(graph.adjacency, plan.params.degree, np.arange(graph.num_nodes), COIN)
    average, network = state.memory.average, plan.made.network
    if isinstance(network, Layout):
        return logits(network, average, FeatureMatrix(subgraphs.with_neighbours(_features(plan, graph), adjacency)))
    features = FeatureMatrix(_features(plan, graph))
    found = graphsage.scores(network, on_device(average), features, graphsage.Mean(adjacency))
    return found.cpu().numpy()


def _rows(plan: Plan[Params, Made], graph: Graph, adjacency: sp.csr_array) -> FeatureMatrix | subgraphs.Roots:
    features = _features(plan, graph)
    if plan.params.layers == 2:
        return subgraphs.roots(features, adjacency)
    return FeatureMatrix(subgraphs.with_neighbours(features, adjacency))


def _features(plan: Plan[Params, Made], graph: Graph) -> sp.csr_array:
    basis = plan.made.basis
    return unit_rows(graph.features) if basis is None else project(graph.features, basis)


def _descent(plan: Plan[Params, Made]) -> Descent:
    p = plan.params
    return Descent(p.learning_rate, p.momentum, p.steps, p.averaged)
