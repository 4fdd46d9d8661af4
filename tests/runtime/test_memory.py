"""Freed memory stays with the process, here and in the workers that it starts."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from fedgraph.runtime import process

MEMORY = """
import resource, sys
import numpy as np
from fedgraph.runtime import process
if "kept" in sys.argv:
    process.keep_memory()
one = np.ones(6_000_000)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
one + one
before = faults()
for _ in range(8):
    one + one
print(faults() - before)
blocks = [np.ones(size) for size in [5_000_000, 1000] * 16]
large = blocks[::2]
del blocks[::2]
del large
before = resident()
process.give_back_process_memory()
print(before - resident())
"""


def measured(*arguments: str) -> list[int]:
    """Pages that eight sums of 48 MB had to ask for; bytes of free blocks between used ones that went back when asked."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", MEMORY, *arguments], env=env, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives large blocks back at once")
def test_freed_blocks_are_used_again_without_new_pages_and_go_back_when_asked() -> None:
    (plain, _), (kept, gone) = measured(), measured("kept")
    assert kept < 0.2 * plain
    assert gone > 0.9 * 16 * 40e6


@pytest.mark.parametrize("own", [False, True])
def test_children_that_are_started_inside_get_the_variables_unless_the_user_chose(
    own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    if own:
        monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    with process.keep_child_memory():
        assert [name in os.environ for name in names] == [not own, not own, True]
    assert [name in os.environ for name in names] == [False, False, own]
