"""One DP-SGD step on an 8,415 → 32 → 5 MLP with 33 non-zero features per row, in one run on one thread.

    python benchmarks/dp_sgd.py [--batches 60 512 2048]

Columns, CPU ms per step (median): a plain torch step (dense features, Adam, no privacy); the same with
sparse features; Opacus with ghost clipping, its fast mode and the fair peer, and with per-sample gradients in memory, its
default (both on dense features); ours, noise and Adam included, with one-hot rows and with rows that aggregate two nodes; and
ours without clipping and noise.
Opacus: ``pip install --no-deps opacus opt_einsum``; without it its columns are dashes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import threadpoolctl
import torch

from fedgraph.learning.clipping.aggregated_rows import clip_aggregated_rows, prepare_aggregated_rows
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import to_torch_matrix
from fedgraph.learning.optimisers.descents import StatefulDescent
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum

FEATURES, HIDDEN, CLASSES, NONZEROS, CLIP, NOISE = 8415, 32, 5, 33, 1.0, 1.0


def median_ms(step: Callable[[], Any], repeats: int) -> float:
    """CPU milliseconds of one call, after one to warm up."""
    step()
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        step()
        seconds.append(time.process_time() - began)
    return 1e3 * float(np.median(seconds))


def rows_of(num_rows: int, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    """Random binary features with exactly 33 non-zeros per row, and labels."""
    columns = np.concatenate([np.sort(rng.choice(FEATURES, NONZEROS, replace=False)) for _ in range(num_rows)])
    start = np.arange(0, columns.size + 1, NONZEROS)
    values = np.ones(columns.size, np.float32)
    return sp.csr_array((values, columns, start), shape=(num_rows, FEATURES)), rng.integers(CLASSES, size=num_rows)


def network() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))


def torch_step(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    model = network()
    adam = torch.optim.Adam(model.parameters(), lr=0.005)

    def step() -> None:
        adam.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(model(x), y))
        adam.step()

    return step


def sparse_torch_step(features: sp.csr_array, y: torch.Tensor) -> Callable[[], None]:
    x = to_torch_matrix(features)
    parts = [p.detach().clone().requires_grad_() for p in network().parameters()]
    parts[0] = parts[0].detach().T.contiguous().requires_grad_()
    adam = torch.optim.Adam(parts, lr=0.005)

    def step() -> None:
        adam.zero_grad()
        hidden = torch.relu(torch.sparse.mm(x, parts[0]) + parts[1])
        torch.autograd.backward(torch.nn.functional.cross_entropy(hidden @ parts[2].T + parts[3], y))
        adam.step()

    return step


def opacus_step(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None] | None:
    """None where opacus is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from opacus.grad_sample import GradSampleModule
            from opacus.optimizers import DPOptimizer
    except ImportError:
        return None
    model = GradSampleModule(network())
    inner = torch.optim.Adam(model.parameters(), lr=0.005)
    private = DPOptimizer(inner, noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=len(y))

    def step() -> None:
        private.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(model(x), y))
        private.step()

    return step


def ghost_step(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None] | None:
    """What ``grad_sample_mode="ghost"`` builds, without its data loader; None where opacus is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from opacus.grad_sample import GradSampleModuleFastGradientClipping
            from opacus.optimizers import DPOptimizerFastGradientClipping
            from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    except ImportError:
        return None
    model = GradSampleModuleFastGradientClipping(network(), max_grad_norm=CLIP, use_ghost_clipping=True)
    private = DPOptimizerFastGradientClipping(
        torch.optim.Adam(model.parameters(), lr=0.005),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        expected_batch_size=len(y),
    )
    loss = DPLossFastGradientClipping(model, private, torch.nn.CrossEntropyLoss(), "mean")

    def step() -> None:
        private.zero_grad()
        loss(model(x), y).backward()
        private.step()

    return step


def our_step(features: sp.csr_array, labels: np.ndarray, neighbours: int, private: bool) -> Callable[[], None]:
    rng = np.random.default_rng(1)
    n = labels.size
    pi = sp.eye_array(n, format="csr")
    if neighbours > 1:
        other = (np.arange(n) + rng.integers(1, n, size=n)) % n
        pi = sp.csr_array((np.full(2 * n, 0.5), (np.repeat(np.arange(n), 2), np.stack([np.arange(n), other], 1).ravel())))
    rows = prepare_aggregated_rows(features, pi, labels)
    layout = Layout((FEATURES, HIDDEN, CLASSES))
    follower = StatefulDescent(layout.start(rng), 0.005)
    noise, bound, batch = GaussianNoise(NOISE * CLIP), ClippedSum(CLIP, n), np.arange(n)

    def step() -> None:
        total = clip_aggregated_rows(layout, follower.vector, rows, batch, CLIP if private else None)
        follower.step(noise.apply(bound.enforce(total), rng) if private else total, 1 / n)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[60, 512, 2048])
    parser.add_argument("--repeats", type=int, default=30, help="timed steps; ten times fewer for Opacus")
    args = parser.parse_args()
    torch.set_num_threads(1)
    threadpoolctl.threadpool_limits(1)
    print(
        "batch | torch dense | torch sparse | Opacus ghost | per-sample | ours one-hot | ours K = 2 | no noise or clip | ratios"
    )
    for size in args.batches:
        features, labels = rows_of(size, np.random.default_rng(0))
        x, y = torch.tensor(features.toarray()), torch.tensor(labels)
        dense, sparse = median_ms(torch_step(x, y), args.repeats), median_ms(sparse_torch_step(features, y), args.repeats)
        peers = [(ghost_step(x, y), args.repeats), (opacus_step(x, y), max(3, args.repeats // 10))]
        opacus = [None if step is None else median_ms(step, repeats) for step, repeats in peers]
        ours = {k: median_ms(our_step(features, labels, k, True), args.repeats) for k in (1, 2)}
        bare = median_ms(our_step(features, labels, 1, False), args.repeats)
        ghost, stored = ("—" if ms is None else f"{ms:.1f}" for ms in opacus)
        ratio = "Opacus not installed"
        if opacus[0] is not None and opacus[1] is not None:
            ratio = f"ghost/ours {opacus[0] / ours[1]:.0f}, per-sample/ours {opacus[1] / ours[1]:.0f}"
        print(
            f"{size:5d} | {dense:11.2f} | {sparse:12.2f} | {ghost:>12} | {stored:>10} | {ours[1]:12.2f} | {ours[2]:10.2f} | "
            f"{bare:16.2f} | {ratio}, ours/torch dense {ours[1] / dense:.2f}"
        )


if __name__ == "__main__":
    main()
