"""The files of a run: each finished cell is stored at once, so that nothing is lost when the run is killed.

    DIR/scenario.yaml            the scenario, resolved
    DIR/cells/<name>.json.gz, .npz  one finished cell: its result and artefacts (written whole or not at all), checksum
    DIR/results.parquet          all cells in one table, when the run ends (``report.table``); nobody reads the cells any more
    DIR/cells/<name>.failed      why a cell failed; it counts as missing
    DIR/cells/lock               held by the run that is at work here
    DIR/pairs/<name>.npz         the discrepancies of one set of spaces, pair by pair (``<name>.<number>.npz``: still at work)

A cell is there or it is not. ``--resume`` computes what is missing, and since every random stream is
named by its cell the result is the same as without the interruption.
"""

import contextlib
import fcntl
import gzip
import hashlib
import hmac
import io
import json
import os
import secrets
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from fedgraph.cells import result
from fedgraph.cells.cell import Cell
from fedgraph.cells.result import Result
from fedgraph.errors import DataError, FedgraphError, ScenarioError
from fedgraph.printing import lock

_CHECKSUM = "sha256"
RESULTS_FILE = "results.parquet"  # the table of a run that is at its end
STORE_MARK = "scenario.sha256"  # in ``cells``: what the run in this folder computes
STORED_CELL_ENDING, _ARTEFACTS, _FAILED = ".json.gz", ".npz", ".failed"  # endings of the files of one cell


class CellStore:
    """The finished cells of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cells"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.damaged: list[str] = []  # what ``has`` found, for the user to know

    def has(self, cell: Cell) -> bool:
        """Whether the cell is there, whole and as it was written; a damaged or edited one is computed again."""
        try:
            return self.written(cell) and bool(self.load(cell))
        except DataError as error:
            self.damaged.append(str(error))
            return False

    def written(self, cell: Cell) -> bool:
        """Whether there is a file of it, damaged or not."""
        return self._file(cell, STORED_CELL_ENDING).exists()

    def failure(self, cell: Cell) -> Result | None:
        """Why the cell failed; None where it is there or was not tried."""
        file = self._file(cell, _FAILED)
        if self.written(cell) or not file.exists():
            return None
        return result.from_line(json.loads(file.read_text(encoding="utf-8")))

    def save(self, found: Result) -> None:
        """Write a finished cell: artefacts first, then the JSON that makes the cell exist.

        A cell that failed stays missing, so ``--resume`` tries it again; only why it failed is noted.
        """
        text = json.loads(json.dumps(result.to_line(found), default=np.generic.item))
        if found.failed:
            write_atomically(self._file(found, _FAILED), json.dumps(text).encode())
            return
        if found.artefacts:
            write_atomically(self._file(found, _ARTEFACTS), _compressed(found.artefacts))
        whole = {**text, _CHECKSUM: self._checksum(text, found)}
        content = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
        write_atomically(self._file(found, STORED_CELL_ENDING), gzip.compress(content, mtime=0))
        self._file(found, _FAILED).unlink(missing_ok=True)

    def load(self, cell: Cell) -> Result:
        """The finished cell; ``DataError`` where its files are not as they were written."""
        file = self._file(cell, STORED_CELL_ENDING)
        try:
            text = result.read_file(file)
            if text.pop(_CHECKSUM) != self._checksum(text, cell):
                raise ValueError("its checksum is another")
            artefacts = self._file(cell, _ARTEFACTS)
            return result.from_line(text, _arrays(artefacts) if artefacts.exists() else {})
        except (ValueError, KeyError, RecursionError, EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{file}: the cell {cell.key} is damaged or was edited ({error})") from error

    def _checksum(self, text: dict[str, object], cell: Cell) -> str:
        """Of the entry, and of the artefacts beside it."""
        artefacts = self._file(cell, _ARTEFACTS)
        return hashlib.sha256(json.dumps(text).encode() + (artefacts.read_bytes() if artefacts.exists() else b"")).hexdigest()

    def _file(self, cell: Cell, ending: str) -> Path:
        return self.folder / f"{hashlib.sha256(cell.key.encode()).hexdigest()[:24]}{ending}"


class CellPairStore:
    """Tables of solved pairs, each under a name, as equally long columns; parts are added until the table is closed.

    Cells of several curators may write to one table at the same time: whoever reads or writes holds the folder's lock.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pairs"

    def reachable(self) -> bool:
        """Whether this machine has the run's folder."""
        return self.folder.parent.is_dir()

    def load(self, name: str) -> list[dict[str, np.ndarray]]:
        """Every part of a table that was written whole, column → array. A damaged part is deleted."""
        if not self.folder.exists():
            return []
        with self._locked():
            return self._load(name)

    def _load(self, name: str) -> list[dict[str, np.ndarray]]:
        found = []
        for file in self._files(name):
            try:
                found.append(_arrays(file))
            except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
                file.unlink()  # damaged: its pairs are solved again
        return found

    def add(self, name: str, columns: dict[str, np.ndarray]) -> None:
        """Write one more part of a table: columns of one length, of which ``pairs``, int [n, 2], names the pairs."""
        with self._locked():
            numbers = [int(file.name.split(".")[1]) for file in self.folder.glob(f"{name}.*.npz")]
            number = 1 + max(numbers, default=-1)
            write_atomically(self.folder / f"{name}.{number}.npz", _compressed(columns))

    def close(self, name: str) -> str:
        """Join the parts of a table into one file; it, as seen from the run's folder."""
        whole = self.folder / f"{name}.npz"
        with self._locked():
            parts = self._files(name)
            if parts != [whole] and (found := self._load(name)):
                joined = {k: np.concatenate([part[k] for part in found]) for k in found[0]}
                write_atomically(whole, _compressed(_in_order(joined)))
                for file in set(parts) - {whole}:
                    file.unlink(missing_ok=True)
        return f"pairs/{name}.npz"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(exist_ok=True)
        held = os.open(self.folder, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                lock(held, str(self.folder))
            yield
        finally:
            os.close(held)

    def _files(self, name: str) -> list[Path]:
        numbered = sorted(self.folder.glob(f"{name}.*.npz"), key=lambda f: int(f.name.split(".")[1]))
        return [f for f in (self.folder / f"{name}.npz", *numbered) if f.exists()]


def _arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file, allow_pickle=False) as data:
        return dict(data)


