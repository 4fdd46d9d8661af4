"""The two tasks over small graphs: who holds what, what rows cost, what a comparison can see, and what is refused."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.model_selection import StratifiedKFold

from fedgraph import data, runtime
from fedgraph.comparison import ClassifySplit, classify, gromov
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import world_of_trust
from fedgraph.partition import dirichlet
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Relation, Unit
from fedgraph.tasks import graph_classification, graph_clustering
from fedgraph.tasks.base import Cell, CellContext, Result, graphs
from fedgraph.types import Graph, GraphCollection, plain_graph

GCN = {"method": "local_dp", "label": "gcn", "rounds": 2, "hidden": 4}
GIN = GCN | {"label": "gin", "model": "gin", "layers": 2, "embedding": "hidden"}


@pytest.fixture(autouse=True)
def _few_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the paper's 315 pairs of C and γ four are tried here; how one is chosen is in tests/comparison/test_classify.py."""
    monkeypatch.setattr(classify, "by_svm", functools.partial(classify.by_svm, costs=(1.0, 100.0), gammas=(0.25, 4.0)))


@pytest.fixture(scope="module")
def mutag() -> GraphCollection:
    """The generated stand-in: 188 graphs."""
    found = data.load("tu/mutag", stand_in=True)
    assert isinstance(found, GraphCollection)
    return found


def context(graph: Any, seeds: int = 1) -> CellContext:
    return CellContext("t", "d", graph, 0, seeds, runtime.start("serial"))


def classifies(*methods: dict[str, Any], **changes: Any) -> graph_classification.Params:
    given: dict[str, Any] = {
        "methods": list(methods) or [GCN], "epsilons": [np.inf], "baselines": [], "max_graphs": 20, "folds": 3,
        "partition": {"partition": "dirichlet", "clients": 4}, "neighbours": [3], "quality": "fast",
    }  # fmt: skip
    return graph_classification.Params(**(given | changes))


def clusters(*methods: dict[str, Any], **changes: Any) -> graph_clustering.Params:
    given: dict[str, Any] = {
        "methods": [{"method": "local_dp", "hidden": 4, **m} for m in methods or ({"rounds": 2},)], "epsilons": [4.0, np.inf],
        "partition": {"partition": "ego", "clients": 10, "hops": 1}, "num_init": 1, "max_iterations": 2,
        "quality": "fast",
    }  # fmt: skip
    return graph_clustering.Params(**(given | changes))


def outcomes(task: Any, given: Any, where: CellContext, method: str | None = None) -> dict[tuple[str, str, float], Result]:
    """(method, variant, ε) → result, of one method or all."""
    cells = [c for c in task.cells(given, where) if method in (None, c.method)]
    return {(c.method, c.variant, c.epsilon): task.run(given, c, where) for c in cells}


def test_every_graph_is_tested_once_and_nobody_tests_what_trained(mutag: GraphCollection) -> None:
    splits = [graph_classification.split_by_folds(mutag.labels, 10, 0.2, 0, "x", seed) for seed in range(10)]
    assert np.array_equal(np.sort(np.concatenate([s.test for s in splits])), np.arange(188))
    for s in splits:
        assert np.array_equal(np.sort(np.concatenate([s.train, s.validation, s.test])), np.arange(188))
        assert s.validation.size == 38
    shares = dirichlet.deal(mutag, dirichlet.Params(clients=4), np.random.default_rng(0))
    # Jin & Chen, §4: 10 % and 20 % of each client's own
    split = graph_classification.split_by_clients(shares, 10, 0.2, 0, "x", 0)
    for members in shares.members:
        assert np.isin(members, split.test).sum() == round(members.size / 10)
        assert np.isin(members, split.validation).sum() == round(0.2 * members.size)
    with pytest.raises(ScenarioError, match="fewer clients"):
        graph_classification.split_by_clients(replace(shares, members=tuple(m[:2] for m in shares.members)), 10, 0.2, 0, "x", 0)


