"""The federated loop: clients, server, clients, server. What a client computes passes its desk in ``client.run_blocks``."""

import dataclasses
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedgraph.errors import RuntimeFailure
from fedgraph.federation import client, messages, server
from fedgraph.federation.messages import ClientJob, MessageReceipt
from fedgraph.methods import Plan, State
from fedgraph.privacy import Disclose, LedgerLine, PartOf, ledger

_runs = itertools.count()  # makes every run's workspace at the workers its own
_ONE_DRAW = (
    "Noise is drawn once for all clients of a block, from the law of the sum of their shares: only sums are seen, and these "
    "have the law that one draw per client gives them."
)


class _Engine(Protocol):
    """What the loop needs of a ``runtime.Runtime``, where it is described."""

    def deal(self, handle: Any, piece: Callable[[Any, range], Any], num_items: int) -> Any: ...
    def federate(
        self, function: Callable[..., object], *args: object, path: tuple[str, ...], on_round: Callable[[int, int], None]
    ) -> Any: ...


class _Clients(Protocol):
    """What the server needs of a ``runtime.base.RuntimeClients``, where it is described."""

    def share(self, key: str, value: Any) -> Any: ...
    def ask(self, function: Callable[..., object], num_items: int, *args: object) -> list[Any]: ...
    def seal(self, value: Any) -> Any: ...
    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None: ...


@dataclass(frozen=True, eq=False)
class RoundsOutcome:
    """The final state and all releases of a training."""

    state: State[Any]  # after the last round
    releases: tuple[LedgerLine, ...]  # ledger lines, also those of shared rounds
    notes: tuple[str, ...] = ()  # sentences for the report on how it was simulated
    sizes: tuple[tuple[int, int], ...] = ()  # for each round, bytes to and from one client
    kept: tuple[tuple[int, State], ...] = ()  # (number of a round from 1, state after it) for each round in ``keep``


@dataclass(frozen=True, eq=False)
class _Advanced:
    """A training after some of its rounds."""

    state: State  # after the last of them
    receipts: tuple[MessageReceipt, ...]  # one for each of them
    kept: tuple[tuple[int, State], ...]  # as ``RoundsOutcome.kept``


@dataclass(eq=False)
class RoundPrefixes:
    """States after the first rounds that cells of several budgets share; kept as long as the process lives."""

    known: dict[str, _Advanced] = field(default_factory=dict)  # name of the shared rounds → the training after them


def run(
    runtime: _Engine,
    partition: Any,
    plan: Plan,
    root: int,
    stream: tuple[str | int | float, ...],
    shared_stream: tuple[str | int | float, ...],
    prefixes: RoundPrefixes,
    on_round: Callable[[int, int], None] = lambda done, total: None,
    *,
    answered: np.ndarray | None = None,
    starts: tuple[str | int | float, ...] | None = None,
    keep: frozenset[int] = frozenset(),
) -> RoundsOutcome:
    """All rounds of ``plan`` on the shared ``partition``, at its clients and its server.

    Args:
        runtime: the engine.
        partition: as ``share`` of the engine gave it.
        plan: the plan.
        root: root of all random streams.
        stream: names this cell's random streams.
        shared_stream: names those of the shared first rounds, which run once for each shared key of the plan and are recorded
            in every ledger that builds on them.
        prefixes: shared rounds that ran before; those that run now are added.
        on_round: called with (rounds done, all rounds).
        answered: who answers in which round, bool [rounds, clients]; None: all clients.
        starts: names the stream of the first parameters; None: ``stream`` does.
        keep: rounds, counted from 1 and not shared, after which the state is kept.

    Raises:
        RuntimeFailure: rounds are shared and not all clients answer; or a round failed.
        FedgraphError: a client failed; the message names method, client and round.
    """
    if plan.facts.public_graph is not None:  # clients do not need it
        plan = dataclasses.replace(plan, facts=dataclasses.replace(plan.facts, public_graph=None))
    held = runtime.deal(partition, messages.subgraphs_of_blocks, len(messages.cut_blocks(plan.facts.num_clients)))

    def advance(job: ClientJob, before: _Advanced | None, rounds: range) -> _Advanced:
        path = tuple(str(part) for part in job.stream)
        found: _Advanced = runtime.federate(_advance_rounds, held, job, before, rounds, keep, path=path, on_round=on_round)
        return found

    first: _Advanced | None = None
    if plan.schedule.shared_key and answered is not None:
        raise RuntimeFailure("rounds that several budgets share need every client in every round")
    if plan.schedule.shared_key:
        key = ledger.account_name((*shared_stream, "shared", plan.schedule.shared_key))
        if key not in prefixes.known:
            # not the plan's own fingerprint: the first cell runs these rounds for all
            job = ClientJob(key, root, shared_stream, plan, plan.shared_fingerprint)
            prefixes.known[key] = advance(job, None, range(plan.schedule.shared_rounds))
        first = prefixes.known[key]
    name = ledger.account_name(stream)
    job = ClientJob(name, root, stream, plan, plan.fingerprint, answered, starts)
    last = advance(job, first, range(plan.schedule.shared_rounds, plan.schedule.rounds))
    before = () if first is None else first.receipts
    shared = [dataclasses.replace(line, cell=name) for receipt in before for line in receipt.releases]
    receipts = (*before, *last.receipts)
    releases = ledger.merged([*shared, *(line for receipt in last.receipts for line in receipt.releases)])
    together = answered is None and client.compute_together(plan)
    noisy = any(not isinstance(r.mechanism, Disclose) for r in plan.schedule.releases)
    notes = (_ONE_DRAW,) if noisy and together else ()
    sizes = tuple((receipt.down, receipt.up) for receipt in receipts)
    return RoundsOutcome(last.state, releases, notes, sizes, last.kept)


def _advance_rounds(
    clients: _Clients, partition: Any, job: ClientJob, before: _Advanced | None, rounds: range, keep: frozenset[int]
) -> _Advanced:
    """At the server: ``rounds`` of one training, after ``before`` or from its start.

    A round is one call of every client actor and one merge. What does not change is sent once, before the first round.
    """
    named = dataclasses.replace(job, key=f"{os.getpid()}:{next(_runs)}:{job.key}")
    handle = clients.share("job", named)
    num_blocks = len(messages.cut_blocks(job.plan.facts.num_clients))
    state = clients.seal(server.begin(job)) if before is None else before.state
    receipts: list[MessageReceipt] = []
    kept: list[tuple[int, State]] = []
    for round_ in rounds:
        sent = clients.ask(client.run_blocks, num_blocks, partition, handle, state.model, round_)
        after, receipt = server.merge(job, state, round_, sent)
        state = clients.seal(after)
        receipts.append(receipt)
        chosen = tuple(line for line in receipt.releases if isinstance(line.event, PartOf))
        if chosen and not named.taken:
            named = dataclasses.replace(named, taken=chosen)
            handle = clients.share("job that chose", named)
        if round_ + 1 in keep:
            kept.append((round_ + 1, state))
        many = receipt.messages
        clients.count(round_ + 1, rounds.stop, many, many * receipt.up, many * receipt.down)
    clients.ask(client.forget, num_blocks, handle)
    return _Advanced(state, tuple(receipts), tuple(kept))
