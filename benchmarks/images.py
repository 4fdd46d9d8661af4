"""The workload of pfl-research's CIFAR-10 benchmark on generated images: processor seconds of a round beside a plain loop.

    python -m benchmarks.images [--rounds 4] [--cohort 50] [--json]

1,000 users with 50 images of 32 × 32 × 3 each and 10 classes, 50 users a round, one epoch of plain descent (rate 0.1, batch
10), a network of two convolutions (32 and 64 kernels), max-pooling, dropout, 128 hidden units, dropout: 1,626,442 parameters.
*fedgraph*: ``learning.any_network``. *plain_loop*: a network, ``torch.optim.SGD``, one user after another, the parameters of
each added to a vector. *stacked*: ``torch.func.vmap`` over the same network without dropout, on ten users, scaled up.

One process, one thread. Both train in turn, round by round, so that other work on the cores meets both; medians. Without
dropout the two must agree (``difference``), else the run fails. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional

from fedgraph.learning.any_network import Descent, Examples, total_after
from fedgraph.runtime.threads import use_one_thread

USERS, IMAGES, CLASSES = 1000, 50, 10
DESCENT = Descent(rate=0.1, batch=10)
ROUNDING = 2e-5  # largest difference of a parameter after one round


def network(dropout: bool = True) -> nn.Sequential:
    quarter, half = (0.25, 0.5) if dropout else (0.0, 0.0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(quarter), nn.Flatten(),
        nn.Linear(64 * 14 * 14, 128), nn.ReLU(), nn.Dropout(half), nn.Linear(128, CLASSES),
    )  # fmt: skip


def cohort(number: int, size: int) -> list[Examples]:
    """The users of a round; each user's images follow from the user's number."""
    rng = torch.Generator().manual_seed(number)
    found = []
    for user in torch.randperm(USERS, generator=rng)[:size].tolist():
        own = torch.Generator().manual_seed(10_000 + user)
        images = torch.randn(IMAGES, 3, 32, 32, generator=own)
        found.append((images, torch.randint(CLASSES, (IMAGES,), generator=own)))
    return found


def vector(net: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(net.parameters()).detach()


def plain_loop(net: nn.Module, start: torch.Tensor, users: Sequence[Examples]) -> torch.Tensor:
    """As torch's manual shows it."""
    total = torch.zeros_like(start)
    for x, y in users:
        nn.utils.vector_to_parameters(start.clone(), net.parameters())
        optimiser = torch.optim.SGD(net.parameters(), lr=DESCENT.rate)
        for low in range(0, len(x), DESCENT.batch):
            some = slice(low, low + DESCENT.batch)
            optimiser.zero_grad()
            functional.cross_entropy(net(x[some]), y[some]).backward()
            optimiser.step()
        total += len(x) * vector(net)
    return total


def spent(call: Callable[[], torch.Tensor]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def compare(num_rounds: int, size: int) -> dict[str, object]:
    use_one_thread()
    torch.default_generator.manual_seed(0)
    net, loop = network(), network()
    start = vector(net)
    cost: dict[str, list[float]] = {"fedgraph": [], "plain_loop": []}
    for number in range(num_rounds + 1):
        users = cohort(number, size)
        ours = spent(lambda users=users, seeds=range(size): total_after(net, start, users, DESCENT, seeds=seeds))  # type: ignore[misc]
        plain = spent(lambda users=users: plain_loop(loop, start, users))  # type: ignore[misc]
        if number:
            cost["fedgraph"].append(ours)
            cost["plain_loop"].append(plain)
    clear, few = network(dropout=False), cohort(0, 10)
    expected = plain_loop(clear, start, few) / (IMAGES * len(few))
    difference = float((total_after(clear, start, few, DESCENT) / (IMAGES * len(few)) - expected).abs().max())
    moved = float((expected - start).abs().max())
    if not difference <= ROUNDING < moved / 100:
        raise SystemExit(f"parameters differ from the plain loop's by {difference:.3g}, of a largest move of {moved:.3g}")
    stacked = spent(lambda: total_after(clear, start, few, DESCENT, together=True)) * size / len(few)
    found = {name: statistics.median(values) for name, values in cost.items()} | {"stacked": stacked}
    pairs = zip(cost["plain_loop"], cost["fedgraph"], strict=True)
    return {
        "parameters": start.numel(),
        "cohort": size,
        "rounds": num_rounds,
        "cpu_s_per_round": {name: round(value, 3) for name, value in found.items()},
        "times_the_plain_loop": round(statistics.median(plain / ours for plain, ours in pairs), 2),
        "difference": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="steady rounds, after one to warm up")
    parser.add_argument("--cohort", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    report = compare(args.rounds, args.cohort)
    if not args.json:
        for name, value in report["cpu_s_per_round"].items():  # type: ignore[attr-defined]
            print(f"{name:12} {value:8.3f} CPU s per round")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
