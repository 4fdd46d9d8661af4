"""Any torch network at many clients: both ways follow a plain loop over torch.optim.SGD."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest
import torch
from torch import nn
from torch.nn import functional

from fedgraph.errors import RuntimeFailure
from fedgraph.learning import any_network
from fedgraph.learning.any_network import Descent, Examples, total_after
from fedgraph.learning.layers.sparse import seed_torch


def vector(network: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(network.parameters()).detach()


def plainly(
    network: nn.Module, clients: Sequence[Examples], descent: Descent, seeds: Sequence[int] = ()
) -> tuple[torch.Tensor, float]:
    """(the weighted sum by torch.optim.SGD, the largest move of a parameter)."""
    total, moved = torch.zeros_like(vector(network)), 0.0
    with torch.random.fork_rng(devices=[]):
        for number, (x, y) in enumerate(clients):
            own = copy.deepcopy(network).train()
            optimiser = torch.optim.SGD(own.parameters(), lr=descent.rate)
            if seeds:
                seed_torch(seeds[number])
            for _ in range(descent.epochs):
                for low in range(0, len(x), descent.batch):
                    optimiser.zero_grad()
                    functional.cross_entropy(own(x[low : low + descent.batch]), y[low : low + descent.batch]).backward()
                    optimiser.step()
            total += len(x) * vector(own)
            moved = max(moved, float((vector(own) - vector(network)).abs().max()))
    return total, moved


def made(shape: tuple[int, ...], sizes: Sequence[int]) -> list[Examples]:
    rng = torch.Generator().manual_seed(1)
    return [(torch.randn(n, *shape, generator=rng), torch.randint(4, (n,), generator=rng)) for n in sizes]


class Twice(nn.Module):
    """One linear layer has no bias, one is used twice, one meets three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.last = nn.Linear(6, 6, bias=False), nn.Linear(6, 6), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x).unsqueeze(1).expand(-1, 3, -1))
        return self.last(torch.tanh(self.again(torch.tanh(self.again(hidden))))).mean(dim=1)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 4)
        self.other.weight = self.one.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.other(torch.relu(self.one(x)))))


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def without_biases() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8, bias=False), nn.Linear(8, 4, bias=False))


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25),
        nn.Linear(54, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("network", "shape", "together"),
    [
        (small, (6,), True),
        (small, (6,), False),
        (without_biases, (6,), False),
        (Twice, (6,), False),
        (Tied, (6,), False),
        (images, (3, 10, 10), False),
    ],
)
def test_it_is_the_plain_loop(network: type[nn.Module], shape: tuple[int, ...], together: bool) -> None:
    seed_torch(0)
    net, clients, descent = network(), made(shape, (7, 10, 10, 3)), Descent(0.2, 4, epochs=2)
    seeds = () if together else (3, 4, 5, 6)
    before = vector(net).clone()
    found = total_after(net, before, clients, descent, seeds=seeds, together=together)
    expected, moved = plainly(net, clients, descent, seeds)
    assert torch.equal(vector(net), before), "the given network stays as it was"
    assert moved > 0.02
    assert (found - expected).abs().max() < 30 * 1e-6  # 30 examples, float32
    assert (
        total_after(net, before, clients, Descent(0.19, 4, 2), seeds=seeds, together=together) - expected
    ).abs().max() > 1e-3


def test_pooling_first_changes_no_bit() -> None:
    seed_torch(0)
    net = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Conv2d(5, 6, 3),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 1, 1),
    )
    swapped = copy.deepcopy(net)
    any_network._pool_first(swapped)
    assert [type(m).__name__ for m in any_network._leaves(swapped)] == [
        "Conv2d",
        "MaxPool2d",
        "ReLU",
        "Conv2d",
        "MaxPool2d",
        "ReLU",
    ]
    x = torch.randint(-2, 3, (4, 3, 12, 12)).float()  # with ties
    for one in (net, swapped):
        one(x).square().sum().backward()
    assert torch.equal(net(x), swapped(x))
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(net.parameters(), swapped.parameters(), strict=True))
    seen = nn.ModuleDict({"features": copy.deepcopy(net)})  # its owner may read what lies between
    any_network._pool_first(seen)
    assert [type(m) for m in any_network._leaves(seen)] == [type(m) for m in any_network._leaves(net)]


def test_the_way_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    stacked, alone = any_network._stacked, any_network._OneByOne.total
    monkeypatch.setattr(any_network, "_stacked", lambda *a: (taken.append("together"), stacked(*a))[1])
    monkeypatch.setattr(any_network._OneByOne, "total", lambda *a: (taken.append("alone"), alone(*a))[1])
    for network, shape in ((small(), (6,)), (images(), (3, 10, 10)), (nn.Linear(6, 20_000), (6,))):
        total_after(network, vector(network), made(shape, (3,)), Descent(0.1, 3))
    assert taken == ["together", "alone", "alone"]


def test_what_cannot_be_is_one_line() -> None:
    net, clients, descent = small(), made((6,), (3,)), Descent(0.1, 3)
    with pytest.raises(RuntimeFailure, match="GroupNorm"):
        total_after(nn.Sequential(small(), nn.BatchNorm1d(4)), vector(small()), clients, descent)
    with pytest.raises(RuntimeFailure, match="92 parameters; the given start has shape"):
        total_after(net, torch.zeros(3), clients, descent)
    with pytest.raises(RuntimeFailure, match="1 clients need a seed each, found 2"):
        total_after(net, vector(net), clients, descent, seeds=(1, 2))
    random = nn.Sequential(nn.Dropout(0.5), small())
    with pytest.raises(RuntimeFailure, match="draws at random"):
        total_after(random, vector(random), clients, descent, together=True)
