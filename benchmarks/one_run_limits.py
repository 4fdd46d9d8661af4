"""How much of a provable ε can one run show to a perfect attacker, with the coins that a graph has room for?

    python -m benchmarks.one_run_limits [--runs 40] [--coins 1000 1315 1663 7000]

One Gaussian release with provable ε at δ, and as many coins as are named. The attacker computes the exact likelihood ratio of
every coin, guesses the surest of them, and the bound of a report (``audit.curve``) is taken: its mean over the runs, their
standard deviation, and the share of ε. No attack on a composition of Gaussian releases with this price shows more on average,
at this number of coins and guesses. The shares of guesses are those that a scenario may write down before a run.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from fedgraph.audit import curve, one_run
from fedgraph.privacy.accounting import calibrate

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
PRICES = ((1.0, 3.8e-4), (8.0, 3.8e-4), (1.0, 1e-5), (8.0, 1e-5))


def shown(mu: float, delta: float, coins: int, share: float, rng: np.random.Generator) -> float:
    """ε at δ that one run shows. mu: of the release."""
    tossed = rng.random(coins) < 0.5
    seen = np.where(tossed, mu / 2, -mu / 2) + rng.standard_normal(coins)
    return curve.of_gaussian(one_run.count(seen, tossed, share, centred=True), delta)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--coins", type=int, nargs="+", default=[1000, 1315, 1663, 3300, 7000, 20_000])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    for epsilon, delta in PRICES:
        mu = 1.0 / calibrate.gaussian_multiplier(1, epsilon, delta)
        print(f"ε = {epsilon:g}, δ = {delta:g}, μ = {mu:.3f}")
        for coins in args.coins:
            once = partial(shown, mu, delta, coins)
            told = {share: np.array([once(share, rng) for _ in range(args.runs)]) for share in SHARES}
            cells = [f"{share:.0%}: {v.mean():.2f} ± {v.std():.2f} ({v.mean() / epsilon:.0%})" for share, v in told.items()]
            print(f"  {coins:6} coins, guessed", "   ".join(cells), flush=True)


if __name__ == "__main__":
    main()
