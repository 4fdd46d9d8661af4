"""Who can stand where: how many workers the machines of a cluster have room for, and which share of a GPU each may have.

Every worker needs one CPU. Where GPUs are wanted, every worker gets an equal share of one, or several whole ones, on the
machine where its CPU is; a share must divide one GPU, because no worker can have two halves. The server needs neither. All of
this is arithmetic on what the cluster says it has, so a wish that cannot be met is refused before anybody waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.errors import RuntimeFailure

MOST_PER_GPU = 4  # workers that share one GPU where nobody says how many: each holds a context of some 500 MB


@dataclass(frozen=True)
class Node:
    """One living machine of a cluster, and all that it has (also what is in use)."""

    name: str
    cpus: float
    gpus: float


def room(nodes: Sequence[Node], gpus_per_worker: float) -> int:
    """How many workers fit, each with one CPU and that share of GPUs."""
    return sum(min(int(n.cpus), _on_gpus(n.gpus, gpus_per_worker)) for n in nodes)


def _on_gpus(gpus: float, share: float) -> int:
    if share <= 0:
        return 10**9
    return int(gpus) * int(1 / share + 1e-9) if share <= 1 else int(gpus / share + 1e-9)


def chosen(nodes: Sequence[Node], workers: int | None, gpus_per_worker: float | None) -> tuple[int, float]:
    """(workers, GPUs for each). ``RuntimeFailure`` in one line that names what is there and what was asked.

    workers None: one per CPU; where GPUs are used one per CPU of the machines that have them, at most ``MOST_PER_GPU`` for
    each GPU. gpus_per_worker None: the largest share with which all workers fit, 0 where the cluster has no GPU.
    """
    if gpus_per_worker is not None:
        if gpus_per_worker > 1 and gpus_per_worker % 1:
            raise RuntimeFailure(f"runtime.gpus_per_worker is {gpus_per_worker:g}; allowed: a share of one GPU, or whole GPUs")
        count = workers or max(1, room(nodes, gpus_per_worker))
        _require(nodes, count, gpus_per_worker)
        return count, gpus_per_worker
    if not any(n.gpus >= 1 for n in nodes):
        count = workers or max(1, room(nodes, 0.0))
        _require(nodes, count, 0.0)
        return count, 0.0
    count = workers or max(1, room(nodes, 1 / MOST_PER_GPU))
    whole = range(int(max(n.gpus for n in nodes)), 0, -1)
    for share in (*map(float, whole), *(1 / k for k in range(2, count + 1))):
        if room(nodes, share) >= count:
            return count, share
    _require(nodes, count, 1 / count)
    return count, 1 / count


def _require(nodes: Sequence[Node], workers: int, gpus_per_worker: float) -> None:
    """``RuntimeFailure`` where the workers do not fit."""
    fit = room(nodes, gpus_per_worker)
    if workers <= fit:
        return
    there = in_words(nodes)
    if room(nodes, 0.0) < workers:
        raise RuntimeFailure(
            f"runtime.workers is {workers}; allowed here: at most {room(nodes, 0.0)}, one for each CPU; there is {there}"
        )
    asked = f"{gpus_per_worker:g} GPU" if gpus_per_worker else "no GPU"
    raise RuntimeFailure(
        f"runtime: {workers} workers with 1 CPU and {asked} each were asked for, and {fit} of them fit; there is {there}; "
        "ask for fewer workers, a smaller gpus_per_worker, or 0 to work on CPUs"
    )


def in_words(nodes: Sequence[Node]) -> str:
    """``2 machines: a (4 CPU, 1 GPU), b (4 CPU)``."""
    each = [f"{n.name} ({n.cpus:g} CPU{f', {n.gpus:g} GPU' if n.gpus else ''})" for n in nodes]
    more = f" and {len(each) - 6} more" if len(each) > 6 else ""
    return f"{len(each)} machine{'s' if len(each) != 1 else ''}: {', '.join(each[:6])}{more}"
