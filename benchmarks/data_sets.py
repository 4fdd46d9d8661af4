"""What papers print of their data sets, beside what the files hold: DPAR's Table 2, GAP's, GCON's, Jin & Chen's Tables 2 and 3.

    python -m benchmarks.data_sets [--data-root DIR] > docs/data/papers/data_sets.csv

Counts are of what fedgraph reads: undirected edges without loops, each once. Where a number differs or is missing on one side,
``_WHY`` says why. Nothing is learnt.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping

import numpy as np
from scipy.sparse.csgraph import connected_components

from fedgraph import data
from fedgraph.types import Graph, GraphCollection

_DPAR, _GAP, _GCON = "DPAR, Table 2", "GAP, slides", "GCON"
_SINGLE, _SEVERAL = "Jin & Chen, Table 2", "Jin & Chen, Table 3"
_HEADS = ("table", "data set", "what", "printed", "counted", "why they differ")
_UNKNOWN = dict.fromkeys(("classes", "features", "nodes", "edges", "edges within a class"))
_PRINTED: dict[tuple[str, str], Mapping[str, float | None]] = {
    (_DPAR, "citation_full/cora_ml"): {"classes": 7, "features": 2879, "nodes": 2995, "edges": 8416},
    (_DPAR, "coauthor/cs (MS Academic)"): {"classes": 15, "features": 6805, "nodes": 18333, "edges": 81894},
    (_DPAR, "coauthor/cs"): {"classes": 15, "features": 6805, "nodes": 18333, "edges": 327576},
    (_DPAR, "coauthor/physics"): {"classes": 8, "features": 8415, "nodes": 34493, "edges": 495924},
    (_DPAR, "Reddit"): {"classes": 8, "features": 602, "nodes": 116713, "edges": 46233380},
    (_GAP, "Facebook (UIllinois20)"): {"classes": 6, "features": 501, "nodes": 26406, "edges": 2117924, "degree": 62},
    (_GAP, "Reddit"): {"classes": 8, "features": 602, "nodes": 116713, "edges": 46233380, "degree": 209},
    (_GAP, "Amazon"): {"classes": 10, "features": 100, "nodes": 1790731, "edges": 80966832, "degree": 22},
    (_GCON, "citation_full/cora_ml"): _UNKNOWN,
    (_GCON, "planetoid/citeseer"): _UNKNOWN,
    (_GCON, "planetoid/pubmed"): _UNKNOWN,
    (_GCON, "geom_gcn/actor"): _UNKNOWN,
    (_SINGLE, "planetoid/citeseer"): {"nodes": 2120, "edges": 3679, "degree": 3.47, "features": 3703, "classes": 6},
    (_SINGLE, "planetoid/cora"): {"nodes": 2485, "edges": 5069, "degree": 4.08, "features": 1433, "classes": 7},
    (_SINGLE, "planetoid/pubmed"): {"nodes": 19717, "edges": 44324, "degree": 4.50, "features": 500, "classes": 3},
    (_SEVERAL, "tu/proteins"): {"graphs": 1113, "features": 32, "classes": 2, "mean nodes": 39.06, "mean edges": 145.63},
    (_SEVERAL, "tu/mutag"): {"graphs": 188, "features": 7, "classes": 2, "mean nodes": 17.93, "mean edges": 39.58},
    (_SEVERAL, "tu/imdb-binary"): {"graphs": 1000, "features": 0, "classes": 2, "mean nodes": 19.77, "mean edges": 193.06},
}
_NOT_HERE = "the file is not at hand"
_WHY: dict[tuple[str, ...], str] = {
    (_DPAR, "Reddit"): _NOT_HERE,
    (_GAP, "Facebook (UIllinois20)"): _NOT_HERE,
    (_GAP, "Facebook (UIllinois20)", "degree"): _NOT_HERE + "; edges / nodes is 80",
    (_GAP, "Reddit"): _NOT_HERE,
    (_GAP, "Reddit", "degree"): _NOT_HERE + "; edges / nodes is 396",
    (_GAP, "Amazon"): _NOT_HERE,
    (_GAP, "Amazon", "degree"): _NOT_HERE + "; edges / nodes is 45",
    **{
        (_GCON, name): "the text at hand counts two tables and prints neither"
        for name in ("citation_full/cora_ml", "planetoid/citeseer", "planetoid/pubmed", "geom_gcn/actor")
    },
    (_DPAR, "citation_full/cora_ml", "edges"): "the file holds 8,416 citations; 258 pairs cite each other, so 8,158 are joined",
    (_DPAR, "coauthor/cs", "edges"): "four times 81,894: both directions, twice; the file is that of MS Academic",
    (_DPAR, "coauthor/physics", "classes"): "the file has 5; 8 stands beside it in the table, for Reddit",
    (_DPAR, "coauthor/physics", "edges"): "both directions are counted",
    (
        _SEVERAL,
        "tu/proteins",
        "features",
    ): "the published collection has 3 kinds of nodes and one number; the paper's copy has 32",
    (_SEVERAL, "tu/proteins", "mean edges"): "both directions are counted",
    (_SEVERAL, "tu/mutag", "mean edges"): "both directions are counted",
    (_SEVERAL, "tu/imdb-binary", "mean edges"): "both directions are counted",
}


def counted(table: str, name: str) -> dict[str, float]:
    """The same quantities of what the files hold, none without a file; Jin & Chen's single graphs are largest components."""
    if _WHY.get((table, name)) == _NOT_HERE:
        return {}
    found = data.load(name.partition(" ")[0])
    if isinstance(found, GraphCollection):
        sizes = [(graph.num_nodes, graph.num_edges) for graph in found.graphs]
        features = found.graphs[0].num_features
        means = np.mean(sizes, axis=0)
        return {
            "graphs": len(sizes), "features": features, "classes": found.num_classes, "mean nodes": round(float(means[0]), 2),
            "mean edges": round(float(means[1]), 2),
        }  # fmt: skip
    assert isinstance(found, Graph)
    graph = found
    if table == _SINGLE:
        _, parts = connected_components(graph.adjacency, directed=False)
        graph = graph.induced(np.flatnonzero(parts == np.bincount(parts).argmax()))
    begins, ends = graph.adjacency.nonzero()
    within = graph.labels[begins] == graph.labels[ends]
    return {
        "classes": int(found.labels.max()) + 1, "features": graph.num_features, "nodes": graph.num_nodes,
        "edges": graph.num_edges, "degree": round(2 * graph.num_edges / graph.num_nodes, 2),
        "edges within a class": round(float(within.mean()), 2),
    }  # fmt: skip


def rows() -> list[tuple[str, str, str, str, str, str]]:
    """Every printed number; ``ValueError`` where one differs and nothing says why."""
    found = []
    for (table, name), printed in _PRINTED.items():
        ours = counted(table, name)
        for what, value in printed.items():
            why = _WHY.get((table, name, what)) or _WHY.get((table, name), "")
            theirs, mine = ("–" if number is None else f"{number:.10g}" for number in (value, ours.get(what)))
            if (value is None or what not in ours or abs(ours[what] - value) > 0.011) != bool(why):
                raise ValueError(f"{table}, {name}, {what}: {theirs} printed, {mine} counted, and {why or 'nothing'} said")
            found.append((table, name, what, theirs, mine, why))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root")
    args = parser.parse_args()
    if args.data_root:
        data.set_data_search_root(args.data_root)
    print("# `python -m benchmarks.data_sets`")
    csv.writer(sys.stdout, lineterminator="\n").writerows([_HEADS, *rows()])


if __name__ == "__main__":
    main()
