"""What private training does, told while it runs.

    with fedgraph.recorded() as r:
        train()                       # Opacus, Flower's and FLARE's own filters, or a loop that calls r.batch and r.noised
    print(r.price(delta=1e-5).headline.total.epsilon)

A ``Recording`` counts batches that are drawn from a data set, noised sums of clipped rows, steps without noise, and messages
that a filter noised. ``WATCHED`` names the modules of other libraries that tell it; each is watched from the moment it is
imported, and none is imported here. A library is a function of this file that wraps what the library calls anyway.

**What is counted.** A noised sum belongs to the batches that were drawn since the sum before it, from every pass that is under
way. Its rate is that of the sampler that drew them. A batch that serves two sums loses its amplification, and so does one that
no loader gave. A step of an optimizer that follows no noised sum is a step in clear on what is walked at that moment.
More clipped gradients than rows that were drawn count as all of one row. Noise from a state that was there before is none.

**A process may be killed.** With a folder, each process writes each event down before anything can use what it stands for: a
noised sum before its step, a message before it is sent, gradients before they are computed. So its file holds all that it did,
however it ends. Gradients that neither a noised sum nor a step followed count as used in clear.

This file uses the standard library alone: ``fedgraph price --run`` loads it into interpreters that have no fedgraph.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.abc
import io
import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # programs that are run may have an older Python

Foreign = Any  # an object of a library that is not imported here
MOST_ROWS = 5_000_000  # rows of parts of one data set that are told apart; beyond it all parts count as overlapping
_MOST_VALUES = 50_000_000  # numbers of a data set that are compared by value
_GRAPHS = ("torch_geometric", "dgl")
_LIBRARIES = ("torch", "opacus", "flwr", "nvflare", "lightning", "pytorch_lightning", "accelerate", "transformers")
_OTHERS = (*_LIBRARIES, "contextlib", "functools", "threading")
_NOWHERE = -1  # the pass of gradients that are computed while no data are walked


@dataclass
class _Walk:
    """A pass over a data set that is under way."""

    data: int
    sampling: str  # ``poisson``, ``shuffled``, ``none`` (no amplification) or, in words, what draws rows in another way
    rate: float  # the share of the rows in a batch
    split: bool = False  # whether several batches are parts of one draw
    draws: int = 0  # draws since the last noised sum
    rows: float = 0.0  # rows of these batches; ∞ where nobody could count them
    before: float = 0.0  # the same of the last sum that had a draw
    kinds: set[int] = field(default_factory=set)  # kinds of noised sums that used it


@dataclass
class _Data:
    """A data set, or the part of one that rows were taken from."""

    rows: int | None
    base: int  # data sets with the same base may share rows
    source: Callable[[], Foreign]
    looked: bool = False  # whether it was asked if its columns are standardised


@dataclass
class Recording:
    """What happened between ``__enter__`` and ``__exit__``, in this process.

    Args:
        folder: Where each process writes its record, line by line; None to keep it here.
    """

    folder: str | None = None
    _told: dict[tuple[Foreign, ...], list[int]] = field(default_factory=dict)  # event → its number, how often it happened
    _lines: list[str] = field(default_factory=list)  # what was told and is not written yet
    _file: int | None = None
    _inode: int = 0
    _walks: dict[int, _Walk] = field(default_factory=dict)
    # Passes whose gradients neither a noised sum nor a step used yet → the data, and where they were computed.
    _gradients: dict[int, tuple[int | None, str]] = field(default_factory=dict)
    _beside: dict[int, tuple[int | None, str]] = field(default_factory=dict)  # those that no optimizer of Opacus clips
    _plain: int = 0  # backward passes to clipped parameters that Opacus did not call
    _loaded: int = 0  # states that modules took
    _data: list[_Data] = field(default_factory=list)
    _known: dict[Foreign, int] = field(default_factory=dict)
    _kept: list[Foreign] = field(default_factory=list)
    _files: dict[str, set[str]] = field(default_factory=dict)  # files of weights that were read → the names in them
    _saved: set[Hashable] = field(default_factory=set)  # files and streams that this run wrote, as it left them
    _owned: dict[int, int] = field(default_factory=dict)  # id of an optimizer → the data that its engine was given
    # Optimizers whose next step follows a noised sum → its parameters, with the gradients that were noised.
    _granted: weakref.WeakKeyDictionary[Foreign, Foreign] = field(default_factory=weakref.WeakKeyDictionary)
    _undo: list[Callable[[], object]] = field(default_factory=list)
    _lock: Foreign = field(default_factory=threading.RLock, repr=False)

    # What adapters and loops of one's own tell.

    def batch(self, data: object, *, rate: float = 1.0, sampling: str = "poisson", rows: int | None = None) -> None:
        """A batch was drawn; it serves the next noised sum.

        Args:
            data: The data set, by identity.
            rate: The share of the rows in a batch, in (0, 1].
            sampling: ``poisson`` (each row by its own coin), ``fixed`` (drawn afresh, without replacement), ``shuffled`` (each
                row in one batch of a pass; call ``new_pass`` between passes), or ``none`` (every row may be in it).
            rows: The length of the data set, where ``len`` does not tell.

        Raises:
            ValueError: The rate or the sampling is none of these.
        """
        if not 0 < rate <= 1 or sampling not in ("poisson", "fixed", "shuffled", "none"):
            raise ValueError(
                f"rate {rate}, sampling {sampling!r}: a rate lies in (0, 1], sampling is poisson, fixed, shuffled or none"
            )
        with self._lock:
            index, walk = self._index(data, rows), self._walks.get(0)
            if walk is None or (walk.data, walk.sampling, walk.rate) != (index, sampling, rate):
                walk = self._walks[0] = _Walk(index, sampling, rate)
            walk.draws, walk.rows = walk.draws + 1, float("inf")

    def new_pass(self) -> None:
        """Passes of ``batch`` end here: the next batch begins another one."""
        self._finished(0)

    def noised(self, noise_multiplier: float, clip: float = 1.0, by: str = "own loop") -> None:
        """One sum of the clipped rows of the last batch is noised; call it before the sum is used.

        Args:
            noise_multiplier: Standard deviation of the noise over the clip; 0 or more.
            clip: The largest norm of one row's contribution.
            by: Who added the noise.
        """
        self._noised(noise_multiplier, clip, by, None)

    def clear(self, data: object = None) -> None:
        """A step without noise uses ``data``; None for the data that are walked at this moment."""
        with self._lock:
            walked = [walk.data for walk in self._walks.values()]
            self._in_clear([self._index(data)] if data is not None else walked or [None])

    def message(self, by: str, who: str, viewer: str, noise: float = 0.0, epsilon: float = 0.0) -> None:
        """A filter noised one message of a client, or a server one mean over clients; call it before that is sent.

        Args:
            by: The filter.
            who: The client; or a name for all of them.
            viewer: ``server`` for who sees the message, ``models`` for who sees the mean.
            noise: Standard deviation over how far one client moves it; 0 where ``epsilon`` says it.
            epsilon: The pure ε of the message.

        Raises:
            ValueError: The viewer is none of these.
        """
        if viewer not in ("server", "models"):
            raise ValueError(f"viewer {viewer!r}: allowed: server, models")
        self._happened("message", by=by, who=who, viewer=viewer, noise=float(noise), epsilon=float(epsilon))

    def claim(self, epsilon: float, delta: float, words: str) -> None:
        """The program or its library stated an ε."""
        self._happened("claim", epsilon=float(epsilon), delta=float(delta), words=words)

    def record(self) -> Record:
        """What was recorded until now."""
        with self._lock:
            events = [SimpleNamespace(event=key[0], number=number, count=times, **dict(key[1:]))
                      for key, (number, times) in self._told.items()]  # fmt: skip
            return Record(events, list(self._gradients.values()))

    def __enter__(self) -> Self:
        finder = _Finder(self, dict(WATCHED))
        sys.meta_path.insert(0, finder)
        self._undo.append(lambda: sys.meta_path.remove(finder))
        for name in [name for name in finder.pending if name in sys.modules]:
            finder.found(name)
        if self.folder is not None:
            os.register_at_fork(after_in_child=self._forked)
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    # Inside: what a record is made of.

    def _tell(self, event: str, **fields: Hashable) -> int:
        """One event; ``_write`` makes it last. Gives its number."""
        key = (event, *fields.items())
        if (held := self._told.get(key)) is None:
            held = self._told[key] = [len(self._told), 0]
            self._lines.append(json.dumps({"number": held[0], "event": event, **fields}))
        else:
            self._lines.append(str(held[0]))
        held[1] += 1
        return held[0]

    def _happened(self, event: str, **fields: Hashable) -> None:
        with self._lock:
            self._tell(event, **fields)
            self._write()

    def _write(self) -> None:
        """Hands what was told to the system, which keeps it when this process is killed. Who cannot write does no more."""
        lines, self._lines = self._lines, []
        if self.folder is None or not lines:
            return
        try:
            if self._file is None:  # a number of a process may be given out again
                path = os.path.join(self.folder, f"{os.getpid()}-{time.time_ns()}.jsonl")
                self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
                self._inode = os.fstat(self._file).st_ino
                fcntl.flock(self._file, fcntl.LOCK_EX)  # held as long as this process lives
            elif (held := os.fstat(self._file)).st_ino != self._inode or not held.st_nlink:
                raise OSError("the program closed or removed it")
            left = ("\n".join(lines) + "\n").encode()
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            if not os.path.isdir(self.folder):  # the command has ended, and this process went on
                self.folder = None
                return
            os.write(2, f"fedgraph: the record of this run cannot be written ({error}); process {os.getpid()} ends\n".encode())
            os._exit(74)

    def _forked(self) -> None:
        """A child counts for itself, and knows the data of its parent."""
        if self._file is not None:
            os.close(self._file)
        kept = [key for key in self._told if key[0] in ("data", "graph", "standardised", "weights")]
        self._lock, self._file = threading.RLock(), None
        for held in (self._told, self._lines, self._walks, self._gradients, self._beside):
            held.clear()
        for key in kept:
            self._tell(key[0], **dict(key[1:]))

    def _index(self, data: Foreign, rows: int | None = None) -> int:
        """The place of a data set in ``_data``; parts of one data set share their base."""
        if (found := self._known.get(id(data))) is not None:
            return found
        base, indices = data, None
        while type(base).__name__ == "Subset" and hasattr(base, "indices"):
            own = [int(i) for i in base.indices]
            indices = own if indices is None else [own[i] for i in indices]
            base = base.dataset
        key = (_content(base) or id(base), None if indices is None else frozenset(indices))
        if key not in self._known:
            known = [index for name, index in self._known.items() if isinstance(name, tuple) and name[0] == key[0]]
            try:
                rows = len(data) if rows is None else rows
            except TypeError:
                rows = None
            label = type(base).__name__ if indices is None else f"part of {type(base).__name__}"
            index = self._known[key] = len(self._data)
            self._data.append(_Data(rows, self._data[known[0]].base if known else index, _reference(base)))
            if not isinstance(key[0], bytes):  # values outlive the object that holds them
                self._remember(base, key)
            listed = tuple(sorted(key[1])) if key[1] is not None and len(key[1]) <= MOST_ROWS else None
            name = f"{label} of {rows:,} rows" if rows is not None else label
            self._tell("data", data=index, name=name, rows=rows, base=self._data[index].base, indices=listed)
        self._known[id(data)] = self._known[key]
        self._remember(data, id(data))
        return self._known[key]

    def _remember(self, data: Foreign, key: object) -> None:
        """``key`` names ``data`` as long as it lives: the memory of a dead one may become another one's."""
        try:
            weakref.finalize(data, self._known.pop, key, None).atexit = False
        except TypeError:
            self._kept.append(data)

    def _noised(self, noise: float, clip: float, by: str, owned: int | None, clipped: float | None = None) -> None:
        """clipped: rows whose gradients are in the sum, where the library that tells it knows them."""
        with self._lock:
            if clipped is not None:
                for index, where in dict.fromkeys(self._beside.values()):
                    self._tell("clear", data=index, where=where)
            self._beside.clear()
            walks = list(self._walks.values())
            if not walks and owned is None:
                owned = self._index(_UNSEEN, 0)
            if owned is not None and owned not in {walk.data for walk in walks}:  # rows that no loader gave
                walks.append(_Walk(owned, "none", 1.0, draws=1, rows=float(self._data[owned].rows or "inf")))
            self._gradients.clear()
            beyond = (clipped or 0) - sum(walk.rows if walk.draws else walk.before for walk in walks)
            if beyond > 0:  # one row may have all of these gradients, and be in any sum
                noise, by = noise / (1 + beyond), f"{by} (more gradients than rows that were drawn)"
                for walk in walks:
                    self._tell("reused", data=walk.data)
            fresh: dict[int, list[_Walk]] = {}
            for walk in walks:
                if walk.draws:
                    fresh.setdefault(self._data[walk.data].base, []).append(walk)
            for several in fresh.values():
                if len(several) > 1:  # one row may be in a batch of each, and moves the sum so many times as far
                    alike = len({(w.data, w.sampling, w.rate) for w in several}) == 1 and several[0].sampling == "poisson"
                    one, times = replace(several[0], draws=sum(w.draws for w in several)), 1 if alike else len(several)
                    kind = self._counted(one, noise / times, clip, "poisson" if alike else "none", by)
                    for walk in several:
                        walk.kinds.add(kind)
            for walk in walks:
                if not walk.draws:  # a batch of before: all sums of these rows lose what they gain by sampling
                    self._counted(walk, noise, clip, walk.sampling, by)
                    self._tell("reused", data=walk.data)
                elif len(fresh[self._data[walk.data].base]) == 1:
                    walk.kinds.add(self._counted(walk, noise, clip, walk.sampling, by))
                walk.before = walk.rows if walk.draws else walk.before
                walk.draws, walk.rows = 0, 0.0
            self._write()

    def _counted(self, walk: _Walk, noise: float, clip: float, sampling: str, by: str) -> int:
        """One more sum of a kind. Gives the number of the kind."""
        data = self._data[walk.data]
        if not data.looked and _standardised(data.source()):
            self._tell("standardised", data=walk.data)
        data.looked = True
        kind = self._tell("sum", data=walk.data, noise=float(noise), clip=float(clip), sampling=sampling, rate=walk.rate,
                          draws=max(walk.draws, 1), by=by, where=_where())  # fmt: skip
        if kind not in walk.kinds:
            self._tell("passes", of=kind, more=1)
        return kind

    def _in_clear(self, used: Iterable[int | None], where: str = "") -> None:
        """A step without noise on these data; None for data that no loader gave."""
        self._gradients.clear()
        self._beside.clear()
        for index in dict.fromkeys(used):
            self._tell("clear", data=index, where=where or _where())
        self._write()

    def _backward(self, beside: bool = False) -> None:
        """Gradients are to be computed; without a noised sum or a step after them, somebody else used them.

        beside: whether some are of no parameter that Opacus clips, so that its noised sum does not use them either.
        """
        with self._lock:
            for key in self._walks or (_NOWHERE,):
                if beside:
                    self._beside.setdefault(key, (self._walks[key].data if self._walks else None, _where()))
                if key not in self._gradients:
                    self._gradients[key] = self._walks[key].data if self._walks else None, _where()
                    self._tell("gradients", data=self._gradients[key][0], where=self._gradients[key][1])
            self._write()

    def _finished(self, key: int) -> None:
        with self._lock:
            walk = self._walks.pop(key, None)
            if key in self._gradients:
                index, where = self._gradients[key]
                self._in_clear([index], where)
            for kind in walk.kinds if walk is not None and walk.draws and walk.sampling == "shuffled" else ():
                # A batch that no sum used yet may be in the first sum of the next pass, beside another one: four for two.
                self._tell("passes", of=kind, more=2)

    def _wrap(self, owner: Foreign, name: str, told: Callable[..., Foreign]) -> None:
        """``owner.name(…)`` becomes ``told(the original, …)`` until the recording ends."""
        before = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
        inner = before.__func__ if isinstance(before, (staticmethod, classmethod)) else before

        @functools.wraps(inner)
        def wrapped(*args: Foreign, **options: Foreign) -> Foreign:
            return told(inner, *args, **options)

        setattr(owner, name, wrapped)
        self._undo.append(lambda: setattr(owner, name, before))


