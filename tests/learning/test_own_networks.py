"""Networks that others wrote: what they read of a graph, their gradients for each example, and what is refused."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning import NetworkExamples, NetworkSpec, example_gradients, isolation, own_network, rooted

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

INPUTS, CLASSES = 7, 3
DEEP = {"hidden_channels": 6, "num_layers": 2}
KNOWN = {
    "SAGE": ("GraphSAGE", DEEP),
    "GIN": ("GIN", DEEP),
    "GAT": ("GAT", {**DEEP, "heads": 2}),
    "GATv2": ("GAT", {**DEEP, "heads": 2, "v2": True}),
    "GAT without loops": ("GAT", {**DEEP, "add_self_loops": False}),
    "GCN": ("GCN", DEEP),
    "SGC": ("SGConv", {"K": 2}),
    "MLP": ("MLP", {**DEEP, "norm": None}),
}


class Walks(torch.nn.Module):
    """A linear layer, then APPNP."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.walk = torch.nn.Linear(INPUTS, CLASSES), pyg.APPNP(3, 0.2)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.walk(self.linear(torch.nn.functional.dropout(x, 0.5, self.training)), edge_index)


class Masked(Walks):
    """Asks for edges by a boolean mask, as no network under vmap may."""

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.walk(self.linear(x), edge_index[:, edge_index[0] != edge_index[1]])


def named(what: str) -> NetworkSpec:
    model, arguments = KNOWN[what]
    return NetworkSpec(f"torch_geometric.nn.{model}", json.dumps(arguments), INPUTS, CLASSES)


def held(module: Any, weights: str = "fresh") -> NetworkSpec:
    return NetworkSpec(own_network.hold(module), "{}", INPUTS, CLASSES, weights)


def anybody(root: np.ndarray, node: np.ndarray) -> np.ndarray:
    return np.ones(len(node), dtype=bool)


def graph(n: int, share: float, seed: int = 0) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    return sp.csr_array((upper | upper.T).astype(np.float32))


def examples(n: int = 40, roots: int = 12, hops: int = 2) -> NetworkExamples:
    rng = np.random.default_rng(1)
    found = rooted.subgraphs(graph(n, 0.15), np.arange(n), np.arange(roots), anybody, 3, hops, 5)
    return NetworkExamples(rng.normal(size=(n, INPUTS)), found, rng.integers(CLASSES, size=roots))


def start(spec: NetworkSpec) -> np.ndarray:
    return own_network.start(spec, np.random.default_rng(2))


SPECS = [pytest.param(lambda what=what: named(what), id=what) for what in KNOWN] + [
    pytest.param(lambda: held(Walks()), id="APPNP")
]


@pytest.mark.parametrize("made", SPECS)
def test_gradients_of_many_examples_at_once_are_those_of_a_loop(made: Any) -> None:
    spec = made()
    assert not isolation.require(spec).loops
    for hops in (0, 2):
        given, vector = examples(hops=hops), start(spec)
        one, many = (take(spec, vector, given) for take in (example_gradients.looped, example_gradients.vmapped))
        assert many.dtype == torch.float64
        if not spec.model.startswith(own_network.HELD_NETWORK):  # APPNP's products are cut in other blocks
            assert torch.equal(one, many), "bit for bit"
        assert torch.allclose(one, many, rtol=1e-12, atol=1e-15)
        assert (one.norm(dim=1) > 0).all()


@pytest.mark.parametrize("made", SPECS)
def test_a_layer_that_gets_its_loops_is_the_same_network(made: Any) -> None:
    """On a graph without loops; and what answers is the network as it was handed over."""
    spec, n = made(), 30
    vector, rng = start(spec), np.random.default_rng(3)
    x, adjacency = rng.normal(size=(n, INPUTS)).astype(np.float32), graph(n, 0.2)
    module = own_network.with_weights(spec, vector).eval()
    edges = torch.tensor(np.stack(adjacency.nonzero()))
    with torch.no_grad():
        wanted = own_network.run(module, torch.tensor(x), edges).numpy()
    assert np.allclose(own_network.scores(spec, vector, x, adjacency), wanted, atol=1e-6)
    assert np.array_equal(own_network.flat(module), vector)


