"""Files that a command writes for a person: whole or not at all, and never over something without being asked."""

import os
import tempfile
from pathlib import Path

from fedgraph.errors import ScenarioError


def require_free(path: Path, replace: bool = False) -> None:
    """``ScenarioError`` where ``path`` is a folder, or a file that nobody asked to replace."""
    if path.exists() and (path.is_dir() or not replace):
        what = "is a folder" if path.is_dir() else "exists already; say --force to replace it"
        raise ScenarioError(f"{path}: {what}")
    above = next((p for p in path.absolute().parents if p.exists()), None)
    if above is not None and not above.is_dir():
        raise ScenarioError(f"{path}: cannot be written: {above} is not a folder")


def write_new(path: Path, content: bytes, replace: bool = False) -> None:
    """``content`` as ``path``. ``ScenarioError`` where the file is there and ``replace`` is not said, or cannot be written."""
    require_free(path, replace)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written: {error.strerror or error}") from error
