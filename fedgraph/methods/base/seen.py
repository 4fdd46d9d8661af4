"""What a viewer of every round saw: for methods that let an attack read their training messages (``evidence``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fedgraph.methods.base.plan import Plan
from fedgraph.methods.base.state import State
from fedgraph.privacy.units import Viewer

MOST = 30_000_000  # numbers in all messages of a run that are kept


def worth_keeping(plan: Plan[Any, Any], num_parameters: int) -> bool:
    """Whether the viewer sees the rounds, and all messages together are not too much to keep."""
    viewer = plan.protection.viewer
    messages = plan.rounds * (1 if viewer is Viewer.SERVER_SECURE_AGGREGATION else plan.facts.num_clients)
    return viewer not in (Viewer.CURATOR_TRUSTED, Viewer.WORLD) and messages * num_parameters <= MOST


def groups(plan: Plan[Any, Any]) -> tuple[np.ndarray, ...]:
    """Global ids of the nodes that one message sums over: of everybody behind secure aggregation, else of each client."""
    if plan.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        return (np.arange(plan.facts.num_nodes),)
    return plan.facts.members


def messages(
    plan: Plan[Any, Any], state: State[Any], group: int, name: str
) -> Iterator[tuple[int, Mapping[str, np.ndarray], np.ndarray]]:
    """(round, broadcast model, message called ``name``) of one of ``groups``, where it was sent."""
    for model, inbox in state.seen:
        if plan.protection.viewer is Viewer.SERVER_SECURE_AGGREGATION:
            if name in inbox.sums:
                yield inbox.round, model, inbox.sums[name]
        elif name in inbox.each:
            yield inbox.round, model, inbox.each[name][group]
