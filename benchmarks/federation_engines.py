"""The engines that ``federation.py`` compares, each run in a process of its own: ``python -m benchmarks.federation_engines …``.

Each does one round to warm up and then ``rounds`` rounds, and prints one line of JSON. The arithmetic, the split and the first
parameters are the same; the last parameters are written to a file, so that they can be compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks import federation_meter as meter
from benchmarks import federation_work as work
from fedgraph import runtime
from fedgraph.federation import client, rounds, server
from fedgraph.federation.messages import ClientJob, cut_message_blocks, unite_message_block
from fedgraph.learning.clipping.per_sample import clip_per_sample
from fedgraph.learning.layers.torch_matrices import unit_matrix_rows
from fedgraph.learning.propagation.walks import symmetric_walk_matrix
from fedgraph.methods import features
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.runtime.base import split_into_runtime_blocks
from fedgraph.runtime.process import use_one_process_thread
from fedgraph.types import Partition, Subgraph


class Clock:
    """Processor and wall seconds from the end of the first round on."""

    def __init__(self) -> None:
        self.began = (0.0, 0.0)

    def round_done(self, done: int, total: int) -> None:
        if done == 1:
            self.began = (meter.cpu_seconds(), time.monotonic())

    def per_round(self, count: int) -> dict[str, float]:
        cpu, wall = meter.cpu_seconds() - self.began[0], time.monotonic() - self.began[1]
        return {"cpu_s_per_round": cpu / count, "wall_s_per_round": wall / count, "peak_gb": meter.peak_gb()}


class Gcn(nn.Module):
    """Z = Â relu(Â X W₀ᵀ + b₀) W₁ᵀ + b₁; parameters in the order of torch_geometric's GCN."""

    def __init__(self, d: int, h: int, c: int) -> None:
        super().__init__()
        self.b0, self.w0 = nn.Parameter(torch.zeros(h)), nn.Parameter(torch.zeros(h, d))
        self.b1, self.w1 = nn.Parameter(torch.zeros(c)), nn.Parameter(torch.zeros(c, h))

    def forward(self, x: torch.Tensor, hat: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(hat @ functional.linear(x, self.w0) + self.b0)
        return hat @ functional.linear(hidden, self.w1) + self.b1


def dense(subgraph: Subgraph) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(X [n, d], Â [n, n], labels [n]) of one client."""
    graph = subgraph.graph
    x = torch.tensor(unit_matrix_rows(graph.features).toarray())
    return x, torch.tensor(symmetric_walk_matrix(graph.adjacency).toarray()), torch.tensor(graph.labels)


def one_client(model: Gcn, vector: torch.Tensor, x: torch.Tensor, hat: torch.Tensor, y: torch.Tensor) -> tuple[np.ndarray, int]:
    """(the trained parameters, float32 [p], labelled nodes)."""
    parameters, known, at = list(model.parameters()), y >= 0, 0
    with torch.no_grad():
        for p in parameters:
            p.copy_(vector[at : at + p.numel()].view_as(p))
            at += p.numel()
    for _ in range(work.STEPS if known.any() else 0):
        found = torch.autograd.grad(functional.cross_entropy(model(x, hat)[known], y[known]), parameters)
        with torch.no_grad():
            for p, gradient in zip(parameters, found, strict=True):
                p.sub_(gradient, alpha=work.RATE)
    return nn.utils.parameters_to_vector(parameters).detach().numpy(), int(known.sum())


def fedgraph(given: work.Workload, count: int, engine: str, workers: int, files: Path) -> dict[str, Any]:
    """As a run does it."""
    clock, began = Clock(), time.monotonic()
    plan = given.plan
    state = server.begin_at_server(ClientJob("start", 0, ("start",), plan))
    with runtime.start(engine, workers) as pool:
        shared = pool.share("partition", given.partition)
        outcome = rounds.run_rounds(pool, shared, plan, 0, ("start",), ("start",), rounds.RoundPrefixes(), clock.round_done)
        found = clock.per_round(count)
        np.save(files / "fedgraph.npy", outcome.state.model["parameters"])
        np.save(files / "start.npy", state.model["parameters"])
        seconds = time.monotonic() - began
        ledger = sum(len(json.dumps(line.to_dict())) for line in outcome.releases)
    return found | {"total_s": seconds, "ledger_bytes": ledger, "releases": sum(line.count for line in outcome.releases)}


def sent_bytes(given: work.Workload, workers: int) -> dict[str, Any]:
    """Bytes that ``workers`` workers send the server in one round, dealt as the engine deals."""
    job = ClientJob("bytes", 0, ("bytes",), given.plan)
    model = server.begin_at_server(job).model
    total = 0
    for items in split_into_runtime_blocks(len(cut_message_blocks(given.partition.num_clients)), workers):
        messages = client.run_client_blocks(items, given.partition.subgraphs, job, model, 0)
        total += sum(value.value.nbytes for message in messages for value in message.released.values())
    return {"bytes_per_round": total}


def clients(given: work.Workload, files: Path) -> dict[str, Any]:
    """Writes ``clients.npz`` for the scripts of other simulators (``federation_peer``)."""
    joint, starts = unite_message_block(given.partition.subgraphs)
    hat = symmetric_walk_matrix(joint.graph.adjacency).tocoo()
    order = np.lexsort((hat.coords[1], hat.coords[0]))
    np.savez(
        files / "clients.npz", starts=starts, x=unit_matrix_rows(joint.graph.features).toarray(), labels=joint.graph.labels,
        row=hat.coords[0][order], column=hat.coords[1][order], value=hat.data[order],
    )  # fmt: skip
    return {}


def plain_loop(given: work.Workload, count: int, files: Path) -> dict[str, Any]:
    """One process, one client after another, torch as its manual shows it."""
    use_one_process_thread()
    clock, vector = Clock(), np.load(files / "start.npy")
    if given.name == "features":
        step = _plain_features(given)
    else:
        model = Gcn(work.WORDS, work.HIDDEN, work.CLASSES)
        held = [dense(s) for s in given.partition.subgraphs]
        weight = sum(int((y >= 0).sum()) for *_, y in held)

        def step(vector: np.ndarray) -> np.ndarray:
            start, total = torch.tensor(vector), np.zeros(vector.size)
            for own in held:
                trained, known = one_client(model, start, *own)
                total += np.multiply(trained, known, dtype=np.float64)
            return (total / weight).astype(np.float32)

    for done in range(count + 1):
        vector = step(vector)
        clock.round_done(done + 1, count + 1)
    found = clock.per_round(count)
    np.save(files / "plain_loop.npy", vector)
    return found


def _plain_features(given: work.Workload) -> Callable[[np.ndarray], np.ndarray]:
    """Each client's clipped gradient sum with its own share of noise; the parameters stay where they are."""
    plan, rng = given.plan, np.random.default_rng(0)
    held = [features.prepare(plan, s) for s in given.partition.subgraphs]
    made, noise = plan.made, plan.schedule.releases[0].mechanism
    assert isinstance(noise, GaussianNoise)

    def step(vector: np.ndarray) -> np.ndarray:
        total = np.zeros(vector.size)
        for own in held:
            total += clip_per_sample(made.layout, vector, own.x, own.labels, made.clip)
            total += rng.normal(0, noise.std, vector.size)
        return vector

    return step


_held: dict[int, Any] = {}


def _call(number: int, partition: Partition, vector: np.ndarray) -> tuple[np.ndarray, int]:
    if number not in _held:
        _held[number] = (Gcn(work.WORDS, work.HIDDEN, work.CLASSES), *dense(partition.subgraphs[number]))
    model, *own = _held[number]
    return one_client(model, torch.tensor(vector), *own)


def one_call_per_client(given: work.Workload, count: int, workers: int, files: Path) -> dict[str, Any]:
    """Two actors of Ray, one call for every client and round, every message to the driver."""
    clock, vector = Clock(), np.load(files / "start.npy")
    weight = sum(int((s.graph.labels >= 0).sum()) for s in given.partition.subgraphs)
    with runtime.start("ray", workers) as pool:
        shared = pool.share("partition", given.partition)
        for done in range(count + 1):
            broadcast = pool.share(f"model{done}", vector)
            clients = list(range(given.partition.num_clients))
            total = np.zeros(vector.size)
            for trained, known in pool.map(_call, clients, shared, broadcast):
                total += np.multiply(trained, known, dtype=np.float64)
            pool.forget(broadcast)
            vector = (total / weight).astype(np.float32)
            clock.round_done(done + 1, count + 1)
        found = clock.per_round(count)
    np.save(files / "one_call_per_client.npy", vector)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--workload", default="w1")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--files", type=Path, required=True)
    args = parser.parse_args()
    given, count = work.workload(args.workload, args.clients, args.rounds + 1), args.rounds
    if args.name in ("ray", "serial"):
        found = fedgraph(given, count, args.name, args.workers, args.files)
    elif args.name == "bytes":
        found = sent_bytes(given, args.workers)
    elif args.name == "clients":
        found = clients(given, args.files)
    elif args.name == "plain_loop":
        found = plain_loop(given, count, args.files)
    else:
        found = one_call_per_client(given, count, args.workers, args.files)
    print(json.dumps(found | {"source": given.source}))


if __name__ == "__main__":
    main()
