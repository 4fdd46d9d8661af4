"""Partitions: they divide one graph into the subgraphs that the clients hold.

A partition is one file, found by its name (``partition: louvain``). It offers

- ``Params``: a frozen pydantic model, every field described;
- ``PARTITION``, a ``base.PartitionOffers``: ``split(graph, params, rng) -> Partition`` for one graph, and, if it can deal whole
  graphs to clients, ``deal(collection, params, rng) -> PartitionShares``.

``base`` turns lists of nodes into a ``types.Partition`` and counts the edges that no client holds. All randomness comes from
``rng``, so the same generator state gives the same partition in every runtime.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
