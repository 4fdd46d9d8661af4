"""Tasks: node classification, graph classification, graph clustering and link prediction.

A task is one file or package with ``TASK``, ``Params``, ``cells``, ``plan`` and ``run``; ``tasks.base`` has what they share.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
