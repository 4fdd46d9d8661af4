"""The machine fails at a write that hypothesis draws: the disk is full, becomes read-only, or the process is killed.

Each run is a process of its own. A fault that can be told of is told in one line; what lies in the folder afterwards is whole;
and ``--resume`` gives the same rows as a run that nothing disturbed.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph import run
from fedgraph.commands.base import guard
from tests.results import numbers
from tests.scenarios import small

TINY = small("{method: features, steps: 2, projection: 8}", runtime="{engine: serial}")
MOST_WRITES = 60  # of one such run; a fault that is drawn later never happens, and the run is then whole


@dataclass(frozen=True)
class Fault:
    """What happens at the write number ``at``; a disk that is full or read-only stays so."""

    kind: Literal["killed", "full", "read-only"]
    at: int


faults = st.builds(Fault, st.sampled_from(["killed", "full", "read-only"]), st.integers(0, MOST_WRITES))


# What draws has threads of its own, which a fork does not take along: whoever drew before it would wait for them.
UNDRAWN = SimpleNamespace(
    __version__="undrawn", javascript_bundle=lambda: "", vegalite_to_svg=lambda *_, **__: "<svg/>",
    svg_to_png=lambda *_, **__: b"png", svg_to_jpeg=lambda *_, **__: b"jpeg",
)  # fmt: skip


def in_a_process(act: Callable[[], int], seconds: int = 120) -> tuple[int, str]:
    """(exit status, or minus the signal; what was said on stderr) of ``act`` in a forked process."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            sys.modules["vl_convert"] = UNDRAWN  # type: ignore[assignment]
            signal.alarm(seconds)
            status = 99
            with contextlib.suppress(BaseException):
                status = act()
            sys.stderr.flush()
            os._exit(status)
        _, ended = os.waitpid(child, 0)
        said.seek(0)
        status = -os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)
        return status, said.read().decode()


def disturbed(fault: Fault | None, folder: Path, arguments: list[str]) -> int:
    """Run; every file that is opened for writing below ``folder``, and every renaming there, counts as a write."""
    count = [0]

    def fail(path: Any) -> None:
        assert fault is not None
        if fault.kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        code = errno.ENOSPC if fault.kind == "full" else errno.EROFS
        raise OSError(code, os.strerror(code), path)

    def watch(event: str, details: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(details[2], int) and details[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event == "os.rename") or not str(details[0]).startswith(str(folder)):
            return
        count[0] += 1
        assert fault is not None
        hits = count[0] > fault.at if fault.kind != "killed" else count[0] == fault.at + 1
        if hits:
            fail(details[0])

    if fault is not None:
        sys.addaudithook(watch)
    return run.main(arguments)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("machine") / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(scenario: Path) -> list[dict[str, str]]:
    out = scenario.parent / "whole"
    assert in_a_process(lambda: run.main([str(scenario), "--out", str(out)]))[0] == 0
    return numbers(out)


def check(fault: Fault, scenario: Path, whole: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "out"
        status, said = in_a_process(lambda: disturbed(fault, out, [str(scenario), "--out", str(out)]))
        assert "Traceback" not in said
        assert "unforeseen" not in said
        if status == 0:
            assert numbers(out) == whole
            return
        assert status == (-signal.SIGKILL if fault.kind == "killed" else 1), said
        if fault.kind != "killed":
            assert os.strerror(errno.ENOSPC if fault.kind == "full" else errno.EROFS) in said.splitlines()[-1]
        for file in out.rglob("*"):
            if file.suffix == ".json":
                json.loads(file.read_text(encoding="utf-8"))
            if file.suffix == ".gz":
                json.loads(gzip.decompress(file.read_bytes()))
            if file.suffix == ".npz":
                with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as arrays:
                    assert all(np.isfinite(arrays[name]).all() for name in arrays)
        option = "--resume" if (out / "cells" / "scenario.sha256").exists() else "--out"
        status, said = in_a_process(lambda: run.main([str(scenario), option, str(out)]))
        assert status == 0, said
        assert numbers(out) == whole
        assert (out / "report.html").is_file()


@pytest.mark.parametrize("fault", [Fault("killed", 7), Fault("full", 9)], ids=lambda f: f.kind)
def test_a_fault(fault: Fault, scenario: Path, whole: list[dict[str, str]]) -> None:
    check(fault, scenario, whole)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults)
def test_many_faults(scenario: Path, whole: list[dict[str, str]], fault: Fault) -> None:
    check(fault, scenario, whole)


def test_a_process_that_fails_without_a_word_is_seen() -> None:
    """The check can fail: an error that is not caught ends with a status that no run has."""

    def breaks() -> int:
        raise ValueError

    assert in_a_process(breaks)[0] == 99
    assert in_a_process(lambda: guard(breaks))[0] == 1
