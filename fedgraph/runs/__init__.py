"""A run: cells are dealt to workers, computed, kept and reported.

``experiment`` shows the journey of the data on one page; ``schedule`` deals cells; ``Run`` is a finished run for Python.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
