"""What travelled between clients and server, who answered, and how long that takes on stated links, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sentences(facts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
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
    partial = [f for f in sent if "federation" in f]
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
