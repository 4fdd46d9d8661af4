"""Engines that run the loop: one process (``serial``, the reference) or Ray (``ray``), with the same numbers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
