"""Gradients of each row, clipped and summed, in the precision that the bound needs; one file for each kind of row."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
