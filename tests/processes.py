"""Processes of this machine, for tests that start and end them."""

import os
from pathlib import Path


def began(pid: int) -> int | None:
    """When the process began, in ticks since boot; None where there is none, or it has ended."""
    found = _stat(pid)
    return None if found is None or found[0] in "ZX" else int(found[19])


def family(*ancestors: int) -> set[tuple[int, int]]:
    """(process, when it began) of every living descendant, but for this process."""
    parents = {int(e.name): int(found[1]) for e in Path("/proc").glob("[0-9]*") if (found := _stat(int(e.name))) is not None}
    found, new = set[int](), set(ancestors)
    while new := {pid for pid, parent in parents.items() if parent in new} - found - set(ancestors):
        found |= new
    return {(pid, when) for pid in found - {os.getpid()} if (when := began(pid)) is not None}


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat behind the name: state, parent, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
