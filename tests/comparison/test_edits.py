"""Edit distance against hand-counted cases, and neighbours that differ in exactly one edge or node."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.reproductions import edits


def matrix(n: int, *edges: tuple[int, int]) -> sp.csr_array:
    dense = np.zeros((n, n))
    for i, j in edges:
        dense[i, j] = dense[j, i] = 1.0
    return sp.csr_array(dense)


PATH, TRIANGLE = matrix(3, (0, 1), (1, 2)), matrix(3, (0, 1), (1, 2), (0, 2))


def test_edit_distance_counted_by_hand() -> None:
    assert edits.edit_distance(PATH, TRIANGLE) == 1.0
    assert edits.edit_distance(PATH, matrix(3, (1, 0), (0, 2))) == 0.0, "another numbering of the same path"
    assert edits.edit_distance(TRIANGLE, matrix(4, (0, 1), (1, 2), (0, 2), (2, 3))) == 2.0, "a node and its edge"
    assert edits.edit_distance(matrix(1), matrix(3)) == 2.0


@pytest.mark.parametrize(("edit", "change"), [("edge removed", -1), ("edge added", 1)])
def test_one_edge(edit: str, change: int) -> None:
    graph = matrix(5, (0, 1), (1, 2), (2, 3), (3, 4), (0, 4))
    seen = set()
    for seed in range(40):
        after, kept = edits._edit_graph(graph, edit, np.random.default_rng(seed)) or pytest.fail("there is such a neighbour")
        assert np.array_equal(kept, np.arange(5))
        assert after.nnz == graph.nnz + 2 * change
        assert abs(after - after.T).nnz == 0
        assert not after.diagonal().any()
        assert np.count_nonzero((after - graph).toarray()) == 2
        seen.add(after.toarray().tobytes())
    assert len(seen) == 5, "every edge (and every gap) of a ring of five is drawn some time"


def test_one_node() -> None:
    graph = matrix(4, (0, 1), (1, 2), (2, 3))
    after, kept = edits._edit_graph(graph, "node removed", np.random.default_rng(1)) or pytest.fail("there is such a neighbour")
    assert kept.size == 3
    assert np.array_equal(after.toarray(), graph.toarray()[np.ix_(kept, kept)])


def test_graphs_without_such_a_neighbour_are_passed_over() -> None:
    names = {name for name, _, _ in edits.random_graph_edits(TRIANGLE, 2, np.random.default_rng(0))}
    assert names == {"edge removed", "node removed"}
    assert not list(edits.random_graph_edits(matrix(1), 3, np.random.default_rng(0)))
