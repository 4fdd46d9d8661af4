"""What the scripts of other simulators share: clients from a file, the network, the clock. Needs numpy and torch only."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks import federation_meter as meter

STEPS, RATE, HIDDEN = 3, 0.1, 16


class Gcn(nn.Module):
    """Z = Â relu(Â X W₀ᵀ + b₀) W₁ᵀ + b₁."""

    def __init__(self, start: np.ndarray, d: int, c: int) -> None:
        super().__init__()
        shapes, at, parts = [(HIDDEN,), (HIDDEN, d), (c,), (c, HIDDEN)], 0, []
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(nn.Parameter(torch.tensor(start[at : at + size].reshape(shape))))
            at += size
        self.b0, self.w0, self.b1, self.w1 = parts

    def forward(self, x: torch.Tensor, hat: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(hat @ functional.linear(x, self.w0) + self.b0)
        return hat @ functional.linear(hidden, self.w1) + self.b1

    def loss(self, x: torch.Tensor, hat: torch.Tensor, y: torch.Tensor, eval: bool = False) -> torch.Tensor:
        self.eval() if eval else self.train()
        return functional.cross_entropy(self(x, hat), y)

    def metrics(self, *_: object, **__: object) -> dict[str, object]:
        return {}

    def vector(self) -> np.ndarray:
        return torch.cat([p.detach().reshape(-1) for p in (self.b0, self.w0, self.b1, self.w1)]).numpy()


class Run:
    """The clients of a folder that ``federation.py`` has filled, and the seconds since the first round."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.files, self.rounds = Path(sys.argv[1]), int(sys.argv[2])
        held = np.load(self.files / "clients.npz")
        self.starts, x, y = held["starts"], torch.tensor(held["x"]), torch.tensor(held["labels"])
        row, column, value = held["row"], held["column"], torch.tensor(held["value"])
        self.clients = []
        for low, high in zip(self.starts, self.starts[1:], strict=False):
            own, hat = slice(*np.searchsorted(row, [low, high])), torch.zeros(high - low, high - low)
            hat[torch.tensor(row[own] - low), torch.tensor(column[own] - low)] = value[own]
            self.clients.append((x[low:high], hat, y[low:high]))
        self.network = Gcn(np.load(self.files / "start.npy"), x.shape[1], int(y.max()) + 1)
        self.began = (0.0, 0.0)

    def first_round_done(self) -> None:
        self.began = (meter.cpu_seconds(), time.monotonic())

    def finished(self, name: str, vector: np.ndarray) -> None:
        cpu, wall = meter.cpu_seconds() - self.began[0], time.monotonic() - self.began[1]
        np.save(self.files / f"{name}.npy", vector)
        found = {"cpu_s_per_round": cpu / self.rounds, "wall_s_per_round": wall / self.rounds, "peak_gb": meter.peak_gb()}
        print(json.dumps(found))
