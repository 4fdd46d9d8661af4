"""What travelled between clients and server, who answered, and how long that takes on stated links, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def describe_traffic(facts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """facts: of all cells; those without messages (one curator) say nothing."""
    sent = [f for f in facts if f.get("bytes_up")]
    if not sent:
        return ()
    most = max(sent, key=lambda f: (f["bytes_up"] + f["bytes_down"]) * f["rounds"])
    times = "; ".join(f"{name} {_time(most['seconds_on_links'][name])} ({words})" for name, words in most["links"].items())
    found = [
        f"Most travels where each of {most['rounds']} rounds sends a client {most['bytes_down']:,} bytes and brings back "
        f"{most['bytes_up']:,}. All rounds take, on stated links: {times}."
    ]
    late = [f for f in sent if "staleness" in f]
    if late:
        mean, most_stale = (max(f["staleness"][key] for f in late) for key in ("mean", "most"))
        found.append(
            f"The server steps whenever {late[0]['federation'].get('buffer', 10)} updates are there. Since a client began, it "
            f"has taken up to {mean:.3g} steps on average, and {most_stale} at most; the client with the most updates made "
            f"{max(f['most_updates'] for f in late)}."
        )
    partial = [f for f in sent if "federation" in f and "staleness" not in f]
    if partial:
        asked, answered, aborted = (sum(f[key] for f in partial) for key in ("asked", "answered", "aborted_rounds"))
        rounds = sum(f["rounds"] for f in partial)
        settings = ", ".join(f"{key} {value}" for key, value in partial[0]["federation"].items())
        found.append(
            f"Not every client answers in every round ({settings}): {answered:,} of {asked:,} requests were answered and used, "
            f"and {aborted:,} of {rounds:,} rounds had too few answers and changed nothing."
        )
    return tuple(found)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
