"""Descents on noisy gradients, strongly convex objectives, and training on public data or on a noisy graph."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
