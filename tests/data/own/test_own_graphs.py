"""One's own collection of small graphs: every layout gives the same graphs, and every fault of a file comes at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
from tests.data.own.clubs import lines, put

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
    nodes, edges = [], []
    for number, graph in enumerate(networks(), 1):
        nodes += [(f"g{number}", node, 20 + node, node % 2) for node in graph]
        edges += [(f"g{number}", *pair) for pair in graph.edges]
    people, ties = lines(nodes, "graph,id,age,member"), lines(edges, "graph,source,target")
    put(folder, {"nodes.csv": people, "edges.csv": ties, "labels.csv": LABELS})


def as_pairs(folder: Path, name: str = "g{}.") -> None:
    for number, graph in enumerate(networks(), 1):
        put(folder, {
            f"{name.format(number)}nodes.csv": lines(((node, 20 + node, node % 2) for node in graph), "id,age,member"),
            f"{name.format(number)}edges.csv": lines(graph.edges, "source,target"),
        })  # fmt: skip
    put(folder, {"labels.csv": LABELS})


def as_graphml(folder: Path) -> None:
    for number, graph in enumerate(networks(), 1):
        plain = nx.Graph(graph.edges, label=graph.graph["y"])
        for node in graph:
            plain.add_node(node, age=20 + node, member=bool(node % 2))
        nx.write_graphml(plain, folder / f"g{number}.graphml")


def as_tu(folder: Path) -> None:
    put(folder, {
        "MINE_A.txt": "1, 2\n1, 4\n2, 3\n3, 4\n5, 6\n6, 7\n8, 9\n8, 10\n9, 10\n",
        "MINE_graph_indicator.txt": "1\n" * 4 + "2\n" * 3 + "3\n" * 3,
        "MINE_graph_labels.txt": "1\n-1\n1\n",
        "MINE_node_attributes.txt": "".join(f"{20 + node}, {node % 2}\n" for graph in networks() for node in graph),
    })  # fmt: skip


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "tables": as_tables, "pairs": as_pairs, "folders": lambda folder: as_pairs(folder, "g{}/"), "graphml": as_graphml,
    "tu": as_tu,
}  # fmt: skip


def load(path: Path, **parameters: object) -> GraphCollection:
    found = data.load("own/graphs", path=path, parameters=parameters)
    assert isinstance(found, GraphCollection)
    return found


def require_same(found: object) -> None:
    assert isinstance(found, GraphCollection)
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
    require_same(load(tmp_path))


def test_whatever_holds_graphs_in_memory_gives_the_same_graphs() -> None:
    for given in (networks(), tuple(networks()), iter(networks())):
        require_same(read(given, name="mine").graph)
    objects = [
        Data(
            x=torch.tensor([g.nodes[n]["x"] for n in sorted(g)]),
            edge_index=torch.tensor(list(g.edges)).T,
            y=torch.tensor([int(g.graph["y"] == "ring")]),
        )
        for g in networks()
    ]
    require_same(read(objects, name="mine").graph)


def test_without_columns_there_are_no_features_and_without_a_label_no_graph(tmp_path: Path) -> None:
    put(tmp_path, {
        "nodes.csv": "graph,id\na,1\na,2\nb,1\nc,1\n", "edges.csv": "graph,source,target,weight\na,1,2,3\n",
        "labels.csv": "graph,label\na,x\nb,\nc,y\n",
    })  # fmt: skip
    found = load(tmp_path)
    assert [(g.num_nodes, g.num_features) for g in found.graphs] == [(2, 0), (1, 0)]
    for says in ("1 of 3 graphs have no label", "graphs without a label are left out", "not used: column 'weight' of ties"):
        assert says in found.provenance.detail


def test_owners_are_a_column_or_folders(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    as_tables(one)
    found = load(put(one, {"labels.csv": "graph,label,owner\ng1,ring,east\ng2,line,west\ng3,ring,east\n"}))
    assert (found.owner_names, np.asarray(found.owner).tolist()) == (("east", "west"), [0, 1, 0])
    for owner in ("east", "west"):
        (two / owner).mkdir(parents=True)
        as_graphml(two / owner)
    several = load(two)
    assert (several.owner_names, np.asarray(several.owner).tolist()) == (("east", "west"), [0, 0, 0, 1, 1, 1])
    assert several.graphs[3].name.endswith("#west/g1")
    with pytest.raises(DataError, match="graph 'g2' has no owner, others have"):
        load(put(one, {"labels.csv": "graph,label,owner\ng1,ring,east\ng2,line,\ng3,ring,east\n"}))
    assert not data.is_graph_folder(put(tmp_path / "three", {"a/features.csv": ""})), "a federation"
    assert not data.is_graph_folder(tmp_path / "three/a"), "one graph"


FAULTS: list[tuple[str, dict[str, str], tuple[str, ...]]] = [
    ("tables", {"nodes.csv": "graph,id,age,member\ng1,a,101,0\ng1,a,102,0\ng2,b,x,1\ng3,,103,1\n"},
     ("nodes.csv:3: node 'g1/a' appears a second time", "nodes.csv:5: a node without an id")),
    ("tables", {"edges.csv": "graph,source,target\ng1,0,9\ng9,0,1\n"},
     ("edges.csv:2: unknown node 'g1/9'; allowed: the 10 ids", "edges.csv:3: unknown node 'g9/0'")),
    ("tables", {"labels.csv": "graph,label\ng1,a\ng1,b\ng7,b\n"},
     ("labels.csv:3: graph 'g1' has a second label; allowed: one", "labels.csv:4: graph 'g7' has no node; allowed: the")),
    ("tables", {"labels.csv": "graph\ng1\n"}, ("labels are missing; allowed: a table with the columns graph, label",)),
    ("tables", {"labels.csv": "graph,label\ng1,\n"}, ("no graph has a label; allowed: at least one labelled graph",)),
    ("pairs", {"g2.nodes.csv": "id,age,member\n0,old,1\n1,2\n2,3,1\n"},
     ("g2.nodes.csv:2: column 'age' of node 'g2/0' is 'old'", "g2.nodes.csv:3: 2 columns; allowed: 3, as in the header")),
    ("tu", {"MINE_A.txt": "1, 9\n2, 8\n"},
     ("MINE_A.txt:1: a tie between two graphs; allowed: nodes of one graph", "MINE_A.txt:2: a tie between two graphs")),
    ("tu", {"MINE_graph_labels.txt": "1\n2\n"}, ("MINE_graph_labels.txt: 2 lines; allowed: 3",)),
    ("graphml", {"g2.graphml": "<graphml><graph><node id='a'/><node id='a'/><edge source='a' target='q'/></graph></graphml>"},
     ("g2.graphml: node 'a' is there twice", "g2.graphml: unknown node 'q'; allowed: the 1 nodes of its graph")),
    ("graphml", {"g2.graphml": "<graphml><graph></graphml>"}, ("g2.graphml: not whole XML (mismatched tag",)),
    ("graphml", {"g2.graphml": "<graphml><graph/></graphml>"}, ("g2.graphml: graph '1' has no node",)),
    ("graphml", {"g1.graphml": "<graphml/>", "g2.graphml": "<x"}, ("g1.graphml: no graph", "g2.graphml: not whole XML")),
    ("graphml", {"g2.graphml": "<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>"},
     ("g2.graphml: refused, its XML declares entities or a document type",)),
    ("pairs",
     {"g1.nodes.csv": "id,age\n0,1\n1\n", "g2.edges.csv": "source,target\n0,77\n", "labels.csv": "graph,label\ng9,x\n"},
     ("g1.nodes.csv:3: 1 column;", "g2.edges.csv:2: unknown node '77'", "labels.csv:2: graph 'g9' has no node")),
    ("tables", {"nodes.csv": "graph,id,age\ng1,0,x\ng1,1\ng1,2,4\n", "edges.csv": "graph,source,target\ng1,0,1\ng1,8,1\n"},
     ("nodes.csv:2: column 'age' of node 'g1/0' is 'x'", "nodes.csv:3: 2 columns", "edges.csv:3: unknown node 'g1/8'")),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "changes", "says"), FAULTS)
def test_all_faults_of_all_files_come_at_once(
    layout: str, changes: dict[str, str], says: tuple[str, ...], tmp_path: Path
) -> None:
    LAYOUTS[layout](tmp_path)
    with pytest.raises(DataError) as caught:
        load(put(tmp_path, changes))
    told = str(caught.value).splitlines()
    assert len(told) >= len(says)
    for what in says:
        assert any(what in line for line in told), (what, told)
    assert all(str(tmp_path) in line or line.startswith("…") for line in told)


def test_what_is_missing_or_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no graph was found; allowed: tables of nodes"):
        load(tmp_path)
    as_tables(tmp_path)
    with pytest.raises(DataError, match="not a folder"):
        load(tmp_path / "nodes.csv")
    for name, says in (("labels.csv", "labels are missing"), ("edges.csv", "no table of ties was found")):
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match=says):
            load(put(tmp_path, {"labels.csv": LABELS} if name == "edges.csv" else {}))


def test_a_first_line_names_the_ends_and_strangers_among_them_are_counted(tmp_path: Path) -> None:
    names = ["Ann Ott", "Ben Graf", "Eva Koch", "Leo Roth", "Ida Lang", "Uwe Haas"]
    members = [f"{name},{20 + place},{'ab'[place % 2]}\n" for place, name in enumerate(names)]
    put(tmp_path, {
        "who plays with whom.csv": lines(itertools.pairwise(names), "Member A;Member B", ";"),
        "members.csv": "Name,age,level\n" + "".join(members),
    })  # fmt: skip
    for ends in (None, ["member a", "Member B"]):
        assert "between 'Member A' and 'Member B'" in read(tmp_path, "level", ends=ends).says
    put(tmp_path, {"members.csv": "Name,age,level\n" + "".join(members[:2])})
    says = "no table of ties was found: 'Member A' and 'Member B' hold 6 names, of which 2 are in 'Name' of members"
    with pytest.raises(DataError, match=says):
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
def test_faults_of_a_list_name_the_graph(change: Callable[[list[nx.Graph]], object], says: str) -> None:
    graphs = networks()
    change(graphs)
    with pytest.raises(DataError, match=says):
        read(graphs, name="mine")
