"""Our calibration and composition beside dp_accounting and Opacus' PRV accountant, in one run.

    python -m benchmarks.accounting

For each event: ε by each, the difference (must be within 1 %), and how many times longer the other takes.
Then one scenario's worth of cells (150 different events), which must be priced in under two seconds.
Opacus is used if it is importable (``pip install --no-deps opacus opt_einsum``), else the line says so.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import dp_accounting as dp
import numpy as np
from dp_accounting.pld import PLDAccountant

from fedgraph.privacy.accounting import accountant, calibrate, rdp
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Event, Gaussian, Laplace, PoissonGaussian, Repeated

REPLACE, ADD = dp.NeighboringRelation.REPLACE_ONE, dp.NeighboringRelation.ADD_OR_REMOVE_ONE


def timed(function: Callable[[], float]) -> tuple[float, float]:
    """(value, best of three wall times); our cache of prices is emptied each time."""
    best, value = math.inf, math.nan
    for _ in range(3):
        accountant.prices.clear()
        begin = time.perf_counter()
        value = function()
        best = min(best, time.perf_counter() - begin)
    return value, best


def sampled(sigma: float, rate: float, steps: int) -> dp.DpEvent:
    return dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)), steps)


def epsilon(event: Event) -> float:
    return price(event, 1e-5).epsilon


def library(event: dp.DpEvent, delta: float, relation: dp.NeighboringRelation = ADD) -> float:
    return float(PLDAccountant(relation).compose(event).get_epsilon(delta))


def prv(sigma: float, rate: float, steps: int, delta: float) -> float:
    from opacus.accountants import PRVAccountant

    made = PRVAccountant()
    made.history = [(sigma, rate, steps)]
    return float(made.get_epsilon(delta=delta))


def compare(name: str, ours: Callable[[], float], theirs: Callable[[], float], whose: str) -> bool:
    mine, my_time = timed(ours)
    other, other_time = timed(theirs)
    gap = mine / other - 1
    figures = f"{mine:>10.5g} {other:>10.5g} {gap:>+8.3%} {my_time * 1e3:>9.2f} ms {other_time / my_time:>8.1f}×"
    print(f"  {name:<48} {figures}  {whose}")
    return abs(gap) <= 0.01


def prices() -> list[bool]:
    """One mixed ledger, and single events, against dp_accounting's loss-distribution accountant."""
    mixed = Composed(
        (
            Repeated(Gaussian(20.0), 100),
            Repeated(Laplace(30.0), 20),
            Repeated(PoissonGaussian(1.5, 0.05, touched_rows=1, replaced=False), 400),
        )
    )
    mixed_library = dp.ComposedDpEvent(
        [
            dp.SelfComposedDpEvent(dp.GaussianDpEvent(20.0), 100),
            dp.SelfComposedDpEvent(dp.LaplaceDpEvent(30.0), 20),
            sampled(1.5, 0.05, 400),
        ]
    )
    replaced = Repeated(PoissonGaussian(1.5, 0.05, 1, True), 800)
    cases: list[tuple[str, Event, dp.DpEvent, dp.NeighboringRelation]] = [
        ("100 Gaussians", Repeated(Gaussian(10.0), 100), dp.SelfComposedDpEvent(dp.GaussianDpEvent(10.0), 100), ADD),
        (
            "Poisson σ=1.5 q=.05 T=800",
            Repeated(PoissonGaussian(1.5, 0.05, touched_rows=1, replaced=False), 800),
            sampled(1.5, 0.05, 800),
            ADD,
        ),
        (
            "Poisson σ=0.8 q=.001 T=10000",
            Repeated(PoissonGaussian(0.8, 0.001, touched_rows=1, replaced=False), 10_000),
            sampled(0.8, 0.001, 10_000),
            ADD,
        ),
        ("Poisson, replace, σ=1.5 q=.05 T=800", replaced, sampled(1.5, 0.05, 800), REPLACE),
        ("Gaussian + Laplace + Poisson", mixed, mixed_library, ADD),
    ]
    return [
        compare(f"price: {name}", partial(epsilon, mine), partial(library, other, 1e-5, relation), "dp_accounting PLD")
        for name, mine, other, relation in cases
    ]


def calibrations() -> list[bool]:
    """Against dp_accounting's ``calibrate_dp_mechanism`` on the same events."""

    def gaussian() -> float:
        calibrate.gaussian_multiplier.cache_clear()
        return calibrate.gaussian_multiplier(100, 4.0, 1e-5)

    def gaussian_library() -> float:
        return dp.calibrate_dp_mechanism(PLDAccountant, lambda s: dp.SelfComposedDpEvent(dp.GaussianDpEvent(s), 100), 4.0, 1e-5)

    def poisson() -> float:
        return calibrate.noise_multiplier_of(
            lambda s: Repeated(PoissonGaussian(s, 0.05, touched_rows=1, replaced=False), 800), 4.0, 1e-5
        )

    def poisson_library() -> float:
        bracket = dp.ExplicitBracketInterval(0.5, 8.0)
        return dp.calibrate_dp_mechanism(PLDAccountant, lambda s: sampled(s, 0.05, 800), 4.0, 1e-5, bracket, tol=1e-4)

    whose = "calibrate_dp_mechanism"
    return [
        compare("calibrate: Gaussian, 100 releases, ε = 4", gaussian, gaussian_library, whose),
        compare("calibrate: Poisson q=.05 T=800, ε = 4", poisson, poisson_library, whose),
    ]


def moments() -> list[bool]:
    """Rényi DP of one Poisson-sampled Gaussian at the whole orders 2 … 256, beside dp_accounting; order 32 is shown."""
    orders = np.arange(2.0, 257.0)

    def ours() -> float:
        rdp._poisson_moments.cache_clear()
        return float(rdp.of_poisson_row(1.5, 0.05, orders)[30])

    def theirs() -> float:
        event = dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.5))
        return float(dp.rdp.RdpAccountant(orders).compose(event).rdp[30])

    return [compare("moments: Poisson σ=1.5 q=.05, orders 2 … 256", ours, theirs, "dp_accounting RDP")]


def opacus() -> list[bool]:
    """Against Opacus' PRV accountant, which answers with an upper bound of its own."""
    if find_spec("opacus") is None:
        print("  Opacus is not installed: its PRV accountant was not compared")
        return []
    return [
        compare(
            f"price: Poisson σ={sigma} q={rate} T={steps}",
            partial(epsilon, Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps)),
            partial(prv, sigma, rate, steps, 1e-5),
            "Opacus PRV",
        )
        for sigma, rate, steps in ((1.5, 0.05, 800), (1.0, 0.01, 2000))
    ]


def scenario() -> bool:
    """150 cells, no two alike, priced from cold."""
    accountant.prices.clear()
    begin = time.perf_counter()
    for cell in range(150):
        price(Repeated(PoissonGaussian(1.0 + cell / 50, 0.05, 1 + cell % 3, bool(cell % 2)), 200 + cell), 1e-5)
    took = time.perf_counter() - begin
    print(f"  150 different cells priced in {took:.2f} s (limit 2 s)")
    return took < 2


def main() -> int:
    argparse.ArgumentParser(description="Prices and calibrations beside dp-accounting and Opacus.").parse_args()
    print(f"  {'':<48} {'ours':>10} {'other':>10} {'gap':>8} {'our time':>12} {'ratio':>9}")
    good = all([*prices(), *calibrations(), *moments(), *opacus(), scenario()])
    print("all within 1 %, scenario within 2 s" if good else "FAILED: see above")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
