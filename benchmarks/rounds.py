"""A round's cost beside its work, a thousand clients beside a plain loop, and how soon the first round of a new Ray is merged.

    python -m benchmarks.rounds [--clients 4 1000] [--rounds 40] [--json]

``features`` behind secure sums, on a random graph of CiteSeer's words and degrees: one release of each client in each round.
Of each engine: processor milliseconds (all of its processes) and wall milliseconds of a round. They are those of a training of
1 + ``--rounds`` rounds less those of one of a single round, both after a first training, so that no start is in them: the
median of three. ``beside`` its work is that processor time less what the threads took that computed what clients release and
merged it. (Another run's work says little of it: two processes that compute at once slow each other down.) ``plain``: one
process, one client after another, its clipped gradients and its noise. ``start``: seconds from the import to the end of a
training of one round.

The last line is JSON. Where processes are many and cores few, wall time says little.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "ROUNDS_BENCHMARK"  # in the environment of every process that a run starts
WORDS, CLASSES, PER_ROW, NODES_OF_A_CLIENT = 3703, 6, 32, 4
ENGINES = ("ray", "serial", "plain")


class Meter:
    """Processor seconds of every process that carries this process's mark, also of those that have ended."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._mark = f"{MARK}={os.environ[MARK]}".encode()

    def seconds(self) -> float:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self._mark in (entry / "environ").read_bytes().split(b"\0"):
                        fields = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
                        self._seen[entry.name] = int(fields[11]) + int(fields[12])
                except OSError:
                    continue
        return sum(self._seen.values()) / os.sysconf("SC_CLK_TCK")


def measured(engine: str, num_clients: int, rounds: int) -> dict[str, float]:
    """In this process."""
    began, meter = time.monotonic(), Meter()
    train = plain_loop(num_clients) if engine == "plain" else trainer(engine, num_clients)
    train(1)
    started = time.monotonic() - began
    found: dict[str, list[float]] = {"cpu_ms": [], "wall_ms": [], "beside_ms": []}
    for _ in range(3):
        took = []
        for count in (1, 1 + rounds):
            before, at = meter.seconds(), time.monotonic()
            work = train(count)
            cpu = meter.seconds() - before
            took.append((cpu, time.monotonic() - at, cpu - work))
        for values, one, many in zip(found.values(), *took, strict=True):
            values.append(1e3 * (many - one) / rounds)
    train(0)
    return {name: statistics.median(values) for name, values in found.items()} | {"start_s": started}


