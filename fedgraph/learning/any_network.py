"""Local training of any torch network at many clients, without privacy: what FedAvg does between two broadcasts.

Each client begins with the same parameters and takes plain steps of gradient descent on its own examples, batch by batch in
the order in which they come. What leaves the worker is one sum of parameters, each client weighted by its examples. Two ways:

* **together**: small networks for many clients at once, by ``torch.func.vmap`` over stacked parameters. A step of a small
  network costs less than the call of Python that begins it, and here one call steps all clients.
* **one by one**: everything else. On a CPU a convolution with its own weights for every client (a grouped convolution) is
  slower than one client after another, so the gain is elsewhere: images and kernels lie channels-last, max-pooling comes
  before a ReLU, and the product that is the gradient of a linear layer's weights is added to the weights at once, so no
  gradient of their size is ever stored.

Both follow a loop over ``torch.optim.SGD`` up to the rounding of float32 (a test holds it). Dropout of a whole image draws in
the order in which the image lies in memory, so there only the law is that of the loop.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from fedgraph.errors import RuntimeFailure
from fedgraph.learning.layers.sparse import seed_torch

Examples: TypeAlias = tuple[torch.Tensor, torch.Tensor]  # inputs [n, …], targets [n, …]
Loss: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # outputs, targets → the mean over a batch
FEW_PARAMETERS = 100_000  # of a network that is trained together
STACKED_NUMBERS = 16_000_000  # parameters of clients that are trained at the same time: 64 MB, and as much for gradients
_SIMPLE = (nn.Linear, nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Flatten, nn.Sequential, nn.LayerNorm, nn.Identity)


@dataclass(frozen=True)
class Descent:
    """rate: of a step. batch: examples in one step, the last one of an epoch may have fewer."""

    rate: float
    batch: int
    epochs: int = 1


def total_after(
    network: nn.Module,
    start: torch.Tensor,
    clients: Sequence[Examples],
    descent: Descent,
    loss: Loss = functional.cross_entropy,
    seeds: Sequence[int] = (),
    together: bool | None = None,
) -> torch.Tensor:
    """Σ over ``clients`` of (its number of examples) · (its parameters after ``descent`` from ``start``); float32 [p].

    network: its own parameters are not read; their order is that of ``parameters_to_vector``. seeds: one per client, for what
    the network draws (dropout); without them it draws from torch's own generator. together: None chooses.

    ``RuntimeFailure`` where the network has buffers of floats (running means are data of clients, and no average of them is
    defined here), where ``start`` has another length, and where something drawn at random would be trained together.
    """
    if any(b.is_floating_point() for b in network.buffers()):
        raise RuntimeFailure("a network with running means cannot be averaged; use GroupNorm or LayerNorm for BatchNorm")
    size = sum(p.numel() for p in network.parameters())
    if start.shape != (size,):
        raise RuntimeFailure(f"the network has {size} parameters; the given start has shape {tuple(start.shape)}")
    if seeds and len(seeds) != len(clients):
        raise RuntimeFailure(f"{len(clients)} clients need a seed each, found {len(seeds)}")
    if together is None:
        together = size <= FEW_PARAMETERS and all(isinstance(m, _SIMPLE) for m in _leaves(network))
    if not together:
        return _OneByOne(network, descent, loss).total(start, clients, seeds)
    total = torch.zeros(size)
    for same in _of_one_size(clients):
        for first in range(0, len(same), max(1, STACKED_NUMBERS // max(size, 1))):
            some = same[first : first + max(1, STACKED_NUMBERS // max(size, 1))]
            total += _stacked(network, start, some, descent, loss) * len(some[0][0])
    return total


def _leaves(network: nn.Module) -> list[nn.Module]:
    return [m for m in network.modules() if not list(m.children())]


def _of_one_size(clients: Sequence[Examples]) -> list[list[Examples]]:
    found: dict[int, list[Examples]] = {}
    for own in clients:
        found.setdefault(len(own[0]), []).append(own)
    return list(found.values())


def _stacked(
    network: nn.Module, start: torch.Tensor, clients: Sequence[Examples], descent: Descent, loss: Loss
) -> torch.Tensor:
    """Σ of the parameters of clients with equally many examples, all trained at once."""
    x, y = (torch.stack([own[part] for own in clients]) for part in (0, 1))
    sizes = [p.numel() for p in network.parameters()]
    parts = zip(network.named_parameters(), torch.split(start, sizes), strict=True)
    own = {name: part.view(p.shape).expand(len(clients), *p.shape).clone() for (name, p), part in parts}

    def of_one(parameters: dict[str, torch.Tensor], inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return loss(functional_call(network, parameters, (inputs,)), targets)

    gradients = vmap(grad(of_one), randomness="error")
    for low in _batches(x.shape[1], descent):
        try:
            found = gradients(own, x[:, low : low + descent.batch], y[:, low : low + descent.batch])
        except RuntimeError as error:
            if "randomness" not in str(error):
                raise
            raise RuntimeFailure("a network that draws at random is trained one client after another") from error
        torch._foreach_add_(list(own.values()), [found[name] for name in own], alpha=-descent.rate)
    return torch.cat([stack.sum(dim=0).reshape(-1) for stack in own.values()])


def _pool_first(network: nn.Module) -> None:
    """Swap every ReLU with the max-pooling that follows it, where nobody else can read what lies between them.

    The largest of a window is the same before and after max(x, 0), and so is its gradient, bit for bit; but a quarter of the
    numbers, or fewer, are left for the ReLU.
    """
    if type(network) is not nn.Sequential:
        return
    for at, (one, other) in enumerate(itertools.pairwise(list(network))):
        if type(one) is nn.ReLU and type(other) is nn.MaxPool2d and not other.return_indices:
            network[at], network[at + 1] = other, one
    for inner in network:
        _pool_first(inner)


def _batches(count: int, descent: Descent) -> itertools.chain[int]:
    """Where each batch begins."""
    return itertools.chain.from_iterable(range(0, count, descent.batch) for _ in range(descent.epochs))


class _Added(torch.autograd.Function):
    """A linear layer whose weights take their step while the gradient is computed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, rate: float) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.rate = rate
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *outputs: torch.Tensor) -> tuple[torch.Tensor | None, None, torch.Tensor | None, None]:
        (above,), (x, weight) = outputs, ctx.saved_tensors
        flat = above.reshape(-1, above.shape[-1])
        below = above @ weight if ctx.needs_input_grad[0] else None  # before the weights change
        with torch.no_grad():
            weight.addmm_(flat.t(), x.reshape(-1, x.shape[-1]), alpha=-ctx.rate)
        return below, None, flat.sum(dim=0) if ctx.needs_input_grad[2] else None, None


