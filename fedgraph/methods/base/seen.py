"""Reading training messages, for attacks (``attacks.base.evidence``).

A message is Σ_i w_i clip(∇_i) + N(0, s² I), where w_i is 1, or the coin of a canary. Whoever knows all rows subtracts those
that are in every version, and half of each canary's; the rest is Σ_j ±½ clip(∇_j) + noise. ``SeenCoins`` gathers over all
rounds what this shows of the coins: the exact likelihood ratio for a canary alone; what canaries have along one another is
subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedgraph import learning, privacy
from fedgraph.learning import torch
from fedgraph.methods import base
from fedgraph.types import Graph

FEW_SEEN_CLIENTS = 16  # most clients of which each computes and draws noise alone (``federation.messages``)
_SINGLE = 512  # most clients with which an attack on sums knows what the colluding ones sent
_MOST = 30_000_000  # most numbers in all messages of a run that is kept
_CLEAR = 1e-3  # share of the clip that stands for the noise of messages without noise


def rounds_worth_keeping(plan: base.Plan, num_parameters: int) -> bool:
    """Whether the viewer sees single rounds, and all messages together are not too many numbers to keep."""
    viewer = plan.guarantee.protection.viewer
    messages = plan.schedule.rounds * (1 if viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION else plan.facts.num_clients)
    return viewer not in (privacy.Viewer.CURATOR_TRUSTED, privacy.Viewer.WORLD) and messages * num_parameters <= _MOST


def colluders_of(plan: base.Plan) -> range:
    """The clients who collude in an attack on sums: the last t of the plan, who tell the server what they sent.

    The price is that of the worst t clients, so any t will do; t is 1 if a part of every message is summed
    (``PlanSums.paths``). Empty with more than ``_SINGLE`` clients: then only sums over blocks of clients are computed.
    """
    n = plan.facts.num_clients
    if plan.guarantee.protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        t = plan.facts.colluders if plan.facts.members else 0
    else:
        t = 1 if plan.sums.paths else 0
    return range(n - t, n) if t < n <= _SINGLE else range(0)


def groups_of(plan: base.Plan) -> tuple[np.ndarray, ...]:
    """Global ids of the nodes in each message: of each client, or, behind secure aggregation, of all who do not collude."""
    if plan.guarantee.protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        known = [plan.facts.members[client] for client in colluders_of(plan)]
        everybody = np.arange(plan.facts.num_nodes)
        return (np.setdiff1d(everybody, np.concatenate(known)) if known else everybody,)
    return plan.facts.members


def gradients_of(plan: base.Plan, state: base.State, group: int) -> Iterator[tuple[int, Mapping[str, np.ndarray], np.ndarray]]:
    """(round, broadcast model, part ``gradient`` of the message) of one of ``groups_of``, for each round that has it. Behind
    secure aggregation the message is the sum without what colluding clients sent.
    """
    for model, inbox in state.seen:
        if plan.guarantee.protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
            if "gradient" in inbox.sums:
                yield inbox.round, model, inbox.sums["gradient"] - inbox.colluding.get("gradient", 0)
        elif "gradient" in inbox.each:
            yield inbox.round, model, inbox.each["gradient"][group]


def known_shares(plan: base.Plan, state: base.State, units: np.ndarray) -> np.ndarray | None:
    """float64 [num_nodes], the share of each row that the attacker subtracts from a message: 1, and ½ for a canary.

    units: int64 [m, ≥ 1], the canaries' global ids first. None if rounds were not kept, or the relation is not zero-out.
    """
    if not state.seen or plan.guarantee.protection.relation is not privacy.Relation.NODE_ZERO_OUT:
        return None
    shares = np.ones(plan.facts.num_nodes)
    shares[units[:, 0]] = 0.5
    return shares


@dataclass(eq=False)
class SeenCoins:
    """What messages show of the coins of the canaries in them."""

    rows: np.ndarray  # int64 [m], places of the canaries among the rows of a message
    gram: np.ndarray = field(init=False)  # float64 [m, m], sum over messages of ⟨clip(∇ⱼ), clip(∇ₖ)⟩
    along: np.ndarray = field(init=False)  # float64 [m], sum over messages of ⟨clip(∇ⱼ), rest of the message⟩

    def __post_init__(self) -> None:
        self.gram, self.along = np.zeros((self.rows.size, self.rows.size)), np.zeros(self.rows.size)

    def add(self, products: np.ndarray, left_over: np.ndarray) -> None:
        """Adds a message. products: [m, m], ⟨clip(∇ⱼ), clip(∇ₖ)⟩. left_over: [n], ⟨clip(∇), rest⟩ of every row."""
        self.gram += products
        self.along += left_over[self.rows]

    def ratios(self, std: float) -> np.ndarray:
        """float64 [m]: one score for each canary. std: s."""
        return privacy.likelihood_ratios.of_coins(self.gram / (4 * std**2), self.along / (2 * std**2))


def _noise_of(plan: base.Plan, path: str, clip: float) -> float:
    """s of the messages of a path in ``gradients_of``; without noise a small share of the clip, so that scores are finite."""
    std = float(getattr(next(r.mechanism for r in plan.schedule.releases if r.path == path), "std", 0.0))
    if plan.guarantee.protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        std *= math.sqrt(plan.facts.num_clients - len(colluders_of(plan)))
    return std or _CLEAR * clip


def coins_of(
    plan: base.Plan,
    units: np.ndarray,
    groups: Sequence[np.ndarray],
    path: str,
    clip: float,
    read: Callable[[int, np.ndarray, SeenCoins], None],
) -> np.ndarray:
    """float64 [m], a score for each canary, from the messages of the group that holds it.

    units: int64 [m, ≥ 1], the canaries' global ids first. groups: as ``groups_of``. path: path of the noise. read: called with
    the number of a group, the ids of its rows in their order, and its coins, to which it adds all messages.
    """
    found = np.zeros(plan.facts.num_nodes)
    for number, nodes in enumerate(groups):
        coins = SeenCoins(np.flatnonzero(np.isin(nodes, units[:, 0])))
        if coins.rows.size:
            read(number, nodes, coins)
            found[nodes[coins.rows]] = coins.ratios(_noise_of(plan, path, clip))
    return found[units[:, 0]]


class SeenRows:
    """Reads, for ``coins``, messages that sum the clipped gradients of known rows (x).

    labels: int64 [n], −1: unknown. weights: [n], the share of each row that is subtracted from a message.
    """

    def __init__(self, coins: SeenCoins, x: learning.TorchMatrix, labels: np.ndarray, weights: np.ndarray) -> None:
        self._coins, self._weights = coins, weights
        self._x, self._labels = x, torch.tensor(labels, device=learning.torch_device())
        self._overlap = learning.per_sample.overlaps(x, coins.rows)

    def read(self, layout: learning.Layout, vector: np.ndarray, clip: float, message: np.ndarray) -> None:
        """Adds one message, at the parameters ``vector``."""
        each = learning.per_sample.gradients(layout, vector, self._x, self._labels).clipped(clip)
        self._coins.add(each.products([self._overlap], self._coins.rows), each.left_over_products(message, self._weights))


def find_rows(
    plan: base.Plan,
    state: base.State,
    graph: Graph,
    units: np.ndarray,
    layout: learning.Layout,
    clip: float,
    make: Callable[[Graph], learning.TorchMatrix],
    weights: np.ndarray,
) -> np.ndarray:
    """``coins_of`` for a method whose messages are sums of gradients of the rows that ``make`` gives of a graph."""

    def read(number: int, nodes: np.ndarray, coins: SeenCoins) -> None:
        part = graph.induced(nodes)
        rows = SeenRows(coins, make(part), part.labels, weights[nodes])
        for _, model, message in gradients_of(plan, state, number):
            rows.read(layout, model["parameters"], clip, message)

    return coins_of(plan, units, groups_of(plan), plan.schedule.releases[0].path, clip, read)
