"""One paper, one file: what a client computes and releases, and what the server makes of it.

A method is a module with ``REFERENCE``, ``OFFERS``, ``Params``, ``plan``, ``start``, ``prepare``, ``client``, ``server``
and ``predict``; ``methods.base`` has the contract and what methods share. A method never imports another one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
