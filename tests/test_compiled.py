"""Compiled code lies in the user's cache, not beside the package."""

from __future__ import annotations

import threading
from pathlib import Path

import numba
import pytest

from fedgraph import compiled


def test_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compiled._cache() == str(tmp_path / "fedgraph" / "numba")
    assert (tmp_path / "fedgraph" / "numba").is_dir()


def test_a_cache_that_cannot_be_made_is_left_to_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled._cache() == ""


def test_nothing_is_written_beside_the_package() -> None:
    package = Path(compiled.__file__).parent
    assert not numba.config.CACHE_DIR or not Path(numba.config.CACHE_DIR).is_relative_to(package)


def test_loops_that_call_each_other_are_compiled_when_the_first_is_called() -> None:
    source = "def half(x):\n    return x / 2\n\n\ndef quarter(x):\n    return half(half(x))\n"
    known: dict[str, object] = {"__name__": __name__}
    exec(compile(source, __file__, "exec"), known)
    for name in ("half", "quarter"):
        known[name] = compiled._Loop(known[name], compiled.compiled_types.float64(compiled.compiled_types.float64), {})  # type: ignore[arg-type]
    quarter = known["quarter"]
    assert isinstance(quarter, compiled._Loop)
    assert "compiled" not in vars(quarter)
    assert quarter(8.0) == 2.0
    assert not isinstance(known["half"], compiled._Loop)


def test_while_one_process_compiles_another_waits_for_what_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    done = threading.Event()

    def second() -> None:
        with compiled._one_process_at_a_time("room.loop"):
            done.set()

    waiting = threading.Thread(target=second)
    with compiled._one_process_at_a_time("room.loop"), compiled._one_process_at_a_time("room.other"):
        waiting.start()
        assert not done.wait(0.2)
    waiting.join(5.0)
    assert done.is_set()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "nowhere"))
    with compiled._one_process_at_a_time("room.loop"):
        pass  # without a folder nobody waits


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled, "_WAIT", 0.1)
    entered = []
    with compiled._one_process_at_a_time("room.loop"), compiled._one_process_at_a_time("room.loop"):
        entered.append(True)
    assert entered
