"""What the server makes of one round's messages: the next parameters, and each client's embedding as it reads it."""

from collections.abc import Mapping

import numpy as np

from fedgraph.methods.base import Inbox, Plan
from fedgraph.methods.local_dp.encoders import part_of
from fedgraph.methods.local_dp.params import Params
from fedgraph.methods.local_dp.training import Made
from fedgraph.privacy.mechanisms import blocks
from fedgraph.privacy.mechanisms.noise import MultiBitEncoder


def step(plan: Plan[Params, Made], velocity: np.ndarray, inbox: Inbox) -> np.ndarray:
    """The change of the parameters: the mean noisy update (or minus the mean noisy gradient, over graphs), with momentum."""
    params = plan.params
    training = plan.made.attendance.training[inbox.round]
    if params.training == "dp_sgd":
        count, rate = sum(len(plan.made.sizes[c]) for c in training), -params.learning_rate
    else:
        count, rate = len(training), params.server_rate
    return params.momentum * velocity + np.float32(rate / count) * inbox.sums["model"]


def next_model(
    plan: Plan[Params, Made],
    model: Mapping[str, np.ndarray],
    training: tuple[int, ...],
    changes: list[np.ndarray],
    where: Mapping[int, np.ndarray],
) -> dict[str, np.ndarray]:
    """What is broadcast after a round in clear; with momentum at clients (MFL) also their velocity, averaged alike."""
    size = model["parameters"].size
    if not plan.params.client_momentum:
        return {"parameters": merged(plan, model["parameters"], training, changes, where)}
    both = {client: np.concatenate([where[client], size + where[client]]) for client in training}
    after = merged(plan, np.concatenate([model["parameters"], model["velocity"]]), training, changes, both)
    return {"parameters": after[:size], "velocity": after[size:]}


def merged(
    plan: Plan[Params, Made],
    before: np.ndarray,
    training: tuple[int, ...],
    changes: list[np.ndarray],
    where: Mapping[int, np.ndarray],
) -> np.ndarray:
    """The parameters after a round: FedAvg's weighted average over those who trained, or a robust mean in its place.

    Args:
        before: float32 [p], or with momentum at clients [2p], parameters and velocity.
        training: who trained.
        changes: of each of them, float32, weighted by its share of all clients.
        where: per client, which entries of ``before`` it changes.
    """
    counts = np.array([len(s) if plan.facts.sizes.graphs else sum(s) for s in plan.made.sizes], dtype=np.float64)
    missing = len(training) < plan.facts.sizes.num_clients
    scale = np.float32(counts.sum() / counts[list(training)].sum()) if missing else None
    parameters = before.copy()
    if plan.params.aggregate != "mean":
        weights = counts[list(training)] / counts.sum()
        single = [change / weight for change, weight in zip(changes, weights, strict=True)]
        held, change = robust(single, [where[c] for c in training], weights, plan.params)
        parameters[held] += (change / weights.sum()).astype(np.float32)
        return parameters
    for client, change in zip(training, changes, strict=True):
        parameters[where[client]] += change if scale is None else change * scale
    return parameters


def robust(
    changes: list[np.ndarray], where: list[np.ndarray], weights: np.ndarray, params: Params
) -> tuple[np.ndarray, np.ndarray]:
    """Per entry the median, or the trimmed mean, of the clients that have it (Yin, Chen, Ramchandran & Bartlett 2018).

    It is scaled by these clients' joint weight, as in FedAvg, where the others change nothing.

    Args:
        changes: of each client, float, not weighted.
        where: of each client, int64, the entries that it changes.
        weights: float [clients], public shares of all clients.
        params: say which mean.

    Returns: the entries that some client has, int64 [k], and their change, float64 [k].
    """
    held, position = np.unique(np.concatenate(where), return_inverse=True)
    rows, starts = np.full((len(where), held.size), np.nan), np.cumsum([0, *map(len, where)])
    for row, change, first in zip(rows, changes, starts, strict=False):
        row[position[first : first + change.size]] = change
    total, count = (weights[:, None] * ~np.isnan(rows)).sum(axis=0), (~np.isnan(rows)).sum(axis=0)
    if params.aggregate == "median":
        centre = np.nanmedian(rows, axis=0)
    else:
        rows, cut = np.sort(rows, axis=0), (params.trim * count).astype(np.int64)  # NaN is last
        place = np.arange(len(rows))[:, None]
        centre = np.mean(rows, axis=0, where=(place >= cut) & (place < count - cut))
    return held, centre * total


def read(plan: Plan[Params, Made], client: int, received: np.ndarray) -> np.ndarray:
    pooled = plan.made.pooled
    if pooled is not None:
        return pooled.read(received)
    return _rectified(plan, client, received) if plan.params.rectify else received


def _rectified(plan: Plan[Params, Made], client: int, rows: np.ndarray) -> np.ndarray:
    mechanism = plan.made.sent[client].mechanism
    parts = blocks.split(rows, plan.made.sizes[client])
    made = [part_of(mechanism, i) for i in range(len(parts))]
    return np.concatenate([m.rectify(h) if isinstance(m, MultiBitEncoder) else h for m, h in zip(made, parts, strict=True)])