def _compressed(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    if wrong := [name for name, array in arrays.items() if np.asarray(array).dtype.hasobject]:
        raise TypeError(f"{wrong[0]} holds Python objects; allowed: arrays of numbers and texts, which need no pickle")
    # Before NumPy 2.1 any option here is taken for an array.
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _in_order(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The table sorted by its pairs, each once, as two columns of small integers: the file is a third smaller."""
    pairs = columns["pairs"]
    order = np.unique(pairs, axis=0, return_index=True)[1]
    least = np.min_scalar_type(int(pairs.max(initial=0)))
    return {k: np.asfortranarray(v[order].astype(least if k == "pairs" else v.dtype)) for k, v in columns.items()}


def write_atomically(path: Path, data: bytes) -> None:
    """Write all of a file, or leave it as it was; ``filename`` of an ``OSError`` says which cannot be written."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and error.errno and error.filename is None:  # of a write that fails
            error.filename = str(path)
        raise


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Nobody else may write into a run's folder meanwhile; the death of the process releases the lock.

    A file system without locks is written to all the same.
    """
    with (folder / "cells" / "lock").open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = file.read(20).strip() or "?"
            raise ScenarioError(f"{folder}: process {other} is at work in it; wait, or choose another --out") from None
        except OSError:  # a file system without locks
            yield
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_locked(folder: Path) -> bool:
    """Whether a run is at work in ``folder``; False where the file system knows no locks."""
    with contextlib.suppress(OSError), (folder / "cells" / "lock").open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def folder_for(given: Path | None, name: str) -> Iterator[Path]:
    """The folder of a run: the given one, or a new ``runs/name-YYYYmmdd-HHMMSS``, with ``-2``, ``-3`` … at its end where that
    is taken. At the end of the ``with`` a new one goes again if nothing was written into it."""
    if given is not None:
        yield given
        return
    above, began = Path("runs"), f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = above / began, 1
    try:
        above.mkdir(exist_ok=True)
        while True:
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
            number += 1
            folder = above / f"{began}-{number}"
    except OSError as error:
        raise _not_writable(folder, error) from None
    try:
        yield folder
    finally:
        for made in (folder, above):
            with contextlib.suppress(OSError):  # it holds something
                made.rmdir()


def _not_writable(folder: Path, error: OSError) -> FedgraphError:
    why = error.strerror or str(error)
    return FedgraphError(f"{folder}: {why}; nothing was started, give --out a folder that can be written")


def require_folder(folder: Path, resume: bool) -> None:
    """Refuse a folder in which a run cannot begin, or where there is nothing to resume; no data are read."""
    mark = folder / "cells" / STORE_MARK
    if folder.exists() and not folder.is_dir():
        option = "--resume" if resume else "--out"
        raise ScenarioError(f"{option} {folder}: a file; allowed: a folder, or a name that does not exist yet")
    if resume and not mark.exists():
        raise ScenarioError(f"--resume {folder}: there is no run to resume here (no cells/{STORE_MARK})")
    if not resume and mark.exists():
        goes_on = f"continue it with --resume {folder}, or choose another folder"
        raise ScenarioError(f"--out {folder}: a run is already there; {goes_on}")


def claim_folder(folder: Path, scenario_text: str, comparable: str, resume: bool) -> None:
    """Make a folder this scenario's, or check that it is.

    The mark is a keyed digest (HMAC-SHA-256) of ``comparable``, which decides the numbers (the scenario but for the runtime,
    and the data). Its random key lies beside it: shown without the folder it says nothing of the data, whoever guesses them.
    """
    require_folder(folder, resume)
    mark = folder / "cells" / STORE_MARK
    kept = mark.read_text(encoding="utf-8", errors="replace").split() if resume else []
    key = kept[0] if len(kept) == 2 else secrets.token_hex(32)
    digest = hmac.new(key.encode(), comparable.encode(), hashlib.sha256).hexdigest()
    if resume and kept != [key, digest]:
        why = f"that run was made with another scenario (see {folder / 'scenario.yaml'}) or on other data"
        raise ScenarioError(f"--resume {folder}: {why}; give the same file, --set options and data, or start a new --out")
    try:
        (folder / "cells").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None
    write_atomically(folder / "scenario.yaml", scenario_text.encode())
    write_atomically(mark, f"{key} {digest}".encode())
    (folder / RESULTS_FILE).unlink(missing_ok=True)  # from now on the cells are what there is


def disclaim_folder(folder: Path) -> None:
    """Take back the claim of a run that was refused before its first cell; a folder with anything of a cell stays as it is."""
    own = [folder / "cells" / name for name in (STORE_MARK, "lock")]
    if set((folder / "cells").iterdir()) - set(own):
        return
    for file in (*own, folder / "scenario.yaml", folder / "environment.json", folder / "report.html"):
        file.unlink(missing_ok=True)
    for made in (folder / "cells", folder):
        if not any(made.iterdir()):
            made.rmdir()