@dataclass
class Record:
    """What one process did."""

    events: Sequence[Foreign] = ()  # each with the fields that were told of it, its ``number``, and ``count``: how often
    unused: Iterable[tuple[int | None, str]] = ()  # gradients that nothing used in sight: the data, and where
    doubt: str = ""  # why more may have happened than is known; empty where nothing says so


class DataThatNoLoaderGave:
    """The rows of sums before which no batch was drawn."""


_UNSEEN = DataThatNoLoaderGave()


def _content(data: Foreign) -> Hashable:
    """What tells the tensors of a data set from others: their values, or where they are very many, their places in memory."""
    tensors = getattr(data, "tensors", None)
    if not isinstance(tensors, tuple) or not tensors:
        return ()
    if sum(t.numel() for t in tensors) > _MOST_VALUES or any(t.device.type != "cpu" for t in tensors):
        return tuple(t.data_ptr() for t in tensors)
    digest = hashlib.blake2b()
    for t in tensors:
        digest.update(f"{tuple(t.shape)}{t.dtype}".encode())
        digest.update(t.detach().contiguous().reshape(-1).view(sys.modules["torch"].uint8).numpy().tobytes())
    return digest.digest()


def _reference(data: Foreign) -> Callable[[], Foreign]:
    try:
        return weakref.ref(data)
    except TypeError:
        return lambda: data


