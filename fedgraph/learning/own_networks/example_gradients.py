"""Sums of clipped gradients of any network, one example for each rooted subgraph.

The loss of an example is the cross-entropy of its root's scores. ``vmapped`` takes the gradients of many examples at once
(``torch.func.vmap`` over subgraphs of equal size); ``looped`` takes one after another, is its oracle, and stands in where vmap
cannot run a network.

**Formal guarantee.** The sum changes by at most C in L2 norm when one example is removed, and by at most 2C when one is
replaced; an example whose norm is not finite counts as zero. Gradients, norms and sums are in double precision, so what
examples share by rounding (blocks of a product) is far below the margin that ``per_sample.room_for`` leaves. ``vmap`` and the
loop show the network one example at a time; ``isolation`` looks whether its gradient then follows from that example alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedgraph.learning.clipping import per_sample
from fedgraph.learning.late import torch
from fedgraph.learning.layers.torch_matrices import torch_device
from fedgraph.learning.own_networks import own_network
from fedgraph.learning.own_networks.own_network import NetworkSpec
from fedgraph.learning.own_networks.rooted import RootedSamples

_MOST = 1 << 24  # numbers in the gradients of one chunk of examples
_CHUNK = 256


@dataclass(frozen=True, eq=False)
class NetworkExamples:
    """Rooted subgraphs with what stands at their nodes.

    Attributes:
        rows: float [n, d], of all nodes of the graph.
        samples: subgraphs of some of them.
        labels: int64 [b], of the roots, each at least 0.
    """

    rows: np.ndarray
    samples: RootedSamples
    labels: np.ndarray

    def at(self, chosen: slice | np.ndarray, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(x [k, s, d], edge_index [k, 2, e], labels [k]) of some examples; an empty place is a row of zeros."""
        nodes = self.samples.nodes[chosen]
        x = self.rows[np.maximum(nodes, 0)] * (nodes >= 0)[:, :, None]
        place = torch_device()
        arcs, labels = self.samples.arcs[chosen], self.labels[chosen]
        return torch.tensor(x, dtype=dtype, device=place), torch.tensor(arcs, device=place), torch.tensor(labels, device=place)


def _loss(module: torch.nn.Module, parameters: dict[str, torch.Tensor], *example: torch.Tensor) -> torch.Tensor:
    x, arcs, label = example
    given = (x, arcs) if own_network.reads_edges(module) else (x,)
    scores = torch.func.functional_call(module, parameters, given)
    return torch.nn.functional.cross_entropy(scores[:1], label[None])


def vmapped(spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples) -> torch.Tensor:
    """float64 [b, p]: the gradient of each example.

    Args:
        spec: Of the network.
        vector: float [p].
        examples: b of them.
    """
    module, parameters = own_network.filled(spec, vector, torch.float64)

    def gradient(*example: torch.Tensor) -> dict[str, torch.Tensor]:
        return torch.func.grad(lambda given: _loss(module, given, *example))(parameters)

    found = torch.func.vmap(gradient)(*examples.at(slice(None), torch.float64))
    return torch.cat([found[name].reshape(len(examples.labels), -1) for name in parameters], dim=1)


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


def weighed_rows(
    spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples, limit: float, loops: bool = False
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(gradients [k, p], weights [k]) of chunks of the examples: each times its weight has a norm of at most ``limit``.

    An example whose norm is not finite is a row of zeros.

    Args:
        spec: Of the network.
        vector: float [p].
        examples: b of them.
        limit: C, or a little less.
        loops: Whether examples are taken one after another.
    """
    chunk = int(np.clip(_MOST // max(1, np.asarray(vector).size), 1, _CHUNK))
    for first in range(0, len(examples.labels), chunk):
        part = slice(first, first + chunk)
        some = RootedSamples(examples.samples.nodes[part], examples.samples.arcs[part])
        given = NetworkExamples(examples.rows, some, examples.labels[part])
        rows = (looped if loops else vmapped)(spec, vector, given)
        scale = per_sample.scales(torch.linalg.vector_norm(rows, dim=1), limit)
        yield rows if bool((scale > 0).all()) else torch.where(scale[:, None] > 0, rows, 0.0), scale


def clipped_sum(
    spec: NetworkSpec, vector: np.ndarray, examples: NetworkExamples, clip: float, num_rows: int, loops: bool = False
) -> np.ndarray:
    """Σ_examples clip(∇ cross-entropy of the root, C): flat [p], stored as ``per_sample.room_for`` says.

    Args:
        spec: Of the network.
        vector: float [p].
        examples: b of them, at most ``num_rows``.
        clip: C.
        num_rows: The most examples that a sum may have, a public number.
        loops: Whether examples are taken one after another.

    Raises:
        DataError: There may be more rows than ``room_for`` allows.
    """
    dtype, share = per_sample.room_for(num_rows)
    total = torch.zeros(np.asarray(vector).size, dtype=torch.float64, device=torch_device())
    for rows, scale in weighed_rows(spec, vector, examples, clip * share, loops):
        total += scale @ rows
    return np.asarray(total.cpu().numpy().astype(dtype, copy=False))
