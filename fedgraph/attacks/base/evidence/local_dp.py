"""Evidence in all releases of ``local_dp``: which of two versions each client's graph had.

The attacker knows both versions of every canary and everything else, so it knows both values v₁, v₀ that a client would send at
the broadcast model of a round. With h = (v₁ − v₀)/2 and coins x = ±1, what the server sees minus the midpoints is

    r = Σ_j h_j x_j + N(0, s² I)          each: of one client alone;   sum: of all that trained

Over all rounds this gives G = Σ HᵀH/s² and y = Σ Hᵀr/s², and from them one score for each canary
(``privacy.likelihood_ratios.of_coins``). The ratio of the embedding is added, since its noise is independent. In a sum one
client colludes, as the price assumes: it subtracts its own message, and the rest has the other shares of the noise.

**Several graphs whose update is clipped as one** (``dp_fedavg``). The effect of a canary then depends on the coins of the
client's other graphs. h_j is its mean over two opposite settings of them, drawn without looking at any coin.

A bound from the scores holds however good this estimate is, since a score is a function of the releases and of what is known
without the coins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.methods import PlanInbox, State, local_dp, seen
from fedgraph.privacy import GaussianNoise, L2Ball, likelihood_ratios
from fedgraph.types import Partition, Subgraph, subgraph_with_rows_of

_CLEAR = 1e-3  # share of the clip that stands for the noise of updates that were clipped and sent without


@dataclass(frozen=True, eq=False)
class _Both:
    """A client's work in both versions."""

    zero: local_dp.Work
    one: local_dp.Work
    units: np.ndarray  # int64 [graphs], the canary that decides each of its graphs; −1: none
    # if several graphs are clipped as one: (versions of all graphs, bool [graphs]; the work; for each graph the work with that
    # graph in its other version)
    settings: tuple[tuple[np.ndarray, local_dp.Work, dict[int, local_dp.Work]], ...] = ()


def reads_rounds(plan: local_dp.Planned) -> bool:
    """Whether rounds are kept: if updates are protected."""
    return plan.params.protects


def graph_evidence(
    plan: local_dp.Planned, state: State, zero: Partition, one: Partition, units: Sequence[np.ndarray]
) -> np.ndarray | None:
    """float64 [canaries], the log-likelihood ratio of each; None if rounds were not kept.

    zero, one: all clients with every canary in version 0, and in version 1. units: for each client int64 [graphs], the number
    of the canary that decides a graph, −1: none. A canary may decide graphs of several clients.
    """
    if not state.seen:
        return None
    parts = zip(zero.subgraphs, one.subgraphs, units, plan.made.sizes, strict=True)
    clients = [
        _Both(local_dp.prepare(plan, a), local_dp.prepare(plan, b), own, _settings(plan, a, b, own, sizes))
        for a, b, own, sizes in parts
    ]
    count = 1 + max((int(own.max(initial=-1)) for own in units), default=-1)
    gram, along, ratios = np.zeros((count, count)), np.zeros(count), np.zeros(count)
    for model, inbox in state.seen:
        for squares, projected in _of_updates(plan, clients, model["parameters"], inbox, count):
            gram += squares
            along += projected
        ratios += _of_embeddings(plan, clients, model["parameters"], inbox, count)
    return likelihood_ratios.of_coins(gram, along) + ratios


def _settings(
    plan: local_dp.Planned, zero: Subgraph, one: Subgraph, units: np.ndarray, sizes: tuple[int, ...]
) -> tuple[tuple[np.ndarray, local_dp.Work, dict[int, local_dp.Work]], ...]:
    """Two opposite settings of a client's graphs, each also with every canary turned over; empty if it has a single graph."""
    if plan.params.training != "dp_fedavg" or units.size < 2 or (units < 0).all():
        return ()
    first = np.random.default_rng(0).random(units.size) < 0.5
    found = []
    for setting in (first, ~first):
        versions = np.where(units >= 0, setting, False)
        turned = {}
        for place in np.flatnonzero(units >= 0).tolist():
            other = versions.copy()
            other[place] = not other[place]
            turned[place] = local_dp.prepare(plan, subgraph_with_rows_of(zero, one, np.repeat(other, sizes)))
        found.append((versions, local_dp.prepare(plan, subgraph_with_rows_of(zero, one, np.repeat(versions, sizes))), turned))
    return tuple(found)