def _standardised(data: Foreign) -> bool:
    """Whether a table of a data set is scaled by its own rows; one that cannot be computed with is not looked at."""
    held = getattr(data, "tensors", None) or (data, *getattr(data, "__dict__", {}).values())
    tables = [table.to_numpy() if hasattr(table, "to_numpy") else table for table in held]
    try:
        return any(
            _scaled(t) for t in tables if len(getattr(t, "shape", ())) > 1 and t.shape[0] > 7 and "float" in str(t.dtype)
        )
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return False


def _scaled(table: Foreign) -> bool:
    """Whether all of it, or nearly all columns, have mean 0 and deviation 1; or columns the ends 0 (or −1) and 1.

    Answers of yes and no, and whole parts of 255, have such ends of their own accord. That a mean is 0 to 5·10⁻⁵ happens to
    rows of their own accord in one of some thousand tables; it is asked then for nothing.
    """
    if abs(float(table.mean())) < 1e-5 and abs(float(table.std()) - 1) < max(1e-4, 1 / len(table.reshape(-1))):
        return True
    columns = table.reshape(len(table), -1)[:, :64]
    columns = columns.double() if hasattr(columns, "double") else columns.astype("float64")
    mean, spread, steps = columns.mean(0), columns.std(0), columns * 255
    low, high = (getattr(columns, "amin", columns.min)(0), getattr(columns, "amax", columns.max)(0))
    own = (high == 1) & ((low == 0) | (low == -1)) & ~(abs(steps - steps.round()) < 1e-4).all(0)
    varied = spread > 1e-6
    like = ((abs(mean) < 5e-5) & (abs(spread - 1) < max(2e-3, 1 / len(table)))) | own
    return int(varied.sum()) > 0 and int((like & varied).sum()) >= 0.9 * int(varied.sum())


