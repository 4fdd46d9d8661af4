"""A network of one's own, trained privately: what a step costs, and what it gives beside other methods.

    python -m benchmarks.own_model speed                 # a step of 512 roots against the same step without privacy
    python -m benchmarks.own_model table                 # accuracy on CiteSeer and Cora-ML: twenty minutes of a core
    python -m benchmarks.own_model table --data made/neighbours-decide --epsilons 8 inf --rows MLP "SAGE, 10 mentions"
    python -m benchmarks.own_model noise                 # what reading neighbours costs, in noise
    python -m benchmarks.own_model attack                # canaries in one run each on CiteSeer, and LiRA

The step without privacy has the same subgraphs as one graph of separate parts, single precision, and one gradient of the mean
loss. The table's rows are those of ``scenarios/own_model.yaml`` at a curator, without the attack, and a few more.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas
import scipy.sparse as sp
import torch
import torch_geometric.nn
import yaml

import fedgraph
from fedgraph import data
from fedgraph.learning import NetworkExamples, NetworkSpec, example_gradients, own_network, rooted
from fedgraph.methods.base import examples

_SCENARIO = Path(__file__).parents[1] / "scenarios" / "own_model.yaml"
_SHAPE = {"hidden_channels": 64, "num_layers": 2}
_NETWORKS = {"SAGE": "GraphSAGE", "GCN": "GCN", "GIN": "GIN", "GAT": "GAT"}


def _best(step: Callable[[], object], times: int = 5) -> float:
    """CPU seconds of the fastest of some calls, after one that is not counted."""
    step()
    return min(_once(step) for _ in range(times))


def _once(step: Callable[[], object]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def _room_of_the_largest(self: rooted.RootedSamples, own: Callable[..., np.ndarray] = rooted.RootedSamples.rooms) -> np.ndarray:
    """What all examples were given before each got the room that it asks for, so that none shows how large others are."""
    return np.full(len(self.nodes), own(self).max(initial=1))


def _examples(roots: int, cap: int, hops: int, inputs: int) -> NetworkExamples:
    """Roots of a random graph of 4,000 nodes with ten neighbours each on average, of which all may be read."""
    n, rng = 4000, np.random.default_rng(0)
    ends = rng.integers(n, size=(2, 5 * n))
    ends = ends[:, ends[0] != ends[1]]
    half = sp.coo_array((np.ones(ends.shape[1], np.float32), tuple(ends)), shape=(n, n))
    graph = sp.csr_array((half + half.T) > 0).astype(np.float32)
    found = rooted.subgraphs(graph, np.arange(n), np.arange(roots), lambda root, node: node >= 0, cap, hops, 0)
    return NetworkExamples(rng.normal(size=(n, inputs)).astype(np.float32), found, rng.integers(6, size=roots))


def _plain(spec: NetworkSpec, vector: np.ndarray, given: NetworkExamples) -> np.ndarray:
    """One gradient of the mean loss of all examples, which are parts of one graph."""
    x, arcs, labels = given.at(slice(None), torch.float32)
    module, parameters = own_network.filled(spec, vector, torch.float32)
    size = x.shape[1]
    joined = (arcs + size * torch.arange(len(x))[:, None, None]).transpose(0, 1).reshape(2, -1)
    known = {name: value.requires_grad_(True) for name, value in parameters.items()}
    scores = torch.func.functional_call(module, known, (x.reshape(-1, x.shape[2]), joined))
    loss = torch.nn.functional.cross_entropy(scores[::size], labels)
    return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(known.values()))]).numpy()


def speed(roots: int = 512, cap: int = 5, hops: int = 2, inputs: int = 64) -> None:
    """CPU seconds of a step with clipped gradients over those of the plain step, in one thread."""
    torch.set_num_threads(1)
    given = _examples(roots, cap, hops, inputs)
    print(f"{roots} roots, {cap} neighbours, {hops} hops, {inputs} columns, 64 units; one thread; milliseconds of a step")
    print("| network | plain | private | times | loop | private, root alone | all in one room |\n|---|---|---|---|---|---|---|")
    alone = _examples(roots, cap, 0, inputs)
    for name, model in _NETWORKS.items():
        spec = NetworkSpec(f"torch_geometric.nn.{model}", json.dumps(_SHAPE), inputs, 6)
        vector = own_network.start(spec, np.random.default_rng(0))

        def private(examples: NetworkExamples, spec: Any = spec, vector: Any = vector, loops: bool = False) -> np.ndarray:
            return example_gradients.clipped_sum(spec, vector, examples, 1.0, roots, loops)

        plain = _best(lambda spec=spec, vector=vector: _plain(spec, vector, given))  # type: ignore[misc]
        found, single = _best(lambda private=private: private(given)), _best(lambda private=private: private(alone))  # type: ignore[misc]
        with mock.patch.object(rooted.RootedSamples, "rooms", _room_of_the_largest):
            one_room = _best(lambda private=private: private(given))  # type: ignore[misc]
        loop = _once(lambda private=private: private(given, loops=True))  # type: ignore[misc]
        each = (1e3 * plain, 1e3 * found, found / plain, 1e3 * loop, 1e3 * single, 1e3 * one_room)
        print("| {} | {:.0f} | {:.0f} | {:.1f} | {:.0f} | {:.0f} | {:.0f} |".format(name, *each), flush=True)


class Appnp(torch.nn.Module):
    """Scores of rows by one hidden layer, spread over ten steps (Gasteiger et al., ICLR 2019), of PyG's parts."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        sizes = [in_channels, hidden_channels, out_channels]
        self.rows, self.spread = torch_geometric.nn.MLP(sizes, norm=None), torch_geometric.nn.APPNP(10, 0.1)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.spread(self.rows(x), edge_index)


