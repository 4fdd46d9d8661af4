"""The sentence that says how an own graph was read: what is there, what is not used, what was changed."""

from __future__ import annotations

from collections.abc import Sequence

from fedgraph.data.base.structure import Cleaned
from fedgraph.data.own.labels import ReadLabels


def own_graph_detail(
    title: str, cleaned: Cleaned, labels: ReadLabels, unused: Sequence[str], remarks: Sequence[str] = ()
) -> str:
    """For the provenance of a graph.

    Args:
        title: what the graph is called, in front of its counts.
        cleaned: the edges, and what was done to them.
        labels: the classes, and remarks about missing labels.
        unused: what the data hold and no method reads, such as edge weights.
        remarks: further whole sentences without a full stop.

    Returns:
        Parts of one sentence, separated by ``;``. Only what happened is named.
    """
    nodes, edges, classes = labels.numbers.size, cleaned.adjacency.nnz // 2, len(labels.classes)
    parts = [f"{title}: {nodes} nodes, {edges} edges, {classes} classes", *labels.remarks]
    parts += [f"not used: {', '.join(unused)}"] if unused else []
    return "; ".join([*parts, *changes_of([cleaned]), *remarks])


def changes_of(given: Sequence[Cleaned]) -> list[str]:
    """What was done to edges, counted over all of them, as one part of a sentence; none where nothing was."""
    counted = (
        (sum(c.one_way for c in given), "edges listed in one direction, read in both"),
        (sum(c.repeated for c in given), "repeated edges coalesced"),
        (sum(c.loops for c in given), "self-loops dropped"),
    )
    changed = ", ".join(f"{count} {what}" for count, what in counted if count)
    return [changed] if changed else []
