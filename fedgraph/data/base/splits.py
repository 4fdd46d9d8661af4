"""Divides nodes into those that train and those that test, or reads the division that came with a graph.

The *inductive* split cuts the graph in two before anything private happens: training sees the graph on the training nodes,
testing the graph on the test nodes, and edges between them exist for neither. It is the setting of DPAR (Zhang et al. 2024,
§6) and the one in which a statement about training edges holds for the whole journey. Its nodes are drawn at random, or
whole parts of a balanced cut of the graph are taken, as DPAR's released code does (it takes METIS's parts; ours come from
spectral bisection). Parts are made of communities, so training and test then differ in their classes.
"""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import npz
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphMasks

SPLIT_MASKS = ("train_mask", "val_mask", "test_mask")
_NUM_PARTS = 9  # of DPAR's released code
_POWER_STEPS = 300  # an approximate second eigenvector orders well enough


def random_split(num_nodes: int, train_fraction: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random side to train on, the rest to test on.

    Args:
        train_fraction: strictly between 0 and 1; the training side gets that share rounded to whole nodes, but each side at
            least one.

    Returns:
        Ids of training and of test nodes, int64, sorted, disjoint, together every node.

    Raises:
        DataError: an argument is out of range.
    """
    if num_nodes < 2:
        raise DataError(f"cannot split {num_nodes} node(s) into training and test; allowed: 2 or more")
    if not 0.0 < train_fraction < 1.0:
        raise DataError(f"train_fraction is {train_fraction}; allowed: strictly between 0 and 1")
    num_train = min(max(round(train_fraction * num_nodes), 1), num_nodes - 1)
    order = rng.permutation(num_nodes).astype(np.int64)
    return np.sort(order[:num_train]), np.sort(order[num_train:])


def per_class(graph: Graph, train: int, validation: int, rng: np.random.Generator) -> GraphMasks:
    """Some labelled nodes of every class train, some validate, all other labelled nodes are tested.

    The protocol of Shchur et al., "Pitfalls of Graph Neural Network Evaluation", 2018 (20 and 30), and of PPNP but for the
    size of its validation set.

    Args:
        train: nodes of each class that train.
        validation: nodes of each class that validate.

    Raises:
        DataError: a class is smaller than ``train`` + ``validation``, or no node is left to test.
    """
    order = rng.permutation(graph.num_nodes)
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for label in range(graph.num_classes):
        own = order[graph.labels[order] == label]
        if own.size < train + validation:
            raise DataError(
                f"{graph.name}: class {label} has {own.size} nodes; {train} train and {validation} validate; "
                "allowed: train_per_class + validation_per_class at most the smallest class"
            )
        for part, ids in zip(parts, np.split(own, (train, train + validation)), strict=True):
            part.append(ids)
    found = GraphMasks(*(np.sort(np.concatenate(part)).astype(np.int64) for part in parts))
    found.check(graph.num_nodes, graph.name)
    return found


def by_parts(graph: Graph, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The graph cut into nine balanced parts: seven train, one tests, one is dropped (DPAR's released code).

    Returns:
        Ids of training and of test nodes, int64, sorted.

    Raises:
        DataError: the graph has fewer than nine nodes.
    """
    if graph.num_nodes < _NUM_PARTS:
        raise DataError(f"cannot cut {graph.num_nodes} node(s) into {_NUM_PARTS} parts; allowed: {_NUM_PARTS} or more")
    pieces = _balanced_parts(graph.adjacency, _NUM_PARTS, rng)
    order = rng.permutation(_NUM_PARTS)
    train = np.sort(np.concatenate([pieces[i] for i in order[: _NUM_PARTS - 2]]))
    return train, np.sort(pieces[order[-1]])


def _balanced_parts(adjacency: sp.csr_array, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """``count`` disjoint sets of node ids whose sizes differ by at most ``count``, with few edges between them.

    Recursive spectral bisection (Pothen, Simon, Liou, SIAM J. Matrix Anal. Appl. 11, 1990): nodes are ordered by the
    second eigenvector of the largest component's normalised adjacency, smaller components behind, and cut where the
    sizes are right.
    """
    if count == 1:
        return [np.arange(adjacency.shape[0])]
    order = _spectral_order(adjacency, rng)
    left = count // 2
    cut = round(order.size * left / count)
    found = []
    for side, parts in ((np.sort(order[:cut]), left), (np.sort(order[cut:]), count - left)):
        inner = sp.csr_array(adjacency[side][:, side])
        found += [side[part] for part in _balanced_parts(inner, parts, rng)]
    return found


def _spectral_order(adjacency: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    _, component = sp.csgraph.connected_components(adjacency, directed=False)
    largest = np.bincount(component).argmax()
    inside = np.flatnonzero(component == largest)
    inner = sp.csr_array(adjacency[inside][:, inside]).astype(np.float64)
    root = np.sqrt(np.maximum(inner.sum(axis=1), 1.0))
    scaled = sp.diags_array(1 / root) @ inner @ sp.diags_array(1 / root)
    first = root / np.linalg.norm(root)
    vector = rng.standard_normal(inside.size)
    for _ in range(_POWER_STEPS):  # (I + S) / 2 has no negative eigenvalue, and its first eigenvector is projected out
        vector = vector + scaled @ vector
        vector -= first * (first @ vector)
        vector /= max(np.linalg.norm(vector), 1e-300)
    outside = np.flatnonzero(component != largest)
    ordered = inside[np.argsort(vector / root, kind="stable")]
    return np.concatenate([ordered, outside[np.argsort(component[outside], kind="stable")]])


def read_masks(content: bytes, name: str, num_nodes: int) -> tuple[GraphMasks, ...]:
    """The splits of the archive ``content``, called ``name`` in messages: 0/1, [n], or [n, k] for k splits.

    No such member: none. Raises ``DataError`` for anything else.
    """
    return of_masks(npz.read_members(content, name, SPLIT_MASKS), name, num_nodes)


def of_masks(members: Mapping[str, np.ndarray], name: str, num_nodes: int, whole: bool = True) -> tuple[GraphMasks, ...]:
    """The splits of arrays called ``train_mask``, ``val_mask``, ``test_mask``; otherwise as ``read_masks``.

    whole: whether each is checked; else it may be the part of a split that one client of several brings.
    """
    members = {key: members[key] for key in SPLIT_MASKS if key in members}
    if not members:
        return ()
    lacking = [key for key in ("train_mask", "test_mask") if key not in members]
    if whole and lacking:
        raise DataError(f"{name}: holds {', '.join(members)} and no {lacking[0]}; a split needs train_mask and test_mask")
    shape = next(iter(members.values())).shape
    for key, mask in members.items():
        fits = mask.shape == shape and mask.ndim in (1, 2) and mask.shape[0] == num_nodes
        if not fits or not np.isin(mask, (0, 1)).all():
            allowed = f"0 or 1 for each of {num_nodes} nodes, all masks alike"
            raise DataError(f"{name}: {key} of shape {mask.shape}; allowed: {allowed}")
    columns = [members.get(key, np.zeros(shape)).astype(bool).reshape(num_nodes, -1) for key in SPLIT_MASKS]
    found = tuple(GraphMasks(*(np.flatnonzero(column[:, k]) for column in columns)) for k in range(columns[0].shape[1]))
    for split in (one for one in found if whole or (one.train.size and one.test.size)):
        split.check(num_nodes, name)
    return found
