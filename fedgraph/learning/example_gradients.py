"""Sums of clipped gradients of any network, one example for each rooted subgraph.

The loss of an example is the cross-entropy of its root's scores. ``vmapped`` takes the gradients of many examples at once
(``torch.func.vmap`` over subgraphs of equal size); ``looped`` takes one after another, is its oracle, and stands in where vmap
cannot run a network. A network that is one ``torch.nn.Linear`` has gradients that are outer products, which are never made
(``outer``): fifty times faster than ``vmapped``, which is its oracle.

**Formal guarantee.** The sum changes by at most C in L2 norm when one example is removed, and by at most 2C when one is
replaced; an example whose norm is not finite counts as zero. Gradients, norms and sums are in double precision, so what
examples share by rounding (blocks of a product) is far below the margin that ``per_sample.room_for`` leaves. ``vmap`` and the
loop show the network one example at a time; ``isolation`` looks whether its gradient then follows from that example alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from fedgraph.learning import own_network, per_sample
from fedgraph.learning.own_network import NetworkSpec
from fedgraph.learning.rooted import RootedSamples
from fedgraph.learning.tensors import torch, torch_device

_MOST = 1 << 24  # numbers in the gradients of one chunk of examples
_CHUNK = 256


@dataclass(frozen=True, eq=False)
class NetworkExamples:
    """Rooted subgraphs with what stands at their nodes."""

    rows: np.ndarray  # float [n, d], of all nodes of the graph
    samples: RootedSamples  # subgraphs of some of them
    labels: np.ndarray  # int64 [b], of the roots, each at least 0

    def at(self, chosen: slice | np.ndarray, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(x [k, s, d], edge_index [k, 2, e], labels [k]) of some examples; an empty place is a row of zeros."""
        nodes = self.samples.nodes[chosen]
        x = self.rows[np.maximum(nodes, 0)] * (nodes >= 0)[:, :, None]
        place = torch_device()
        arcs, labels = self.samples.arcs[chosen], self.labels[chosen]
        return torch.tensor(x, dtype=dtype, device=place), torch.tensor(arcs, device=place), torch.tensor(labels, device=place)


def _loss(module: torch.nn.Module, parameters: dict[str, torch.Tensor], *example: torch.Tensor) -> torch.Tensor:
    x, arcs, label = example
    return torch.nn.functional.cross_entropy(own_network.run(module, x, arcs, parameters)[:1], label[None])


@dataclass(frozen=True, eq=False)
class OuterGradients:
    """Clipped gradients of a ``torch.nn.Linear``, each the outer product of its errors and (its inputs, 1)."""

    inputs: np.ndarray  # float64 [b, d]
    errors: np.ndarray  # float64 [b, c]

    def total(self) -> np.ndarray:
        """Their sum, flat float64 [p]."""
        return np.concatenate([(self.errors.T @ self.inputs).ravel(), self.errors.sum(axis=0)])

    def left_over_products(self, message: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """⟨∇ᵢ, message − Σ_k weights_k ∇_k⟩ of each example i, float64 [b]."""
        beyond = message - OuterGradients(self.inputs, self.errors * weights[:, None]).total()
        classes = self.errors.shape[1]
        matrix, bias = beyond[:-classes].reshape(classes, -1), beyond[-classes:]
        return np.asarray(((self.inputs @ matrix.T + bias) * self.errors).sum(axis=1))

    def products(self, of: np.ndarray) -> np.ndarray:
        """⟨∇ⱼ, ∇ₖ⟩ for the examples j, k in ``of``, float64 [m, m]."""
        error, rows = self.errors[of], self.inputs[of]
        return np.asarray((rows @ rows.T + 1.0) * (error @ error.T))


def outer(vector: np.ndarray, rows: np.ndarray, labels: np.ndarray, classes: int, limit: float) -> OuterGradients:
    """The gradients of a ``torch.nn.Linear``, each scaled to a norm of at most ``limit``; one that is not finite is zero.
    vector: float [(d + 1)·c]. rows: float [b, d]. labels: int64 [b]; an example labelled −1 is zero. limit: C, or a bit less.
    """
    theta, inputs = vector.astype(np.float64), rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        error = softmax(inputs @ theta[:-classes].reshape(classes, -1).T + theta[-classes:], axis=1)
        error[np.arange(len(labels)), np.maximum(labels, 0)] -= 1.0
        norms = np.sqrt((np.square(inputs).sum(axis=1) + 1.0) * np.square(error).sum(axis=1))
    kept = np.isfinite(norms) & (labels >= 0)
    scale = np.minimum(1.0, limit / np.maximum(norms, 1e-30))[:, None]
    return OuterGradients(np.where(kept[:, None], inputs, 0.0), np.where(kept[:, None], error * scale, 0.0))


def vmapped(spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples) -> torch.Tensor:
    """float64 [b, p]: the gradient of each example. vector: float [p]."""
    module, parameters = own_network.filled(spec, vector, torch.float64)

    def gradient(*example: torch.Tensor) -> dict[str, torch.Tensor]:
        return torch.func.grad(lambda given: _loss(module, given, *example))(parameters)

    found = torch.func.vmap(gradient)(*examples.at(slice(None), torch.float64))
    return torch.cat([found[name].reshape(len(examples.labels), -1) for name in parameters], dim=1).detach()


def looped(spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples) -> torch.Tensor:
    """As ``vmapped``, one example after another, each with a copy of the network of its own."""
    rows = []
    for number in range(len(examples.labels)):
        module, parameters = own_network.filled(spec, vector, torch.float64)
        given = {name: value.requires_grad_(True) for name, value in parameters.items()}
        x, arcs, labels = examples.at(slice(number, number + 1), torch.float64)
        found = torch.autograd.grad(_loss(module, given, x[0], arcs[0], labels[0]), list(given.values()), allow_unused=True)
        parts = [torch.zeros_like(p) if g is None else g for p, g in zip(given.values(), found, strict=True)]
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows).detach()


