"""Clusters that are not there, resources that nobody has, and what is left when a driver is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import ray as engine
from fedgraph.runtime import watchdog


def test_an_address_where_nobody_listens() -> None:
    with pytest.raises(RuntimeFailure, match=r"RAY_ADDRESS=127\.0\.0\.1:1: no Ray cluster answers there"):
        engine._require_answer("127.0.0.1:1")


def test_an_address_where_somebody_else_listens() -> None:
    """It accepts and never says a word: the greeting is not answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(RuntimeFailure, match="no Ray cluster answers there"):
            engine._require_answer(f"127.0.0.1:{server.getsockname()[1]}")
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(("workers", "gpus"), [(500, 0.0), (2, 1.0)])
def test_more_than_there_is(workers: int, gpus: float) -> None:
    with pytest.raises(RuntimeFailure, match="allowed"):
        engine._require_room(workers, gpus, 8, 0.0)


def test_the_watchdog_ends_what_a_killed_driver_left() -> None:
    child = "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True)"
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import time; from fedgraph.runtime import watchdog; w = watchdog.start(); {child}; time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    left = int(driver.stdout.readline())
    when = watchdog.began(left)
    time.sleep(2 * watchdog.SECONDS_BETWEEN_LOOKS + 1)
    driver.kill()
    driver.wait()
    deadline = time.monotonic() + 20
    while watchdog.began(left) == when and time.monotonic() < deadline:
        time.sleep(0.2)
    gone = watchdog.began(left) != when
    if not gone:
        os.kill(left, 9)
    assert gone
