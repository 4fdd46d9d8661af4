"""One round at the clients of a worker: block by block, one client after another or all clients of a block at once."""

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fedgraph import methods, plugins, privacy
from fedgraph.errors import FedgraphError, RuntimeFailure
from fedgraph.federation import messages
from fedgraph.federation.messages import BlockMessage, ClientJob, ClientMessage, Sent
from fedgraph.methods import Plan, PlanStreams, block_path, client_path, method_kinds
from fedgraph.privacy import Desk, Disclose, LedgerLine, LedgerRelease, Released, Viewer, ledger
from fedgraph.types import Subgraph

# job → client or block → what ``prepare`` made; it is made again from the subgraphs whenever it is missing (in a restarted
# actor), so it never changes a result
_workspaces: dict[str, dict[Hashable, Any]] = {}
# job → client → digests of what it released, so that a replay of another value is refused (``Desk.replay``)
_digests: dict[str, dict[Hashable, Any]] = {}
_KEEP = 64  # jobs that are kept at most, if ``forget`` was never called for them
_Held: TypeAlias = Mapping[int, Subgraph] | Sequence[Subgraph]  # by client: of the blocks that are asked, or of all


def run_blocks(blocks: Sequence[int], held: _Held, job: ClientJob, model: dict[str, np.ndarray], round_: int) -> Sequence[Sent]:
    """What the clients of some blocks send in one round: a message each, or sums over as many blocks as possible.

    Args:
        blocks: numbers of the blocks, ascending.
        held: the subgraphs of their clients.
        job: the training run.
        model: what was broadcast.
        round_: the round, from 0.

    Raises:
        FedgraphError: a client failed; the message names method, client and round.
    """
    cut = messages.cut_blocks(job.plan.facts.num_clients)
    if not messages.are_summed(job.plan):
        return [message for b in blocks for message in _one_by_one(cut[b], held, job, model, round_)]
    sent = messages.merge_branches([_run_block(block, cut[block], held, job, model, round_) for block in blocks])
    if job.plan.facts.num_clients <= methods.FEW_SEEN_CLIENTS:  # their lines are few: the server makes one of them
        return sent
    return [
        dataclasses.replace(part, lines=ledger.merged(part.lines)) if isinstance(part, BlockMessage) else part for part in sent
    ]


def forget(blocks: Sequence[int], job: ClientJob) -> None:
    """Forgets what was kept for the clients of the job, after its last round."""
    for by_job in (_workspaces, _digests):
        by_job.pop(job.key, None)


def compute_together(plan: Plan) -> bool:
    """Whether the clients of a block compute, and draw noise, as one: only if there are many and only their sum is seen.

    Never if single messages are seen, by the viewer or by an attack that keeps them: these show each client's share of noise.
    """
    in_clear = all(isinstance(r.mechanism, Disclose) for r in plan.schedule.releases)
    hidden = plan.guarantee.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION
    many = plan.facts.num_clients > methods.FEW_SEEN_CLIENTS
    return many and plan.sums.additive and messages.are_summed(plan) and (hidden or in_clear) and not plan.watch.keeps_rounds


def _one_by_one(
    clients: range, held: _Held, job: ClientJob, model: dict[str, np.ndarray], round_: int
) -> Iterator[ClientMessage]:
    """The messages of those of ``clients`` that answer in the round."""
    answering = clients if job.answered is None else [client for client in clients if job.answered[round_, client]]
    return (_run_client(client, held, job, model, round_) for client in answering)


def _run_block(block: int, clients: range, held: _Held, job: ClientJob, model: dict[str, np.ndarray], round_: int) -> Sent:
    one_by_one = _one_by_one(clients, held, job, model, round_)
    try:
        work = _together(job, held, block, clients) if job.answered is None else None
        at_once = None if work is None else _at_once(clients, work, job, model, round_)
    except Exception as error:
        for _ in one_by_one:  # raises the error of the client that fails, by its name
            pass
        raise _named(error, f"{job.plan.method}, clients {clients[0]} … {clients[-1]}, round {round_}") from error
    if at_once is None:
        return messages.sum_block(block, one_by_one, round_)
    entries, released = at_once
    return BlockMessage(block, 1, round_, released, len(clients), ledger.merged(entries))


def _named(error: Exception, where: str) -> FedgraphError:
    """The error with its place; an error of another package becomes a ``RuntimeFailure``."""
    if isinstance(error, FedgraphError):
        return type(error)(f"{where}: {error}")
    return RuntimeFailure(f"{where}: {type(error).__name__}: {error}{plugins.place_of(error)}")


def _at_once(
    clients: range, work: Any, job: ClientJob, model: dict[str, np.ndarray], round_: int
) -> tuple[list[LedgerRelease | LedgerLine], dict[str, Released]]:
    """(ledger lines, what all ``clients`` release together)."""
    method = method_kinds.load(job.plan.method)
    streams = PlanStreams(job.root, block_path(job.stream, clients[0], clients[-1], round_), job.fingerprint)
    own, noise = job.plan.schedule.of_client(clients[0]), streams.generator("noise")
    desk = Desk(job.account, clients[0], round_, own, noise, together=clients)
    released = method.client(job.plan, work, model, round_, streams, desk)
    return desk.entries, released


def _plans_alike(plan: Plan, clients: range) -> bool:
    """Whether all of ``clients`` have the same planned releases: bound, mechanism and price."""
    own = [tuple(dataclasses.replace(r, client=None) for r in plan.schedule.of_client(client)) for client in clients]
    return all(releases == own[0] for releases in own)


def _together(job: ClientJob, held: _Held, block: int, clients: range) -> Any:
    """What is prepared for all of ``clients`` as one; None if each works alone."""
    kept, key = _kept(_workspaces, job.key), ("block", block)
    if key not in kept:
        kept[key] = None
        if compute_together(job.plan) and _plans_alike(job.plan, clients):
            method = method_kinds.load(job.plan.method)
            kept[key] = method.prepare(job.plan, messages.unite([held[client] for client in clients]))
    return kept[key]


def _run_client(client: int, held: _Held, job: ClientJob, model: dict[str, np.ndarray], round_: int) -> ClientMessage:
    """The message of one client, which works alone."""

    def streams_of(which: int) -> PlanStreams:
        return PlanStreams(job.root, client_path(job.stream, client, which), job.fingerprint)

    method = method_kinds.load(job.plan.method)
    streams = streams_of(round_)
    try:
        kept = _kept(_workspaces, job.key)
        if client not in kept:
            kept[client] = method.prepare(job.plan, held[client])
        digests = _kept(_digests, job.key)
        if client not in digests:
            digests[client] = privacy.desk.alternatives(job.taken, client)
        desk = Desk(
            job.account,
            client,
            round_,
            job.plan.schedule.of_client(client),
            streams.generator("noise"),
            earlier=lambda before: streams_of(before).generator("noise"),
            released=digests[client],
        )
        released = method.client(job.plan, kept[client], model, round_, streams, desk)
        return ClientMessage(client, round_, released, tuple(desk.entries))
    except Exception as error:
        raise _named(error, f"{job.plan.method}, client {client}, round {round_}") from error


def _kept(by_job: dict[str, dict[Hashable, Any]], key: str) -> dict[Hashable, Any]:
    """What is kept for the clients of the job ``key``; the oldest of more than ``_KEEP`` jobs are forgotten."""
    if key not in by_job:
        while len(by_job) >= _KEEP:
            del by_job[next(iter(by_job))]
        by_job[key] = {}
    return by_job[key]
