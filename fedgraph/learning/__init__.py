"""Models, gradients and propagation. The room knows nothing of privacy; methods join the two.

* Sums of clipped gradients, in the precision that the bound needs: ``per_sample`` (feed-forward networks, ``layouts``),
  ``aggregated_rows`` (rows that name several nodes), ``pair_scorer`` (pairs of nodes, ``links``), ``example_gradients`` (any
  network over ``rooted`` subgraphs; ``own_network`` builds it, ``isolation`` looks at it first).
* What travels along edges: ``aggregation``, ``walks``, ``mean_field``, ``meetings``; on graphs with few neighbours:
  ``neighbour_limits``.
* Descents and objectives: ``descents``, ``objective``; after them a client's own steps: ``own_models``.
* On public data and released values: ``public_training``, ``gap_networks``, ``projection``; once for a run: ``public_cache``.
* Without privacy: ``fitting`` (``networks``, ``network_shapes``), ``whole_graph``, ``shared_gnn``.
* ``tensors``: torch, and matrices with the products of a network.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
