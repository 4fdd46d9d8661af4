"""The federated loop: clients, server, clients, server. Where it runs is the runtime's business."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedgraph.federation import client, server
from fedgraph.federation.messages import Job, Receipt
from fedgraph.methods.base import Plan, State
from fedgraph.privacy.ledger import Release

IN_FLIGHT = 8  # rounds submitted ahead of the last one known to be done


class Runtime(Protocol):
    """What the loop needs of ``fedgraph.runtime.base.Runtime``."""

    def share(self, key: str, value: Any) -> Any: ...
    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]: ...
    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any: ...
    def get(self, future: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """The final state and every release on the way."""

    state: State
    releases: tuple[Release, ...]


@dataclass(eq=False)
class Prefixes:
    """States after the budget-independent rounds of plans that share them (kept for one process's life)."""

    known: dict[str, tuple[Any, Any, tuple[Receipt, ...]]] = field(default_factory=dict)


def run(
    runtime: Runtime,
    partition: Any,
    plan: Plan,
    root: int,
    stream: tuple[str | int | float, ...],
    shared_stream: tuple[str | int | float, ...],
    prefixes: Prefixes,
    on_round: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """All rounds of ``plan`` on the shared ``partition`` (``runtime.share``).

    stream names this cell's random streams; shared_stream those of the shared first rounds, which run once
    per ``plan.shared_key`` and are recorded in every ledger that builds on them.
    """
    receipts: list[Receipt] = []
    name = "/".join(str(part) for part in stream)
    num_clients = plan.facts.num_clients
    if plan.shared_rounds:
        key = "/".join(str(part) for part in shared_stream) + "#" + plan.shared_key
        if key not in prefixes.known:
            job = runtime.share("job:" + key, Job(key, root, shared_stream, plan))
            state, model = runtime.on_server(server.begin, job, returns=2)
            prefixes.known[key] = _advance(runtime, partition, job, num_clients, state, model, range(plan.shared_rounds), on_round)
        state, model, shared = prefixes.known[key]
        receipts += shared
        job = runtime.share("job:" + name, Job(name, root, stream, plan))
    else:
        job = runtime.share("job:" + name, Job(name, root, stream, plan))
        state, model = runtime.on_server(server.begin, job, returns=2)
    rest = range(plan.shared_rounds, plan.rounds)
    state, _, own = _advance(runtime, partition, job, num_clients, state, model, rest, on_round)
    receipts += own
    releases = tuple(dataclasses.replace(r, cell=name) for receipt in receipts for r in receipt.releases)
    return Outcome(runtime.get(state), releases)


def _advance(
    runtime: Runtime,
    partition: Any,
    job: Any,
    num_clients: int,
    state: Any,
    model: Any,
    rounds: range,
    on_round: Callable[[int, int], None],
) -> tuple[Any, Any, tuple[Receipt, ...]]:
    """(state, model, receipts) after ``rounds``; submits ahead, so workers and server never wait for the driver."""
    waiting: list[Any] = []
    receipts: list[Receipt] = []
    for round_ in rounds:
        blocks = runtime.on_workers(client.run_block, num_clients, partition, job, model, round_)
        state, model, receipt = runtime.on_server(server.merge, job, state, round_, *blocks, returns=3)
        waiting.append(receipt)
        if len(waiting) >= IN_FLIGHT:
            receipts.append(runtime.get(waiting.pop(0)))
            on_round(receipts[-1].round + 1, rounds.stop)
    for receipt in waiting:
        receipts.append(runtime.get(receipt))
        on_round(receipts[-1].round + 1, rounds.stop)
    return state, model, tuple(receipts)