def test_a_network_that_vmap_cannot_run_is_looped_over_and_said() -> None:
    spec = held(Masked())
    found = isolation.require(spec)
    assert found.loops
    assert "dynamic shape" in found.why
    given, vector = examples(), start(spec)
    sums = [example_gradients.clipped_sum(s, vector, given, 0.1, 12, s is spec) for s in (spec, held(Walks()))]
    assert np.allclose(*sums, atol=1e-6), "there was no loop to leave out"


def module(**parts: Any) -> Any:
    """A module whose forward is ``run(self, x, edge_index)``."""
    run = parts.pop("run")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(INPUTS, CLASSES)
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: Any, edge_index: Any) -> Any:
            return run(self, x, edge_index)

    return Net()


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(CLASSES))

    def reset_parameters(self) -> None:
        self.mean.zero_()

    def forward(self, x: Any) -> Any:
        self.mean += x.detach().mean(0)
        return x - self.mean


def hooked() -> Any:
    net = module(run=lambda self, x, e: self.linear(x))
    net.linear.register_forward_hook(lambda *given: None)
    return net


CALLS: list[int] = []


def remembers(self: Any, x: Any, edge_index: Any) -> Any:
    CALLS.append(0)
    return self.linear(x) * (1 + 0.01 * len(CALLS))


def gcn(norm: str, **more: Any) -> Any:
    return pyg.GCN(INPUTS, 6, 2, CLASSES, norm=norm, **more)


def counted() -> Any:
    return module(count=Counter(), run=lambda self, x, e: self.count(self.linear(x)))


def looks_around() -> Any:
    return module(run=lambda self, x, e: torch.softmax(x @ x.T, 1) @ self.linear(x))


def attends_to_edges(self: Any, x: Any, edge_index: Any) -> Any:
    """Attention over all edges, where a softmax over the edges of each node was meant."""
    source, target = edge_index
    weights = torch.softmax((x[source] * x[target]).sum(1), 0)
    return self.linear(x + torch.zeros_like(x).index_add(0, target, weights[:, None] * x[source]))


def brought() -> Any:
    return module(more=torch.nn.Parameter(torch.ones(CLASSES)), run=lambda self, x, e: self.linear(x) + self.more)


def counts_classes() -> Any:
    """Scores that are moved by how many people each class has, as those of the data: a tensor of whole numbers."""
    net = module(run=lambda self, x, e: self.linear(x) + self.counts.to(x.dtype).log())
    net.register_buffer("counts", torch.tensor([5, 9, 2]))
    return net


def with_table(table: Any) -> Any:
    net = module(run=lambda self, x, e: self.linear(x))
    net.table = table  # neither a parameter nor a buffer
    return net


class Caches(torch.nn.Linear):
    """A layer that keeps, in its class, what it computed for each number of rows."""

    kept: ClassVar[dict[int, Any]] = {}

    def forward(self, x: Any) -> Any:
        return super().forward(x + self.kept.setdefault(len(x), x.mean(0)))


ASIDE: dict[int, Any] = {}


def caches_aside(self: Any, x: Any, edge_index: Any) -> Any:
    return self.linear(x + ASIDE.setdefault(len(x), x.mean(0)))


class Counts(torch.nn.Module):
    """Its class counts calls, which no number shows before there were a thousand."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(INPUTS, CLASSES)

    def forward(self, x: Any) -> Any:
        Counts.calls += 1
        return self.linear(x * (1 + (Counts.calls > 1000)))


QUEUE: list[int] = []


def queues(self: Any, x: Any, edge_index: Any) -> Any:
    """Other rows, once there are a thousand."""
    QUEUE.append(len(x))
    return self.linear(x + (sum(QUEUE) if len(QUEUE) > 1000 else 0))


class Reversed(torch.autograd.Function):
    """Reads, in its backward pass, what an earlier one left."""

    last: ClassVar[list[Any]] = []

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        del ctx, inputs, output

    @staticmethod
    def backward(ctx: Any, given: Any) -> Any:
        Reversed.last.append(1)
        return given * (1 + (len(Reversed.last) > 1000))


class Mixes(torch.autograd.Function):
    """Whose rule for vmap adds what a batch has in common, where it is a large one."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        del ctx, inputs, output

    @staticmethod
    def backward(ctx: Any, given: Any) -> Any:
        return given

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Mixes.apply(x + x.mean(0, keepdim=True) * (info.batch_size > 100)), 0


