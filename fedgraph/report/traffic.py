"""What travelled between clients and server, who answered, and how long that takes on stated links, in sentences."""

from collections.abc import Sequence

from fedgraph.cells.facts import NodeClassificationFacts


def describe_traffic(facts: Sequence[NodeClassificationFacts]) -> tuple[str, ...]:
    """facts: of all cells; those without messages (one curator) say nothing."""
    sent = [(f.sent, f.rounds) for f in facts if f.sent is not None and f.sent.up]
    if not sent:
        return ()
    most, rounds = max(sent, key=lambda s: (s[0].up + s[0].down) * s[1])
    times = "; ".join(f"{name} {_time(most.seconds[name])} ({words})" for name, words in most.links.items())
    found = [
        f"Most travels where each of {rounds} rounds sends a client {most.down:,} bytes and brings back {most.up:,}. "
        f"All rounds take, on stated links: {times}."
    ]
    partial = [(s.partial, rounds) for s, rounds in sent if s.partial is not None]
    late = [p for p, _ in partial if p.mean_staleness is not None]
    if late:
        mean, most_stale = max(p.mean_staleness or 0.0 for p in late), max(p.most_stale or 0 for p in late)
        found.append(
            f"The server steps whenever {late[0].settings.get('buffer', 10)} updates are there. Since a client began, it has "
            f"taken up to {mean:.3g} steps on average, and {most_stale} at most; the client with the most updates made "
            f"{max(p.most_updates or 0 for p in late)}."
        )
    prompt = [(p, rounds) for p, rounds in partial if p.mean_staleness is None]
    if prompt:
        asked, answered = sum(p.asked for p, _ in prompt), sum(p.answered for p, _ in prompt)
        aborted = sum(p.aborted for p, _ in prompt)
        settings = ", ".join(f"{key} {value}" for key, value in prompt[0][0].settings.items())
        found.append(
            f"Not every client answers in every round ({settings}): {answered:,} of {asked:,} requests were answered and used, "
            f"and {aborted:,} of {sum(rounds for _, rounds in prompt):,} rounds had too few answers and changed nothing."
        )
    return tuple(found)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
