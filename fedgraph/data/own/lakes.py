"""Tables that lie in a folder in parts: which files are theirs, and what the folders' names say of each.

Spark, Dask, DuckDB and BigQuery number the parts; Hive writes a column into the names of folders (``country=AT/``); Delta keeps
a log of the files that are valid. A file that a log removed holds people who were erased: it is never read. Where the log does
not say it in plain words (checkpoints, deleted rows; Iceberg and Hudi), the table is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fedgraph.errors import DataError
from fedgraph.types import counted

MARKED = re.compile(r"(^|/)(_delta_log|\.hoodie)/|(^|/)metadata/[^/]*\.metadata\.json$")  # of files in an archive
_LOG = "_delta_log"
_HIVE = re.compile(r"(?P<key>[^=/]+)=(?P<value>.*)")
_NOBODY = "__HIVE_DEFAULT_PARTITION__"
_TABLE = re.compile(r"\.(csv|tsv|parquet|orc|feather|jsonl|ndjson|json)(\.(gz|bz2|xz))?$", re.IGNORECASE)
_HARMLESS = frozenset({"commitInfo", "protocol", "metaData", "txn", "domainMetadata"})  # of a log: name no file
_EXPORT = "allowed: its present version exported, such as one Parquet file"


@dataclass(frozen=True)
class Part:
    """A file, by its name within the folder, and the columns that the names of folders say."""

    name: str
    said: Mapping[str, str] = field(default_factory=dict)


def kept_by(folder: Path) -> str:
    """Which program keeps a list of the files that are valid; "" where all are."""
    if (folder / _LOG).is_dir():
        return "Delta"
    if (folder / ".hoodie").is_dir():
        return "Hudi"
    return "Iceberg" if any((folder / "metadata").glob("*.metadata.json")) else ""


def is_in_parts(folder: Path) -> bool:
    """Whether a folder is one table in parts."""
    return bool(kept_by(folder)) or bool(_listed(folder))


def parts_of(folder: Path) -> tuple[list[Part], list[str]]:
    """(the files that are valid, in order; remarks). ``DataError`` where these cannot be told."""
    keeper = kept_by(folder)
    if not keeper:
        return _listed(folder), []
    if keeper != "Delta":
        raise DataError(f"{folder}: a table of {keeper}, whose files may hold rows that were deleted; {_EXPORT}")
    valid, removed = _of_log(folder)
    parts = [Part(name, _said(name)) for name in sorted(valid)]
    aside = f" (not read: {counted(removed, 'file')} that it removed)" if removed else ""
    return parts, [f"{folder.name} is a Delta table: {counted(len(parts), 'file')} valid by its log{aside}"]


def _of_log(folder: Path) -> tuple[set[str], int]:
    """(valid files, how many others the log names)."""
    log = folder / _LOG
    files = sorted(one for one in log.iterdir() if not one.name.startswith(".") and not one.name.endswith(".crc"))
    for number, file in enumerate(files):
        if file.name != f"{number:020d}.json":
            raise _unclear(file, "no commit of a whole log, which begins at 0")
    valid, every = set[str](), set[str]()
    for file in files:
        added, removed = set[str](), set[str]()
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if line.strip():
                _note(line, added, removed, Path(f"{file}:{number}"))
        if both := sorted(added & removed):
            raise _unclear(file, f"adds and removes {both[0]} at once")
        valid, every = (valid - removed) | added, every | added | removed
    if lacking := sorted(name for name in valid if not (folder / name).is_file()):
        raise DataError(f"{folder}: its log ({_LOG}) names {lacking[0]}, which is not there; {_EXPORT}")
    if not valid:
        raise DataError(f"{folder}: by its log ({_LOG}) no file is valid; {_EXPORT}")
    return valid, len(every - valid)


def _note(line: str, added: set[str], removed: set[str], where: Path) -> None:
    """Adds what one line of a log does."""
    try:
        told: Any = json.loads(line)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise _unclear(where, "no line of JSON")
    for action, facts in told.items():
        told_so = (facts.get("configuration") or {}) if isinstance(facts, dict) else {}
        mapped = told_so.get("delta.columnMapping.mode", "none") != "none"
        if action in _HARMLESS and not mapped:
            continue
        path = unquote(str(facts.get("path", ""))) if isinstance(facts, dict) else ""
        if action not in ("add", "remove") or not path or path.startswith("/") or "://" in path or ".." in path:
            raise _unclear(where, f"{'columnMapping' if mapped else action} is not understood")
        if action == "add" and facts.get("deletionVector"):
            raise _unclear(where, "rows of a file are deleted")
        (added if action == "add" else removed).add(path)


def _unclear(where: Path, said: str) -> DataError:
    return DataError(f"{where}: the log of a Delta table, of which not all is understood ({said}); {_EXPORT}")


def _said(name: str) -> dict[str, str]:
    """What the folders of a file say, as Hive writes it."""
    told = [match for step in Path(name).parts[:-1] if (match := _HIVE.fullmatch(step))]
    return {match["key"]: "" if match["value"] == _NOBODY else unquote(match["value"]) for match in told}


def _listed(folder: Path) -> list[Part]:
    """The parts of one table, by their names; nothing where the folder may hold several."""
    inside = sorted((one for one in folder.iterdir() if not one.name.startswith((".", "_"))), key=_by_numbers)
    if not inside:
        return []
    if all(one.is_file() for one in inside):
        return [Part(one.name) for one in inside] if _are_parts(inside, folder.name) else []
    named = [_HIVE.fullmatch(one.name) for one in inside]
    if len({match["key"] if match else None for match in named}) > 1 or not all(named):
        return []
    found: list[Part] = []
    for one in inside:
        below = _below(one) if one.is_dir() else []
        if not below:
            return []
        found += [Part(name, _said(name)) for name in (f"{one.name}/{part.name}" for part in below)]
    return found if len({re.sub(r".*(?=\.)", "", Path(part.name).name) for part in found}) == 1 else []


def _by_numbers(file: Path) -> list[tuple[int, str]]:
    return [(int(step) if step.isdigit() else -1, step) for step in re.split(r"([0-9]+)", file.name)]


def _below(folder: Path) -> list[Part]:
    """The parts in a folder of Hive's: one file, whatever it is called, or several that are called as parts."""
    inside = [one for one in folder.iterdir() if not one.name.startswith((".", "_"))]
    if len(inside) == 1 and inside[0].is_file() and _TABLE.search(inside[0].name):
        return [Part(inside[0].name)]
    return _listed(folder)


def _are_parts(files: list[Path], folder: str) -> bool:
    """Whether files are called as parts: ``part-0``; or as several of ``data_1``, ``chunk.1``, or the folder with a number."""
    names = [one.name for one in files]
    if all(re.match(r"part-\d+.*\.\w+$", name) for name in names):
        return True
    called = rf"(part|data|chunk|batch|page|{re.escape(folder)})[-_. ]?\d[\d._-]*(?=\.)"
    endings = {re.sub(called, "", name, count=1, flags=re.IGNORECASE) for name in names}
    numbered = all(re.match(called, name, re.IGNORECASE) and _TABLE.search(name) for name in names)
    return len(names) > 1 and numbered and len(endings) == 1
