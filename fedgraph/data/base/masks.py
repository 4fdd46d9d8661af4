"""Splits that come with a graph.

In an ``.npz``: ``train_mask``, ``val_mask`` and ``test_mask``, as geom-gcn publishes them and PyG keeps them. In text: a part
for each node, see ``tables.parts``.
"""

from collections.abc import Mapping

import numpy as np

from fedgraph.data.base import npz, tables
from fedgraph.errors import DataError
from fedgraph.types import Masks

NAMES = ("train_mask", "val_mask", "test_mask")


def read(content: bytes, name: str, num_nodes: int) -> tuple[Masks, ...]:
    """The splits of the archive ``content``, called ``name`` in messages: 0/1, [n], or [n, k] for k splits.

    No such member: none. Raises ``DataError`` for anything else.
    """
    members = npz.members(content, name, NAMES)
    if not members:
        return ()
    if lacking := [key for key in ("train_mask", "test_mask") if key not in members]:
        raise DataError(f"{name}: holds {', '.join(members)} and no {lacking[0]}; a split needs train_mask and test_mask")
    shape = members["train_mask"].shape
    for key, mask in members.items():
        fits = mask.shape == shape and mask.ndim in (1, 2) and mask.shape[0] == num_nodes
        if not fits or not np.isin(mask, (0, 1)).all():
            raise DataError(
                f"{name}: {key} of shape {mask.shape}; allowed: 0 or 1 for each of {num_nodes} nodes, all masks alike"
            )
    columns = [members.get(key, np.zeros(shape)).astype(bool).reshape(num_nodes, -1) for key in NAMES]
    found = tuple(Masks(*(np.flatnonzero(column[:, k]) for column in columns)) for k in range(columns[0].shape[1]))
    for split in found:
        split.check(num_nodes, name)
    return found


def of_parts(parts: Mapping[int, str], num_nodes: int, name: str) -> tuple[Masks, ...]:
    """The one split that puts node ``i`` into ``parts[i]``; ``name`` is the file, for messages."""
    found = Masks(*(np.array(sorted(i for i, p in parts.items() if p == part), dtype=np.int64) for part in tables.PARTS))
    found.check(num_nodes, name)
    return (found,)