@pytest.mark.parametrize("on_nodes", [False, True])
def test_only_training_labels_reach_the_clients(mutag: GraphCollection, on_nodes: bool) -> None:
    split = graph_classification.split_by_folds(mutag.labels, 10, 0.2, 0, "x", 0)
    shares = dirichlet.deal(mutag, dirichlet.Params(clients=10), np.random.default_rng(0))
    kinds = graphs.node_kinds(mutag) if on_nodes else None
    dealt = graph_classification.deal(mutag, shares, split.train, kinds)
    assert sorted(dealt.order.tolist()) == list(range(188))
    order = iter(dealt.order.tolist())
    for subgraph, sizes in zip(dealt.partition.subgraphs, dealt.sizes, strict=True):
        assert subgraph.graph.num_classes == (2 if kinds is None else kinds[1])
        start = 0
        for n in sizes:
            index, here = next(order), slice(start, start + n)
            own = np.full(n, mutag.labels[index]) if kinds is None else kinds[0][index]
            assert np.array_equal(subgraph.graph.labels[here], own if index in split.train else np.full(n, -1))
            assert (subgraph.graph.adjacency[here][:, here] != mutag.graphs[index].adjacency).nnz == 0
            start += n
    assert sum(s.graph.num_edges for s in dealt.partition.subgraphs) == sum(g.num_edges for g in mutag.graphs)


def test_centres_of_ego_networks_are_hidden_from_every_client(library: Graph) -> None:
    """``labels: others``: a centre lies in its neighbours' networks, too. The truth is asked of the graph itself."""
    given, where = clusters({"rounds": 3}, epsilons=[np.inf], labels="others"), context(library)
    whole, hidden = (graph_clustering.deal(p, 0, context(library)) for p in (clusters(), given))
    centres = [int(s.nodes[s.center]) for s in whole.subgraphs]
    for before, after in zip(whole.subgraphs, hidden.subgraphs, strict=True):
        asked = np.isin(after.nodes, centres)
        assert (after.graph.labels[asked] == -1).all()
        assert np.array_equal(after.graph.labels[~asked], before.graph.labels[~asked])
    cell = next(c for c in graph_clustering.cells(given, where) if c.method == "local_dp")
    assert graph_clustering.run(given, cell, where).artefacts["truth"].tolist() == library.labels[centres].tolist()


def test_public_nodes_are_held_by_no_client(library: Graph) -> None:
    given, where = clusters(public_share=0.1), context(library)
    public = graph_clustering.draw_public(given, 0, where)
    assert public is not None
    assert public.num_nodes == round(0.1 * library.num_nodes)
    held = np.unique(np.concatenate([s.nodes for s in graph_clustering.deal(given, 0, where).subgraphs]))
    rows = {row.tobytes() for row in library.features[held].toarray()}
    assert sum(row.tobytes() in rows for row in public.features.toarray()) < 3


def test_rows_of_classification_cost_what_was_planned_and_sizes_cost_nothing(mutag: GraphCollection) -> None:
    where = context(mutag)
    given = classifies(GIN, epsilons=["1/n", 4.0, np.inf], encoders=["multi-bit", "gaussian-as-coded"], verify=5)
    for (method, variant, _), out in outcomes(graph_classification, given, where).items():
        if method == "local_dp":
            planned = graph_classification.plan(given, out, where)
            assert planned is not None
            assert out.epsilon_provable == np.inf, "the model path is not protected"
            assert out.paths["embedding"] == pytest.approx(planned.provable("embedding").epsilon)
            assert {"model", "accuracy", "gw_mean"} <= set(out.metrics)
        else:
            assert out.epsilon_provable == (0.0 if method in (graphs.SIZE, graphs.CONSTANT) else np.inf)
            assert not out.releases
        if variant.endswith("/multi-bit/epsilon") and method == "local_dp":
            assert out.paths["embedding"] == pytest.approx(4.0, rel=1e-3)
            assert 0.5 < out.facts.bayes_balanced <= out.facts.bayes_given_size <= 1


