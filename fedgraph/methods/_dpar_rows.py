"""DPAR's public numbers and its rows: how many nodes take part, which are sources, whom they name.

The *view* is the graph that stage 1 and 2 see. With a fixed-size sample it is the sampled nodes' induced
graph, in random order. With independent coins it is the whole client graph in which nodes that were not
sampled have lost edges, features and label: public ids stay, so every array has a public shape.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning import neighbours
from fedgraph.learning.aggregated import AggregatedRows, aggregated_rows
from fedgraph.learning.pagerank import approximate_pagerank
from fedgraph.learning.sparse import unit_rows
from fedgraph.methods import _dpar_noise as noise_of
from fedgraph.methods.base import Budget, Plan, PublicFacts, Streams
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Event, Unprotected
from fedgraph.privacy.mechanisms import Disclose, GaussianNoise, GumbelTopK, LaplaceNoise, Mechanism
from fedgraph.privacy.sensitivity import Bound, Box, NonNegativeRows
from fedgraph.types import Graph

if TYPE_CHECKING:
    from fedgraph.methods.dpar import Params

IN_CLEAR = Disclose("no noise was asked for")
LEAST_SAMPLE = 210  # nodes: 9 % of Cora-ML, the paper's smallest sample
MISSED_SHARE = 1e-3  # part of δ spent on "more sources were sampled than the noise covers"


@dataclass(frozen=True)
class Sizes:
    """Public numbers of a run.

    sampled: q', share of nodes that take part; amplified: the rate that amplifies (1 where clients know the
    sample). fixed: the sample has a fixed size. sources: M per client, marked: how many ids may become a
    source, cap: how many of them hold data at most, missed: probability of more. rate, steps, rounds,
    local_steps: of the gradient steps. expected_batch: rows per step and client. most_mentions: B' − 1, or
    None. touched: B' as priced.
    """

    sampled: float
    amplified: float
    fixed: bool
    sources: int
    marked: int
    cap: int
    missed: float
    rate: float
    groups: int
    rounds: int
    local_steps: int
    expected_batch: float
    most_mentions: int | None
    touched: int
    notes: tuple[str, ...]

    @property
    def steps(self) -> int:
        return self.rounds * self.local_steps

    def shape(self, params: Params, replaces: bool) -> noise_of.Shape:
        """What the noise depends on."""
        return noise_of.Shape(
            kind=params.variant,
            sampled=self.amplified,
            sources=self.cap,
            missed=self.missed,
            top=params.top,
            rate=self.rate,
            steps=self.steps,
            touched=self.touched,
            replaced=replaces or (self.fixed and self.amplified < 1),
            fixed_batches=params.batches == "fixed",
            values_share=params.values_share,
        )


def sizes(params: Params, facts: PublicFacts, budget: Budget) -> Sizes:
    """From public counts alone. Raises ``ScenarioError`` where K exceeds the candidates or q' is no share."""
    central = facts.num_clients == 1
    if params.sampled == "auto":
        sampled = min(1.0, max(0.09, LEAST_SAMPLE / facts.num_nodes)) if central else 1.0
    else:
        sampled = float(params.sampled)
    if not 0 < sampled <= 1:
        raise ScenarioError(f"dpar: sampled = {sampled}; allowed: a share in (0, 1], e.g. 0.09, or auto")
    fixed = budget.calibrated_by == "published" or not budget.private or params.variant == "none"
    taking_part = [max(1, round(sampled * n)) for n in facts.client_sizes]
    candidates = min(taking_part if fixed else facts.client_sizes)
    if params.top > candidates:
        raise ScenarioError(
            f"dpar: top = {params.top} neighbours, but the smallest client has {candidates} candidate nodes; "
            f"allowed: 1 … {candidates}"
        )
    sources = min(params.num_sources, max(taking_part))
    marked = sources if fixed or sampled == 1 else min(max(facts.client_sizes), math.ceil(sources / sampled))
    missed = MISSED_SHARE * budget.delta
    cap = marked if fixed else noise_of.source_cap(marked, sampled, missed)
    rows = [min(sources, n) for n in taking_part] if params.tail == "none" else taking_part
    mean_rows = sum(rows) / len(rows)
    one_step = not central and params.local_steps in ("auto", 1)  # a round is one step over all clients' rows
    in_step = sum(rows) if one_step else mean_rows
    groups = max(1, math.ceil(in_step / params.batch_size))
    rate = 1 / groups if params.batches == "fixed" else min(1.0, params.batch_size / in_step)
    steps = params.epochs * groups
    local = (steps if central else 1) if params.local_steps == "auto" else min(int(params.local_steps), steps)
    provable = budget.private and budget.calibrated_by != "published" and params.variant != "none"
    most = (2 if provable else "any") if params.column_rows == "auto" else params.column_rows
    return Sizes(
        sampled=sampled,
        amplified=sampled if central else 1.0,
        fixed=fixed,
        sources=sources,
        marked=marked,
        cap=max(1, cap),
        missed=missed if cap < marked else 0.0,
        rate=rate,
        groups=groups,
        rounds=math.ceil(steps / local),
        local_steps=local,
        expected_batch=rate * mean_rows,
        most_mentions=None if most == "any" else int(most) - 1,
        touched=1 if params.variant == "features" else marked + 1 if most == "any" else int(most),
        notes=tuple(_remarks(params, sources, marked, most, max(facts.client_sizes), central, sampled)),
    )


