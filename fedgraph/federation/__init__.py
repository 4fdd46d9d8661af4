"""Who holds what, who sees what, and the federated loop: clients compute, the desk releases, the server merges.

``holding.Federation`` is the one record of who holds, asks and tests what in which ``world.World``. ``rounds.run`` is the loop,
``client`` and ``server`` are its two ends, ``messages`` what travels. Where it runs is the runtime's business: the serial
runtime is the truth, and Ray gives the same numbers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
