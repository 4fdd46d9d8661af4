"""A world: who trains together, whom they must trust, and who was left out. A cell trains in one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fedgraph.privacy import Trust, Viewer


class WorldKind(Enum):
    """Who trains together.

    Attributes:
        ALONE: each client for itself.
        TOGETHER: all clients (but the one left out).
        WHOLE: one holder of the whole graph.
    """

    ALONE = "alone"
    TOGETHER = "together"
    WHOLE = "whole"


@dataclass(frozen=True)
class LeftOutOfWorld:
    """The client that does not join."""

    client: int  # its number
    name: str  # as the data call it, any text


@dataclass(frozen=True)
class World:
    """What a cell trains in: a value that is made once, passed on, compared and used as a key, and never read from text.

    Raises:
        ValueError: the parts exclude each other.
    """

    kind: WorldKind  # who trains together
    trust: Trust  # whom the people in the data must trust. A client that is alone is trusted with its own nodes.
    without: LeftOutOfWorld | None = None  # the client that is left out, where all others train together

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
        """Who must not learn it. A client that is alone is its own curator, and may show its model to others."""
        return Viewer.CURATOR_TRUSTED if self.kind is WorldKind.ALONE else self.trust.viewer

    @property
    def joined(self) -> bool:
        """Whether all clients train together."""
        return self.kind is WorldKind.TOGETHER and self.without is None

    @property
    def holding(self) -> tuple[WorldKind, LeftOutOfWorld | None]:
        """Who holds which nodes: worlds that are trusted differently may hold the same."""
        return self.kind, self.without

    @property
    def words(self) -> str:
        """As a table shows it; nothing reads it back."""
        if self.kind is WorldKind.ALONE:
            return "alone"
        return self.trust.value if self.without is None else f"{self.trust.value} without {self.without.name}"

    @property
    def stream_word(self) -> str:
        """The word in the names of random streams, see ``Trust.stream_word``."""
        if self.kind is WorldKind.ALONE:
            return self.words
        word = self.trust.stream_word
        return word if self.without is None else f"{word} without {self.without.name}"

    def to_dict(self) -> dict[str, object]:
        """For a cell's file."""
        left = None if self.without is None else {"client": self.without.client, "name": self.without.name}
        return {"kind": self.kind.value, "trust": self.trust.value, "without": left}

    @classmethod
    def from_dict(cls, data: dict[str, object]) -> World:
        """Inverse of ``to_dict``.

        Raises:
            KeyError: a part is missing.
            ValueError: a word is none of ours, or the parts exclude each other.
        """
        left = data["without"]
        without = LeftOutOfWorld(int(left["client"]), str(left["name"])) if isinstance(left, dict) else None
        return cls(WorldKind(data["kind"]), Trust(data["trust"]), without)


def world_of_trust(trust: Trust) -> World:
    """Everybody, with some trust: one holder of the whole graph where the trust means that, else all clients together.

    Args:
        trust: whom people trust.
    """
    return World(WorldKind.WHOLE if trust.whole else WorldKind.TOGETHER, trust)


JOINED_WORLD = world_of_trust(Trust.OWN_CLIENT)  # of graphs: each client hands in its own messages
ALONE_WORLD = World(WorldKind.ALONE, Trust.OWN_CLIENT)
