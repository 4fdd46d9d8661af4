"""What the server knows and what reaches it: state, inbox, and the random streams of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias

import numpy as np
from typing_extensions import TypeVar

from fedgraph import seeds
from fedgraph.privacy.desk import Released

Model: TypeAlias = Mapping[str, np.ndarray]  # what the server broadcasts
Sent: TypeAlias = dict[str, Released]  # one client's message

S_co = TypeVar("S_co", default=object, covariant=True)


@dataclass(frozen=True, eq=False)
class State(Generic[S_co]):
    """What the server knows after a round.

    model: broadcast to every client. memory: kept at the server, of the method's own type. Both are functions of
    released values only. seen: the (model, inbox) of every round so far, where the plan keeps rounds.
    """

    model: dict[str, np.ndarray]
    memory: S_co
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


def client_path(cell: tuple[str | int | float, ...], client: int, round_: int) -> tuple[str | int | float, ...]:
    """Names the streams of one client in one round."""
    return (*cell, "client", client, "round", round_)


def block_path(cell: tuple[str | int | float, ...], first: int, last: int, round_: int) -> tuple[str | int | float, ...]:
    """Names the streams of the clients ``first`` … ``last``, where they are computed as one."""
    return (*cell, "clients", first, last, "round", round_)


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

    def of_client(self, client: int) -> Streams:
        """One client's own streams, where these are the streams of its block (``block_path``)."""
        *cell, _, _, _, _, round_ = self.path
        return replace(self, path=client_path(tuple(cell), client, int(round_)))
