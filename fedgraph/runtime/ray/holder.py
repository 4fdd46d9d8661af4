"""What the three kinds of actors have in common: they keep values, compute one call at a time, and answer beside it."""

import contextlib
import importlib
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ray

from fedgraph.runtime import memory, versions
from fedgraph.runtime.base import Function
from fedgraph.runtime.threads import use_one_thread

Timed: TypeAlias = tuple[Any, float]  # what was computed, and its seconds


@dataclass(frozen=True)
class About:
    """What an actor says of itself when it has started. device: ``cpu``, or the name of its first GPU."""

    node: str
    host: str
    device: str
    made: versions.Made


@dataclass(frozen=True, eq=False)
class Shared:
    """A value in the object store. refs: of the value, or where it was ``dealt`` of one piece for each client actor.

    References stand inside a tuple, so that Ray passes them and not the values.
    """

    key: str
    refs: tuple[ray.ObjectRef, ...]
    dealt: bool = False


@dataclass(frozen=True)
class Kept:
    """Stands in a message for a value that its receiver holds."""

    key: str


class Holder:
    """An actor.

    Args:
        gpus: its share of them.
        start: what the driver has loaded of fedgraph, imported while the driver plans; and how often the actor is told
            something (``hear``) before it is ready.
    """

    def __init__(self, gpus: float, start: tuple[tuple[str, ...], int]) -> None:
        modules, self._lessons = start
        self._gpus = gpus
        self._heard: list[tuple[object, ...]] = []
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides a GPU only from those who asked for one
        memory.keep_freed()
        self._held: dict[str, Any] = {}
        self._thread = threading.local()
        for name in modules:
            with contextlib.suppress(Exception):  # another version on this machine: ``about`` says so in words
                importlib.import_module(name)

    def hold(self, key: str, value: object) -> None:
        """Keep ``value`` for later calls that name its key."""
        self._held[key] = value

    def drop(self, keys: Sequence[str]) -> None:
        """Forget these values."""
        for key in keys:
            self._held.pop(key, None)
        memory.give_back()

    def compute(self, function: Function, *args: object) -> Timed:
        """(``function(*args)``, seconds it took), with one thread; what is held stands in place of its key."""
        began = time.perf_counter()
        self._alone()
        return function(*[self._resolve(a) for a in args]), time.perf_counter() - began

    def _alone(self) -> None:
        if not hasattr(self._thread, "alone"):
            use_one_thread()  # the limit holds for the thread that sets it
            self._thread.alone = True

    def _resolve(self, value: object) -> Any:
        if isinstance(value, Kept):
            return self._held[value.key]
        if not isinstance(value, Shared):
            return value
        if value.key not in self._held:
            self._held[value.key] = ray.get(value.refs[0])
        return self._held[value.key]

    @ray.method(concurrency_group="life")
    def about(self) -> About:
        """Where this process runs and with what; the first sign of life."""
        node = ray.get_runtime_context().get_node_id()
        return About(node, socket.gethostname(), self._device(), versions.own())

    def _device(self) -> str:
        if not self._gpus:  # an actor on a CPU imports torch when it computes with it, if it ever does
            return "cpu"
        import torch

        return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"

    @ray.method(concurrency_group="life")
    def hear(self, function: Function, *args: object) -> None:
        """What the driver tells every process (``Runtime.tell``)."""
        self._learn(function, *args)

    def _learn(self, function: Function, *args: object) -> None:
        function(*args)
        self._heard.append((function, *args))

    @ray.method(concurrency_group="life")
    def pulse(self) -> bool:
        """A sign of life, also while a call computes: whether it has heard all that it was to hear at its start."""
        return len(self._heard) >= self._lessons
