"""Data: a name such as ``planetoid/citeseer`` becomes a checked :class:`~fedgraph.types.Graph`.

    load(name, root=…)  →  Graph | GraphCollection
    random_split  →  who trains, who tests

A name is ``family/dataset``; the family is a file of this folder (``planetoid.py``, ``tu.py``, ``own.py`` …) and is found
by its name. ``base`` states what a family file must offer, and holds what several families share; ``own`` reads the files of
users.
"""

from fedgraph.data.base import data_search_root, default_roots, families, load, look_in, names
from fedgraph.data.base.files import cache_dir
from fedgraph.data.base.splits import random_split
from fedgraph.data.tu import degree_features

__all__ = [
    "cache_dir",
    "data_search_root",
    "default_roots",
    "degree_features",
    "families",
    "load",
    "look_in",
    "names",
    "random_split",
]
