"""Whether the gradient of an example follows from that example alone: looked at before a network sees private data.

Random examples, in double precision. The gradient of each is taken alone, in a batch, in the same batch backwards, in one as
large as those of training, beside other rows, with nodes beside it that no edge leads to, with more of the arcs that fill a
batch up, and once more: it must stay the same, but for the rounding of blocked products (``_ROUNDING``). Nor may anything that
copies of the network share (``contents``) be another thing afterwards. What reads its batch, draws numbers, trains a buffer,
keeps a graph, or calls back is refused, with the layer's name and what to use in its place. Code that means to deceive is not
found by it: a network is run as code of whoever trains, and every statement says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning import example_gradients, own_network, rooted
from fedgraph.learning.example_gradients import NetworkExamples
from fedgraph.learning.own_network import NetworkSpec
from fedgraph.learning.rooted import RootedSamples
from fedgraph.learning.tensors import torch

_ROUNDING = 2.0**-36  # of the norm of a gradient
_NODE_NORM = "torch_geometric.nn.LayerNorm(mode='node')"
_NORMS = ("GraphNorm", "PairNorm", "InstanceNorm", "GraphSizeNorm", "DiffGroupNorm", "MeanSubtractionNorm")
_IN_ITS_PLACE = {
    "BatchNorm": f"torch.nn.LayerNorm, or {_NODE_NORM}",
    **dict.fromkeys(_NORMS, _NODE_NORM),
    "LayerNorm": "mode='node'",
    "Dropout": "torch.nn.Dropout, which does nothing here",
}
_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_propagate_forward_hooks",
    "_propagate_forward_pre_hooks", "_message_forward_hooks", "_message_forward_pre_hooks", "_aggregate_forward_hooks",
    "_aggregate_forward_pre_hooks",
)  # fmt: skip


_LISTED = dict.fromkeys(("list", "tuple", "set", "frozenset"), "torch.nn.ModuleList")
_LISTED |= dict.fromkeys(("dict", "OrderedDict", "defaultdict"), "torch.nn.ModuleDict")


@dataclass(frozen=True)
class IsolatedNetwork:
    """What the look at a network found."""

    loops: bool  # whether its examples are taken one after another, because vmap cannot run it
    why: str  # what vmap said; empty where it can


_looked_at: dict[NetworkSpec, tuple[dict[str, object], IsolatedNetwork]] = {}  # with the ``contents`` of then


def require(spec: NetworkSpec) -> IsolatedNetwork:
    """Look at a network, again if its code is another one than it was.
    Raises ``ScenarioError``: one line that names the layer, what it does, and what to use.
    """
    try:
        came = own_network.as_it_came(spec)
    except Exception:  # of the network, in its own words
        own_network.build(spec)  # which says them in one line
        raise
    now = own_network.contents(came)
    if spec not in _looked_at or _looked_at[spec][0] != now:
        own_network.ready.cache_clear()  # its code may be another one than it was
        _looked_at[spec] = now, _look(spec, came)
    return _looked_at[spec][1]


def _look(spec: NetworkSpec, came: torch.nn.Module) -> IsolatedNetwork:
    before = own_network.contents(came)
    module, undrawn = own_network.drawn(spec, 0)
    _require_nothing_kept(spec, before, came)
    for name, attribute, kind in own_network.hidden_modules(module):
        raise ScenarioError(
            f"{spec.called}: {attribute} of {name or type(module).__name__} keeps modules where torch does not look for them "
            f"({kind}), so weights would not train and nothing is known of them; use {_LISTED.get(kind, 'self.… in __init__')}"
        )
    _require_drawn(spec, undrawn)
    if not own_network.trained(module):
        raise ScenarioError(f"{spec.called}: has no parameter that trains; allowed: a module with one at least")
    _require_parts(spec, module)
    copied = own_network.ready(spec)  # of which each call takes a copy
    built, again = own_network.tensors_of(module), own_network.tensors_of(copied)
    if unlike := [name for name, tensor in built.items() if not torch.equal(tensor, again[name])]:
        raise ScenarioError(
            f"{spec.called}: no seed gives {', '.join(unlike[:3])} again, so what answers is another network than was trained; "
            "use torch.randn and torch.nn.init, which follow from the seed"
        )
    before = own_network.contents(copied)
    failure: Exception | None = None
    try:
        _require_still(spec, module)
        found = _require_alone(spec, module)
    except Exception as error:  # of torch, or of the network
        failure = error
    _require_nothing_kept(spec, before, copied)
    if isinstance(failure, ScenarioError):
        raise failure
    _require_drawn(spec, [f"what it keeps as {place}" for place in own_network.tables(came) if spec.weights != "public"])
    if failure is None:
        return found
    raise ScenarioError(
        f"{spec.called}: its gradient cannot be taken, or not again ({' '.join(str(failure).split())[:200]}); allowed: a "
        "forward that torch.func.grad can run, and that keeps nothing of earlier calls"
    ) from failure


def _require_drawn(spec: NetworkSpec, undrawn: list[str]) -> None:
    if undrawn:
        raise ScenarioError(
            f"{spec.called}: nothing draws {', '.join(undrawn[:3])}, so the values that it came with would train "
            "on: from what data are they? Allowed: weights='public', if those data are public and hold nobody of this graph"
        )


def _require_nothing_kept(spec: NetworkSpec, before: dict[str, object], module: torch.nn.Module) -> None:
    """What copies of ``module`` share is what it was before they were run."""
    after, gone = own_network.contents(module), object()
    kept = next((place for place in {**before, **after} if before.get(place, gone) != after.get(place, gone)), "")
    if kept:
        raise ScenarioError(
            f"{spec.called}: keeps something in {kept} when it is run, which every call shares, so one example's gradient "
            "is not its own; use what forward computes anew in each call, or register_buffer for numbers that never change"
        )


def _refuse(spec: NetworkSpec, module: torch.nn.Module, name: str, what: str, instead: str = "") -> None:
    """name: of the layer within ``module``. instead: what to use; by default what is known of its kind."""
    part = dict(module.named_modules()).get(name, module)
    kind = type(part).__name__
    known = (said for known, said in _IN_ITS_PLACE.items() if known in kind)
    instead = instead or next(known, "a layer whose rows follow from edges alone")
    where = f"layer {name} ({kind})" if name else f"its forward ({kind})"
    raise ScenarioError(f"{spec.called}: {where} {what}, so one example's gradient is not its own; use {instead}")


def _require_parts(spec: NetworkSpec, module: torch.nn.Module) -> None:
    """What can be seen without running it."""
    for name, part in module.named_modules():
        if "BatchNorm" in type(part).__name__:
            _refuse(spec, module, name, "takes means over a batch, and trains buffers")
        if any(vars(part).get(hooks) for hooks in _HOOKS):
            _refuse(spec, module, name, "has hooks, which read what others compute")
        if vars(part).get("cached") is True:
            _refuse(spec, module, name, "keeps the first graph that it sees (cached=True)")


def _require_still(spec: NetworkSpec, module: torch.nn.Module) -> None:
    """No buffer and no parameter may be another one after the network was run, in whatever mode it wants to be."""
    before = {name: tensor.clone() for name, tensor in own_network.tensors_of(module).items()}
    x, arcs, _ = (part.cpu() for part in _examples(spec, 1).at(0 * np.ones(1, dtype=np.int64), torch.float32))
    own_network.run(module, x[0], arcs[0]).sum().backward()  # type: ignore[no-untyped-call]
    module.zero_grad()
    for name, tensor in own_network.tensors_of(module).items():
        if name not in before or not torch.equal(tensor, before[name]):
            _refuse(spec, module, name.rpartition(".")[0], f"changes {name} when it is run")


def _require_alone(spec: NetworkSpec, module: torch.nn.Module) -> IsolatedNetwork:
    whole = _examples(spec, 6)
    vector = own_network.flat(module)
    loops, why = False, ""
    made: Callable[..., torch.Tensor] = example_gradients.looped
    one = example_gradients.looped(spec, vector, whole)
    if not bool(_counted(one).any()):
        raise ScenarioError(
            f"{spec.called}: no weight has a gradient on random rows, or none that is finite; allowed: a forward whose scores "
            "follow from the module's own parameters, and stay finite for rows of any sign"
        )
    try:
        together = example_gradients.vmapped(spec, vector, whole)
        if _differ(one, together):
            loops, why = True, "vmap gives other numbers than a loop"
        else:
            made = example_gradients.vmapped
    except Exception as error:
        loops, why = True, str(error).partition("\n")[0].partition(". ")[0][:160]
    tried = made(spec, vector, whole)
    if _differ(tried, made(spec, vector, whole)):
        _refuse(spec, module, _changing(spec, whole, whole), "draws random numbers, or remembers, when it is run")
    backwards = np.arange(len(whole.labels))[::-1].copy()
    if _differ(tried, made(spec, vector, _chosen(whole, backwards))[backwards.tolist()]):
        _refuse(spec, module, "", "gives another gradient in another order")
    for number in range(len(whole.labels)):
        alone = _chosen(whole, np.array([number]))
        if _differ(tried[[number]], made(spec, vector, alone)):
            _refuse(spec, module, "", "gives another gradient in a batch than alone")
        others = np.setdiff1d(np.arange(len(whole.rows)), whole.samples.nodes[number])
        rows = whole.rows.copy()
        rows[others] = 7 - 3 * rows[others]
        if _differ(tried[[number]], made(spec, vector, replace(whole, rows=rows))[[number]]):
            _refuse(spec, module, "", "reads the rows of other examples")
        beside = replace(_with_strangers(alone, 3), rows=rows)
        if _differ(tried[[number]], made(spec, vector, beside)):
            _refuse(spec, module, _changing(spec, alone, beside), "reads nodes to which no edge leads")
        padded = _with_empty_arcs(alone, 5)
        if _differ(tried[[number]], made(spec, vector, padded)):
            _refuse(spec, module, _changing(spec, alone, padded), "reads edges that lead to no node, or how many there are")
    full = _chosen(whole, np.arange(max(example_gradients.chunk_of(vector), 7)) % 6)
    if not loops and _differ(tried, made(spec, vector, full)[:6]):
        _refuse(spec, module, "", "gives another gradient in a large batch than in a small one")
    return IsolatedNetwork(loops, why)


def _counted(rows: torch.Tensor) -> torch.Tensor:
    """As a training counts them: one that is not finite is zero."""
    return torch.where(rows.norm(dim=1, keepdim=True).isfinite(), rows, 0.0)


def _differ(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether a row is another one by more than rounding."""
    one, two = _counted(one), _counted(two)
    return not bool(((one - two).norm(dim=1) < _ROUNDING * one.norm(dim=1).clamp(min=1e-6)).all())


