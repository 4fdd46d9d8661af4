"""What travels along edges: sums over neighbours, walks and PageRank, mean field, and votes of noisy labels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
