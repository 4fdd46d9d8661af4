"""What a viewer of every round saw: for methods that let an attack read their training messages (``evidence``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedgraph.methods.base.plan import Plan
from fedgraph.methods.base.state import State
from fedgraph.privacy.units import Viewer

FEW = 16  # up to so many clients, every message travels by itself (``federation.blocks``)
MOST = 30_000_000  # numbers in all messages of a run that are kept


def worth_keeping(plan: Plan[Any, Any], num_parameters: int) -> bool:
    """Whether the viewer sees the rounds, and all messages together are not too much to keep."""
    viewer = plan.protection.viewer
    messages = plan.rounds * (1 if viewer is Viewer.SERVER_SECURE_AGGREGATION else plan.facts.num_clients)
    return viewer not in (Viewer.CURATOR_TRUSTED, Viewer.WORLD) and messages * num_parameters <= MOST


def colluding(plan: Plan[Any, Any]) -> range:
    """Clients that an attack on sums counts as the server's: the last t of the plan, who know what they sent themselves.

    A price is that of the worst t clients, so any t will do. None where more than ``FEW`` clients take part: then sums over
    blocks of clients travel, and nobody has made a single message.
    """
    n, t = plan.facts.num_clients, plan.facts.colluders
    hidden = plan.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION
    return range(n - t, n) if hidden and plan.facts.members and t < n <= FEW else range(0)


def groups(plan: Plan[Any, Any]) -> tuple[np.ndarray, ...]:
    """Global ids of the nodes that one message sums over: of each client, or behind secure aggregation of all but colluders."""
    if plan.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        known = [plan.facts.members[client] for client in colluding(plan)]
        return (
            np.setdiff1d(np.arange(plan.facts.num_nodes), np.concatenate(known)) if known else np.arange(plan.facts.num_nodes),
        )
    return plan.facts.members


def messages(
    plan: Plan[Any, Any], state: State[Any], group: int, name: str
) -> Iterator[tuple[int, Mapping[str, np.ndarray], np.ndarray]]:
    """(round, broadcast model, message called ``name``) of one of ``groups``, where it was sent. Behind secure aggregation the
    sum, without what the colluding clients sent.
    """
    for model, inbox in state.seen:
        if plan.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
            if name in inbox.sums:
                yield inbox.round, model, inbox.sums[name] - inbox.colluding.get(name, 0)
        elif name in inbox.each:
            yield inbox.round, model, inbox.each[name][group]
