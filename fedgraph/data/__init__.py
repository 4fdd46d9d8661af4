"""Data: a name such as ``planetoid/citeseer`` becomes a checked :class:`~fedgraph.types.Graph`.

    load(name, root=…)  →  Graph | GraphCollection

A name is ``family/dataset``; the family is a file of this folder (``planetoid.py``, ``tu.py``, ``own.py`` …) and is found
by its name. ``base`` states what a family file must offer, and holds what several families share; ``own`` reads the files of
users.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