def _remarks(
    params: Params, sources: int, marked: int, most: int | str, nodes: int, central: bool, sampled: float
) -> list[str]:
    found = []
    if sources < params.num_sources:
        found.append(
            f"M = {params.num_sources} sources were asked for, but only {sources} nodes take part: all of them are sources"
        )
    if most != "any" and (int(most) - 1) * nodes < marked * params.top:
        found.append(
            f"B' = {most}: other rows may name {nodes} nodes {(int(most) - 1) * nodes} times, {marked * params.top} names are "
            "chosen; a row whose names are all cut falls back on its own node"
        )
    if params.variant in noise_of.FREE:
        found.append("which rows are added up is public and costs nothing; the gradient steps get (1 − split) of the budget")
    if not central and sampled < 1:
        found.append("clients know which of their nodes were sampled, so the sample amplifies nothing")
    return found


def weakness(params: Params, found: Sizes, multiplier: float) -> list[str]:
    """Says so where the noise drowns every possible gradient."""
    if multiplier <= found.expected_batch:
        return []
    return [
        f"budget too small for useful noise: each step adds std {multiplier:.3g}·C per coordinate to a sum whose norm is "
        f"at most {found.expected_batch:.3g}·C on average; expect chance-level accuracy"
    ]


def releases(params: Params, shape: noise_of.Shape, found: noise_of.Noise, private: bool) -> tuple[PlannedRelease, ...]:
    """Stage 1's planned releases (round 0): which neighbours, and for em1 with which weights."""
    if params.variant in noise_of.FREE:
        return ()
    if params.variant == "none":
        return (
            _planned("neighbours", NonNegativeRows(1.0, max(1, shape.sources)), IN_CLEAR, Unprotected("rows used as they are")),
        )
    first: Mechanism
    bound: Bound = Box(0.0, params.clip_entry)
    if params.variant == "gm":
        bound, first = (
            NonNegativeRows(params.clip_vector, shape.sources),
            GaussianNoise(params.clip_vector * (found.choice or 1.0)),
        )
    else:
        first = GumbelTopK(params.top, params.clip_entry * (found.choice or 1.0))
    clear = Unprotected("no noise was asked for")
    planned = [
        _planned("neighbours", bound, first if private else IN_CLEAR, noise_of.stage_one(shape, found) if private else clear)
    ]
    if params.variant == "em1":
        second: Mechanism = LaplaceNoise(params.clip_entry * found.values) if private else IN_CLEAR
        planned.append(_planned("weights", bound, second, noise_of.stage_one_values(shape, found) if private else clear))
    return tuple(planned)


def _planned(path: str, bound: Bound, mechanism: Mechanism, event: Event) -> PlannedRelease:
    return PlannedRelease(path, bound, mechanism, event, range(1))


def with_features(graph: Graph, scaling: str) -> Graph:
    """``graph`` with feature rows of unit norm, or as they are."""
    return dataclasses.replace(graph, features=unit_rows(graph.features)) if scaling == "unit" else graph


def choose(plan: Plan, graph: Graph, streams: Streams, desk: Desk) -> AggregatedRows:
    """Sample, choose neighbours through the desk, limit mentions and columns: the rows to train on."""
    params, found = plan.params, plan.made["sizes"]
    public = streams.generator("public-coins")
    view, present, sources = _view(graph, found, streams.generator("sample"), public)
    holding = np.flatnonzero(_holds_data(view, present, found)[sources])[: found.cap]
    if params.variant == "none":
        pi = _unprotected(plan, view, sources, desk)
    else:
        chosen, weights = _choices(plan, view, sources, holding, public, desk)
        if found.most_mentions is not None:
            chosen = neighbours.limit_mentions(sources, chosen, found.most_mentions, public.random(sources.size))
        tail = np.setdiff1d(np.flatnonzero(present), sources) if params.tail == "one-hot" else np.zeros(0, np.int64)
        pi = neighbours.aggregation(view.num_nodes, sources, chosen, weights, tail, params.tau, params.columns)
    rows = np.flatnonzero(present & (np.diff(pi.indptr) > 0))
    return aggregated_rows(view.features, pi[rows], view.labels[rows], clipped=params.variant != "none")


