"""Training without privacy, and networks on public data: shapes, networks of PyG, fitting with early stopping."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
