"""One's own collection of small graphs: every layout gives the same graphs, and every fault of a file comes at once."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from fedgraph import data
from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection

LABELS = "graph,label\ng1,ring\ng2,line\ng3,ring\n"


def networks() -> list[nx.Graph]:
    """A ring of four, a line of three, a ring of three; each node has an age and a yes/no fact."""
    made = [nx.cycle_graph(4), nx.path_graph(3), nx.cycle_graph(3)]
    for graph, label in zip(made, ("ring", "line", "ring"), strict=True):
        graph.graph["y"] = label
        for node in graph:
            graph.nodes[node]["x"] = [20.0 + node, float(node % 2)]
    return made


def as_tables(folder: Path) -> None:
    nodes, edges = ["graph,id,age,member"], ["graph,source,target"]
    for number, graph in enumerate(networks(), 1):
        nodes += [f"g{number},{node},{20 + node},{node % 2}" for node in graph]
        edges += [f"g{number},{one},{two}" for one, two in graph.edges]
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n", encoding="utf-8")
    (folder / "labels.csv").write_text(LABELS, encoding="utf-8")


def as_pairs(folder: Path, inside: bool = False) -> None:
    for number, graph in enumerate(networks(), 1):
        start = folder / f"g{number}" if inside else folder
        start.mkdir(exist_ok=True)
        name = "" if inside else f"g{number}."
        nodes = "".join(f"{node},{20 + node},{node % 2}\n" for node in graph)
        (start / f"{name}nodes.csv").write_text("id,age,member\n" + nodes, encoding="utf-8")
        edges = "".join(f"{one},{two}\n" for one, two in graph.edges)
        (start / f"{name}edges.csv").write_text("source,target\n" + edges, encoding="utf-8")
    (folder / "labels.csv").write_text(LABELS, encoding="utf-8")


def as_graphml(folder: Path) -> None:
    for number, graph in enumerate(networks(), 1):
        plain = nx.Graph(graph.edges, label=graph.graph["y"])
        for node in graph:
            plain.add_node(node, age=20 + node, member=bool(node % 2))
        nx.write_graphml(plain, folder / f"g{number}.graphml")


def as_tu(folder: Path) -> None:
    indicator, arcs, attributes, first = [], [], [], 1
    for number, graph in enumerate(networks(), 1):
        indicator += [str(number)] * len(graph)
        arcs += [f"{first + one}, {first + two}" for one, two in graph.edges]
        attributes += [f"{20 + node}, {node % 2}" for node in graph]
        first += len(graph)
    for name, lines in {
        "A": arcs,
        "graph_indicator": indicator,
        "graph_labels": ["1", "-1", "1"],
        "node_attributes": attributes,
    }.items():
        (folder / f"MINE_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


LAYOUTS = {
    "tables": as_tables,
    "pairs": as_pairs,
    "folders": lambda folder: as_pairs(folder, inside=True),
    "graphml": as_graphml,
    "tu": as_tu,
}


def load(path: Path, **parameters: object) -> GraphCollection:
    found = data.load("own/graphs", path=path, parameters=parameters)
    assert isinstance(found, GraphCollection)
    return found


def require_same(found: GraphCollection) -> None:
    assert len(found.graphs) == 3
    assert found.labels[0] == found.labels[2] != found.labels[1]
    assert found.num_classes == 2
    for graph, network in zip(found.graphs, networks(), strict=True):
        order = np.argsort([int(node) for node in graph.ids]) if graph.names.ids else np.arange(graph.num_nodes)
        dense = graph.adjacency.toarray()[np.ix_(order, order)]
        assert (dense == nx.to_numpy_array(network, nodelist=sorted(network))).all()
        assert graph.features.toarray()[order].tolist() == [network.nodes[node]["x"] for node in sorted(network)]
        assert graph.columns is not None
        assert graph.columns.places.tolist() == [0], "ages are on a scale of their own, yes/no facts are not"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_graphs(layout: str, tmp_path: Path) -> None:
    LAYOUTS[layout](tmp_path)
    assert data.is_graph_folder(tmp_path)
    found = load(tmp_path)
    require_same(found)


def test_lists_in_memory_give_the_same_graphs() -> None:
    require_same(read(networks(), name="mine").graph)
    given = [
        Data(
            x=torch.tensor([g.nodes[n]["x"] for n in sorted(g)]),
            edge_index=torch.tensor(list(g.edges)).T,
            y=torch.tensor([int(g.graph["y"] == "ring")]),
        )
        for g in networks()
    ]
    require_same(read(given, name="mine").graph)


def test_without_columns_there_are_no_features_and_without_a_label_no_graph(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("graph,id\na,1\na,2\nb,1\nc,1\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("graph,source,target,weight\na,1,2,3\n", encoding="utf-8")
    (tmp_path / "labels.csv").write_text("graph,label\na,x\nb,\nc,y\n", encoding="utf-8")
    found = load(tmp_path)
    assert [g.num_nodes for g in found.graphs] == [2, 1]
    assert found.graphs[0].num_features == 0
    assert "1 of 3 graphs have no label" in found.provenance.detail
    assert "graphs without a label are left out" in found.provenance.detail
    assert "not used: column 'weight' of ties" in found.provenance.detail


def test_owners_are_a_column_or_folders(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    as_tables(one)
    (one / "labels.csv").write_text("graph,label,owner\ng1,ring,east\ng2,line,west\ng3,ring,east\n", encoding="utf-8")
    found = load(one)
    assert (found.owner_names, np.asarray(found.owner).tolist()) == (("east", "west"), [0, 1, 0])
    for owner in ("east", "west"):
        (two / owner).mkdir(parents=True)
        as_graphml(two / owner)
    several = load(two)
    assert (several.owner_names, np.asarray(several.owner).tolist()) == (("east", "west"), [0, 0, 0, 1, 1, 1])
    assert several.graphs[3].name.endswith("#west/g1")
    (one / "labels.csv").write_text("graph,label,owner\ng1,ring,east\ng2,line,\ng3,ring,east\n", encoding="utf-8")
    with pytest.raises(DataError, match="graph 'g2' has no owner, others have"):
        load(one)


def test_a_folder_of_one_graph_or_of_a_federation_is_no_collection(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "features.csv").touch()
    assert not data.is_graph_folder(tmp_path / "a")
    assert not data.is_graph_folder(tmp_path)


FAULTS = {
    ("tables", "nodes.csv", "graph,id,age,member\ng1,a,101,0\ng1,a,102,0\ng2,b,x,1\ng3,,103,1\n"): (
        "nodes.csv:3: node 'g1/a' appears a second time",
        "nodes.csv:5: a node without an id",
    ),
    ("tables", "edges.csv", "graph,source,target\ng1,0,9\ng9,0,1\n"): (
        "edges.csv:2: unknown node 'g1/9'; allowed: the 10 ids",
        "edges.csv:3: unknown node 'g9/0'",
    ),
    ("tables", "labels.csv", "graph,label\ng1,a\ng1,b\ng7,b\n"): (
        "labels.csv:3: graph 'g1' has a second label; allowed: one",
        "labels.csv:4: graph 'g7' has no node; allowed: the 3 graphs",
    ),
    ("tables", "labels.csv", "graph\ng1\n"): ("labels are missing; allowed: a table with the columns graph, label",),
    ("tables", "labels.csv", "graph,label\ng1,\n"): ("no graph has a label; allowed: at least one labelled graph",),
    ("pairs", "g2.nodes.csv", "id,age,member\n0,old,1\n1,2\n2,3,1\n"): (
        "g2.nodes.csv:2: column 'age' of node 'g2/0' is 'old'",
        "g2.nodes.csv:3: 2 columns; allowed: 3, as in the header",
    ),
    ("tu", "MINE_A.txt", "1, 9\n2, 8\n"): (
        "MINE_A.txt:1: a tie between two graphs; allowed: nodes of one graph",
        "MINE_A.txt:2: a tie between two graphs",
    ),
    ("tu", "MINE_graph_labels.txt", "1\n2\n"): ("MINE_graph_labels.txt: 2 lines; allowed: 3",),
    ("graphml", "g2.graphml", "<graphml><graph><node id='a'/><node id='a'/><edge source='a' target='q'/></graph></graphml>"): (
        "g2.graphml: node 'a' is there twice",
        "g2.graphml: unknown node 'q'; allowed: the 1 nodes of its graph",
    ),
    ("graphml", "g2.graphml", "<graphml><graph></graphml>"): ("g2.graphml: not whole XML (mismatched tag",),
    ("graphml", "g2.graphml", "<graphml><graph/></graphml>"): ("g2.graphml: graph '1' has no node",),
    ("graphml", "g2.graphml", "<graphml/>"): ("g2.graphml: no graph",),
    ("graphml", "g2.graphml", "<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>"): (
        "g2.graphml: refused, its XML declares entities or a document type",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_all_faults_of_a_file_come_at_once(fault: tuple[str, str, str], tmp_path: Path) -> None:
    layout, file, text = fault
    LAYOUTS[layout](tmp_path)
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    lines = str(caught.value).splitlines()
    assert len(lines) >= len(FAULTS[fault])
    for says in FAULTS[fault]:
        assert any(says in line for line in lines), (says, lines)
    assert all(str(tmp_path) in line or line.startswith("…") for line in lines)


@pytest.mark.parametrize(
    ("layout", "changes", "says"),
    [
        (
            "pairs",
            {"g1.nodes.csv": "id,age\n0,1\n1\n", "g2.edges.csv": "source,target\n0,77\n", "labels.csv": "graph,label\ng9,x\n"},
            ("g1.nodes.csv:3: 1 column;", "g2.edges.csv:2: unknown node '77'", "labels.csv:2: graph 'g9' has no node"),
        ),
        (
            "tables",
            {"nodes.csv": "graph,id,age\ng1,0,x\ng1,1\ng1,2,4\n", "edges.csv": "graph,source,target\ng1,0,1\ng1,8,1\n"},
            ("nodes.csv:2: column 'age' of node 'g1/0' is 'x'", "nodes.csv:3: 2 columns", "edges.csv:3: unknown node 'g1/8'"),
        ),
        ("graphml", {"g1.graphml": "<graphml/>", "g2.graphml": "<x"}, ("g1.graphml: no graph", "g2.graphml: not whole XML")),
    ],
)
def test_faults_of_several_files_come_at_once(
    layout: str, changes: dict[str, str], says: tuple[str, ...], tmp_path: Path
) -> None:
    LAYOUTS[layout](tmp_path)
    for file, text in changes.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    lines = str(caught.value).splitlines()
    for what in says:
        assert any(what in line for line in lines), (what, lines)


def test_what_is_missing_or_strange_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no graph was found; allowed: tables of nodes"):
        load(tmp_path)
    as_tables(tmp_path)
    for name, says in (("labels.csv", "labels are missing"), ("edges.csv", "no table of ties was found")):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match=says):
            load(tmp_path)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="not a folder"):
        load(tmp_path / "nodes.csv")


def test_a_first_line_names_the_ends_and_strangers_among_them_are_counted(tmp_path: Path) -> None:
    names = ["Ann Ott", "Ben Graf", "Eva Koch", "Leo Roth", "Ida Lang", "Uwe Haas"]
    ties = tmp_path / "who plays with whom.csv"
    ties.write_text("Member A;Member B\n" + "".join(f"{a};{b}\n" for a, b in itertools.pairwise(names)), encoding="utf-8")
    for known, says in (
        (names, "between 'Member A' and 'Member B'"),
        (names[:2], "6 names, of which 2 are in 'Name' of members"),
    ):
        rows = "".join(f"{name},{20 + place},{'ab'[place % 2]}\n" for place, name in enumerate(known))
        (tmp_path / "members.csv").write_text(f"Name,age,level\n{rows}", encoding="utf-8")
        if known == names:
            assert says in read(tmp_path, "level").says
            assert says in read(tmp_path, "level", ends=["member a", "Member B"]).says
        else:
            with pytest.raises(DataError, match=f"no table of ties was found: 'Member A' and 'Member B' hold {says}"):
                read(tmp_path, "level", labelled=False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda gs: gs[1].nodes[0].pop("x"), "graph 1: node '0' has no attribute 'x', others have"),
        (lambda gs: gs[1].nodes[0].update(x=[1.0]), "graph 1: the nodes' attributes 'x' are no numbers of one length"),
        (lambda gs: gs.append(3), "graph 3 is a int; allowed: a torch_geometric Data or a NetworkX graph"),
        (lambda gs: gs[2].clear(), "graph 2: it has no node"),
        (lambda gs: [g.graph.pop("y") for g in gs], "no graph has a label"),
        (lambda gs: gs.clear(), "the list holds no graph"),
        (lambda gs: gs[0].nodes[0].update(x=[1.0, np.nan]), "features of node 0 hold NaN"),
    ],
)
def test_faults_of_a_list_name_the_graph(change: object, says: str) -> None:
    graphs = networks()
    change(graphs)  # type: ignore[operator]
    with pytest.raises(DataError, match=says):
        read(graphs, name="mine")
