"""Cells are dealt to curators; a cell whose curator dies is dealt again, to whoever is free.

A cell may be lost ``MOST_LOSSES`` times; then its work itself is what kills curators (memory, a crash in compiled code), and
that is said in one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.base import Done, Function, Task
from fedgraph.runtime.ray.conductor import Handle
from fedgraph.runtime.ray.pool import Member, Pool
from fedgraph.runtime.ray.seats import MOST_LOSSES, in_a_line, raise_own


@dataclass(eq=False)
class Dealt:
    """A cell at work. losses: how often it died with the curator that computed it."""

    task: Task
    slot: int = 0
    losses: int = 0
    member: Member | None = None


def as_done(
    pool: Pool,
    function: Function,
    take: Callable[[int], Task | None],
    gone: Callable[[str], object] | None,
    most: int,
) -> Iterator[Done | None]:
    """(task, value) as they get ready, of all tasks that ``take(slot)`` gives; None about once a second of waiting.

    Args:
        gone: the value of a task that killed ``MOST_LOSSES`` curators; without it that is an error.
        most: curators that work.
    """
    running: dict[ray.ObjectRef, Dealt] = {}
    again: list[Dealt] = []

    def hand_out(slot: int) -> None:
        task = None if again else take(slot)
        if not again and task is None:
            return
        dealt = again.pop(0) if task is None else Dealt(task)
        dealt.slot, dealt.member = slot, pool.curator(slot)
        given = [a.shared() if isinstance(a, Handle) else a for a in dealt.task]
        running[dealt.member.actor.cell.remote(function, *given)] = dealt

    for slot in range(min(most, pool.num)):
        hand_out(slot)
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
        if not ready:
            pool.look()
            yield None
        for ref in ready:
            dealt = running.pop(ref)
            try:
                value = ray.get(ref)
            except RayError as error:
                raise_own(error)
                _found_dead(pool, dealt, error)
                dealt.losses += 1
                if dealt.losses < MOST_LOSSES:
                    again.append(dealt)
                    hand_out(dealt.slot)
                    continue
                why = f"{dealt.losses} curators died of it, the last one: {in_a_line(error)}"
                if gone is None:
                    raise RuntimeFailure(why) from None
                value = gone(why)
            hand_out(dealt.slot)  # first, so that nobody waits while the caller looks at the value
            yield dealt.task, value


def _found_dead(pool: Pool, dealt: Dealt, error: RayError) -> None:
    """Bury who died: the curator of the cell where the error is its own, else whoever gives no sign of life."""
    if isinstance(error, RayActorError) and not isinstance(error, RayTaskError) and dealt.member is not None:
        pool.bury(dealt.member, in_a_line(error))
    pool.look(at_once=True)
