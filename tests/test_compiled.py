"""Compiled code lies in the user's cache, not beside the package."""

from __future__ import annotations

import threading
from pathlib import Path

import numba
import pytest

from fedgraph import compiled


def test_nothing_is_written_beside_the_package() -> None:
    package = Path(compiled.__file__).parent
    assert not numba.config.CACHE_DIR or not Path(numba.config.CACHE_DIR).is_relative_to(package)


def test_loops_that_call_each_other_are_compiled_when_the_first_is_called() -> None:
    source = "def half(x):\n    return x / 2\n\n\ndef quarter(x):\n    return half(half(x))\n"
    known: dict[str, object] = {"__name__": __name__}
    exec(compile(source, __file__, "exec"), known)
    for name in ("half", "quarter"):
        known[name] = compiled.compiled(compiled.compiled_types.float64(compiled.compiled_types.float64))(known[name])  # type: ignore[type-var]
    quarter = known["quarter"]
    assert callable(quarter)
    assert quarter(8.0) == 2.0


def test_while_one_process_compiles_another_waits_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    done = threading.Event()

    def second() -> None:
        with compiled.one_process_at_a_time("room.loop"):
            done.set()

    waiting = threading.Thread(target=second)
    with compiled.one_process_at_a_time("room.loop"), compiled.one_process_at_a_time("room.other"):
        waiting.start()
        assert not done.wait(0.2)
        with compiled.one_process_at_a_time("room.loop", patience=0.1):
            pass  # one that was stopped holds nobody up
    waiting.join(5.0)
    assert done.is_set()
