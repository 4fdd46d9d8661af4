"""Files that others brought: each is the same club, whatever program wrote it; notes beside tables are listed."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import re
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from tests.data.own.clubs import given, graph_of, put

N = 24
NUMBERS = [str(number) for number in range(1, N + 1)]
PARTY = [("red", "green", "blue")[place % 3] for place in range(N)]
TIES = [(place, (place + step) % (N - 1)) for place in range(N - 1) for step in (1, 3)]  # the last one is alone
PEOPLE = pd.DataFrame({"id": NUMBERS, "party": PARTY})
TIED = pd.DataFrame([(NUMBERS[a], NUMBERS[b]) for a, b in TIES], columns=["source", "target"])
XML_TIES = "".join(f'<edge id="{k}" source="{a}" target="{b}"/>' for k, (a, b) in enumerate(TIED.to_numpy()))


def matrix() -> sp.coo_array:
    one, two = np.array(TIES).T
    return sp.coo_array((np.ones(len(TIES)), (one, two)), shape=(N, N))


def mtx(folder: Path) -> None:
    lines = "".join(f"{max(a, b) + 1} {min(a, b) + 1}\n" for a, b in TIES)
    head = f"%%MatrixMarket matrix coordinate pattern symmetric\n{N} {N} {len(TIES)}\n"
    (folder / "net.mtx").write_text(head + lines)
    (folder / "labels.txt").write_text("\n".join(PARTY) + "\n")


def pajek(folder: Path) -> None:
    names = "".join(f'{number} "{number}" 0.1 0.2 0.5\n' for number in NUMBERS)
    ties = "".join(f"{a + 1} {b + 1} 1\n" for a, b in TIES)
    parts = "".join(f"{party}\n" for party in PARTY)
    text = f"*Network club\n*Vertices {N}\n{names}*Edges\n{ties}*Partition party\n*Vertices {N}\n{parts}"
    (folder / "club.paj").write_text(text)


def dimacs(folder: Path) -> None:
    (folder / "club.col").write_text(f"c a club\np edge {N} {len(TIES)}\n" + "".join(f"e {a + 1} {b + 1}\n" for a, b in TIES))
    PEOPLE.to_stata(folder / "people.dta", write_index=False)


def ucinet(folder: Path) -> None:
    rows = "".join(" ".join(str(int(cell)) for cell in row) + "\n" for row in matrix().toarray())
    labels = ", ".join(NUMBERS)
    (folder / "club.dl").write_text(f"dl n = {N} format = fullmatrix\nlabels:\n{labels}\ndata:\n{rows}")
    PEOPLE.to_csv(folder / "people.csv", index=False)


def sqlite(folder: Path) -> None:
    with sqlite3.connect(folder / "club.db3") as opened:
        PEOPLE.to_sql("person", opened, index=False)
        TIED.to_sql("friendship", opened, index=False)
    opened.close()


def feather(folder: Path) -> None:
    PEOPLE.astype({"party": "category"}).to_feather(folder / "people.feather")
    TIED.to_feather(folder / "ties.feather")


def tar(folder: Path) -> None:
    with tarfile.open(folder / "club.tar.gz", "w:gz") as archive:
        for name, table in (("people.csv", PEOPLE), ("ties.csv", TIED)):
            content = table.to_csv(index=False).encode()
            member = tarfile.TarInfo(f"club/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def d3(folder: Path) -> None:
    nodes = [{"name": f"P{number}", "party": party} for number, party in zip(NUMBERS, PARTY, strict=True)]
    links = [{"source": a, "target": b} for a, b in TIES]
    (folder / "club.json").write_text(json.dumps({"nodes": nodes, "links": links}))


def cytoscape(folder: Path) -> None:
    nodes = [{"data": {"id": number, "party": party}} for number, party in zip(NUMBERS, PARTY, strict=True)]
    edges = [{"data": {"id": f"e{k}", "source": NUMBERS[a], "target": NUMBERS[b]}} for k, (a, b) in enumerate(TIES)]
    (folder / "club.cyjs").write_text(json.dumps({"elements": {"nodes": nodes, "edges": edges}}))


def scipy_matrix(folder: Path) -> None:
    sp.save_npz(folder / "adjacency.npz", matrix())
    PEOPLE.assign(id=range(N)).to_csv(folder / "labels.csv", index=False)


def matrix_with_names(folder: Path) -> None:
    named = pd.DataFrame((matrix() + matrix().T).toarray().astype(int), index=NUMBERS, columns=NUMBERS)
    named.to_csv(folder / "adjacency.csv")
    PEOPLE.iloc[:-1].to_csv(folder / "people.csv", index=False)


def pajek_lists(folder: Path) -> None:
    names = "".join(f'{number} "{number}"\n' for number in NUMBERS)
    ties = "".join(f"{a + 1} {(a + 1) % (N - 1) + 1} {(a + 3) % (N - 1) + 1}\n" for a in range(N - 1))
    (folder / "club.net").write_text(f"*Vertices {N}\n{names}*Edgeslist\n{ties}")
    (folder / "party.clu").write_text(f"*Vertices {N}\n" + "".join(f"{party}\n" for party in PARTY))


def gdf(folder: Path) -> None:
    nodes, ties = (table.to_csv(index=False, header=False) for table in (PEOPLE, TIED))
    (folder / "club.gdf").write_text(f"nodedef>name VARCHAR,party VARCHAR\n{nodes}edgedef>node1 VARCHAR,node2 VARCHAR\n{ties}")


def neo4j_import(folder: Path) -> None:
    (folder / "person-header.csv").write_text("personId:ID(P);party\n")
    (folder / "person.csv").write_text(PEOPLE.to_csv(index=False, header=False, sep=";"))
    (folder / "knows_header.csv").write_text(":START_ID(P);:END_ID(P);:TYPE\n")
    (folder / "knows.csv").write_text(TIED.assign(kind="KNOWS").to_csv(index=False, header=False, sep=";"))


def packed_with_comments(folder: Path) -> None:
    lines = TIED.to_csv(index=False).splitlines()
    (folder / "ties.csv.bz2").write_bytes(bz2.compress("\n".join([*lines[:9], "# by phone", *lines[9:], ""]).encode()))
    (folder / "people.csv.xz").write_bytes(lzma.compress(PEOPLE.to_csv(index=False).encode()))


def orc(folder: Path) -> None:
    PEOPLE.to_orc(folder / "people.orc", index=False)
    TIED.to_orc(folder / "ties.orc", index=False)


def json_graph(folder: Path) -> None:
    nodes = {number: {"metadata": {"party": party}} for number, party in zip(NUMBERS, PARTY, strict=True)}
    (folder / "club.json").write_text(json.dumps({"graph": {"nodes": nodes, "edges": TIED.to_dict("records")}}))


def json_adjacency(folder: Path) -> None:
    graph = nx.from_pandas_edgelist(TIED)
    graph.add_nodes_from((number, {"party": party}) for number, party in zip(NUMBERS, PARTY, strict=True))
    (folder / "club.json").write_text(json.dumps(nx.adjacency_data(graph)))


def beside(folder: Path) -> list[list[int]]:
    """Writes who is in which party; whom each one names."""
    PEOPLE.to_csv(folder / "people.csv", index=False)
    return [[b for a, b in TIES if a == place] for place in range(N)]


def sif(folder: Path) -> None:
    lines = [
        "\t".join([NUMBERS[a], "pp", *(NUMBERS[b] for b in own)] if own else [NUMBERS[a]])
        for a, own in enumerate(beside(folder))
    ]
    (folder / "club.sif").write_text("\n".join(lines))


def lgl(folder: Path) -> None:
    lines = [line for a, own in enumerate(beside(folder)) for line in (f"# {NUMBERS[a]}", *(f"{NUMBERS[b]} 1.5" for b in own))]
    (folder / "club.lgl").write_text("\n".join(lines))


def metis(folder: Path) -> None:
    beside(folder)
    rows = [" ".join(f"{b + 1} 7" for b in np.flatnonzero(row)) for row in (matrix() + matrix().T).toarray()]
    (folder / "club.graph").write_text("\n".join(["% a club", f"{N} {len(TIES)} 001", *rows, ""]))


def graphson(folder: Path) -> None:
    def typed(value: int) -> dict[str, object]:
        return {"@type": "g:Int64", "@value": value}

    vertices = [
        {"id": typed(a + 1), "label": "member", "properties": {"party": [{"id": typed(0), "value": PARTY[a]}]},
         "outE": {"knows": [{"id": typed(b), "inV": typed(b + 1)} for b in own]}}
        for a, own in enumerate(beside(folder))
    ]  # fmt: skip
    (folder / "club.json").write_text("\n".join(map(json.dumps, vertices)))
    (folder / "people.csv").unlink()


def cytoscape_tables(folder: Path) -> None:
    PEOPLE.rename(columns={"id": "name"}).assign(SUID=range(100, 100 + N)).to_csv(folder / "nodes.csv", index=False)
    ties = TIED.assign(name=TIED["source"] + " (pp) " + TIED["target"], interaction="pp").drop(columns=["source", "target"])
    ties.assign(**{"shared name": ties["name"], "SUID": range(500, 500 + len(ties))}).to_csv(folder / "edges.csv", index=False)


def ucinet_of_rows_and_columns(folder: Path) -> None:
    rows = "".join(" ".join(str(int(cell)) for cell in row) + "\n" for row in matrix().toarray())
    labels = "".join(f'"{number}"\n' for number in NUMBERS)
    head = f"DL N = {N} NM = 1\nFORMAT = FULLMATRIX DIAGONAL PRESENT\nROW LABELS:\n{labels}COLUMN LABELS:\n{labels}"
    (folder / "club.dl").write_text(f"{head}DATA:\n{rows}")
    PEOPLE.to_csv(folder / "people.csv", index=False)


def ucinet_neighbours(folder: Path) -> None:
    rows = [" ".join([str(one + 1), *(str(b + 1) for a, b in TIES if a == one)]) for one in range(N - 1)]
    text = f"dl n={N} format=nodelist1\nlabels:\n{' '.join(NUMBERS)}\ndata:\n"
    (folder / "club.dl").write_text(text + "\n".join(rows) + "\n")
    PEOPLE.to_csv(folder / "people.csv", index=False)


def ucinet_embedded(folder: Path) -> None:
    rows = "".join(f"P{NUMBERS[a]} P{NUMBERS[b]} 1\n" for a, b in TIES)
    (folder / "club.dl").write_text(f"dl n={N} format=edgelist1\nlabels embedded:\ndata:\n{rows}")
    PEOPLE.assign(id="P" + PEOPLE["id"]).to_csv(folder / "people.csv", index=False)


def pajek_without_names(folder: Path) -> None:
    half = len(TIES) // 2
    one, two = ("".join(f"{a + 1} {b + 1}\n" for a, b in own) for own in (TIES[:half], TIES[half:]))
    (folder / "club.net").write_text(f'*Vertices {N}\n*Arcs :1 "kin"\n{one}*Edges :2 "work"\n{two}')
    PEOPLE.to_csv(folder / "people.csv", index=False)


def neo4j_of_everything(folder: Path) -> None:
    people = "".join(f'"{number}",":Person","{party}",,,\n' for number, party in zip(NUMBERS, PARTY, strict=True))
    ties = "".join(f',,,"{NUMBERS[a]}","{NUMBERS[b]}","KNOWS"\n' for a, b in TIES)
    (folder / "all.csv").write_text(f'"_id","_labels","party","_start","_end","_type"\n{people}{ties}')


def memgraph(folder: Path) -> None:
    people = [
        {"id": int(one), "labels": ["P"], "properties": {"party": said}, "type": "node"} for one, said in PEOPLE.to_numpy()
    ]
    ties = [{"start": a + 1, "end": b + 1, "id": k, "type": "relationship"} for k, (a, b) in enumerate(TIES)]
    (folder / "memgraph.json").write_text(json.dumps(people + ties))


def igraph_gml(folder: Path) -> None:
    people = "".join(f'  node\n  [\n    id {one}\n    party "{said}"\n  ]\n' for one, said in PEOPLE.to_numpy())
    ties = "".join(f"  edge\n  [\n    source {a + 1}\n    target {b + 1}\n    weight NaN\n  ]\n" for a, b in TIES)
    (folder / "club.gml").write_text(f'Creator "igraph"\nVersion 1\ngraph\n[\n  directed 0\n{people}{ties}]\n')


def json_of_a_service(folder: Path) -> None:
    told = {"nodes": PEOPLE.to_dict("records"), "edges": TIED.to_dict("records")}
    (folder / "dump.json").write_text(json.dumps({"status": "ok", "count": N, "data": told}))


def json_of_several_tables(folder: Path) -> None:
    told = {"users": PEOPLE.to_dict("records"), "friendships": TIED.to_dict("records")}
    (folder / "dump.json").write_text(json.dumps(told))


def json_of_pandas(folder: Path) -> None:
    PEOPLE.to_json(folder / "people.json")
    TIED.to_json(folder / "ties.json", orient="split")


def json_with_a_schema(folder: Path) -> None:
    PEOPLE.to_json(folder / "people.json", orient="table")
    TIED.to_json(folder / "ties.json", orient="table")


def drawn(folder: Path) -> None:
    """As psql, MySQL and Markdown write tables."""
    people = "".join(f" {one} | {said}\n" for one, said in PEOPLE.to_numpy())
    (folder / "people.txt").write_text(f" id | party \n----+-------\n{people}({N} rows)\n\n")
    ties, rule = "".join(f"| {a} | {b} |\n" for a, b in TIED.to_numpy()), "+--------+--------+\n"
    (folder / "ties.txt").write_text(f"{rule}| source | target |\n{rule}{ties}{rule}{len(TIES)} rows in set (0.01 sec)\n")


def markdown(folder: Path) -> None:
    PEOPLE.to_csv(folder / "people.csv", index=False)
    ties = "".join(f"| {a} | {b} |\n" for a, b in TIED.to_numpy())
    (folder / "ties.txt").write_text(f"| source | target |\n|--------|-------:|\n{ties}")


def away_from_the_corner(folder: Path) -> None:
    with pd.ExcelWriter(folder / "club.xlsx") as book:
        PEOPLE.to_excel(book, sheet_name="people", index=False, startrow=3, startcol=2)
        TIED.to_excel(book, sheet_name="ties", index=False, startrow=1, startcol=1)


def nodexl(folder: Path) -> None:
    head = [["", "Visual", "", "Labels", "", "Other Columns"], ["Vertex", "Color", "Shape", "Label", "ID", "party"]]
    people = [[f"P{one}", "", "", "", int(one), said] for one, said in PEOPLE.to_numpy()]
    ties = [["", "", "Visual"], ["Vertex 1", "Vertex 2", "Width"], *([f"P{a}", f"P{b}", 1] for a, b in TIED.to_numpy())]
    with pd.ExcelWriter(folder / "club.xlsx") as book:
        for name, rows in (("Edges", ties), ("Vertices", head + people)):
            pd.DataFrame(rows).to_excel(book, sheet_name=name, index=False, header=False)


def matrix_behind_columns(folder: Path) -> None:
    cells = pd.DataFrame(matrix().toarray().astype(int), columns=[f"P{number}" for number in NUMBERS])
    pd.concat([PEOPLE.assign(id="P" + PEOPLE["id"]), cells], axis=1).to_csv(folder / "roster.csv", index=False)


def matrix_without_names(folder: Path) -> None:
    rows = (" ".join(str(int(cell)) for cell in row) for row in matrix().toarray())
    (folder / "friends.dat").write_text("\n".join(rows) + "\n")
    (folder / "party.txt").write_text("party\n" + "\n".join(PARTY) + "\n")


def within_one_folder(folder: Path) -> None:
    (folder / "README.md").write_text("A club.\n")
    (folder / "data").mkdir()
    (folder / "data" / "old").mkdir()
    PEOPLE.to_csv(folder / "data" / "people.csv", index=False)
    TIED.to_csv(folder / "data" / "ties.csv", index=False)


def cx(folder: Path) -> None:
    """As Cytoscape 3 writes networks: attributes stand apart, and so do places."""
    facts = [{"po": 100 + k, "n": "party", "v": said} for k, said in enumerate(PARTY)]
    told = [
        {"numberVerification": [{"longNumber": 281474976710655}]},
        {"nodes": [{"@id": 100 + k, "n": NUMBERS[k]} for k in range(N)]},
        {"edges": [{"@id": 900 + k, "s": 100 + a, "t": 100 + b, "i": "pp"} for k, (a, b) in enumerate(TIES)]},
        {"nodeAttributes": facts}, {"cartesianLayout": [{"node": 100, "x": 1.5, "y": 2.5}]}, {"status": [{"success": True}]},
    ]  # fmt: skip
    (folder / "club.cx").write_text(json.dumps(told))


def cx2(folder: Path) -> None:
    """A usual value is not written again, and a name may be a short one."""
    declared = {"nodes": {"name": {"d": "string"}, "party": {"d": "string", "a": "p", "v": "red"}}, "edges": {}}
    nodes = [{"id": k, "x": 1.5, "y": 2.5, "v": {"name": one} | ({} if said == "red" else {"p": said})}
             for k, (one, said) in enumerate(PEOPLE.to_numpy())]  # fmt: skip
    edges = [{"id": k, "s": a, "t": b, "v": {}} for k, (a, b) in enumerate(TIES)]
    told = [{"CXVersion": "2.0"}, {"attributeDeclarations": [declared]}, {"nodes": nodes}, {"edges": edges}]
    (folder / "club.cx2").write_text(json.dumps(told))


def xgmml(folder: Path) -> None:
    nodes = "".join(
        f'<node id="-{k}" label="{one}"><att name="party" value="{said}" type="string"/><graphics x="1.5" y="2"/></node>'
        for k, (one, said) in enumerate(PEOPLE.to_numpy(), 1)
    )
    edges = "".join(f'<edge label="{a} (pp) {b}" source="-{a + 1}" target="-{b + 1}"/>' for a, b in TIES)
    head = '<?xml version="1.0"?><graph label="club" directed="0" xmlns="http://www.cs.rpi.edu/XGMML">'
    (folder / "club.xgmml").write_text(f"{head}<att name='x'/>{nodes}{edges}</graph>")


def graph_tool(folder: Path) -> None:
    keys = '<key id="k0" for="node" attr.name="party" attr.type="string"/>'
    keys += '<key id="k1" for="node" attr.name="pos" attr.type="vector_double"/>'
    nodes = "".join(
        f'<node id="{one}"><data key="k0">{said}</data><data key="k1">0x1p+{k}, 1</data></node>'
        for k, (one, said) in enumerate(PEOPLE.to_numpy())
    )
    head = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    (folder / "club.xml").write_text(f'{head}{keys}<graph edgedefault="undirected">{nodes}{XML_TIES}</graph></graphml>')


def tgf(folder: Path) -> None:
    ties = "".join(f"{a} {b} knows\n" for a, b in TIED.to_numpy())
    (folder / "club.tgf").write_text("".join(f"{one} Somebody {one}\n" for one in NUMBERS) + f"#\n{ties}")
    PEOPLE.to_csv(folder / "people.csv", index=False)


def konect(folder: Path) -> None:
    ties = "".join(f"{a} {b} 1 {1082040961 + k}\n" for k, (a, b) in enumerate(TIED.to_numpy()))
    (folder / "out.club").write_text(f"% sym positive\n% {len(TIES)} {N} {N}\n{ties}")
    (folder / "ent.club").write_text("% ent party dat.joined\n" + "".join(f"{said} 2024\n" for said in PARTY))
    (folder / "ent.club.person.name").write_text("".join(f"Somebody {one}\n" for one in NUMBERS))
    (folder / "meta.club").write_text("name: Club\ncategory: Social\n")


def guess(folder: Path) -> None:
    nodes = "".join(f"{one},{said},1.5,2.5,'10,20,30'\n" for one, said in PEOPLE.to_numpy())
    ties = TIED.to_csv(index=False, header=False)
    head = "nodedef>name VARCHAR,party VARCHAR,x DOUBLE,y DOUBLE,color VARCHAR\n"
    (folder / "club.gdf").write_text(f"{head}{nodes}edgedef>node1 VARCHAR,node2 VARCHAR\n{ties}")


def tables_of_r(folder: Path) -> None:
    """As ``write.table`` writes: spaces between, quotes around, and no name above the names of rows."""
    people = "".join(f'"{one}" "Some one" "{said}"\n' for one, said in PEOPLE.to_numpy())
    (folder / "people.txt").write_text(f'"name" "party"\n{people}')
    ties = "".join(f'"{k}" "{a}" "{b}"\n' for k, (a, b) in enumerate(TIED.to_numpy(), 1))
    (folder / "ties.txt").write_text(f'"from" "to"\n{ties}')


def gexf(folder: Path) -> None:
    nodes = "".join(
        f'<node id="{k}"><attvalues><attvalue for="0" value="{said}"/></attvalues><viz:position x="{k}.5" y="2"/></node>'
        for k, said in PEOPLE.to_numpy()
    )
    space = 'xmlns="http://www.gexf.net/1.2draft" version="1.2" xmlns:viz="http://www.gexf.net/1.2draft/viz"'
    attributes = '<attributes class="node"><attribute id="0" title="party" type="string"/></attributes>'
    graph = f'<graph mode="static">{attributes}<nodes>{nodes}</nodes><edges>{XML_TIES}</edges></graph>'
    (folder / "club.gexf").write_text(f"<gexf {space}>{graph}</gexf>")


def yed(folder: Path) -> None:
    keys = '<key for="node" id="d6" yfiles.type="nodegraphics"/><key attr.name="party" attr.type="string" for="node" id="t"/>'
    shape = '<y:ShapeNode><y:Geometry height="1" width="1" x="{}.5" y="2"/><y:Shape type="ellipse"/></y:ShapeNode>'
    nodes = "".join(
        f'<node id="{k}"><data key="d6">{shape.format(k)}</data><data key="t">{said}</data></node>'
        for k, said in PEOPLE.to_numpy()
    )
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml"'
    graph = f'<graph edgedefault="undirected">{nodes}{XML_TIES}</graph>'
    (folder / "club.graphml").write_text(f"<graphml {space}>{keys}{graph}</graphml>")


def gml_with_graphics(folder: Path) -> None:
    nodes = "".join(f'node [ id {k}\nparty "{said}"\ngraphics [ x {k}.5\ny 2.0\n ]\n ]\n' for k, said in PEOPLE.to_numpy())
    ties = "".join(f"edge [ source {a}\ntarget {b}\n ]\n" for a, b in TIED.to_numpy())
    (folder / "club.gml").write_text(f"graph [\n{nodes}{ties}]\n")


def d3_with_places(folder: Path) -> None:
    drawn = {"y": 2.0, "vx": 0.1, "vy": 0}
    nodes = [{"id": k, "party": said, "x": k + 0.5, "index": k, **drawn} for k, said in enumerate(PARTY, 1)]
    links = [{"source": a + 1, "target": b + 1} for a, b in TIES]
    (folder / "club.json").write_text(json.dumps({"nodes": nodes, "links": links}))


FORMS = (
    cx, cx2, xgmml, graph_tool, tgf, konect, guess, tables_of_r,
    ucinet_of_rows_and_columns, ucinet_neighbours, ucinet_embedded, pajek_without_names, neo4j_of_everything, memgraph,
    igraph_gml, json_of_a_service, json_of_several_tables, json_of_pandas, json_with_a_schema, drawn, markdown,
    away_from_the_corner, nodexl, matrix_behind_columns, matrix_without_names, within_one_folder,
    sif, lgl, metis, graphson, cytoscape_tables, mtx, pajek, pajek_lists, dimacs, ucinet, sqlite, feather, orc,
    tar, d3, cytoscape, json_graph, json_adjacency, gdf, neo4j_import, packed_with_comments, scipy_matrix,
    matrix_with_names, gexf, yed, gml_with_graphics, d3_with_places,
)  # fmt: skip


DRAWN = {cx, cx2, xgmml, guess, pajek, gexf, yed, gml_with_graphics, d3_with_places}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_program_writes_the_same_club(form: Callable[[Path], None], tmp_path: Path) -> None:
    """Where a program drew people is no column, and said."""
    form(tmp_path)
    inside = list(tmp_path.iterdir())
    label = {mtx: None, json_graph: "metadata.party"}.get(form, "party")
    reading = read(inside[0] if len(inside) == 1 else tmp_path, label=label)
    graph = graph_of(reading)
    order = {one: place for place, one in enumerate(graph.ids)}
    rows = [order.get(number, order.get(f"P{number}", -1)) for number in NUMBERS]
    rows = list(range(N)) if form is scipy_matrix else rows
    assert graph.num_nodes == N, "the one who is alone is there"
    wanted = (matrix() + matrix().T).toarray() > 0
    assert np.array_equal(graph.adjacency.toarray()[np.ix_(rows, rows)] > 0, wanted)
    known = rows[:-1] if form is matrix_with_names else rows
    assert [graph.names.classes[graph.labels[row]] for row in known] == PARTY[: len(known)]
    if form in DRAWN:
        assert f"where and how {inside[0].name} draws people is not read" in reading.says
        assert graph.names.columns == ("nothing known",)


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