def test_prices_add_up_over_the_clients_that_hold_a_node(library: Graph) -> None:
    where = context(library)
    given = clusters(epsilons=["1/n", 4.0, np.inf], encoders=["multi-bit", "gaussian-as-coded"], quality="auto")
    held = graph_clustering.deal(given, 0, where).holdings(library.num_nodes).sum(axis=0).max()
    assert held > 1, "the sampled ego-networks should overlap"
    found = outcomes(graph_clustering, given, where)
    readings = {(c.variant, c.calibrated_by) for c in found.values() if c.method == "local_dp" and np.isfinite(c.epsilon)}
    coded = {("gaussian-as-coded/1/n", "published"), ("gaussian-as-coded/epsilon", "published")}
    assert readings == {("multi-bit/1/n", "provable"), ("encoded", "provable"), *coded}
    for (method, variant, epsilon), out in found.items():
        assert {"ari", "nmi", "purity"} <= set(out.metrics)
        if method == "local_dp":
            assert out.epsilon_provable == np.inf, "the model path is not protected"
        else:
            assert out.epsilon_provable == (np.inf if method == graphs.DEGREES else 0.0)
        if (method, variant, epsilon) == ("local_dp", "encoded", 4.0):
            assert 4.0 < out.paths["embedding"] <= 4.0 * held * (1 + 1e-9), "more than one client's price, at most their sum"
            assert out.facts.worst_node_clients == held
            assert out.epsilon_published == 4.0


def test_every_row_of_graphs_is_private_for_everything_that_it_releases(library: Graph) -> None:
    """At a finite target: finite, provable, at most the target, with unit and assumptions."""
    rows = [
        {"label": "public", "training": "public", "unit": "graph", "compare": ["gw", "fgw", "mean"], "public_steps": 60},
        {"label": "noisy", "training": "dp_sgd", "unit": "graph", "projection": 8, "rounds": 2, "compare": ["mean"]},
        {"label": "largest", "training": "none", "unit": "graph", "release": "labels", "pooled_by": "response"},
        {"label": "counts", "training": "none", "unit": "node", "release": "labels"},
    ]
    given = clusters(
        *rows, epsilons=[8.0], public_share=0.1, classify=True, partition={"partition": "ego", "clients": 60, "hops": 1}
    )
    found = outcomes(graph_clustering, given, context(library), "local_dp")
    for (_, variant, epsilon), out in found.items():
        assert out.account is not None
        assert 0.5 * epsilon < out.epsilon_provable <= epsilon
        assert Assumption.GRAPH_LABELS_PUBLIC in out.account.protection.assumptions
        assert out.account.protection.unit is (Unit.NODE if variant.startswith("counts") else Unit.GRAPH)
        assert 0 <= out.metrics["accuracy"] <= 1
    noisy = found["local_dp", "noisy · mean", 8.0]
    assert set(noisy.paths) == {"model", "embedding"}
    assert max(noisy.paths.values()) < noisy.epsilon_provable
    ari = {variant: out.metrics["ari"] for (_, variant, _), out in found.items()}
    assert ari["largest"] > max(0.5, ari["public"] + 0.2), "histograms find classes that Gromov-Wasserstein cannot see"


def test_the_graphs_of_a_collection_are_clients_and_their_labels_are_unseen(mutag: GraphCollection) -> None:
    given, where = clusters({"training": "none", "compare": ["mean"]}, max_graphs=40), context(mutag)
    held = graph_clustering.deal(given, 0, where)
    assert held.disjoint
    assert all((s.graph.labels == -1).all() for s in held.subgraphs)
    for (_, _, epsilon), out in outcomes(graph_clustering, given, where, "local_dp").items():
        least = epsilon if np.isinf(epsilon) else 0.9 * epsilon
        assert least <= out.epsilon_provable <= epsilon, "each graph pays its own release and nothing else"
        assert out.account is not None
        assert out.account.protection.relation is Relation.GRAPH_REPLACE


def test_constant_embeddings_are_the_same_whatever_the_graph_holds(library: Graph) -> None:
    """The row sees sizes only: other features and labels change nothing; another distance of rows does."""
    blank = plain_graph(
        library.name, library.adjacency, library.features * 0, (library.labels + 1) % 4, library.num_classes, library.provenance
    )
    given = ((library, clusters()), (blank, clusters()), (library, clusters(metric="cosine")))
    found = [
        out.metrics["silhouette"]
        for graph, params in given
        for out in outcomes(graph_clustering, params, context(graph), graphs.CONSTANT).values()
    ]
    assert found[0] == found[1] != found[2]


