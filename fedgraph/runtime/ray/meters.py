"""Counters for Ray's dashboard and for Prometheus: rounds, messages and bytes of trainings, ε of finished cells."""

from ray.util.metrics import Counter, Gauge

from fedgraph.runtime.counts import Count, Path

TAGS = ("task", "cell")
COUNTED = {
    "rounds": "Rounds that the server merged",
    "messages": "Messages of clients to the server",
    "bytes_up": "Bytes of arrays from clients to the server",
    "bytes_down": "Bytes of arrays from the server to clients",
}


class Meters:
    """What the server counts."""

    def __init__(self) -> None:
        self._counters = {name: Counter(f"fedgraph_{name}", said, TAGS) for name, said in COUNTED.items()}

    def add(self, path: Path, count: Count) -> None:
        """One more part of what the training ``path`` cost."""
        for name, counter in self._counters.items():
            if (value := vars(count)[name]) > 0:
                counter.inc(value, _tags(path))


class Spent:
    """What the driver knows of finished cells."""

    def __init__(self) -> None:
        self._epsilon = Gauge("fedgraph_epsilon", "Provable epsilon of a finished cell, where it has one", TAGS)

    def set(self, path: Path, epsilon: float) -> None:
        """The cell ``path`` is finished."""
        self._epsilon.set(epsilon, _tags(path))


def _tags(path: Path) -> dict[str, str]:
    """Ray takes ASCII alone; labels may be anything."""
    return {k: v.encode("ascii", "backslashreplace").decode() for k, v in zip(TAGS, (path[0], "/".join(path[1:])), strict=True)}
