"""The lines of a ledger: equal releases of many clients and rounds share one line.

``Release`` is what the desk writes: one client, one round. ``Line`` stands for many of them: each of ``clients`` released
the same thing on one path ``times`` times in each of ``rounds``. For example, 100 rounds of 10,000 clients that all add the
same noise are one line: clients 0–9999, rounds 0–99. Nothing is lost: a line says exactly which releases it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import Event, from_dict, to_dict

Spans = tuple[tuple[int, int], ...]  # whole numbers as ranges, ascending, both ends inside


@dataclass(frozen=True)
class Release:
    """One release, as the desk writes it.

    Attributes:
        cell: the account that it belongs to.
        path: the channel, for example ``model`` or ``embedding``.
        client: who released it.
        round: when.
        mechanism: what was done, in words.
        event: what it did, for the accountants.
    """

    cell: str
    path: str
    client: int
    round: int
    mechanism: str
    event: Event


@dataclass(frozen=True)
class Line:
    """Each of many clients released on one path equally often in each of many rounds, by one mechanism at one price.

    Attributes:
        cell: the account that it belongs to.
        path: the channel.
        clients: who, as ranges.
        rounds: when, as ranges.
        times: how often each client did so in each round, ≥ 1.
        mechanism: what was done, in words.
        event: what one of the releases did.
    """

    cell: str
    path: str
    clients: Spans
    rounds: Spans
    times: int
    mechanism: str
    event: Event

    @property
    def count(self) -> int:
        """How many releases the line stands for."""
        return self.times * count_in_spans(self.clients) * count_in_spans(self.rounds)

    @property
    def of_one_client(self) -> int:
        """How many of them are each client's."""
        return self.times * count_in_spans(self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: one line of a ledger file."""
        return {
            "kind": "release",
            "cell": self.cell,
            "path": self.path,
            "clients": [list(span) for span in self.clients],
            "rounds": [list(span) for span in self.rounds],
            "times": self.times,
            "count": self.count,
            "mechanism": self.mechanism,
            "event": to_dict(self.event),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Line:
        """Inverse of ``to_dict``.

        Raises:
            PrivacyError: ranges that are not in ascending order, or a count that is not that of clients, rounds and times.
            KeyError: a key is missing.
        """
        event = from_dict(data["event"])
        clients, rounds = _spans_from(data["clients"]), _spans_from(data["rounds"])
        line = cls(data["cell"], data["path"], clients, rounds, int(data["times"]), data["mechanism"], event)
        if line.times < 1 or line.count != data["count"]:
            raise PrivacyError(f"count is {data['count']}, but clients, rounds and times make {line.count}")
        return line


def spans_of(numbers: Iterable[int]) -> Spans:
    """Whole numbers as ranges.

    >>> spans_of([0, 1, 2, 5, 7, 8])
    ((0, 2), (5, 5), (7, 8))
    """
    out: list[tuple[int, int]] = []
    for n in sorted(set(numbers)):
        if out and n == out[-1][1] + 1:
            out[-1] = (out[-1][0], n)
        else:
            out.append((n, n))
    return tuple(out)


def members(spans: Spans) -> Iterator[int]:
    """Every number in ``spans``, ascending."""
    for first, last in spans:
        yield from range(first, last + 1)


def count_in_spans(spans: Spans) -> int:
    """How many numbers are in ``spans``."""
    return sum(last - first + 1 for first, last in spans)


def fewest_lines(releases: Iterable[Release | Line]) -> tuple[Line, ...]:
    """The same releases in as few lines as one pass over rounds finds, in the order of their first rounds.

    First, equal releases of the same rounds become one line over clients. Then equal lines of several rounds become one. Which
    lines come out of single releases depends on what was released, not on the order in which workers reported it.

    Args:
        releases: single ones, and lines that stand for many.

    Returns:
        Lines that stand for exactly these releases; lines of equal first round keep the order in which they were found.
    """
    counted: dict[tuple[str, str, str, Event, int], Counter[int]] = {}
    lines: list[Line] = []
    for release in releases:
        if isinstance(release, Line):
            lines.append(release)
        else:
            key = (release.cell, release.path, release.mechanism, release.event, release.round)
            counted.setdefault(key, Counter())[release.client] += 1
    for (cell, path, mechanism, event, round_), clients in counted.items():
        for times in sorted(set(clients.values())):
            who = spans_of(c for c, n in clients.items() if n == times)
            lines.append(Line(cell, path, who, ((round_, round_),), times, mechanism, event))
    return tuple(sorted(_merged(_merged(lines, "clients"), "rounds"), key=lambda line: line.rounds[0][0]))


def _merged(lines: Iterable[Line], along: Literal["clients", "rounds"]) -> list[Line]:
    """Lines that differ in ``along`` only as one. Whoever stands in two of them counts twice, and stays apart."""
    found: dict[Line, list[Spans]] = {}
    for line in lines:
        own = line.clients if along == "clients" else line.rounds
        alike = found.setdefault(_with(line, along, ()), [])
        for place, other in enumerate(alike):
            if not _overlap(other, own):
                alike[place] = _union(other, own)
                break
        else:
            alike.append(own)
    return [_with(line, along, spans) for line, alike in found.items() for spans in alike]


def _with(line: Line, along: Literal["clients", "rounds"], spans: Spans) -> Line:
    return replace(line, clients=spans) if along == "clients" else replace(line, rounds=spans)


def _overlap(one: Spans, two: Spans) -> bool:
    return any(a <= d and c <= b for a, b in one for c, d in two)


def _union(one: Spans, two: Spans) -> Spans:
    """Of two sets of ranges that share no number."""
    out: list[tuple[int, int]] = []
    for first, last in sorted((*one, *two)):
        if out and first == out[-1][1] + 1:
            out[-1] = (out[-1][0], last)
        else:
            out.append((first, last))
    return tuple(out)


def _spans_from(given: Any) -> Spans:
    found = tuple((int(first), int(last)) for first, last in given)
    if not found or any(last < first for first, last in found) or spans_of(members(found)) != found:
        raise PrivacyError(f"not ranges of whole numbers in ascending order: {given}")
    return found
