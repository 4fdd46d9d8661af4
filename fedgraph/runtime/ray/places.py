"""Where the actors of a run stand, what they are called, and which share of a GPU each has.

There is one place for each client, with its CPU and its share of GPUs. Where GPUs are wanted, every place gets an equal share
of one, or several whole ones, on the machine where its CPU is; a share must divide one GPU, because no actor can have two
halves. How many places there are is arithmetic on what the cluster says it has, so a wish that cannot be met is refused before
anybody waits.

In every place stand three actors: a client, a curator and, where pairs are solved, a process of the server. They divide the
place's CPU and its GPU: clients get half of it, the other two a quarter each; where a place has several whole GPUs, the client
has all but one. The server itself works on a CPU of the driver's machine, or, where GPUs are used, in the first place, whose
curator and process for pairs give it half of their shares.

A cluster whose machines start when they are asked for says so by two resources of its head, ``gpus_to_start`` and
``cpus_per_gpu_to_start`` (``ray_cluster.yaml``). They count where the user asks for GPUs, and Ray's autoscaler starts them for
the placement group.
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

_MOST_PER_GPU = 4  # places that share one GPU where nobody says how many: each holds a context of some 500 MB
_SECONDS_TO_FREE_A_NAME = 20.0
SECONDS_TO_PLACE = 15.0  # until it is said that others use what was asked for
_SECONDS_TO_START_MACHINES = 900.0
_SHARE = {"client": 0.5, "curator": 0.25, "server-pairs": 0.25}
_STARTS = "to be started"  # the name of a machine that is not there yet


@dataclass(frozen=True)
class PlaceNode:
    """One living machine of a cluster, and all that it has (also what is in use)."""

    name: str  # Of the machine
    cpus: float  # How many
    gpus: float  # How many


def _room(nodes: Sequence[PlaceNode], gpus_per_worker: float) -> int:
    """How many places fit, each with one CPU and that share of GPUs."""
    return sum(min(int(n.cpus), _on_gpus(n.gpus, gpus_per_worker)) for n in nodes)


def _on_gpus(gpus: float, share: float) -> int:
    if share <= 0:
        return 10**9
    return int(gpus) * int(1 / share + 1e-9) if share <= 1 else int(gpus / share + 1e-9)


def choose(nodes: Sequence[PlaceNode], workers: int | None, gpus_per_worker: float | None) -> tuple[int, float]:
    """(workers, GPUs for each). ``RuntimeFailure`` in one line that names what is there and what was asked.

    workers None: one per CPU; where GPUs are used one per CPU of the machines that have them, at most ``_MOST_PER_GPU`` for
    each GPU. gpus_per_worker None: the largest share with which all workers fit, 0 where the cluster has no GPU.
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
    """``RuntimeFailure`` where the workers do not fit."""
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

    num: int  # How many
    gpus: float  # Of each
    room: PlacementGroup  # What was reserved for them in Ray
    prefix: str  # Tells two runs in one Ray apart
    node: str  # The driver's

    def names(self, kind: str) -> tuple[str, ...]:
        """As ``ray list actors`` shows them: ``client-0`` and so on; ``server`` for the one without a place."""
        return (f"{self.prefix}server",) if kind == "server" else tuple(f"{self.prefix}{kind}-{k}" for k in range(self.num))

    def gpus_of(self, kind: str, slot: int = 0) -> float:
        """The share of GPUs that an actor of this kind gets there. Ray knows parts of one GPU, or whole ones."""
        if kind == "client":
            return self.gpus - 1 if self.gpus > 1 else _whole_parts(self.gpus / 2)
        quarter = self.gpus / 4 if self.gpus <= 1 else 0.5
        if kind == "server":
            return _whole_parts(quarter)
        return _whole_parts(quarter / 2 if slot == 0 else quarter)

    def start(self, what: type, kind: str, slot: int, *args: object) -> ActorHandle:
        """The actor in this place, called with its share of GPUs and ``args``. Ray starts it again where it dies.

        Raises: ``ValueError`` where its predecessor has died and Ray has not freed the name after some seconds.
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
    """Cut after the fourth digit, as far as Ray counts, so that shares never add up to more than the whole."""
    return math.floor(gpus * 1e4 + 1e-6) / 1e4


def to_start(resources: Mapping[str, float], gpus_per_worker: float | None) -> list[PlaceNode]:
    """Machines that a cluster starts when they are asked for; none where nobody asks for GPUs.

    Args:
        resources: All that the cluster has now.
        gpus_per_worker: As the user asks; None: what is there is used.
    """
    cpus = resources.get("cpus_per_gpu_to_start", 1.0)
    missing = int(resources.get("gpus_to_start", 0.0) - resources.get("GPU", 0.0))
    return [PlaceNode(_STARTS, cpus, 1.0)] * (max(missing, 0) if gpus_per_worker else 0)


def reserve(num: int, gpus: float, there: Sequence[PlaceNode]) -> Places:
    """Room for every place. ``RuntimeFailure`` where others use it: it says what is there, what is free, what was asked."""
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
