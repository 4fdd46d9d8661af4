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


def merged(
    plan: Plan[Params, Made],
    before: np.ndarray,
    training: tuple[int, ...],
    changes: list[np.ndarray],
    where: Mapping[int, np.ndarray],
) -> np.ndarray:
    """The weighted average over those who trained: changes arrive weighted by shares of all clients."""
    counts = np.array([len(s) if plan.facts.sizes.graphs else sum(s) for s in plan.made.sizes], dtype=np.float64)
    missing = len(training) < plan.facts.sizes.num_clients
    scale = np.float32(counts.sum() / counts[list(training)].sum()) if missing else None
    parameters = before.copy()
    for client, change in zip(training, changes, strict=True):
        parameters[where[client]] += change if scale is None else change * scale
    return parameters


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