def _examples(spec: NetworkSpec, count: int) -> NetworkExamples:
    """Random ones, no two with a common node, the first of a root alone."""
    rng, size = np.random.default_rng(0), 9
    blocks = []
    for number in range(count):
        upper = np.triu(rng.random((size, size)) < (0.45 if number else 0.0), 1)
        blocks.append(sp.csr_array((upper | upper.T).astype(np.float32)))
    graph = sp.csr_array(sp.block_diag(blocks, format="csr"))
    roots, ids = size * np.arange(count), np.arange(size * count)
    found = rooted.subgraphs(graph, ids, roots, lambda root, node: np.ones(len(node), dtype=bool), 3, 2, 0)
    return NetworkExamples(rng.normal(size=(size * count, spec.inputs)), found, rng.integers(spec.classes, size=count))


def _chosen(whole: NetworkExamples, numbers: np.ndarray) -> NetworkExamples:
    samples = RootedSamples(whole.samples.nodes[numbers], whole.samples.arcs[numbers])
    return NetworkExamples(whole.rows, samples, whole.labels[numbers])


def _with_strangers(alone: NetworkExamples, count: int) -> NetworkExamples:
    """With nodes of other examples in further places, to which no edge leads; the last place stays empty."""
    nodes, arcs = alone.samples.nodes, alone.samples.arcs.copy()
    strangers = np.setdiff1d(np.arange(len(alone.rows)), nodes)[:count]
    arcs[arcs == nodes.shape[1] - 1] += count
    wide = np.concatenate([nodes[:, :-1], np.tile(strangers, (len(nodes), 1)), nodes[:, -1:]], axis=1)
    return replace(alone, samples=RootedSamples(wide, arcs))


