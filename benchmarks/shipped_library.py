"""Generates the graph that is shipped with fedgraph anew: ``python -m benchmarks.shipped_library FILE``."""

import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import block_model
from fedgraph.data.base.block_model import BlockModel
from fedgraph.types import GraphProvenance

LIBRARY = BlockModel(
    class_sizes=(90, 80, 70, 60),
    num_edges=720,
    num_features=240,
    homophily=0.80,
    words=14.0,
    words_spread=4.0,
    degree_spread=3.5,
    closure=0.25,
    topic_share=0.55,
)


def write(file: Path) -> None:
    """Generate ``library`` anew and store it; the same bytes of arrays every time."""
    graph = block_model.draw(LIBRARY, "embedded/library", 0, GraphProvenance("embedded", "generated"))
    parts = {}
    for prefix, matrix in (("adj", sp.triu(graph.adjacency, k=1, format="csr")), ("attr", graph.features)):
        parts[f"{prefix}_data"] = matrix.data.astype(np.float32)
        parts[f"{prefix}_indices"] = matrix.indices.astype(np.int32)
        parts[f"{prefix}_indptr"] = matrix.indptr.astype(np.int32)
        parts[f"{prefix}_shape"] = np.array(matrix.shape, dtype=np.int64)
    np.savez_compressed(file, labels=graph.labels, **parts)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
