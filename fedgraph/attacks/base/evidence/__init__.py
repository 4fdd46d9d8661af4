"""How attacks read the values that a method released: a file for each method of this repository.

A file has those of ``reads_rounds``, ``evidence``, ``graph_evidence`` and ``observe`` that the method offers; ``Offers`` in
``methods.base`` describes them. A method of another package has them in its ``Offers``.
"""

import dataclasses
import importlib

from fedgraph import plugins
from fedgraph.methods import AnyMethodOffers, method_kinds

_PARTS = ("reads_rounds", "evidence", "graph_evidence", "observe")


def readers(method: str) -> AnyMethodOffers:
    """The offers of the method called ``method``, with what attacks may read."""
    offers = method_kinds.load(method).OFFERS
    if method not in plugins.own_names("attacks.base.evidence"):
        return offers
    found = vars(importlib.import_module(f"fedgraph.attacks.base.evidence.{method}"))
    return dataclasses.replace(offers, **{name: found[name] for name in _PARTS if name in found})
