"""Any data set of PyG, read by PyG itself: ``{name: pyg/dataset, parameters: {dataset: Reddit}}``.

``dataset`` is a class of ``torch_geometric.datasets``, and ``arguments`` is what it is called with, such as ``{name: Cora}``.
PyG downloads the files to ``pyg/<class>`` in the user's cache, unless ``arguments`` names another ``root``, and converts
them there. The graph is then treated as one's own PyG object is (``fedgraph.read``): its provenance names what
no method reads.

Nothing here is checked against a publication: no checksum, no count, no stand-in. The data sets of the other families are.
"""

import inspect
from typing import Any

from pydantic import Field

from fedgraph import plugins
from fedgraph.data import base
from fedgraph.data.base import files
from fedgraph.data.own.columns import EdgeColumnRules
from fedgraph.errors import ScenarioError
from fedgraph.types import Graph, GraphCollection


class _Params(EdgeColumnRules):
    """Which class of PyG."""

    dataset: str = Field(description="a class of torch_geometric.datasets, e.g. Reddit")
    arguments: dict[str, Any] = Field(default_factory=dict, description="what it is called with, e.g. {name: Cora}")


DATASETS: dict[str, type[_Params]] = {"dataset": _Params}


def load(dataset: str, request: base.PublishedRequest) -> Graph | GraphCollection:
    """The one graph of a data set, or its many graphs as a collection.

    Raises:
        ScenarioError: PyG has no such class, or it does not take the arguments.
        DataError: the files are out of reach, or hold no graph with one label per node (of many graphs: per graph).
    """
    from torch_geometric import datasets  # takes seconds

    asked = base.validate_data_parameters(_Params, request.parameters, f"pyg/{dataset}")
    if asked.dataset not in datasets.__all__:
        hint = plugins.suggest_plugin_name(asked.dataset, datasets.__all__)
        raise ScenarioError(f"torch_geometric.datasets has no class {asked.dataset!r}{hint}; allowed: any that it has")
    kind = getattr(datasets, asked.dataset)
    taken, arguments = inspect.signature(kind).parameters, dict(asked.arguments)
    if "root" in taken:
        arguments.setdefault("root", str(files.cache_folder() / "pyg" / asked.dataset))
    try:
        inspect.signature(kind).bind(**arguments)
    except TypeError as error:
        raise ScenarioError(f"torch_geometric.datasets.{asked.dataset}{inspect.signature(kind)}: {error}") from None
    from fedgraph.data.own.door import read

    found, rules = kind(**arguments), {} if asked.from_edges is None else {"from_edges": asked.from_edges}
    return read(list(found) if len(found) > 1 else found[0], columns=rules, name=f"pyg/{asked.dataset}").graph
