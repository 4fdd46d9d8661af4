"""A network that somebody else wrote: built from its name or from a module in memory, and run on the nodes of a graph.

It is a ``torch.nn.Module`` whose ``forward(x, edge_index)`` gives a row of class scores for each row of ``x``; one whose
forward has no ``edge_index`` gets ``x`` alone. It is always in its evaluation mode, so that dropout does nothing: the noise of
a private training takes its place.

**Loops.** A layer that adds self-loops by a boolean mask has another shape for each graph, which ``torch.func.vmap`` refuses.
Such layers (``add_self_loops`` true: GCN, GAT, APPNP, SGC …) are told not to, and get the loops with their edges. On a graph
without self-loops, as all graphs here are, that is the same network.

**What it holds** beside its weights (``contents``): what its layers keep, and what the code of its classes asks for (closures,
defaults, and the globals that it names), as far as it is not that of an installed package. Every copy of a network shares what
is found there. So a table among it is asked about as weights are; what is another thing after the network was run is a memory
of examples, which no copy takes away; and a class that was edited since is looked at again. What code does beside it (files,
clocks, other processes) is not seen.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import importlib
import inspect
import io
import json
import random
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning.descents import descend_by_adam
from fedgraph.learning.public_training import PublicTrainingSteps
from fedgraph.learning.tensors import torch, torch_device

HELD_NETWORK = "held:"  # before the digest of a module that is in the memory of this process
_INPUTS, _CLASSES = "$inputs", "$classes"  # in arguments: numbers that the data say
_ALLOWED = "allowed: torch_geometric.nn.GCN, or mypackage.nets:Net"  # of names, at the end of errors
_MOST = 4096  # rows that are answered at once, at most
_NOBODY_DREW = 101  # in a tensor of whole numbers, or of true and false, before its layers draw it
_held: dict[str, tuple[torch.nn.Module, dict[str, object]]] = {}  # each with its ``contents`` as it came


@dataclass(frozen=True)
class NetworkSpec:
    """What a network is made from, all of it public."""

    model: str  # dotted name of a class of modules, or ``HELD_NETWORK`` with a digest
    arguments: str  # its keyword arguments, as JSON
    inputs: int  # columns of ``x``
    classes: int  # columns of what it gives
    weights: str = "fresh"  # ``fresh`` (its layers draw them) or ``public`` (those that it came with)

    @property
    def called(self) -> str:
        """Its class in a message; a module in memory has no name that its owner knows."""
        return "the network" if self.model.startswith(HELD_NETWORK) else self.model


def hold(module: torch.nn.Module) -> str:
    """Keeps a module in the memory of this process, and gives the name by which a ``NetworkSpec`` asks for it.

    Modules that print alike and have the same weights may still run other code: each such has a name of its own.
    """
    module = module._modules.get("_orig_mod") or module  # of a network that torch.compile made faster
    buffer = io.BytesIO()
    try:
        torch.save(tensors_of(module), buffer)
        copied = copy.deepcopy(module)
    except Exception as error:  # of torch, or of the network
        raise ScenarioError(
            f"the network cannot be copied ({' '.join(str(error).split())[:200]}); allowed: a module that copy.deepcopy takes, "
            "with torch.nn.utils.parametrizations in the place of hooks that make weights"
        ) from error
    digest = hashlib.sha256(repr(module).encode() + buffer.getvalue()).hexdigest()[:16]
    made_of, name = contents(module), digest
    while name in _held and _held[name][1] != made_of:
        name = f"{digest}-{int(name[17:] or 1) + 1}"
    _held.setdefault(name, (copied, made_of))
    return HELD_NETWORK + name


def require(model: str, arguments: Mapping[str, object]) -> None:
    """Refuses what names no class of modules, or arguments that it does not take.

    Settings are also read from a model's file, which may be a stranger's: so only ``torch_geometric.nn`` is imported here.
    Whether another name is a class of modules is seen when it is built. Raises ``ValueError``: one line that says what is
    allowed.
    """
    if model.startswith(HELD_NETWORK):
        _held_module(model)
        return
    place, _, name = model.replace(":", ".").rpartition(".")
    if not all(part.isidentifier() for part in (*place.split("."), name)):
        raise ValueError(f"model: {model!r} is no dotted name; {_ALLOWED}")
    if place.partition(".")[0] != "torch_geometric":
        return
    made = _class_of(model)
    try:
        inspect.signature(made).bind(**_filled(made, arguments, 1, 1))
    except TypeError as error:
        raise ValueError(f"{model}: {error}; arguments found: {', '.join(arguments) or 'none'}") from None


def _held_module(model: str) -> torch.nn.Module:
    digest = model.removeprefix(HELD_NETWORK)
    if digest not in _held:
        raise ValueError(
            f"{model}: no such module is in the memory of this process; on other workers and in other processes give a network "
            "by its name, as model: mypackage.nets:Net with its arguments"
        )
    return _held[digest][0]


def _class_of(model: str) -> type[torch.nn.Module]:
    place, _, name = model.replace(":", ".").rpartition(".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch_geometric calls deprecated parts of torch
            found = getattr(importlib.import_module(place), name)
    except (Exception, SystemExit) as error:  # of the module, such as a script that reads its arguments
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"model: {model!r} is no class that can be imported ({said}); {_ALLOWED}") from None
    if not (inspect.isclass(found) and issubclass(found, torch.nn.Module)):
        raise ValueError(f"model: {model} is no class of torch modules; {_ALLOWED}")
    return found


def _filled(made: type[torch.nn.Module], arguments: Mapping[str, object], inputs: int, classes: int) -> dict[str, object]:
    """Arguments with the numbers that the data say, where they are asked for."""
    known = inspect.signature(made).parameters
    said = {"in_channels": inputs, "out_channels": classes}
    missing = {} if "channel_list" in arguments else {k: v for k, v in said.items() if k in known and k not in arguments}

    def number(value: object) -> object:
        if isinstance(value, list):
            return [number(one) for one in value]
        return {_INPUTS: inputs, _CLASSES: classes}.get(value, value) if isinstance(value, str) else value

    return {**{key: number(value) for key, value in arguments.items()}, **missing}


def as_it_came(spec: NetworkSpec) -> torch.nn.Module:
    """The network as it came, before it was ever run."""
    if spec.model.startswith(HELD_NETWORK):
        return copy.deepcopy(_held_module(spec.model))
    made = _class_of(spec.model)
    try:
        return made(**_filled(made, json.loads(spec.arguments), spec.inputs, spec.classes))
    except SystemExit as error:
        raise RuntimeError(f"SystemExit: {error}") from None


def build(spec: NetworkSpec) -> torch.nn.Module:
    """The network as it came, every layer with its size, in evaluation mode, on the processor.
    Raises ``ScenarioError``: it cannot be built, cannot be run on a small graph, or gives no row of scores for each node.
    """
    try:
        if not spec.model.startswith(HELD_NETWORK):
            _class_of(spec.model)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    try:
        module = as_it_came(spec).eval().float()
        with torch.no_grad():
            scores = run(module, torch.eye(3, spec.inputs), torch.tensor([[0, 1], [1, 0]]))
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise ScenarioError(
            f"{spec.called}: cannot be run on 3 nodes with {spec.inputs} columns ({type(error).__name__}: {text}); allowed: a "
            "module whose forward(x, edge_index) or forward(x) takes [n, columns] and gives [n, classes]; a layer of "
            "torch_geometric.nn whose first width is -1 takes as many columns as there are"
        ) from error
    if not isinstance(scores, torch.Tensor) or tuple(scores.shape) != (3, spec.classes):
        shape = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise ScenarioError(
            f"{spec.called}: gives {shape} for 3 nodes; allowed: one "
            f"score for each of {spec.classes} classes, [3, {spec.classes}]"
        )
    return module


def takes_any_width(module: torch.nn.Module) -> bool:
    """Whether its first layer waits for rows before it has a size, as ``torch_geometric.nn.GCN(-1, …)`` does."""
    return any(isinstance(p, torch.nn.parameter.UninitializedParameter) for p in module.parameters())


def run(
    module: torch.nn.Module, x: torch.Tensor, edge_index: torch.Tensor, parameters: Mapping[str, torch.Tensor] | None = None
) -> torch.Tensor:
    """[n, c]: the scores of all nodes. x: [n, d]. edge_index: int64 [2, e], both ways of every edge. parameters: by name, in
    the place of the module's own.
    """
    given = (x, edge_index) if _asks_edges(module) else (x,)
    return module(*given) if parameters is None else torch.func.functional_call(module, dict(parameters), given)


def _asks_edges(module: torch.nn.Module) -> bool:
    return "edge_index" in inspect.signature(module.forward).parameters


def drawn(spec: NetworkSpec, seed: int) -> tuple[torch.nn.Module, list[str]]:
    """The network with its first weights; and what no layer drew, so that it is what the network came with.
    seed: of the first weights; the global generators of torch, numpy and Python are left as they were.
    """
    with _seeded(seed):
        module = build(spec)
        if spec.weights == "public":
            return module, []
        if not spec.model.startswith(HELD_NETWORK):
            with _seeded(seed + 1):
                again = tensors_of(build(spec))
            return module, [name for name, tensor in tensors_of(module).items() if _kept(tensor, again[name])]
        with torch.no_grad():
            first, again = _redrawn(module), _redrawn(module)
            for name, tensor in tensors_of(module).items():
                tensor.copy_(first[name])
        return module, [name for name, tensor in first.items() if _undrawn(tensor) or _kept(tensor, again[name])]


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """What torch, numpy and Python draw follows from ``seed``, and afterwards from what it followed before."""
    kept, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(kept)
            np.random.set_state(of_numpy)  # noqa: NPY002


def _redrawn(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All that it holds after every layer drew its own, in the place of a mark of what nobody draws."""
    for tensor in tensors_of(module).values():
        tensor.fill_(torch.nan if tensor.is_floating_point() else _NOBODY_DREW)
    for part in module.modules():
        if callable(getattr(part, "reset_parameters", None)):
            part.reset_parameters()  # type: ignore[operator]
    return {name: tensor.clone() for name, tensor in tensors_of(module).items()}


