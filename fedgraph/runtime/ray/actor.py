"""What the three kinds of actors have in common.

Ray starts a dead actor again (``max_restarts``) and makes its calls again (``max_task_retries``). Every random stream is named
by client and round, so a repeated call draws the same noise and gives the same bytes. An actor holds nothing that it cannot get
again: whatever it needs comes with each call, as a value or as a reference to Ray's object store, and is kept while it lives.
"""

import contextlib
import importlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ray
from ray.actor import ActorHandle
from ray.exceptions import (
    GetTimeoutError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayError,
    RayTaskError,
)

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import process
from fedgraph.runtime.base import RuntimeFunction

ActorTold: TypeAlias = tuple[tuple[Any, ...], ...]  # (function, its arguments …), in order
ActorAnswer: TypeAlias = tuple[object, float]  # what was computed, and its seconds
MOST_RETRIES = 3  # of a call that killed its actor; then its work is what kills (memory, a crash in compiled code)
SECONDS_TO_START = 400.0  # of an actor that imports torch, on a busy machine, or waits for a machine
_SECONDS_TO_ANSWER = 10.0  # then an actor is asked whether it lives, and has as long to say so
RUN_GOES_ON = "finished cells are kept: --resume goes on"


class _Deadly(RuntimeFailure):
    """A call that kills whoever computes it."""


@dataclass(frozen=True)
class ActorAbout:
    """What an actor says of itself."""

    node: str  # Of Ray, where it is
    host: str  # The name of its machine
    pid: int  # Its process
    device: str  # ``cpu``, or the name of its first GPU
    versions: process.ProcessVersions  # What it computes with


@dataclass(frozen=True, eq=False)
class SharedWithActors:
    """A value in Ray's object store."""

    key: str  # under which actors keep it
    # to the value, or where it was ``dealt`` to one piece for each client actor. They stand inside a tuple, so that Ray passes
    # them on and not the values.
    refs: tuple[ray.ObjectRef, ...]
    dealt: bool = False  # whether it is in pieces

    def of_client(self, number: int) -> "SharedWithActors":
        """What this client actor may have of it."""
        return SharedWithActors(f"{self.key}@{number}", (self.refs[number],)) if self.dealt else self


def put(value: object, name: object) -> ray.ObjectRef:
    """The value in the store. ``RuntimeFailure`` that names it where it does not fit."""
    try:
        return ray.put(value)
    except (ObjectStoreFullError, OutOfDiskError) as error:
        raise RuntimeFailure(f"{name} does not fit into Ray's object store: {' '.join(str(error).split())}") from error


def as_own(error: RayError, kind: str) -> Exception:
    """What Ray says of a failed call as an error of ours: the function's own one, or one line.

    Args:
        error: Of the call.
        kind: Of the actor that was called.
    """
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        return error.cause
    if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
        return RuntimeFailure(f"Ray's object store is full: {in_a_line(error)}")
    if isinstance(error, RayTaskError):
        return RuntimeFailure(f"{type(error).__name__}: {in_a_line(error)}")
    return _Deadly(f"{MOST_RETRIES + 1} {kind} actors died of it, the last one: {in_a_line(error)}")


