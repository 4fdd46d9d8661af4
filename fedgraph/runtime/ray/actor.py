"""What the three kinds of actors have in common.

Ray restarts a dead actor (``max_restarts``) and repeats its calls (``max_task_retries``). Every random stream is named by
client and round, so a repeated call draws the same noise and gives the same bytes. An actor holds nothing that it cannot get
again: what it needs comes with each call, as a value or as a reference to Ray's object store.
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
MOST_RETRIES = 3  # of a call whose actor died; after that the call itself is what kills (memory, a crash in compiled code)
SECONDS_TO_START = 400.0  # for an actor to import torch on a busy machine, or to wait for a machine
_SECONDS_TO_ANSWER = 10.0  # of a call, before its actor is asked for a sign of life, and of that sign
RUN_GOES_ON = "finished cells are kept: --resume goes on"


class _Deadly(RuntimeFailure):
    """A call kills every actor that computes it."""


@dataclass(frozen=True)
class ActorAbout:
    """Facts of an actor, its sign of life."""

    node: str  # Ray's id of its machine
    host: str  # name of its machine
    pid: int
    device: str  # ``cpu``, or the name of its first GPU
    versions: process.ProcessVersions


@dataclass(frozen=True, eq=False)
class SharedWithActors:
    """A value in Ray's object store."""

    key: str  # key under which actors keep it
    # references to the value, or, if ``dealt``, to one piece for each client actor. They are in a tuple, so that Ray passes the
    # references on, and not the values.
    refs: tuple[ray.ObjectRef, ...]
    dealt: bool = False  # whether it is in pieces

    def of_client(self, number: int) -> "SharedWithActors":
        """The value, or this client actor's piece of it."""
        return SharedWithActors(f"{self.key}@{number}", (self.refs[number],)) if self.dealt else self


def put(value: object, name: object) -> ray.ObjectRef:
    """A reference to the value in the store. ``RuntimeFailure``, with ``name``, if it does not fit."""
    try:
        return ray.put(value)
    except (ObjectStoreFullError, OutOfDiskError) as error:
        raise RuntimeFailure(f"{name} does not fit into Ray's object store: {' '.join(str(error).split())}") from error


def as_own(error: RayError, kind: str) -> Exception:
    """The error of a failed call: the one that the function raised, or a ``RuntimeFailure`` of one line.

    Args:
        error: Ray's error of the call.
        kind: Kind of the actor that was called.
    """
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        return error.cause
    if isinstance(error, (ObjectStoreFullError, OutOfDiskError)):
        return RuntimeFailure(f"Ray's object store is full: {in_a_line(error)}")
    if isinstance(error, RayTaskError):
        return RuntimeFailure(f"{type(error).__name__}: {in_a_line(error)}")
    return _Deadly(f"{MOST_RETRIES + 1} {kind} actors died of it, the last one: {in_a_line(error)}")


def in_a_line(error: BaseException) -> str:
    """The last sentence of Ray's message, without its advice; at most 300 characters."""
    text = str(error)
    for mark in ("Worker exit detail:", "Error:"):
        if mark in text:
            text = text[text.rindex(mark) + (len(mark) if mark.endswith("detail:") else 0) :]
    return " ".join(text.split())[:300]


class Actor:
    """Computes one call at a time, and answers ``about`` beside it.

    Args:
        gpus: Its share of GPUs.
        modules: Modules that the driver has loaded; the actor imports them while the driver plans.
    """

    def __init__(self, gpus: float, modules: Sequence[str]) -> None:
        self._values: dict[str, object] = {}
        self._told: ActorTold = ()
        self._hearing, self._thread = threading.Lock(), threading.local()
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray hides a GPU only from those who asked for one
            os.environ["POT_BACKEND_DISABLE_PYTORCH"] = "1"  # POT gets numpy arrays, and need not import torch
        process.keep_memory()
        for name in modules:
            with contextlib.suppress(Exception):  # the driver's check of versions says what is wrong
                importlib.import_module(name)
        device = "cpu"  # an actor without a GPU imports torch only when it computes with it
        if gpus:
            import torch

            device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"
        node = ray.get_runtime_context().get_node_id()
        self._about = ActorAbout(node, socket.gethostname(), os.getpid(), device, process.own_versions())

    def compute(self, told: ActorTold, function: RuntimeFunction, *args: object) -> ActorAnswer:
        """(``function(*args)``, seconds it took), on one thread.

        Args:
            told: All calls of ``Runtime.tell`` so far; new ones are made first.
            function: The function.
            args: Its arguments; a ``SharedWithActors`` stands for its value.
        """
        began = time.perf_counter()
        self._hear(told)
        return function(*[self._resolve(a) for a in args]), time.perf_counter() - began

    def _hear(self, told: ActorTold) -> None:
        if not hasattr(self._thread, "alone"):
            process.use_one_thread()  # the limit holds only for the thread that sets it
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
        """Forgets a shared value, or its piece."""
        for held in [held for held in self._values if held == key or held.rpartition("@")[0] == key]:
            self._values.pop(held, None)
        process.give_back_process_memory()

    @ray.method(concurrency_group="life", max_task_retries=0)
    def about(self) -> ActorAbout:
        """A sign of life, also while a call computes."""
        return self._about


class ActorPool:
    """All actors of one kind. If one is away (its machine is gone), another one does its work.

    Args:
        kind: Name of the kind, for errors.
        actors: The actors.
    """

    def __init__(self, kind: str, actors: Sequence[ActorHandle]) -> None:
        self._kind, self._actors = kind, actors
        self._away: dict[int, ray.ObjectRef] = {}  # number of an actor that gave no sign of life → its next sign

    def gather(self, calls: Sequence[Callable[[ActorHandle], ray.ObjectRef]], first: int = 0) -> list[Any]:
        """The results of the calls, in order; the first call goes to the actor ``first``, the others to those after it.

        Raises:
            RuntimeFailure: A call killed its actor again and again, or the object store is full.
            Exception: The error that a called function raised.
        """
        by = [self._in_place_of(first + k) for k in range(len(calls))]
        asked = [call(self._actors[k]) for call, k in zip(calls, by, strict=True)]
        moved: set[int] = set()
        while True:
            with contextlib.suppress(RayError):  # each call is looked at below
                return list(ray.get(asked, timeout=_SECONDS_TO_ANSWER))
            for slot, ref in enumerate(asked):
                error = self._error(ref)
                if error is not None and (not isinstance(error, RayActorError) or slot in moved or self._lives(by[slot])):
                    raise as_own(error, self._kind) from None
                if error is None and (ray.wait([ref], timeout=0)[0] or self._lives(by[slot])):
                    continue
                other = self._in_place_of(by[slot])
                if error is not None or other != by[slot]:  # at a dead machine Ray's retries are used up
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
        """The number of this actor, or, if it is away, of the next one that is not."""
        others = [(number + k) % len(self._actors) for k in range(len(self._actors))]
        return next((k for k in others if k not in self._away or self._lives(k)), number)

    def _lives(self, number: int) -> bool:
        """Whether the actor gives a sign of life. It is waited for only once, until the next sign comes."""
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
