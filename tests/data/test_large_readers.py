"""ogbn, Reddit, Flickr, Elliptic and GAP's cuts, read from small made files in the published layout, whole and damaged."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data import elliptic, gap, graphsage, graphsaint, ogbn
from fedgraph.data.base.published import PublishedCounts
from fedgraph.errors import DataError
from fedgraph.types import Graph

N = 12
RING = [(k, (k + 1) % N) for k in range(N)]
LABELS = [k % 3 for k in range(N)]


def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, 4)).round(3)


def packed(lines: list[str]) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def make_ogbn(root: Path) -> Path:
    folder = root / "ogbn/arxiv"
    (folder / "raw").mkdir(parents=True)
    (folder / "split/time").mkdir(parents=True)
    (folder / "raw/edge.csv.gz").write_bytes(packed([f"{a},{b}" for a, b in RING]))
    (folder / "raw/node-feat.csv.gz").write_bytes(packed([",".join(map(str, row)) for row in rows()]))
    (folder / "raw/node-label.csv.gz").write_bytes(packed([str(label) for label in LABELS]))
    for part, ids in (("train", range(6)), ("valid", range(6, 8)), ("test", range(8, N))):
        (folder / f"split/time/{part}.csv.gz").write_bytes(packed([str(k) for k in ids]))
    return folder


def make_reddit(root: Path) -> Path:
    folder = root / "graphsage/Reddit/raw"
    folder.mkdir(parents=True)
    types = np.array([1] * 6 + [2] * 2 + [3] * 4)
    np.savez(folder / "reddit_data.npz", feature=rows(), label=np.array(LABELS), node_types=types)
    ends = np.array(RING).T
    sp.save_npz(folder / "reddit_graph.npz", sp.coo_matrix((np.ones(N), (ends[0], ends[1])), shape=(N, N)))
    return folder


def make_flickr(root: Path) -> Path:
    folder = root / "graphsaint/Flickr/raw"
    folder.mkdir(parents=True)
    ends = np.array(RING).T
    sp.save_npz(folder / "adj_full.npz", sp.csr_matrix((np.ones(N), (ends[0], ends[1])), shape=(N, N)))
    np.save(folder / "feats.npy", rows())
    (folder / "class_map.json").write_text(json.dumps({str(k): label for k, label in enumerate(LABELS)}))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 1, 2, 3, 4, 5], "va": [6, 7], "te": [8, 9, 10, 11]}))
    return folder


def make_elliptic(root: Path) -> Path:
    folder = root / "elliptic/raw"
    folder.mkdir(parents=True)
    names = [100 + 7 * k for k in range(N)]
    lines = [f"{name},{30 + k},{','.join(map(str, row))}" for k, (name, row) in enumerate(zip(names, rows(), strict=True))]
    (folder / "elliptic_txs_features.csv").write_text("\n".join(lines) + "\n")
    pairs = [f"{names[a]},{names[b]}" for a, b in RING]
    (folder / "elliptic_txs_edgelist.csv").write_text("txId1,txId2\n" + "\n".join(pairs) + "\n")
    words = [f"{name},{['1', '2', 'unknown'][k % 3]}" for k, name in enumerate(names)]
    (folder / "elliptic_txs_classes.csv").write_text("txId,class\n" + "\n".join(words) + "\n")
    return folder


MADE: dict[str, Callable[[Path], Path]] = {
    "ogbn/arxiv": make_ogbn,
    "graphsage/reddit": make_reddit,
    "graphsaint/flickr": make_flickr,
    "elliptic/bitcoin": make_elliptic,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published counts are those of the made files."""
    for module in (ogbn, graphsage, graphsaint, elliptic):
        for name, published in module.DATASETS.items():
            counts = PublishedCounts(N, N, 4, 2 if module is elliptic else 3)
            monkeypatch.setitem(module.DATASETS, name, replace(published, counts=counts))


