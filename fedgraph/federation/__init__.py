"""Who holds what, who sees what, and the federated loop: clients compute, the desk releases, the server merges.

``Federation`` is the one record of who holds, asks and tests what in which ``World``. ``rounds.run`` is the loop, ``client``
and ``server`` are its two ends, and ``messages`` are what travels. The engines of ``runtime`` run it: Ray gives the numbers of
the serial engine.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
