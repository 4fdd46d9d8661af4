"""Every fault of a file in one message, so that a person mends them all at once."""

from __future__ import annotations

from fedgraph.errors import DataError

MOST_FAULTS = 8  # that one message lists


class Faults:
    """Collects lines of the form ``file:line: found; allowed``."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def note(self, where: str, sentence: str) -> None:
        """One more fault. where: ``file`` or ``file:line``."""
        self._count += 1
        if self._count <= MOST_FAULTS:
            self._first.append(f"{where}: {sentence}")

    def refuse(self) -> None:
        """``DataError`` that lists the first of them and counts the others; nothing where there are none."""
        if self._count:
            more = self._count - len(self._first)
            raise DataError("\n".join([*self._first, *([f"… and {more:,} more of this kind"] if more else [])]))
