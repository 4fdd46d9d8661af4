"""What a run found: the page, result files, tables, statements, letters and sheets. The room knows no torch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