def chunk_of(vector: np.ndarray) -> int:
    """How many examples are taken at once, at most. vector: float [p]."""
    return int(np.clip(_MOST // max(1, np.asarray(vector).size), 1, _CHUNK))


def weighed_rows(
    spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples, limit: float, loops: bool = False
) -> Iterator[tuple[torch.Tensor, torch.Tensor, np.ndarray]]:
    """(gradients [k, p], weights [k], numbers int64 [k]) of chunks of the examples, those with few nodes first: each gradient
    times its weight has a norm of at most ``limit``.

    An example whose norm is not finite is a row of zeros. Those of a chunk ask for the same room, so that no network sees in
    the empty places of an example how large others are.
    vector: float [p]. limit: C, or a little less. loops: whether examples are taken one after another.
    """
    chunk = chunk_of(vector)
    rooms = examples.samples.rooms()
    alike = [np.flatnonzero(rooms == room) for room in np.unique(rooms)]
    for some in (of[first : first + chunk] for of in alike for first in range(0, of.size, chunk)):
        given = NetworkExamples(examples.rows, examples.samples.of(some), examples.labels[some])
        rows = _rows(spec, vector, given, loops)
        scale = per_sample.scales(torch.linalg.vector_norm(rows, dim=1), limit)
        yield rows if bool((scale > 0).all()) else torch.where(scale[:, None] > 0, rows, 0.0), scale, some


def _rows(spec: NetworkSpec, vector: np.ndarray, given: NetworkExamples, loops: bool) -> torch.Tensor:
    """``vmapped`` or ``looped``; an example at which the network stops is zeros, so that nobody sees whose row it was."""
    try:
        return (looped if loops else vmapped)(spec, vector, given)
    except Exception:  # of the network; the look found none at random rows
        if (count := len(given.labels)) == 1 and loops:
            return torch.zeros((1, np.asarray(vector).size), dtype=torch.float64, device=torch_device())
    samples = given.samples
    each = [
        NetworkExamples(given.rows, RootedSamples(samples.nodes[[k]], samples.arcs[[k]]), given.labels[[k]])
        for k in range(count)
    ]
    return torch.cat([_rows(spec, vector, one, True) for one in each])


def clipped_sum(
    spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples, clip: float, num_rows: int, loops: bool = False
) -> np.ndarray:
    """Σ_examples clip(∇ cross-entropy of the root, C): flat [p], stored as ``per_sample.room_for`` says.
    vector: float [p]. num_rows: the most examples that a sum may have, a public number. loops: whether examples are taken one
    after another. Raises ``DataError``: there may be more rows than ``room_for`` allows.
    """
    dtype, share = per_sample.room_for(num_rows)
    if own_network.is_linear(spec):
        rows = examples.rows[examples.samples.nodes[:, 0]]
        return outer(vector, rows, examples.labels, spec.classes, clip * share).total().astype(dtype, copy=False)
    total = torch.zeros(np.asarray(vector).size, dtype=torch.float64, device=torch_device())
    for gradients, scale, _ in weighed_rows(spec, vector, examples, clip * share, loops):
        total += scale @ gradients
    return np.asarray(total.cpu().numpy().astype(dtype, copy=False))
