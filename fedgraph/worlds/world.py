"""A world: who trains together, whom they must trust, and who was left out. A cell trains in one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer


class Kind(Enum):
    """Who trains together.

    Attributes:
        ALONE: each client for itself.
        TOGETHER: all clients (but the one left out).
        WHOLE: one holder of the whole graph.
        PAPER: nobody; a paper's claim is priced.
    """

    ALONE = "alone"
    TOGETHER = "together"
    WHOLE = "whole"
    PAPER = "paper"


@dataclass(frozen=True)
class LeftOut:
    """The client that does not join.

    Attributes:
        client: its number.
        name: as the data call it, any text.
    """

    client: int
    name: str


@dataclass(frozen=True)
class World:
    """What a cell trains in: a value that is made once, passed on, compared and used as a key, and never read from text.

    Attributes:
        kind: who trains together.
        trust: whom the people in the data must trust. A client that is alone is trusted with its own nodes.
        without: the client that is left out, where all others train together.

    Raises:
        ValueError: the parts exclude each other.
    """

    kind: Kind
    trust: Trust
    without: LeftOut | None = None

    def __post_init__(self) -> None:
        fits = {
            Kind.ALONE: self.trust is Trust.OWN_CLIENT,
            Kind.TOGETHER: not self.trust.whole,
            Kind.WHOLE: self.trust.whole,
            Kind.PAPER: self.trust is Trust.NOBODY,
        }
        if not fits[self.kind] or (self.without is not None and self.kind is not Kind.TOGETHER):
            raise ValueError(f"no world is {self.kind.value} with trust {self.trust.value} and without {self.without}")

    @property
    def viewer(self) -> Viewer:
        """Who must not learn it. A client that is alone is its own curator, and may show its model to others."""
        return Viewer.CURATOR_TRUSTED if self.kind is Kind.ALONE else self.trust.viewer

    @property
    def joined(self) -> bool:
        """Whether all clients train together."""
        return self.kind is Kind.TOGETHER and self.without is None

    @property
    def holding(self) -> tuple[Kind, LeftOut | None]:
        """Who holds which nodes: worlds that are trusted differently may hold the same."""
        return self.kind, self.without

    @property
    def words(self) -> str:
        """As a table shows it; nothing reads it back."""
        if self.kind is Kind.ALONE:
            return "alone"
        if self.kind is Kind.PAPER:
            return "claim"
        return self.trust.value if self.without is None else f"{self.trust.value} without {self.without.name}"

    @property
    def stream_word(self) -> str:
        """The word in the names of random streams, see ``Trust.stream_word``."""
        if self.kind in (Kind.ALONE, Kind.PAPER):
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
        without = LeftOut(int(left["client"]), str(left["name"])) if isinstance(left, dict) else None
        return cls(Kind(data["kind"]), Trust(data["trust"]), without)


def trusting(trust: Trust) -> World:
    """Everybody, with some trust: one holder of the whole graph where the trust means that, else all clients together.

    Args:
        trust: whom people trust.
    """
    return World(Kind.WHOLE if trust.whole else Kind.TOGETHER, trust)


JOINED = trusting(Trust.OWN_CLIENT)  # of graphs: each client hands in its own messages
ALONE = World(Kind.ALONE, Trust.OWN_CLIENT)
PAPER = World(Kind.PAPER, Trust.NOBODY)  # no data are held, so nobody is trusted with any
