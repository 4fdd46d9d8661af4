"""The rows of DPAR: which nodes take part, which are sources, which neighbours they choose, and which rows a step uses.

The *view* is the graph that stage 1 and 2 see. With a fixed-size sample it is the sampled nodes' induced
graph, in random order. With independent coins it is the whole client graph in which nodes that were not
sampled have lost edges, features and label: public ids stay, so every array has a public shape.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import AggregatedRows, aggregated_rows, neighbour_limits, unit_matrix_rows, walks
from fedgraph.methods.base import Plan, PlanStreams
from fedgraph.methods.dpar import releases
from fedgraph.methods.dpar.noise import Sizes
from fedgraph.methods.dpar.releases import Made, Params
from fedgraph.privacy import Desk, GumbelTopK
from fedgraph.types import Graph


def scaled(graph: Graph, scaling: str) -> Graph:
    """``graph`` with feature rows of unit norm, or as they are."""
    return dataclasses.replace(graph, features=unit_matrix_rows(graph.features)) if scaling == "unit" else graph


def choose(plan: Plan[Params, Made], graph: Graph, streams: PlanStreams, desk: Desk) -> AggregatedRows:
    """Sample, choose neighbours through the desk, limit mentions and columns: the rows to train on."""
    params, found = plan.params, plan.made.sizes
    public = streams.generator("public-coins")
    view, present, sources = _view(graph, found, streams.generator("sample"), public)
    # The vectors of the others pass the desk as zeros. With an amplifying sample of independent coins a sampled node without
    # edges must look like one that was not sampled (a zeroed node has no edges either), so its vector is not e_s but zero.
    known = present if found.fixed or found.amplified >= 1 else present & (view.degrees > 0)
    holding = np.flatnonzero(known[sources])[: found.cap]
    if params.variant == "none":
        pi = _unprotected(plan, view, sources, desk)
    else:
        chosen, weights = _choices(plan, view, sources, holding, public, desk)
        if found.most_mentions is not None:
            ties = public.random(sources.size)
            chosen = neighbour_limits.limit_mentions(sources, chosen, found.most_mentions, ties)
        tail = np.setdiff1d(np.flatnonzero(present), sources)
        given = (view.num_nodes, sources, chosen, weights, tail, params.tau, params.columns)
        pi = neighbour_limits.matrix_of(*given)
    rows = np.flatnonzero(present & (np.diff(pi.indptr) > 0))
    return aggregated_rows.prepare(view.features, pi[rows], view.labels[rows], clipped=params.variant != "none")


def _view(
    graph: Graph, found: Sizes, secret: np.random.Generator, public: np.random.Generator
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """(view, which of its nodes take part, the nodes marked as sources)."""
    n = graph.num_nodes
    if found.fixed:
        size = releases.sample_size(found.sampled, n)
        view = graph.induced(secret.choice(n, size, replace=False))
        return view, np.ones(size, bool), np.arange(min(found.sources, size))
    present = secret.random(n) < found.sampled
    keep = sp.diags_array(present.astype(np.float64), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    features = sp.csr_array(keep.astype(graph.features.dtype) @ graph.features)
    view = dataclasses.replace(graph, adjacency=adjacency, features=features, labels=np.where(present, graph.labels, -1))
    return view, present, np.sort(public.choice(n, min(found.marked, n), replace=False))


def _choices(
    plan: Plan[Params, Made], view: Graph, sources: np.ndarray, holding: np.ndarray, public: np.random.Generator, desk: Desk
) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights), [S, K] each. Rows of sources that hold no data pass the desk as zeros: noise only."""
    params = plan.params
    even = np.full((sources.size, params.top), 1.0 / params.top)
    if params.variant == "random":
        drawn = [public.choice(view.num_nodes, params.top, replace=False) for _ in sources]
        return np.array(drawn, np.int64).reshape(sources.size, params.top), even
    if params.variant == "features":
        return sources[:, None], np.ones((sources.size, 1))
    vectors = np.zeros((sources.size, view.num_nodes))
    walked = walks.approximate_pagerank(view.adjacency, sources[holding], params.alpha, params.rho, params.gamma)
    vectors[holding] = walked.toarray()
    chosen = released = _passed(desk, "neighbours", vectors)
    if not isinstance(plan.schedule.releases[0].mechanism, GumbelTopK):
        chosen = neighbour_limits.choose_largest(released, params.top)
    if params.variant == "gm":
        return chosen, np.take_along_axis(released, chosen, axis=1)
    if params.variant == "em0":
        return np.array(chosen), even
    values = np.take_along_axis(vectors, chosen, axis=1)
    return np.array(chosen), np.array(_passed(desk, "weights", values))


def _unprotected(plan: Plan[Params, Made], view: Graph, sources: np.ndarray, desk: Desk) -> sp.csr_array:
    """Π of DPAR without DP: whole PageRank rows at the sources, one-hot rows elsewhere."""
    params = plan.params
    rows = walks.approximate_pagerank(view.adjacency, sources, params.alpha, params.rho, params.gamma)
    _passed(desk, "neighbours", rows.toarray())
    place = sp.csr_array((np.ones(sources.size), (sources, np.arange(sources.size))), shape=(view.num_nodes, sources.size))
    empty = sources[np.diff(rows.indptr) == 0]
    alone = np.concatenate([np.setdiff1d(np.arange(view.num_nodes), sources), empty])
    return sp.csr_array(place @ rows + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=(view.num_nodes,) * 2))


def _passed(desk: Desk, path: str, value: np.ndarray) -> np.ndarray:
    """What the desk makes of ``value`` in round 0, or made of it then."""
    return desk.release(path, value).value if desk.round == 0 else desk.replay(path, value)


class Batches:
    """Row numbers of one step after another: fresh coins each step, or fixed groups of public ids in turn.
    parts: (number of rows, streams) of each client whose rows lie under one another; each tosses its own coins. found: public
    numbers.
    """

    def __init__(self, parts: Sequence[tuple[int, PlanStreams]], found: Sizes, fixed: bool, round_: int) -> None:
        self._found, self._fixed = found, fixed
        self._coins = [(size, streams.generator("batches")) for size, streams in parts]
        self._step = round_ * found.local_steps
        self._group = np.concatenate([np.arange(size) % found.groups for size, _ in parts])

    def next(self) -> np.ndarray:
        """The rows of the next step, int64, sorted."""
        self._step += 1
        if self._fixed:
            return np.flatnonzero(self._group == (self._step - 1) % self._found.groups)
        return np.flatnonzero(np.concatenate([coins.random(size) for size, coins in self._coins]) < self._found.rate)
