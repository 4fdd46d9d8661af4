"""Does small noise help Gromov-Wasserstein out of saddle points (Jin & Chen, Figure 5 and Equation 4)?

Pairs of small graphs, embedded in clear by one model. Every cell is the share by which one strategy ends below the descent from
p qᵀ, on the clear problem, all strategies on the same pairs: see ``starts``. A seed is a new sample, a new model and
new noise, so that standard errors over seeds count everything. Nothing is released and no ε is claimed: the noise is in the
embeddings' own units (the released code's reading, ε as a standard deviation).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from benchmarks.reproductions import clear_embeddings as clear
from benchmarks.reproductions import starts
from benchmarks.reproductions.facts import GraphStartsCellFacts
from fedgraph import seeds
from fedgraph.federation import JOINED_WORLD
from fedgraph.tasks.base import Cell, CellContext, NestedTaskPlugin, Result, TaskOffers, grid

_LOWER = 1e-6  # what counts as lower, relative to the value from p qᵀ: well above the tolerance of a descent


@dataclass(frozen=True, eq=False)
class _Taken:
    """What one strategy reaches.

    Attributes:
        values: float64 [pairs], the values of the clear problem at its end.
        steps: Their iterations together, as a mean over pairs.
        noised: float64 [pairs], the values of the noised problem, where it descends there first.
        noise: The standard deviation of that noise.
        with_product: Whether the end from p qᵀ counts beside it.
    """

    values: np.ndarray
    descents: int
    steps: float
    noised: np.ndarray | None = None
    noise: float | None = None
    with_product: bool = False


class Params(clear.ClearSampleSettings):
    """Which graphs, which model, which noise."""

    pairs: int = Field(300, ge=1, description="random pairs of one repetition")
    noise: Annotated[list[Annotated[float, Field(gt=0, allow_inf_nan=False)]], grid.distinct_values("noise")] = Field(
        [0.01, 0.1, 1.0], min_length=1, description="standard deviations of the noise on embeddings in [0, 1]"
    )


def plugins_of(params: Params) -> list[NestedTaskPlugin]:
    """Nothing of it is a plugin."""
    return []


def plan(params: Params, cell: Cell, context: CellContext) -> None:
    """Nothing is released."""


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Every strategy, seed by seed."""
    names, cell = _strategies(params.noise), (context.label, context.dataset, "GW(H)")
    return [Cell(*cell, n, JOINED_WORLD, np.inf, "none", seed) for seed in range(context.seeds) for n in names]


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One strategy on one repetition's pairs; the descents are made once per repetition."""
    key = ("ends", context.label, context.dataset, cell.seed)
    ends: starts.EndsOfStarts = context.cached(key, lambda: _ends(params, cell, context))
    taken = _strategies(params.noise)[cell.variant](ends)
    values = taken.values
    before = ends.product
    apart = _LOWER * np.maximum(before, 1e-12)
    metrics = {
        "objective": float(values.mean()),
        "gain": float(1.0 - values.sum() / before.sum()) if before.sum() > 0 else 0.0,
        "lower": float((values < before - apart).mean()),
        "higher": float((values > before + apart).mean()),
        "iterations": taken.steps,
    }
    if taken.noised is not None:
        metrics["noised_objective"] = float(taken.noised.mean())
    facts = GraphStartsCellFacts(descents=taken.descents, pairs=int(before.size), graphs=params.graphs, hops=params.hops)
    facts = replace(facts, noise=taken.noise, with_product=taken.with_product)
    return Result.of(cell, metrics=metrics, facts=facts, epsilon_provable=np.inf, theorem="computed on raw data")


def _strategies(noise: Sequence[float]) -> dict[str, Callable[[starts.EndsOfStarts], _Taken]]:
    """What a row is called → how it is read from all descents of its pairs. noise: standard deviations, one row or two of each.

    A row that names several starts keeps the lowest end of them.
    """
    found: dict[str, Callable[[starts.EndsOfStarts], _Taken]] = {
        "product": lambda e: _Taken(e.product, 1, float(e.steps[0])),
        "nudged": lambda e: _Taken(e.nudged, 2, float(e.steps[1])),
        "two random": lambda e: _Taken(e.random.min(axis=0), 2, float(e.steps[2])),
        "product, one random": lambda e: _Taken(np.minimum(e.product, e.random[0]), 2, float(e.steps[0] + e.steps[2] / 2)),
        "product, two random": lambda e: _Taken(np.minimum(e.product, e.random.min(axis=0)), 3, float(e.steps[0] + e.steps[2])),
    }
    for level, std in enumerate(noise):
        found[f"noise {std:g}"] = partial(_noised, level, std)
        found[f"product, noise {std:g}"] = partial(_product_or_noised, level, std)
    return found


def _noised(level: int, std: float, ends: starts.EndsOfStarts) -> _Taken:
    return _Taken(ends.noise[level], 2, float(ends.steps[3 + level]), ends.noised[level], std)


def _product_or_noised(level: int, std: float, ends: starts.EndsOfStarts) -> _Taken:
    steps = float(ends.steps[3 + level] + ends.steps[0])
    return _Taken(np.minimum(ends.product, ends.noise[level]), 3, steps, None, std, with_product=True)


def _ends(params: Params, cell: Cell, context: CellContext) -> starts.EndsOfStarts:
    where = (context.label, context.dataset, cell.seed)
    found, model, rng = params.embedded(context, cell.seed, params.graphs)
    every = np.stack(np.triu_indices(params.graphs, 1), axis=1)
    which = every[np.sort(rng.permutation(len(every))[: params.pairs])]
    rows = [model.of(g) for g in found.graphs]
    chunks = np.array_split(which, max(1, len(which) // 50))
    made = [(chunk, seeds.seeded_integer(context.root, "starts", *where, i)) for i, chunk in enumerate(chunks)]
    noise_seed = seeds.seeded_integer(context.root, "noise", *where)
    handle = context.runtime.share(f"rows:{id(rows)}", tuple(rows))
    parts = []
    for part in context.runtime.map(_explore, made, handle, tuple(params.noise), noise_seed):
        parts.append(part)
        context.progress("chunks of pairs", len(parts), len(made))
    context.runtime.forget(handle)
    weights = [len(chunk) / len(which) for chunk in chunks]
    names = ("product", "nudged", "random", "noise", "noised")
    joined = {name: np.concatenate([vars(p)[name] for p in parts], axis=-1) for name in names}
    steps = np.sum([w * p.steps for w, p in zip(weights, parts, strict=True)], axis=0)
    return starts.EndsOfStarts(**joined, steps=steps)


def _explore(
    task: tuple[np.ndarray, int], rows: tuple[np.ndarray, ...], levels: tuple[float, ...], noise_seed: int
) -> starts.EndsOfStarts:
    which, seed = task
    return starts.explore_starts(rows, which, levels, np.random.default_rng(noise_seed), np.random.default_rng(seed))


TASK: TaskOffers[Params] = TaskOffers()
