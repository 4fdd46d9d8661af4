"""The federated loop: clients, server, clients, server. Where it runs is the runtime's business."""

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
    """What the loop needs of ``fedgraph.runtime.base.Runtime``.

    ``deal`` gives every client actor its piece of a shared value, and ``federate`` runs a function at the server.
    """

    def deal(self, handle: Any, piece: Callable[[Any, range], Any], num_items: int) -> Any: ...
    def federate(
        self, function: Callable[..., object], *args: object, path: tuple[str, ...], on_round: Callable[[int, int], None]
    ) -> Any: ...


class _Clients(Protocol):
    """What the server needs of ``fedgraph.runtime.base.RuntimeClients``.

    ``share`` sends a value to every client actor, ``ask`` calls a function at each of them, ``seal`` gives a value as the
    next round may see it, and ``count`` tells what travelled.
    """

    def share(self, key: str, value: Any) -> Any: ...
    def ask(self, function: Callable[..., object], num_items: int, *args: object) -> list[Any]: ...
    def seal(self, value: Any) -> Any: ...
    def count(self, done: int, total: int, messages: int, up: int, down: int) -> None: ...


@dataclass(frozen=True, eq=False)
class RoundsOutcome:
    """The final state and every release on the way."""

    state: State[Any]  # after the last round
    releases: tuple[LedgerLine, ...]  # ledger lines, those of shared rounds among them
    notes: tuple[str, ...] = ()  # sentences for the report on how it was simulated
    sizes: tuple[tuple[int, int], ...] = ()  # of each round, bytes to and from one client
    kept: tuple[tuple[int, State], ...] = ()  # (round, state after it) of the rounds that were asked for


@dataclass(frozen=True, eq=False)
class _Advanced:
    """Where a training stands after some rounds."""

    state: State  # after the last of them
    receipts: tuple[MessageReceipt, ...]  # of each of them
    kept: tuple[tuple[int, State], ...]  # as ``RoundsOutcome.kept``


@dataclass(eq=False)
class RoundPrefixes:
    """States after the rounds that plans with several budgets share; kept for one process's life."""

    known: dict[str, _Advanced] = field(default_factory=dict)  # name of what is shared → where it stands


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
        runtime: where they run.
        partition: as ``runtime.share`` gave it.
        plan: of the method.
        root: from which all random streams follow.
        stream: names this cell's random streams.
        shared_stream: names those of the shared first rounds, which run once per shared key of the plan and are recorded in
            every ledger that builds on them.
        prefixes: shared rounds that ran before; takes those that run now.
        on_round: called with (rounds done, rounds in all).
        answered: who answers in which round, bool [rounds, clients]; None: everybody.
        starts: names the stream of the first parameters in place of ``stream``.
        keep: after which rounds of this cell alone, counted from 1, the state is kept.

    Raises:
        RuntimeFailure: rounds are shared, and clients may be absent; or a round failed.
    """
    if plan.facts.public_graph is not None:  # clients need it no more
        plan = dataclasses.replace(plan, facts=dataclasses.replace(plan.facts, public_graph=None))
    held = runtime.deal(partition, messages.subgraphs_of_blocks, len(messages.cut_blocks(plan.facts.num_clients)))

    def on_the_way(job: ClientJob, before: _Advanced | None, rounds: range) -> _Advanced:
        path = tuple(str(part) for part in job.stream)
        found: _Advanced = runtime.federate(_advance_rounds, held, job, before, rounds, keep, path=path, on_round=on_round)
        return found

    first: _Advanced | None = None
    if plan.schedule.shared_key and answered is not None:
        raise RuntimeFailure("rounds that several budgets share need every client in every round")
    if plan.schedule.shared_key:
        key = ledger.account_name((*shared_stream, "shared", plan.schedule.shared_key))
        if key not in prefixes.known:
            job = ClientJob(key, root, shared_stream, plan, plan.shared_fingerprint)  # not its own: whoever is first runs it
            prefixes.known[key] = on_the_way(job, None, range(plan.schedule.shared_rounds))
        first = prefixes.known[key]
    name = ledger.account_name(stream)
    job = ClientJob(name, root, stream, plan, plan.fingerprint, answered, starts)
    last = on_the_way(job, first, range(plan.schedule.shared_rounds, plan.schedule.rounds))
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
    """At the server: ``rounds`` of one training, from ``before`` or from the beginning.

    A round is one call of every client actor and one merge. What does not change travels once, before the first round.
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
