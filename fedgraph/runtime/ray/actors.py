"""The client actor, and what the three kinds of actors have in common.

Ray actors represent clients that hold subgraphs. They compute DP-APPR and node-DP GNNs or multi-bit-encoded LDP embeddings; a
server actor aggregates by FedAvg and computes Gromov-Wasserstein distances with POT for clustering and classification.
"""

import contextlib
import importlib
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ray

from fedgraph.runtime import process
from fedgraph.runtime.base import RuntimeFunction
from fedgraph.runtime.ray.doors import ActorDoor, DoorAddress, TimedDoorAnswer

ActorStart: TypeAlias = tuple[tuple[str, ...], int]  # modules to import, and how often the actor is told something at once


@dataclass(frozen=True)
class ActorAbout:
    """What an actor says of itself.

    Attributes:
        node: Of Ray, where it is.
        host: The name of its machine.
        device: ``cpu``, or the name of its first GPU.
        versions: What it computes with.
        door: Where its own machine may ask it; None: nowhere.
    """

    node: str
    host: str
    device: str
    versions: process.ProcessVersions
    door: DoorAddress | None = None


@dataclass(frozen=True, eq=False)
class SharedWithActors:
    """A value in the object store.

    Attributes:
        key: Under which actors keep it.
        refs: Of the value, or where it was ``dealt`` of one piece for each client actor. References stand inside a tuple, so
            that Ray passes them and not the values.
        dealt: Whether it is in pieces.
    """

    key: str
    refs: tuple[ray.ObjectRef, ...]
    dealt: bool = False

    def key_at(self, slot: int) -> str:
        """Under which the actor of this place keeps it, or its piece."""
        return f"{self.key}@{slot}" if self.dealt else self.key


@dataclass(frozen=True)
class KeptByActor:
    """Stands in a message for a value that its receiver holds.

    Attributes:
        key: Under which it holds it.
    """

    key: str


class Actor:
    """Keeps values, computes one call at a time, and answers beside it.

    Args:
        gpus: Its share of them.
        start: What the driver has loaded of fedgraph, imported while the driver plans; and how often the actor is told
            something (``hear``) before it is ready.
    """

    def __init__(self, gpus: float, start: ActorStart) -> None:
        modules, self._lessons = start
        self._heard: list[tuple[object, ...]] = []
        self._held: dict[str, Any] = {}
        self._thread = threading.local()
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
        self._about = ActorAbout(node, socket.gethostname(), device, process.own_versions())

    def hold(self, key: str, value: object) -> None:
        """Keep ``value`` for later calls that name its key."""
        self._held[key] = value

    def drop(self, keys: Sequence[str]) -> None:
        """Forget these values."""
        for key in keys:
            self._held.pop(key, None)
        process.give_back_process_memory()

    def compute(self, function: RuntimeFunction, *args: object) -> TimedDoorAnswer:
        """(``function(*args)``, seconds it took), with one thread; what is held stands in place of its key."""
        began = time.perf_counter()
        self._alone()
        return function(*[self._resolve(a) for a in args]), time.perf_counter() - began

    def _alone(self) -> None:
        if not hasattr(self._thread, "alone"):
            process.use_one_thread()  # the limit holds for the thread that sets it
            self._thread.alone = True

    def _resolve(self, value: object) -> Any:
        if not isinstance(value, KeptByActor | SharedWithActors):
            return value
        if isinstance(value, SharedWithActors) and value.key not in self._held:
            self._held[value.key] = ray.get(value.refs[0])
        return self._held[value.key]

    @ray.method(concurrency_group="life")
    def hear(self, function: RuntimeFunction, *args: object) -> None:
        """What the driver tells every process (``Runtime.tell``)."""
        function(*args)
        self._heard.append((function, *args))

    @ray.method(concurrency_group="life")
    def pulse(self) -> ActorAbout | None:
        """A sign of life, also while a call computes; None until it has heard all that it was to hear at its start."""
        return self._about if len(self._heard) >= self._lessons else None


class Client(Actor):
    """``client-k``: holds the subgraphs of its virtual clients, their workspaces and what they released.

    A client is data, not a process: thousands of ego-networks share a few of these actors, one for each CPU or share of a GPU.
    It holds the pieces that were dealt to it, and nothing of the others'. It never calls anybody: the server asks, it answers,
    to a server on its own machine by its ``ActorDoor``.

    ========  =====================================================================================================
    ``hold``  receives a piece of the data, or a training's plan; once, before the first round that needs it
    ``round`` computes one round of its virtual clients and gives what they release (``federation.client.run_blocks``)
    ``drop``  forgets pieces and plans
    ========  =====================================================================================================
    """

    def __init__(self, gpus: float, start: ActorStart) -> None:
        super().__init__(gpus, start)
        raylet = next(n["RayletSocketName"] for n in ray.nodes() if n["NodeID"] == self._about.node)
        self._door = ActorDoor(self.compute, os.path.dirname(raylet))
        self._about = replace(self._about, door=self._door.address)

    def round(self, function: RuntimeFunction, items: range, *args: object) -> TimedDoorAnswer:
        """(``function(items, *args)``, seconds). items: the blocks of virtual clients that are its own."""
        return self._door.once(function, items, *args)
