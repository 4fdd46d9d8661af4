"""Serial is the truth and Ray its equal, call by call."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import ray

from fedgraph import runtime, seeds
from fedgraph.errors import DataError
from fedgraph.runtime import base
from fedgraph.runtime.base import Runtime, RuntimeClients, RuntimeDealing
from fedgraph.runtime.ray.curator import CuratorQueues


def whole(array: np.ndarray, items: range) -> np.ndarray:
    return array


def square(task: int, offset: int) -> int:
    time.sleep(0.001 * (task % 3))
    return task * task + offset


def waits_for(engine: object, marker: str, name: str, scale: np.ndarray) -> str:
    for _ in range(60_000):
        if not marker or Path(marker).exists():
            return name * int(scale[0])
        time.sleep(0.01)
    raise DataError("the results came in order, not as they were done")


def overwrite(items: range, array: np.ndarray) -> None:
    array[0] = 1.0


def fail_at(engine: object, items: range) -> None:
    raise DataError("client 3: broken")


def fail(items: range) -> None:
    raise DataError("client 3: broken")


def die_once(items: range, marker: str) -> int:
    path = Path(marker)
    if not path.exists():
        path.write_text("x", encoding="utf-8")
        os._exit(1)
    return 42


def slice_of(array: np.ndarray, items: range) -> np.ndarray:
    return array[items.start : items.stop]


def own_sums(items: range, held: np.ndarray, scale: float) -> tuple[float, int]:
    return float(held.sum() * scale), len(held)


def two_rounds(clients: RuntimeClients, held: object, job: int) -> tuple[list[tuple[float, int]], int]:
    plan = clients.share("job", job)
    asked = [clients.ask(own_sums, 7, held, float(round_)) for round_ in (1, 2)]
    assert clients.ask(least, 7, plan) == [job] * len(asked[0])
    clients.count(2, 2, 7, 70, 140)
    return asked[1], len(asked[0])


def least(items: range, job: int) -> int:
    return job


def asks_two(clients: RuntimeClients, function: Callable[..., object], *args: object) -> list[object]:
    return clients.ask(function, 2, *args)


def asks(clients: RuntimeClients, function: Callable[..., object], *args: object) -> list[object]:
    return clients.ask(function, 1, *args)


def at_a_curator(engine: Callable[[], Runtime], name: str) -> list[tuple[float, int]]:
    """A curator leads a federation, too."""
    with engine() as federation:
        shared = federation.share("numbers", np.arange(7.0))
        dealt = federation.deal(shared, slice_of, 7)
        found: list[tuple[float, int]] = federation.federate(two_rounds, dealt, 5, path=("task", name))[0]
    return found


@pytest.fixture(params=["serial", pytest.param("ray", marks=pytest.mark.ray)])
def engine(request: pytest.FixtureRequest) -> Runtime:
    return request.getfixturevalue("ray_engine") if request.param == "ray" else runtime.start("serial")


def test_blocks_cover_everything_once() -> None:
    for items in range(12):
        for workers in range(1, 5):
            dealt = base.split_into_blocks(items, workers)
            assert [i for block in dealt for i in block] == list(range(items))
            assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_clients_hold_their_own_piece_and_answer_in_order(engine: Runtime) -> None:
    engine.open("server", "client")
    shared = engine.share("numbers", np.arange(7.0))
    found, actors = engine.federate(two_rounds, engine.deal(shared, slice_of, 7), 5, path=("task", "cell"))
    assert sum(value for value, _ in found) == 42.0
    assert [held for _, held in found] == ([7] if engine.name == "serial" else [3, 4]), "somebody held what is another's"
    assert actors == engine.num_workers
    engine.forget(shared)


def test_a_curator_leads_a_federation_and_its_rounds_are_counted(engine: Runtime) -> None:
    engine.open("server", "client")
    [(_, found)] = list(engine.as_done(at_a_curator, RuntimeDealing([[("by a curator",)]])))
    assert sum(value for value, _ in found) == 42.0
    if engine.name == "ray":  # serially the curator is another engine in this process
        count = engine.counted()["task", "by a curator"]
        assert (count.trainings, count.rounds, count.messages, count.bytes_up, count.bytes_down) == (1, 1, 7, 70, 140)
        assert count.calls == 3 * engine.num_workers
        assert 0 < count.clients_busy < count.seconds * engine.num_workers


def test_queues_deal_every_task_once_and_nobody_is_idle() -> None:
    for lengths in ([], [0], [1], [5], [3, 0, 4], [1, 1, 1, 9]):
        for curators in (1, 2, 3):
            dealt = CuratorQueues([[(q, i) for i in range(n)] for q, n in enumerate(lengths)])
            found = [dealt.next(i % curators) for i in range(sum(lengths))]
            assert sorted(filter(None, found)) == [(q, (q, i)) for q, n in enumerate(lengths) for i in range(n)]
            assert not dealt
            assert all(dealt.next(curator) is None for curator in range(curators))


def test_queues_keep_neighbours_together_and_no_curator_has_two_tasks_of_one() -> None:
    dealt = CuratorQueues([[(letter,) for letter in "abcdef"], [(letter,) for letter in "vw"]])

    def letters(*curators: int, busy: tuple[int, ...] = ()) -> str:
        return "".join(found[1][0] if (found := dealt.next(curator, busy)) is not None else "-" for curator in curators)

    assert letters(0, 1, 1, 0) == "avwb"
    assert letters(1, busy=(0, 1)) == "-", "it has a task of each"
    assert letters(1) == "e", "the later half of what curator 0 still has"
    assert letters(0, 0, 0, 1) == "cdf-"


def test_as_done_gives_every_result_at_once(engine: Runtime, tmp_path: Path) -> None:
    """Under Ray the first task ends only after the second one's result was seen."""
    marker = tmp_path / "seen"
    first = str(marker) if engine.name == "ray" else ""
    scale = engine.share("scale", np.full(100_000, 2))
    queues = [[(first, "a", scale)], [("", "b", scale), ("", "c", scale)]]
    started: list[str] = []
    found = {}
    for task, value in engine.as_done(waits_for, RuntimeDealing(queues, started=lambda task: started.append(task[1]))):
        assert task[1] in started
        found[task[1]] = value
        if "b" in found:
            marker.write_text("x", encoding="utf-8")
    assert found == {"a": "aa", "b": "bb", "c": "cc"}
    assert sorted(started) == ["a", "b", "c"]


