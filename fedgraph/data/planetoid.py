"""Citation networks with bag-of-words features: CiteSeer, Cora, PubMed.

Yang, Cohen, Salakhutdinov, "Revisiting Semi-Supervised Learning with Graph Embeddings", ICML 2016
(github.com/kimiyoung/planetoid). The raw files are Python 2 pickles, and a pickle can run code; therefore a file is hashed
first and opened only if it is byte for byte the published one, by an unpickler that knows four harmless classes.
CiteSeer and Cora features are 0/1; PubMed's are TF-IDF. 15 test nodes of CiteSeer have neither words nor a label in the raw
files; as in PyG they become nodes without words and with label 0. (PyG's comment calls them isolated; the published graph
gives each of them one or two edges, and 48 other nodes none.)
"""

import collections
import io
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.data.base import published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphMasks

DATASETS = published.records_of("planetoid")


def stand_in(data: published.PublishedData, seed: int) -> Graph:
    """The stand-in, with a split of the published sizes: 20 nodes per class train, 500 validate, 1,000 are tested."""
    graph = data.generated(seed)
    rng = seeds.seeded_generator(seed, "data", data.key, "split")
    train = splits.per_class(graph, 20, 0, rng).train
    others = rng.permutation(np.setdiff1d(np.arange(graph.num_nodes), train)).astype(np.int64)
    return replace(graph, masks=(GraphMasks(train, np.sort(others[:500]), np.sort(others[500:1500])),))


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph of the raw files, nodes in Planetoid's order (test nodes at the rows that ``test.index`` names)."""
    prefix = f"ind.{data.key.partition('/')[2]}"
    parts: dict[str, Any] = {}  # CSR matrices, arrays, and (``graph``) a dict of neighbour lists
    for part in ("tx", "ty", "allx", "ally", "graph"):
        parts[part] = _Unpickler(io.BytesIO(raw.read(f"{prefix}.{part}")), encoding="latin1").load()
    test = np.array(raw.read(f"{prefix}.test.index").split(), dtype=np.int64)
    num_nodes = int(test.max()) + 1
    known = sp.coo_array(sp.vstack([parts["allx"], parts["tx"]]))
    rows = np.concatenate([np.arange(parts["allx"].shape[0]), test])
    features = feature_matrix(sp.coo_array((known.data, (rows[known.row], known.col)), shape=(num_nodes, known.shape[1])))
    one_hot = np.zeros((num_nodes, parts["ally"].shape[1]))
    one_hot[rows] = np.concatenate([parts["ally"], parts["ty"]])
    lists = parts["graph"]
    sources = np.repeat(np.fromiter(lists.keys(), np.int64), [len(v) for v in lists.values()])
    arcs = (sources, np.concatenate([np.asarray(v, np.int64) for v in lists.values()]))
    # Yang et al. 2016: the first 20 nodes per class train, the next 500 validate, ``test.index`` names the test nodes.
    train = 20 * one_hot.shape[1]
    split = (GraphMasks(np.arange(train), np.arange(train, train + 500), np.sort(test)),)
    labels = one_hot.argmax(axis=1)
    return published.graph_of(data, raw, arcs, features, labels, masks=split, features_from_edges=False)


_HARMLESS = {
    ("scipy.sparse.csr", "csr_matrix"): sp.csr_matrix,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    """Knows the classes of the published files, under their names of 2016, and refuses every other."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _HARMLESS:
            raise DataError(f"a Planetoid file asks for {module}.{name}; allowed: sparse matrices, arrays, lists")
        return _HARMLESS[module, name]


load = published.loader(DATASETS, read, stand_in)
