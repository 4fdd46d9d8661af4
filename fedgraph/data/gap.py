"""Reddit and Amazon as GAP and ProGAP cut them: the larger classes of two graphs that other files of this folder read.

Sajadmanesh et al., "GAP: Differentially Private Graph Neural Networks with Aggregation Perturbation", USENIX Security 2023;
the released code keeps of Reddit (``graphsage/reddit``) the classes of at least 10,000 nodes, of Amazon (``ogbn/products``)
those of at least 100,000, and drops loops and nodes that are left without an edge. The paper's counts: Reddit 116,713 nodes
in 8 classes, Amazon 1,790,731 nodes in 10. Its Facebook is ``facebook100/uillinois20``. The published splits are not kept:
GAP draws its own at random.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedgraph.data import base, graphsage, ogbn
from fedgraph.errors import DataError
from fedgraph.types import Graph


@dataclass(frozen=True)
class _Cut:
    """How GAP's code cuts a graph: classes of ``least`` nodes or more; what the paper counts after it."""

    least: int
    nodes: int
    classes: int


_CUTS = {"reddit": _Cut(10_000, 116_713, 8), "amazon": _Cut(100_000, 1_790_731, 10)}
_SOURCES = {"reddit": ("reddit", graphsage.load), "amazon": ("products", ogbn.load)}
_LOST = 0.001  # share of the paper's nodes that may be missing

DATASETS = {
    "reddit": replace(graphsage.DATASETS["reddit"], key="gap/reddit", title="Reddit, as GAP cuts it"),
    "amazon": replace(ogbn.DATASETS["products"], key="gap/amazon", title="Amazon, as GAP cuts it"),
}


def load(dataset: str, request: base.PublishedRequest) -> Graph:
    """``reddit`` or ``amazon``; see :func:`fedgraph.data.load`. A stand-in is cut to the paper's number of classes.

    Raises:
        DataError: as the source's reader raises it; or what is left is not what the paper counts.
    """
    source, read = _SOURCES[dataset]
    whole, cut = read(source, request), _CUTS[dataset]
    if whole.provenance.source == "synthetic":
        return replace(whole.induced((whole.labels < cut.classes).nonzero()[0]), name=f"gap/{dataset}", num_classes=cut.classes)
    found = replace(_subgraph_of_classes(whole, cut.least), name=f"gap/{dataset}")
    if found.num_classes != cut.classes or abs(found.num_nodes - cut.nodes) > _LOST * cut.nodes:
        raise DataError(
            f"gap/{dataset} is not GAP's: found {found.num_nodes} nodes in {found.num_classes} classes, expected about "
            f"{cut.nodes} in {cut.classes}"
        )
    return found


def _subgraph_of_classes(graph: Graph, least: int) -> Graph:
    """The subgraph on classes of ``least`` nodes or more, numbered again in their order; nodes left without an edge go."""
    sizes = np.bincount(graph.labels[graph.labels >= 0], minlength=graph.num_classes)
    kept = np.flatnonzero(sizes >= least)
    if not kept.size:
        raise DataError(f"{graph.name}: no class has {least} nodes; the largest has {sizes.max(initial=0)}")
    number = np.full(graph.num_classes + 1, -1)
    number[kept] = np.arange(kept.size)
    small = graph.induced(np.flatnonzero(number[graph.labels] >= 0))
    small = small.induced(np.flatnonzero(small.degrees > 0))
    return replace(small, labels=number[small.labels], num_classes=int(kept.size))