def test_shared_arrays_are_read_only(engine: Runtime) -> None:
    shared = engine.share("frozen", np.zeros(100_000))
    with pytest.raises(ValueError, match="read-only"):
        engine.federate(asks, overwrite, engine.deal(shared, whole, 1), path=("task", "writes"))


def test_errors_keep_their_type_and_text(engine: Runtime) -> None:
    with pytest.raises(DataError, match="client 3: broken"):
        engine.federate(asks, fail, path=("task", "fails"))
    with pytest.raises(DataError, match="client 3: broken"):
        engine.on_server(fail, range(1))
    with pytest.raises(DataError, match="client 3: broken"):
        list(engine.map(fail, [range(1)]))
    with pytest.raises(DataError, match="client 3: broken"):
        list(engine.as_done(fail_at, RuntimeDealing([[(range(1),)]])))


def remember(word: str) -> None:
    os.environ["FEDGRAPH_TEST_TOLD"] = word


def told(items: range) -> str:
    return os.environ.get("FEDGRAPH_TEST_TOLD", "")


def test_everybody_is_told_also_who_comes_back(engine: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDGRAPH_TEST_TOLD", "nothing")
    (tmp_path / "marker").write_text("", encoding="utf-8")
    for word in ("first", "second"):
        engine.tell(remember, word)
        assert engine.federate(asks_two, told, path=("task", "told")) in ([word], [word, word])
        assert engine.on_server(told, range(0)) == word
        assert list(engine.map(told, [range(0)] * 3)) == [word] * 3
    assert list(engine.map(square, list(range(9)), 1)) == [i * i + 1 for i in range(9)], "in order"
    if engine.name == "ray":
        (tmp_path / "marker").unlink()
        assert engine.federate(asks, die_once, str(tmp_path / "marker"), path=("task", "dies")) == [42]
        assert engine.federate(asks_two, told, path=("task", "told")) == ["second", "second"]


def test_a_secret_root_reaches_the_workers_and_not_the_store(engine: Runtime) -> None:
    root = seeds.root_seed("secret")
    assert isinstance(root, seeds.SecretSeed)
    handle = engine.share("root", root)
    stored = pickle.dumps(ray.get(handle.shared().refs[0]) if engine.name == "ray" else handle.value)
    assert root.key not in stored
    engine.tell(seeds.hold_secret_seed, root.key)
    expected = seeds.secret_seeded_generator(root, "noise", 1).random(3).tolist()
    assert all(found == expected for found in engine.federate(asks_two, drawn, handle, path=("task", "drawn")))
    assert list(engine.map(drawn, [range(1)], handle)) == [expected]
    fresh = seeds.root_seed("secret")  # as an argument itself, which an actor unpickles before it hears of the key
    assert isinstance(fresh, seeds.SecretSeed)
    engine.tell(seeds.hold_secret_seed, fresh.key)
    assert engine.on_server(drawn, range(1), fresh) == seeds.secret_seeded_generator(fresh, "noise", 1).random(3).tolist()


def drawn(items: range, root: int) -> list[float]:
    return seeds.secret_seeded_generator(root, "noise", 1).random(3).tolist()


def test_forget_drops_a_shared_value(engine: Runtime) -> None:
    engine.forget(engine.share("k", np.zeros(3)))
    assert engine.on_server(np.sum, engine.share("k", np.ones(3))) == 3.0
