"""Whom the people in the data must trust: one word each for scenarios, the command, the library, pages and results."""

from __future__ import annotations

from enum import Enum

from fedgraph.errors import ScenarioError
from fedgraph.privacy.units import PRIVACY_WORDS, Viewer


class Trust(Enum):
    """Levels of trust, from the most to none. Each protects from one ``viewer``; ``words.toml`` says what each means."""

    CURATOR = "curator"
    SUMS = "sums"
    OWN_CLIENT = "own-client"
    ACTIVE_SERVER = "active-server"
    NOBODY = "nobody"

    @classmethod
    def against(cls, viewer: Viewer) -> Trust:
        """The level of trust that protects from ``viewer``; the inverse of the property ``viewer``."""
        return next(trust for trust, seen in _VIEWERS.items() if seen is viewer)

    @property
    def viewer(self) -> Viewer:
        """From whom data are protected at this level."""
        return _VIEWERS[self]

    @property
    def rank(self) -> int:
        """Amount of trust: 0 for ``nobody``, the largest number for ``curator``."""
        return len(Trust) - 1 - list(Trust).index(self)

    @property
    def whole(self) -> bool:
        """Whether one party holds the whole graph; under ``nobody`` it holds data that each node protected before."""
        return self in (Trust.CURATOR, Trust.NOBODY)

    @property
    def title(self) -> str:
        """The level's name and its meaning, for tables and legends."""
        return f"{self.value} ({self._told('meaning')})"

    @property
    def words(self) -> str:
        """The level in one sentence."""
        return self._told("words")

    @property
    def stream_word(self) -> str:
        """The level's name in the names of random streams.

        Scenarios used these names when the published results were made; another name would change every number.
        """
        return _STREAM_WORDS[self]

    def _told(self, what: str) -> str:
        return str(PRIVACY_WORDS["trust"][self.value][what])


_VIEWERS = {
    Trust.CURATOR: Viewer.CURATOR_TRUSTED,
    Trust.SUMS: Viewer.SERVER_SECURE_AGGREGATION,
    Trust.OWN_CLIENT: Viewer.SERVER,
    Trust.ACTIVE_SERVER: Viewer.ACTIVE_SERVER,
    Trust.NOBODY: Viewer.WORLD,
}
_STREAM_WORDS = {
    Trust.CURATOR: "central",
    Trust.SUMS: "secure",
    Trust.OWN_CLIENT: "local",
    Trust.ACTIVE_SERVER: "active",
    Trust.NOBODY: "nobody",
}


def called(word: str) -> Trust:
    """The level of trust of this name.

    Args:
        word: the name, as in a scenario.

    Raises:
        ScenarioError: no level has this name.
    """
    try:
        return Trust(word)
    except ValueError:
        raise ScenarioError(f"trust is {word!r}; allowed: {', '.join(t.value for t in Trust)}") from None
