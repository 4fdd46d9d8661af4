"""Who of the curators gets which task: several at a time at each, and again where a curator died.

A curator has ``RUNTIME_LANES`` lanes. In its first one are the tasks that it computes itself, as long as there are any; in the
others, and then in all, those of which it mostly waits. So clients, server and curators are at work at the same time.

A task that was on its way at a curator that died may be what killed it. It is asked again while nobody else is at work at a
curator, so it takes nobody with it a second time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ray
from ray.exceptions import RayError

from fedgraph.runtime.base import RUNTIME_LANES, RuntimeDealing, RuntimeDone, RuntimeQueues, RuntimeTask
from fedgraph.runtime.ray.seats import AskedOfSeat, DeadlySeatCall, Seat, Seats


@dataclass(frozen=True, eq=False)
class _Running:
    lane: int
    task: RuntimeTask
    asked: AskedOfSeat


class Lanes:
    """Deals tasks to curators. Lane n belongs to the curator in place n mod ``places``.

    Args:
        curators: Their places.
        most: How many places there are.
        dealing: The tasks; it is told of each that is handed out.
        call: How a task is asked.

    Attributes:
        places: Of curators that get a task.
    """

    def __init__(
        self,
        curators: Seats,
        most: int,
        dealing: RuntimeDealing,
        call: Callable[[RuntimeTask], Callable[[Seat], ray.ObjectRef]],
    ) -> None:
        self._curators, self._dealing, self._call = curators, dealing, call
        self.places = min(most, dealing.most or most, sum(map(len, (*dealing.queues, *dealing.led))))
        self._own, self._led = RuntimeQueues(dealing.queues), RuntimeQueues(dealing.led, lambda lane: lane % self.places)
        self._free = list(range(self.places * (1 if dealing.most else RUNTIME_LANES)))
        self._running: dict[ray.ObjectRef, _Running] = {}
        self._lost: list[_Running] = []

    def __bool__(self) -> bool:
        """Whether some task is not done."""
        return bool(self._running or self._lost or self._own or self._led)

    def fill(self) -> None:
        """Hand out what ready curators can take."""
        waits = range(self.places) if self._lost else sorted({lane % self.places for lane in self._hungry()})
        for place in filter(self._curators.is_ready, waits):
            at_work = [one.asked for one in self._running.values() if one.asked.slot == place]
            if self._lost:
                if not at_work:
                    self._again(self._lost.pop(0), place)
            elif not any(asked.losses for asked in at_work):
                for lane in [lane for lane in self._hungry() if lane % self.places == place]:
                    self._hand_out(lane)

    def _hungry(self) -> list[int]:
        """Free lanes that would get a task."""
        return [lane for lane in self._free if self._led.has(lane) or (lane < self.places and self._own.has(lane))]

    def _hand_out(self, lane: int) -> None:
        task = self._own.next(lane) if lane < self.places else None
        task = self._led.next(lane) if task is None else task
        if task is not None:
            self._free.remove(lane)
            self._dealing.started(task)
            asked = self._curators.ask(lane % self.places, self._call(task))
            self._running[asked.ref] = _Running(lane, task, asked)

    def _again(self, lost: _Running, place: int) -> None:
        lost.asked.slot = place
        self._curators.ask_again(lost.asked)
        self._running[lost.asked.ref] = lost

    def wait(self) -> list[RuntimeDone]:
        """What is done, waited for about a second; less long where a curator may become ready."""
        if not self._running:
            self._curators.worker(0)
            return []
        soon = bool(self._lost or self._hungry())
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=0.2 if soon else 1.0)
        return [done for ref in ready if (done := self._ended(self._running.pop(ref))) is not None]

    def _ended(self, one: _Running) -> RuntimeDone | None:
        """None where it is asked again."""
        try:
            value = ray.get(one.asked.ref)
        except RayError as error:
            try:
                self._curators.lose(one.asked, error)
            except DeadlySeatCall as dead:
                if self._dealing.gone is None:
                    raise
                value = self._dealing.gone(str(dead))
            else:
                self._lost.append(one)
                return None
        self._free.append(one.lane)
        return one.task, value