def planned(num_clients: int, rounds: int) -> tuple[Any, Any]:
    """(who holds what, plan of so many rounds)."""
    import numpy as np
    import scipy.sparse as sp

    from fedgraph import seeds
    from fedgraph.methods import base, features
    from fedgraph.partition import uniform
    from fedgraph.privacy import Viewer
    from fedgraph.types import Graph, GraphProvenance

    rng, nodes = np.random.default_rng(0), max(NODES_OF_A_CLIENT * num_clients, 400)
    ends = np.sort(rng.integers(nodes, size=(2 * nodes, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    upper = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))
    words = sp.csr_array(
        (
            np.ones(nodes * PER_ROW, np.float32),
            rng.integers(WORDS, size=nodes * PER_ROW),
            np.arange(0, nodes * PER_ROW + 1, PER_ROW),
        ),
        shape=(nodes, WORDS),
    )
    words.sum_duplicates()
    words.data[:] = 1.0
    graph = Graph(
        "generated",
        sp.csr_array(upper + upper.T),
        words,
        rng.integers(CLASSES, size=nodes),
        CLASSES,
        GraphProvenance("synthetic", "a random graph of CiteSeer's shape"),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )
    partition = uniform.split(graph, uniform.Params(clients=num_clients), seeds.seeded_generator(0, "benchmark"))
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = base.PublicFacts(
        num_nodes=sum(sizes), num_features=graph.num_features, num_classes=graph.num_classes, clients=sizes,
        viewer=Viewer.SERVER_SECURE_AGGREGATION, membership_from_edges=False, membership_from_labels=False, holdings=None,
        cut_edges="dropped", public="nothing", public_graph=None, public_attributes=None, colluders=1, split_from_edges=False,
        split_from_labels=False, component_from_edges=False, columns_from_rows=False, features_from_edges=False,
    )  # fmt: skip
    return partition, features.plan(features.Params(steps=rounds), facts, base.Budget(1.0, 1e-5))


spent: list[float] = []  # in this process, processor seconds of each call of ``timed``


def timed(items: range, function: Callable[..., Any], *args: Any) -> Any:
    """``function(items, *args)`` at a client actor, its thread's processor seconds noted there."""
    before = time.thread_time()
    try:
        return function(items, *args)
    finally:
        spent.append(time.thread_time() - before)


def taken(items: range) -> float:
    """Processor seconds of work at this actor since they were asked for."""
    total = sum(spent)
    spent.clear()
    return total


class TimedClients:
    """``RuntimeClients`` whose work is timed."""

    def __init__(self, clients: Any) -> None:
        self.share, self.seal, self.count, self._ask = clients.share, clients.seal, clients.count, clients.ask

    def ask(self, function: Callable[..., Any], num_items: int, *args: Any) -> list[Any]:
        return list(self._ask(timed, num_items, function, *args))


def led(clients: Any, num_blocks: int, function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """(what the server's training gives, processor seconds of the clients' work and of the server's merges)."""
    from fedgraph.federation import server

    real, merging = server.merge, [0.0]

    def merge(*given: Any) -> Any:
        before = time.thread_time()
        try:
            return real(*given)
        finally:
            merging[0] += time.thread_time() - before

    clients.ask(taken, num_blocks)
    server.merge = merge  # type: ignore[assignment]
    try:
        found = function(TimedClients(clients), *args)
    finally:
        server.merge = real
    return found, sum(clients.ask(taken, num_blocks)) + merging[0]


class Led:
    """An engine whose trainings are timed, for ``federation.rounds``."""

    def __init__(self, engine: Any, num_blocks: int) -> None:
        self.deal, self._engine, self._num_blocks, self.work = engine.deal, engine, num_blocks, 0.0

    def federate(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        from benchmarks import rounds as own  # by its name, as actors import it: here it may be ``__main__``

        found, work = self._engine.federate(own.led, self._num_blocks, function, *args, **named)
        self.work += work
        return found


def trainer(engine: str, num_clients: int) -> Callable[[int], float]:
    """Trains so many rounds on a new engine, and gives the processor seconds of their work; 0 closes it."""
    from fedgraph import runtime
    from fedgraph.federation import messages, rounds

    made = runtime.start(engine, 2)
    partition, _ = planned(num_clients, 1)
    shared = made.share("partition", partition)
    runs, num_blocks = iter(range(10**6)), len(messages.cut_blocks(num_clients))

    def train(count: int) -> float:
        if not count:
            made.close()
            return 0.0
        _, plan = planned(num_clients, count)
        stream, engine = ("benchmark", next(runs)), Led(made, num_blocks)
        rounds.run(engine, shared, plan, 0, stream, stream, rounds.RoundPrefixes())
        return engine.work

    return train


def plain_loop(num_clients: int) -> Callable[[int], float]:
    """Trains so many rounds as one would write it down."""
    import numpy as np

    from fedgraph.learning import per_sample
    from fedgraph.methods import features
    from fedgraph.runtime import process

    process.use_one_thread()
    partition, plan = planned(num_clients, 1)
    held, made = [features.prepare(plan, s) for s in partition.subgraphs], plan.made
    rng, std = np.random.default_rng(0), plan.schedule.releases[0].mechanism.std
    vector = features.start(plan, rng).model["parameters"]

    def train(count: int) -> float:
        before = time.thread_time()
        if count:
            planned(num_clients, count)
        for _ in range(count):
            total = np.zeros(vector.size)
            for own in held:
                total += per_sample.clipped_sum(made.layout, vector, own.x, own.labels, made.clip)
                total += rng.normal(0, std, vector.size)
        return time.thread_time() - before

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[4, 1000])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measured(args.engines[0], args.clients[0], args.rounds)), flush=True)
        return
    found: dict[str, dict[str, dict[str, float]]] = {}
    for clients in args.clients:
        own = found.setdefault(str(clients), {})
        for engine in args.engines:
            command = [sys.executable, "-m", "benchmarks.rounds", "--one", "--engines", engine, "--clients", str(clients)]
            env = os.environ | {"OMP_NUM_THREADS": "1", MARK: uuid.uuid4().hex}
            done = subprocess.run(
                [*command, "--rounds", str(args.rounds)], env=env, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{engine} failed:\n{done.stderr[-2000:]}")
            own[engine] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
            if not args.json:
                cpu, wall, beside, start = own[engine].values()
                print(
                    f"{clients:6,} clients, {engine:6}: {cpu:8.2f} CPU ms a round, {beside:6.2f} of them beside its work, "
                    f"{wall:8.2f} ms of wall, start {start:.1f} s",
                    flush=True,
                )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