def neighbours_decide(folder: Path, nodes: int = 2000, classes: int = 4, degree: int = 40) -> Path:
    """A generated graph in which a row says nothing of its own node's class, and the rows of its neighbours say everything.

    Each node draws a class and, apart from it, a mark, which is its row (one-hot). Edges lead between nodes of which each has
    the mark of the other's class; one in twenty, or so, between any two. No degree is above 54.
    """
    rng = np.random.default_rng(0)
    label, mark = rng.integers(classes, size=(2, nodes))
    ends = rng.integers(nodes, size=(2, 8 * classes**2 * nodes * degree // 16))
    one, two = ends
    fits = (mark[one] == label[two]) & (mark[two] == label[one]) | (rng.random(one.size) < 0.05 / classes**2)
    ends = ends[:, fits & (one != two)][:, : nodes * degree // 2]
    half = sp.coo_array((np.ones(ends.shape[1], np.float32), tuple(ends)), shape=(nodes, nodes))
    found, rows = sp.csr_array((half + half.T) > 0).astype(np.float32), sp.csr_array(np.eye(classes, dtype=np.float32)[mark])
    parts = {
        f"{name}_{key}": getattr(of, key)
        for name, of in (("adj", found), ("attr", rows))
        for key in ("data", "indices", "indptr", "shape")
    }
    np.savez(folder / "neighbours_decide.npz", labels=label, **parts)
    return folder / "neighbours_decide.npz"


def _rows(unit: str) -> list[dict[str, Any]]:
    """Every row that the table may have, for a unit."""
    net = {"hidden_channels": 32, "num_layers": 2}
    if unit == "edge":
        own = {"method": "own_model", "unit": "edge", "model": "torch_geometric.nn.MLP", "arguments": {**net, "norm": None}}
        return [own | {"label": "MLP on noisy hops"}, {"method": "gap_edge", "label": "GAP-EDP"}]
    (task,) = yaml.safe_load(_SCENARIO.read_text(encoding="utf-8"))["tasks"]
    own, reads = {"method": "own_model"}, {"mentions": 10, "hops": 1, "cap": "promised", "degree": 100}
    line = {"model": "torch.nn.Linear", "arguments": {"in_features": "$inputs", "out_features": "$classes"}}
    return [
        *task["methods"],
        {**own, "label": "Linear", **line, "learning_rate": 0.1},
        {**own, "label": "GATv2", "model": "torch_geometric.nn.GAT", "arguments": {**net, "heads": 2, "v2": True}},
        {**own, "label": "APPNP", "model": "benchmarks.own_model:Appnp", "arguments": {"hidden_channels": 32}},
        {**own, "label": "SAGE, 10 mentions", "model": "torch_geometric.nn.GraphSAGE", "arguments": net, **reads},
        {"method": "label_hop", "label": "label_hop"},
        {"method": "gap_node", "label": "GAP-NDP"},
    ]


def table(names: list[str], seeds: int, epsilons: list[float], protocol: str, unit: str, rows: list[str]) -> None:
    """Mean test accuracy of each row over seeds ± one deviation, as lines of CSV; and how far each row is from the first one,
    on equal splits, ± the standard error.
    """
    apart, trust = json.loads(json.dumps(_rows(unit))), ["curator"]  # no row shares a part with another
    known = {row["label"]: {**row, "trust": trust[:]} for row in apart}
    if missing := sorted(set(rows) - set(known)):
        raise SystemExit(f"no row {missing}; allowed: {sorted(known)}")
    methods = [known[label] for label in rows or known]
    task: dict[str, Any] = {"task": "node_classification", "label": "table", "protocol": protocol, "epsilons": epsilons}
    task |= {"trust": trust, "methods": methods}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            given: dict[str, Any] = {"name": name}
            if name == "made/neighbours-decide":
                given = {"name": "own/read", "path": str(neighbours_decide(Path(folder)))}
            asked = {"name": "own_model", "seed": 1, "seeds": seeds, "runtime": {"engine": "serial"}, "datasets": [given]}
            run = fedgraph.run(asked | {"tasks": [task]}, out=Path(folder) / name.replace("/", "-"), quiet=True)
            found = pandas.read_csv(run.folder / "results.csv")
            found = found[found["metric"] == "accuracy"]
            here = found.groupby(["variant", "epsilon"], sort=False)["value"].agg(["mean", "std"])
            budgets = sorted(set(here.index.get_level_values(1)))
            lines = [[f"{name} ({seeds} seed{'s' * (seeds > 1)})", *(f"ε = {e:g}" for e in budgets)]]
            labels = list(dict.fromkeys(here.index.get_level_values(0)))
            lines += [[row, *(_cell(here.loc[(row, e)]) for e in budgets)] for row in labels]
            each = found.pivot_table("value", "seed", ["variant", "epsilon"])
            far = each.sub(each[labels[0]], level="epsilon").agg(["mean", "sem"]).T.rename(columns={"sem": "std"})
            lines += [[f"{row} − {labels[0]}", *(_cell(far.loc[(row, e)]) for e in budgets)] for row in labels[1:]]
            csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
            sys.stdout.flush()


def _cell(of: Any) -> str:
    return f"{of['mean']:.3f}" + (f" ± {of['std']:.3f}" if of["std"] == of["std"] else "")


def noise(people: int = 1600, steps: int = 100) -> None:
    """Noise over the clip that some ways of reading neighbours ask for, at δ = 1/people."""
    print("mentions,cap,ε = 1,ε = 8")
    for mentions, cap, degree in ((0, "all", 0), (10, "all", 0), (10, "promised", 100), (100, "all", 0)):
        rule = examples.rule(cap, degree, mentions, 1, 0.2, False, people)
        needed = [examples.noise_multiplier(rule, steps, epsilon, 1 / people)[0] for epsilon in (1.0, 8.0)]
        print(f"{mentions},{cap}{f' {degree}' * (degree > 0)}," + ",".join(f"{one:.1f}" for one in needed))


def attack(name: str) -> None:
    """What canaries in one run prove of a GCN, as it is and with every root in every step; and of a layer that hides none of
    them: gradients are at the clip, and each canary's word has weights of its own. At last what LiRA proves of the model alone.
    """
    whole = data.load(name)
    order = np.random.default_rng(0).permutation(whole.num_nodes)  # type: ignore[union-attr]
    cut = 4 * len(order) // 5
    people, public = (whole.induced(np.sort(part)) for part in (order[:cut], order[cut:]))  # type: ignore[union-attr]
    gcn = torch_geometric.nn.GCN(-1, 32, 2, out_channels=people.num_classes)
    layer = torch.nn.Linear(people.num_features, people.num_classes, bias=False)
    open_ = {"sampling_rate": 1.0, "steps": 20, "projection": 0, "clip": 0.5}
    several: tuple[tuple[str, torch.nn.Module, float, int, dict[str, Any]], ...] = (
        ("GCN", gcn, 8, 500, {}),
        ("GCN", gcn, 8, 500, {"sampling_rate": 1.0, "steps": 60}),
        *(("a layer without bias", layer, epsilon, 1000, open_) for epsilon in (1, 4, 8)),
    )
    for words, module, epsilon, canaries, settings in several:
        private = fedgraph.private(module, people, epsilon=epsilon, public=public, **settings)
        print(f"{words} {settings or ''}: {private.attack(canaries=canaries)}", flush=True)
    print(f"GCN: {fedgraph.private(gcn, people, epsilon=8, public=public).attack('lira')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "table", "noise", "attack"))
    parser.add_argument("--data", action="append", help="a data set of the table, as often as wanted")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 4.0, 8.0, float("inf")])
    parser.add_argument("--protocol", help="of the table (default inductive; transductive with --unit edge)")
    parser.add_argument("--unit", choices=("node", "edge"), default="node")
    parser.add_argument("--rows", nargs="+", default=[], help="labels of some rows (default: all)")
    given = parser.parse_args()
    if given.what == "speed":
        speed()
    elif given.what == "noise":
        noise()
    elif given.what == "attack":
        attack((given.data or ["planetoid/citeseer"])[0])
    else:
        protocol = given.protocol or ("transductive" if given.unit == "edge" else "inductive")
        names = given.data or ["planetoid/citeseer", "citation_full/cora_ml"]
        table(names, given.seeds, given.epsilons, protocol, given.unit, given.rows)


if __name__ == "__main__":
    main()
