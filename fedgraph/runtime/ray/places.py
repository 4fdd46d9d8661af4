"""Where the actors of a run are placed, their names, and the share of a GPU that each has.

There is one place for each client actor, with a CPU and a share of GPUs. If GPUs are used, every place gets an equal share of
one, or several whole ones, on the machine of its CPU; a share must divide one GPU, because no actor can have two halves. The
number of places follows from the resources of the cluster, so a request that does not fit is refused at once.

Each place has three actors: a client, a curator and, if pairs are solved, a process of the server. They divide the place's CPU
and GPU: the client gets half, the other two a quarter each; if a place has several whole GPUs, the client has all but one. The
server itself runs on the driver's machine, or, if GPUs are used, in the first place, whose curator and process for pairs give
it half of their shares.

A cluster may start machines on request. Its head then has two resources, ``gpus_to_start`` and ``cpus_per_gpu_to_start``
(``ray_cluster.yaml``). They count if the user asks for GPUs, and Ray's autoscaler starts the machines for the placement group.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.util import list_named_actors
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.base import RUNTIME_LANES
from fedgraph.runtime.ray.actor import MOST_RETRIES

_MOST_PER_GPU = 4  # places that share one GPU by default; each holds a context of about 500 MB
_SECONDS_TO_FREE_A_NAME = 20.0
SECONDS_TO_PLACE = 15.0  # to wait for room, before the error that others use it
_SECONDS_TO_START_MACHINES = 900.0
_SHARE = {"client": 0.5, "curator": 0.25, "server-pairs": 0.25}
_STARTS = "to be started"  # name of a machine that is not started yet


@dataclass(frozen=True)
class PlaceNode:
    """One machine of a cluster, with all its CPUs and GPUs, in use or not."""

    name: str
    cpus: float
    gpus: float


def _room(nodes: Sequence[PlaceNode], gpus_per_worker: float) -> int:
    """Number of places that fit, each with one CPU and that share of GPUs."""
    return sum(min(int(n.cpus), _on_gpus(n.gpus, gpus_per_worker)) for n in nodes)


def _on_gpus(gpus: float, share: float) -> int:
    if share <= 0:
        return 10**9
    return int(gpus) * int(1 / share + 1e-9) if share <= 1 else int(gpus / share + 1e-9)


def choose(nodes: Sequence[PlaceNode], workers: int | None, gpus_per_worker: float | None) -> tuple[int, float]:
    """(number of workers, GPUs for each). ``RuntimeFailure`` if they do not fit; it names what there is and what was asked for.

    workers: None: one per CPU; with GPUs one per CPU of machines with GPUs, at most ``_MOST_PER_GPU`` for each GPU.
    gpus_per_worker: None: the largest share with which all workers fit, 0 if the cluster has no GPU.
    """
    if gpus_per_worker is not None and gpus_per_worker > 1 and gpus_per_worker % 1:
        raise RuntimeFailure(f"runtime.gpus_per_worker is {gpus_per_worker:g}; allowed: a share of one GPU, or whole GPUs")
    largest = int(max(n.gpus for n in nodes))
    least = gpus_per_worker if gpus_per_worker is not None else 1 / _MOST_PER_GPU if largest else 0.0
    count = workers or max(1, _room(nodes, least))
    shares = [least]
    if gpus_per_worker is None and largest:
        shares = [*map(float, range(largest, 0, -1)), *(1 / k for k in range(2, count + 1))]
    share = next((share for share in shares if _room(nodes, share) >= count), shares[-1])
    _require_room(nodes, count, share)
    return count, share


def _require_room(nodes: Sequence[PlaceNode], workers: int, gpus_per_worker: float) -> None:
    """``RuntimeFailure`` if the workers do not fit."""
    fit, there = _room(nodes, gpus_per_worker), _machines_in_words(nodes)
    if workers <= fit:
        return
    if _room(nodes, 0.0) < workers:
        raise RuntimeFailure(
            f"runtime.workers is {workers}; allowed here: at most {_room(nodes, 0.0)}, one for each CPU; there is {there}"
        )
    asked = f"{gpus_per_worker:g} GPU" if gpus_per_worker else "no GPU"
    raise RuntimeFailure(
        f"runtime: {workers} workers with 1 CPU and {asked} each were asked for, and {fit} of them fit; there is {there}; "
        "ask for fewer workers, a smaller gpus_per_worker, or 0 to work on CPUs"
    )


def _machines_in_words(nodes: Sequence[PlaceNode]) -> str:
    """``2 machines: a (4 CPU, 1 GPU), b (4 CPU)``."""
    each = [f"{n.name} ({n.cpus:g} CPU{f', {n.gpus:g} GPU' if n.gpus else ''})" for n in nodes]
    more = f" and {len(each) - 6} more" if len(each) > 6 else ""
    return f"{len(each)} machine{'s' if len(each) != 1 else ''}: {', '.join(each[:6])}{more}"


@dataclass(frozen=True, eq=False)
class Places:
    """The places of one run."""

    num: int  # number of places
    gpus: float  # GPUs of each
    room: PlacementGroup  # what Ray reserved for them
    prefix: str  # of names of actors; differs between two runs in one Ray
    node: str  # Ray's id of the driver's machine

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of all actors of a kind, as ``ray list actors`` shows them: ``client-0`` and so on; ``server``."""
        return (f"{self.prefix}server",) if kind == "server" else tuple(f"{self.prefix}{kind}-{k}" for k in range(self.num))

    def gpus_of(self, kind: str, slot: int = 0) -> float:
        """The share of GPUs of an actor of this kind in the place ``slot``. Ray knows parts of one GPU, or whole ones."""
        if kind == "client":
            return self.gpus - 1 if self.gpus > 1 else _whole_parts(self.gpus / 2)
        quarter = self.gpus / 4 if self.gpus <= 1 else 0.5
        if kind == "server":
            return _whole_parts(quarter)
        return _whole_parts(quarter / 2 if slot == 0 else quarter)

    def start(self, what: type, kind: str, slot: int, *args: object) -> ActorHandle:
        """Starts an actor in a place, with its share of GPUs and ``args``. Ray restarts it if it dies.

        ``ValueError`` if Ray has not freed the name of a dead predecessor after some seconds.
        """
        groups = {"life": 1}
        if kind == "server":
            groups |= {"trainings": RUNTIME_LANES * self.num + 2, "pairs": self.num}
        elif kind == "curator":
            groups |= {"cells": RUNTIME_LANES}
        remote: Any = ray.remote  # its types know no concurrency groups
        in_place = PlacementGroupSchedulingStrategy(self.room, slot)
        beside_driver = NodeAffinitySchedulingStrategy(self.node, soft=False)
        gpus = self.gpus_of(kind, slot)
        actor = remote(concurrency_groups=groups)(what).options(
            name=self.names(kind)[slot],
            num_cpus=_SHARE.get(kind, 0),
            num_gpus=gpus,
            scheduling_strategy=beside_driver if kind == "server" and not gpus else in_place,
            max_restarts=-1,
            max_task_retries=MOST_RETRIES,
            enable_task_events=False,
        )
        until = time.monotonic() + _SECONDS_TO_FREE_A_NAME
        while True:
            try:
                handle: ActorHandle = actor.remote(gpus, *args)
                return handle
            except ValueError:  # the name is taken
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


