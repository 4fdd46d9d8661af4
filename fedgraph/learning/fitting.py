"""Full-batch training of a network as one flat vector: what a client of FedAvg does between two rounds.

The vector holds every parameter and every running statistic of batch norm. Adam's moments are arguments and results, so
training that is cut into rounds is the same, bit for bit, as training in one go: step t names its own stream of dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.network_shapes import NetworkShape
from fedgraph.learning.tensors import seed_learner, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph

if TYPE_CHECKING:
    from fedgraph.learning.networks import Network

_Built = TypeVar("_Built", bound="torch.nn.Module")

# of feature rows: length one, or sum of entries one; of columns (``NetworkShape.columns``): rows as they are
FittingScaling: TypeAlias = Literal["unit", "sum", "columns"]


@dataclass(frozen=True, eq=False)
class FittingInputs:
    """A graph, ready."""

    x: torch.Tensor  # features [n, d], scaled as was asked
    edges: torch.Tensor  # int64 [2, m], both directions


@dataclass(frozen=True)
class FittingSteps:
    """How to go on."""

    count: int  # how many steps
    first: int  # number of the first one, from 0
    rate: float  # step size
    decay: float  # weight of the L2 penalty


@dataclass(frozen=True, eq=False)
class FittingProgress:
    """Where a training is."""

    vector: np.ndarray  # float32 [p], parameters and running statistics
    moments: np.ndarray  # float32 [2, p], Adam's two estimates; [2, 0] for plain descent


def prepare_fitting_inputs(graph: Graph, rows: FittingScaling = "unit", labels: np.ndarray | None = None) -> FittingInputs:
    """What a network is called with.
    rows: of length one, of sum one, or (``columns``) as they are: the network scales them. labels: int64 [n], −1 where unknown.
    Where they are given, c more columns hold the share of each class among the neighbours whose label is known (0 without one);
    a node's own label is never in its own row.
    """
    edges = torch.tensor(np.stack(graph.adjacency.tocoo().coords).astype(np.int64), device=torch_device())
    x = sp.csr_array(graph.features) if rows == "columns" else unit_matrix_rows(graph.features, "L1" if rows == "sum" else "L2")
    if labels is not None:
        known = sp.csr_array(labels[:, None] == np.arange(graph.num_classes), dtype=np.float32)
        x = sp.csr_array(sp.hstack([x, unit_matrix_rows(sp.csr_array(graph.adjacency @ known), "L1")]), dtype=np.float32)
    if rows == "columns":
        return FittingInputs(torch.tensor(x.toarray(), dtype=torch.float32, device=torch_device()), edges)
    from fedgraph.learning.networks import sparse_rows  # not before it is used: it imports torch

    return FittingInputs(sparse_rows(x), edges)


def build(make: Callable[[], _Built], seed: int) -> _Built:
    """What ``make`` makes, with the initial parameters of ``seed``; torch's global stream is left as it was."""
    with torch.random.fork_rng(), torch.device(torch_device()):
        seed_learner(seed)
        return make()


def build_network_for_fitting(shape: NetworkShape, seed: int) -> Network:
    """The network with its initial parameters, on the learner's device."""
    from fedgraph.learning.networks import Network  # not before it is used: it imports torch

    return build(lambda: Network(shape), seed)


def vector_of(network: torch.nn.Module) -> np.ndarray:
    """float32 [p]: trained parameters, fixed ones and running statistics."""
    with torch.no_grad():
        return torch.cat([t.reshape(-1) for t in _tensors(network)]).cpu().numpy()


def start_fitting(shape: NetworkShape, seed: int) -> FittingProgress:
    """Where a training by Adam begins: initial parameters, and moments of zero. shape: what the network is built from."""
    vector = vector_of(build_network_for_fitting(shape, seed))
    return FittingProgress(vector, np.zeros((2, vector.size), np.float32))


def continue_fitting(
    network: torch.nn.Module,
    given: FittingInputs,
    labels: np.ndarray,
    before: FittingProgress,
    how: FittingSteps,
    seed_of: Callable[[int], int],
) -> FittingProgress:
    """``before`` after ``how.count`` steps on the mean cross-entropy of the labelled nodes.
    network: overwritten by ``before``, then trained. labels: int64 [n], −1 where a node does not train. Without a labelled node
    nothing changes. how: how many steps of which kind. seed_of: step number → seed of its dropout.
    """
    if not (labels >= 0).any():
        return before
    load_vector(network, before.vector)
    network.train()
    if len(given.x) < 2:  # one row has no variance: batch norms go by their running statistics
        for part in network.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                part.eval()
    known = torch.tensor(np.flatnonzero(labels >= 0), device=torch_device())
    target = torch.tensor(labels, device=torch_device())[known]
    learnt: list[torch.Tensor] = [p for p in network.parameters() if p.requires_grad]
    firsts, seconds = (_parts(network, moments) for moments in before.moments)
    with torch.random.fork_rng():
        for step in range(how.first + 1, how.first + how.count + 1):
            seed_learner(seed_of(step))
            loss = torch.nn.functional.cross_entropy(network(given.x, given.edges)[known], target)
            gradients = torch.autograd.grad(loss, learnt, allow_unused=True)
            with torch.no_grad():  # Adam (Kingma & Ba 2015, β = 0.9 and 0.999), in place
                for p, found, first, second in zip(learnt, gradients, firsts, seconds, strict=True):
                    g = (torch.zeros_like(p) if found is None else found) + how.decay * p
                    first.mul_(0.9).add_(g, alpha=0.1)
                    second.mul_(0.999).addcmul_(g, g, value=0.001)
                    p -= how.rate * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
    return FittingProgress(vector_of(network), np.stack([_joined(network, firsts), _joined(network, seconds)]))


def score_after_fitting(network: torch.nn.Module, vector: np.ndarray, given: FittingInputs) -> np.ndarray:
    """Scores without dropout and with the running statistics: float32 [n, c].
    network: overwritten by ``vector``. vector: float32 [p], parameters and running statistics.
    """
    load_vector(network, vector)
    network.eval()
    with torch.no_grad():
        return np.asarray(network(given.x, given.edges).cpu().numpy())


def _tensors(network: torch.nn.Module) -> list[torch.Tensor]:
    return [*network.parameters(), *(b for b in network.buffers() if b.dtype.is_floating_point)]


def load_vector(network: torch.nn.Module, vector: np.ndarray) -> None:
    """Put a flat vector into the network's tensors; the inverse of ``vector_of``.
    network: it is overwritten. vector: float [p], parameters and running statistics.
    """
    tensors = _tensors(network)
    flat = torch.tensor(np.array(vector, dtype=np.float32))
    with torch.no_grad():
        for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


def _parts(network: torch.nn.Module, flat: np.ndarray) -> list[torch.Tensor]:
    """One tensor per learnt parameter, cut from a vector over all tensors."""
    tensors = _tensors(network)
    cut = torch.split(torch.tensor(np.asarray(flat, dtype=np.float32)), [t.numel() for t in tensors])
    return [part.clone().to(t.device).view_as(t) for t, part in zip(tensors, cut, strict=True) if t.requires_grad]


def _joined(network: torch.nn.Module, parts: list[torch.Tensor]) -> np.ndarray:
    """The inverse of ``_parts``: zeros where nothing is learnt."""
    rest = iter(parts)
    out = [next(rest) if p.requires_grad else torch.zeros_like(p) for p in network.parameters()]
    out += [torch.zeros_like(b) for b in network.buffers() if b.dtype.is_floating_point]
    return torch.cat([t.reshape(-1) for t in out]).cpu().numpy()
