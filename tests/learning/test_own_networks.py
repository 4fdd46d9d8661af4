"""Networks that others wrote: what they read of a graph, their gradients for each example, and what is refused."""

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
    given, vector = examples(), start(spec)
    one, many = (take(spec, vector, given) for take in (example_gradients.looped, example_gradients.vmapped))
    assert many.dtype == torch.float64
    assert torch.allclose(one, many, rtol=1e-12, atol=1e-15)  # some processors cut products in other blocks
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


def module(run: Any, **parts: Any) -> Any:
    """A module whose forward is ``run(self, x, edge_index)``; one of the ``parts`` may be no module."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(INPUTS, CLASSES)
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: Any, edge_index: Any) -> Any:
            return run(self, x, edge_index)

    return Net()


def plain(self: Any, x: Any, edge_index: Any) -> Any:
    return self.linear(x)


def gcn(norm: str) -> Any:
    return pyg.GCN(INPUTS, 6, 2, CLASSES, norm=norm)


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
    net = module(plain)
    net.linear.register_forward_hook(lambda *given: None)
    return net


def attends_to_edges(self: Any, x: Any, edge_index: Any) -> Any:
    """Attention over all edges, where a softmax over the edges of each node was meant."""
    source, target = edge_index
    weights = torch.softmax((x[source] * x[target]).sum(1), 0)
    return self.linear(x + torch.zeros_like(x).index_add(0, target, weights[:, None] * x[source]))


def brought() -> Any:
    return module(lambda self, x, e: self.linear(x) + self.more, more=torch.nn.Parameter(torch.ones(CLASSES)))


def counts_classes() -> Any:
    """Scores that are moved by how many people each class has, as those of the data: a tensor of whole numbers."""
    net = module(lambda self, x, e: self.linear(x) + self.counts.to(x.dtype).log())
    net.register_buffer("counts", torch.tensor([5, 9, 2]))
    return net


class Caches(torch.nn.Linear):
    """A layer that keeps, in its class, what it computed for each number of rows."""

    kept: ClassVar[dict[int, Any]] = {}

    def forward(self, x: Any) -> Any:
        return super().forward(x + self.kept.setdefault(len(x), x.mean(0)))


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


class Same(torch.autograd.Function):
    """What is given, with its gradient."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        del ctx, inputs, output

    @staticmethod
    def backward(ctx: Any, given: Any) -> Any:
        return given


class Reversed(Same):
    """Reads, in its backward pass, what an earlier one left."""

    last: ClassVar[list[Any]] = []

    @staticmethod
    def backward(ctx: Any, given: Any) -> Any:
        Reversed.last.append(1)
        return given * (1 + (len(Reversed.last) > 1000))


class Mixes(Same):
    """Whose rule for vmap adds what a batch has in common, where it is a large one."""

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

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def forward(self, x: Any) -> Any:
        self.seen += 1
        return self.linear(x)


ROWS = np.ones(INPUTS)


def reads_another() -> Any:
    other = torch.nn.Linear(INPUTS, INPUTS).double()
    return module(lambda self, x, e: self.linear(x) + 0 * other(x.double()).sum())


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


def with_layer_of_a_class() -> Any:
    net = module(lambda self, x, e: self.act(self.linear(x)))
    type(net).act = torch.nn.ReLU()
    return net


