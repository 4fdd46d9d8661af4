"""Which clients answer in which round, and how long their messages take on stated links.

A round asks all clients, or a fixed number of them without replacement. Public coins draw who is asked, so sampling does not
amplify the guarantee: whoever runs a round, also behind secure aggregation, knows whom it asked. A client that does not answer
releases nothing in that round, and the ledger holds only what was released.

Behind secure aggregation each client adds a share of the noise, chosen for as many clients as a round asks.

Times are computed, not measured: latency + bytes down / rate down + latency + bytes up / rate up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from fedgraph import seeds
from fedgraph.cells import SentBytesCellFacts
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.federation import RoundsOutcome
from fedgraph.methods import Plan, PublicFacts, method_kinds
from fedgraph.privacy import Viewer
from fedgraph.tasks.base import Cell, CellContext

_NO_AMPLIFICATION = (
    "Whom a round asks is known to whoever runs it, so sampling clients buys no amplification: ε counts every release that was "
    "made, and none in rounds in which a client did not answer."
)


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
    """Which clients take part in a round; by default all."""

    share: float = Field(
        1.0, gt=0, le=1, description="share of the clients that a round asks: a fixed number, drawn anew for each round"
    )

    def answering(self, num_clients: int) -> int | None:
        """Number of clients that answer in each round, at least one; None if all do."""
        return None if self.share == 1 else max(1, round(self.share * num_clients))


def add_to_facts(settings: Participation, facts: PublicFacts, cell: Cell, method: method_kinds.Method) -> PublicFacts:
    """Public facts with the number of clients that answer in a round. ``ScenarioError`` if the method needs every client."""
    answering = settings.answering(facts.num_clients)
    if answering is None or facts.viewer in (Viewer.CURATOR_TRUSTED, Viewer.WORLD):
        return facts
    if not method.OFFERS.partial_rounds:
        able = method_kinds.list_names(lambda offers: offers.partial_rounds)
        raise ScenarioError(f"{cell.method} needs every client in every round; federation is for {', '.join(able)}")
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION and answering < 2:
        raise ScenarioError(
            f"federation: a secure sum of one client hides nothing; share: {settings.share} of {facts.num_clients} "
            "clients is one; write a larger share"
        )
    return replace(facts, answering=answering)


def note_sampling(made: Plan) -> Plan:
    """The plan; if not every client answers, with a note that sampling amplifies nothing."""
    return made if made.facts.answering is None else replace(made, notes=(*made.notes, _NO_AMPLIFICATION))


def draw_rounds(answering: int, num_clients: int, rounds: int, root: int, path: tuple[str | int, ...]) -> np.ndarray:
    """Who answers in which round. Every round has a stream of its own, so a longer run begins like a shorter one.

    Args:
        answering: number of clients that answer in each round.
        num_clients: number of clients.
        rounds: number of rounds.
        root: root of the public coins.
        path: names their stream.

    Returns:
        bool [rounds, num_clients].
    """
    answered = np.zeros((rounds, num_clients), dtype=bool)
    for round_ in range(rounds):
        order = seeds.seeded_generator(root, "participation", *path, round_).permutation(num_clients)
        answered[round_, order[:answering]] = True
    return answered


def draw(made: Plan, cell: Cell, context: CellContext) -> np.ndarray | None:
    """Who answers in which round.

    Args:
        made: The plan; it has the number of rounds, and of clients that answer in each.
        cell: Its data set and seed name the public coins, so that all rows of a table miss the same clients.
        context: The root of the random streams.

    Returns:
        bool [rounds, clients]; None if all clients answer.
    """
    if made.facts.answering is None:
        return None
    sizes = (made.facts.num_clients, made.schedule.rounds)
    return draw_rounds(made.facts.answering, *sizes, context.root, (cell.dataset, cell.seed))


def link_seconds(sizes: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Seconds of all rounds on each of ``LINKS``. Clients work side by side; the server's own line is no limit.

    Args:
        sizes: per round, bytes down to and up from one client.
    """
    return {
        name: sum((2 * link.latency + 8 * down / link.down + 8 * up / link.up for down, up in sizes), 0.0)
        for name, link in LINKS.items()
    }


def metrics_of(sent: SentBytesCellFacts | None) -> dict[str, float]:
    """Metrics: bytes per client and round, seconds of all rounds on each of ``LINKS``; empty without messages."""
    if sent is None or not sent.up:
        return {}
    seconds = {f"seconds_{name.replace(' ', '_')}": found for name, found in sent.seconds.items()}
    return {"bytes_down": float(sent.down), "bytes_up": float(sent.up), **seconds}


def facts_of(made: Plan, trained: RoundsOutcome) -> SentBytesCellFacts | None:
    """Bytes of one client and round, seconds of all rounds on each link, and how many answered; None for one client."""
    if made.facts.num_clients == 1:
        return None
    down = max((to for to, _ in trained.sizes), default=0)
    up = max((back for _, back in trained.sizes), default=0)
    links = {name: link.words for name, link in LINKS.items()}
    return SentBytesCellFacts(down, up, link_seconds(trained.sizes), links, made.facts.answering)
