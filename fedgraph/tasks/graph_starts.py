"""Does small noise help Gromov-Wasserstein out of saddle points (Jin & Chen, Figure 5 and Equation 4)?

Pairs of small graphs, embedded in clear by one model. Every cell is the share by which one strategy ends below the descent from
p qᵀ, on the clear problem, all strategies on the same pairs: see ``geometry.starts``. A seed is a new sample, a new model and
new noise, so that standard errors over seeds count everything. Nothing is released and no ε is claimed: the noise is in the
embeddings' own units (the released code's reading, ε as a standard deviation).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field, field_validator

from fedgraph import seeds
from fedgraph.comparison import starts
from fedgraph.errors import ScenarioError
from fedgraph.methods.base import Plan
from fedgraph.settings import Settings
from fedgraph.tasks import _clear_embeddings as clear
from fedgraph.tasks.base import Cell, Context, Outcome, require_distinct

LOWER = 1e-6  # what counts as lower, relative to the value from p qᵀ: well above the tolerance of a descent
PRODUCT, NUDGED, RANDOM, MIXED, THREE = "product", "nudged", "two random", "product, one random", "product, two random"


class Params(Settings):
    """Which graphs, which model, which noise."""

    graphs: int = Field(100, ge=2, description="small graphs of one repetition")
    hops: int = Field(1, ge=0, description="radius of the ego-networks, where the data is one graph")
    min_nodes: int = Field(3, ge=1, description="smallest graph")
    max_nodes: int = Field(60, ge=1, description="largest graph")
    max_degree: int = Field(64, ge=1, description="largest one-hot degree, where nodes have no features")
    pairs: int = Field(300, ge=1, description="random pairs of one repetition")
    noise: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        [0.01, 0.1, 1.0], min_length=1, description="standard deviations of the noise on embeddings in [0, 1]"
    )
    training: clear.Model = Field(clear.Model(), description="the model, and how it is trained")

    @field_validator("noise")
    @classmethod
    def _distinct(cls, values: list[float]) -> list[float]:
        require_distinct("noise", values)
        return values


def plugins_of(params: Params) -> list[tuple[tuple[str | int, ...], str, dict[str, Any]]]:
    """No nested plugin."""
    return []


def cells(params: Params, context: Context) -> list[Cell]:
    """Per seed: every strategy."""
    if context.data is None:
        raise ScenarioError("graph_starts needs a data set")
    names = [PRODUCT, NUDGED, RANDOM, MIXED, THREE]
    names += [f"{kind} {s:g}" for s in params.noise for kind in ("noise", "product, noise")]
    return [
        Cell(context.label, context.dataset, "GW(H)", name, "local", np.inf, "none", seed)
        for seed in range(context.seeds)
        for name in names
    ]


def plan(params: Params, cell: Cell, context: Context) -> Plan[Any, Any] | None:
    """Nothing is released."""
    return None


def run(params: Params, cell: Cell, context: Context) -> Outcome:
    """One strategy on one repetition's pairs; the descents are made once per repetition."""
    ends: starts.Ends = context.cached(
        ("ends", context.label, context.dataset, cell.seed), lambda: _ends(params, cell, context)
    )
    values, descents, steps, noised = _strategy(params, cell.variant, ends)
    before = ends.product
    apart = LOWER * np.maximum(before, 1e-12)
    metrics = {
        "objective": float(values.mean()),
        "gain": float(1.0 - values.sum() / before.sum()) if before.sum() > 0 else 0.0,
        "lower": float((values < before - apart).mean()),
        "higher": float((values > before + apart).mean()),
        "iterations": steps,
    }
    if noised is not None:
        metrics["noised_objective"] = float(noised.mean())
    facts = {"descents": descents, "pairs": int(before.size), "graphs": params.graphs, "hops": params.hops}
    return Outcome(metrics, facts, None, (), None, np.inf, "computed on raw data", {})


def _strategy(params: Params, name: str, ends: starts.Ends) -> tuple[np.ndarray, int, float, np.ndarray | None]:
    """(values of the clear problem, descents, mean iterations of them all, values of the noised problem)."""
    first, second = ends.random
    one = ends.steps[2] / 2
    simple = {
        PRODUCT: (ends.product, 1, ends.steps[0]),
        NUDGED: (ends.nudged, 2, ends.steps[1]),
        RANDOM: (np.minimum(first, second), 2, ends.steps[2]),
        MIXED: (np.minimum(ends.product, first), 2, ends.steps[0] + one),
        THREE: (np.minimum(ends.product, np.minimum(first, second)), 3, ends.steps[0] + ends.steps[2]),
    }
    if name in simple:
        values, descents, steps = simple[name]
        return values, descents, float(steps), None
    kind, _, level = name.rpartition(" ")
    at = [f"{s:g}" for s in params.noise].index(level)
    steps = ends.steps[3 + at]
    if kind == "noise":
        return ends.noise[at], 2, float(steps), ends.noised[at]
    return np.minimum(ends.product, ends.noise[at]), 3, float(steps + ends.steps[0]), None


def _ends(params: Params, cell: Cell, context: Context) -> starts.Ends:
    where = (context.label, context.dataset, cell.seed)
    assert context.data is not None
    rng = seeds.generator(context.root, "sample", *where)
    found = clear.sample(context.data, params.graphs, params.hops, (params.min_nodes, params.max_nodes), params.max_degree, rng)
    model = clear.train(found.graphs, params.training, seeds.generator(context.root, "model", *where))
    every = np.stack(np.triu_indices(params.graphs, 1), axis=1)
    which = every[np.sort(rng.permutation(len(every))[: params.pairs])]
    rows = [model.of(g) for g in found.graphs]
    chunks = np.array_split(which, max(1, len(which) // 50))
    made = [(chunk, seeds.integer(context.root, "starts", *where, i)) for i, chunk in enumerate(chunks)]
    noise_seed = seeds.integer(context.root, "noise", *where)
    handle = context.runtime.share(f"rows:{id(rows)}", tuple(rows))
    parts = []
    for part in context.runtime.map(_explore, made, handle, tuple(params.noise), noise_seed):
        parts.append(part)
        context.progress("chunks of pairs", len(parts), len(made))
    context.runtime.forget(handle)
    weights = [len(chunk) / len(which) for chunk in chunks]
    joined = {
        n: np.concatenate([getattr(p, n) for p in parts], axis=-1) for n in ("product", "nudged", "random", "noise", "noised")
    }
    steps = np.sum([w * p.steps for w, p in zip(weights, parts, strict=True)], axis=0)
    return starts.Ends(**joined, steps=steps)


def _explore(
    task: tuple[np.ndarray, int], rows: tuple[np.ndarray, ...], levels: tuple[float, ...], noise_seed: int
) -> starts.Ends:
    which, seed = task
    return starts.explore(rows, which, levels, np.random.default_rng(noise_seed), np.random.default_rng(seed))
