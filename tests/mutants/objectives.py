"""Objective perturbation with Gaussian noise, as GCON releases its classifier: one row of the objective turns around.

Worst case: the loss is linear, ℓ(s) = s, so that the change of the gradient is as long as the proof allows (W = c₁Ψ) and lies
in one direction, and no change of variables hides it. One labelled row z becomes −z, which is all that Ψ = 2 allows. The whole
mechanism runs (noise inside, certificate, output noise); its minimiser is −(Σz + b)/(n₁Λ), so the score, that number, is
Gaussian. The price holds for every loss, from an order of Rényi, and is about a fifth above what this one can show.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedgraph.audit import lower_bound
from fedgraph.privacy.mechanisms import objective_perturbation as objective
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim, Worlds, bench_sampler, twins

_EPSILON, _DELTA = 2.0, 1e-3
_LABELLED, _REGULARISER, _GRADIENT = 4, 1.0, 1e-9
_RUNS = 5_000


@dataclass(frozen=True)
class _LinearProblem:
    """F(Θ) = ⟨Σz, Θ⟩/n₁ + Λ‖Θ‖²/2 + ⟨B, Θ⟩/n₁. regulariser: Λ."""

    regulariser: float

    def minimise(self, rows, noise):
        return -(rows.sum(axis=0)[:, None] + noise) / (len(rows) * self.regulariser)

    def gradient(self, theta, rows, noise):
        return (rows.sum(axis=0)[:, None] + noise) / len(rows) + self.regulariser * theta


@bench_sampler
def _minimisers(runs, rng, made: objective.Calibrated, factor, own):
    """Runs of the mechanism with ``factor`` of the noise, on rows of which the first is ``own``."""
    noise, problem = made.noise_std * factor, _LinearProblem(made.regulariser)
    mechanism = objective.ObjectivePerturbation(1, np.inf, _GRADIENT, made.output_std, problem, noise_std=noise)
    rows = np.array([[own], [1.0], [-1.0], [0.5]])
    return [float(mechanism.apply(rows, rng)[0, 0]) for _ in range(runs)]


def cases() -> Iterator[BenchCase]:
    """The price of the whole release, and less noise than it needs."""

    def calibrated_for(psi: float) -> objective.Calibrated:
        bounds = objective.LossBounds(1.0, 0.0, 0.0)
        given = objective.Situation(_EPSILON, _DELTA, 0.9, bounds, psi, 1, 1, _LABELLED, per_end=False, gaussian=True)
        return objective.calibrated(given, _REGULARISER, _GRADIENT)

    def worlds(made: objective.Calibrated, factor: float = 1.0) -> Worlds:
        return _minimisers(made, factor, -1.0), _minimisers(made, factor, 1.0)

    made, halved = calibrated_for(2.0), calibrated_for(1.0)
    broken = {"noise × ⅔": worlds(made, 2 / 3), "Ψ of one end for two": worlds(halved)}
    claim, relation = BenchClaim.of(made.event, _DELTA), Relation.EDGE_UNDIRECTED.value
    yield from twins("gaussian-objective", relation, claim, worlds(made), broken, lower_bound.gaussian(), runs=_RUNS)
