"""A row of a run, trained once for use: ``fit`` makes a ``Model``, which answers for new people and is one file."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