def _with_empty_arcs(alone: NetworkExamples, count: int) -> NetworkExamples:
    """With further arcs from the last place to itself: how many there are follows from the largest example of a batch."""
    nodes, arcs = alone.samples.nodes, alone.samples.arcs
    more = np.full((len(nodes), 2, count), nodes.shape[1] - 1, dtype=np.int64)
    return replace(alone, samples=RootedSamples(nodes, np.concatenate([arcs, more], axis=2)))


def _changing(spec: NetworkSpec, one: NetworkExamples, two: NetworkExamples) -> str:
    """The first layer, in the order in which they are called, that gives the root another row; empty: it is given another one
    by what stands between layers, or no layer does.
    """
    before, after = (_outputs(spec, examples) for examples in (one, two))
    for (name, given, left), (_, as_given, right) in zip(before, after, strict=False):
        if not _alike(left, right):
            return name if _alike(given, as_given) else ""
    return ""


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.shape == two.shape and torch.allclose(one, two, rtol=1e-9, atol=1e-12)


def _outputs(spec: NetworkSpec, examples: NetworkExamples) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    """(name, what it is given of the root, what it gives the root) of every layer without parts of its own."""
    module, _ = own_network.filled(spec, own_network.flat(own_network.drawn(spec, 0)[0]), torch.float64)
    found: list[tuple[str, torch.Tensor, torch.Tensor]] = []
    for name, part in module.named_modules():
        if not list(part.children()) or "message" in vars(type(part)) or isinstance(part, torch.nn.MultiheadAttention):

            def keep(_: object, given: tuple[object, ...], result: object, name: str = name) -> None:
                first = next(iter(result), None) if isinstance(result, tuple) else result
                if isinstance(first, torch.Tensor) and first.ndim:
                    asked = given[0][:1] if given and isinstance(given[0], torch.Tensor) else torch.zeros(1)
                    found.append((name, asked.detach().clone(), first[0].detach().clone()))

            part.register_forward_hook(keep)
    x, arcs, _labels = examples.at(np.zeros(1, dtype=np.int64), torch.float64)
    with torch.no_grad():
        own_network.run(module, x[0], arcs[0])
    return found
