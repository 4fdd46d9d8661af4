"""Models, gradients and propagation. The room knows nothing of privacy; methods join the two.

``clipping``: gradients of each row, clipped, in double precision where the bound needs it. ``propagation``: walks,
aggregations, mean field. ``layers``: parameters as flat vectors, shared networks. ``optimisers``: descents and objectives.
``baselines``: training without privacy. ``neighbour_limits``: graphs with bounded degrees.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
