"""fedgraph: private learning on graphs, at one curator and federated, side by side.

The map of the house, in the order in which data travels (``runs/experiment.py`` is the score):

    commands, run      argv becomes a call
    scenario           YAML becomes a validated, frozen scenario
    runs               cells are dealt to workers, computed, kept and reported
    data               names and files become checked graphs
    partition          a graph becomes clients' subgraphs
    tasks              what is run, cell by cell: node classification, graph clustering …
    methods            one paper, one package: plan, client, server, predict
    federation         who holds what, who sees what (one record); the loop: clients, server, clients …
    runtime            where the loop runs: in one process (the truth) or on Ray (the engine)
    privacy            units, events, accountants, the ledger, and the door (``desk``) that everything private leaves by
    learning           gradients, models, propagation; knows nothing of privacy
    comparison         released embeddings become metric spaces; Gromov-Wasserstein, clusters
    attacks, audit     attacks on whole methods and on mechanisms, sound and broken
    cells              what names a cell, what it leaves behind, where that is kept
    models             a row trained once for use: its file, whom it may answer, what it was charged
    report             tables, plots, one page, the privacy of every row in words
    pricing            private training that is recorded, and configurations of other systems: what does their privacy buy?

Private data travels only until ``desk.release``. After it, everything is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedgraph import printing as printing  # warns where CMU's distribution of this import name is installed, too

if TYPE_CHECKING:
    from fedgraph.data import Reading as Reading
    from fedgraph.data import read as read
    from fedgraph.library import compare as compare
    from fedgraph.library import run as run
    from fedgraph.models import Model as Model
    from fedgraph.models import load as load
    from fedgraph.pricing import price as price
    from fedgraph.pricing import recorded as recorded
    from fedgraph.private_model import private as private
    from fedgraph.runs import Run as Run
    from fedgraph.runs import open_run as open_run

# name → its module, imported when it is first asked for
_LATER = {
    "Model": "fedgraph.models",
    "compare": "fedgraph.library",
    "load": "fedgraph.models",
    "price": "fedgraph.pricing",
    "private": "fedgraph.private_model",
    "recorded": "fedgraph.pricing",
    "read": "fedgraph.data",
    "Reading": "fedgraph.data",
    "Run": "fedgraph.runs",
    "open_run": "fedgraph.runs",
}
__all__ = [
    "Model", "Reading", "Run", "__version__", "compare", "load", "open_run", "price", "private", "read", "recorded", "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from fedgraph.commands import version

        return version()
    import importlib

    if name == "run":  # the module of ``python -m fedgraph.run``; calling it is ``library.run``
        return importlib.import_module("fedgraph.run")
    if name not in _LATER:
        raise AttributeError(f"module 'fedgraph' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """What users may use."""
    return sorted(__all__)
