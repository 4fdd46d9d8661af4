"""Prints the rooms of fedgraph that a change touches, for the tests of quality: ``methods,methods/dpar,privacy``, ``all``, or
nothing. Rooms of plugins are named with the plugin, too, and scenarios, because a scenario is run again where it or a plugin
that it names changed.

A change is what lies between the base and the working tree. The base is FEDGRAPH_BASE, else ``HEAD`` where that is a release
(a tag, which is tested whole), else where this branch left ``main``, else (on ``main`` itself) the newest commit that is older
than six hours, because commits that land together are one change. Where no base is known, everything counts as changed.
``FEDGRAPH_TIER=all`` asks for all of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import PurePosixPath

FOR_ALL = {"pyproject.toml", "constraints.txt", "tests/conftest.py"}  # versions, and how the suite is run
TOGETHER = "6 hours ago"
OF_PLUGINS = {"methods", "tasks", "attacks", "partition"}
MAINS = ("origin/main", "main", "origin/HEAD")


def git(*words: str) -> str | None:
    """What git answers; None where it fails."""
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def base() -> str | None:
    """The commit that the working tree is compared with; None where there is none."""
    given = os.environ.get("FEDGRAPH_BASE", "")
    if given and git("cat-file", "-e", f"{given}^{{commit}}") is not None:
        return given
    head = git("rev-parse", "HEAD")
    if git("describe", "--exact-match", "--tags", "HEAD") is not None:
        return head
    for main in MAINS:
        found = git("merge-base", "HEAD", main)
        if found and found != head:
            return found
    return git("rev-list", "-1", f"--before={TOGETHER}", "--first-parent", "HEAD") or None


def has_new_versions(since: str) -> bool:
    """Whether pyproject.toml says more than another version of fedgraph itself."""
    lines = re.findall(r"^[+-](?![+-]).*", git("diff", "--unified=0", since, "--", "pyproject.toml") or "", re.MULTILINE)
    return any(not re.match(r".version = ", line) for line in lines)


def rooms(files: list[str]) -> str:
    """The rooms of these files, in order, joined by commas."""
    if any(name in FOR_ALL or name.startswith(".ci/") for name in files):
        return "all"
    inner = [name.removeprefix("zoo/").replace("fedgraph_zoo/", "fedgraph/", 1).removesuffix(".py") for name in files]
    parts = [PurePosixPath(name).parts for name in inner]
    found = {p[1] for p in parts if len(p) > 1 and p[0] in ("fedgraph", "tests")}
    found |= {"/".join(p[1:3]) for p in parts if len(p) > 2 and p[0] == "fedgraph" and p[1] in OF_PLUGINS}
    found |= {f"scenarios/{PurePosixPath(p[1]).stem}" for p in parts if len(p) == 2 and p[0] == "scenarios"}
    return ",".join(sorted(found))


def main() -> str:
    since = base()
    changed = git("diff", "--name-only", since) if since else None
    if os.environ.get("FEDGRAPH_TIER") == "all" or since is None or changed is None:
        return "all"
    return rooms([name for name in changed.splitlines() if name != "pyproject.toml" or has_new_versions(since)])


if __name__ == "__main__":
    sys.stdout.write(main() + "\n")
