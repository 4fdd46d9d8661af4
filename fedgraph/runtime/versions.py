"""What has to be equal on every machine of a run: the packages that compute, and fedgraph's own source, file by file."""

import hashlib
import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import RuntimeFailure

COMPUTING = ("torch", "numpy", "scipy", "POT", "numba")  # another version of these may give other numbers


@dataclass(frozen=True)
class Made:
    """Versions of one process. source: a digest over all of fedgraph's ``.py`` files."""

    python: str
    packages: tuple[tuple[str, str], ...]
    source: str


def own() -> Made:
    """The versions of this process."""
    return Made(platform.python_version(), tuple((name, _version(name)) for name in COMPUTING), _source())


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]  # +cpu and +cu126 are builds of one version
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _source() -> str:
    root = Path(__file__).resolve().parent.parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def require_equal(here: Made, others: Sequence[tuple[str, Made]]) -> None:
    """``RuntimeFailure`` that names the first machine whose versions differ, and every difference."""
    for where, there in others:
        differ = [(name, a, dict(there.packages)[name]) for name, a in here.packages if a != dict(there.packages)[name]]
        if here.python != there.python:
            differ.insert(0, ("python", here.python, there.python))
        if here.source != there.source:
            differ.append(("fedgraph's source", here.source, there.source))
        if differ:
            words = "; ".join(f"{name}: driver {a}, worker {b}" for name, a, b in differ)
            raise RuntimeFailure(f"the worker on {where} is not what the driver is ({words}); install the same there")