@functools.cache
def _shown(file: str) -> str:
    """A path below this folder, or a name alone."""
    below = os.path.relpath(file) if os.path.isabs(file) else file
    return os.path.basename(file) if below.startswith("..") else below


def _caller(beyond: Sequence[str]) -> Foreign:
    """The frame of the nearest caller that is neither of this file nor of these libraries; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__ and _library(frame.f_globals.get("__name__", "")) not in beyond:
            return frame
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _library(module: object) -> str:
    return str(module).partition(".")[0]


def _where() -> str:
    """File and line of the nearest caller that is part of no library."""
    frame = _caller(_OTHERS)
    return "?" if frame is None else f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def _of_opacus() -> bool:
    """Whether the nearest caller beyond torch is Opacus."""
    frame = _caller(("torch", "contextlib", "functools"))
    return frame is not None and _library(frame.f_globals.get("__name__", "")) == "opacus"


class _Finder(importlib.abc.MetaPathFinder):
    """Hands a module to its adapter as soon as it is imported."""

    def __init__(self, recording: Recording, pending: dict[str, Callable[[Recording, Foreign], None]]) -> None:
        self.recording, self.pending, self.busy = recording, pending, set[str]()

    def found(self, name: str) -> None:
        try:
            self.pending.pop(name)(self.recording, sys.modules[name])
        except (AttributeError, KeyError) as error:
            message = f"fedgraph cannot watch this version of {name} ({error}); what it does would not be counted"
            raise RuntimeError(message) from error

    def find_spec(self, name: str, path: Sequence[str] | None, target: Foreign = None) -> Foreign:
        if name not in self.pending or name in self.busy:
            return None
        self.busy.add(name)
        try:
            specs = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if hasattr(finder, "find_spec"))
            spec = next((s for s in specs if s is not None), None)
        finally:
            self.busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        loader, run = spec.loader, spec.loader.exec_module

        def exec_module(module: Foreign) -> None:
            run(module)
            if name in self.pending and self in sys.meta_path:
                self.found(name)

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class _Pass:
    """The iterator of a loader, which tells what it draws."""

    def __init__(self, recording: Recording, loader: Foreign, inner: Iterator[Foreign]) -> None:
        self._recording, self._inner, self._key = recording, inner, id(self)
        self._walk = _walk(recording, loader)
        weakref.finalize(self, recording._finished, self._key).atexit = False

    def __iter__(self) -> _Pass:
        return self

    def __len__(self) -> int:
        return len(self._inner)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._inner, name)

    def __next__(self) -> Foreign:
        try:
            batch = next(self._inner)
        except StopIteration:
            self._recording._finished(self._key)
            raise
        with self._recording._lock:
            self._recording._walks[self._key] = self._walk
            self._walk.rows += _rows(batch)
            self._walk.draws = 1 if self._walk.split else self._walk.draws + 1
        return batch


def _rows(batch: Foreign) -> float:
    """The rows of a batch: the length of its first table; ∞ where it has none."""
    if shape := getattr(batch, "shape", ()):
        return float(shape[0])
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    return next((n for part in parts if (n := _rows(part)) < float("inf")), float("inf"))


def _walk(recording: Recording, loader: Foreign) -> _Walk:
    """Which rows a loader of torch draws, and how."""
    data = recording._index(loader.dataset)
    if _library(type(loader).__module__) in _GRAPHS:
        recording._tell("graph", data=data, why=f"{type(loader).__name__} puts neighbours into a batch")
    sampler = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
    split = type(sampler).__name__ == "BatchSplittingSampler"
    sampler = sampler.sampler if split else sampler
    if type(sampler).__name__.endswith("UniformWithReplacementSampler") and type(sampler).__module__.startswith("opacus."):
        return _Walk(data, "poisson", float(sampler.sample_rate), split)
    inner = getattr(sampler, "sampler", sampler)
    name, rows = type(inner).__name__, recording._data[data].rows
    size = getattr(sampler, "batch_size", None) or 1
    once = name in ("SequentialSampler", "SubsetRandomSampler", "DistributedSampler") or (
        name == "RandomSampler" and not inner.replacement and inner.num_samples <= (rows or 0)
    )
    ours = type(inner).__module__.startswith("torch.") and type(sampler).__module__.startswith("torch.")
    if once and ours and rows:
        return _Walk(data, "shuffled", min(1.0, size / rows), split)
    return _Walk(data, f"{name}, which may draw a row any number of times", 1.0, split)


def _own_name(name: object) -> str:
    return str(name).removeprefix("_module.").removeprefix("module.")


def _watch_torch(recording: Recording, torch: Foreign) -> None:
    """Loaders that are walked, gradients, optimizers that step, and files that weights come from."""

    def save(original: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        original(*args, **options)
        recording._saved.add(_left(options["f"] if "f" in options else args[1]))

    def load(original: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        file = options["f"] if "f" in options else args[0]
        ours = _left(file) in recording._saved - {None}  # of what was recorded, or read from files before
        made = original(*args, **options)
        if ours:
            return made
        path = str(file) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "a file"))
        if isinstance(made, torch.nn.Module):
            recording._happened("weights", file=path)
        elif keys := _names(made, torch.Tensor):
            recording._files.setdefault(path, set()).update(keys)
        return made

    def take(original: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        state = options["state_dict"] if "state_dict" in options else args[1]
        names, recording._loaded = set(map(_own_name, state)), recording._loaded + 1
        for path in [path for path, keys in recording._files.items() if keys & names]:
            recording._happened("weights", file=path)
        return original(*args, **options)

    def backward(original: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        held = options.get("inputs") or _leaves(args[0] if args else options.get("tensors"))
        clipped = [hasattr(p, "summed_grad") for p in ([held] if hasattr(held, "shape") else held)]
        recording._backward(not all(clipped))
        recording._plain += any(clipped) and not _of_opacus()
        recording._granted.clear()  # these gradients are added to those that are noised
        return original(*args, **options)

    def grad(original: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        recording._backward(not _of_opacus())
        return original(*args, **options)

    def noised(optimizer: Foreign) -> bool:
        held = recording._granted.get(optimizer)
        return held is not None and all(p.grad is g and g._version <= most for p, g, most in held)

    def steps(optimizer: Foreign, args: Foreign, options: Foreign) -> None:
        if not noised(optimizer):  # whose gradients may come from elsewhere, and count from here on
            recording._backward()

    def stepped(optimizer: Foreign, args: Foreign, options: Foreign) -> None:
        if not noised(optimizer):
            recording.clear()
        recording._granted.pop(optimizer, None)

    optimizers = sys.modules["torch.optim.optimizer"]
    recording._undo.append(optimizers.register_optimizer_step_pre_hook(steps).remove)
    recording._undo.append(optimizers.register_optimizer_step_post_hook(stepped).remove)
    recording._wrap(torch.utils.data.DataLoader, "__iter__", lambda walked, loader: _Pass(recording, loader, walked(loader)))
    recording._wrap(torch.autograd, "backward", backward)
    recording._wrap(torch.autograd, "grad", grad)
    recording._wrap(sys.modules["torch.autograd.forward_ad"], "make_dual", grad)
    recording._wrap(torch, "save", save)
    recording._wrap(torch, "load", load)
    recording._wrap(torch.nn.Module, "load_state_dict", take)


def _left(file: Foreign) -> Hashable:
    """A path, or a stream in memory, with what changes where it is written anew; None for anything else."""
    if isinstance(file, (str, os.PathLike)) and os.path.exists(file):
        held = os.stat(file)
        return os.path.abspath(file), held.st_ino, held.st_size, held.st_mtime_ns
    return hashlib.blake2b(file.getbuffer()).digest() if isinstance(file, io.BytesIO) else None


def _leaves(roots: Foreign) -> list[Foreign]:
    """The tensors that gradients of ``roots`` are added up in."""
    roots = [roots] if hasattr(roots, "shape") or not isinstance(roots, Iterable) else list(roots)
    found = [root for root in roots if getattr(root, "grad_fn", None) is None and hasattr(root, "shape")]
    nodes = [node for root in roots if (node := getattr(root, "grad_fn", None) or getattr(root, "node", None)) is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if (leaf := getattr(node, "variable", None)) is not None:
            found.append(getattr(leaf, "orig_weight", leaf))  # of torch's expanded weights
        more = {one for one, _ in node.next_functions if one is not None} - seen
        seen |= more
        nodes += more
    return found


def _names(made: Foreign, tensor: type, depth: int = 3) -> set[str]:
    """The names of tensors in mappings of a loaded file: those of a model's weights."""
    if not isinstance(made, Mapping) or depth == 0:
        return set()
    own = {_own_name(name) for name, held in made.items() if isinstance(held, tensor)}
    return own.union(*(_names(held, tensor, depth - 1) for held in made.values()))