def read(name: str, root: Path) -> Graph:
    found = data.load(name, root=root, download=False)
    assert isinstance(found, Graph)
    return found


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", MADE)
def test_a_made_copy_is_read_as_it_is(name: str, tmp_path: Path) -> None:
    MADE[name](tmp_path)
    graph = read(name, tmp_path)
    assert sorted(zip(*(e.tolist() for e in sp.triu(graph.adjacency).nonzero()), strict=True)) == sorted(
        (min(e), max(e)) for e in RING
    )
    np.testing.assert_allclose(graph.features.toarray(), rows(), atol=1e-6)
    (split,) = graph.masks
    if name == "elliptic/bitcoin":
        assert graph.labels.tolist() == [[1, 0, -1][k % 3] for k in range(N)]
        assert split.train.tolist() == [0, 1, 3, 4], "time steps 30 to 34, labelled"
        assert graph.features_from_edges
    else:
        assert graph.labels.tolist() == LABELS
        assert (split.train.size, split.validation.size, split.test.size) == (6, 2, 4)
    assert graph.provenance.source == "real"
    assert graph.provenance.checksums


@pytest.mark.parametrize("name", MADE)
def test_a_graph_of_another_size_is_not_the_published_one(name: str, tmp_path: Path) -> None:
    MADE[name](tmp_path)
    with pytest.raises(DataError, match=r"is not the published data set|classes"):
        read(name, tmp_path)


FAULTS: list[tuple[str, str, bytes, bytes, str]] = [
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,12\n", ":3: found 12; allowed: whole numbers 0 … 11"),
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,3,4\n", ":3: 3 cells"),
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,x\n", ":3: found '2,x'"),
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,2.5\n", ":3: found 2.5"),
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,\n", ":3: found '2,'"),
    ("ogbn/arxiv", "raw/edge.csv.gz", b"2,3\n", b"2,nan\n", ":3: found NaN"),
    ("ogbn/arxiv", "raw/node-label.csv.gz", b"0\n1\n", b"0\n7\n", ":2: found 7; allowed: whole numbers 0 … 2"),
    ("ogbn/arxiv", "raw/node-label.csv.gz", b"0\n1\n", b"0\n", "11 labels for 12 nodes"),
    ("ogbn/arxiv", "split/time/train.csv.gz", b"0\n1\n", b"0\n11\n", "in two of train"),
    ("ogbn/arxiv", "split/time/train.csv.gz", b"0\n1\n", b"0\n-1\n", ":2: found -1"),
    ("elliptic/bitcoin", "elliptic_txs_edgelist.csv", b"100,107", b"100,108", ":2: there is no transaction 108"),
    ("elliptic/bitcoin", "elliptic_txs_edgelist.csv", b"100,107", b"100", ":2: 1 cells"),
    ("elliptic/bitcoin", "elliptic_txs_classes.csv", b"107,2", b"107,3", ":3: found '107,3'"),
    ("elliptic/bitcoin", "elliptic_txs_features.csv", b"107,31", b"100,31", "transaction 100 stands twice"),
    ("graphsaint/flickr", "class_map.json", b'"3": 0', b'"3": 9', "node '3' has class '9'"),
    ("graphsaint/flickr", "class_map.json", b'"3": 0', b'"30": 0', "node '30'"),
    ("graphsaint/flickr", "class_map.json", b', "11": 2', b"", "node 11 has no class"),
    ("graphsaint/flickr", "role.json", b'"va": [6, 7]', b'"va": [6, 70]', "'va' must be a list"),
    ("graphsaint/flickr", "role.json", b'"te"', b'"tx"', "'te' must be a list"),
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("name", "file", "old", "new", "says"), FAULTS, ids=range(len(FAULTS)))
def test_one_clear_line_per_fault(name: str, file: str, old: bytes, new: bytes, says: str, tmp_path: Path) -> None:
    place = MADE[name](tmp_path) / file
    content = place.read_bytes()
    text = gzip.decompress(content) if file.endswith(".gz") else content
    assert old in text
    text = text.replace(old, new, 1)
    place.write_bytes(gzip.compress(text) if file.endswith(".gz") else text)
    with pytest.raises(DataError) as caught:
        read(name, tmp_path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": np.arange(N)}, "label is"),
        ({"node_types": np.full(N, 4)}, "node_types is"),
        ({"feature": np.ones((N - 1, 4))}, "feature is"),
        ({"feature": np.array([["a"] * 4] * N)}, "feature is"),
        ({"feature": np.full((N, 4), np.nan)}, "NaN"),
        ({"label": np.array([None] * N)}, "refused"),
    ],
)
def test_reddit_arrays_are_checked(change: dict[str, np.ndarray], says: str, tmp_path: Path) -> None:
    folder = make_reddit(tmp_path)
    parts = {"feature": rows(), "label": np.array(LABELS), "node_types": np.array([1] * 6 + [2] * 2 + [3] * 4)}
    np.savez(folder / "reddit_data.npz", **(parts | change))
    with pytest.raises(DataError, match=says):
        read("graphsage/reddit", tmp_path)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", MADE)
