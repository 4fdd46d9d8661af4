"""What private training does, told while it runs.

    with fedgraph.recorded() as r:
        train()                       # Opacus, Flower's and FLARE's own filters, or a loop that calls r.batch and r.noised
    print(r.price(delta=1e-5).headline.total.epsilon)

A ``Recording`` counts four things: batches that are drawn from a data set, noised sums of clipped rows, steps without noise,
and messages that a filter noised. ``WATCHED`` names the modules of other libraries that tell it; each is watched from the
moment it is imported, and none is imported here. A library is a function of this file that wraps what the library calls anyway.

**What is counted.** A noised sum belongs to the batches that were drawn since the sum before it, from every pass that is under
way. Its rate is that of the sampler that drew them. A batch that serves two sums loses its amplification, and so does one that
no loader gave. A step of an optimizer that follows no noised sum is a step in clear on what is walked at that moment.

This file uses the standard library alone: ``fedgraph price --run`` loads it into interpreters that have no fedgraph.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.abc
import json
import multiprocessing.util
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # programs that are run may have an older Python

Foreign = Any  # an object of a library that is not imported here
VERSION = 1
_MOST_ROWS = 5_000_000  # rows of parts of one data set that are told apart; beyond it all parts count as overlapping
_MOST_VALUES = 50_000_000  # numbers of a data set that are compared by value
_GRAPHS = ("torch_geometric", "dgl")
_LIBRARIES = ("torch", "opacus", "flwr", "nvflare", "lightning", "pytorch_lightning", "accelerate", "transformers")
_FLUSH = 1.0  # seconds between two records of a process that may be killed


@dataclass
class _Walk:
    """A pass over a data set that is under way."""

    data: int
    sampling: str  # ``poisson``, ``shuffled``, ``none`` (no amplification) or, in words, what draws rows in another way
    rate: float  # the share of the rows in a batch
    split: bool = False  # whether several batches are parts of one draw
    draws: int = 0  # draws since the last noised sum
    kinds: set[tuple[Foreign, ...]] = field(default_factory=set)  # kinds of noised sums that used it
    gradients: int = 0  # backward passes since the last noised sum or step


@dataclass
class _Sums:
    """Noised sums of the same kind."""

    count: int = 0
    passes: int = 0  # passes over the data in which they happened
    reused: bool = False  # whether one batch served several of them


@dataclass
class _Data:
    """A data set, or the part of one that rows were taken from."""

    name: str
    rows: int | None
    base: int  # data sets with the same base may share rows
    indices: frozenset[int] | None  # rows of the base; None for all
    graph: str = ""  # why its rows may be made of other rows
    source: Foreign = None  # a weak reference to it
    standardised: bool | None = None  # whether columns have mean 0 and deviation 1 over these very rows; None: not looked at


@dataclass
class Recording:
    """What happened between ``__enter__`` and ``__exit__``, in this process.

    Args:
        folder: Where each process writes its record as JSON when it ends; None to keep it here.
        watch: Adapters: name of a module → what wraps it once it is imported.
    """

    folder: str | None = None
    watch: Mapping[str, Callable[[Recording, Foreign], Callable[[], None]]] | None = None
    _walks: dict[int, _Walk] = field(default_factory=dict)
    _sums: dict[tuple[Foreign, ...], _Sums] = field(default_factory=dict)
    _clear: dict[tuple[int | None, str], int] = field(default_factory=dict)
    _messages: dict[tuple[Foreign, ...], int] = field(default_factory=dict)
    _data: list[_Data] = field(default_factory=list)
    _known: dict[Foreign, int] = field(default_factory=dict)
    _kept: list[Foreign] = field(default_factory=list)
    _files: dict[str, set[str]] = field(default_factory=dict)
    _weights: dict[str, None] = field(default_factory=dict)
    _claims: dict[tuple[float, float, str], None] = field(default_factory=dict)
    _owned: dict[int, int] = field(default_factory=dict)  # id of an optimizer → the data that its engine was given
    # Optimizers whose next step follows a noised sum → its parameters, with the gradients that were noised.
    _granted: weakref.WeakKeyDictionary[Foreign, Foreign] = field(default_factory=weakref.WeakKeyDictionary)
    _gradients: int = 0  # backward passes since the last noised sum or step, while no data were walked
    _undo: list[Callable[[], None]] = field(default_factory=list)
    _lock: Foreign = field(default_factory=threading.RLock, repr=False)
    _written: float = 0.0
    _began: int = 0

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
            walk.draws += 1

    def new_pass(self) -> None:
        """Passes of ``batch`` end here: the next batch begins another one."""
        self._finished(0)

    def noised(self, noise_multiplier: float, clip: float = 1.0, by: str = "own loop") -> None:
        """One sum of the clipped rows of the last batch was noised.

        Args:
            noise_multiplier: Standard deviation of the noise over the clip; 0 or more.
            clip: The largest norm of one row's contribution.
            by: Who added the noise.
        """
        self._noised(noise_multiplier, clip, by, None)

    def clear(self, data: object = None) -> None:
        """A step without noise used ``data``; None for the data that are walked at this moment."""
        with self._lock:
            walked = [walk.data for walk in self._walks.values()]
            used: Sequence[int | None] = [self._index(data)] if data is not None else walked or [None]
            self._in_clear(used)

    def message(self, by: str, who: str, viewer: str, noise: float = 0.0, epsilon: float = 0.0, said: str = "") -> None:
        """A filter noised one message of a client, or a server one mean over clients.

        Args:
            by: The filter.
            who: The client; or a name for all of them.
            viewer: ``server`` for who sees the message, ``models`` for who sees the mean.
            noise: Standard deviation over how far one client moves it; 0 where ``epsilon`` says it.
            epsilon: The pure ε of the message.
            said: What the filter itself states of one message.
        """
        with self._lock:
            key = by, who, viewer, float(noise), float(epsilon), said
            self._messages[key] = self._messages.get(key, 0) + 1
            self._flush()

    def claim(self, epsilon: float, delta: float, words: str) -> None:
        """The program or its library stated an ε."""
        self._claims[(float(epsilon), float(delta), words)] = None

    # What is made of it.

    def record(self, complete: bool = True) -> dict[str, Foreign]:
        """What was recorded, as JSON holds it (``fedgraph.pricing.readers.record`` reads it)."""
        with self._lock:
            left: list[int | None] = [walk.data for walk in self._walks.values() if walk.gradients]
            if complete and (left or self._gradients):
                self._in_clear(left or [None])
            used = sorted({key[0] for key in self._sums})
            return {
                "fedgraph_record": VERSION,
                "complete": complete,
                "program": [os.path.basename(word) for word in sys.argv[:1]],
                "data": [
                    {"name": d.name, "rows": d.rows, "base": d.base, "graph": d.graph, "standardised": bool(d.standardised)}
                    for d in self._data
                ],
                "cells": self._cells(used),
                "sums": [
                    {"data": data, "noise": noise, "clip": clip, "sampling": "none" if s.reused else sampling, "rate": rate,
                     "draws": draws, "by": by, "where": where, "count": s.count, "passes": s.passes}
                    for (data, noise, clip, sampling, rate, draws, by, where), s in self._sums.items()
                ],
                "clear": [{"data": data, "where": where, "count": n} for (data, where), n in self._clear.items()],
                "messages": [
                    {"by": by, "who": who, "viewer": viewer, "noise": noise, "epsilon": epsilon, "said": said, "count": n}
                    for (by, who, viewer, noise, epsilon, said), n in self._messages.items()
                ],
                "weights": list(self._weights),
                "claims": [{"epsilon": e, "delta": d, "words": w} for e, d, w in self._claims],
            }  # fmt: skip

    def __enter__(self) -> Self:
        finder = _Finder(self, dict(WATCHED if self.watch is None else self.watch))
        sys.meta_path.insert(0, finder)
        self._undo.append(lambda: sys.meta_path.remove(finder))
        for name in [name for name in finder.pending if name in sys.modules]:
            finder.found(name)
        if self.folder is not None:
            atexit.register(self._end)
            os.register_at_fork(after_in_child=self._forked)
            multiprocessing.util.register_after_fork(self, Recording._at_exit_of_child)
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    # Inside.

    def _cells(self, used: list[int]) -> list[list[int]]:
        """The sets of data that one row may be part of, of each base."""
        cells: list[list[int]] = []
        for base in dict.fromkeys(self._data[index].base for index in used):
            parts = [index for index in used if self._data[index].base == base]
            listed = {index: rows for index in parts if (rows := self._data[index].indices) is not None}
            whole = [index for index in parts if index not in listed]
            if not any(listed.values()) or sum(map(len, listed.values())) > _MOST_ROWS:
                cells.append(parts)
                continue
            held: dict[int, list[int]] = {}
            for index, rows in listed.items():
                for row in rows:
                    held.setdefault(row, []).append(index)
            cells += [sorted([*whole, *cell]) for cell in dict.fromkeys(tuple(each) for each in held.values())]
        return cells

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
            name = f"{label} of {rows:,} rows" if rows is not None else label
            self._known[key] = len(self._data)
            self._data.append(_Data(name, rows, self._data[known[0]].base if known else len(self._data), key[1]))
            if not isinstance(key[0], bytes):  # values outlive the object that holds them
                self._remember(base, key)
            self._data[-1].source = _reference(base)
        self._known[id(data)] = self._known[key]
        self._remember(data, id(data))
        return self._known[key]

    def _remember(self, data: Foreign, key: object) -> None:
        """``key`` names ``data`` as long as it lives: the memory of a dead one may become another one's."""
        try:
            weakref.finalize(data, self._known.pop, key, None).atexit = False
        except TypeError:
            self._kept.append(data)

    def _noised(self, noise: float, clip: float, by: str, owned: int | None) -> None:
        with self._lock:
            walks = list(self._walks.values())
            if not walks and owned is None:
                owned = self._index(_UNSEEN, 0)
            if owned is not None and owned not in {walk.data for walk in walks}:  # rows that no loader gave
                walks.append(_Walk(owned, "none", 1.0, draws=1))
            self._forget_gradients()
            fresh: dict[int, list[_Walk]] = {}
            for walk in walks:
                if walk.draws:
                    fresh.setdefault(self._data[walk.data].base, []).append(walk)
            for several in fresh.values():
                if len(several) > 1:  # one row may be in a batch of each, and moves the sum so many times as far
                    alike = len({(w.data, w.sampling, w.rate) for w in several}) == 1 and several[0].sampling == "poisson"
                    one = replace(several[0], draws=sum(w.draws for w in several))
                    key = (
                        self._counted(one, noise, clip, "poisson", by)
                        if alike
                        else self._counted(one, noise / len(several), clip, "none", by)
                    )
                    for walk in several:
                        walk.kinds.add(key)
            for walk in walks:
                if not walk.draws:  # a batch of before: all sums of these rows lose what they gain by sampling
                    self._counted(walk, noise, clip, walk.sampling, by)
                    for other, each in self._sums.items():
                        each.reused |= other[0] == walk.data
                elif len(fresh[self._data[walk.data].base]) == 1:
                    walk.kinds.add(self._counted(walk, noise, clip, walk.sampling, by))
                walk.draws = 0
            self._flush()

    def _counted(self, walk: _Walk, noise: float, clip: float, sampling: str, by: str) -> tuple[Foreign, ...]:
        """One more sum of a kind. Gives the kind."""
        data = self._data[walk.data]
        if data.standardised is None and data.source:
            data.standardised = _standardised(data.source())
        key = (walk.data, float(noise), float(clip), sampling, walk.rate, max(walk.draws, 1), by, _where())
        sums = self._sums.setdefault(key, _Sums())
        sums.count += 1
        sums.passes += key not in walk.kinds
        return key

    def _in_clear(self, used: Sequence[int | None]) -> None:
        """A step without noise on these data; None for data that no loader gave."""
        self._forget_gradients()
        for index in dict.fromkeys(used):
            key = index, _where()
            self._clear[key] = self._clear.get(key, 0) + 1
        self._flush()

    def _forget_gradients(self) -> None:
        """A noised sum or a step used the gradients; what is found of them later is of passes after it."""
        self._gradients = 0
        for walk in self._walks.values():
            walk.gradients = 0

    def _backward(self) -> None:
        with self._lock:
            self._gradients += not self._walks
            for walk in self._walks.values():
                walk.gradients += 1

    def _finished(self, key: int) -> None:
        with self._lock:
            walk = self._walks.pop(key, None)
            if walk is not None and walk.gradients:  # gradients that neither a noised sum nor a step used: somebody did
                self._in_clear([walk.data])
            for kind in walk.kinds if walk is not None and walk.draws and walk.sampling == "shuffled" else ():
                # A batch that no sum used yet may be in the first sum of the next pass, beside another one: four for two.
                self._sums[kind].passes += 2

    def _flush(self) -> None:
        if self.folder is not None and time.monotonic() - self._written > _FLUSH:
            self._write(False)

    def _write(self, complete: bool) -> None:
        self._began = self._began or time.time_ns()  # a number of a process may be given out again
        path = os.path.join(self.folder or ".", f"{os.getpid()}-{self._began}.json")
        with self._lock:
            with open(f"{path}.part", "w", encoding="utf-8") as file:
                json.dump(self.record(complete), file)
            os.replace(f"{path}.part", path)
            self._written = time.monotonic()

    def _end(self) -> None:
        if self._sums or self._clear or self._messages:
            self._write(True)

    def _forked(self) -> None:
        """A child counts for itself."""
        for held in (self._sums, self._clear, self._messages, self._walks):
            held.clear()
        self._written, self._began = 0.0, 0

    def _at_exit_of_child(self) -> None:
        multiprocessing.util.Finalize(self, self._end, exitpriority=0)


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
    """Whether nearly all columns of a table have mean 0 and deviation 1 over these very rows.

    That a mean is 0 to 5·10⁻⁵ happens to rows of their own accord in one of some thousand tables; it is asked then for nothing.
    """
    tables = getattr(data, "tensors", None) or (data,)
    for table in tables:
        if (
            not hasattr(table, "reshape")
            or len(getattr(table, "shape", ())) < 2
            or table.shape[0] < 8
            or "float" not in str(table.dtype)
        ):
            continue
        columns = table.reshape(table.shape[0], -1)[:, :64]
        columns = columns.double() if hasattr(columns, "double") else columns.astype("float64")
        mean, spread = columns.mean(0), columns.std(0)
        varied = spread > 1e-6
        like = (abs(mean) < 5e-5) & (abs(spread - 1) < max(2e-3, 1 / table.shape[0])) & varied
        if int(varied.sum()) and int(like.sum()) >= 0.9 * int(varied.sum()):
            return True
    return False


