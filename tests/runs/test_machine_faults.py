"""The machine fails at a write that hypothesis draws: the disk is full, becomes read-only, or the process is killed.

Each run is a process of its own. A fault that can be told of is told in one line; what lies in the folder afterwards is whole;
and ``--resume`` gives the same rows as a run that nothing disturbed.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
CODES = {"killed": 0, "full": errno.ENOSPC, "read-only": errno.EROFS}
# What draws has threads of its own, which a fork does not take along: whoever drew before it would wait for them.
UNDRAWN = SimpleNamespace(
    __version__="undrawn", javascript_bundle=lambda: "", vegalite_to_svg=lambda *_, **__: "<svg/>",
    svg_to_png=lambda *_, **__: b"png", svg_to_jpeg=lambda *_, **__: b"jpeg",
)  # fmt: skip


def in_a_process(act: Callable[[], int], seconds: int = 600) -> tuple[int, str]:
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
        return (-os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else os.WEXITSTATUS(ended)), said.read().decode()


def disturbed(kind: str, at: int | str, folder: Path, arguments: list[str]) -> int:
    """Run; the write number ``at`` below ``folder`` fails, or those in the folder ``at``: a file that is opened for it, or a
    renaming. A disk stays broken.
    """
    count = [0]

    def watch(event: str, details: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(details[2], int) and details[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event == "os.rename") or not str(details[0]).startswith(str(folder)):
            return
        count[0] += 1
        here = count[0] > at if isinstance(at, int) else f"/{at}/" in str(details[0])
        if kind == "killed" and here:
            os.kill(os.getpid(), signal.SIGKILL)
        if here:
            raise OSError(CODES[kind], os.strerror(CODES[kind]), details[0])

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


def check(kind: str, at: int | str, scenario: Path, whole: list[dict[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        out = Path(home) / "out"
        status, said = in_a_process(lambda: disturbed(kind, at, out, [str(scenario), "--out", str(out)]))
        assert "Traceback" not in said
        assert "unforeseen" not in said
        if status == 0:
            assert numbers(out) == whole
            return
        assert status == (-signal.SIGKILL if kind == "killed" else 1), said
        if kind != "killed":
            assert os.strerror(CODES[kind]) in said.splitlines()[-1]
        for file in out.rglob("*"):
            if file.suffix in (".json", ".gz"):
                json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
            if file.suffix == ".npz":
                with np.load(file, allow_pickle=False) as arrays:
                    assert all(np.isfinite(arrays[name]).all() for name in arrays)
        option = "--resume" if (out / "cells" / "scenario.sha256").exists() else "--out"
        status, said = in_a_process(lambda: run.main([str(scenario), option, str(out)]))
        assert status == 0, said
        assert numbers(out) == whole
        assert (out / "report.html").is_file()


@pytest.mark.parametrize(("kind", "at"), [("killed", 7), ("full", 9), ("full", "sheets")])
def test_a_fault(kind: str, at: int | str, scenario: Path, whole: list[dict[str, str]]) -> None:
    check(kind, at, scenario, whole)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(CODES)), st.integers(0, MOST_WRITES))
def test_many_faults(scenario: Path, whole: list[dict[str, str]], kind: str, at: int) -> None:
    check(kind, at, scenario, whole)


def test_the_check_sees_an_error_that_is_not_caught() -> None:
    def breaks() -> int:
        raise ValueError

    assert [in_a_process(act)[0] for act in (breaks, lambda: guard(breaks))] == [99, 1]
