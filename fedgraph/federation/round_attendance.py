"""Which clients answer in which round, and how long their messages take on stated links.

A round asks all clients, or a fixed number of them without replacement. Who is asked is a public coin: it comes from a stream
that everybody may know, never from data. So nothing here amplifies a guarantee. Amplification by sampling clients needs a
sample that the viewer does not know, and whoever runs a round, also behind secure aggregation, knows whom it asked. What
sampling does buy is counted exactly: a client that does not answer releases nothing in that round, and the ledger holds only
what was released.

Behind secure aggregation noise is shared among the clients of a sum: it is chosen for as many as a round asks.

Times are arithmetic on a stated model, no measurement: latency + bytes down / rate down + latency + bytes up / rate up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedgraph import seeds
from fedgraph.documents import Settings


@dataclass(frozen=True)
class _Link:
    """A line between a client and the server."""

    down: float  # bit per second to the client
    up: float  # bit per second from the client
    latency: float  # seconds, one way

    @property
    def words(self) -> str:
        return f"{self.down / 1e6:g} Mbit/s down, {self.up / 1e6:g} up, {self.latency * 1e3:g} ms one way"


LINKS = {"home": _Link(50e6, 10e6, 0.02), "data centre": _Link(10e9, 10e9, 0.0005)}


class Participation(Settings):
    """Who takes part in the rounds of a federation; by default every client in every round."""

    share: float = Field(
        1.0, gt=0, le=1, description="share of the clients that a round asks: a fixed number, drawn anew for each round"
    )

    def answering(self, num_clients: int) -> int | None:
        """Number of clients that answer in each round, at least one; None if all do."""
        return None if self.share == 1 else max(1, round(self.share * num_clients))


def draw(answering: int, num_clients: int, rounds: int, root: int, path: tuple[str | int, ...]) -> np.ndarray:
    """Who answers in which round. Every round has a stream of its own, so a longer run begins as a shorter one does.

    Args:
        answering: how many clients answer in each round.
        num_clients: how many there are.
        rounds: how many there are.
        root: of the public coins.
        path: names their stream.

    Returns:
        bool [rounds, num_clients].
    """
    answered = np.zeros((rounds, num_clients), dtype=bool)
    for round_ in range(rounds):
        order = seeds.seeded_generator(root, "participation", *path, round_).permutation(num_clients)
        answered[round_, order[:answering]] = True
    return answered


def link_seconds(sizes: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Seconds of all rounds on each of ``LINKS``. Clients work side by side; the server's own line is no limit.

    Args:
        sizes: per round, bytes down to and up from one client.
    """
    return {
        name: sum((2 * link.latency + 8 * down / link.down + 8 * up / link.up for down, up in sizes), 0.0)
        for name, link in LINKS.items()
    }