class _OneByOne:
    """A copy of the network that one client after another trains."""

    def __init__(self, network: nn.Module, descent: Descent, loss: Loss) -> None:
        self.network, self.descent, self.loss = copy.deepcopy(network).train(), descent, loss
        self.images = any(isinstance(m, nn.Conv2d) for m in self.network.modules())
        if self.images:
            self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            _pool_first(self.network)
        self.parameters: list[torch.Tensor] = list(self.network.parameters())
        self.stepped: list[torch.Tensor] = []  # linear weights, whose steps are part of the backward pass

    def total(self, start: torch.Tensor, clients: Sequence[Examples], seeds: Sequence[int]) -> torch.Tensor:
        totals = [torch.zeros_like(p) for p in self.parameters]
        cut = torch.split(start, [p.numel() for p in totals])
        parts = [s.view(p.shape) for s, p in zip(cut, totals, strict=True)]
        if clients:
            self._find_linear_layers(clients[0][0][: self.descent.batch])
        with torch.random.fork_rng(devices=[], enabled=bool(seeds)):
            for number, (x, y) in enumerate(clients):
                if seeds:
                    seed_torch(seeds[number])
                with torch.no_grad():
                    torch._foreach_copy_(self.parameters, parts)
                self._descend(x, y)
                with torch.no_grad():
                    torch._foreach_add_(totals, self.parameters, alpha=len(x))
        return torch.cat([t.reshape(-1) for t in totals])

    def _descend(self, x: torch.Tensor, y: torch.Tensor) -> None:
        if self.images and x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        known = {id(p) for p in self.stepped}
        rest = [p for p in self.parameters if id(p) not in known]
        for low in _batches(len(x), self.descent):
            for p in rest:
                p.grad = None
            some = slice(low, low + self.descent.batch)
            torch.autograd.backward(self.loss(self.network(x[some]), y[some]))
            moved = [(p, p.grad) for p in rest if p.grad is not None]
            if not moved:  # linear layers without biases only
                continue
            with torch.no_grad():
                torch._foreach_add_([p for p, _ in moved], [g for _, g in moved], alpha=-self.descent.rate)

    def _find_linear_layers(self, some: torch.Tensor) -> None:
        """Those whose weights are used once in a forward pass, and nowhere else: only they may change on the way back."""
        owners = Counter(id(p) for m in self.network.modules() for p in m.parameters(recurse=False))
        plain = [m for m in self.network.modules() if type(m) is nn.Linear and owners[id(m.weight)] == 1]
        calls: Counter[int] = Counter()
        hooks = [m.register_forward_hook(lambda m, *_: calls.update([id(m)])) for m in plain]
        self.network.eval()
        with torch.no_grad():
            self.network(some)
        self.network.train()
        for hook in hooks:
            hook.remove()
        for layer in plain:
            if calls[id(layer)] == 1:
                self.stepped.append(layer.weight)
                layer.forward = self._stepping(layer)  # type: ignore[method-assign, assignment]

    def _stepping(self, layer: nn.Linear) -> Callable[[torch.Tensor], torch.Tensor]:
        return lambda x: _Added.apply(x, layer.weight, layer.bias, self.descent.rate)  # type: ignore[no-untyped-call]
