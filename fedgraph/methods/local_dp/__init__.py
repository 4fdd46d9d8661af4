"""Local DP embeddings for Gromov-Wasserstein (Jin & Chen): FedAvg on small graphs, then encoded embeddings.

Clients train a shared GCN or GIN: R rounds of FedAvg or FedProx with E full-batch steps each (Algorithm 3). A client is one
small graph with node labels (an ego-network), or holds several graphs, with a label each (scores are pooled) or node labels.
Every s rounds, or once at the end, each client sends its embedding in [0, 1]^(n×h) through an encoder. Algorithm 3 trains
once more first; then every row depends on all that the client holds, so that is done only where all of it is priced as one
(``client``).

Two paths, priced apart. **model**: the updates, unprotected in the paper, ε = ∞. **embedding**: given the model, what
``_local_dp_encoders`` states; retrievals add up. The unit is the graph where clients hold whole graphs (graph-replace of known
size; graphs of one client are apart, the worst counts). Otherwise it is the node: a node may be in several ego-networks,
and its loss adds up over all of them. What text, proof and released code disagree on is in ``privacy.claims``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fedgraph.learning.layers import small_graphs
from fedgraph.learning.layers.models import on_device
from fedgraph.methods.base import Budget, Inbox, Kind, Plan, PublicFacts, Situation, State, Streams, setting_assumptions
from fedgraph.methods.local_dp import attendance as attendance
from fedgraph.methods.local_dp.encoders import Encoding, part_of
from fedgraph.methods.local_dp.params import ENCODING, Params
from fedgraph.methods.local_dp.training import Made, Work, trained
from fedgraph.methods.local_dp.training import prepare as prepare
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.mechanisms import blocks
from fedgraph.privacy.mechanisms.noise import MultiBitEncoder
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.types import Graph, Subgraph

REFERENCE = """@article{jin2022gromov,
  title = {Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed Structural Graphs},
  author = {Jin, Hongwei and Chen, Xun}, journal = {IJCAI}, year = {2022}}
