"""Canary graphs: what a client holds enters the training in one of two versions, and everything that it releases is read.

**Protected updates.** If the updates of a shared model are protected, the whole plan is run once more. A coin decides for each
canary which version trains. The two versions of one canary, given the other coins, are neighbours:

    graph-replace   every node of the graph has one word; version 1 has one class, version 0 spreads its nodes over the others
    node-replace    the same for one node, wherever it is held: no client holds two of the nodes in question

With these words and classes the two gradients are about opposite, as long as the model is undecided. Edges and numbers of nodes
stay as they are. The method gives the scores (``graph_evidence``): the exact likelihood ratio of every noisy update and bit,
for a canary alone.

**Encoded graphs.** Otherwise every graph is a canary, and the model is given (in clear, trained on public nodes, or random), so
its path is outside this game. A coin for each graph decides what its client encodes: the embedding H of the graph by the
trained model, or the matrix farthest from H: rows (0 … 1 … 0) at the least likely class if rows are probabilities, else the far
corner of the box. A client that releases one vector (a histogram of classes) sends one of two different corners of the simplex.
As far as the guarantee goes, any such matrix or corner is that of some graph, so the two are neighbours under
``graph-replace``. Under ``node-replace`` every client that holds a node is priced whole, so one client's release is a part of
what is priced. A promised degree prices single rows: such plans are not attacked.

All clients that send anything encode once more, through the desk. A release of graph g has the score
log P(release | H)/P(release | other), which no other score can beat. ``audit.one_run`` turns right guesses into a bound on ε
that holds with 95 % confidence. Graphs of one client are units of their own; the plan prices the worst of them.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import seeds
from fedgraph.attacks.base import evidence as evidence_of
from fedgraph.attacks.base import whole_run
from fedgraph.attacks.base.whole_run import NO_WHOLE_RUN_RESULT, WholeRunResult
from fedgraph.audit import one_run
from fedgraph.cells import Cell, CellContext
from fedgraph.documents import Settings
from fedgraph.methods import EmbedderMethodPlan, State, method_kinds, seen
from fedgraph.privacy import Desk, Relation, accountant, ledger, likelihood_ratios
from fedgraph.types import Graph, Partition, Subgraph, subgraph_with_rows_of


@dataclass(frozen=True, eq=False)
class CanaryGraphs:
    """Graphs or nodes of the clients that enter a training in one of two versions.

    Attributes:
        zero: All clients with every canary in version 0.
        one: All clients with every canary in version 1.
        units: For each client, int64 [graphs], the number of the canary that decides each of its graphs; −1: none does.
        coins: bool [m], the version of each canary: true for version 1.
    """

    zero: Partition
    one: Partition
    units: tuple[np.ndarray, ...]
    coins: np.ndarray

    def dealt(self, sizes: Sequence[tuple[int, ...]]) -> Partition:
        """The clients with every canary as its coin says. sizes: nodes of each graph, per client."""
        found = []
        for zero, one, own, rows in zip(self.zero.subgraphs, self.one.subgraphs, self.units, sizes, strict=True):
            with_one = (own >= 0) & self.coins[own]
            found.append(subgraph_with_rows_of(zero, one, np.repeat(with_one, rows)))
        return replace(self.zero, subgraphs=tuple(found))


def _measure_updates(
    guesses: list[float], made: EmbedderMethodPlan, cell: Cell, context: CellContext, partition: Partition
) -> WholeRunResult:
    rng = seeds.seeded_generator(context.root, "attack", *cell.path)
    found = draw(made, partition, rng)
    if found is None or found.coins.size < 2:
        return NO_WHOLE_RUN_RESULT
    state = whole_run.train_again(made, found.dealt(made.made.sizes), cell, context)
    evidence = evidence_of.readers(made.method).graph_evidence
    scores = None if evidence is None else evidence(made, state, found.zero, found.one, found.units)
    if scores is None:
        return NO_WHOLE_RUN_RESULT
    unit = f"{made.guarantee.protection.relation.value} canaries"
    what = f"{unit}, read in the noisy updates of all rounds and in what was released of graphs"
    by = one_run.choose_estimator(all(accountant.is_gaussian(event) for event in made.declared().values()))
    return whole_run.bound_scores(scores, found.coins, guesses, made.guarantee.delta, what, centred=True, estimator=by)


def draw(made: EmbedderMethodPlan, partition: Partition, rng: np.random.Generator) -> CanaryGraphs | None:
    """As many canaries as there are units; None if there is one class, or the relation has no such canaries."""
    graphs = [s.graph for s in partition.subgraphs]
    if graphs[0].num_classes < 2:
        return None
    relation = made.guarantee.protection.relation
    if relation is Relation.GRAPH_REPLACE:
        return _graphs(made, partition, rng)
    shared = relation is Relation.NODE_REPLACE and made.facts.holdings is not None
    return _nodes(made, partition, rng) if shared else None


def _graphs(made: EmbedderMethodPlan, partition: Partition, rng: np.random.Generator) -> CanaryGraphs:
    """A coin for each graph of clients that do not collude: a colluder's own graph is no secret."""
    spread = not made.params.releases_labels  # the farthest histograms are two single classes
    words = _words([s.graph for s in partition.subgraphs], rng)
    parts: list[list[Subgraph]] = [[], []]
    units, count = [], 0
    for place, (subgraph, sizes) in enumerate(zip(partition.subgraphs, made.made.sizes, strict=True)):
        if place in seen.colluders_of(made):
            units.append(np.full(len(sizes), -1, dtype=np.int64))
            for version in (0, 1):
                parts[version].append(subgraph)
            continue
        own = count + np.arange(len(sizes))
        units.append(own)
        count += len(sizes)
        drawn_for = [(next(words), _classes(subgraph.graph.num_classes, n, spread, rng)) for n in sizes]
        rows = [word for (word, _), n in zip(drawn_for, sizes, strict=True) for _ in range(n)]
        features = sp.csr_array(sp.vstack(rows, format="csr"))
        for version in (0, 1):
            labels = np.concatenate([classes[version] for _, classes in drawn_for])
            parts[version].append(replace(subgraph, graph=replace(subgraph.graph, features=features, labels=labels)))
    zero, one = (replace(partition, subgraphs=tuple(own)) for own in parts)
    return CanaryGraphs(zero, one, tuple(units), rng.random(count) < 0.5)