def test_permuting_the_classes_changes_nothing_for_gw_and_everything_for_the_others() -> None:
    """Two graphs whose rows point to different classes: at distance 0 for GW only."""
    rows = np.eye(3)[[0, 0, 1]]
    received, cell = [rows, rows[:, [1, 2, 0]]], Cell("t", "d", "m", "v", world_of_trust(Trust.OWN_CLIENT), 1.0, "provable", 0)
    where, nothing = context(None), list[Any]([None, None])
    plain, fused = (graphs.embedded_spaces(received, "euclidean", nothing, how) for how in (None, "embedding"))
    compared = [
        graph_clustering.compare_spaces(clusters(), made, 2, a, cell, where) for made, a in ((plain, None), (fused, 0.5))
    ]
    assert compared[0].distances[0, 1] == pytest.approx(0, abs=1e-9)
    assert compared[1].distances[0, 1] > 0.3
    assert graph_clustering.compare_vectors(received, 2, cell, where).distances[0, 1] > 0.3


def test_weights_by_degree_change_rows_in_clear_alone(library: Graph) -> None:
    """The degrees of an encoded graph are private."""
    kept: dict[tuple[Any, ...], Any] = {}
    for changes in ({}, {"weights": "degree"}):
        for (_, _, epsilon), out in outcomes(graph_clustering, clusters(**changes), context(library), "local_dp").items():
            kept[(*changes.values(), epsilon)] = out.artefacts
    plain, clear = kept[(4.0,)]["distances"], kept[(np.inf,)]["distances"]
    assert np.array_equal(kept["degree", 4.0]["distances"], plain)
    assert not np.array_equal(kept["degree", np.inf]["distances"], clear)


def test_accuracy_needs_labels_that_distances_explain() -> None:
    rng, truth = np.random.default_rng(0), np.repeat([0, 1, 2], 20)
    apart, noise = (truth[:, None] != truth[None, :]) + 0.05 * rng.random((60, 60)), rng.random((60, 60))
    np.fill_diagonal(apart, 0)
    judged = graph_clustering.accuracy_of_folds
    assert judged(apart + apart.T, truth, np.random.default_rng(1))["accuracy"] == 1.0
    assert judged(noise + noise.T, truth, np.random.default_rng(1))["knn5"] < 0.6
    assert judged(apart[:4, :4], truth[:4], rng) == {}


@pytest.mark.quality("tasks", "comparison", "data")
@pytest.mark.dataset
def test_mutag_size_alone(data_root: Any) -> None:
    """An SVM that sees the number of nodes only: 85.1 % (10-fold, C = 10), above every private row of the paper's GCN."""
    found = data.load("tu/mutag", root=data_root)
    assert isinstance(found, GraphCollection)
    nothing = ClassifySplit(np.arange(188), np.arange(0), np.arange(0))
    distances = graph_classification.of_row(graphs.SIZE, found, 0.5, gromov.GromovOptions(), context(found), nothing, None)[0]
    parts = StratifiedKFold(10, shuffle=True, random_state=0).split(np.zeros(found.labels.size), found.labels)
    splits = tuple(ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in parts)
    accuracy = classify.by_svm(distances, found.labels, splits, np.random.default_rng(0), costs=(10.0,), gammas=(0.25,)).mean
    assert accuracy == pytest.approx(0.851, abs=0.02)
    assert accuracy > 0.7957


def test_votes_alone_are_the_votes_beside_the_svm(mutag: GraphCollection) -> None:
    """Same accuracies from fewer pairs, in the rows on raw data and in those on embeddings."""
    changes = {"epsilons": [4.0], "baselines": ["FGW(A, X)"], "neighbours": [3, 5], "held_out": "clients"}
    where, full, votes = context(mutag), classifies(**changes), classifies(**changes, classifier="neighbours")
    spared = []
    for cell in graph_classification.cells(full, where):
        if cell.method in graphs.LEAKING:
            continue
        one, other = (graph_classification.run(given, cell, where) for given in (full, votes))
        assert other.metrics["accuracy"] == one.metrics["knn3"]
        assert {k: v for k, v in other.metrics.items() if k.startswith("knn")}.items() <= one.metrics.items()
        spared.append(1 - other.facts.solver.asked[0] / other.facts.solver.asked[1])
    assert min(spared) >= 0
    assert np.mean(spared) > 0.05


