"""Several tasks are on their way at each curator, and one at a time computes there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime.base import RUNTIME_LANES, Runtime, RuntimeClients, RuntimeDealing, RuntimeParties

SECONDS_TO_MEET = 600.0


def nothing(items: range) -> None:
    """What a client is asked."""


def asks(clients: RuntimeClients) -> None:
    clients.ask(nothing, 1)


def meets(engine: Callable[[], RuntimeParties], name: str, folder: str, many: int) -> int:
    """Waits for the server until so many cells are there; gives its process."""
    with engine() as federation:
        (Path(folder) / name).touch()
        until = time.monotonic() + SECONDS_TO_MEET
        while len(list(Path(folder).iterdir())) < many:
            federation.federate(asks, path=("meets", name))
            if time.monotonic() > until:
                raise RuntimeFailure(f"{name} met nobody")
    return os.getpid()


def computes(engine: Callable[[], RuntimeParties], name: str, folder: str) -> int:
    """Fails where another cell computes in its process at the same time."""
    alone = Path(folder) / f"{os.getpid()}"
    with engine() as federation:
        for _ in range(5):
            alone.touch(exist_ok=False)
            time.sleep(0.02)
            alone.unlink()
            federation.federate(asks, path=("computes", name))
    return os.getpid()


def goes_alone(engine: Callable[[], RuntimeParties], folder: str) -> None:
    """Fails where another cell is on its way anywhere."""
    alone = Path(folder) / "alone"
    alone.touch(exist_ok=False)
    with engine() as federation:
        federation.federate(asks, path=("goes", "alone"))
    alone.unlink()


@pytest.mark.ray
def test_cells_that_wait_for_the_server_are_on_their_way_at_once(ray_engine: Runtime, tmp_path: Path) -> None:
    ray_engine.open("server", "client")
    many = RUNTIME_LANES * ray_engine.num_workers
    names = [str(number) for number in range(many)]
    queues = [[(name, str(tmp_path), many) for name in names[part::RUNTIME_LANES]] for part in range(RUNTIME_LANES)]
    found = dict(ray_engine.as_done(meets, RuntimeDealing([], queues)))
    assert [task[0] for task in sorted(found)] == names
    assert sorted(found.values()).count(found[min(found)]) == RUNTIME_LANES, "one curator had more than its lanes"


@pytest.mark.ray
def test_one_cell_at_a_time_computes_at_a_curator(ray_engine: Runtime, tmp_path: Path) -> None:
    ray_engine.open("server", "client")
    own = [[(f"own {number}", str(tmp_path)) for number in range(3)]]
    led = [[(f"led {number}", str(tmp_path)) for number in range(6)]]
    found = dict(ray_engine.as_done(computes, RuntimeDealing(own, led)))
    assert len(found) == 9
    assert len(set(found.values())) == ray_engine.num_workers


@pytest.mark.ray
def test_at_most_one_at_a_time(ray_engine: Runtime, tmp_path: Path) -> None:
    ray_engine.open("server", "client")
    found = list(ray_engine.as_done(goes_alone, RuntimeDealing([], [[(str(tmp_path),)] * 4], most=1)))
    assert len(found) == 4