def _nodes(made: EmbedderMethodPlan, partition: Partition, rng: np.random.Generator) -> CanaryGraphs:
    """A coin for each of some nodes, of which no client holds two and no colluder any; centres of ego-networks first."""
    holders: dict[int, list[int]] = {}
    for place, s in enumerate(partition.subgraphs):
        for node in s.nodes.tolist():
            holders.setdefault(node, []).append(place)
    centres = {int(s.nodes[s.center]) for s in partition.subgraphs if s.center is not None}
    order = rng.permutation(sorted(holders))
    words = _words([s.graph for s in partition.subgraphs], rng)
    units = [np.array([-1], dtype=np.int64) for _ in partition.subgraphs]
    parts: list[list[Subgraph]] = [list(partition.subgraphs), list(partition.subgraphs)]
    count, known = 0, set(seen.colluders_of(made))
    for node in sorted(order.tolist(), key=lambda v: (v not in centres, len(holders[v]))):
        if any(units[place][0] >= 0 or place in known for place in holders[node]):
            continue
        word = next(words)
        classes = _classes(partition.subgraphs[0].graph.num_classes, 1, False, rng)
        for place in holders[node]:
            units[place] = np.array([count], dtype=np.int64)
            for version in (0, 1):
                parts[version][place] = _with_row(parts[version][place], node, word, int(classes[version][0]))
        count += 1
    zero, one = (replace(partition, subgraphs=tuple(own)) for own in parts)
    return CanaryGraphs(zero, one, tuple(units), rng.random(count) < 0.5)


def _words(graphs: Sequence[Graph], rng: np.random.Generator) -> Iterator[sp.csr_array]:
    """Rows of one word, float32 CSR [1, d]; each canary has its own word as long as there are enough. Its value is the largest
    in rows of ``graphs``, or 1 if no word is used there.
    """
    largest = np.max([np.asarray(abs(g.features).max(axis=0).todense()).ravel() for g in graphs], axis=0)
    used = np.flatnonzero(largest)
    for column in itertools.cycle(rng.permutation(used if used.size else np.arange(max(1, largest.size)))):
        row = np.zeros((1, largest.size), dtype=np.float32)
        row[:, column : column + 1] = largest[column : column + 1] if used.size else 1.0
        yield sp.csr_array(row)