def _whole_parts(gpus: float) -> float:
    """Rounded down to four digits, which Ray counts, so that shares never add up to more than the whole."""
    return math.floor(gpus * 1e4 + 1e-6) / 1e4


def to_start(resources: Mapping[str, float], gpus_per_worker: float | None) -> list[PlaceNode]:
    """The machines that a cluster would start; none unless the user asks for GPUs.

    Args:
        resources: Resources of the cluster now.
        gpus_per_worker: The user's request; None: only what is there is used.
    """
    cpus = resources.get("cpus_per_gpu_to_start", 1.0)
    missing = int(resources.get("gpus_to_start", 0.0) - resources.get("GPU", 0.0))
    return [PlaceNode(_STARTS, cpus, 1.0)] * (max(missing, 0) if gpus_per_worker else 0)


def reserve(num: int, gpus: float, there: Sequence[PlaceNode]) -> Places:
    """Reserves room for every place. ``RuntimeFailure`` if others use it; it says what there is, is free and was asked for."""
    group = placement_group([{"CPU": 1.0} | ({"GPU": gpus} if gpus else {})] * num, strategy="PACK")
    starts = any(node.name == _STARTS for node in there)
    if not group.wait(_SECONDS_TO_START_MACHINES if starts else SECONDS_TO_PLACE):
        remove_placement_group(group)
        each = "1 CPU" + (f" and {gpus:g} GPU" if gpus else "")
        left = ray.available_resources()
        raise RuntimeFailure(
            f"{num} workers with {each} each find no room: there is {_machines_in_words(there)}, and others use it, free now: "
            f"{left.get('CPU', 0.0):g} CPU and {left.get('GPU', 0.0):g} GPU; wait for them, or ask for fewer workers "
            "(runtime.workers)"
        )
    taken, number = list_named_actors(), 1
    while any(name.startswith(f"run-{number}/") or (number == 1 and "/" not in name) for name in taken):
        number += 1
    prefix = "" if number == 1 else f"run-{number}/"
    return Places(num, gpus, group, prefix, ray.get_runtime_context().get_node_id())