@functools.cache
def _shown(file: str) -> str:
    """A path below this folder, or a name alone."""
    below = os.path.relpath(file) if os.path.isabs(file) else file
    return os.path.basename(file) if below.startswith("..") else below


def _where() -> str:
    """File and line of the nearest caller that is part of no library."""
    frame = sys._getframe(1)
    here = __file__
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__", "")).split(".")[0], frame.f_code.co_filename
        if file != here and name not in _LIBRARIES and name not in ("contextlib", "functools", "threading"):
            return f"{_shown(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "?"


class _Finder(importlib.abc.MetaPathFinder):
    """Hands a module to its adapter as soon as it is imported."""

    def __init__(self, recording: Recording, pending: dict[str, Callable[[Recording, Foreign], Callable[[], None]]]) -> None:
        self.recording, self.pending, self.busy = recording, pending, set[str]()

    def found(self, name: str) -> None:
        try:
            self.recording._undo.append(self.pending.pop(name)(self.recording, sys.modules[name]))
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


def _wrapped(owner: Foreign, name: str, make: Callable[[Foreign], Foreign]) -> Callable[[], None]:
    """``owner.name`` becomes ``make`` of what it was. Gives back what undoes it."""
    before = vars(owner)[name] if name in vars(owner) else getattr(owner, name)
    inner = before.__func__ if isinstance(before, (staticmethod, classmethod)) else before
    setattr(owner, name, functools.wraps(inner)(make(inner)))
    return lambda: setattr(owner, name, before)


