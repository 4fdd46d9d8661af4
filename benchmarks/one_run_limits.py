"""How much of a provable ε can one run show to a perfect attacker?

    python -m benchmarks.one_run_limits [--runs 40] [--coins 1000 1315 1663 7000]
    python -m benchmarks.one_run_limits --rows [scenarios/attacks.yaml] [--tasks node-level-federated node-tight]
    python -m benchmarks.one_run_limits --hubs

**Coins.** One Gaussian release with provable ε at δ, and as many coins as are named. The attacker computes the exact likelihood
ratio of every coin, guesses the surest of them, and the bound of a report (``audit.one_run``) is taken: its mean over the runs,
their standard deviation, and the share of ε. No attack on a composition of Gaussian releases with this price shows more on
average, at this number of coins and guesses. The shares of guesses are those that a scenario may write down before a run.

**Rows.** The same for rows of a scenario as they are: every attacked cell with a finite ε is run once, and what each
canary changes in each message that is read is kept (``methods.base.seen.SeenCoins``): clips, noise, steps, clients and
colluders are those of the row. From that

    moved     root mean square over canaries of the distance that one of them moves all that is read, in standard deviations
              of its noise, as a share of the μ that is priced
    unlimited the ε at δ of that distance: what any number of coins, guesses and runs would show of canaries like these
    alone     what a perfect attacker would show if canaries did not hide one another: fresh coins, each read by itself
    together  fresh coins and fresh noise through the same messages, read as the attack reads them
    measured  what the one real run showed

**Hubs.** The largest share of the priced sensitivity that one node moves, over graphs in which it is joined to a part of a ring
whose nodes have T neighbours: of one hop of GAP-NDP, and of one step of SAGE-NDP, at weights zero and at the largest allowed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
import yaml

from fedgraph import data, runtime
from fedgraph.audit import one_run
from fedgraph.cells.cell import CellContext
from fedgraph.learning import example_gradients, neighbour_limits
from fedgraph.methods.base import seen
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.tasks import node_classification
from fedgraph.tasks.node_classification.settings import Params

SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)
PRICES = ((1.0, 3.8e-4), (8.0, 3.8e-4), (1.0, 1e-5), (8.0, 1e-5))
Group = tuple[np.ndarray, float]  # (⟨gⱼ, gₖ⟩ summed over rounds [m, m], standard deviation of the noise)


def shown(mu: float, delta: float, coins: int, share: float, rng: np.random.Generator) -> float:
    """ε at δ that one run shows. mu: of the release."""
    tossed = rng.random(coins) < 0.5
    seen_ = np.where(tossed, mu / 2, -mu / 2) + rng.standard_normal(coins)
    return one_run.best_bound([one_run.count_guesses(seen_, tossed, share, centred=True)], delta, "curve")


def of_coins(runs: int, counts: list[int]) -> None:
    """Prints what a perfect attacker shows of one release."""
    rng = np.random.default_rng(0)
    for epsilon, delta in PRICES:
        mu = _mu(epsilon, delta)
        print(f"ε = {epsilon:g}, δ = {delta:g}, μ = {mu:.3f}")
        for coins in counts:
            once = partial(shown, mu, delta, coins)
            told = {share: np.array([once(share, rng) for _ in range(runs)]) for share in SHARES}
            cells = [f"{share:.0%}: {v.mean():.2f} ± {v.std():.2f} ({v.mean() / epsilon:.0%})" for share, v in told.items()]
            print(f"  {coins:6} coins, guessed", "   ".join(cells), flush=True)


def of_rows(path: Path, tasks: list[str], runs: int) -> None:
    """Prints one line for each attacked cell whose messages are read."""
    scenario = yaml.safe_load(path.read_text(encoding="utf-8"))
    for task in scenario["tasks"]:
        if task["task"] != "node_classification" or task["label"] not in tasks:
            continue
        own = {k: v for k, v in task.items() if k not in ("task", "label", "datasets")}
        own["attack"] = {k: v for k, v in own["attack"].items() if k not in ("named", "shadows")}
        params = Params(**own)
        (share,) = own["attack"]["guesses"]
        for name in task["datasets"]:
            graph = data.load(name, when_unavailable="synthetic")
            where = CellContext(task["label"], name, graph, scenario["seed"], 1, runtime.start("serial"))
            for cell in node_classification.cells(params, where):
                if not cell.epsilon < np.inf:
                    continue
                groups: list[Group] = []
                with mock.patch.object(seen.SeenCoins, "ratios", _recording(groups)):
                    found = node_classification.run(params, cell, where)
                if groups:
                    delta = node_classification.plan(params, cell, where).guarantee.delta
                    told = _of_cell(groups, cell.epsilon, delta, share, runs)
                    print(f"{task['label']:22} {cell.variant:10} {cell.world.words:14} ε = {cell.epsilon:g}  {told}", end="")
                    print(f"  measured {found.epsilon_measured:.2f}", flush=True)


def _recording(groups: list[Group]) -> Any:
    honest = seen.SeenCoins.ratios

    def ratios(self: seen.SeenCoins, std: float) -> np.ndarray:
        groups.append((self.gram.copy(), std))
        return honest(self, std)

    return ratios


def _of_cell(groups: list[Group], epsilon: float, delta: float, share: float, runs: int) -> str:
    rng = np.random.default_rng(0)
    mus = np.concatenate([np.sqrt(np.maximum(np.diag(gram), 0)) / std for gram, std in groups])
    alone, together = [], list(_together(groups, delta, share, runs, rng))
    for _ in range(runs):
        coins = rng.random(mus.size) < 0.5
        scores = mus * (np.where(coins, mus, -mus) / 2 + rng.standard_normal(mus.size))
        alone.append(one_run.best_bound([one_run.count_guesses(scores, coins, share, centred=True)], delta, "curve"))
    mean = float(np.sqrt(np.square(mus).mean()))
    unlimited, moved = gaussian.epsilon(mean, delta), mean / _mu(epsilon, delta)
    words = [f"{name} {np.mean(v):.2f} ± {np.std(v):.2f}" for name, v in (("alone", alone), ("together", together))]
    return f"{mus.size} coins, {share:.0%} guessed, moved {moved:.2f}  unlimited {unlimited:.2f}  " + "  ".join(words)


def _together(groups: list[Group], delta: float, share: float, runs: int, rng: np.random.Generator) -> Iterator[float]:
    """ε of fresh coins through the same messages: y = Gx + N(0, G), read by the linear estimate."""
    made = []
    for gram, std in groups:
        g = gram / (4 * std**2)
        inverse = np.linalg.inv(g + np.eye(len(g)))
        made.append((g, np.linalg.cholesky(g + 1e-9 * (1 + np.trace(g)) * np.eye(len(g))), inverse))
    for _ in range(runs):
        scores, coins = [], []
        for g, root, inverse in made:
            x = np.where(rng.random(len(g)) < 0.5, 1.0, -1.0)
            scores.append(2 * inverse @ (g @ x + root @ rng.standard_normal(len(g))) / np.diag(inverse))
            coins.append(x > 0)
        count = one_run.count_guesses(np.concatenate(scores), np.concatenate(coins), share, centred=True)
        yield one_run.best_bound([count], delta, "curve")


def _mu(epsilon: float, delta: float) -> float:
    return 1.0 / calibrate.gaussian_multiplier(1, epsilon, delta)


def of_hubs(clip: float = 0.5, bound: float = 2.0) -> None:
    """Prints how much of the priced sensitivity one node moves."""
    for n in (266, 2662):
        cap = neighbour_sums.priced_log_cap(n)
        scale = neighbour_sums.gradient_scale(cap, clip, bound)
        step = neighbour_sums.gradient_sensitivity(cap, clip, bound, scale)
        for neighbours in (0, 1, n // 8, n // 4, n // 2, n - 1):
            pairs = [_ring_with_hub(n, around, neighbours) for around in (2, 8, 32, 128)]
            hop = max(_hop_moved(*pair, cap) for pair in pairs) / cap.sensitivity_l2()
            gradient = max(_step_moved(*pair, cap, (clip, bound, scale)) for pair in pairs) / step
            print(f"{n:5} nodes, {neighbours:4} neighbours: of a hop {hop:.2f}, of a step {gradient:.2f}", flush=True)


def _ring_with_hub(n: int, around: int, neighbours: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Graphs of n nodes, the last of which is joined to the first so many, or to nobody; the others form a ring."""
    base = np.arange(n - 1)
    ring = np.concatenate([np.column_stack([base, (base + k) % (n - 1)]) for k in range(1, around // 2 + 1)])
    hub = np.column_stack([np.arange(neighbours), np.full(neighbours, n - 1)])

    def graph(edges: np.ndarray) -> sp.csr_array:
        both = np.concatenate([edges, edges[:, ::-1]])
        return sp.csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(n, n))

    return graph(np.concatenate([ring, hub])), graph(ring)


def _hop_moved(one: sp.csr_array, zero: sp.csr_array, cap: neighbour_sums.PricedDegreeCap) -> float:
    """Of the rows of all others; the node's own row is 1 or −1 times theirs."""
    n, moved = one.shape[0], 0.0
    for sign in (1.0, -1.0):
        with_it = np.ones((n, 1))
        with_it[-1] = sign
        without = np.where(np.arange(n)[:, None] < n - 1, with_it, 0.0)
        change = (
            neighbour_limits.log_weights(one, cap.factors) @ with_it - neighbour_limits.log_weights(zero, cap.factors) @ without
        )
        moved = max(moved, float(np.linalg.norm(change[:-1])))
    return moved


def _step_moved(
    one: sp.csr_array,
    zero: sp.csr_array,
    cap: neighbour_sums.PricedDegreeCap,
    how: tuple[float, float, float],
    classes: int = 6,
) -> float:
    """Of a sum of clipped gradients, over two labels of the others, three of the node, and weights on one direction."""
    clip, bound, scale = how
    n, moved = one.shape[0], 0.0
    for sign in (1.0, -1.0):
        rows = []
        for graph, there in ((one, sign), (zero, 0.0)):
            x = np.zeros((n, 2), dtype=np.float32)
            x[:, 0] = 1.0
            x[-1, 0] = there
            rows.append(neighbour_limits.rows(sp.csr_array(x), neighbour_limits.log_weights(graph, cap.factors), scale))
        for size in (0.0, bound / 2, bound):
            theta = np.zeros(5 * classes)
            theta[[2, 6]] = np.array([size, -size]) / np.sqrt(2)  # of two classes, what reads the neighbours' first column
            for of_others in (0, 1):
                for own in (0, 1, 2):
                    labels = np.full(n, of_others)
                    labels[-1] = own
                    without = np.where(np.arange(n) < n - 1, labels, -1)
                    sums = [
                        example_gradients.outer(theta, r, y, classes, clip).total()
                        for r, y in zip(rows, (labels, without), strict=True)
                    ]
                    moved = max(moved, float(np.linalg.norm(sums[0] - sums[1])))
    return moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--coins", type=int, nargs="+", default=[1000, 1315, 1663, 3300, 7000, 20_000])
    parser.add_argument("--rows", type=Path, nargs="?", const=Path("scenarios/attacks.yaml"))
    parser.add_argument("--tasks", nargs="+", default=["node-level-federated", "node-level-all-read", "node-level-colluders"])
    parser.add_argument("--hubs", action="store_true")
    args = parser.parse_args()
    if args.hubs:
        of_hubs()
    elif args.rows:
        of_rows(args.rows, args.tasks, args.runs)
    else:
        of_coins(args.runs, args.coins)


if __name__ == "__main__":
    main()
