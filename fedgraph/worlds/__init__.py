"""Who holds what, who takes part, and who is trusted: the same people alone, together, or at one curator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
