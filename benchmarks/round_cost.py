"""What a round costs beside its work: processor milliseconds of all processes, two client actors and a server.

    python -m benchmarks.round_cost [--rounds 300] [--floats 100 20000 200000]

Each client answers a model of so many floats with an array of the same size, and the server adds them up. *serial* is the work
itself. *calls* is what a run does: one ordinary call for each client actor and round. *graph* is the same round as one of Ray's
compiled graphs, which keep a loop in every actor and pass arrays through shared memory. *waiting* is what the processes use
while nothing is asked of them for as long.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
from ray.dag import InputNode, MultiOutputNode

from benchmarks import federation_meter as meter
from fedgraph import runtime
from fedgraph.runtime.base import RuntimeClients

WARM = 20


def answer(items: range, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"x": model["x"] + 1.0}


def led(clients: RuntimeClients, rounds: int, floats: int) -> tuple[float, float]:
    """(processor seconds, wall seconds) of so many rounds, after some to warm up."""
    model, began = {"x": np.zeros(floats)}, (0.0, 0.0)
    for done in range(WARM + rounds):
        if done == WARM:
            began = (meter.cpu_seconds(), time.perf_counter())
        sent = clients.ask(answer, 2, model)
        model = {"x": np.sum([one["x"] for one in sent], axis=0) / len(sent)}
        clients.count(done + 1, WARM + rounds, 2, 8 * floats, 8 * floats)
    return meter.cpu_seconds() - began[0], time.perf_counter() - began[1]


class Party:
    """An actor of the compiled graph."""

    def answer(self, model: np.ndarray) -> np.ndarray:
        return model + 1.0


class Hub:
    """The server of the compiled graph: the same loop, but each round is one execution of the graph."""

    def __init__(self, parties: list[Any]) -> None:
        with InputNode() as model:
            graph = MultiOutputNode([party.answer.bind(model) for party in parties])
        self.graph = graph.experimental_compile()

    def led(self, rounds: int, floats: int) -> tuple[float, float]:
        model, began = np.zeros(floats), (0.0, 0.0)
        for done in range(WARM + rounds):
            if done == WARM:
                began = (meter.cpu_seconds(), time.perf_counter())
            model = np.sum(ray.get(self.graph.execute(model)), axis=0) / 2
        return meter.cpu_seconds() - began[0], time.perf_counter() - began[1]


def compiled(rounds: int, floats: int) -> tuple[float, float, float]:
    """As ``led``; and what the actors use while they wait for as long as their rounds took."""
    actor: Callable[..., Any] = ray.remote(Party).options(num_cpus=0).remote
    parties = [actor(), actor()]
    hub: Any = ray.remote(Hub).options(num_cpus=0).remote(parties)
    found: tuple[float, float] = ray.get(hub.led.remote(rounds, floats))
    before = meter.cpu_seconds()
    time.sleep(found[1])
    waits = meter.cpu_seconds() - before
    for one in (hub, *parties):
        ray.kill(one)
    return *found, waits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--floats", type=int, nargs="+", default=[100, 20_000, 200_000])
    asked = parser.parse_args()
    if meter.MARK not in os.environ:  # a process shows the environment with which it began
        os.execve(
            sys.executable, [sys.executable, "-m", "benchmarks.round_cost", *sys.argv[1:]], {**os.environ, meter.MARK: "round"}
        )
    print("processor ms (wall ms) of a round:")
    with runtime.start("serial") as serial, runtime.start("ray", workers=2) as engine:
        for floats in asked.floats:
            plain = serial.federate(led, asked.rounds, floats, path=("cost",))
            calls = engine.federate(led, asked.rounds, floats, path=("cost",))
            before = meter.cpu_seconds()
            time.sleep(calls[1])
            idle = (meter.cpu_seconds() - before, calls[1])
            took, wall, waits = compiled(asked.rounds, floats)
            found = {
                "serial": plain,
                "calls": calls,
                "calls, waiting": idle,
                "graph": (took, wall),
                "graph, waiting": (waits, wall),
            }
            words = [f"{name} {1e3 * a / asked.rounds:.2f} ({1e3 * b / asked.rounds:.2f})" for name, (a, b) in found.items()]
            print(f"{floats:>8} floats: {', '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
