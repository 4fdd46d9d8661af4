"""Calls through a socket between a server and a client actor of one machine: what arrives, and what is asked again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedgraph.runtime.ray.direct import Callers, Door, callers_of


def doubled(values: dict[str, np.ndarray], by: int) -> tuple[dict[str, np.ndarray], bool]:
    return {name: by * value for name, value in values.items()}, any(v.flags.writeable for v in values.values())


@pytest.fixture
def callers(tmp_path: Path) -> Callers:
    door = Door(doubled, str(tmp_path))
    assert door.address is not None
    return Callers(door.address)


def test_arrays_travel_bit_for_bit_and_nobody_can_write_to_them(callers: Callers) -> None:
    values = {"a": np.arange(50_000.0), "none": np.empty((0, 3)), "turned": np.asfortranarray(np.ones((40, 30)))}
    for by in (2, 3):  # the second call uses the same connection
        call = callers.begin(values, by)
        assert call is not None
        found, writeable = callers.end(call)
        assert not writeable
        assert all(
            np.array_equal(found[name], by * value) and not found[name].flags.writeable for name, value in values.items()
        )


def test_what_raises_is_to_be_asked_again_and_the_next_call_is_answered(callers: Callers) -> None:
    failed = callers.begin(3)
    assert failed is not None
    assert callers.end(failed) is None
    good = callers.begin({}, 1)
    assert good is not None
    assert callers.end(good) == ({}, False)


def test_calls_on_their_way_at_the_same_time_each_get_their_answer(callers: Callers) -> None:
    calls = [callers.begin({"x": np.full(30_000, 1.0)}, by) for by in range(4)]
    assert [callers.end(call)[0]["x"][0] for call in calls if call is not None] == [0.0, 1.0, 2.0, 3.0]


def test_nobody_without_the_key_is_answered_and_a_closed_door_is_asked_otherwise(tmp_path: Path) -> None:
    door = Door(doubled, str(tmp_path))
    assert door.address is not None
    assert Callers(replace(door.address, key=b"another")).begin({}, 1) is None
    assert Callers(replace(door.address, path=str(tmp_path / "nowhere"))).begin({}, 1) is None
    whole = Callers(door.address).begin({}, 1)
    assert whole is not None, "a stranger has closed the door for everybody"


def test_a_folder_that_takes_no_socket_leaves_ordinary_calls(tmp_path: Path) -> None:
    assert Door(doubled, str(tmp_path / ("long" * 40))).address is None
    assert callers_of(None, "here") is None
