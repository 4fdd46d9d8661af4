"""What the server knows and what reaches it: state, inbox, and the random streams of a client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from fedgraph import seeds

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class State(Generic[S]):
    """What the server knows after a round.

    model: broadcast to every client. memory: kept at the server, of the method's own type. Both are functions of
    released values only. seen: the (model, inbox) of every round so far, where the plan keeps rounds.
    """

    model: dict[str, np.ndarray]
    memory: S
    seen: tuple[tuple[dict[str, np.ndarray], Inbox], ...] = ()


@dataclass(frozen=True, eq=False)
class Inbox:
    """One round's messages as the server may see them.

    sums: name → sum over clients. each: name → one value per client, in client order; empty behind secure
    aggregation. num_clients: how many finished. colluding: name → sum over the colluding clients, who know what they sent; only
    in the rounds that are kept for an attack.
    """

    round: int
    sums: dict[str, np.ndarray]
    each: dict[str, list[np.ndarray]]
    num_clients: int
    colluding: dict[str, np.ndarray] = field(default_factory=dict)


PUBLIC_COINS = "public-coins"  # the one stream of a client that everybody may know


@dataclass(frozen=True)
class Streams:
    """A client's random streams for one round; noise and training never share one.

    fingerprint: of the plan; it enters the name of every stream but the public coins, so that runs with other settings never
    add the same noise twice (their difference would show the data), nor draw the same secret sample or batches.
    """

    root: int
    path: tuple[str | int | float, ...]
    fingerprint: str = ""

    def generator(self, name: str) -> np.random.Generator:
        if name == PUBLIC_COINS:
            return seeds.generator(self.root, *self.path, name)
        return seeds.secret_generator(self.root, *self.path, name, self.fingerprint)
