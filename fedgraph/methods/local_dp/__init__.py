"""Local DP embeddings for Gromov-Wasserstein (Jin & Chen): FedAvg on small graphs, then encoded embeddings.

Clients train a shared GCN or GIN: R rounds of FedAvg or FedProx with E full-batch steps each (Algorithm 3). A client is one
small graph with node labels (an ego-network), or holds several graphs, with a label each (scores are pooled) or node labels.
Every s rounds, or once at the end, each client sends its embedding in [0, 1]^(n×h) through an encoder. Algorithm 3 trains
once more first; then every row depends on all that the client holds, so that is done only where all of it is priced as one
(``client``).

Two paths, priced apart and together. **model**: the updates, ε = ∞ in the paper (``training: fedavg``); protected, or not sent
at all, under the other values of ``training`` (``updates``). **embedding**: what ``encoders`` states for rows,
and for one vector per graph; retrievals add up.

The unit is the graph where clients hold whole graphs (graph-replace of known size; graphs of one client are apart, the worst
counts), or where ``unit: graph`` says so: then all that a client holds is one unit. Otherwise it is the node: a node may be in
several ego-networks, and its loss adds up over all of them. Under ``fedavg`` the budget is each graph's, as the paper has it,
so a node may pay more; under every other training the budget is the unit's, for all that is released. What text, proof and
released code disagree on is in ``published``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fedgraph import learning, seeds
from fedgraph.errors import ScenarioError
from fedgraph.learning import layouts, shared_gnn
from fedgraph.methods import base, local_dp
from fedgraph.methods.local_dp import evidence
from fedgraph.methods.local_dp import local_training as local_training
from fedgraph.methods.local_dp import updates as updates
from fedgraph.methods.local_dp.encoders import EncoderSettings, PooledEncoder
from fedgraph.methods.local_dp.evidence import reads_rounds
from fedgraph.methods.local_dp.local_training import Made, Planned, Work
from fedgraph.methods.local_dp.local_training import prepare as prepare
from fedgraph.methods.local_dp.params import Params
from fedgraph.privacy import Desk, Guarantee, PlannedRelease, Trust, Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("jin2022gromov", "sajadmanesh2021locally")


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    embeddings: tuple[np.ndarray | None, ...]  # per client the latest one, as received or made unbiased; None where none came
    kept: np.ndarray  # float32 [copies, num_parameters], the model every ``keep_every`` rounds (all clients were sent them)
    # per client that has trained in clear, where its parameters are, int64
    where: Mapping[int, np.ndarray] = field(default_factory=dict)
    velocity: np.ndarray | None = None  # of protected updates, float32 [num_parameters]; else None


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """What the updates release, and per client an encoded embedding in each of its retrieval rounds."""
    clients = facts.num_clients
    if params.training in ("public", "none"):
        table = updates.idle_attendance(clients, params.dropout, params.attendance_seed)
    else:
        drawn = (params.client_fraction, params.dropout, params.attendance_seed)
        table = updates.draw_attendance(clients, params.rounds, params.retrieval_period, *drawn)
    net, projection = _network(params, facts)
    whole = bool(facts.graphs) or params.unit == "graph"
    unit: updates.UpdateUnit = "graph" if whole else "node"
    histogram = params.release != "rows" and params.pooled_by == "gaussian"
    given = updates.split_budget(params.training, params.training_share, budget, histogram)
    sizes = facts.graphs or tuple((n,) for n in facts.clients)
    encoding, pooled = _encoders(params, facts, budget, net, table, given, whole)
    sent, graph_epsilons = [], list[list[float]]()
    share = encoding.epsilon / budget.epsilon if budget.private else 1.0  # a client's own ε scales its encoding's
    for client, graphs in enumerate(sizes):
        own = local_dp.params.own_epsilon(params, client, len(sizes), budget.epsilon)
        mine = encoding if own == budget.epsilon else replace(encoding, epsilon=own * share)
        noised = mine.of_client(graphs) if pooled is None else pooled.of_client()
        sent.append(PlannedRelease("embedding", *noised, table.sends[client], client=client))
        graph_epsilons += mine.pure_losses([graphs], [sent[-1].count])
    of_model = updates.in_clear(table) if params.training == "fedavg" else []
    least = 0
    if params.protects:
        how = (params.training, params.clip, params.updates, unit)
        of_model, least = updates.plan_protected(*how, facts, table, given, budget.delta)
    as_published = params.training == "fedavg" and params.release == "rows" and params.encoder != "none" and budget.private
    key = params.training_key
    made = Made(
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
    guarantee = Guarantee(local_dp.params.protection_of(params, facts, whole), budget.delta, holdings, per_end=False)
    rounds, releases = len(table.training) + 1, (*of_model, *(r for r in sent if r.count))
    if params.protects and of_model:
        key = f"{key}/{of_model[0].mechanism}/{of_model[0].event}"
    schedule = base.PlanSchedule(rounds, releases, 1, shared_rounds=table.retrievals[0], shared_key=key)
    notes = local_dp.params.notes_of(params, facts, whole)
    return base.Plan("local_dp", params, facts, guarantee, schedule, made, published, sums=sums, notes=notes)


def _network(params: Params, facts: base.PublicFacts) -> tuple[shared_gnn.SharedGnn, np.ndarray | None]:
    """The shared model, and the public projection [d, k] of the features before it (None: as they are)."""
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
    table: updates.Attendance,
    given: updates.Shares,
    whole: bool,
) -> tuple[EncoderSettings, PooledEncoder | None]:
    """(how rows are encoded; how one vector of a graph is sent, None where rows are).

    A unit's budget is divided among all the embeddings that it enters. Under ``fedavg`` each graph's own release has the whole
    of it, as in the paper. given: how the budget is divided. whole: all that a client holds is one unit.
    """
    width = shared_gnn.embedding_width(net, params.embedding)
    bits = None if params.bits_per_row == "auto" else params.bits_per_row
    entered = updates.most_entered(np.array([len(own) for own in table.sends]), facts, "graph" if whole else "node")
    times = 1 if params.training == "fedavg" else max(1, entered)
    epsilon = given.embedding / times if params.encoder != "gaussian-as-coded" else budget.epsilon
    softmax = params.embedding == "softmax"
    encoding = EncoderSettings(params.encoder, epsilon, params.epsilon_rule, width, softmax, bits)
    if params.release == "rows":
        return encoding, None
    mu, classes = given.embedding_mu / math.sqrt(times), facts.num_classes
    return encoding, PooledEncoder(params.pooled_by, given.embedding / times, mu, classes, bits)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    """Random parameters, or those of public training."""
    parameters = plan.made.network.layout.start(rng)
    if plan.made.public is not None:
        parameters = local_training.on_public(plan, parameters, plan.made.public)
    velocity = np.zeros_like(parameters) if plan.params.protects else None
    nothing = (None,) * plan.facts.num_clients
    copies = parameters[:0].reshape(0, parameters.size)
    return base.State({"parameters": parameters}, Memory(nothing, copies, velocity=velocity))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The change of the parameters, and in retrieval rounds its encoded embedding.

    Algorithm 3 embeds with the locally trained parameters, which depend on every node the client holds. Where the price
    is that of one graph among several, or of one node, the broadcast model embeds: a row then depends on its own
    neighbourhood only. In clear, only the parameters that a client touches are sent; protected, all of them.
    """
    table, params = plan.made.attendance, plan.params
    trains, sends = table.trains[desk.client], table.sends[desk.client]
    if round_ not in trains and round_ not in sends:
        return {}
    before = layouts.to_device(model["parameters"][work.where])
    sent = {}
    if round_ in trains and params.protects:
        made = local_training.clip_gradients if params.training == "dp_sgd" else local_training.update_of
        sent["model"] = desk.release("model", made(params, work, model["parameters"]))
    elif round_ in trains:
        change = (local_training.train_locally(params, work, before) - before).cpu().numpy() * np.float32(work.weight)
        sent["change"] = desk.release("model", change)
        if round_ == trains[0]:
            sent["where"] = desk.release("vocabulary", work.where)
    if round_ in sends:
        sent["embedding"] = desk.release("embedding", local_training.embedding_of(plan, work, model["parameters"]))
    return sent


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """The next model, and the latest embedding of every client as received (or made unbiased)."""
    table, known = plan.made.attendance, state.memory
    where, embeddings, kept, velocity = dict(known.where), list(known.embeddings), known.kept, known.velocity
    before, model = state.model["parameters"], state.model
    if inbox.round < plan.params.rounds and "change" in inbox.each:
        training = table.training[inbox.round]
        new = [c for c in training if c not in where]
        where.update(zip(new, inbox.each.get("where", []), strict=True))
        model = {"parameters": local_training.merged(plan, before, training, inbox.each["change"], where)}
    if "model" in inbox.sums and velocity is not None:
        velocity = local_training.step_of(plan, velocity, inbox)
        model = {"parameters": before + velocity}
    if plan.params.keep_every and inbox.round < plan.params.rounds and (inbox.round + 1) % plan.params.keep_every == 0:
        kept = np.concatenate([kept, model["parameters"][None]])
    if "embedding" in inbox.each:
        for client, rows in zip(table.present[inbox.round], inbox.each["embedding"], strict=True):
            embeddings[client] = local_training.received_embedding(plan, client, rows)
    return base.State(model, Memory(tuple(embeddings), kept, where, velocity))


def answers(plan: Planned, parameters: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """[graphs, c] scores that a shared model gives several graphs in clear, whose nodes follow one another in ``graph``."""
    return shared_gnn.score_graphs(plan.made.network, parameters, graph, sizes)


def in_clear(plan: Planned, state: base.State[Memory], subgraph: Subgraph) -> np.ndarray:
    """float64 [n, h]: what the trained model says of all nodes of a client, before any encoding."""
    work = prepare(plan, subgraph)
    parameters = layouts.to_device(state.model["parameters"][work.where])
    return shared_gnn.embed(work.network, parameters, work.inputs, plan.params.embedding)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    kind="embedder",
    units=(Unit.NODE, Unit.GRAPH),
    situations=(
        base.MethodSituation("ego", (Trust.OWN_CLIENT,), {"rounds": 2}),
        base.MethodSituation("collection", (Trust.OWN_CLIENT,), {"rounds": 2}),
    ),
    reads_rounds=reads_rounds,
    graph_evidence=evidence.of_graphs,
)
