"""Statistical lower bounds on ε, for any mechanism, and the two-worlds test of the whole program.

``one_run``: bounds from many coins in one run (Steinke et al. 2023). ``curve``: bounds from the whole trade-off curve.
``operating_points``: how well an attacker's scores do. ``worlds``: a run on a data set and on a neighbour, where everything
that leaves must be equal once the desk releases the same values.

The room knows no torch. The mechanisms that are wrong on purpose stand in ``tests/mutants``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
