"""Partitions: they divide one graph into the subgraphs that the clients hold.

A partition is one file, found by its name (``partition: louvain``). It offers

- ``Params``: a frozen pydantic model, every field described;
- ``PARTITION``, a ``base.PartitionOffers``: ``split(graph, params, rng) -> Partition`` for one large graph, and
  ``deal(collection, params, rng) -> PartitionShares`` where whole graphs can be dealt out too (``whole``, ``uniform``,
  ``dirichlet``).

``base.py`` turns node lists into a :class:`~fedgraph.types.Partition` and counts the edges that no client holds. Randomness
is an argument; the same generator state gives the same partition on every machine and in every runtime.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
