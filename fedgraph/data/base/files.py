"""Raw files on disk: where they are looked for, how they are verified, how they reach the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph.errors import DataError
from fedgraph.types import GraphProvenance

_MOST_BYTES = 8 * 1024**3  # of one file
_MOST_FAULTS = 8  # that one message lists
_PATIENCE = 5.0  # seconds to wait for a host before it counts as out of reach


@dataclass(frozen=True)
class RawFiles:
    """The raw files of one data set in one folder."""

    folder: Path
    expected: Mapping[str, str] = field(default_factory=dict)  # file name → SHA-256 that the bytes must have
    checksums: dict[str, str] = field(default_factory=dict)  # file name → SHA-256 of what was read so far

    def read(self, name: str) -> bytes:
        """The bytes of one file, hashed and, where a digest is published, verified before they are returned.

        Raises ``DataError`` naming file, found and expected digest, or the reason why the file cannot be read.
        """
        file = self.folder / name
        try:
            if file.exists() and not file.is_file():
                raise DataError(f"{file}: not a file; allowed: a file")  # reading from a pipe or a device might never end
            size = file.stat().st_size
            if size > _MOST_BYTES:
                raise DataError(f"{file}: {size:,} bytes; allowed: at most {_MOST_BYTES:,}")
            content = file.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a name with a null byte
            why = (error.strerror if isinstance(error, OSError) else None) or error
            raise DataError(f"{file}: cannot be read ({why})") from error
        found = hashlib.sha256(content).hexdigest()
        expected = self.expected.get(name, found)
        if found != expected:
            raise DataError(
                f"{file}: SHA-256 is {found}, expected {expected}. The file is a pickle, which can run code when it is opened, "
                "so only the published bytes are; fetch the file again from its publisher"
            )
        self.checksums[name] = found
        return content

    def provenance(self, title: str) -> GraphProvenance:
        """``real``, with the checksums of every file read until now."""
        return GraphProvenance("real", f"{title}, published files", dict(self.checksums))


def cache_folder() -> Path:
    """The folder of downloaded data: ``$XDG_CACHE_HOME/fedgraph``, or ``~/.cache/fedgraph``. Not created here."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home else Path.home() / ".cache") / "fedgraph"


def find(folder: str, files: tuple[str, ...], expected: Mapping[str, str], roots: Iterable[Path]) -> RawFiles | None:
    """The first place that holds every file: ``root/folder``, or ``root/`` and folder's later parts."""
    for place in places(folder, roots):
        if all((place / name).is_file() for name in files):
            return RawFiles(place, expected)
    return None


def incomplete(folder: str, files: tuple[str, ...], roots: Iterable[Path]) -> str:
    """One phrase for the first place that holds some of the files but not all: which it lacks; "" where there is none."""
    for place in places(folder, roots):
        lacking = [name for name in files if not (place / name).is_file()]
        if len(lacking) < len(files):
            return f"{place} lacks {', '.join(lacking)}"
    return ""


def places(folder: str, roots: Iterable[Path]) -> Iterator[Path]:
    """Where the files of ``folder`` may lie, in the order of the search."""
    for root in roots:
        yield root / folder
        yield root / folder.partition("/")[2]


def download(folder: str, files: tuple[str, ...], cache: Path, pyg: Mapping[str, object]) -> str:
    """Let PyG fetch the raw files into ``cache/folder``; returns one phrase that says why that failed.

    Only PyG's ``download`` is called, on an object whose constructor did not run: the constructor would go on to open the
    files, unverified. The files arrive in a temporary folder and are moved when complete, so that an interrupted download
    leaves nothing behind that looks like a data set.
    """
    try:
        from torch_geometric import datasets

        fetcher = object.__new__(getattr(datasets, str(pyg["class"])))
        _knock(str(getattr(fetcher, "url", "") or getattr(fetcher, "processed_url", "")))
        cache.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".download-", dir=cache) as scratch,
            open(os.devnull, "w") as nothing,
            contextlib.redirect_stderr(nothing),
        ):
            vars(fetcher).update({key: value for key, value in pyg.items() if key != "class"}, root=scratch)
            raw = Path(fetcher.raw_dir)
            raw.mkdir(parents=True, exist_ok=True)
            fetcher.download()
            target = cache / folder
            target.mkdir(parents=True, exist_ok=True)
            for name in (*files, *sorted(p.name for p in raw.iterdir() if p.is_file() and p.name not in files)):
                os.replace(raw / name, target / name)
    except Exception as error:  # whatever a network stack may raise: the caller reports it and goes on without the files
        why = str(error).splitlines()[0][:120] if str(error) else ""
        return f"the download through PyG failed: {type(error).__name__}: {why}"
    return "PyG downloaded no such files"


def _knock(url: str) -> None:
    """Fail within seconds where the host of ``url`` is out of reach; behind a proxy nothing is tried. Raises ``OSError``."""
    address = urllib.parse.urlsplit(url)
    if address.hostname and not urllib.request.getproxies():
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname, port), timeout=_PATIENCE).close()


class _DataFaultsError(DataError):
    """Faults of files: the first ones, a line each, and how many more there are.

    Attributes:
        first: the lines of the first ones.
        count: of all of them.
        read_as: how the files were read, where that may be the reason.
    """

    def __init__(self, first: list[str], count: int, read_as: str = "") -> None:
        more = count - len(first)
        super().__init__(
            "\n".join([*first, *([f"… and {more:,} more of this kind"] if more else []), *filter(None, [read_as])])
        )
        self.first, self.count, self.read_as = first, count, read_as

    def __reduce__(self) -> tuple[type[_DataFaultsError], tuple[list[str], int, str]]:
        """As it travels between processes."""
        return type(self), (self.first, self.count, self.read_as)


class DataFileFaults:
    """Collects faults of files as lines ``file:line: found; allowed``, so that one error tells all of them."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def note(self, where: str, sentence: str) -> None:
        """One more fault.

        Args:
            where: ``file`` or ``file:line``; "" where the sentence says it.
            sentence: what was found, and what is allowed.
        """
        self._count += 1
        if self._count <= _MOST_FAULTS:
            self._first.append(f"{where}: {sentence}" if where else sentence)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._count

    def told(self, name: str) -> str:
        """The first of a file's faults, without the file; "" where it is one of a line."""
        return self._first[0].partition(f"{name}: ")[2]

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Faults that a reader refuses inside are noted here, so that the next reader says its own, too."""
        try:
            yield
        except _DataFaultsError as error:
            self._first += error.first[: _MOST_FAULTS - len(self._first)]
            self._count += error.count
        except DataError as error:
            for line in str(error).splitlines():
                self.note("", line)

    def refuse(self, read_as: str = "") -> None:
        """Raise what was noted; nothing happens where nothing was. read_as: how the files were read, for the last line.

        Raises:
            DataError: the first eight faults, a line each, and how many more there are.
        """
        if self._count:
            raise _DataFaultsError(self._first, self._count, read_as)
