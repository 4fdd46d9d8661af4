"""Networks as flat vectors: layouts of dense layers, GCN, GIN and GraphSAGE, and the models that clients share."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