def _together(undo: Sequence[Callable[[], None]]) -> Callable[[], None]:
    def every() -> None:
        for each in undo:
            each()

    return every


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
            self._walk.draws = 1 if self._walk.split else self._walk.draws + 1
        return batch


def _walk(recording: Recording, loader: Foreign) -> _Walk:
    """Which rows a loader of torch draws, and how."""
    data = recording._index(loader.dataset)
    if type(loader).__module__.split(".")[0] in _GRAPHS:
        recording._data[data].graph = f"{type(loader).__name__} puts neighbours into a batch"
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


def _watch_torch(recording: Recording, torch: Foreign) -> Callable[[], None]:
    """Loaders that are walked, optimizers that step, and files that weights come from."""

    def iterate(original: Foreign) -> Foreign:
        return lambda loader: _Pass(recording, loader, original(loader))

    def load(original: Foreign) -> Foreign:
        def loaded(file: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            made = original(file, *args, **options)
            path = str(file) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "a file"))
            if isinstance(made, torch.nn.Module):
                recording._weights[path] = None
            elif keys := _names(made, torch.Tensor):
                recording._files.setdefault(path, set()).update(keys)
            return made

        return loaded

    def take(original: Foreign) -> Foreign:
        def load_state_dict(module: Foreign, state: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            names = {str(name).removeprefix("_module.").removeprefix("module.") for name in state}
            recording._weights.update(dict.fromkeys(path for path, keys in recording._files.items() if keys & names))
            return original(module, state, *args, **options)

        return load_state_dict

    def backward(original: Foreign) -> Foreign:
        def told(*args: Foreign, **options: Foreign) -> Foreign:
            recording._backward()
            return original(*args, **options)

        return told

    def stepped(optimizer: Foreign, args: Foreign, options: Foreign) -> None:
        if (noised := recording._granted.pop(optimizer, None)) is None or any(p.grad is not g for p, g in noised):
            recording.clear()

    handle = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(stepped)
    return _together([
        handle.remove,
        _wrapped(torch.utils.data.DataLoader, "__iter__", iterate),
        _wrapped(torch.autograd, "backward", backward),
        _wrapped(torch.autograd, "grad", backward),
        _wrapped(torch, "load", load),
        _wrapped(torch.nn.Module, "load_state_dict", take),
    ])  # fmt: skip


def _names(made: Foreign, tensor: type, depth: int = 3) -> set[str]:
    """The names of tensors in mappings of a loaded file: those of a model's weights."""
    if not isinstance(made, Mapping) or depth == 0:
        return set()
    own = {
        str(name).removeprefix("_module.").removeprefix("module.") for name, held in made.items() if isinstance(held, tensor)
    }
    return own.union(*(_names(held, tensor, depth - 1) for held in made.values()))


def _watch_safetensors(recording: Recording, library: Foreign) -> Callable[[], None]:
    def load(original: Foreign) -> Foreign:
        def load_file(file: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            made = original(file, *args, **options)
            recording._files.setdefault(str(file), set()).update(map(str, made))
            return made

        return load_file

    return _wrapped(library, "load_file", load)


def _watch_opacus(recording: Recording, opacus: Foreign) -> Callable[[], None]:
    """Every noised sum, what an engine was given, and what it states."""
    from_library = opacus.optimizers
    engine, inside = opacus.PrivacyEngine, threading.local()
    generator = sys.modules["opacus.optimizers.optimizer"]
    torch = sys.modules["torch"]
    version = f"Opacus {getattr(opacus, '__version__', '?')}"

    def make(original: Foreign) -> Foreign:
        def add_noise(optimizer: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            outer, inside.noise = not getattr(inside, "noise", False), True
            try:
                spread = getattr(optimizer, "unclipped_num_std", None)
                noise = float(optimizer.noise_multiplier)
                made = original(optimizer, *args, **options)
            finally:
                inside.noise = not outer
            theirs = type(optimizer).clip_and_accumulate.__module__, generator._generate_noise.__module__
            held = [p for p in getattr(optimizer, "params", ()) if getattr(p, "summed_grad", None) is not None]
            added = noise == 0 or any(not torch.equal(p.grad.view_as(p.summed_grad), p.summed_grad) for p in held)
            if outer and added and all(module.startswith("opacus.") for module in theirs):
                if spread:  # a noised count of unclipped rows is released beside the sum
                    noise /= (1 + 0.75 * (noise / float(spread)) ** 2) ** 0.5
                if getattr(optimizer, "rank", 0) == 0:
                    recording._noised(noise, float(optimizer.max_grad_norm), version, recording._owned.get(id(optimizer)))
                recording._granted[optimizer.original_optimizer] = [(p, p.grad) for p in held]
            return made

        return add_noise

    def private(original: Foreign) -> Foreign:
        def make_private(self: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            made = original(self, *args, **options)
            loader, module = options.get("data_loader"), options.get("module")
            if loader is not None:
                index = recording._index(loader.dataset)
                _walk(recording, loader)
                for layer in module.modules() if module is not None else ():
                    if type(layer).__module__.split(".")[0] in _GRAPHS:
                        recording._data[index].graph = f"{type(layer).__name__} mixes the rows of a batch"
                    if path := getattr(getattr(layer, "config", None), "_name_or_path", ""):
                        recording._weights[str(path)] = None
                for part in made:
                    if hasattr(part, "original_optimizer"):
                        recording._owned[id(part)] = index
                        weakref.finalize(part, recording._owned.pop, id(part), None).atexit = False
            return made

        return make_private

    def aimed(original: Foreign) -> Foreign:
        def make_private_with_epsilon(self: Foreign, *args: Foreign, **options: Foreign) -> Foreign:
            words = f"target_epsilon of make_private_with_epsilon for {options.get('epochs')} epochs"
            recording.claim(options["target_epsilon"], options["target_delta"], words)
            return original(self, *args, **options)

        return make_private_with_epsilon

    def stated(original: Foreign) -> Foreign:
        def get_epsilon(self: Foreign, delta: float, *args: Foreign, **options: Foreign) -> Foreign:
            found = original(self, delta, *args, **options)
            recording._claims = {key: None for key in recording._claims if key[2] != "PrivacyEngine.get_epsilon, the last one"}
            recording.claim(found, delta, "PrivacyEngine.get_epsilon, the last one")
            return found

        return get_epsilon

    classes = [held for held in vars(from_library).values() if isinstance(held, type) and "add_noise" in vars(held)]
    return _together([
        *(_wrapped(held, "add_noise", make) for held in classes),
        _wrapped(engine, "make_private", private),
        _wrapped(engine, "make_private_with_epsilon", aimed),
        _wrapped(engine, "get_epsilon", stated),
    ])  # fmt: skip


def _watch_local(recording: Recording, module: Foreign) -> Callable[[], None]:
    """``LocalDpMod``: the clip and the standard deviation that it really used on one reply."""
    used = threading.local()

    def clip(original: Foreign) -> Foreign:
        def compute_clip_model_update(one: Foreign, two: Foreign, norm: float, *more: Foreign) -> Foreign:
            used.clip = float(norm)
            return original(one, two, norm, *more)

        return compute_clip_model_update

    def noise(original: Foreign) -> Foreign:
        def add_gaussian_noise_inplace(arrays: Foreign, std: float) -> Foreign:
            used.std = float(std)
            return original(arrays, std)

        return add_gaussian_noise_inplace

    def answer(original: Foreign) -> Foreign:
        def reply(self: Foreign, message: Foreign, context: Foreign) -> Foreign:
            used.noised = False
            made = original(self, message, context)
            if not used.noised and str(message.metadata.message_type).startswith(("train", "query")):
                recording.message("ClientApp", f"client {getattr(context, 'node_id', '?')}", "server")
            return made

        return reply

    def call(original: Foreign) -> Foreign:
        def reply(self: Foreign, message: Foreign, context: Foreign, call_next: Foreign) -> Foreign:
            used.clip = used.std = None
            made = original(self, message, context, call_next)
            if used.clip and used.std is not None:
                used.noised = True
                who, said = f"client {getattr(context, 'node_id', '?')}", f"epsilon {self.epsilon:g}, delta {self.delta:g}"
                recording.message("LocalDpMod", who, "server", noise=used.std / used.clip, said=said)
            return made

        return reply

    return _together([
        _wrapped(module, "compute_clip_model_update", clip),
        _wrapped(module, "add_gaussian_noise_inplace", noise),
        _wrapped(module.LocalDpMod, "__call__", call),
        _wrapped(sys.modules["flwr.clientapp.client_app"].ClientApp, "__call__", answer),
    ])  # fmt: skip


def _watch_central(recording: Recording, module: Foreign) -> Callable[[], None]:
    """``DifferentialPrivacy…Clipping``: one noised mean a round, and what the heaviest client of it weighs."""

    def aggregate(original: Foreign) -> Foreign:
        def aggregate_train(self: Foreign, server_round: int, replies: Foreign) -> Foreign:
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

        return aggregate_train

    classes = [held for held in vars(module).values() if isinstance(held, type) and "aggregate_train" in vars(held)]
    ours = [held for held in classes if held.__name__.startswith("DifferentialPrivacy")]
    return _together([_wrapped(held, "aggregate_train", aggregate) for held in ours])


def _watch_flare(recording: Recording, module: Foreign) -> Callable[[], None]:
    """``SVTPrivacy``: what one result cost, by the bound of this package and not by the filter's own count."""

    def process(original: Foreign) -> Foreign:
        def process_dxo(self: Foreign, dxo: Foreign, shareable: Foreign, context: Foreign) -> Foreign:
            sizes = [int(getattr(value, "size", 1)) for value in dxo.data.values()]
            made = original(self, dxo, shareable, context)
            size = sum(sizes)
            spent = svt_epsilon(size, self.fraction, self.epsilon, self.noise_var, self.epsilon_threshold,
                                self.epsilon_query, self.epsilon_release)  # fmt: skip
            who = context.get_identity_name() if context is not None else "a site"
            recording.message("SVTPrivacy", str(who), "server", epsilon=spent, said=f"epsilon {self.epsilon:g}")
            return made

        return process_dxo

    return _wrapped(module.SVTPrivacy, "process_dxo", process)


def svt_epsilon(
    size: float,
    fraction: float,
    epsilon: float,
    noise_var: float,
    first: float | None,
    second: float | None,
    release: float | None,
) -> float:
    """The pure ε of one result that passes ``SVTPrivacy`` (``docs/how_deployed_noise_is_priced.md``).

    Args:
        size: How many values the result has.
        fraction: The share of them that is sent.
        epsilon: Its option of that name: threshold and queries together.
        noise_var: Its option of that name: what each value costs that is sent, where ``release`` is None.
        first: ``epsilon_threshold``, or None.
        second: ``epsilon_query``, or None.
        release: ``epsilon_release``, or None.
    """
    uploads = max(1, -int(-size * fraction // 1))
    one = epsilon / (1 + (2 * uploads) ** (2 / 3)) if second is None else epsilon - second
    one = one if first is None else first
    return one + (epsilon - one) * size / uploads + (release if release is not None else uploads * noise_var)


WATCHED: Mapping[str, Callable[[Recording, Foreign], Callable[[], None]]] = {
    "torch": _watch_torch,
    "safetensors.torch": _watch_safetensors,
    "opacus": _watch_opacus,
    "flwr.clientapp.mod.localdp_mod": _watch_local,
    "flwr.serverapp.strategy.dp_fixed_clipping": _watch_central,
    "flwr.serverapp.strategy.dp_adaptive_clipping": _watch_central,
    "nvflare.app_common.filters.svt_privacy": _watch_flare,
}