def hidden_modules(module: torch.nn.Module) -> list[tuple[str, str, str]]:
    """(layer, attribute, its type) of modules that torch does not find: in a list, tuple, set or table, or of a class."""
    found = {id(part) for part in module.modules()}
    return [
        (name, attribute, type(value).__name__)
        for name, part in module.named_modules()
        for holder in (part, *_own_classes(part))
        for attribute, value in vars(holder).items()
        if attribute not in _TORCHS and any(id(one) not in found for one in _modules_in(value))
    ]


def _own_classes(part: torch.nn.Module) -> list[type]:
    return [made for made in type(part).__mro__ if made.__module__.partition(".")[0] not in ("torch", "torch_geometric")]


def _modules_in(value: object) -> list[torch.nn.Module]:
    if isinstance(value, torch.nn.Module):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple, set, frozenset)) else ()
    return [module for part in parts for module in _modules_in(part)]


def _kept(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two builds of a class with other seeds hold the same numbers, not all alike: they were read from somewhere."""
    return one.numel() > 1 and torch.equal(one, two) and not bool((one == one.flatten()[0]).all())


def _undrawn(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds what ``drawn`` wrote: numbers of classes, say, are whole, and may be those of private labels."""
    if tensor.is_floating_point():
        return bool(tensor.isnan().any())
    return bool(tensor.numel()) and bool((tensor == torch.full_like(tensor, _NOBODY_DREW)).all())


def start(spec: NetworkSpec, rng: np.random.Generator) -> np.ndarray:
    """The first weights, float32 [p]."""
    return flat(drawn(spec, int(rng.integers(2**62)))[0])


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All parameters and buffers by name, also those that a class keeps from its ``state_dict`` or ``named_parameters``."""
    every = torch.nn.Module
    return dict([*every.named_parameters(module), *every.named_buffers(module)])


def trained(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters that train, by name."""
    return {name: p.detach() for name, p in torch.nn.Module.named_parameters(module) if p.requires_grad}


def flat(module: torch.nn.Module) -> np.ndarray:
    """The parameters that train, one after another: float32 [p]."""
    return np.concatenate([np.zeros(0, np.float32), *(p.cpu().numpy().ravel() for p in trained(module).values())])


def num_parameters(spec: NetworkSpec) -> int:
    """p."""
    return sum(p.numel() for p in trained(ready(spec)).values())


def filled(spec: NetworkSpec, vector: np.ndarray, dtype: torch.dtype) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """(the network, ready to be run under vmap; the parameters of ``vector`` [p] by name).

    It is a copy of its own for each call, so that what a forward leaves behind in it is not there in the next.
    """
    module = copy.deepcopy(ready(spec)).to(dtype).to(torch_device())
    return module, _named(module, torch.tensor(np.asarray(vector), dtype=dtype, device=torch_device()))


def _named(module: torch.nn.Module, values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Views of ``values`` [p], by the names of the parameters that train."""
    found, at = {}, 0
    for name, p in trained(module).items():
        found[name] = values[at : at + p.numel()].view(p.shape)
        at += p.numel()
    return found


def fit(spec: NetworkSpec, vector: np.ndarray, x: np.ndarray, labels: np.ndarray, how: PublicTrainingSteps) -> np.ndarray:
    """Parameters after full-batch Adam on the labelled rows of a graph without edges, none of it private: float32 [p].
    vector: float [p], where it begins. x: float [n, d], public or released. labels: int64 [n], −1 where unknown; public.
    """
    known, place = np.flatnonzero(labels >= 0), torch_device()
    if not known.size:
        return np.asarray(vector, dtype=np.float32)
    module, _ = filled(spec, vector, torch.float32)
    rows, truth = torch.tensor(x[known], dtype=torch.float32, device=place), torch.tensor(labels[known], device=place)
    nobody = torch.zeros((2, 0), dtype=torch.int64, device=place)

    def loss(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(run(module, rows, nobody, _named(module, values)), truth)

    begun = torch.tensor(np.asarray(vector), dtype=torch.float32, device=place)
    return descend_by_adam(begun, torch.func.grad(loss), how.epochs, how.rate, how.decay).cpu().numpy()


@functools.lru_cache(maxsize=16)
def ready(spec: NetworkSpec) -> torch.nn.Module:
    """The network that is copied for each call: look at it, and run the copy (``filled``)."""
    return _with_given_loops(drawn(spec, 0)[0])


def _with_given_loops(module: torch.nn.Module) -> torch.nn.Module:
    """``module`` with layers that get their self-loops with the edges, and do not add them; changed in place."""
    for part in module.modules():
        if vars(part).get("add_self_loops") is True and _asks_edges(part):
            part.add_self_loops = False  # type: ignore[assignment]
            part.register_forward_pre_hook(_loops, with_kwargs=True)
    return module


def _loops(
    part: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments of a layer with a loop at every node; weights of 1 where the layer would make them itself."""
    bound = inspect.signature(part.forward).bind(*args, **kwargs)
    x, edges = bound.arguments["x"], bound.arguments["edge_index"]
    own = torch.arange(x[0].size(0) if isinstance(x, tuple) else x.size(0), device=edges.device)
    edges = torch.cat([edges, own.expand(2, -1)], dim=1)
    bound.arguments["edge_index"] = edges
    if "edge_weight" in inspect.signature(part.forward).parameters and bound.arguments.get("edge_weight") is None:
        bound.arguments["edge_weight"] = (edges[0] * 0 + 1).to(x.dtype)
    return (), dict(bound.arguments)


def is_linear(spec: NetworkSpec) -> bool:
    """Whether it is one ``torch.nn.Linear`` with a bias, all of which trains."""
    module = ready(spec)
    return type(module) is torch.nn.Linear and list(trained(module)) == ["weight", "bias"]


def reads_edges(spec: NetworkSpec) -> bool:
    """Whether its forward asks for edges."""
    return _asks_edges(ready(spec))


def with_weights(spec: NetworkSpec, vector: np.ndarray) -> torch.nn.Module:
    """The network as it came, with other weights. vector: float [p]."""
    module = drawn(spec, 0)[0]
    module.load_state_dict(_named(module, torch.tensor(np.asarray(vector, dtype=np.float32))), strict=False)
    return module


def scores(spec: NetworkSpec, vector: np.ndarray, x: np.ndarray, adjacency: sp.csr_array) -> np.ndarray:
    """float32 [n, c]: the scores of all nodes of a graph, each of which reads all its neighbours.
    vector: float [p]. x: float [n, d]. adjacency: CSR [n, n], symmetric, without self-loops.
    """
    module, parameters = filled(spec, vector, torch.float32)
    coo = adjacency.tocoo()
    edges = torch.tensor(np.stack([coo.coords[1], coo.coords[0]]).astype(np.int64), device=torch_device())
    rows = torch.tensor(x, dtype=torch.float32, device=torch_device())
    with torch.no_grad():
        found = run(module, rows, edges, parameters)
    return _finite(spec, found)


def own_scores(spec: NetworkSpec, vector: np.ndarray, x: np.ndarray, loops: bool) -> np.ndarray:
    """float32 [n, c]: the scores of nodes of which each reads itself alone, and is shown to the network by itself.
    vector: float [p]. x: float [n, d]. loops: whether one is taken after another, each with a copy of the network of its own,
    since vmap cannot run it.
    """
    rows, place = torch.tensor(x, dtype=torch.float32, device=torch_device()), torch_device()
    nobody = torch.zeros((2, 0), dtype=torch.int64, device=place)

    def own() -> Callable[[torch.Tensor], torch.Tensor]:
        module, parameters = filled(spec, vector, torch.float32)
        return lambda row: run(module, row[None], nobody, parameters)[0]

    with torch.no_grad():
        found = torch.stack([own()(row) for row in rows]) if loops else torch.func.vmap(own(), chunk_size=_MOST)(rows)
    return _finite(spec, found)


def _finite(spec: NetworkSpec, found: torch.Tensor) -> np.ndarray:
    if not bool(torch.isfinite(found).all()):
        raise DataError(f"{spec.called}: gives scores that are not finite; allowed: a smaller learning rate, or other layers")
    return np.asarray(found.cpu().numpy(), dtype=np.float32)


_FEW = 16  # numbers with a point that a list may hold before it is taken as data
_DEEP = 3  # packages within packages that are looked into for what code names there
_LONG = 1000  # things of a list that are looked at one by one
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_TORCHS = ("_parameters", "_buffers", "_modules")  # where torch keeps what it finds
_NOT_RUN = ("__init__", "reset_parameters")  # code that has come to its end before there are examples


@dataclass(frozen=True, eq=False)
class _This:
    """A thing that is the same as itself alone."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and self.thing is other.thing

    __hash__ = None  # type: ignore[assignment]


def contents(module: torch.nn.Module) -> dict[str, object]:
    """What is found, by its place; parameters and buffers are left out. Two that are equal hold the same things."""
    return {place: _mark(value) for place, value in _found(module)}


def tables(module: torch.nn.Module) -> list[str]:
    """Places of tensors, arrays, tables, graphs and long lists of numbers, which no layer draws and which forward may read."""
    known = {id(part) for part in module.modules()}
    return [
        place for place, value in _found(module) if _is_table(value)
        or (isinstance(value, torch.nn.Module) and id(value) not in known and _has_weights(value))
    ]  # fmt: skip


def _is_table(value: object) -> bool:
    """Whether it is data that no layer draws."""
    if isinstance(value, (list, tuple)):
        return len(value) > _FEW and all(isinstance(one, float) for one in value)
    if isinstance(value, (type, types.FunctionType, torch.nn.Module)):
        return False
    return any(hasattr(value, name) for name in ("dtype", "dtypes", "edge_index", "adjacency", "adj"))


def _has_weights(module: torch.nn.Module) -> bool:
    return next(iter([*module.parameters(), *module.buffers()]), None) is not None


def _mark(value: object) -> object:
    """What can be compared with what is found there later."""
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        numbers = np.asarray(value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value)
        return numbers.shape, hashlib.sha256(np.ascontiguousarray(numbers).data).hexdigest()
    if isinstance(value, (list, tuple)):
        return tuple(one if isinstance(one, _PLAIN) else _kind(one) for one in value)
    if isinstance(value, functools._lru_cache_wrapper):
        return value.cache_info().currsize
    return value if isinstance(value, (*_PLAIN, types.CodeType)) else _kind(value)


def _kind(value: object) -> _This:
    return _This(value if callable(value) and not isinstance(value, torch.nn.Module) else type(value))


def _found(module: torch.nn.Module) -> Iterator[tuple[str, object]]:
    seen: dict[int, object] = {}  # kept, so that no other thing gets the number of one that went
    own = {_package(type(part).__module__) for part in module.modules()} - {"torch", "torch_geometric"}
    parts = {id(part) for part in module.modules()}

    def written_here(place: str | None) -> bool:
        """Whether code is followed: not that of Python and of installed packages, but for the network's own."""
        name = _package(place or "builtins")
        origin = str(vars(sys.modules.get(name, types)).get("__file__"))
        return name in own or not (
            name in sys.stdlib_module_names or "site-packages" in origin or name in ("torch", "fedgraph")
        )

    def attributes(place: str, held: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        for name, value in list(held.items()):
            if not name.startswith("__") or callable(value):
                yield from walk(_within(place, f".{name}") if place else name, value)

    def names_of(code: types.CodeType) -> Iterator[str]:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                yield from names_of(inner)

    def code(place: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        yield f"{place} (code)", function.__code__
        if function.__name__ in _NOT_RUN:
            return
        names = list(names_of(function.__code__))
        asked = {name: function.__globals__[name] for name in names if name in function.__globals__}
        files = {id(value): (name, value) for name, value in asked.items() if isinstance(value, types.ModuleType)}
        for _ in range(_DEEP):  # attributes of modules are asked for by their names
            inside = {f"{name}.{one}": vars(file)[one] for name, file in files.values() for one in names if one in vars(file)}
            asked |= inside
            files = {id(value): (name, value) for name, value in inside.items() if isinstance(value, types.ModuleType)}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            asked[name] = _inside(cell)
        asked |= {f"default {number}": value for number, value in enumerate(function.__defaults__ or ())}
        asked |= function.__kwdefaults__ or {}
        for name, value in asked.items():
            yield from walk(f"{name} of {place}", value)
        yield from attributes(place, vars(function))

    def walk(place: str, value: object) -> Iterator[tuple[str, object]]:
        if isinstance(value, _PLAIN):
            yield place, value
        if isinstance(value, (*_PLAIN, types.ModuleType)) or id(value) in seen:
            return
        seen[id(value)] = value
        if isinstance(value, torch.nn.Module):
            yield place, value
            if id(value) in parts:
                usual = {"training", "_is_full_backward_hook", *_TORCHS}
                yield from attributes(place, {k: v for k, v in vars(value).items() if k not in usual})
            yield from walk(type(value).__qualname__.rpartition(".")[2], type(value))
        elif isinstance(value, type):
            yield place, value
            if not (issubclass(value, torch.nn.Module) or written_here(value.__module__)):
                return
            for made in value.__mro__:
                if written_here(made.__module__):
                    yield from attributes(made.__qualname__.rpartition(".")[2], vars(made))
                elif made not in torch.nn.Module.__mro__:
                    yield f"{made.__qualname__} (code)", tuple(vars(made).values())
        elif isinstance(value, types.FunctionType):
            if written_here(value.__module__):
                yield from code(place, value)
            else:
                yield place, value
        elif isinstance(value, (staticmethod, classmethod)):
            yield from walk(place, value.__func__)
        elif isinstance(value, types.MethodType):
            yield from walk(place, [value.__func__, value.__self__])
        elif isinstance(value, property):
            yield from walk(place, value.fget)
        elif isinstance(value, functools.cached_property):
            yield from walk(place, value.func)
        elif isinstance(value, functools.partial):
            yield from walk(place, [value.func, value.args, value.keywords])
        elif isinstance(value, functools._lru_cache_wrapper):
            yield f"{place} (its cache)", value
            yield from walk(place, value.__wrapped__)
        elif isinstance(value, types.GeneratorType):
            yield from walk(place, inspect.getgeneratorlocals(value))
        elif isinstance(value, (list, tuple, set, frozenset, deque, Mapping)):
            yield place, list(value)
            for key, one in islice(list(value.items()) if isinstance(value, Mapping) else enumerate(value), _LONG):
                yield from walk(_within(place, f"[{key!s:.40}]"), one)
        else:
            yield place, value
            if written_here(type(value).__module__) and not _is_table(value):
                yield from attributes(place, _held_by(value))
                yield from walk(type(value).__qualname__, type(value))

    for name, part in module.named_modules():
        yield from walk(name, part)


def _within(place: str, part: str) -> str:
    """``part`` of what stands at ``place``: kept[3] of Net.forward."""
    what, of, holder = place.partition(" of ")
    return f"{what}{part}{of}{holder}"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _held_by(value: object) -> Mapping[str, object]:
    try:
        return vars(value)
    except TypeError:  # it has slots, or nothing
        return {}


def _inside(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None
