"""Processor seconds and memory of a process and all that it started, whoever their parent is now (Linux).

A run marks itself by a word in its environment, which every process that it starts inherits.
"""

from __future__ import annotations

import os
from pathlib import Path

MARK = "FEDERATION_BENCHMARK"
_seen: dict[str, float] = {}


def marked() -> list[Path]:
    """The ``/proc`` folders of the processes that carry this process's word."""
    word = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(entry)
            except OSError:
                continue
    return found


def cpu_seconds() -> float:
    """User and system seconds of all marked processes so far; of one that has ended, what was last seen."""
    for entry in marked():
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        _seen[entry.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return sum(_seen.values())


def peak_gb() -> float:
    """Σ over the marked processes of each one's largest resident size (shared pages count in each of them)."""
    total = 0
    for entry in marked():
        try:
            lines = (entry / "status").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return total * 1024 / 1e9
