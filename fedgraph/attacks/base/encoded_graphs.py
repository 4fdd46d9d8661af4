"""An attack on encoded embeddings: every graph is a canary, and its client's release is read with the exact likelihood ratio.

The model is given (``model-given``): its path is outside this game, and unprotected anyway. A coin for each graph: its client
encodes the embedding H that the trained model gives the graph, or another matrix of the same, public, size, as far from H
as embeddings can be: rows (0 … 1 … 0) at the least likely class where rows are probabilities, else the far corner of the
box. Any matrix is the embedding of some graph as far as the guarantee goes (graph-replace), so the two are neighbours.

All clients that send at all encode once more, through the door of every release (``privacy.desk``). A release of graph g gives
log P(release | H)/P(release | other), which no score can beat; ``audit.one_run`` turns right guesses into a bound on ε that
holds with 95 % confidence. Graphs of one client are units of their own: the worst of them is what the plan prices.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from fedgraph import seeds
from fedgraph.attacks.base.whole_run import NOTHING, Measured, of_scores
from fedgraph.cell import Cell, Context
from fedgraph.methods.base import Plan, State, kinds
from fedgraph.methods.base.kinds import Embedding
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.mechanisms import blocks
from fedgraph.privacy.mechanisms.noise import GaussianNoise, Mechanism, MultiBitEncoder
from fedgraph.privacy.units import Relation
from fedgraph.settings import Settings
from fedgraph.types import Partition

PATH = "embedding"


class Attack(Settings):
    """How a cell is attacked; its canaries are its graphs."""

    seeds: int = Field(1, ge=1, description="attack the first so many seeds; their coins are pooled")
    guesses: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        [0.2, 1.0], min_length=1, description="share of graphs that is guessed; several share the error probability"
    )


def measure(
    settings: Attack | None, made: Plan[Any, Embedding], cell: Cell, context: Context, partition: Partition, state: State[Any]
) -> Measured:
    """Attack one cell's embedding path."""
    if settings is None or cell.seed >= settings.seeds or made.protection.relation is not Relation.GRAPH_REPLACE:
        return NOTHING
    stream, coins, scores = ("attack", *cell.path), [], []
    rng = seeds.generator(context.root, *stream)
    for subgraph, sizes in zip(partition.subgraphs, made.made.sizes, strict=True):
        release = made.made.sent[subgraph.client]
        if not release.count:
            continue  # the client dropped out before it sent anything
        rows = kinds.embedder(made.method).in_clear(made, state, subgraph)
        other = farthest(rows, made.params.embedding == "softmax")
        tossed = rng.random(len(sizes)) < 0.5
        entered = np.where(np.repeat(tossed, sizes)[:, None], rows, other)
        desk = Desk("/".join(map(str, stream)), subgraph.client, release.rounds[0], made.releases, rng)
        sent = desk.release(PATH, entered).value
        coins.append(tossed)
        scores += log_ratios(release.mechanism, sent, rows, other, sizes)
    if not coins:
        return NOTHING
    what = "graph-replace canaries, read in the encoded embeddings; the model path is outside this attack"
    found = of_scores(np.array(scores), np.concatenate(coins), settings.guesses, made.delta, what, centred=True)
    found.facts["attack"]["path"] = PATH
    return found


def farthest(rows: np.ndarray, softmax: bool) -> np.ndarray:
    """The admissible matrix farthest from ``rows``: corners of the simplex, or of the box [0, 1]."""
    if not softmax:
        return np.where(rows < 0.5, 1.0, 0.0)
    return np.eye(rows.shape[1])[rows.argmin(axis=1)]


def log_ratios(
    mechanism: Mechanism, sent: np.ndarray, rows: np.ndarray, other: np.ndarray, sizes: tuple[int, ...]
) -> list[float]:
    """For each graph log P(sent | rows)/P(sent | other)."""
    parts = mechanism.parts if isinstance(mechanism, blocks.PerBlock) else (mechanism,) * len(sizes)
    split = zip(*(blocks.split(m, sizes) for m in (sent, rows, other)), strict=True)
    return [log_ratio(part, *three) for part, three in zip(parts, split, strict=True)]


def log_ratio(mechanism: Mechanism, sent: np.ndarray, one: np.ndarray, zero: np.ndarray) -> float:
    """log P(sent | one)/P(sent | zero); of what is sent in clear only the sign means something."""
    if isinstance(mechanism, MultiBitEncoder):
        strength, chosen = np.tanh(mechanism.epsilon_per_bit / 2), sent != 0
        likely = [np.where(sent > 0, (1 - strength) / 2 + x * strength, (1 + strength) / 2 - x * strength) for x in (one, zero)]
        with np.errstate(divide="ignore"):
            return float((np.log(likely[0][chosen]) - np.log(likely[1][chosen])).sum())
    variance = mechanism.std**2 if isinstance(mechanism, GaussianNoise) else 1.0
    return float((np.square(sent - zero).sum() - np.square(sent - one).sum()) / (2 * variance))
