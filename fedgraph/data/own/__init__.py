"""Your own data: ``door`` is the one way in. Files, arrays, clients and small graphs pass the same reader. Never a pickle.

    tables       whatever it is becomes tables of texts, or of numbers
    roles        which table holds the ties, which columns are ids; several clients' people, or many graphs, joined by name
    reading      which column is the label, what becomes of the others, the graph, and the words
    columns      cells become numbers; labels become classes
    federation   a folder per client; collections: many small graphs

- ``own/read``: a file, or a folder of tables, in whatever form it lies there (``own/csv`` and ``own/npz`` are older names);
- ``own/federation``: a folder with one folder per client, see ``federation``;
- ``own/graphs``: a folder of many small graphs, see ``collections``;
- ``own/object``: what was handed to ``fedgraph.compare``; it lies in no file.

Treatment, counted in the provenance: arcs become undirected edges, weights are dropped, repeated edges are coalesced,
self-loops are dropped, isolated nodes are kept. Classes are the distinct labels in order, numbered from 0;
``columns`` says which labels count as missing.
"""

from __future__ import annotations

from pydantic import Field

from fedgraph.data import base
from fedgraph.data.own.columns import EdgeColumnRules, ReadRules
from fedgraph.errors import ScenarioError
from fedgraph.types import Graph, GraphCollection


class _FederationParams(ReadRules):
    """The folder says everything else."""


class _GraphsParams(ReadRules):
    """What shall be done with the columns of nodes, and which column of the labels is predicted."""

    rows: bool = Field(
        False, description="each graph becomes one node without edges: its size, its degrees, the means of its columns"
    )


class _ObjectParams(ReadRules):
    """What ``fedgraph.compare`` was told of a graph in memory, so that a row can be fitted on others like it."""


DATASETS: dict[str, type[EdgeColumnRules]] = {
    "read": ReadRules,
    "csv": ReadRules,
    "npz": ReadRules,
    "federation": _FederationParams,
    "graphs": _GraphsParams,
    "object": _ObjectParams,
}


def load(dataset: str, request: base.PublishedRequest) -> Graph | GraphCollection:
    """The graph, or the collection of graphs, at ``request.path``.

    Args:
        dataset: ``read``, ``csv``, ``npz``, ``federation`` or ``graphs``; ``object`` is refused, since it lies in no file.
        request: its path and parameters; the rest is not read.

    Raises:
        ScenarioError: there is no path, or a parameter is wrong.
        DataError: the line names file, line, what was found and what is allowed.
    """
    params = base.validate_data_parameters(DATASETS[dataset], request.parameters, f"own/{dataset}")
    if isinstance(params, _ObjectParams):
        raise ScenarioError("data set 'own/object' is a graph in memory (fedgraph.compare); for a file use own/read")
    if request.path is None:
        what = {"federation": "the folder with one folder per client", "graphs": "the folder with the graphs"}
        raise ScenarioError(f"data set 'own/{dataset}' needs a path: {what.get(dataset, 'a file, or a folder of tables')}")
    if isinstance(params, _FederationParams):
        from fedgraph.data.own import federation  # pandas is not imported before a graph of one's own is read

        return federation.read(request.path, params, params.label != "").graph
    if isinstance(params, _GraphsParams):
        from fedgraph.data.own import collections, reading

        found = collections.read(request.path, params, unlabelled=params.rows).graph
        return reading.collection_as_rows(found) if params.rows and isinstance(found, GraphCollection) else found
    from fedgraph.data.own.door import read  # pandas is not imported before a graph of one's own is read

    return read(request.path, columns=params.model_dump(exclude_unset=True)).graph