def _watch_safetensors(recording: Recording, library: Foreign) -> None:
    def load_file(original: Foreign, filename: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        made = original(filename, *args, **options)
        recording._files.setdefault(str(filename), set()).update(map(str, made))
        return made

    recording._wrap(library, "load_file", load_file)


def _size(torch: Foreign, held: Sequence[Foreign]) -> list[float]:
    """The squared norm of each tensor."""
    with torch.no_grad():
        return [float(n) for n in torch.stack([p.detach().float().square().sum().to(held[0].device) for p in held]).cpu()]


def _fresh(torch: Foreign, optimizer: Foreign, seen: set[bytes]) -> bool:
    """Whether the noise that is drawn next was never drawn before: noise that comes again is subtracted."""
    device = optimizer.params[0].device if optimizer.params else torch.device("cpu")
    coins = getattr(optimizer, "generator", None)
    if coins is None and device.type in ("cpu", "cuda"):
        coins = torch.default_generator if device.type == "cpu" else torch.cuda.default_generators[device.index]
    if coins is None or getattr(optimizer, "secure_mode", False):
        return True
    digest = hashlib.blake2b(coins.get_state().cpu().numpy().tobytes(), digest_size=16).digest()
    known = digest in seen
    seen.add(digest)
    return not known


def _watch_opacus(recording: Recording, opacus: Foreign) -> None:
    """Every noised sum, what an engine was given, and what it states."""
    engine, inside = opacus.PrivacyEngine, threading.local()
    generator, torch = sys.modules["opacus.optimizers.optimizer"], sys.modules["torch"]
    version = f"Opacus {getattr(opacus, '__version__', '?')}"
    clips = weakref.WeakKeyDictionary[Foreign, list[tuple[float, float]]]()  # (clip, rows) of what is in the sum so far
    ghosts: dict[int, tuple[float, float, int]] = {}  # id of a parameter → (clip, rows) of its gradient, and when
    seen, sizes = set[bytes](), dict[int, tuple[Foreign, Foreign, int]]()

    def clip_and_accumulate(original: Foreign, optimizer: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        if optimizer.params and getattr(optimizer.params[0], "grad_sample", None) is not None:
            most = [float(clip) for clip in getattr(optimizer, "max_grad_norms", None) or [optimizer.max_grad_norm]]
            rows = len(optimizer._get_flat_grad_sample(optimizer.params[0]))
            clips.setdefault(optimizer, []).append((sum(clip * clip for clip in most) ** 0.5, rows))
        return original(optimizer, *args, **options)

    def get_clipping_coef(original: Foreign, module: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        made = original(module, *args, **options)
        one = float(module.max_grad_norm), len(made), recording._plain
        ghosts.update({id(p): one for p in module.parameters() if p.requires_grad})
        return made

    def accumulate(original: Foreign, optimizer: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        for clip, rows, when in {ghosts.pop(id(p), (float("inf"), 0.0, -1)) for p in optimizer.params}:
            # A plain backward, before or after, adds gradients that nothing clips.
            clips.setdefault(optimizer, []).append((clip if when == recording._plain else float("inf"), rows))
        return original(optimizer, *args, **options)

    def stepped(optimizer: Foreign, args: Foreign, options: Foreign) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if held and hasattr(held[0], "summed_grad"):
            sizes[id(held[0])] = weakref.ref(held[0]), _size(torch, held), recording._loaded

    def moved(held: Sequence[Foreign]) -> bool:
        """Whether something else changed the parameters since the last step of an optimizer, other than a state they took."""
        who, size, loaded = sizes.get(id(held[0]) if held else 0, (lambda: None, None, 0))
        return bool(held) and who() is held[0] and loaded == recording._loaded and size != _size(torch, held)

    def add_noise(original: Foreign, optimizer: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        outer, inside.noise = not getattr(inside, "noise", False), True
        fresh = not outer or _fresh(torch, optimizer, seen)
        if outer and moved(optimizer.params):
            recording.clear()
        try:
            spread = getattr(optimizer, "unclipped_num_std", None)
            noise = float(optimizer.noise_multiplier)
            made = original(optimizer, *args, **options)
        finally:
            inside.noise = not outer
        theirs = type(optimizer).clip_and_accumulate.__module__, generator._generate_noise.__module__
        held = [p for p in getattr(optimizer, "params", ()) if getattr(p, "summed_grad", None) is not None]
        added = noise == 0 or any(not torch.equal(p.grad.view_as(p.summed_grad), p.summed_grad) for p in held)
        most = max((clip for clip, _ in clips.get(optimizer, ())), default=0.0)
        if outer and added and fresh and most < float("inf") and all(module.startswith("opacus.") for module in theirs):
            if spread:  # a noised count of unclipped rows is released beside the sum
                noise /= (1 + 0.75 * (noise / float(spread)) ** 2) ** 0.5
            clip, rows = float(optimizer.max_grad_norm), sum(n for _, n in clips.get(optimizer, ()))
            noise *= min(1.0, clip / most) if most else 1.0  # the clip may have been another one when rows were clipped
            if getattr(optimizer, "rank", 0) == 0:
                recording._noised(noise, clip, version, recording._owned.get(id(optimizer)), rows)
            more = 3 if hasattr(optimizer, "rank") else 1  # Opacus divides a gradient by its batch, and adds up over ranks
            recording._granted[optimizer.original_optimizer] = [(p, p.grad, p.grad._version + more) for p in held]
        if outer:
            clips.pop(optimizer, None)
        return made

    def make_private(original: Foreign, self: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        made = original(self, *args, **options)
        loader, module = options.get("data_loader"), options.get("module")
        if loader is not None:
            index = recording._index(loader.dataset)
            _walk(recording, loader)
            for layer in module.modules() if module is not None else ():
                if _library(type(layer).__module__) in _GRAPHS:
                    recording._tell("graph", data=index, why=f"{type(layer).__name__} mixes the rows of a batch")
                if path := getattr(getattr(layer, "config", None), "_name_or_path", ""):
                    recording._happened("weights", file=str(path))
            for part in made:
                if hasattr(part, "original_optimizer"):
                    recording._owned[id(part)] = index
                    weakref.finalize(part, recording._owned.pop, id(part), None).atexit = False
        return made

    def make_private_with_epsilon(original: Foreign, self: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
        words = f"target_epsilon of make_private_with_epsilon for {options.get('epochs')} epochs"
        recording.claim(options["target_epsilon"], options["target_delta"], words)
        return original(self, *args, **options)

    def get_epsilon(original: Foreign, self: Foreign, delta: float, *args: Foreign, **options: Foreign) -> Foreign:
        found = original(self, delta, *args, **options)
        recording.claim(found, delta, "PrivacyEngine.get_epsilon, the largest")
        return found

    for held in vars(opacus.optimizers).values():
        for told in (add_noise, clip_and_accumulate, accumulate):
            if isinstance(held, type) and told.__name__ in vars(held):
                recording._wrap(held, told.__name__, told)
    ghost = sys.modules.get("opacus.grad_sample.grad_sample_module_fast_gradient_clipping")
    if ghost is not None:
        recording._wrap(ghost.GradSampleModuleFastGradientClipping, "get_clipping_coef", get_clipping_coef)
    recording._undo.append(sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(stepped).remove)
    for asked in (make_private, make_private_with_epsilon, get_epsilon):
        recording._wrap(engine, asked.__name__, asked)


def _watch_local(recording: Recording, module: Foreign) -> None:
    """``LocalDpMod``: the clip and the standard deviation that it really used on one reply."""
    used = threading.local()

    def clip(original: Foreign, one: Foreign, two: Foreign, norm: float, *more: Foreign) -> Foreign:
        used.clip = float(norm)
        return original(one, two, norm, *more)

    def noise(original: Foreign, arrays: Foreign, std: float) -> Foreign:
        used.std = float(std)
        return original(arrays, std)

    def answer(original: Foreign, self: Foreign, message: Foreign, context: Foreign) -> Foreign:
        used.noised = False
        made = original(self, message, context)
        if not used.noised and str(message.metadata.message_type).startswith(("train", "query")):
            recording.message("ClientApp", f"client {getattr(context, 'node_id', '?')}", "server")
        return made

    def call(original: Foreign, self: Foreign, message: Foreign, context: Foreign, call_next: Foreign) -> Foreign:
        used.clip = used.std = None
        made = original(self, message, context, call_next)
        if used.clip and used.std is not None:
            used.noised = True
            who = f"client {getattr(context, 'node_id', '?')}"
            recording.message("LocalDpMod", who, "server", noise=used.std / used.clip)
        return made

    recording._wrap(module, "compute_clip_model_update", clip)
    recording._wrap(module, "add_gaussian_noise_inplace", noise)
    recording._wrap(module.LocalDpMod, "__call__", call)
    recording._wrap(sys.modules["flwr.clientapp.client_app"].ClientApp, "__call__", answer)


def _watch_central(recording: Recording, module: Foreign) -> None:
    """``DifferentialPrivacy…Clipping``: one noised mean a round, and what the heaviest client of it weighs."""

    def aggregate_train(original: Foreign, self: Foreign, server_round: int, replies: Foreign) -> Foreign:
        held = list(replies)
        key = getattr(self.strategy, "weighted_by_key", "num-examples")
        weights = [float(record.get(key, 0.0)) for reply in held if not reply.has_error()
                   for record in reply.content.metric_records.values()]  # fmt: skip
        noise = float(self.noise_multiplier)  # before the round moves the clip
        made = original(self, server_round, held)
        if made[0]:
            share = max(weights) / sum(weights) if weights and sum(weights) > 0 and min(weights) >= 0 else 1.0
            moves = share * float(self.num_sampled_clients)  # in clips over num_sampled_clients
            if (count := getattr(self, "clipped_count_stddev", None)) is not None:
                effective = ((moves / noise) ** 2 + float(count) ** -2) ** -0.5 if noise and count else 0.0
            else:
                effective = noise / moves
            by = f"{type(self).__name__}({type(self.strategy).__name__})"
            recording.message(by, "all clients", "models", noise=effective)
        return made

    for held in vars(module).values():
        if isinstance(held, type) and held.__name__.startswith("DifferentialPrivacy") and "aggregate_train" in vars(held):
            recording._wrap(held, "aggregate_train", aggregate_train)


def _watch_flare(recording: Recording, module: Foreign) -> None:
    """``SVTPrivacy``: what one result cost, by the bound of this package and not by the filter's own count."""

    def process_dxo(original: Foreign, self: Foreign, dxo: Foreign, shareable: Foreign, context: Foreign) -> Foreign:
        size = sum(int(getattr(value, "size", 1)) for value in dxo.data.values())
        made = original(self, dxo, shareable, context)
        spent = svt_epsilon(size, self.fraction, self.epsilon, self.noise_var, self.epsilon_threshold,
                            self.epsilon_query, self.epsilon_release)  # fmt: skip
        who = context.get_identity_name() if context is not None else "a site"
        recording.message("SVTPrivacy", str(who), "server", epsilon=spent)
        return made

    recording._wrap(module.SVTPrivacy, "process_dxo", process_dxo)


def svt_epsilon(
    size: float,  # how many values the result has
    fraction: float,  # the share of them that is sent
    epsilon: float,  # its option of that name: threshold and queries together
    noise_var: float,  # its option of that name: what each value costs that is sent, where ``release`` is None
    first: float | None,  # ``epsilon_threshold``
    second: float | None,  # ``epsilon_query``
    release: float | None,  # ``epsilon_release``
) -> float:
    """The pure ε of one result that passes ``SVTPrivacy`` (``docs/how_deployed_noise_is_priced.md``)."""
    uploads = max(1, -int(-size * fraction // 1))
    one = epsilon / (1 + (2 * uploads) ** (2 / 3)) if second is None else epsilon - second
    one = one if first is None else first
    return one + (epsilon - one) * size / uploads + (release if release is not None else uploads * noise_var)


WATCHED: Mapping[str, Callable[[Recording, Foreign], None]] = {
    "torch": _watch_torch,
    "safetensors.torch": _watch_safetensors,
    "opacus": _watch_opacus,
    "flwr.clientapp.mod.localdp_mod": _watch_local,
    "flwr.serverapp.strategy.dp_fixed_clipping": _watch_central,
    "flwr.serverapp.strategy.dp_adaptive_clipping": _watch_central,
    "nvflare.app_common.filters.svt_privacy": _watch_flare,
}