def _classes(num_classes: int, n: int, spread: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n] labels of version 0 and of version 1. spread: version 0 divides its nodes among all other classes."""
    one = int(rng.integers(num_classes))
    others = rng.permutation(np.delete(np.arange(num_classes), one))
    zero = np.resize(others, n) if spread else np.full(n, others[0])
    return zero.astype(np.int64), np.full(n, one, dtype=np.int64)


def _with_row(subgraph: Subgraph, node: int, row: sp.csr_array, label: int) -> Subgraph:
    graph = subgraph.graph
    place = int(np.flatnonzero(subgraph.nodes == node)[0])
    rows = [graph.features[:place], row, graph.features[place + 1 :]]
    features = sp.csr_array(sp.vstack(rows, format="csr")).astype(np.float32)
    features.sort_indices()
    labels = graph.labels.copy()
    labels[place] = label
    return replace(subgraph, graph=replace(graph, features=features, labels=labels))


_PATH = "embedding"


class GraphAttack(Settings):
    """How a cell is attacked. Canaries are its graphs; single nodes if a node is the unit and updates are protected."""

    seeds: int = Field(1, ge=1, description="attack the first so many seeds; their coins are pooled")
    guesses: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [0.2, 1.0], min_length=1, description="share of graphs that is guessed; several share the error probability"
    )


def measure(
    settings: GraphAttack | None,
    made: EmbedderMethodPlan,
    cell: Cell,
    context: CellContext,
    partition: Partition,
    state: State,
) -> WholeRunResult:
    """Attacks one cell of graphs: all releases if updates are protected, else the embedding path.

    settings: None: cells are not attacked. cell: names the random streams. partition: the clients. state: the final state of
    the ordinary run, which the attacker gets if updates are not protected.

    Returns ``NO_WHOLE_RUN_RESULT`` if the seed is not attacked, a degree is promised, or no client sent anything.
    """
    if settings is None or cell.seed >= settings.seeds or made.guarantee.protection.promised_degree is not None:
        return NO_WHOLE_RUN_RESULT
    if made.params.protects:
        return _measure_updates(settings.guesses, made, cell, context, partition)
    stream, coins, scores = ("attack", *cell.path), [], []
    rng = seeds.seeded_generator(context.root, *stream)
    for subgraph, sizes in zip(partition.subgraphs, made.made.sizes, strict=True):
        release = made.made.sent[subgraph.client]
        if not release.count:
            continue  # the client dropped out before it sent anything
        one, zero = _versions(made, state, subgraph, rng)
        blocks = sizes if len(one) == sum(sizes) and made.made.pooled is None else (len(one),)
        tossed = rng.random(len(blocks)) < 0.5
        kept = np.repeat(tossed, blocks)
        entered = np.where(kept if one.ndim == 1 else kept[:, None], one, zero)
        desk = Desk(ledger.account_name(stream), subgraph.client, release.rounds[0], made.schedule.releases, rng)
        sent = desk.release(_PATH, entered).value
        coins.append(tossed)
        scores += likelihood_ratios.of_blocks(release.mechanism, sent, one, zero, blocks)
    if not coins:
        return NO_WHOLE_RUN_RESULT
    gaussian = made.made.pooled is not None and all(accountant.is_gaussian(r.event) for r in made.made.sent)
    read = "encoded embeddings" if made.made.pooled is None else "released histograms of classes"
    what = f"graph-replace canaries, read in the {read}; the model path is outside this attack"
    by = one_run.choose_estimator(gaussian)
    found, delta = (np.array(scores), np.concatenate(coins)), made.guarantee.delta
    return whole_run.bound_scores(*found, settings.guesses, delta, what, centred=True, estimator=by, path=_PATH)


def _versions(
    made: EmbedderMethodPlan, state: State, subgraph: Subgraph, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    pooled = made.made.pooled
    if pooled is not None:
        first, second = rng.permutation(pooled.width)[:2] if pooled.width > 1 else (0, 0)
        corners = np.eye(pooled.width)
        return pooled.value(corners[first]), pooled.value(corners[second])
    rows = method_kinds.load_embedder(made.method).in_clear(made, state, subgraph)
    return rows, _farthest(rows, made.params.on_simplex)


def _farthest(rows: np.ndarray, softmax: bool) -> np.ndarray:
    """The admissible matrix farthest from ``rows``: corners of the simplex, or of the box [0, 1]."""
    return np.eye(rows.shape[1])[rows.argmin(axis=1)] if softmax else np.where(rows < 0.5, 1.0, 0.0)