@functools.cache
def weights_of(size: int) -> float:
    return 1.0 + 0 * size


class Shares(torch.nn.Module):
    """Copies of it are itself."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.seen = torch.nn.Linear(INPUTS, CLASSES), 0

    def __deepcopy__(self, memo: object) -> Shares:
        return self

    def forward(self, x: Any) -> Any:
        self.seen += 1
        return self.linear(x)


ROWS = np.ones(INPUTS)


def reads_a_table(self: Any, x: Any, edge_index: Any) -> Any:
    return self.linear(x + float(ROWS.mean()))


def reads_another() -> Any:
    other = torch.nn.Linear(INPUTS, INPUTS).double()
    return module(run=lambda self, x, e: self.linear(x) + 0 * other(x.double()).sum())


class Hides(torch.nn.Module):
    """Shows neither torch's nor our list of parameters what it came with."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.more = torch.nn.Linear(INPUTS, CLASSES), torch.nn.Parameter(torch.ones(CLASSES))

    def named_parameters(self, *how: Any, **more: Any) -> Any:
        return (one for one in super().named_parameters(*how, **more) if one[0] != "more")

    def forward(self, x: Any) -> Any:
        return self.linear(x) + self.more


class ReadsItsWeights(torch.nn.Linear):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        with torch.no_grad():
            self.weight.copy_(torch.linspace(0, 1, in_channels * out_channels).view(out_channels, in_channels))


class ReadsThemAgain(ReadsItsWeights):
    """As often as it is asked to draw them."""

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.copy_(torch.linspace(0, 1, self.weight.numel()).view_as(self.weight))
            self.bias.zero_()


def with_layers(layers: Any) -> Any:
    net = module(run=lambda self, x, e: self.linear(x))
    net.layers = layers
    return net


def with_layer_of_a_class() -> Any:
    net = module(run=lambda self, x, e: self.act(self.linear(x)))
    type(net).act = torch.nn.ReLU()
    return net


def still() -> Any:
    return module(linear=torch.nn.Identity(), run=lambda self, x, e: x[:, :CLASSES])