def test_any_damage_is_one_line_or_the_same_graph(name: str, tmp_path: Path) -> None:
    """Files cut off, emptied, with bytes changed or doubled: one ``DataError`` with a line for each fault, or a sound graph."""
    folder, rng = MADE[name](tmp_path), random.Random(name)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    for _ in range(60):
        place = rng.choice(files)
        sound = place.read_bytes()
        at, much = rng.randrange(len(sound)), rng.randrange(1, 9)
        damaged = {
            0: sound[:at],
            1: sound[:at] + bytes(rng.randrange(256) for _ in range(much)) + sound[at + much :],
            2: sound[:at] + sound[at:] * 2,
            3: sound[:at] + rng.choice([b"-", b"9" * 30, b",", b"\n", b"nan", b"1e999", b"\xff", b"\x00"]) + sound[at:],
        }[rng.randrange(4)]
        place.write_bytes(damaged)
        try:
            graph = read(name, tmp_path)
        except DataError as error:
            lines = str(error).splitlines()
            assert len(lines) <= 9
            assert all(len(line) < 1000 for line in lines)
        else:
            assert graph.num_nodes == N
        place.write_bytes(sound)


@pytest.mark.usefixtures("small")
def test_gap_keeps_the_larger_classes_and_nobody_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_reddit(tmp_path)
    labels = np.array([0] * 6 + [1, 2, 1, 2, 1, 1])
    np.savez(folder / "reddit_data.npz", feature=rows(), label=labels, node_types=np.array([1] * 6 + [2] * 2 + [3] * 4))
    monkeypatch.setitem(gap._CUTS, "reddit", gap._Cut(4, 9, 2))
    graph = read("gap/reddit", tmp_path)
    assert graph.num_classes == 2
    assert graph.labels.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1], "of class 1 the node between two of class 2 is left alone"


def test_gap_says_what_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_reddit(tmp_path)
    monkeypatch.setitem(graphsage.DATASETS, "reddit", replace(graphsage.DATASETS["reddit"], counts=PublishedCounts(N, N, 4, 3)))
    monkeypatch.setitem(gap._CUTS, "reddit", gap._Cut(4, 100, 3))
    with pytest.raises(DataError, match="is not GAP's"):
        read("gap/reddit", tmp_path)


LARGE = pytest.param("graphsage/reddit", marks=pytest.mark.slow)  # cut for GAP it is made of fewer


@pytest.mark.parametrize("name", [*(LARGE if name == "graphsage/reddit" else name for name in MADE), "gap/reddit"])
def test_without_files_a_smaller_stand_in_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "gap/reddit":  # cut from graphsage/reddit, which is made here in its full size, too
        record = graphsage.DATASETS["reddit"]
        fewer = {"class_sizes": 28, "num_edges": 10_000}
        monkeypatch.setitem(graphsage.DATASETS, "reddit", replace(record, stand_in={**record.stand_in, **fewer}))
    graph = data.load(name, when_unavailable="synthetic", download=False, root=[])
    assert isinstance(graph, Graph)
    assert graph.provenance.source == "synthetic"
    assert "of its size" in graph.provenance.detail
    assert name != "gap/reddit" or graph.num_classes == gap._CUTS["reddit"].classes < 41
    with pytest.raises(DataError, match="is not available"):
        data.load(name, download=False, root=[])