def in_a_line(error: BaseException) -> str:
    """The last words of what Ray says, without its pages of advice."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]


class Actor:
    """Computes one call at a time, and answers ``about`` beside it.

    Args:
        gpus: Its share of them.
        modules: Of fedgraph that the driver has loaded; they are imported while the driver plans.
    """

    def __init__(self, gpus: float, modules: Sequence[str]) -> None:
        self._values: dict[str, object] = {}
        self._told: ActorTold = ()
        self._hearing, self._thread = threading.Lock(), threading.local()
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides a GPU only from those who asked for one
            os.environ["POT_BACKEND_DISABLE_PYTORCH"] = "1"  # it is given arrays of numpy, and would import torch for nobody
        process.keep_memory()
        for name in modules:
            with contextlib.suppress(Exception):  # another version on this machine: ``ActorAbout`` says so in words
                importlib.import_module(name)
        device = "cpu"  # an actor on a CPU imports torch when it computes with it, if it ever does
        if gpus:
            import torch

            device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
        node = ray.get_runtime_context().get_node_id()
        self._about = ActorAbout(node, socket.gethostname(), os.getpid(), device, process.own_versions())

    def compute(self, told: ActorTold, function: RuntimeFunction, *args: object) -> ActorAnswer:
        """(``function(*args)``, seconds it took), with one thread; what is shared stands in place of what names it.

        Args:
            told: All that ``Runtime.tell`` was called with so far; what is new is heard first.
            function: What is computed.
            args: Its arguments.
        """
        began = time.perf_counter()
        self._hear(told)
        return function(*[self._resolve(a) for a in args]), time.perf_counter() - began

    def _hear(self, told: ActorTold) -> None:
        if not hasattr(self._thread, "alone"):
            process.use_one_thread()  # the limit holds for the thread that sets it
            self._thread.alone = True
        with self._hearing:
            for function, *args in told[len(self._told) :]:
                function(*args)
            self._told = max(self._told, told, key=len)

    def _resolve(self, value: object) -> object:
        if not isinstance(value, SharedWithActors):
            return value
        if value.key not in self._values:
            self._values[value.key] = ray.get(value.refs[0])
        return self._values[value.key]

    @ray.method(concurrency_group="life")
    def drop(self, key: str) -> None:
        """Forget a shared value, or its pieces."""
        for held in [held for held in self._values if held == key or held.rpartition("@")[0] == key]:
            self._values.pop(held, None)
        process.give_back_process_memory()

    @ray.method(concurrency_group="life", max_task_retries=0)
    def about(self) -> ActorAbout:
        """A sign of life, also while a call computes."""
        return self._about


class ActorPool:
    """Actors of one kind. While one waits for a machine, since its own is gone, another one does its work.

    Args:
        kind: In words.
        actors: All of them.
    """

    def __init__(self, kind: str, actors: Sequence[ActorHandle]) -> None:
        self._kind, self._actors = kind, actors
        self._away: dict[int, ray.ObjectRef] = {}  # of those that gave no sign of life, the sign that is on its way

    def gather(self, calls: Sequence[Callable[[ActorHandle], ray.ObjectRef]], first: int = 0) -> list[Any]:
        """What the calls give, in order; the first one is made at the actor ``first``, the others at those that follow.

        Raises:
            _Deadly: A call killed its actor again and again.
            Exception: What a called function raised.
        """
        by = [self._in_place_of(first + k) for k in range(len(calls))]
        asked = [call(self._actors[k]) for call, k in zip(calls, by, strict=True)]
        moved: set[int] = set()
        while True:
            with contextlib.suppress(RayError):  # each is looked at below
                return list(ray.get(asked, timeout=_SECONDS_TO_ANSWER))
            for slot, ref in enumerate(asked):
                error = self._error(ref)
                if error is not None and (not isinstance(error, RayActorError) or slot in moved or self._lives(by[slot])):
                    raise as_own(error, self._kind) from None
                if error is None and (ray.wait([ref], timeout=0)[0] or self._lives(by[slot])):
                    continue
                other = self._in_place_of(by[slot])
                if error is not None or other != by[slot]:  # Ray's retries are used up where a dead machine was asked
                    moved |= {slot} if error is not None else set()
                    by[slot] = other
                    asked[slot] = calls[slot](self._actors[other])

    def _error(self, ref: ray.ObjectRef) -> RayError | None:
        if ray.wait([ref], timeout=0)[0]:
            try:
                ray.get(ref)
            except RayError as error:
                return error
        return None

    def _in_place_of(self, number: int) -> int:
        """This actor, or the next one where it is away and another one is not."""
        others = [(number + k) % len(self._actors) for k in range(len(self._actors))]
        return next((k for k in others if k not in self._away or self._lives(k)), number)

    def _lives(self, number: int) -> bool:
        """Whether it gives a sign of life. One that did not is not waited for a second time."""
        sign: Any = self._actors[number].about
        known = self._away.get(number)
        asked = sign.remote() if known is None else known
        try:
            ray.get(asked, timeout=_SECONDS_TO_ANSWER if known is None else 0)
        except RayError as error:
            self._away[number] = asked if isinstance(error, GetTimeoutError) else sign.remote()
            return False
        self._away.pop(number, None)
        return True