def _of_updates(
    plan: local_dp.Planned, clients: Sequence[_Both], parameters: np.ndarray, inbox: PlanInbox, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(HᵀH/s² [canaries, canaries], Hᵀr/s²) of one round, for each message that the server sees."""
    each, total = inbox.each.get("model"), inbox.sums.get("model")
    if each is None and total is None:
        return
    training = plan.made.attendance.training[inbox.round]
    mechanism = next(r.mechanism for r in plan.schedule.releases if r.path == "model")
    std = mechanism.std if isinstance(mechanism, GaussianNoise) else _CLEAR * plan.params.clip
    middles = np.zeros(parameters.size)
    moved = np.zeros((parameters.size, 0 if each is not None else count), dtype=np.float32)
    known = seen.colluders_of(plan)
    for place, client in enumerate(training):
        if each is None and client in known:
            continue
        middle, own = _versions(plan, clients[client], parameters)
        if each is None:
            middles += middle
            for unit, half in own.items():
                moved[:, unit] += half
        elif own:
            ids, columns = np.array(list(own)), np.column_stack(list(own.values()))
            squares, projected = np.zeros((count, count)), np.zeros(count)
            squares[np.ix_(ids, ids)] = columns.T @ columns / std**2
            projected[ids] = columns.T @ (each[place] - middle) / std**2
            yield squares, projected
    if each is None and total is not None:
        variance = len(set(training) - set(known)) * std**2
        left = total - inbox.colluding.get("model", 0) - middles
        yield moved.T @ moved / variance, moved.T @ left / variance


def _versions(plan: local_dp.Planned, both: _Both, parameters: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """(midpoint of what a client sends over the versions of its canaries [p], for each canary half of its effect [p])."""
    params = plan.params
    if both.settings:
        return _clipped_as_one(plan, both, parameters)
    if params.training == "dp_fedavg":
        bound, unit = L2Ball(params.clip), int(both.units.max(initial=-1))
        one = bound.enforce(local_dp.update_of(params, both.one, parameters))
        if unit < 0:
            return one.astype(np.float64), {}
        zero = bound.enforce(local_dp.update_of(params, both.zero, parameters))
        return (one.astype(np.float64) + zero) / 2, {unit: (one - zero) / 2}
    middle, halves = np.zeros(parameters.size), {}
    for in_one, in_zero, decides in zip(both.one.graphs, both.zero.graphs, both.units, strict=True):
        one, zero = np.zeros_like(parameters), np.zeros_like(parameters)
        for found, graph in ((one, in_one), (zero, in_zero)):
            found[graph.where] = local_dp.clip_gradient(params, graph, parameters)
        middle += (one.astype(np.float64) + zero) / 2
        if decides >= 0:
            halves[int(decides)] = (one - zero) / 2
    return middle, halves


def _clipped_as_one(plan: local_dp.Planned, both: _Both, parameters: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """``_versions`` of a client whose graphs are clipped together: means over its settings."""
    bound = L2Ball(plan.params.clip)
    middle = np.zeros(parameters.size)
    halves = {int(u): np.zeros(parameters.size) for u in both.units if u >= 0}
    share = 1 / len(both.settings)
    for versions, work, turned in both.settings:
        value = bound.enforce(local_dp.update_of(plan.params, work, parameters)).astype(np.float64)
        middle += share * value
        for place, other in turned.items():
            half = (value - bound.enforce(local_dp.update_of(plan.params, other, parameters))) / 2
            halves[int(both.units[place])] += share * (half if versions[place] else -half)
    for versions, _, _ in both.settings:
        for place, unit in enumerate(both.units.tolist()):
            if unit >= 0:
                middle -= share * (1.0 if versions[place] else -1.0) * halves[unit]
    return middle, halves


def _of_embeddings(
    plan: local_dp.Planned, clients: Sequence[_Both], parameters: np.ndarray, inbox: PlanInbox, count: int
) -> np.ndarray:
    found = np.zeros(count)
    for client, sent in zip(plan.made.attendance.present[inbox.round], inbox.each.get("embedding", ()), strict=False):
        both = clients[client]
        if (both.units < 0).all():
            continue
        release, sizes = plan.made.sent[client], plan.made.sizes[client]
        rows = [local_dp.embedding_of(plan, work, parameters) for work in (both.one, both.zero)]
        one, zero = (release.bound.enforce(own) for own in rows)
        blocks = sizes if both.units.size > 1 else (len(sent),)
        told = likelihood_ratios.of_blocks(release.mechanism, sent, one, zero, blocks)
        for unit, ratio in zip(both.units, told, strict=True):
            found[unit] += ratio if unit >= 0 else 0.0
    return found
