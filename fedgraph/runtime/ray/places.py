"""Where the actors of a run stand and what they are called: one place for each client, with its CPU and its share of GPUs.

In every place stand three actors: a client, a curator and, where pairs are solved, a process of the server. They divide the
place's CPU and its GPU: clients get half of it, the other two a quarter each; where a place has several whole GPUs, the client
has all but one. The server itself works on a CPU of the driver's machine.
"""

import time
from dataclasses import dataclass
from typing import Any, TypeAlias

import ray
from ray.actor import ActorHandle
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

SECONDS_TO_FREE_A_NAME = 20.0
SHARE = {"client": 0.5, "curator": 0.25, "server-pairs": 0.25}


Start: TypeAlias = tuple[tuple[str, ...], int]  # modules to import, and how often the actor is told something at once


@dataclass(frozen=True, eq=False)
class Places:
    """num places in ``room``, each with so many ``gpus``. prefix: tells two runs in one Ray apart. node: the driver's."""

    num: int
    gpus: float
    room: PlacementGroup
    prefix: str
    node: str

    def name(self, kind: str, slot: int | None) -> str:
        """As ``ray list actors`` shows it: ``client-0``; ``server`` for the one without a place."""
        return self.prefix + (kind if slot is None else f"{kind}-{slot}")

    def gpus_of(self, kind: str) -> float:
        """The share of GPUs that an actor of this kind gets. Ray knows parts of one GPU, or whole ones."""
        if kind not in SHARE:
            return 0.0
        if self.gpus <= 1:
            return self.gpus * SHARE[kind]
        return self.gpus - 1 if kind == "client" else 0.5

    def start(self, what: type, kind: str, slot: int | None, start: Start, *more: object) -> ActorHandle:
        """The actor in this place. One whose predecessor has just died waits until Ray has freed the name."""
        gpus = self.gpus_of(kind)
        threads = {"life": 1, "trainings": self.num + 2, "pairs": self.num} if kind == "server" else {"life": 1}
        remote: Any = ray.remote  # its types know no concurrency groups
        actor = remote(concurrency_groups={"life": 1, "trainings": 1, "pairs": 1} | threads)(what)
        where: NodeAffinitySchedulingStrategy | PlacementGroupSchedulingStrategy = NodeAffinitySchedulingStrategy(
            self.node, soft=False
        )
        if slot is not None:
            where = PlacementGroupSchedulingStrategy(self.room, slot)
        options = {
            "name": self.name(kind, slot),
            "num_cpus": SHARE.get(kind, 0),
            "num_gpus": gpus,
            "scheduling_strategy": where,
            "max_restarts": 0,
            "max_task_retries": 0,
        }
        until = time.monotonic() + SECONDS_TO_FREE_A_NAME
        while True:
            try:
                handle: ActorHandle = actor.options(**options).remote(gpus, start, *more)
                return handle
            except ValueError:  # the name is taken
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
