"""A plan, a state or a graph as one file of text without code, and back: ``models.file`` in base 64.

Flower sends text only. Nothing is unpickled, and no name in it is called (``models.file``).
"""

import base64
import json
import zlib
from pathlib import Path
from typing import TypeVar

from fedgraph.errors import DataError
from fedgraph.models.file import from_bytes, to_bytes

T = TypeVar("T")


def write(path: Path, value: object) -> None:
    """``value``, made of frozen records."""
    text = base64.b64encode(zlib.compress(to_bytes(value))).decode()
    path.write_text(json.dumps({"holds": type(value).__name__, "bytes": text}) + "\n", encoding="utf-8")


def read(path: Path, kind: type[T]) -> T:
    """The ``kind`` that ``write`` wrote. ``DataError`` in one line where the file holds none."""
    try:
        found = from_bytes(zlib.decompress(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["bytes"])))
    except Exception as error:
        why = " ".join(str(error).split())[:200] if isinstance(error, (OSError, DataError)) else type(error).__name__
        raise DataError(f"{path}: not as fedgraph writes it: {why}") from error
    if not isinstance(found, kind):
        raise DataError(f"{path}: holds {type(found).__name__}; allowed: {kind.__name__}")
    return found
