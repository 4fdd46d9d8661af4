"""Files that others brought: each is the same club, whatever program wrote it; notes beside tables are listed."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from tests.data.own.clubs import given, graph_of, lines, pairs_of, put, ties_of

N = 24
NUMBERS = [str(number) for number in range(1, N + 1)]
PARTY = [("red", "green", "blue")[place % 3] for place in range(N)]
TIES = [(place, (place + step) % (N - 1)) for place in range(N - 1) for step in (1, 3)]  # the last one is alone
PEOPLE = pd.DataFrame({"id": NUMBERS, "party": PARTY})
TIED = pd.DataFrame([(NUMBERS[a], NUMBERS[b]) for a, b in TIES], columns=["source", "target"])
ONES = [(str(one), str(said)) for one, said in PEOPLE.to_numpy()]
PAIRS = [(str(one), str(two)) for one, two in TIED.to_numpy()]
NAMES = [[b for a, b in TIES if a == place] for place in range(N)]  # whom each one names
ALL = {"nodes": PEOPLE.to_dict("records"), "edges": TIED.to_dict("records")}
people_csv, ties_csv, parties = PEOPLE.to_csv(index=False), TIED.to_csv(index=False), lines(zip(PARTY, strict=True))
XML_TIES = "".join(f'<edge id="{k}" source="{a}" target="{b}"/>' for k, (a, b) in enumerate(PAIRS))
GRAPHML = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def matrix() -> sp.coo_array:
    one, two = np.array(TIES).T
    return sp.coo_array((np.ones(len(TIES)), (one, two)), shape=(N, N))


CELLS = matrix().toarray().astype(int)
WHOLE = CELLS + CELLS.T
SQUARE = lines(CELLS, separator=" ")


def frames(write: Callable[[pd.DataFrame, Path], object], ending: str) -> Callable[[Path], None]:
    """Two tables, each in a file of its own."""

    def both(folder: Path) -> None:
        write(PEOPLE, folder / f"people.{ending}")
        write(TIED, folder / f"ties.{ending}")

    return both


def dimacs(folder: Path) -> None:
    put(folder, {"club.col": f"c a club\np edge {N} {len(TIES)}\n" + lines((("e", *pair) for pair in PAIRS), separator=" ")})
    PEOPLE.to_stata(folder / "people.dta", write_index=False)


def sqlite(folder: Path) -> None:
    with sqlite3.connect(folder / "club.db3") as opened:
        PEOPLE.to_sql("person", opened, index=False)
        TIED.to_sql("friendship", opened, index=False)
    opened.close()


def tar(folder: Path) -> None:
    with tarfile.open(folder / "club.tar.gz", "w:gz") as archive:
        for name, text in (("people.csv", people_csv), ("ties.csv", ties_csv)):
            member = tarfile.TarInfo(f"club/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def scipy_matrix(folder: Path) -> None:
    sp.save_npz(folder / "adjacency.npz", matrix())
    PEOPLE.assign(id=range(N)).to_csv(folder / "labels.csv", index=False)


def matrix_with_names(folder: Path) -> None:
    pd.DataFrame(WHOLE, index=NUMBERS, columns=NUMBERS).to_csv(folder / "adjacency.csv")
    PEOPLE.iloc[:-1].to_csv(folder / "people.csv", index=False)


def matrix_behind_columns(folder: Path) -> None:
    cells = pd.DataFrame(CELLS, columns=[f"P{number}" for number in NUMBERS])
    pd.concat([PEOPLE.assign(id="P" + PEOPLE["id"]), cells], axis=1).to_csv(folder / "roster.csv", index=False)


def cytoscape_tables(folder: Path) -> None:
    PEOPLE.rename(columns={"id": "name"}).assign(SUID=range(100, 100 + N)).to_csv(folder / "nodes.csv", index=False)
    ties = pd.DataFrame({"name": TIED["source"] + " (pp) " + TIED["target"], "interaction": "pp"})
    ties.assign(**{"shared name": ties["name"], "SUID": range(500, 500 + len(ties))}).to_csv(folder / "edges.csv", index=False)


def away_from_the_corner(folder: Path) -> None:
    with pd.ExcelWriter(folder / "club.xlsx") as book:
        PEOPLE.to_excel(book, sheet_name="people", index=False, startrow=3, startcol=2)
        TIED.to_excel(book, sheet_name="ties", index=False, startrow=1, startcol=1)


def nodexl(folder: Path) -> None:
    head = [["", "Visual", "", "Labels", "", "Other Columns"], ["Vertex", "Color", "Shape", "Label", "ID", "party"]]
    people = [[f"P{one}", "", "", "", int(one), said] for one, said in ONES]
    ties = [["", "", "Visual"], ["Vertex 1", "Vertex 2", "Width"], *([f"P{a}", f"P{b}", 1] for a, b in PAIRS)]
    groups = [["", "", "Metrics"], ["Group 1", "Group 2", "Edges"], ["G1", "G2", 3], ["G1", "G3", 2], ["G2", "G3", 1]]
    with pd.ExcelWriter(folder / "club.xlsx") as book:
        for name, rows in (("Edges", ties), ("Vertices", head + people), ("Group Edges", groups)):
            pd.DataFrame(rows).to_excel(book, sheet_name=name, index=False, header=False)


def json_of_pandas(folder: Path) -> None:
    PEOPLE.to_json(folder / "people.json")
    TIED.to_json(folder / "ties.json", orient="split")


def as_json(name: str, told: object) -> dict[str, str]:
    return {name: json.dumps(told)}


def json_adjacency() -> dict[str, str]:
    graph = nx.from_pandas_edgelist(TIED)
    graph.add_nodes_from((number, {"party": party}) for number, party in ONES)
    return as_json("club.json", nx.adjacency_data(graph))


def graphson() -> dict[str, str]:
    def typed(value: int) -> dict[str, object]:
        return {"@type": "g:Int64", "@value": value}

    vertices = [
        {"id": typed(a + 1), "label": "member", "properties": {"party": [{"id": typed(0), "value": PARTY[a]}]},
         "outE": {"knows": [{"id": typed(b), "inV": typed(b + 1)} for b in own]}}
        for a, own in enumerate(NAMES)
    ]  # fmt: skip
    return {"club.json": "\n".join(map(json.dumps, vertices))}


def cx() -> dict[str, str]:
    """As Cytoscape 3 writes networks: attributes stand apart, and so do places."""
    return as_json("club.cx", [
        {"numberVerification": [{"longNumber": 281474976710655}]},
        {"nodes": [{"@id": 100 + k, "n": NUMBERS[k]} for k in range(N)]},
        {"edges": [{"@id": 900 + k, "s": 100 + a, "t": 100 + b, "i": "pp"} for k, (a, b) in enumerate(TIES)]},
        {"nodeAttributes": [{"po": 100 + k, "n": "party", "v": said} for k, said in enumerate(PARTY)]},
        {"cartesianLayout": [{"node": 100, "x": 1.5, "y": 2.5}]}, {"status": [{"success": True}]},
    ])  # fmt: skip


def cx2() -> dict[str, str]:
    """A usual value is not written again, and a name may be a short one."""
    declared = {"nodes": {"name": {"d": "string"}, "party": {"d": "string", "a": "p", "v": "red"}}, "edges": {}}
    nodes = [{"id": k, "x": 1.5, "y": 2.5, "v": {"name": one} | ({} if said == "red" else {"p": said})}
             for k, (one, said) in enumerate(ONES)]  # fmt: skip
    edges = [{"id": k, "s": a, "t": b, "v": {}} for k, (a, b) in enumerate(TIES)]
    told = [{"CXVersion": "2.0"}, {"attributeDeclarations": [declared]}, {"nodes": nodes}, {"edges": edges}]
    return as_json("club.cx2", told)


def xgmml() -> dict[str, str]:
    nodes = "".join(
        f'<node id="-{one}" label="{one}"><att name="party" value="{said}" type="string"/><graphics x="1.5" y="2"/></node>'
        for one, said in ONES
    )
    edges = "".join(f'<edge label="{a} (pp) {b}" source="-{a}" target="-{b}"/>' for a, b in PAIRS)
    head = '<?xml version="1.0"?><graph label="club" directed="0" xmlns="http://www.cs.rpi.edu/XGMML">'
    return {"club.xgmml": f"{head}<att name='x'/>{nodes}{edges}</graph>"}


def graph_tool() -> dict[str, str]:
    keys = '<key id="k0" for="node" attr.name="party" attr.type="string"/>'
    keys += '<key id="k1" for="node" attr.name="pos" attr.type="vector_double"/>'
    data = '<data key="k0">{}</data><data key="k1">0x1p+{}, 1</data>'.format
    nodes = "".join(f'<node id="{one}">{data(said, one)}</node>' for one, said in ONES)
    return {"club.xml": f'<graphml {GRAPHML}>{keys}<graph edgedefault="undirected">{nodes}{XML_TIES}</graph></graphml>'}


def gexf(space: str = "http://www.gexf.net/1.2draft") -> dict[str, str]:
    values = '<attvalues><attvalue for="0" value="{}"/></attvalues><viz:position x="{}.5" y="2"/>'.format
    nodes = "".join(f'<node id="{k}">{values(said, k)}</node>' for k, said in ONES)
    spaces = f'xmlns="{space}" xmlns:viz="{space}/viz"'
    attributes = '<attributes class="node"><attribute id="0" title="party" type="string"/></attributes>'
    graph = f'<graph mode="static">{attributes}<nodes>{nodes}</nodes><edges>{XML_TIES}</edges></graph>'
    return {"club.gexf": f"<gexf {spaces}>{graph}</gexf>"}


def yed() -> dict[str, str]:
    keys = '<key for="node" id="d6" yfiles.type="nodegraphics"/><key attr.name="party" attr.type="string" for="node" id="t"/>'
    shape = '<y:ShapeNode><y:Geometry height="1" width="1" x="{}.5" y="2"/><y:Shape type="ellipse"/></y:ShapeNode>'.format
    nodes = "".join(f'<node id="{k}"><data key="d6">{shape(k)}</data><data key="t">{said}</data></node>' for k, said in ONES)
    graph = f'<graph edgedefault="undirected">{nodes}{XML_TIES}</graph>'
    return {"club.graphml": f'<graphml {GRAPHML} xmlns:y="http://www.yworks.com/xml/graphml">{keys}{graph}</graphml>'}


def held(yed: bool) -> dict[str, str]:
    """Whom groups of yEd, or nodes of GraphML, hold: what is known of people, and ties, may stand within."""
    nodes, inner = "", '<graph edgedefault="undirected">'
    for group in sorted({*PARTY}):
        title = f"<y:Proxy><y:GroupNode><y:NodeLabel>{group}</y:NodeLabel></y:GroupNode></y:Proxy>"
        own = "".join(f'<node id="{one}"><data key="t">{said}</data></node>' for one, said in ONES if said == group)
        own = f"{inner}{own}{XML_TIES if group == 'red' else ''}</graph>"
        folder = f'<node id="g{group}" yfiles.foldertype="group"><data key="d6">{title}</data>'
        nodes += f"{folder if yed else f'<node id={group!r}>'}{own}</node>"
    keys = '<key for="node" id="d6" yfiles.type="nodegraphics"/><key attr.name="desk" attr.type="string" for="node" id="t"/>'
    head = f'<graphml {GRAPHML} xmlns:y="http://www.yworks.com/xml/graphml">{keys}'
    return {"club.graphml": f"{head}{inner}{nodes}</graph></graphml>"}


def igraph_gml(graphics: str = "", weight: str = "weight NaN\n") -> dict[str, str]:
    nodes = "".join(f'  node\n  [\n    id {one}\n    party "{said}"\n{graphics}  ]\n' for one, said in ONES)
    ties = "".join(f"  edge\n  [\n    source {a}\n    target {b}\n    {weight}  ]\n" for a, b in PAIRS)
    return {"club.gml": f'Creator "igraph"\nVersion 1\ngraph\n[\n  directed 0\n{nodes}{ties}]\n'}


def spaced(rows: Iterable[Iterable[object]]) -> str:
    return lines(rows, separator=" ")


OWN = spaced([a + 1, *(b + 1 for b in own)] for a, own in enumerate(NAMES) if own)  # each with those whom it names
SOMEBODY = "".join(f"{one} Somebody {one}\n" for one in NUMBERS)
PLACES = "".join(f'{one} "{one}" 0.1 0.2 0.5\n' for one in NUMBERS)
EMBEDDED = "".join(f"P{a} P{b} 1\n" for a, b in PAIRS)
PSQL = "".join(f" {one} | {said}\n" for one, said in ONES)
LGL = "".join(f"# {NUMBERS[a]}\n" + "".join(f"{NUMBERS[b]} 1.5\n" for b in own) for a, own in enumerate(NAMES))
PAJEK = f"*Vertices {N}\n" + "".join(f'{number} "{number}"\n' for number in NUMBERS)
UCINET = f"dl n = {N} format = fullmatrix\nlabels:\n{', '.join(NUMBERS)}\ndata:\n"
LABELS = lines((f'"{number}"',) for number in NUMBERS)
UCINET_BOTH = f"DL N = {N} NM = 1\nFORMAT = FULLMATRIX DIAGONAL PRESENT\nROW LABELS:\n{LABELS}COLUMN LABELS:\n{LABELS}DATA:\n"
HALF = len(TIES) // 2
RULE = "+--------+--------+\n"
DRAWN_TIES = "".join(f"| {a} | {b} |\n" for a, b in PAIRS)
PLACED = [{"id": int(k), "party": said, "x": int(k) + 0.5, "y": 2.0, "vx": 0.1, "vy": 0, "index": int(k)} for k, said in ONES]
LINKS = [{"source": a + 1, "target": b + 1} for a, b in TIES]
KONECT = f"% sym positive\n% {len(TIES)} {N} {N}\n" + "".join(f"{a} {b} 1 {1082040961 + k}\n" for k, (a, b) in enumerate(PAIRS))
GDF = "nodedef>name VARCHAR,party VARCHAR,x DOUBLE,y DOUBLE,color VARCHAR\n" + lines(
    (*one, 1.5, 2.5, "'10,20,30'") for one in ONES
)

FORMS: dict[str, Callable[[Path], None] | Mapping[str, str | bytes]] = {
    "cx": cx(), "cx2": cx2(), "xgmml": xgmml(), "graph_tool": graph_tool(), "gexf": gexf(), "yed": yed(),
    "gexf_3": gexf("http://www.gexf.net/1.3"),
    "igraph_gml": igraph_gml(), "gml_with_graphics": igraph_gml("graphics [ x 1.5\ny 2.0\n ]\n", ""),
    "guess": {"club.gdf": f"{GDF}edgedef>node1 VARCHAR,node2 VARCHAR\n{lines(PAIRS)}"},
    "tgf": {"club.tgf": f"{SOMEBODY}#\n" + spaced((*pair, "knows") for pair in PAIRS), "people.csv": people_csv},
    "konect": {"out.club": KONECT, "ent.club": "% ent party dat.joined\n" + "".join(f"{said} 2024\n" for said in PARTY),
               "ent.club.person.name": "".join(f"Somebody {one}\n" for one in NUMBERS),
               "meta.club": "name: Club\ncategory: Social\n"},
    # as ``write.table`` of R writes: spaces between, quotes around, and no name above the names of rows
    "tables_of_r": {"people.txt": '"name" "party"\n' + "".join(f'"{one}" "Some one" "{said}"\n' for one, said in ONES),
                    "ties.txt": '"from" "to"\n' + "".join(f'"{k}" "{a}" "{b}"\n' for k, (a, b) in enumerate(PAIRS, 1))},
    "mtx": {"net.mtx": f"%%MatrixMarket matrix coordinate pattern symmetric\n{N} {N} {len(TIES)}\n"
            + "".join(f"{max(a, b) + 1} {min(a, b) + 1}\n" for a, b in TIES), "labels.txt": parties},
    "pajek": {"club.paj": f"*Network club\n*Vertices {N}\n{PLACES}*Edges\n" + spaced((*pair, 1) for pair in PAIRS)
              + f"*Partition party\n*Vertices {N}\n{parties}"},
    "pajek_lists": {"club.net": f"{PAJEK}*Edgeslist\n{OWN}", "party.clu": f"*Vertices {N}\n{parties}"},
    "pajek_without_names": {"club.net": f'*Vertices {N}\n*Arcs :1 "kin"\n{spaced(PAIRS[:HALF])}*Edges :2 "work"\n'
                            + spaced(PAIRS[HALF:]), "people.csv": people_csv},
    "dimacs": dimacs,
    "ucinet": {"club.dl": UCINET + SQUARE, "people.csv": people_csv},
    "ucinet_of_rows_and_columns": {"club.dl": UCINET_BOTH + SQUARE, "people.csv": people_csv},
    "ucinet_neighbours": {"club.dl": f"dl n={N} format=nodelist1\nlabels:\n{' '.join(NUMBERS)}\ndata:\n{OWN}",
                          "people.csv": people_csv},
    "ucinet_embedded": {"club.dl": f"dl n={N} format=edgelist1\nlabels embedded:\ndata:\n{EMBEDDED}",
                        "people.csv": people_csv.replace("\n", "\nP").removesuffix("P")},
    "sqlite": sqlite, "tar": tar, "feather": frames(lambda table, file: table.astype("category").to_feather(file), "feather"),
    "orc": frames(lambda table, file: table.to_orc(file, index=False), "orc"),
    "json_with_a_schema": frames(lambda table, file: table.to_json(file, orient="table"), "json"),
    "json_of_pandas": json_of_pandas, "json_of_a_service": as_json("dump.json", {"status": "ok", "count": N, "data": ALL}),
    "json_of_several_tables": as_json("dump.json", {"users": ALL["nodes"], "friendships": ALL["edges"]}),
    "json_graph": as_json("club.json", {"graph": {"edges": ALL["edges"], "nodes": {
        one: {"metadata": {"party": said}} for one, said in ONES}}}),
    "json_adjacency": json_adjacency(), "graphson": graphson(),
    "d3": as_json("club.json", {"nodes": [{"name": f"P{one}", "party": said} for one, said in ONES],
                                "links": [{"source": a, "target": b} for a, b in TIES]}),
    "d3_with_places": as_json("club.json", {"nodes": PLACED, "links": LINKS}),
    "cytoscape": as_json("club.cyjs", {"elements": {"nodes": [{"data": row} for row in ALL["nodes"]], "edges": [
        {"data": {"id": f"e{k}", **row}} for k, row in enumerate(ALL["edges"])]}}),
    "yed_groups": held(True), "graphml_nested": held(False),
    "gexf_of_groups": {"club.gexf": "<gexf><graph><nodes>" + "".join(f'<node id="g{k}" label="{k}"/>' for k in sorted({*PARTY}))
                       + "".join(f'<node id="{one}" pid="g{said}"/>' for one, said in ONES)
                       + f"</nodes><edges>{XML_TIES}</edges></graph></gexf>"},
    "cytoscape_compound": as_json("club.cyjs", {"elements": {
        "nodes": [{"data": {"id": f"g{k}", "name": k, "parent": "all"}} for k in sorted({*PARTY})] + [{"data": {"id": "all"}}]
        + [{"data": {"id": one, "parent": f"g{said}"}} for one, said in ONES],
        "edges": [{"data": row} for row in ALL["edges"]]}}),
    "kumu": as_json("club.json", {"elements": [{"label": f"P{one}", "party": said} for one, said in ONES], "maps": [],
                                  "connections": [{"from": f"P{a}", "to": f"P{b}", "direction": "mutual"} for a, b in PAIRS]}),
    "pandas_columns": {"people.json": PEOPLE.set_index("id").assign(age=7, new=True).to_json(), "ties.json": TIED.to_json()},
    "firebase_of_people": as_json("club.json", {
        one: {"party": said, **({"friends": {str(b + 1): True for b in NAMES[k]}} if NAMES[k] else {})}
        for k, (one, said) in enumerate(ONES)}),
    "firebase": as_json("club.json", {"users": {
        f"P{one}": {"party": said, "friends": {f"P{b + 1}": "since May" for b in NAMES[k]} | {"P24": False}}
        for k, (one, said) in enumerate(ONES)},
        "presence": {f"P{one}": {"online": True} for one in NUMBERS[:9]}, "config": {"version": "1.4"}}),
    "cytoscape_tables": cytoscape_tables,
    "memgraph": as_json("memgraph.json", [
        *({"id": int(one), "labels": ["P"], "properties": {"party": said}, "type": "node"} for one, said in ONES),
        *({"start": a + 1, "end": b + 1, "id": k, "type": "relationship"} for k, (a, b) in enumerate(TIES))]),
    "neo4j_import": {"person-header.csv": "personId:ID(P);party\n", "person.csv": lines(ONES, separator=";"),
                     "knows_header.csv": ":START_ID(P);:END_ID(P);:TYPE\n",
                     "knows.csv": lines(((a, b, "KNOWS") for a, b in PAIRS), "", ";")},
    "neo4j_of_everything": {"all.csv": '"_id","_labels","party","_start","_end","_type"\n'
                            + "".join(f'"{one}",":Person","{said}",,,\n' for one, said in ONES)
                            + "".join(f',,,"{a}","{b}","KNOWS"\n' for a, b in PAIRS)},
    "packed_with_comments": {"ties.csv.bz2": bz2.compress(ties_csv.replace("1,5\n", "1,5\n# by phone\n").encode()),
                             "people.csv.xz": lzma.compress(people_csv.encode())},
    "sif": {"club.sif": "\n".join("\t".join([NUMBERS[a], "pp", *(NUMBERS[b] for b in own)] if own else [NUMBERS[a]])
                                  for a, own in enumerate(NAMES)), "people.csv": people_csv},
    "lgl": {"club.lgl": LGL, "people.csv": people_csv},
    "metis": {"club.graph": f"% a club\n{N} {len(TIES)} 001\n" + "".join(
        " ".join(f"{b + 1} 7" for b in np.flatnonzero(row)) + "\n" for row in WHOLE), "people.csv": people_csv},
    # as psql, MySQL and Markdown write tables
    "drawn": {"people.txt": f" id | party \n----+-------\n{PSQL}({N} rows)\n\n",
              "ties.txt": f"{RULE}| source | target |\n{RULE}{DRAWN_TIES}{RULE}{len(TIES)} rows in set (0.01 sec)\n"},
    "markdown": {"ties.txt": f"| source | target |\n|--------|-------:|\n{DRAWN_TIES}", "people.csv": people_csv},
    "away_from_the_corner": away_from_the_corner, "nodexl": nodexl, "scipy_matrix": scipy_matrix,
    "matrix_with_names": matrix_with_names, "matrix_behind_columns": matrix_behind_columns,
    "matrix_without_names": {"friends.dat": SQUARE, "party.txt": f"party\n{parties}"},
    "within_one_folder": {"README.md": "A club.\n", "data/people.csv": people_csv, "data/ties.csv": ties_csv,
                          "data/old/.x": ""},
}  # fmt: skip
HELD = {"yed_groups": "container", "graphml_nested": "desk", "gexf_of_groups": "pid", "cytoscape_compound": "parent"}
DRAWN = {"cx", "cx2", "xgmml", "guess", "pajek", "gexf", "gexf_3", "yed", "gml_with_graphics", "d3_with_places"}


@pytest.mark.parametrize("form", FORMS)
def test_every_program_writes_the_same_club(form: str, tmp_path: Path) -> None:
    """Where a program drew people is no column, and said."""
    written: Any = FORMS[form]
    written(tmp_path) if callable(written) else put(tmp_path, written)
    inside = list(tmp_path.iterdir())
    label = {"mtx": None, "json_graph": "metadata.party", **HELD}.get(form, "party")
    reading = read(inside[0] if len(inside) == 1 else tmp_path, label=label)
    graph = graph_of(reading)
    order = {one: place for place, one in enumerate(graph.ids)}
    rows = [order.get(number, order.get(f"P{number}", -1)) for number in NUMBERS]
    rows = list(range(N)) if form == "scipy_matrix" else rows
    assert graph.num_nodes == N, "the one who is alone is there"
    assert "Group Edges" not in reading.says, "a sheet of NodeXL that is not about people"
    assert np.array_equal(graph.adjacency.toarray()[np.ix_(rows, rows)] > 0, WHOLE > 0)
    known = rows[:-1] if form == "matrix_with_names" else rows
    assert [graph.names.classes[graph.labels[row]] for row in known] == PARTY[: len(known)]
    if form in HELD:
        assert "desk" not in HELD[form] or "container: it says the same as the label" in reading.says
        assert graph_of(read(tmp_path, label=label)).num_nodes == N, "a graph within another is no second one"
        said = f"hold others and are no people: {HELD[form].replace('desk', 'container')!r} says who lies in which"
        assert f"{3 + (form == 'cytoscape_compound')} nodes that no tie names, such as 'blue', {said}" in reading.says
    if form == "firebase":
        assert all(said in reading.says for said in ("config of club.json", "what 'friends' says beside ids"))
    if form in DRAWN:
        assert f"where and how {inside[0].name} draws people is not read" in reading.says
        assert graph.names.columns == ("nothing known",)


def test_who_holds_others_and_has_a_tie_is_somebody(tmp_path: Path) -> None:
    nodes = [{"data": row} for row in ({"id": "g"}, {"id": "h"}, {"id": "a", "parent": "g"}, {"id": "b", "parent": "h"})]
    edges = [{"data": {"source": "a", "target": one}} for one in "bg"]
    reading = given(tmp_path, as_json("c.cyjs", {"elements": {"nodes": nodes, "edges": edges}}), label="parent")
    assert ties_of(reading) == pairs_of("a-b a-g")
    assert set(graph_of(reading).ids) == set("abg")


def test_notes_beside_tables_are_listed_and_damaged_tables_refused(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    notes = {
        "metadata.txt": "nodes: 24 (1 alone)\nties: 46, both ways\nmade: 2024\n", "LICENSE": "MIT License\n\nfree of charge\n",
        "README": "nodes, edges\n", "SHA256SUMS": "00ff  people.csv\n", "people.csv.md5": "00ff  people.csv\n", "empty.txt": "",
        "datapackage.json": '{"name": "club"}', "notes.txt": "We took the ties from a survey.\nTwo did not answer.\n",
    }  # fmt: skip
    put(tmp_path, {**notes, ".DS_Store": b"\0\1", "ties.csv": TIED.to_csv(index=False)})
    said = read(tmp_path, label="party").says
    assert all(f"{name}: " in said for name in notes)
    (tmp_path / "ties.csv").unlink()
    with pytest.raises(DataError, match=r"ties\.txt:48: 1 column; allowed: 2"):
        read(put(tmp_path, {"ties.txt": TIED.to_csv(index=False) + "1\n"}), label="party")


def test_a_property_with_several_values_is_refused_and_not_cut(tmp_path: Path) -> None:
    properties = {"team": [{"value": "a"}, {"value": "b"}]}
    vertex = {"label": "person", "outE": {"knows": [{"inV": 1}]}, "properties": properties}
    with pytest.raises(DataError, match="property 'team' of vertex 0 has 2 values; allowed: one value for each property"):
        given(tmp_path, {"g.json": "\n".join(json.dumps(vertex | {"id": number}) for number in range(2))})


@pytest.mark.parametrize(("separator", "header"), [(",", True), ("\t", False)])
def test_a_large_table_is_read_as_a_small_one_is(separator: str, header: bool, tmp_path: Path) -> None:
    """Each table is of more than a million characters, from which on it is read at once, where all its lines are alike."""
    count, rng = 3_000, np.random.default_rng(3)
    ids = rng.permutation(np.arange(10**9, 10**9 + count))
    people = pd.DataFrame({"id": ids, "city": rng.choice(["Gent", "Graz"], count)})
    people[[f"fact {k}" for k in range(19)]] = rng.random((count, 19)).round(17)
    people["party"] = rng.choice(["red", "blue"], count)
    ties = pd.DataFrame({"source": rng.choice(ids, 50_000), "target": rng.choice(ids, 50_000)})
    found = []
    for quoted in (False, True):  # which is read line by line
        for name, table in (("people", people), ("ties", ties)):
            text = table.to_csv(index=False, header=header, sep=separator)
            assert len(text) > 1_000_000
            text = re.sub(r"(Gent|\d+(?=\n))", r'"\1"', text, count=1) if quoted else text.rstrip("\n") + "\n"
            put(tmp_path, {f"{quoted}/{name}.csv": text})
        found.append(graph_of(read(tmp_path / str(quoted), label="party" if header else "column 22")))
    plain, careful = found
    assert plain.ids == careful.ids == tuple(map(str, ids))
    assert (plain.adjacency != careful.adjacency).nnz == (plain.features != careful.features).nnz == 0
    assert np.array_equal(plain.labels, careful.labels)
    rows = (tmp_path / "False" / "ties.csv").read_text().splitlines()
    rows[40_000] = f"{ids[0]}{separator}7"
    with pytest.raises(DataError, match=r"ties\.csv:40001: unknown node '7'"):
        read(put(tmp_path / "False", {"ties.csv": "\n".join(rows)}), label="party" if header else "column 22")
