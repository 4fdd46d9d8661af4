"""Real data: published counts, equality with PyG's own loaders, and a data root that is never written to."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data.base import files
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection

# nodes, undirected edges, features, classes, edge homophily, as the data set papers and PyG's documentation have them; and the
# mean number of distinct words of a node, which generated stand-ins have, too
GRAPHS = {
    "planetoid/citeseer": (3327, 4552, 3703, 6, 0.7355, 31.61),
    "planetoid/cora": (2708, 5278, 1433, 7, 0.8100, 18.17),
    "planetoid/pubmed": (19717, 44324, 500, 3, 0.8024, 50.11),
    "citation_full/cora_ml": (2995, 8158, 2879, 7, 0.7886, 50.47),
    "citation_full/citeseer": (4230, 5337, 602, 6, 0.9494, 4.58),
    "coauthor/cs": (18333, 81894, 6805, 15, 0.8081, 59.57),
    "coauthor/physics": (34493, 247962, 8415, 5, 0.9314, 32.97),
    "amazon/photo": (7650, 119081, 745, 8, 0.8272, 258.81),
    "amazon/computers": (13752, 245861, 767, 10, 0.7772, 267.24),
    "geom_gcn/chameleon": (2277, 31371, 2325, 5, 0.2299, 12.81),
    "geom_gcn/squirrel": (5201, 198353, 2089, 5, 0.2221, 17.97),
    "geom_gcn/actor": (7600, 26659, 932, 5, 0.2167, 5.39),
}
# graphs, mean nodes, mean edges, features, graphs per class
COLLECTIONS = {
    "tu/mutag": (188, 17.93, 19.79, 7, [63, 125]),
    "tu/proteins": (1113, 39.06, 72.82, 4, [663, 450]),
    "tu/imdb-binary": (1000, 19.77, 96.53, 0, [500, 500]),
}


def homophily(graph: Graph) -> float:
    edges = sp.triu(graph.adjacency, k=1, format="coo")
    return float((graph.labels[edges.row] == graph.labels[edges.col]).mean())


LARGE = ("coauthor/physics", "amazon/computers", "geom_gcn/squirrel")


@pytest.mark.dataset
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in GRAPHS])
def test_graph_has_published_counts(name: str, data_root: Path) -> None:
    graph = data.load(name, root=data_root, download=False)
    assert isinstance(graph, Graph)
    nodes, edges, features, classes, share, _ = GRAPHS[name]
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (nodes, edges, features, classes)
    assert homophily(graph) == pytest.approx(share, abs=1e-4)
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.adjacency.diagonal().sum() == 0
    assert set(np.unique(graph.adjacency.data)) == {1.0}
    assert graph.features.dtype == np.float32
    assert graph.labels.dtype == np.int64
    assert graph.provenance.source == "real"
    assert all(len(digest) == 64 for digest in graph.provenance.checksums.values())


@pytest.mark.dataset
@pytest.mark.parametrize("name", COLLECTIONS)
def test_collection_has_published_counts(name: str, data_root: Path) -> None:
    collection = data.load(name, root=data_root, download=False)
    assert isinstance(collection, GraphCollection)
    graphs, nodes, edges, features, sizes = COLLECTIONS[name]
    assert len(collection.graphs) == graphs
    assert np.mean([g.num_nodes for g in collection.graphs]) == pytest.approx(nodes, abs=0.005)
    assert np.mean([g.num_edges for g in collection.graphs]) == pytest.approx(edges, abs=0.005)
    assert {g.num_features for g in collection.graphs} == {features}
    assert np.bincount(collection.labels).tolist() == sizes


@pytest.mark.dataset
def test_test_nodes_that_citeseer_lost_are_filled_in(data_root: Path) -> None:
    graph = data.load("planetoid/citeseer", root=data_root, download=False)
    wordless = np.flatnonzero(np.diff(graph.features.indptr) == 0)
    assert wordless.size == 15
    assert (graph.labels[wordless] == 0).all()
    assert sorted(graph.degrees[wordless].tolist()) == [1] * 14 + [2]
    assert (graph.degrees == 0).sum() == 48


@pytest.mark.dataset
def test_the_data_root_is_never_written(data_root: Path, tmp_path: Path) -> None:
    shutil.copytree(data_root / "planetoid" / "CiteSeer", tmp_path / "planetoid" / "CiteSeer")
    shutil.copytree(data_root / "tu" / "MUTAG", tmp_path / "tu" / "MUTAG")
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    for folder in [p for p in before if p.is_dir()]:
        folder.chmod(0o555)
    data.load("planetoid/citeseer", root=tmp_path, download=False)
    data.load("tu/mutag", root=tmp_path, download=False)
    data.load("planetoid/cora", root=tmp_path, download=False, when_unavailable="synthetic")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
    for folder in [p for p in before if p.is_dir()]:
        folder.chmod(0o755)


@pytest.mark.dataset
def test_a_root_may_be_one_of_pyg_the_cache_or_the_variable_s(
    data_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("planetoid/citeseer", "tu/mutag"):
        assert data.load(name, root=data_root / name.split("/")[0], download=False).name == name
    (cache / "planetoid").mkdir(parents=True)
    (cache / "planetoid/Cora").symlink_to(data_root / "planetoid/Cora")
    assert data.load("planetoid/cora", download=False).provenance.source == "real"
    shutil.rmtree(cache)
    monkeypatch.setenv("FEDGRAPH_DATA", str(data_root))
    assert data.load("planetoid/cora", download=False).provenance.source == "real"


@pytest.mark.dataset
def test_another_graph_under_the_name_is_refused(data_root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "citation_full" / "cora_ml" / "raw"
    folder.mkdir(parents=True)
    shutil.copy(data_root / "citation_full" / "citeseer" / "raw" / "citeseer.npz", folder / "cora_ml.npz")
    with pytest.raises(DataError, match=r"not the published data set.*4230.*2995"):
        data.load("citation_full/cora_ml", root=tmp_path, download=False)


def pyg(name: str, data_root: Path, scratch: Path) -> object:
    """PyG's own reading; it writes ``processed/`` beside the raw files, hence the copy."""
    datasets = pytest.importorskip("torch_geometric.datasets")
    family, dataset = name.split("/")
    root = str(shutil.copytree(data_root / family, scratch / family))
    if family == "planetoid":
        return datasets.Planetoid(root, {"citeseer": "CiteSeer", "cora": "Cora"}[dataset])
    if family == "tu":
        return datasets.TUDataset(root, dataset.upper(), use_node_attr=True)
    return {"citation_full": datasets.CitationFull, "coauthor": datasets.Coauthor}[family](root, dataset)