@pytest.mark.ray
@pytest.mark.parametrize("task", [pytest.param(graph_classification, marks=pytest.mark.slow), graph_clustering])
def test_serial_equals_ray(task: Any, library: Graph, mutag: GraphCollection, ray_engine: runtime.Runtime) -> None:
    """The pairs, too, which are solved on the pool, of arrays that nobody may write to."""
    single = task is graph_clustering
    given = clusters(epsilons=[4.0]) if single else classifies(epsilons=[4.0], encoders=["multi-bit"])
    found = []
    for engine in (runtime.start("serial"), ray_engine):
        where = CellContext("t", "d", library if single else mutag, 0, 1, engine)
        cell = next(c for c in task.cells(given, where) if c.method == "local_dp")
        found.append(task.run(given, cell, where))
    assert found[0].metrics == found[1].metrics
    assert found[0].releases == found[1].releases


# ------------------------------------------------------------------------------------------------------------ what is refused

SPEC = {"method": "local_dp"}
REFUSED = [
    (clusters, {"epsilons": [0]}, "at ε = 0 nothing may be released"),
    (clusters, {"epsilons": [np.nan]}, "allowed: ε > 0, 1/n"),
    (clusters, {"epsilons": [1, "1.0"]}, "1.0 appears twice"),
    (clusters, {"encoders": ["none"]}, "multi-bit"),
    (clusters, {"methods": [SPEC, SPEC | {"rounds": 9}]}, "appears twice"),
    (clusters, {"methods": [SPEC | {"encoder": "none"}]}, "encoder is a setting of the whole task"),
    (clusters, {"methods": [SPEC | {"epsilons": [0]}]}, "at ε = 0 nothing may be released"),
    (clusters, {"solver": "pot", "quality": "careful"}, "one descent"),
    (clusters, {"clusters": 11}, "allowed: at most 10"),
    (clusters, {"methods": [SPEC | {"compare": ["histogram"]}]}, "allowed: gw, fgw, mean"),
    (clusters, {"methods": [SPEC | {"release": "labels", "compare": ["gw"]}]}, "allowed: histogram"),
    (classifies, {"epsilons_of": {"d": ["0"]}}, "at ε = 0 nothing may be released"),
    (classifies, {"methods": [SPEC | {"fused": "labels", "epsilons": ["inf"]}]}, "fused of this row is 'labels'"),
    (classifies, {"methods": [SPEC | {"fused": "raw", "epsilons": [1.0]}]}, "fused looks at rows in clear"),
    (classifies, {"methods": [SPEC | {"compare": False, "epsilons": [1.0]}]}, "own answers"),
    (classifies, {"classifier": "neighbours", "tuned_on_test": True}, "tuned_on_test"),
    (classifies, {"classifier": "neighbours", "solver": "pot", "loss": "kl"}, "square"),
]


@pytest.mark.parametrize(("params", "changes", "said"), REFUSED)
def test_settings_that_would_mix_rows_or_release_nothing_are_refused(params: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        params(**changes)


@pytest.mark.parametrize(
    ("task", "params", "collection", "said"),
    [
        (graph_classification, classifies(), False, "needs a collection"),
        (graph_classification, classifies(folds=100), True, "the graphs of the largest class"),
        (graph_classification, classifies(partition={"partition": "dirichlet", "clients": 50}), True, "would be empty"),
        (graph_clustering, clusters(), True, "training is fedavg"),
        (graph_clustering, clusters(partition={"partition": "uniform", "clients": 4}, clusters=2), False, "needs centres"),
        (graph_clustering, clusters(partition={"partition": "ego", "clients": 2}), False, "as many as there are clients"),
    ],
)
def test_what_the_data_cannot_serve_is_refused(
    task: Any, params: Any, collection: bool, said: str, library: Graph, mutag: GraphCollection
) -> None:
    where = context(mutag if collection else library)
    with pytest.raises((ScenarioError, DataError), match=said):
        task.plan(params, task.cells(params, where)[-1], where)
