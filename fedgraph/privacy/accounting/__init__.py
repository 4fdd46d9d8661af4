"""Prices of events: dominating pairs, Rényi moments, calibration. An unknown event is an error, never zero."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