@pytest.mark.dataset
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["planetoid/citeseer", "planetoid/cora", "citation_full/cora_ml", "coauthor/cs"])
def test_graph_equals_what_pyg_reads(name: str, data_root: Path, tmp_path: Path) -> None:
    theirs = pyg(name, data_root, tmp_path)[0]
    ours = data.load(name, root=data_root, download=False)
    arcs, n, rows = theirs.edge_index.numpy(), ours.num_nodes, sp.coo_array(ours.adjacency)
    assert np.array_equal(np.unique(arcs[0] * n + arcs[1]), np.unique(rows.row.astype(np.int64) * n + rows.col))
    assert np.array_equal(ours.labels, theirs.y.numpy())
    assert np.array_equal(ours.features.toarray(), theirs.x.numpy())


@pytest.mark.dataset
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tu/mutag", "tu/proteins"])
def test_collection_equals_what_pyg_reads(name: str, data_root: Path, tmp_path: Path) -> None:
    theirs = pyg(name, data_root, tmp_path)
    ours = data.load(name, root=data_root, download=False)
    assert len(theirs) == len(ours.graphs)
    for one, graph, label in zip(theirs, ours.graphs, ours.labels, strict=True):
        assert int(one.y) == label
        assert np.allclose(one.x.numpy(), graph.features.toarray())
        dense = np.zeros((graph.num_nodes, graph.num_nodes))
        dense[tuple(one.edge_index.numpy())] = 1
        assert np.array_equal(dense, graph.adjacency.toarray())


def test_unavailable_says_what_to_put_where_and_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        data.load("planetoid/citeseer", root=tmp_path, download=False)
    text = str(caught.value)
    for says in ("planetoid/CiteSeer/raw/ind.citeseer.allx", "when_unavailable: synthetic", str(tmp_path)):
        assert says in text
    assert "\n" not in text
    monkeypatch.setattr(files, "download", lambda *_: "the download through PyG failed: OSError: no route to host")
    with pytest.raises(DataError, match="no route to host"):
        data.load("planetoid/citeseer", root=tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        data.load("planetoid/cora", root=tmp_path / "typo", when_unavailable="synthetic", download=False)


def test_a_download_reaches_the_cache_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    datasets = pytest.importorskip("torch_geometric.datasets")

    def fetch(self: object, complete: bool) -> None:
        Path(self.raw_dir, "ms_academic_cs.npz").write_bytes(b"bytes")
        if not complete:
            raise OSError("connection lost")

    wanted = ("coauthor/CS/raw", ("ms_academic_cs.npz",), cache, {"class": "Coauthor", "name": "CS"})
    monkeypatch.setattr(files.urllib.request, "getproxies", lambda: {"https": "a proxy"})  # nobody is called
    monkeypatch.setattr(datasets.Coauthor, "download", lambda self: fetch(self, complete=False))
    assert "connection lost" in files.download(*wanted)
    assert not list(cache.rglob("*.npz"))
    monkeypatch.setattr(datasets.Coauthor, "download", lambda self: fetch(self, complete=True))
    files.download(*wanted)
    assert [p.relative_to(cache).as_posix() for p in cache.rglob("*") if p.is_file()] == ["coauthor/CS/raw/ms_academic_cs.npz"]


def test_a_host_out_of_reach_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def refuse(address: tuple[str, int], timeout: float) -> None:
        assert timeout <= 10
        raise TimeoutError(f"{address[0]}:{address[1]} timed out")

    monkeypatch.setattr(files.urllib.request, "getproxies", dict)
    monkeypatch.setattr(files.socket, "create_connection", refuse)
    with pytest.raises(DataError, match=r"github\.com:443 timed out"):
        data.load("planetoid/cora")
    assert not cache.exists()
