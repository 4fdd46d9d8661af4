"""Accounts with kinds and owners, generated and as one's own tables: what is kept, dropped, owned and said."""

from pathlib import Path

import numpy as np
import pytest

from fedgraph import data
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.methods import link_owners
from fedgraph.types import Graph

EDGES = "source,target,kind,payer\na,b,card,ann\nb,c,salary,firm\nb,a,card,bob\nc,d,transfer,ann\n"


def own(folder: Path, edges: str = EDGES, **parameters: object) -> Graph:
    (folder / "edges.csv").write_text(edges)
    (folder / "features.csv").write_text("id,x\na,0.5\nb,0.1\nc,0\nd,1\n")
    (folder / "labels.csv").write_text("id,label\na,0\nb,1\nc,0\nd,1\n")
    found = data.load("own/csv", path=folder, parameters=parameters)
    assert isinstance(found, Graph)
    return found


def accounts(**parameters: object) -> Graph:
    found = data.load("synthetic/accounts", parameters={"people": 60, **parameters})
    assert isinstance(found, Graph)
    return found


def test_an_own_table_names_owners_and_kinds(tmp_path: Path) -> None:
    graph = own(tmp_path, owner="payer", kind="kind")
    assert graph.num_edges == 3
    assert link_owners.owners_of(graph, np.array([[0, 1], [1, 2], [2, 3]])).tolist() == [[0, 1], [2, -1], [0, -1]]
    assert "3 owners of edges" in graph.provenance.detail
    assert "4 ties are read, of whatever kind (card: 2, salary: 1, transfer: 1)" in graph.provenance.detail
    some = own(tmp_path, owner="payer", kind="kind", kinds=["salary", "transfer"])
    assert some.num_edges == 2
    assert link_owners.owners_of(some, np.array([[1, 2], [2, 3]])).tolist() == [[2], [0]]
    assert own(tmp_path).edge_owners == ()
    assert "further column" not in graph.provenance.detail, "both are read"
    twice = own(tmp_path, "source,target,payer\na,b,ann\n", owner="payer", kind="payer")
    assert "further column" not in twice.provenance.detail, "one column may say both"


@pytest.mark.parametrize(
    ("edges", "parameters", "says"),
    [
        (EDGES, {"owner": "buyer"}, r"no column 'buyer' beside the two ids; found: kind, payer"),
        (EDGES, {"kind": "kind", "kinds": ["gift"]}, r"no edge is of the kind 'gift'; allowed: card, salary, transfer"),
        (EDGES, {"kinds": ["card"]}, "which column names them, is missing"),
        (EDGES.replace("salary,firm", "salary,"), {"owner": "payer"}, r"edges.csv:3: no payer; allowed: any text"),
        (
            EDGES.replace("a,b,card", "x,b,card"),
            {"owner": "payer"},
            r"edges.csv:2: unknown node 'x'; allowed: the 4 ids of the",
        ),
    ],
)
def test_what_is_wrong_with_kinds_and_owners_is_said(
    edges: str, parameters: dict[str, object], says: str, tmp_path: Path
) -> None:
    with pytest.raises((DataError, ScenarioError), match=says):
        own(tmp_path, edges, **parameters)


def test_generated_accounts_have_owners_at_several_banks() -> None:
    graph = accounts()
    edges = links.list_all(graph.adjacency)
    owners = link_owners.owners_of(graph, edges)
    assert (owners.max(axis=1) >= 0).all(), "no edge without an owner"
    assert graph.owner is not None
    ends = np.concatenate([np.column_stack([edges[:, k], owners[:, 0]]) for k in (0, 1)])
    held = {(int(owner), int(graph.owner[node])) for node, owner in ends}
    assert np.bincount([owner for owner, _ in held]).max() > 1, "somebody has records at two banks"
    assert (accounts().adjacency != graph.adjacency).nnz == 0
    assert accounts(edges=["salary"]).num_edges < graph.num_edges
    assert accounts(kinds="columns").num_features == graph.num_features + 3
    assert set(np.unique(graph.labels)) == {-1, 0, 1, 2, 3}