REFUSED = {
    "batch norm": (lambda: gcn("batch_norm"), r"layer norms\.0 \(BatchNorm\).*use torch.nn.LayerNorm"),
    "a norm over the graph": (lambda: gcn("graph_norm"), r"layer norms\.0 \(GraphNorm\) reads nodes to which"),
    "layer norm over the graph": (lambda: gcn("layer_norm"), r"\(LayerNorm\).*use mode='node'"),
    "a buffer that trains": (counted, r"layer count \(Counter\) changes count.mean"),
    "attention over all": (looks_around, "reads nodes to which no edge leads"),
    "attention over all edges": (lambda: module(run=attends_to_edges), "reads edges that lead to no node"),
    "a number of edges": (lambda: module(run=lambda self, x, e: self.linear(x) / e.shape[1]), "or how many there are"),
    "random numbers": (lambda: module(run=lambda self, x, e: self.linear(x + torch.rand_like(x))), "draws random numbers"),
    "a memory of its own": (lambda: module(run=remembers), "keeps something in CALLS of run of Net.forward when it is run"),
    "a cache in its class": (
        lambda: module(linear=Caches(INPUTS, CLASSES), run=lambda self, x, e: self.linear(x)),
        r"keeps something in Caches\.kept when it is run, .*use what forward computes anew in each call",
    ),
    "a cache in a table of its file": (lambda: module(run=caches_aside), "keeps something in ASIDE of run of"),
    "a number of calls in its class": (Counts, r"keeps something in Counts\.calls when it is run"),
    "a queue of its file": (lambda: module(run=queues), "keeps something in QUEUE of run of Net.forward"),
    "a memory of its backward pass": (
        lambda: module(run=lambda self, x, e: Reversed.apply(self.linear(x))),
        r"keeps something in Reversed\.last when it is run",
    ),
    "a cache of a function": (
        lambda: module(run=lambda self, x, e: self.linear(x) * weights_of(len(x))),
        "keeps something in weights_of of .* when it is run",
    ),
    "a copy that is itself": (Shares, "keeps something in seen when it is run"),
    "a rule of its own for large batches": (
        lambda: module(run=lambda self, x, e: self.linear(Mixes.apply(x))),
        "gives another gradient in a large batch",
    ),
    "rows of its file": (
        lambda: module(run=reads_a_table),
        "draws what it keeps as ROWS of run of Net.*from what data",
    ),
    "another network": (reads_another, "draws what it keeps as other of .*from what data"),
    "long lists of numbers": (lambda: with_table([0.5] * 20), "draws what it keeps as table, .*from what data"),
    "weights that are read in the place of a draw": (
        lambda: ReadsThemAgain(INPUTS, CLASSES),
        "draws weight, .*from what data",
    ),
    "weights that it does not show": (Hides, "draws more, .*from what data"),
    "roots of rows": (
        lambda: module(run=lambda self, x, e: self.linear(torch.log(-x.abs()))),
        "no weight has a gradient on random rows",
    ),
    "hooks": (hooked, r"layer linear \(Linear\) has hooks"),
    "a graph that is kept": (lambda: pyg.SGConv(INPUTS, CLASSES, cached=True), "keeps the first graph"),
    "weights that nobody drew": (brought, "from what data are they.*weights='public'"),
    "numbers that nobody drew": (counts_classes, r"draws counts, .*from what data are they"),
    "a mean that nobody drew": (
        lambda: with_table(torch.rand(INPUTS)),
        "draws what it keeps as table.*from what data are they",
    ),
    "means in a list of arrays": (
        lambda: with_table({"of": [np.ones(INPUTS)]}),
        r"draws what it keeps as table\[of\]\[0\].*from what data are they",
    ),
    "layers in a list": (
        lambda: with_layers([torch.nn.Linear(3, 3)]),
        r"layers of \w+ keeps modules where torch does not look for them \(list\), .*use torch\.nn\.ModuleList$",
    ),
    "layers in a table of lists": (
        lambda: with_layers({"first": (torch.nn.Linear(3, 3),)}),
        r"layers of .*\(dict\), .*use torch\.nn\.ModuleDict$",
    ),
    "a layer of a class": (
        lambda: with_layer_of_a_class(),
        r"act of \w+ keeps modules .*\(ReLU\), .*use self\.… in __init__$",
    ),
    "too few scores": (lambda: torch.nn.Linear(INPUTS, CLASSES + 1), r"gives \(3, 4\) for 3 nodes"),
    "nothing that trains": (still, "no parameter that trains"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_ties_examples_together_is_refused_with_its_name(what: str) -> None:
    made, words = REFUSED[what]
    with pytest.raises(ScenarioError, match=words) as refused:
        isolation.require(held(made()))
    assert "\n" not in str(refused.value)


def test_a_list_of_layers_that_torch_knows_is_no_fault() -> None:
    net = module(run=lambda self, x, e: self.layers[0](x))
    net.layers = [net.linear]
    assert not isolation.require(held(net)).loops


def test_networks_that_look_alike_are_each_looked_at() -> None:
    """A seed gives two networks of one shape the same weights; only the code of their ``forward`` tells them apart."""
    made = []
    for run in (lambda self, x, e: self.linear(x), lambda self, x, e: self.linear(x - x.mean(0))):
        torch.manual_seed(5)
        made.append(module(run=run))
    alone, over_all = map(held, made)
    isolation.require(alone)
    with pytest.raises(ScenarioError, match="to which no edge leads"):
        isolation.require(over_all)
    assert held(made[0]) == alone != over_all == held(made[1])


def test_a_network_whose_code_was_changed_since_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name or in memory: what was found of other code says nothing."""
    net = Walks()
    specs = [NetworkSpec(f"{__name__}:Walks", "{}", INPUTS, CLASSES), held(net)]
    found = [isolation.require(spec) for spec in specs]
    assert [isolation.require(spec) for spec in specs] == found
    vector = start(specs[0])
    before = own_network.own_scores(specs[0], vector, np.ones((2, INPUTS)), loops=False)
    monkeypatch.setattr(Walks, "forward", lambda self, x, edge_index: self.linear(x - x.mean(0)))
    for spec in specs:
        with pytest.raises(ScenarioError, match="to which no edge leads"):
            isolation.require(spec)
    monkeypatch.setattr(Walks, "forward", lambda self, x, edge_index: self.linear(3 * x))
    isolation.require(specs[0])
    assert not np.allclose(own_network.own_scores(specs[0], vector, np.ones((2, INPUTS)), loops=False), before)


def test_no_network_sees_how_large_other_examples_are() -> None:
    """Of a network that reads how many places it is given, which a look refuses: each row is the one of its example alone."""
    spec = held(module(run=lambda self, x, e: self.linear(x) * len(x) * (1 + e.shape[1])))
    given, vector = examples(), start(spec)
    assert len(np.unique((given.samples.nodes >= 0).sum(axis=1))) > 2
    for loops in (False, True):
        for rows, scale, some in example_gradients.weighed_rows(spec, vector, given, 0.1, loops):
            for row, weight, number in zip(rows, scale, some, strict=True):
                one = given.samples.of(np.array([number]))
                alone = NetworkExamples(given.rows, one, given.labels[[number]])
                ((own, own_weight, _),) = example_gradients.weighed_rows(spec, vector, alone, 0.1, loops)
                assert torch.allclose(row * weight, own[0] * own_weight[0], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("loops", [False, True])
def test_who_is_answered_by_its_own_row_is_shown_to_the_network_alone(loops: bool) -> None:
    spec = held(module(run=lambda self, x, e: self.linear(x - x.mean(0) if len(x) > 1 else x)))
    rows, vector = np.random.default_rng(0).normal(size=(5, INPUTS)), start(spec)
    answers = own_network.own_scores(spec, vector, rows, loops)
    alone = [own_network.scores(spec, vector, row[None], sp.csr_array((1, 1))) for row in rows]
    assert np.allclose(answers, np.concatenate(alone), atol=1e-6)
    assert np.ptp(answers) > 0.01


def test_a_network_that_cannot_be_copied_is_refused_and_a_compiled_one_is_taken_as_it_was() -> None:
    net = Walks()
    compiled = torch.nn.Identity()
    compiled._orig_mod = net  # as torch.compile keeps it
    assert held(compiled) == held(net)
    net.scale = net.linear(torch.ones(1, INPUTS))  # no leaf: torch copies none
    with pytest.raises(ScenarioError, match=r"cannot be copied .*; allowed: a module that copy\.deepcopy takes"):
        held(net)


def test_a_class_that_reads_its_weights_is_asked_about_them() -> None:
    spec = NetworkSpec(f"{__name__}:ReadsItsWeights", "{}", INPUTS, CLASSES)
    with pytest.raises(ScenarioError, match=r"nothing draws weight, .*from what data are they"):
        isolation.require(spec)
    isolation.require(replace(spec, weights="public"))


def test_weights_that_are_said_to_be_public_are_kept() -> None:
    net = brought()
    spec = held(net, "public")
    isolation.require(spec)
    assert np.array_equal(start(spec), own_network.flat(net))
    assert not np.array_equal(start(held(Walks())), own_network.flat(Walks()))


class DrawnByNumpy(torch.nn.Module):
    """A map that nobody trains, from the generator of all numpy."""

    def __init__(self, in_channels: int, out_channels: int, **how: Any) -> None:
        super().__init__()
        draw = np.random.default_rng(**how).normal if how else np.random.normal
        self.linear = torch.nn.Linear(8, out_channels)
        self.register_buffer("directions", torch.tensor(draw(size=(in_channels, 8)), dtype=torch.float32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(x @ self.directions)
        return found


def test_what_numpy_draws_follows_from_the_seed_too() -> None:
    """Else what answers, what is handed out and each worker have another network than was trained."""
    spec = NetworkSpec(f"{__name__}:DrawnByNumpy", "{}", INPUTS, CLASSES)
    isolation.require(spec)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    handed_out, trained = own_network.with_weights(spec, start(spec)), own_network.ready(spec)
    assert torch.equal(handed_out.directions, trained.directions)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_what_no_seed_gives_again_is_refused() -> None:
    arguments = json.dumps({"seed": None})
    with pytest.raises(ScenarioError, match=r"no seed gives directions again, .*; use torch\.randn"):
        isolation.require(NetworkSpec(f"{__name__}:DrawnByNumpy", arguments, INPUTS, CLASSES))


@pytest.mark.parametrize("loops", [False, True])
def test_nobody_sees_at_whose_row_a_network_stops(loops: bool) -> None:
    """Its gradient counts as zero, as one that is not finite does; the others' are what they are."""

    def stops(self: Any, x: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        if bool((x.detach() > 100).any()):
            raise ValueError(f"a row with {float(x.detach().max())}")
        out: torch.Tensor = self.linear(x)
        return out

    spec, given, clip = held(module(run=stops)), examples(hops=0), 0.3
    assert isolation.require(spec).loops
    vector = start(spec)
    whole = example_gradients.clipped_sum(spec, vector, given, clip, 12, loops)
    rows = given.rows.copy()
    rows[given.samples.nodes[3, 0]] = 1e3
    there = example_gradients.clipped_sum(spec, vector, NetworkExamples(rows, given.samples, given.labels), clip, 12, loops)
    assert 0 < np.linalg.norm(whole.astype(float) - there) <= clip


def test_the_data_say_how_wide_a_network_is() -> None:
    spec = NetworkSpec("torch_geometric.nn:MLP", json.dumps({"channel_list": ["$inputs", 5, "$classes"], "norm": None}), 9, 4)
    assert next(tuple(p.shape) for p in own_network.trained(own_network.build(spec)).values()) == (5, 9)
    lazy = held(pyg.GraphSAGE(-1, 5, 2, out_channels=CLASSES))
    assert own_network.num_parameters(lazy) == own_network.num_parameters(
        NetworkSpec("torch_geometric.nn.GraphSAGE", json.dumps({"hidden_channels": 5, "num_layers": 2}), INPUTS, CLASSES)
    )


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        ("torch_geometric.nn.Nope", {}, "no class that can be imported"),
        ("GCN", {}, "is no dotted name"),
        ("torch_geometric.nn.GCN", {"hiden": 3}, "missing a required argument: 'hidden_channels'; arguments found: hiden"),
        ("held:0", {}, "no such module is in the memory"),
    ],
)
def test_what_is_no_network_is_said_in_one_line(model: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        own_network.require(model, arguments)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("os.path", "no class of torch modules"),
        ("nowhere.nets:Net", "no class that can be"),
        ("nets_ends:Net", r"'nets_ends:Net' is no class that can be imported \(SystemExit: 3\)"),
        ("nets_fails:Net", r"'nets_fails:Net' is no class that can be imported \(RuntimeError: no display\)"),
        ("nets_made:Net", r"nets_made:Net: cannot be run on 3 nodes .*SystemExit: 4"),
    ],
)
def test_a_name_of_another_package_is_looked_up_when_the_network_is_built(
    model: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings stand in models' files, too: reading them imports nobody's package. Then nothing that it does ends the run."""
    (tmp_path / "nets_ends.py").write_text("raise SystemExit(3)")
    (tmp_path / "nets_fails.py").write_text("raise RuntimeError('no display')")
    (tmp_path / "nets_made.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, in_channels):\n        raise SystemExit(4)"
    )
    monkeypatch.syspath_prepend(tmp_path)
    own_network.require(model, {})
    for look in (own_network.build, isolation.require):
        with pytest.raises(ScenarioError, match=words):
            look(NetworkSpec(model, "{}", INPUTS, CLASSES))


def shapes(found: rooted.RootedSamples) -> list[tuple[frozenset[int], frozenset[tuple[int, int]]]]:
    """Of each subgraph its nodes and its edges, by the numbers of nodes."""
    out = []
    for nodes, arcs in zip(found.nodes, found.arcs, strict=True):
        real = {(int(nodes[a]), int(nodes[b])) for a, b in arcs.T if nodes[a] >= 0}
        out.append((frozenset(nodes[nodes >= 0].tolist()), frozenset(real)))
    return out


def star(n: int) -> sp.csr_array:
    dense = graph(n, 0.1, 4).toarray()
    dense[0, 1:] = dense[1:, 0] = 1
    return sp.csr_array(dense)


@pytest.mark.parametrize("adjacency", [graph(50, 0.12), star(50)], ids=["random", "hub"])
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_node_that_goes_changes_only_the_subgraphs_that_hold_it(adjacency: sp.csr_array, hops: int) -> None:
    n, cap, coins = adjacency.shape[0], 2, np.random.default_rng(6).random((50, 50))

    def some(root: np.ndarray, node: np.ndarray) -> np.ndarray:
        return np.asarray(coins[root, node] < 0.6)

    def of(known: sp.csr_array) -> list[tuple[frozenset[int], frozenset[tuple[int, int]]]]:
        return shapes(rooted.subgraphs(known, np.arange(n), np.arange(n), some, cap, hops, 3))

    before = of(adjacency)
    for root, (nodes, edges) in enumerate(before):
        assert root in nodes
        assert len(nodes) <= sum(cap**i for i in range(hops + 1))
        assert all((b, a) in edges and adjacency[a, b] for a, b in edges)
        assert all(coins[root, node] < 0.6 for node in nodes - {root})
    for gone in range(0, n, 7):
        keep = sp.diags_array((np.arange(n) != gone).astype(np.float32))
        left = sp.csr_array(keep @ adjacency @ keep)
        left.eliminate_zeros()
        after = of(left)
        changed = {root for root in range(n) if before[root] != after[root]}
        assert changed <= {root for root in range(n) if gone in before[root][0]}
        assert all(gone not in after[root][0] for root in range(n) if root != gone)


def test_reach_counts_the_nodes_around_one() -> None:
    tree = np.zeros((22, 22))
    for child in range(1, 22):  # a root of three, everybody else of three at most
        parent = (child - 1) // 2 if child > 3 else 0
        tree[child, parent] = tree[parent, child] = 1
    most = int(tree.sum(axis=0).max())
    for hops in (1, 2):
        near = np.linalg.matrix_power(tree + np.eye(22), hops) > 0
        assert near.sum(axis=1).max() - 1 <= rooted.reach(most, hops)


def test_a_sum_moves_by_one_clip_for_one_example_whatever_it_holds() -> None:
    spec, clip = named("GAT"), 0.3
    given, vector = examples(), 4 * start(spec)
    whole = example_gradients.clipped_sum(spec, vector, given, clip, 12)
    for number in range(12):
        others = np.setdiff1d(np.arange(12), number)
        samples = rooted.RootedSamples(given.samples.nodes[others], given.samples.arcs[others])
        left = example_gradients.clipped_sum(spec, vector, NetworkExamples(given.rows, samples, given.labels[others]), clip, 12)
        assert 0 < np.linalg.norm(whole.astype(float) - left) <= clip
    rows = given.rows.copy()
    rows[given.samples.nodes[0, 0]] = np.nan
    broken = example_gradients.clipped_sum(spec, vector, NetworkExamples(rows, given.samples, given.labels), clip, 12)
    assert np.isfinite(broken).all(), "an example without a norm counts as zero"
