"""An attack on what graphs release: every graph is a canary, read with the exact likelihood ratio of its release.

Where the updates of a shared model are protected, whole runs are attacked (``base.canary_graphs``). Elsewhere the model is
given (in clear, made of public nodes, or none), and its path is outside this game. A coin for each graph: its client encodes
the embedding H that the trained model gives the graph, or another matrix of the same, public, size, as far from H as
embeddings can be: rows (0 … 1 … 0) at the least likely class where rows are probabilities, else the far corner of the box. A
client that releases one vector (a histogram of classes) sends one of two different corners of the simplex. Any matrix, and any
corner, is that of some graph as far as the guarantee goes, so the two are neighbours under ``graph-replace``. Under
``node-replace`` every client that holds a node is priced whole, so one client's release alone is a part of what is priced;
not so with a promised degree, which prices some rows: such rows are not attacked.

All clients that send at all encode once more, through the door of every release (``privacy.desk``). A release of graph g gives
log P(release | H)/P(release | other), which no score can beat; ``audit.one_run`` turns right guesses into a bound on ε that
holds with 95 % confidence. Graphs of one client are units of their own: the worst of them is what the plan prices.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedgraph import seeds
from fedgraph.attacks.base import canary_graphs
from fedgraph.attacks.base.whole_run import NOTHING, Measured, of_scores
from fedgraph.audit import estimators
from fedgraph.cells.cell import Cell, Context
from fedgraph.documents.settings import Settings
from fedgraph.methods.base import State, kinds
from fedgraph.methods.base.kinds import EmbeddingPlan
from fedgraph.privacy.accounting.accountant import is_gaussian
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.ledger import account_name
from fedgraph.privacy.mechanisms.ratios import log_ratios
from fedgraph.types import Partition, Subgraph

PATH = "embedding"


class Attack(Settings):
    """How a cell is attacked; its canaries are its graphs, or single nodes where a node is the unit and updates are noisy."""

    seeds: int = Field(1, ge=1, description="attack the first so many seeds; their coins are pooled")
    guesses: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [0.2, 1.0], min_length=1, description="share of graphs that is guessed; several share the error probability"
    )


def measure(
    settings: Attack | None, made: EmbeddingPlan, cell: Cell, context: Context, partition: Partition, state: State
) -> Measured:
    """Attack one cell: all that is released where updates are protected, else the embedding path."""
    if settings is None or cell.seed >= settings.seeds or made.guarantee.protection.promised_degree is not None:
        return NOTHING
    if made.params.protects:
        return canary_graphs.measure(settings.guesses, made, cell, context, partition)
    stream, coins, scores = ("attack", *cell.path), [], []
    rng = seeds.generator(context.root, *stream)
    for subgraph, sizes in zip(partition.subgraphs, made.made.sizes, strict=True):
        release = made.made.sent[subgraph.client]
        if not release.count:
            continue  # the client dropped out before it sent anything
        one, zero = _versions(made, state, subgraph, rng)
        blocks = sizes if len(one) == sum(sizes) and made.made.pooled is None else (len(one),)
        tossed = rng.random(len(blocks)) < 0.5
        kept = np.repeat(tossed, blocks)
        entered = np.where(kept if one.ndim == 1 else kept[:, None], one, zero)
        desk = Desk(account_name(stream), subgraph.client, release.rounds[0], made.schedule.releases, rng)
        sent = desk.release(PATH, entered).value
        coins.append(tossed)
        scores += log_ratios(release.mechanism, sent, one, zero, blocks)
    if not coins:
        return NOTHING
    gaussian = made.made.pooled is not None and all(is_gaussian(r.event) for r in made.made.sent)
    read = "encoded embeddings" if made.made.pooled is None else "released histograms of classes"
    what = f"graph-replace canaries, read in the {read}; the model path is outside this attack"
    by = estimators.reported(gaussian)
    together = (np.array(scores), np.concatenate(coins))
    return of_scores(*together, settings.guesses, made.guarantee.delta, what, centred=True, estimator=by, path=PATH)


def _versions(made: EmbeddingPlan, state: State, subgraph: Subgraph, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """What a client hands to the desk in version 1 and in version 0."""
    pooled = made.made.pooled
    if pooled is not None:
        first, second = rng.permutation(pooled.width)[:2] if pooled.width > 1 else (0, 0)
        corners = np.eye(pooled.width)
        return pooled.value(corners[first]), pooled.value(corners[second])
    rows = kinds.embedder(made.method).in_clear(made, state, subgraph)
    return rows, farthest(rows, made.params.on_simplex)


def farthest(rows: np.ndarray, softmax: bool) -> np.ndarray:
    """The admissible matrix farthest from ``rows``: corners of the simplex, or of the box [0, 1]."""
    if not softmax:
        return np.where(rows < 0.5, 1.0, 0.0)
    return np.eye(rows.shape[1])[rows.argmin(axis=1)]
