"""The federated loop: clients, server, clients, server. Where it runs is the runtime's business."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from fedgraph.errors import RuntimeFailure
from fedgraph.federation import client, server
from fedgraph.federation.blocks import borders
from fedgraph.federation.messages import Job, Receipt
from fedgraph.federation.participation import Attendance
from fedgraph.federation.secure import client as masks_at_client
from fedgraph.federation.secure import server as masks_at_server
from fedgraph.federation.secure.protocol import Masks
from fedgraph.methods.base import Plan, State
from fedgraph.privacy.ledger import account_name
from fedgraph.privacy.lines import Line, joined
from fedgraph.privacy.mechanisms.noise import Disclose

_runs = itertools.count()  # makes every run's workspace at the workers its own
ONE_DRAW = (
    "Noise is drawn once for all clients of a block, from the law of the sum of their shares: only sums are seen, and these "
    "have the law that one draw per client gives them."
)
IN_FLIGHT = 8  # rounds submitted ahead of the last one known to be done


class Runtime(Protocol):
    """What the loop needs of ``fedgraph.runtime.base.Runtime``."""

    def share(self, key: str, value: Any) -> Any: ...
    def on_workers(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]: ...
    def on_server(self, function: Callable[..., Any], *args: Any, returns: int = 1) -> Any: ...
    def forget(self, handle: Any) -> None: ...
    def get(self, future: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """The final state and every release on the way. notes: sentences for the report on how it was simulated. sizes: of each
    round, bytes to and from one client.
    """

    state: State[Any]
    releases: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()


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
    *,
    attendance: Attendance | None = None,
    masks: Masks | None = None,
    starts: tuple[str | int | float, ...] | None = None,
    on_state: Callable[[int, Any], None] = lambda round_, state: None,
) -> Outcome:
    """All rounds of ``plan`` on the shared ``partition`` (``runtime.share``).

    stream names this cell's random streams; shared_stream those of the shared first rounds, which run once
    per ``plan.schedule.shared_key`` and are recorded in every ledger that builds on them.
    attendance: who answers; None: everybody.
    masks: how the sums of a plan for them (``secure.plan``) are hidden. starts: names the stream of the first parameters in
    place of ``stream``. on_state: told after each round of this cell alone,
    with the runtime's handle of the server's state.
    """
    name = account_name(stream)
    public = dataclasses.replace(plan.facts.public, graph=None)  # workers need it no more
    plan = dataclasses.replace(plan, facts=dataclasses.replace(plan.facts, public=public))
    state, model = None, None
    receipts: tuple[Receipt, ...] = ()
    if plan.schedule.shared_key and attendance is not None:
        raise RuntimeFailure("rounds that several budgets share need every client in every round")
    if plan.schedule.shared_key:
        key = account_name((*shared_stream, "shared", plan.schedule.shared_key))
        if key not in prefixes.known:
            first = range(plan.schedule.shared_rounds)
            digest = hashlib.sha256(plan.schedule.shared_key.encode()).hexdigest()[
                :16
            ]  # not the plan's: whoever is first runs it
            job = Job(key, root, shared_stream, plan, digest)
            prefixes.known[key] = _advance(runtime, partition, job, None, None, first, on_round)
        state, model, receipts = prefixes.known[key]
    rest = range(plan.schedule.shared_rounds, plan.schedule.rounds)
    state, _, own = _advance(
        runtime,
        partition,
        Job(name, root, stream, plan, attendance=attendance, masks=masks, starts=starts),
        state,
        model,
        rest,
        on_round,
        on_state,
    )
    releases = joined(dataclasses.replace(r, cell=name) for receipt in (*receipts, *own) for r in receipt.releases)
    together = attendance is None and client.computes_together(plan)
    noisy = any(not isinstance(r.mechanism, Disclose) for r in plan.schedule.releases)
    notes = (ONE_DRAW,) if noisy and together else ()
    sizes = tuple((receipt.down, receipt.up) for receipt in (*receipts, *own))
    return Outcome(runtime.get(state), releases, notes, sizes)


def _advance(
    runtime: Runtime,
    partition: Any,
    job: Job,
    state: Any,
    model: Any,
    rounds: range,
    on_round: Callable[[int, int], None],
    on_state: Callable[[int, Any], None] = lambda round_, state: None,
) -> tuple[Any, Any, tuple[Receipt, ...]]:
    """(state, model, receipts) after ``rounds``; state None begins. Submits ahead: nobody waits for the driver."""
    name = f"{next(_runs)}:{job.key}"
    handle = runtime.share(
        f"job:{name}", dataclasses.replace(job, key=name, fingerprint=job.fingerprint or job.plan.fingerprint)
    )
    if state is None:
        state, model = runtime.on_server(server.begin, handle, returns=2)
    num_blocks = len(borders(job.plan.facts.sizes.num_clients))
    begun: dict[int, Any] = {}  # models with which some client may have begun
    waiting: list[Any] = []
    receipts: list[Receipt] = []
    for round_ in rounds:
        if job.attendance is not None and job.attendance.versions is not None:
            begun[round_] = model
            needed = job.attendance.needed(round_)
            sent = runtime.on_workers(client.run_stale, num_blocks, partition, handle, round_, *(begun[v] for v in needed))
            state, model, receipt = runtime.on_server(server.merge, handle, state, round_, *sent, returns=3)
        elif job.masks is None:
            sent = runtime.on_workers(client.run_blocks, num_blocks, partition, handle, model, round_)
            state, model, receipt = runtime.on_server(server.merge, handle, state, round_, *sent, returns=3)
        else:
            state, model, receipt = _behind_masks(runtime, num_blocks, partition, handle, state, model, round_)
        on_state(round_, state)
        waiting.append(receipt)
        if len(waiting) >= IN_FLIGHT:
            receipts.append(runtime.get(waiting.pop(0)))
            on_round(receipts[-1].round + 1, rounds.stop)
    for receipt in waiting:
        receipts.append(runtime.get(receipt))
        on_round(receipts[-1].round + 1, rounds.stop)
    runtime.forget(handle)
    return state, model, tuple(receipts)


def _behind_masks(
    runtime: Runtime, num_blocks: int, partition: Any, job: Any, state: Any, model: Any, round_: int
) -> tuple[Any, Any, Any]:
    """One round whose sums are hidden: keys, shares, hidden values, and shares given back (``federation.secure``)."""
    boards = runtime.on_workers(masks_at_client.advertise, num_blocks, job, round_)
    letters = runtime.on_workers(masks_at_client.share, num_blocks, job, round_, *boards)
    sent = runtime.on_workers(client.run_blocks, num_blocks, partition, job, model, round_, *boards)
    answers = runtime.on_workers(masks_at_client.answer, num_blocks, job, round_, len(boards), *boards, *letters)
    given = (*sent, *boards, *answers)
    after: tuple[Any, Any, Any] = runtime.on_server(
        masks_at_server.merge, job, state, round_, len(sent), len(boards), *given, returns=3
    )
    return after
