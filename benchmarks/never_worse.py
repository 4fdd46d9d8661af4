"""Is the drafted row of ``label_hop`` ever below the best of what one could write instead, at the same ε?

    python -m benchmarks.never_worse [--graphs facebook100/vassar85 drawn/hubs …] [--epsilons 1 2 4] [--seeds 3]

Test nodes stay private and ask, one trusted curator (``--trust sums``: ten clients behind sums), δ as in drafts. Rivals: rows
alone (``label_epsilon: 0``), the majority of neighbours' answers (``rows: false``), and both with a fixed share
(``label_epsilon: 0.65 ε``, at most 2.5). All meet the same splits; each draws its own noise.

Graphs: public ones by name; ``found/…``, files as published under ``FEDGRAPH_DATA/as_found``; and ``drawn/…``, made here.
Constants of the method were chosen with the others in sight, and none on these draws of ``drawn/kept-…``, though on their
kinds.

One line per graph and ε as soon as it is done: the mean accuracy of each over seeds, the least of the row's, and how far
below the best rival the row is, with the standard error of the seeds' differences. For two classes the line ends with the
AUROC of all four. Last, the worst line.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import rankdata

from fedgraph import data, runtime, seeds
from fedgraph.federation import rounds
from fedgraph.methods import label_hop
from fedgraph.methods.base import Budget
from fedgraph.methods.label_hop.releases import Params
from fedgraph.partition import uniform
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, GraphProvenance, Partition, Subgraph
from fedgraph.worlds import protocols
from fedgraph.worlds.dealt import DealtWorld
from fedgraph.worlds.world import world_of_trust


def made(name: str, ends: np.ndarray, labels: np.ndarray, rows: np.ndarray | sp.csr_array | None) -> Graph:
    """ends: int [m, 2]. rows: None where there are none: one column of ones."""
    n, ends = len(labels), ends[ends[:, 0] != ends[:, 1]]
    adjacency = sp.csr_array((np.ones(len(ends), np.float32), (ends[:, 0], ends[:, 1])), shape=(n, n))
    adjacency = sp.csr_array(((adjacency + adjacency.T) > 0).astype(np.float32))
    adjacency.sort_indices()
    features = sp.csr_array(np.ones((n, 1)) if rows is None else rows).astype(np.float32)
    _, classes = np.unique(labels, return_inverse=True)
    return Graph(
        name, adjacency, features, classes.astype(np.int64), int(classes.max()) + 1, GraphProvenance("own", "for a benchmark"),
        features_from_edges=False, columns_from_rows=False, nodes_from_edges=False,
    )  # fmt: skip


def polblogs(folder: Path) -> Graph:
    text = (folder / "polblogs.gml").read_text(encoding="utf-8")
    ids, labels, one, two = (np.array(re.findall(rf"\b{key} (\d+)", text), int) for key in ("id", "value", "source", "target"))
    place = {node: number for number, node in enumerate(ids)}
    ends = np.array([(place[a], place[b]) for a, b in zip(one, two, strict=True)])
    return made("polblogs", ends, labels, None)


def email(folder: Path) -> Graph:
    labels = np.loadtxt(folder / "email-Eu-core-department-labels.txt", dtype=int)[:, 1]
    return made("email", np.loadtxt(folder / "email-Eu-core.txt", dtype=int), labels, None)


def github(folder: Path) -> Graph:
    labels = pd.read_csv(folder / "git_target.csv")["ml_target"].to_numpy()
    return made("github", pd.read_csv(folder / "git_edges.csv").to_numpy(), labels, None)


def facebook_pages(folder: Path) -> Graph:
    labels = pd.read_csv(folder / "facebook_target.csv")["page_type"].to_numpy()
    words = json.loads((folder / "facebook_features.json").read_text(encoding="utf-8"))
    cells = np.array([(int(page), word) for page, own in words.items() for word in set(own)])
    rows = sp.csr_array((np.ones(len(cells)), (cells[:, 0], cells[:, 1])), shape=(len(labels), cells[:, 1].max() + 1))
    return made("facebook_pages", pd.read_csv(folder / "facebook_edges.csv").to_numpy(), labels, rows)


FOUND = {f"found/{reader.__name__}": reader for reader in (polblogs, email, github, facebook_pages)}


def drawn(
    name: str, n: int, shares: list[float], degree: float, like: float, columns: int = 0, strength: float = 0.0,
    spread: float = 0.5, hubs: int = 0, seed: int = 0,
) -> Graph:  # fmt: skip
    """A block model with lognormal degrees.

    Args:
        name: Of the graph.
        n: Nodes.
        shares: Of the classes.
        degree: Mean number of neighbours, about.
        like: Share of a node's edges that lead to its own class.
        columns: Of the rows, Gaussian around a centre for each class; 0: no rows.
        strength: Standard deviation of the centres, of which the noise has 1; 0: rows know nothing.
        spread: Of the logarithm of degrees.
        hubs: Nodes with sixty times the degree.
        seed: Of the draw.
    """
    rng, classes = np.random.default_rng(seed), len(shares)
    labels, weight = rng.choice(classes, n, p=np.array(shares) / sum(shares)), rng.lognormal(0, spread, n)
    weight[:hubs] *= 60
    one = rng.choice(n, int(n * degree / 2), p=weight / weight.sum())
    own, two = rng.random(one.size) < like, np.zeros(one.size, int)
    for k in range(classes):
        for chosen, pool in ((own, np.flatnonzero(labels == k)), (~own, np.flatnonzero(labels != k))):
            asked = chosen & (labels[one] == k)
            two[asked] = rng.choice(pool, asked.sum(), p=weight[pool] / weight[pool].sum())
    rows = strength * rng.standard_normal((classes, columns))[labels] + rng.standard_normal((n, columns)) if columns else None
    return made(name, np.stack([one, two], axis=1), labels, rows)


EVEN, MANY = [1.0] * 4, [*np.random.default_rng(5).dirichlet([2.0] * 42)]
DRAWN: dict[str, Callable[[], Graph]] = {
    f"drawn/{name}": (lambda name=name, settings=settings: drawn(name, **settings))  # type: ignore[misc]
    for name, settings in {
        "blocks": {"n": 3000, "shares": EVEN, "degree": 12, "like": 0.7, "columns": 60, "strength": 0.25},
        "hubs": {
            "n": 2000,
            "shares": EVEN[:3],
            "degree": 10,
            "like": 0.75,
            "columns": 40,
            "strength": 0.2,
            "spread": 1.6,
            "hubs": 5,
        },
        "dense": {"n": 5000, "shares": EVEN, "degree": 66, "like": 0.45, "columns": 500, "strength": 0.1},
        "featureless": {"n": 1500, "shares": [1, 1], "degree": 20, "like": 0.85, "spread": 1.2},
        "unlike": {"n": 2500, "shares": EVEN, "degree": 20, "like": 0.02, "columns": 30, "strength": 0.2},
        "unlike-pair": {"n": 2500, "shares": [1, 1], "degree": 20, "like": 0.1},
        "many-classes": {"n": 1200, "shares": MANY, "degree": 40, "like": 0.6, "spread": 1.0},
        "rare-class": {"n": 6000, "shares": [0.93, 0.07], "degree": 15, "like": 0.93, "columns": 12},
        "edges-say-nothing": {"n": 3000, "shares": EVEN, "degree": 12, "like": 0.25, "columns": 60, "strength": 0.25},
        "rows-say-nothing": {"n": 3000, "shares": EVEN, "degree": 12, "like": 0.7, "columns": 300},
        "kept-blocks": {
            "n": 4000,
            "shares": [4, 3, 2, 1, 1],
            "degree": 8,
            "like": 0.65,
            "columns": 25,
            "strength": 0.3,
            "seed": 2,
        },
        "kept-hubs": {
            "n": 3500,
            "shares": [2, 1],
            "degree": 6,
            "like": 0.8,
            "columns": 16,
            "strength": 0.3,
            "spread": 2.0,
            "hubs": 9,
            "seed": 2,
        },
        "kept-dense": {
            "n": 3000,
            "shares": [1] * 8,
            "degree": 90,
            "like": 0.3,
            "columns": 200,
            "strength": 0.2,
            "seed": 2,
        },
        "kept-featureless": {
            "n": 1000,
            "shares": [3, 2, 1],
            "degree": 14,
            "like": 0.75,
            "spread": 1.0,
            "seed": 2,
        },
        "kept-unlike": {
            "n": 3000,
            "shares": [1, 1, 1],
            "degree": 30,
            "like": 0.1,
            "columns": 20,
            "strength": 0.15,
            "seed": 2,
        },
        "kept-many-classes": {
            "n": 1500,
            "shares": [*np.random.default_rng(6).dirichlet([3.0] * 30)],
            "degree": 25,
            "like": 0.7,
            "seed": 2,
        },
        "kept-rare-class": {
            "n": 8000,
            "shares": [0.93, 0.07],
            "degree": 10,
            "like": 0.9,
            "columns": 8,
            "strength": 0.2,
            "seed": 2,
        },
    }.items()
}
GRAPHS = [*FOUND, *DRAWN, "facebook100/simmons81", "planetoid/cora", "planetoid/citeseer", "amazon/photo", "geom_gcn/chameleon"]


def rivals(epsilon: float) -> dict[str, Params]:
    """The drafted row first."""
    both = Params(label_epsilon=min(0.65 * epsilon, 2.5))
    return {"drafted": Params(), "rows": Params(label_epsilon=0), "votes": Params(rows=False), "both": both}


def scores(graph: Graph, params: Params, epsilon: float, seed: int, trust: Trust, engine: Runtime) -> tuple[float, float]:
    """(accuracy, AUROC of the second class where there are two)."""
    setting = protocols.make_setting(graph, "asking", 0.8, seeds.seeded_generator(seed, "split", graph.name))
    held = setting.held
    whole = Partition((Subgraph(0, held, np.arange(held.num_nodes)),), True, 0, "one", from_edges=False, from_labels=False)
    dealt = uniform.split(held, uniform.Params(clients=10), seeds.seeded_generator(seed, "deal"))
    partition = whole if trust is Trust.CURATOR else dealt
    facts = DealtWorld(world_of_trust(trust), setting, partition, "dropped", 1).facts
    plan = label_hop.plan(params, facts, Budget(epsilon, min(1e-4, 0.1 / graph.num_nodes)))
    shared = engine.share(f"{graph.name}:{seed}", partition)
    path = (graph.name, str(params.rows), str(params.label_epsilon))
    state = rounds.run(engine, shared, plan, seed, path, path, rounds.RoundPrefixes()).state
    engine.forget(shared)
    found, truth = label_hop.predict(plan, state, setting.asked), setting.truth
    asked = truth >= 0
    right = float((found.argmax(axis=1) == truth)[asked].mean())
    if graph.num_classes != 2:
        return right, math.nan
    rank, rare = rankdata(found[asked, 1] - found[asked, 0]), truth[asked] == 1
    return right, float((rank[rare].mean() - (rare.sum() + 1) / 2) / (~rare).sum())


def load(name: str, root: str | None) -> Graph:
    if name in FOUND:
        return FOUND[name](Path(root or ".") / "as_found" / name.removeprefix("found/"))
    found = DRAWN[name]() if name in DRAWN else data.load(name, root=None if root is None else Path(root))
    if not isinstance(found, Graph):
        raise SystemExit(f"{name} is a collection of graphs; this needs one graph")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trust", type=Trust, default=Trust.CURATOR, choices=[Trust.CURATOR, Trust.SUMS])
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    worst: tuple[float, str] = (-math.inf, "nothing was run")
    with runtime.start("serial") as engine:
        for name in args.graphs:
            graph = load(name, args.data_root)
            for epsilon in args.epsilons:
                found = {
                    row: np.array([scores(graph, params, epsilon, seed, args.trust, engine) for seed in range(args.seeds)])
                    for row, params in rivals(epsilon).items()
                }
                means = {row: float(each[:, 0].mean()) for row, each in found.items()}
                best = max([row for row in means if row != "drafted"], key=means.__getitem__)
                below = found[best][:, 0] - found["drafted"][:, 0]
                error = float(below.std(ddof=1)) / math.sqrt(args.seeds) if args.seeds >= 3 else math.nan
                line = f"{name:26} ε = {epsilon:<4g}" + "  ".join(f"{row} {mean:.3f}" for row, mean in means.items())
                line += f"  least {found['drafted'][:, 0].min():.3f}; below {best} {below.mean():+.3f} ± {error:.3f}"
                if graph.num_classes == 2:
                    line += "; AUROC " + " ".join(f"{each[:, 1].mean():.2f}" for each in found.values())
                print(line, flush=True)
                worst = max(worst, (float(below.mean()), line))
    print(f"worst: {worst[1]}")


if __name__ == "__main__":
    main()
