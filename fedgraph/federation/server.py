"""One round at the server: it merges what the clients released."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph import federation, seeds
from fedgraph.errors import RuntimeFailure
from fedgraph.federation.messages import ClientJob, ClientMessage, MessageReceipt, Sent
from fedgraph.methods import PlanInbox, State, method_kinds, seen
from fedgraph.privacy import Viewer, ledger


def begin(job: ClientJob) -> State:
    """The state before round 0; its model is broadcast."""
    method = method_kinds.load(job.plan.method)
    return _state(method.start(job.plan, seeds.seeded_generator(job.root, *(job.starts or job.stream), "start")), job, "start")


def _state(found: object, job: ClientJob, by: str) -> State:
    if not isinstance(found, State):
        raise RuntimeFailure(f"{by} of {job.plan.method} gave a {type(found).__name__}; allowed: base.State(model, memory)")
    return found


class _Hidden(dict[str, list[np.ndarray]]):
    """No single messages, for a method behind secure aggregation."""

    def __missing__(self, name: str) -> list[np.ndarray]:
        raise RuntimeFailure(f"inbox.each[{name!r}]: the server sees sums only; allowed: inbox.sums[{name!r}]")


def merge(
    job: ClientJob,
    state: State,
    round_: int,
    parts: Sequence[Sequence[Sent]],
) -> tuple[State, MessageReceipt]:
    """(next state, receipt) from what the workers sent: messages of clients, or sums over blocks of them.

    Behind secure aggregation the method receives sums only.

    Args:
        job: the training.
        state: the state before the round.
        round_: number of the round, from 0.
        parts: what each worker sent.

    Raises:
        RuntimeFailure: fewer than ``min_clients`` clients finished (the guarantee needs the noise of all), messages do not
            match, or the model is NaN or infinite.
    """
    messages = sorted((m for part in parts for m in part), key=lambda m: m.first)
    finished = sum(m.num_clients for m in messages)
    least = job.plan.schedule.min_clients
    if finished < least:
        raise RuntimeFailure(f"round {round_}: {finished} clients finished, {least} are needed; round aborted")
    if federation.messages.are_summed(job.plan):
        whole = federation.messages.sum_tree(messages)
        for path, fewest in job.plan.sums.paths:
            if path in whole.released and whole.released[path].num_clients < fewest:
                raise _too_few(round_, path, fewest)
        inbox = PlanInbox(round_, {path: s.value for path, s in whole.released.items()}, _Hidden(), whole.num_clients)
    else:
        sums_only = job.plan.guarantee.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION
        inbox = _inbox([m for m in messages if isinstance(m, ClientMessage)], round_, sums_only, job.plan.sums.paths)
    method = method_kinds.load(job.plan.method)
    after = _state(method.server(job.plan, state, inbox), job, "server")
    for name, value in after.model.items():  # a model that diverged has a largest score, too, and would get an accuracy
        if np.issubdtype(np.asarray(value).dtype, np.inexact) and not np.isfinite(value).all():
            advice = "; try a smaller learning_rate" if "learning_rate" in vars(job.plan.params) else ""
            raise RuntimeFailure(f"round {round_}: {name!r} of the model is NaN or infinite{advice}")
    if job.plan.watch.keeps_rounds:
        # the sum of what colluding clients sent, which an attack that reads sums may subtract
        theirs = [m.released for m in messages if isinstance(m, ClientMessage) and m.client in seen.colluders_of(job.plan)]
        names = sorted({name for released in theirs for name in released})
        own = {name: np.sum([released[name].value for released in theirs if name in released], axis=0) for name in names}
        after = State(after.model, after.memory, (*state.seen, (state.model, replace(inbox, colluding=own))))
    up = max(_bytes(part.value for part in m.released.values()) for m in messages)
    released = ledger.merged([entry for m in messages for entry in m.lines])
    receipt = MessageReceipt(round_, released, _bytes(state.model.values()), up, finished)
    return after, receipt


def _bytes(arrays: Iterable[Any]) -> int:
    return sum(int(np.asarray(array).nbytes) for array in arrays)


def _too_few(round_: int, name: str, least: int) -> RuntimeFailure:
    return RuntimeFailure(f"round {round_}: the sum of {name!r} needs {least} clients, and fewer finished; round aborted")


def _inbox(
    messages: Sequence[ClientMessage], round_: int, sums_only: bool, summed: Sequence[tuple[str, int]] = ()
) -> PlanInbox:
    """The inbox of single messages. summed: (part that the method receives as a sum only, clients that must be in it)."""
    names = sorted({name for m in messages for name in m.released})
    for m in messages:
        if sums_only and sorted(m.released) != names:  # its share of the noise would be missing from the sum
            raise RuntimeFailure(f"round {round_}: client {m.client} sent {sorted(m.released)}, others {names}; round aborted")
    each = {name: [m.released[name].value for m in messages if name in m.released] for name in names}
    sums: dict[str, np.ndarray] = {}
    for name, values in each.items():
        if all(v.shape == values[0].shape for v in values):
            total = values[0].astype(values[0].dtype, copy=True)
            for value in values[1:]:
                total += value
            sums[name] = total
        elif sums_only or name in dict(summed):
            raise RuntimeFailure(f"secure aggregation adds arrays of one shape; {name!r} differs between clients")
    for name, least in summed:
        if name in each and len(each.pop(name)) < least:
            raise _too_few(round_, name, least)
    return PlanInbox(round_, sums, _Hidden() if sums_only else each, len(messages))