REFUSED = {
    "batch norm": (lambda: gcn("batch_norm"), r"layer norms\.0 \(BatchNorm\).*use torch.nn.LayerNorm"),
    "a norm over the graph": (lambda: gcn("graph_norm"), r"layer norms\.0 \(GraphNorm\) reads nodes to which"),
    "layer norm over the graph": (lambda: gcn("layer_norm"), r"\(LayerNorm\).*use mode='node'"),
    "a buffer that trains": (lambda: module(lambda self, x, e: self.count(self.linear(x)), count=Counter()),
        r"layer count \(Counter\) changes count.mean"),
    "attention over all": (lambda: module(lambda self, x, e: torch.softmax(x @ x.T, 1) @ self.linear(x)),
        "reads nodes to which no edge leads"),
    "attention over all edges": (lambda: module(attends_to_edges), "reads edges that lead to no node"),
    "a number of edges": (lambda: module(lambda self, x, e: self.linear(x) / e.shape[1]), "or how many there are"),
    "random numbers": (lambda: module(lambda self, x, e: self.linear(x + torch.rand_like(x))), "draws random numbers"),
    "a cache in its class": (lambda: module(plain, linear=Caches(INPUTS, CLASSES)),
        r"keeps something in Caches\.kept when it is run, .*use what forward computes anew in each call"),
    "a number of calls in its class": (Counts, r"keeps something in Counts\.calls when it is run"),
    "a queue of its file": (lambda: module(queues), "keeps something in QUEUE of run of Net.forward"),
    "a memory of its backward pass": (lambda: module(lambda self, x, e: Reversed.apply(self.linear(x))),
        r"keeps something in Reversed\.last when it is run"),
    "a cache of a function": (lambda: module(lambda self, x, e: self.linear(x) * weights_of(len(x))),
        "keeps something in weights_of of .* when it is run"),
    "a copy that is itself": (Shares, "keeps something in seen when it is run"),
    "a rule of its own for large batches": (lambda: module(lambda self, x, e: self.linear(Mixes.apply(x))),
        "gives another gradient in a large batch"),
    "rows of its file": (lambda: module(lambda self, x, e: self.linear(x + float(ROWS.mean()))),
        "draws what it keeps as ROWS of run of Net.*from what data"),
    "another network": (reads_another, "draws what it keeps as other of .*from what data"),
    "long lists of numbers": (lambda: module(plain, table=[0.5] * 20), "draws what it keeps as table, .*from what data"),
    "means in a list of arrays": (lambda: module(plain, table={"of": [np.ones(INPUTS)]}),
        r"draws what it keeps as table\[of\]\[0\].*from what data are they"),
    "weights that are read in the place of a draw": (lambda: ReadsThemAgain(INPUTS, CLASSES), "draws weight, .*from what data"),
    "weights that it does not show": (Hides, "draws more, .*from what data"),
    "weights that nobody drew": (brought, "from what data are they.*weights='public'"),
    "numbers that nobody drew": (counts_classes, r"draws counts, .*from what data are they"),
    "roots of rows": (lambda: module(lambda self, x, e: self.linear(torch.log(-x.abs()))),
        "no weight has a gradient on random rows"),
    "hooks": (hooked, r"layer linear \(Linear\) has hooks"),
    "a graph that is kept": (lambda: pyg.SGConv(INPUTS, CLASSES, cached=True), "keeps the first graph"),
    "layers in a list": (lambda: module(plain, layers=[torch.nn.Linear(3, 3)]),
        r"layers of \w+ keeps modules where torch does not look for them \(list\), .*use torch\.nn\.ModuleList$"),
    "layers in a table of lists": (lambda: module(plain, layers={"first": (torch.nn.Linear(3, 3),)}),
        r"layers of .*\(dict\), .*use torch\.nn\.ModuleDict$"),
    "a layer of a class": (with_layer_of_a_class, r"act of \w+ keeps modules .*\(ReLU\), .*use self\.… in __init__$"),
    "too few scores": (lambda: torch.nn.Linear(INPUTS, CLASSES + 1), r"gives \(3, 4\) for 3 nodes"),
    "nothing that trains": (lambda: module(lambda self, x, e: x[:, :CLASSES], linear=torch.nn.Identity()),
        "no parameter that trains"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_ties_examples_together_is_refused_with_its_name(what: str) -> None:
    made, words = REFUSED[what]
    with pytest.raises(ScenarioError, match=words) as refused:
        isolation.require(held(made()))
    assert "\n" not in str(refused.value)


def test_a_list_of_layers_that_torch_knows_is_no_fault() -> None:
    net = module(lambda self, x, e: self.layers[0](x))
    net.layers = [net.linear]
    assert not isolation.require(held(net)).loops


def test_networks_that_look_alike_are_each_looked_at() -> None:
    """A seed gives two networks of one shape the same weights; only the code of their ``forward`` tells them apart."""
    made = []
    for run in (lambda self, x, e: self.linear(x), lambda self, x, e: self.linear(x - x.mean(0))):
        torch.manual_seed(5)
        made.append(module(run))
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


@pytest.mark.parametrize("loops", [False, True])
def test_who_is_answered_by_its_own_row_is_shown_to_the_network_alone(loops: bool) -> None:
    spec = held(module(lambda self, x, e: self.linear(x - x.mean(0) if len(x) > 1 else x)))
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


def test_weights_that_nobody_drew_are_asked_about_and_kept_where_they_are_said_to_be_public() -> None:
    spec = NetworkSpec(f"{__name__}:ReadsItsWeights", "{}", INPUTS, CLASSES)
    with pytest.raises(ScenarioError, match=r"nothing draws weight, .*from what data are they"):
        isolation.require(spec)
    isolation.require(replace(spec, weights="public"))
    net = brought()
    isolation.require(held(net, "public"))
    assert np.array_equal(start(held(net, "public")), own_network.flat(net))
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
    with pytest.raises(ScenarioError, match=r"no seed gives directions again, .*; use torch\.randn"):
        isolation.require(replace(spec, arguments=json.dumps({"seed": None})))


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


MADE = "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, in_channels):\n        raise SystemExit(4)"


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        ("os.path", "", "no class of torch modules"),
        ("nowhere.nets:Net", "", "no class that can be"),
        ("nets_ends:Net", "raise SystemExit(3)", r"'nets_ends:Net' is no class that can be imported \(SystemExit: 3\)"),
        ("nets_fails:Net", "raise RuntimeError('no display')", r"can be imported \(RuntimeError: no display\)"),
        ("nets_made:Net", MADE, r"nets_made:Net: cannot be run on 3 nodes .*SystemExit: 4"),
    ],
)
def test_a_name_of_another_package_is_looked_up_when_the_network_is_built(
    model: str, code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings stand in models' files, too: reading them imports nobody's package. Then nothing that it does ends the run."""
    if code:
        (tmp_path / f"{model.partition(':')[0]}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    own_network.require(model, {})
    for look in (own_network.build, isolation.require):
        with pytest.raises(ScenarioError, match=words):
            look(NetworkSpec(model, "{}", INPUTS, CLASSES))


def star(n: int) -> sp.csr_array:
    dense = graph(n, 0.1, 4).toarray()
    dense[0, 1:] = dense[1:, 0] = 1
    return sp.csr_array(dense)


@pytest.mark.parametrize("adjacency", [graph(50, 0.12), star(50)], ids=["random", "hub"])
@pytest.mark.parametrize("hops", [1, 3])
def test_a_node_that_goes_changes_only_the_subgraphs_that_hold_it(adjacency: sp.csr_array, hops: int) -> None:
    n, cap, coins = adjacency.shape[0], 2, np.random.default_rng(6).random((50, 50)) < 0.6

    def of(known: sp.csr_array) -> list[tuple[set[int], set[tuple[int, int]]]]:
        """Of each subgraph its nodes and its edges."""
        found = rooted.subgraphs(known, np.arange(n), np.arange(n), lambda root, node: coins[root, node], cap, hops, 3)
        return [
            (set(nodes[nodes >= 0].tolist()), {(int(nodes[a]), int(nodes[b])) for a, b in arcs.T if nodes[a] >= 0})
            for nodes, arcs in zip(found.nodes, found.arcs, strict=True)
        ]

    before = of(adjacency)
    for root, (nodes, edges) in enumerate(before):
        assert root in nodes
        assert len(nodes) <= sum(cap**i for i in range(hops + 1))
        assert all((b, a) in edges and adjacency[a, b] for a, b in edges)
        assert all(coins[root, node] for node in nodes - {root})
    for gone in range(0, n, 7):
        keep = sp.diags_array((np.arange(n) != gone).astype(np.float32))
        left = sp.csr_array(keep @ adjacency @ keep)
        left.eliminate_zeros()
        after = of(left)
        assert all(before[root] == after[root] or gone in before[root][0] for root in range(n))
        assert all(gone not in after[root][0] for root in range(n) if root != gone)


def test_an_example_without_a_norm_counts_as_zero() -> None:
    spec, given = named("GAT"), examples()
    vector, rows = 4 * start(spec), given.rows.copy()
    rows[given.samples.nodes[0, 0]] = np.nan
    broken = example_gradients.clipped_sum(spec, vector, NetworkExamples(rows, given.samples, given.labels), 0.3, 12)
    assert np.isfinite(broken).all()
