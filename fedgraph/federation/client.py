"""One round at the clients that a worker holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedgraph.errors import FedgraphError, RuntimeFailure
from fedgraph.federation.messages import ClientMessage, Job
from fedgraph.methods.base import Streams, kinds
from fedgraph.privacy.desk import Desk
from fedgraph.types import Partition

# What `prepare` made for the clients of the latest jobs: rebuilt from the subgraphs whenever it is missing
# (a restarted worker, another client), so it can never change a result.
_workspaces: dict[str, dict[int, Any]] = {}
# Digests of what these clients released, so that a replay of another value is refused (``Desk.replay``).
_digests: dict[str, dict[int, Any]] = {}
_KEEP = 2


def run_block(
    clients: Sequence[int], partition: Partition, job: Job, model: dict[str, np.ndarray], round_: int
) -> list[ClientMessage]:
    """The messages of ``clients`` for one round, in order."""
    return [_run_client(client, partition, job, model, round_) for client in clients]


def _run_client(client: int, partition: Partition, job: Job, model: dict[str, np.ndarray], round_: int) -> ClientMessage:
    method = kinds.method(job.plan.method)
    try:
        work = _workspace(job, partition, client, method)
        streams = _streams(job, client, round_)
        cell = "/".join(str(part) for part in job.stream)
        desk = Desk(
            cell,
            client,
            round_,
            job.plan.releases,
            streams.generator("noise"),
            earlier=lambda before: _streams(job, client, before).generator("noise"),
            released=_kept(_digests, job.key).setdefault(client, {}),
        )
        released = method.client(job.plan, work, model, round_, streams, desk)
        return ClientMessage(client, round_, released, tuple(desk.entries))
    except FedgraphError as error:
        raise type(error)(f"{job.plan.method}, client {client}, round {round_}: {error}") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise RuntimeFailure(f"{job.plan.method}, client {client}, round {round_}: {what}") from error


def _streams(job: Job, client: int, round_: int) -> Streams:
    return Streams(job.root, (*job.stream, "client", client, "round", round_), job.fingerprint)


def _kept(by_job: dict[str, dict[int, Any]], key: str) -> dict[int, Any]:
    """What is kept for the clients of the job ``key``; older jobs' are forgotten."""
    if key not in by_job:
        while len(by_job) >= _KEEP:
            del by_job[next(iter(by_job))]
        by_job[key] = {}
    return by_job[key]


def _workspace(job: Job, partition: Partition, client: int, method: kinds.Method) -> Any:
    kept = _kept(_workspaces, job.key)
    if client not in kept:
        kept[client] = method.prepare(job.plan, partition.subgraphs[client])
    return kept[client]
