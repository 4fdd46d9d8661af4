"""GAP at edge level "as published" beside a plain loop of the paper that shares no line with it: is one above the other?

    python -m benchmarks.gap_plain [--graph facebook100/mit8] [--epsilons 1 4 inf] [--seeds 24]

Both have K = 2 hops, 16 units, 100 full-batch steps of Adam for either network, and the noise of Δ = 1 per hop at δ = 1e-6; a
tenth of the labelled nodes chooses the step. Each seed has a split, networks and noise of its own in either column: the two are
compared as independent draws: mean accuracy, and the difference with its standard error.
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile

import numpy as np
import torch
from dp_accounting.dp_event import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.mechanism_calibration import calibrate_dp_mechanism
from dp_accounting.pld import PLDAccountant
from torch.nn import functional

import fedgraph
from fedgraph import data
from fedgraph.types import Graph

HOPS, HIDDEN, STEPS, DELTA = 2, 16, 100, 1e-6


class Perceptron(torch.nn.Module):
    """One linear map for each part of the input, side by side, to unit length where asked, and a head behind a batch norm."""

    def __init__(self, widths: list[int], num_classes: int, *, deep: bool) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(width, HIDDEN) for width in widths)
        self.middle = torch.nn.Sequential(torch.nn.BatchNorm1d(HIDDEN), torch.nn.SELU(), torch.nn.Linear(HIDDEN, HIDDEN))
        self.deep, joined = deep, HIDDEN * len(widths)
        self.head = torch.nn.Sequential(torch.nn.BatchNorm1d(joined), torch.nn.SELU(), torch.nn.Linear(joined, num_classes))

    def rows(self, parts: list[torch.Tensor]) -> torch.Tensor:
        joined = torch.cat([linear(part) for linear, part in zip(self.parts, parts, strict=True)], dim=1)
        return functional.normalize(self.middle(joined) if self.deep else joined, dim=1)

    def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
        found: torch.Tensor = self.head(self.rows(parts))
        return found


def fitted(net: Perceptron, x: list[torch.Tensor], labels: torch.Tensor, learns: np.ndarray, judges: np.ndarray) -> Perceptron:
    """After the step that was best on ``judges``."""
    adam, most, best = torch.optim.Adam(net.parameters(), lr=0.01), -1.0, net.state_dict()
    for _ in range(STEPS):
        net.train()
        adam.zero_grad()
        functional.cross_entropy(net(x)[learns], labels[learns]).backward()  # type: ignore[no-untyped-call]
        adam.step()
        net.eval()
        with torch.no_grad():
            right = float((net(x)[judges].argmax(dim=1) == labels[judges]).float().mean())
        if right > most:
            most, best = right, copy.deepcopy(net.state_dict())
    net.load_state_dict(best)
    return net.eval()


def plain(graph: Graph, std: float, seed: int) -> float:
    """Accuracy on a fifth of the nodes. std: of the noise of a hop."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(graph.num_nodes)
    train, test = order[: int(0.8 * order.size)], order[int(0.8 * order.size) :]
    judges, learns = train[: train.size // 10], train[train.size // 10 :]
    labels = torch.tensor(graph.labels)
    features = [functional.normalize(torch.tensor(graph.features.toarray(), dtype=torch.float32), dim=1)]
    encoder = fitted(Perceptron([graph.num_features], graph.num_classes, deep=True), features, labels, learns, judges)
    with torch.no_grad():
        hops = [encoder.rows(features).numpy()]
    for _ in range(HOPS):
        sums = graph.adjacency @ hops[-1] + rng.normal(0.0, std, hops[-1].shape)
        hops.append(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12))
    parts = [torch.tensor(one, dtype=torch.float32) for one in hops]
    net = fitted(Perceptron([HIDDEN] * len(parts), graph.num_classes, deep=False), parts, labels, learns, judges)
    with torch.no_grad():
        return float((net(parts)[test].argmax(dim=1) == labels[test]).float().mean())


def of_the_method(args: argparse.Namespace) -> dict[float, list[float]]:
    """ε → accuracy of each seed of ``gap_edge``."""
    method = {"method": "gap_edge", "hops": HOPS, "encoder": "published", "hidden": HIDDEN, "depth": "all", "epochs": STEPS}
    budgets = [e if np.isfinite(e) else "inf" for e in args.epsilons]
    task = {"task": "node_classification", "protocol": "transductive", "epsilons": budgets, "delta": DELTA,
            "calibrated_by": ["published"], "trust": ["curator"], "methods": [method]}  # fmt: skip
    asked = {"name": "gap_plain", "seed": 3, "seeds": args.seeds, "runtime": {"engine": "serial"},
             "datasets": [{"name": args.graph}], "tasks": [task]}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        lines = fedgraph.run(asked, out=folder, data_root=args.data_root, quiet=True).table()
    return {e: lines.loc[lines["epsilon"] == e, "accuracy"].to_list() for e in args.epsilons}


def noise(epsilon: float) -> float:
    """Standard deviation of a hop, by dp-accounting."""
    if np.isinf(epsilon):
        return 0.0
    return float(calibrate_dp_mechanism(PLDAccountant, lambda s: SelfComposedDpEvent(GaussianDpEvent(s), HOPS), epsilon, DELTA))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--graph", default="facebook100/mit8")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1, 4, np.inf])
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    graph = data.load(args.graph, root=args.data_root)
    if not isinstance(graph, Graph):
        raise SystemExit(f"{args.graph} is a collection of graphs; this needs one graph")
    ours = of_the_method(args)
    for epsilon in args.epsilons:
        std = noise(epsilon)
        both = np.array([ours[epsilon], [plain(graph, std, seed) for seed in range(args.seeds)]])
        error = np.sqrt(both.var(axis=1, ddof=1).sum() / args.seeds)
        print(f"ε = {epsilon:g}: gap_edge {both[0].mean():.3f}, plain {both[1].mean():.3f}, "
              f"difference {both[0].mean() - both[1].mean():+.3f} ± {error:.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
