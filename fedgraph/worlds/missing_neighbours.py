"""Neighbours that a client lost at its border, stood in for by nodes of its own that look like the one that lost them.

A client knows that an edge leaves it and not what it leads to. The known repair trains a generator of lost neighbours and sends
what it learnt, or made, to others in clear (FedSage+, Zhang et al., NeurIPS 2021): that is released, so ε = ∞. Here nothing is
learnt from edges and nothing is sent. The j-th lost neighbour of node v is stood in for by the (j mod k)-th most similar other
node of the same client, similar by *public* features (linked nodes tend to be alike).

**Guarantee.** Which nodes stand in for v follows from public features alone, and m lost edges use the first m of them in
turn. So one edge between two clients changes the sum at either of its ends by exactly one row, as an edge that both clients
know does: it is priced as ``cut_edges: protected``, at both ends. **Edge cases.** A client of one node has no stand-in: its
lost edges stay lost. Private features → refused.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning.layers.torch_matrices import unit_matrix_rows
from fedgraph.methods.base import method_kinds
from fedgraph.types import Partition, Subgraph
from fedgraph.worlds.protocols import ProtocolSetting

_ALIKE = 5  # stand-ins of one node, taken in turn
_ROWS = 256


def refuse_missing_neighbours(setting: ProtocolSetting, name: str) -> None:
    """Refuse generated neighbours where they would have to be made from private features.

    Args:
        setting: what is public.
        name: of the method.

    Raises:
        ScenarioError: features are private, or the method does not read stand-ins.
    """
    if setting.public_attributes is None:
        raise ScenarioError(
            "cut_edges: generated makes lost neighbours from features, which must be public (protocol transductive or "
            "inductive-edges): made from private rows they would change with every one of them, and no ε would hold"
        )
    if not method_kinds.load_method(name).OFFERS.reads_stand_ins:
        able = ", ".join(method_kinds.list_method_names(lambda offers: offers.reads_stand_ins))
        raise ScenarioError(f"{name} reads no generated neighbours; cut_edges: generated is offered by {able}")


def generate_missing_neighbours(partition: Partition, features: sp.csr_array) -> Partition:
    """The partition whose cut edges lead to nodes of the same client.

    Args:
        partition: its clients know their cut edges.
        features: public, CSR [num_nodes, d], by global ids.
    """
    return replace(partition, subgraphs=tuple(_of_client(s, features) for s in partition.subgraphs))


def _of_client(share: Subgraph, features: sp.csr_array) -> Subgraph:
    if share.cut is None or not len(share.cut):
        return share
    if share.nodes.size < 2:
        return replace(share, cut=np.zeros((0, 2), dtype=np.int64))
    losers, place, lost = np.unique(share.cut[:, 0], return_inverse=True, return_counts=True)
    alike = _similar_rows(unit_matrix_rows(features[share.nodes]), losers)
    rows = np.repeat(np.arange(losers.size), lost)
    turn = np.arange(rows.size) - np.repeat(np.cumsum(lost) - lost, lost)
    own = share.nodes[alike[rows, turn % alike.shape[1]]]
    assert place.size == rows.size
    return replace(share, cut=np.column_stack([losers[rows], own]).astype(np.int64))


def _similar_rows(rows: sp.csr_array, of: np.ndarray) -> np.ndarray:
    """int64 [len(of), k]: the k ≤ ``_ALIKE`` other rows of the largest inner product, the most similar first, ties by
    number.
    """
    n = rows.shape[0]
    count = min(_ALIKE, n - 1)
    turned = sp.csr_array(rows.T)
    found = np.zeros((of.size, count), dtype=np.int64)
    for first in range(0, of.size, _ROWS):
        block = of[first : first + _ROWS]
        likeness = (rows[block] @ turned).toarray()
        likeness[np.arange(block.size), block] = -np.inf
        found[first : first + _ROWS] = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
    return found