def _view(
    graph: Graph, found: Sizes, secret: np.random.Generator, public: np.random.Generator
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """(view, which of its nodes take part, the nodes marked as sources)."""
    n = graph.num_nodes
    if found.fixed:
        size = max(1, round(found.sampled * n))
        view = graph.induced(secret.choice(n, size, replace=False))
        return view, np.ones(size, bool), np.arange(min(found.sources, size))
    present = secret.random(n) < found.sampled
    keep = sp.diags_array(present.astype(np.float64), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    features = sp.csr_array(keep.astype(graph.features.dtype) @ graph.features)
    view = dataclasses.replace(graph, adjacency=adjacency, features=features, labels=np.where(present, graph.labels, -1))
    return view, present, np.sort(public.choice(n, min(found.marked, n), replace=False))


def _holds_data(view: Graph, present: np.ndarray, found: Sizes) -> np.ndarray:
    """bool [n]: whose PageRank vector is computed; the others pass the desk as zeros.

    With an amplifying sample of independent coins a sampled node without edges must look like one that was
    not sampled (a zeroed node has no edges either), so its vector is not e_s but zero.
    """
    return present if found.fixed or found.amplified >= 1 else present & (view.degrees > 0)


def _choices(
    plan: Plan, view: Graph, sources: np.ndarray, holding: np.ndarray, public: np.random.Generator, desk: Desk
) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights), [S, K] each. Rows of sources that hold no data pass the desk as zeros: noise only."""
    params = plan.params
    even = np.full((sources.size, params.top), 1.0 / params.top)
    if params.variant == "random":
        drawn = [public.choice(view.num_nodes, params.top, replace=False) for _ in sources]
        return np.array(drawn, np.int64).reshape(sources.size, params.top), even
    if params.variant == "features":
        return sources[:, None], np.ones((sources.size, 1))
    planned = {r.path: r for r in plan.releases}
    first = planned["neighbours"]
    vectors = np.zeros((sources.size, view.num_nodes))
    vectors[holding] = approximate_pagerank(view.adjacency, sources[holding], params.alpha, params.rho, params.gamma).toarray()
    released = desk.release("neighbours", vectors, first.bound, first.mechanism).value
    if params.variant == "gm":
        chosen = neighbours.largest(released, params.top)
        return chosen, np.take_along_axis(released, chosen, axis=1)
    chosen = released if isinstance(first.mechanism, GumbelTopK) else neighbours.largest(released, params.top)
    if params.variant == "em0":
        return np.array(chosen), even
    second = planned["weights"]
    values = np.take_along_axis(vectors, chosen, axis=1)
    return np.array(chosen), np.array(desk.release("weights", values, second.bound, second.mechanism).value)


def _unprotected(plan: Plan, view: Graph, sources: np.ndarray, desk: Desk) -> sp.csr_array:
    """Π of DPAR without DP: whole PageRank rows at the sources, one-hot rows elsewhere."""
    params, first = plan.params, plan.releases[0]
    rows = approximate_pagerank(view.adjacency, sources, params.alpha, params.rho, params.gamma)
    desk.release("neighbours", rows.toarray(), first.bound, first.mechanism)
    tail = np.setdiff1d(np.arange(view.num_nodes), sources) if params.tail == "one-hot" else np.zeros(0, np.int64)
    place = sp.csr_array((np.ones(sources.size), (sources, np.arange(sources.size))), shape=(view.num_nodes, sources.size))
    empty = sources[np.diff(rows.indptr) == 0]
    alone = np.concatenate([tail, empty])
    return sp.csr_array(place @ rows + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=(view.num_nodes,) * 2))


class Batches:
    """Row numbers of one step after another: fresh coins each step, or fixed groups of public ids in turn."""

    def __init__(self, num_rows: int, found: Sizes, fixed: bool, round_: int, streams: Streams) -> None:
        self._num_rows, self._found, self._fixed = num_rows, found, fixed
        self._coins = streams.generator("batches")
        self._step = round_ * found.local_steps
        self._group = np.arange(num_rows) % found.groups

    def next(self) -> np.ndarray:
        """int64, sorted."""
        self._step += 1
        if self._fixed:
            return np.flatnonzero(self._group == (self._step - 1) % self._found.groups)
        return np.flatnonzero(self._coins.random(self._num_rows) < self._found.rate)
