"""Data: a name such as ``planetoid/citeseer`` becomes a checked :class:`~fedgraph.types.Graph`.

    load(name, root=…)  →  Graph | GraphCollection
    random_split  →  who trains, who tests

A name is ``family/dataset``; the family is a file of this folder (``planetoid.py``, ``tu.py``, ``own.py`` …) and is found
by its name. ``base`` states what a family file must offer, and holds what several families share; ``own`` reads the files of
users.
"""

from fedgraph.data.base import data_families, data_search_root, default_data_roots, load, names, set_data_search_root
from fedgraph.data.base.files import cache_folder
from fedgraph.data.base.splits import random_split
from fedgraph.data.tu import tu_degree_features

__all__ = [
    "cache_folder",
    "data_families",
    "data_search_root",
    "default_data_roots",
    "load",
    "names",
    "random_split",
    "set_data_search_root",
    "tu_degree_features",
]