@inproceedings{sajadmanesh2021locally,
  title = {Locally Private Graph Neural Networks},
  author = {Sajadmanesh, Sina and Gatica-Perez, Daniel},
  booktitle = {ACM SIGSAC Conference on Computer and Communications Security}, year = {2021}}"""

KIND: Kind = "embedder"
SITUATIONS = (Situation("ego", ("local",), {"rounds": 2}), Situation("collection", ("local",), {"rounds": 2}))


@dataclass(frozen=True, eq=False)
class Memory:
    """Of the server. where: per client that has trained, where its parameters are, int64. embeddings: per client the latest
    one, as received or rectified; None where none came. kept: float32 [copies, num_parameters], the model every
    ``keep_every`` rounds (all clients were sent them).
    """

    embeddings: tuple[np.ndarray | None, ...]
    kept: np.ndarray
    where: Mapping[int, np.ndarray] = field(default_factory=dict)


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """Unprotected updates, and per client an encoded embedding in each of its retrieval rounds."""
    last = params.rounds
    net = small_graphs.network(
        params.model, facts.num_features, params.hidden, params.layers, facts.num_classes, params.pooling, params.normalise
    )
    table = attendance.draw(
        facts.num_clients, last, params.retrieval_period, params.client_fraction, params.dropout, params.attendance_seed
    )
    width = small_graphs.embedding_width(net, params.embedding)
    bits = None if params.bits_per_row == "auto" else params.bits_per_row
    promised = params.promised_degree if params.encoder == "multi-bit-node" else None
    softmax = params.embedding == "softmax"
    encoding = Encoding(params.encoder, budget.epsilon, params.epsilon_rule, width, softmax, bits, net.affected_hops, promised)
    sizes = facts.graph_sizes or tuple((n,) for n in facts.client_sizes)
    sent = []
    for client, own in enumerate(sizes):
        bound, mechanism, event = encoding.of_client(own)
        sent.append(PlannedRelease("embedding", bound, mechanism, event, table.sends[client], client=client))
    encodes = budget.private and params.encoder != "none"
    smallest = min(min(own) for own in sizes)
    return Plan(
        method="local_dp",
        params=params,
        rounds=last + 1,
        releases=(*attendance.updates(table), *(r for r in sent if r.count)),
        protection=_protection(facts, promised),
        delta=budget.delta,
        facts=facts,
        epsilon_published=encoding.epsilon_of(smallest) if encodes else None,
        shared_rounds=table.retrievals[0],
        shared_key=params.model_dump_json(exclude=set(ENCODING)),
        made=Made(
            network=net,
            attendance=table,
            sent=tuple(sent),
            sizes=sizes,
            encoding=encoding,
            personal=params.personal and not facts.graph_sizes and promised is None,
            graph_epsilons=encoding.pure_losses(sizes, [r.count for r in sent]),
        ),
    )


def _protection(facts: PublicFacts, promised_degree: int | None) -> Protection:
    assumed = [Assumption.MODEL_GIVEN, Assumption.HYPERPARAMETERS_PUBLIC, *setting_assumptions(facts)]
    if facts.graph_sizes:
        assumed.append(Assumption.SIZES_PUBLIC)
    if promised_degree is not None:
        assumed.append(Assumption.PROMISED_DEGREE)
    whole = bool(facts.graph_sizes) and promised_degree is None
    relation = Relation.GRAPH_REPLACE if whole else Relation.NODE_REPLACE
    return Protection(relation, facts.viewer, tuple(dict.fromkeys(assumed)), promised_degree)


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[Memory]:
    vector = plan.made.network.layout.start(rng)
    return State({"parameters": vector}, Memory((None,) * plan.facts.num_clients, vector[:0].reshape(0, vector.size)))


def client(
    plan: Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """The change of the parameters this client touches, and in retrieval rounds its encoded embedding.

    Algorithm 3 embeds with the locally trained parameters, which depend on every node the client holds. Where the price
    is that of one graph among several, or of one node, the broadcast model embeds: a row then depends on its own
    neighbourhood only.
    """
    table = plan.made.attendance
    trains, sends = table.trains[desk.client], table.sends[desk.client]
    if round_ not in trains and round_ not in sends:
        return {}
    before = on_device(model["parameters"][work.where])
    after = trained(plan.params, work, before) if round_ in trains or plan.made.personal else before
    sent = {}
    if round_ in trains:
        change = (after - before).cpu().numpy() * np.float32(work.weight)
        sent["change"] = desk.release("model", change)
        if round_ == trains[0]:
            sent["where"] = desk.release("vocabulary", work.where)
    if round_ in sends:
        rows = small_graphs.embedding(work.network, after if plan.made.personal else before, work.inputs, plan.params.embedding)
        sent["embedding"] = desk.release("embedding", rows)
    return sent


def server(plan: Plan[Params, Made], state: State[Memory], inbox: Inbox) -> State[Memory]:
    """FedAvg on the touched parameters; the latest embedding of every client is kept as received (or rectified)."""
    table = plan.made.attendance
    where, embeddings, kept = dict(state.memory.where), list(state.memory.embeddings), state.memory.kept
    before, model = state.model["parameters"], state.model
    if inbox.round < plan.params.rounds and "change" in inbox.each:
        training = table.training[inbox.round]
        new = [c for c in training if c not in where]
        where.update(zip(new, inbox.each.get("where", []), strict=True))
        model = {"parameters": _merged(plan, before, training, inbox.each["change"], where)}
    if plan.params.keep_every and inbox.round < plan.params.rounds and (inbox.round + 1) % plan.params.keep_every == 0:
        kept = np.concatenate([kept, model["parameters"][None]])
    if "embedding" in inbox.each:
        for client, rows in zip(table.present[inbox.round], inbox.each["embedding"], strict=True):
            embeddings[client] = _rectified(plan, client, rows) if plan.params.rectify else rows
    return State(model, Memory(tuple(embeddings), kept, where))


def _merged(
    plan: Plan[Params, Made],
    before: np.ndarray,
    training: tuple[int, ...],
    changes: list[np.ndarray],
    where: Mapping[int, np.ndarray],
) -> np.ndarray:
    """The weighted average over those who trained: changes arrive weighted by shares of all clients."""
    counts = np.array([len(s) if plan.facts.graph_sizes else sum(s) for s in plan.made.sizes], dtype=np.float64)
    missing = len(training) < plan.facts.num_clients
    scale = np.float32(counts.sum() / counts[list(training)].sum()) if missing else None
    parameters = before.copy()
    for client, change in zip(training, changes, strict=True):
        parameters[where[client]] += change if scale is None else change * scale
    return parameters


def _rectified(plan: Plan[Params, Made], client: int, rows: np.ndarray) -> np.ndarray:
    mechanism = plan.made.sent[client].mechanism
    parts = blocks.split(rows, plan.made.sizes[client])
    made = [part_of(mechanism, i) for i in range(len(parts))]
    return np.concatenate([m.rectify(h) if isinstance(m, MultiBitEncoder) else h for m, h in zip(made, parts, strict=True)])


def answers(plan: Plan[Params, Made], parameters: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """[graphs, c] scores that a shared model gives several graphs in clear, whose nodes follow one another in ``graph``."""
    return small_graphs.graph_scores(plan.made.network, parameters, graph, sizes)


def in_clear(plan: Plan[Params, Made], state: State[Memory], subgraph: Subgraph) -> np.ndarray:
    """float64 [n, h]: what the trained model says of all nodes of a client, before any encoding."""
    work = prepare(plan, subgraph)
    parameters = on_device(state.model["parameters"][work.where])
    return small_graphs.embedding(work.network, parameters, work.inputs, plan.params.embedding)
