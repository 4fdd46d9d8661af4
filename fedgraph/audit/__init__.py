"""Statistical lower bounds on ε, for any mechanism, and the two-worlds test of the whole program.

``lower_bound``: from many runs of a mechanism on two neighbouring inputs. ``one_run``: from many coins in one run, by counting
or by the whole trade-off curve. ``operating_points``: what scores are worth to an attacker.
``worlds``: a run on a data set and on a neighbour, where everything that leaves must be equal once the desk hands out the
same released values.

The room knows no torch. The mechanisms that are wrong on purpose stand in ``tests/mutants``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
