"""Splits: sizes, disjointness, every node accounted for; those that came with the data, and one's own masks."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedgraph import data, seeds
from fedgraph.data.base import splits
from fedgraph.errors import DataError
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, GraphMasks


def packed(**members: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def covers(count: int, *parts: np.ndarray) -> bool:
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(count))


def test_random_and_per_class_splits_cover_every_node_once(library: Graph) -> None:
    train, test = splits.random_split(101, 0.8, np.random.default_rng(0))
    assert (train.size, test.size) == (81, 20)
    assert covers(101, train, test)
    for fraction in (1e-9, 1 - 1e-9):
        assert [side.size for side in splits.random_split(2, fraction, np.random.default_rng(0))] == [1, 1]
    found = splits.per_class(library, 3, 2, np.random.default_rng(0))
    assert (np.bincount(library.labels[found.train]) == 3).all()
    assert (np.bincount(library.labels[found.validation]) == 2).all()
    assert covers(library.num_nodes, found.train, found.validation, found.test)
    with pytest.raises(DataError, match="class 0 has"):
        splits.per_class(library, 500, 2, np.random.default_rng(0))


def test_part_split_takes_whole_parts(library: Graph) -> None:
    train, test = splits.by_parts(library, np.random.default_rng(3))
    sizes = library.num_nodes / 9
    assert abs(test.size - sizes) < 9
    assert abs(train.size - 7 * sizes) < 2 * 9
    assert not np.intersect1d(train, test).size
    assert np.array_equal(test, splits.by_parts(library, np.random.default_rng(3))[1])
    with pytest.raises(DataError, match="cannot cut 8"):
        splits.by_parts(library.induced(np.arange(8)), np.random.default_rng(0))


@pytest.mark.parametrize("protocol", ["transductive", "inductive", "inductive-edges"])
def test_nobody_who_trains_sees_validation_or_test_labels(protocol: protocols.Protocol, library: Graph) -> None:
    sizes = protocols.Sizes(3, 2)
    made = protocols.divide(library, protocol, 0.8, seeds.seeded_generator(0, "split"), "per-class", sizes=sizes)
    held, validation = made.held.labels, made.held.validation
    assert validation is not None
    assert (np.bincount(held[held >= 0]) == 3).all()
    assert (np.bincount(validation[validation >= 0]) == 2).all()
    assert not ((held >= 0) & (validation >= 0)).any()
    assert (made.truth >= 0).sum() == (library.labels >= 0).sum() - 5 * library.num_classes
    if protocol == "transductive":
        assert not ((held >= 0) & (made.truth >= 0)).any()
    else:
        assert made.held.num_nodes + made.asked.num_nodes == library.num_nodes


def test_a_published_split_is_taken_in_turn_and_travels_with_the_nodes(library: Graph) -> None:
    two = (
        GraphMasks(np.arange(5), np.arange(5, 8), np.arange(8, 20)),
        GraphMasks(np.arange(20, 30), np.zeros(0, np.int64), np.arange(10)),
    )
    graph = replace(library, masks=two)
    for number in range(4):
        sizes = protocols.Sizes(number=number)
        made = protocols.divide(graph, "transductive", 0.8, seeds.seeded_generator(0, "s"), "public", sizes=sizes)
        assert np.array_equal(np.flatnonzero(made.held.labels >= 0), two[number % 2].train)
        assert np.array_equal(np.flatnonzero(made.truth >= 0), two[number % 2].test)
        assert (made.held.validation is None) == (number % 2 == 1)
    with pytest.raises(DataError, match="came without a split"):
        protocols.divide(library, "transductive", 0.8, seeds.seeded_generator(0, "s"), "public")
    nodes = np.array([7, 3, 11])
    validated = replace(library, validation=np.arange(library.num_nodes) % library.num_classes)
    assert validated.induced(nodes).validation.tolist() == validated.validation[nodes].tolist()  # type: ignore[union-attr,index]


def test_the_largest_component_keeps_its_split(library: Graph) -> None:
    cut = library.induced(np.random.default_rng(0).permutation(library.num_nodes)[:150])
    graph = replace(cut, masks=(GraphMasks(np.arange(20), np.arange(20, 30), np.arange(30, 150)),))
    part, nodes = protocols.largest_component(graph), graph.largest_component()
    assert 20 < part.num_nodes == nodes.size < 150
    assert (part.degrees > 0).all()
    (masks,) = part.masks
    for found, least, most in zip((masks.train, masks.validation, masks.test), (0, 20, 30), (20, 30, 150), strict=True):
        assert nodes[found].tolist() == nodes[(nodes >= least) & (nodes < most)].tolist()


def test_own_masks_are_read() -> None:
    train, test = np.array([1, 1, 0, 0]), np.array([0, 0, 0, 1])
    (one,) = splits.read_masks(packed(train_mask=train, test_mask=test), "x", 4)
    assert (one.train.tolist(), one.validation.tolist(), one.test.tolist()) == ([0, 1], [], [3])
    several = np.stack([train, 1 - train], axis=1)
    found = splits.read_masks(packed(train_mask=several, test_mask=1 - several), "x", 4)
    assert [m.train.tolist() for m in found] == [[0, 1], [2, 3]]
    assert splits.read_masks(packed(labels=train), "x", 4) == ()


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"train_mask": np.ones(4)}, "no test_mask"),
        ({"train_mask": np.ones(4), "test_mask": np.ones(4)}, "in two of"),
        ({"train_mask": np.ones(3), "test_mask": np.zeros(3)}, "for each of 4 nodes"),
        ({"train_mask": np.full(4, 2), "test_mask": np.zeros(4)}, "0 or 1"),
        ({"train_mask": np.ones(4), "test_mask": np.zeros(4)}, "no test node"),
    ],
)
def test_wrong_masks_are_one_clear_line(members: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(DataError, match=said):
        splits.read_masks(packed(**members), "mine.npz", 4)


@pytest.mark.dataset
@pytest.mark.parametrize(
    ("name", "sizes", "count"),
    [
        ("planetoid/cora", (140, 500, 1000), 1),
        ("planetoid/citeseer", (120, 500, 1000), 1),
        ("geom_gcn/actor", (3648, 2432, 1520), 10),
    ],
)
def test_published_sizes(name: str, sizes: tuple[int, int, int], count: int, data_root: Path) -> None:
    graph = data.load(name, root=data_root, download=False)
    assert isinstance(graph, Graph)
    assert len(graph.masks) == count
    first = graph.masks[0]
    assert (first.train.size, first.validation.size, first.test.size) == sizes
    if name.startswith("planetoid"):
        assert (np.bincount(graph.labels[first.train]) == 20).all()
