"""A world: who trains together, whom the people must trust, and who is left out. Each cell trains in one world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fedgraph.privacy import Trust, Viewer


class WorldKind(Enum):
    """Who trains together.

    Attributes:
        ALONE: each client alone.
        TOGETHER: all clients, without the one that is left out.
        WHOLE: one party that holds the whole graph.
    """

    ALONE = "alone"
    TOGETHER = "together"
    WHOLE = "whole"


@dataclass(frozen=True)
class LeftOutOfWorld:
    """The client that does not join."""

    client: int  # its number
    name: str  # its name in the data, any text


@dataclass(frozen=True)
class World:
    """Who trains together and whom they must trust; hashable, so that it can be a key.

    Raises:
        ValueError: the fields exclude each other.
    """

    kind: WorldKind  # who trains together
    trust: Trust  # whom the people in the data must trust; ``own-client`` if each client is alone
    without: LeftOutOfWorld | None = None  # the client that is left out while all others train together

    def __post_init__(self) -> None:
        fits = {
            WorldKind.ALONE: self.trust is Trust.OWN_CLIENT,
            WorldKind.TOGETHER: not self.trust.whole,
            WorldKind.WHOLE: self.trust.whole,
        }
        if not fits[self.kind] or (self.without is not None and self.kind is not WorldKind.TOGETHER):
            raise ValueError(f"no world is {self.kind.value} with trust {self.trust.value} and without {self.without}")

    @property
    def viewer(self) -> Viewer:
        """From whom the data are protected. A client alone is its own curator, and may publish its model."""
        return Viewer.CURATOR_TRUSTED if self.kind is WorldKind.ALONE else self.trust.viewer

    @property
    def joined(self) -> bool:
        """Whether all clients train together."""
        return self.kind is WorldKind.TOGETHER and self.without is None

    @property
    def holding(self) -> tuple[WorldKind, LeftOutOfWorld | None]:
        """A key for who holds which nodes; it does not depend on the trust."""
        return self.kind, self.without

    @property
    def words(self) -> str:
        """The world in words, for tables."""
        if self.kind is WorldKind.ALONE:
            return "alone"
        return self.trust.value if self.without is None else f"{self.trust.value} without {self.without.name}"

    @property
    def stream_word(self) -> str:
        """The world's name in the names of random streams, see ``Trust.stream_word``."""
        if self.kind is WorldKind.ALONE:
            return self.words
        word = self.trust.stream_word
        return word if self.without is None else f"{word} without {self.without.name}"

    def to_dict(self) -> dict[str, object]:
        """The world as JSON, for a cell's file."""
        left = None if self.without is None else {"client": self.without.client, "name": self.without.name}
        return {"kind": self.kind.value, "trust": self.trust.value, "without": left}

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> World:
        """Inverse of ``to_dict``.

        Raises:
            KeyError: a part is missing.
            ValueError: a kind or a level of trust is unknown, or the fields exclude each other.
        """
        left = data["without"]
        without = LeftOutOfWorld(int(left["client"]), str(left["name"])) if isinstance(left, dict) else None
        return cls(WorldKind(data["kind"]), Trust(data["trust"]), without)


def world_of_trust(trust: Trust) -> World:
    """The world of all nodes under ``trust``: one party with the whole graph if the trust says so, else all clients."""
    return World(WorldKind.WHOLE if trust.whole else WorldKind.TOGETHER, trust)


JOINED_WORLD = world_of_trust(Trust.OWN_CLIENT)  # all clients, each of which sends its own messages
ALONE_WORLD = World(WorldKind.ALONE, Trust.OWN_CLIENT)
