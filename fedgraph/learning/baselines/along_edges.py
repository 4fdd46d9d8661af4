"""Layers of torch_geometric whose sums over neighbours are one sparse product each, or one compiled pass.

torch_geometric copies one row per edge, forwards and backwards. A product with a matrix that is made once gives the same
numbers in less time. Parameters, their order and their first values stay those of the layers that are wrapped.

Attention (GAT, Veličković et al., ICLR 2018) is one pass over the edges j → i, forwards and backwards:
out[i, h] = Σ_j α[i, j, h] · kept[i, j, h] · x[j, h], where α is the softmax over j of LeakyReLU(source[j, h] + target[i, h]).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from fedgraph.compiled import compiled, compiled_constant
from fedgraph.compiled import compiled_types as nt
from fedgraph.learning.layers.torch_matrices import to_torch_matrix
from fedgraph.learning.propagation import walks

_Rows = tuple[np.ndarray, np.ndarray]  # CSR: int64 start [n + 1], int64 column [m], the sources of each node's edges

_INTS = compiled_constant(nt.int64)
_TWO, _THREE = compiled_constant(nt.float32, 2), compiled_constant(nt.float32, 3)
_EDGES, _ROWS, _SIDES = nt.Array(nt.float32, 2, "C"), nt.Array(nt.float32, 3, "C"), nt.Array(nt.float32, 2, "C")


@compiled(nt.void(_INTS, _INTS, _THREE, _TWO, _TWO, _TWO, nt.float32, _EDGES, _ROWS))
def _attend(start, column, x, source, target, kept, slope, share, out):  # type: ignore[no-untyped-def]
    """share [m, heads] and out [n, heads, k], which is zero at first, are written. x: [n, heads, k]; source and target:
    [n, heads]; kept: [m, heads], what dropout leaves of each share; slope: of the leaky ReLU.
    """
    heads, width = x.shape[1], x.shape[2]
    for i in range(out.shape[0]):
        for h in range(heads):
            most = np.float32(-np.inf)
            for e in range(start[i], start[i + 1]):
                z = source[column[e], h] + target[i, h]
                z = z if z > 0 else slope * z
                share[e, h] = z
                most = max(most, z)
            total = np.float32(0)
            for e in range(start[i], start[i + 1]):
                share[e, h] = np.exp(share[e, h] - most)
                total += share[e, h]
            for e in range(start[i], start[i + 1]):
                share[e, h] /= total
                weight = share[e, h] * kept[e, h]
                row = x[column[e], h]
                for k in range(width):
                    out[i, h, k] += weight * row[k]


@compiled(nt.void(_INTS, _INTS, _THREE, _TWO, _TWO, _TWO, nt.float32, _TWO, _THREE, _ROWS, _SIDES, _SIDES))
def _attend_backwards(  # type: ignore[no-untyped-def]
    start, column, x, source, target, kept, slope, share, gradient, of_x, of_source, of_target
):
    """Gradients of x, source and target are added to the last three; gradient: that of ``out`` [n, heads, k]."""
    heads, width = x.shape[1], x.shape[2]
    for i in range(gradient.shape[0]):
        size = start[i + 1] - start[i]
        pull = np.zeros(size, np.float32)
        for h in range(heads):
            mean, wanted = np.float32(0), gradient[i, h]
            for e in range(size):
                at = start[i] + e
                weight = share[at, h] * kept[at, h]
                row = x[column[at], h]
                changed = of_x[column[at], h]
                along = np.float32(0)
                for k in range(width):
                    along += wanted[k] * row[k]
                    changed[k] += weight * wanted[k]
                pull[e] = along * kept[at, h]
                mean += share[at, h] * pull[e]
            for e in range(size):
                at = start[i] + e
                j = column[at]
                bent = share[at, h] * (pull[e] - mean)
                bent *= np.float32(1) if source[j, h] + target[i, h] > 0 else slope
                of_source[j, h] += bent
                of_target[i, h] += bent


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor, *fixed: Any) -> torch.Tensor:
        (start, column), kept, slope = fixed
        values = tuple(np.ascontiguousarray(t.detach().numpy()) for t in (x, source, target, kept))
        share, out = np.empty_like(values[3]), np.zeros_like(values[0])
        _attend(start, column, *values, np.float32(slope), share, out)
        context.known = (start, column, *values, np.float32(slope), share)
        return torch.from_numpy(out)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        known = context.known
        found = tuple(np.zeros_like(values) for values in known[2:5])
        _attend_backwards(*known, np.ascontiguousarray(gradients[0].numpy()), *found)
        return (*(torch.from_numpy(f) for f in found), None, None, None)


_Pair = tuple[torch.Tensor, torch.Tensor]

_MADE = WeakTensorKeyDictionary()  # edges → {what: (matrix, its transpose), or CSR rows}, while somebody holds the edges


class _Product(torch.autograd.Function):
    """A x for a fixed sparse A whose transpose is at hand."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, forwards: torch.Tensor, backwards: torch.Tensor) -> torch.Tensor:
        context.backwards = backwards
        return forwards @ x.contiguous()

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return context.backwards @ gradients[0].contiguous(), None, None


def multiply_along_edges(matrix: _Pair, x: torch.Tensor) -> torch.Tensor:
    """float32 [n, h]: (A, Aᵀ) times x [n, h]."""
    found: torch.Tensor = _Product.apply(x, *matrix)  # type: ignore[no-untyped-call]
    return found


def normalise_along_edges(edges: torch.Tensor, num_nodes: int) -> _Pair:
    """D^{-1/2} (A + I) D^{-1/2} of edges int64 [2, m] (source, target); a self-loop that is there is kept, not doubled."""

    def make() -> _Pair:
        adjacency = _adjacency(edges, num_nodes)
        whole = adjacency + sp.diags_array((adjacency.diagonal() == 0).astype(np.float64))
        scale = sp.diags_array(1 / np.sqrt(np.asarray(whole.sum(axis=1)).ravel()))
        return _pair(sp.csr_array(scale @ whole @ scale))

    found: _Pair = _kept(edges, "normalised", make)
    return found


def _incoming(edges: torch.Tensor, num_nodes: int) -> _Rows:
    """The sources of each node's incoming edges, itself among them once."""
    adjacency = sp.csr_array(_adjacency(edges, num_nodes) + sp.eye_array(num_nodes))
    return adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)


def _kept(edges: torch.Tensor, what: str, make: Callable[[], Any]) -> Any:
    kept: dict[str, Any] = _MADE.setdefault(edges, {})  # type: ignore[no-untyped-call]
    if what not in kept:
        kept[what] = make()
    return kept[what]


def _adjacency(edges: torch.Tensor, num_nodes: int) -> sp.csr_array:
    source, target = edges.cpu().numpy()
    return sp.csr_array((np.ones(source.size), (target, source)), shape=(num_nodes, num_nodes))


def _pair(matrix: sp.csr_array) -> _Pair:
    return to_torch_matrix(matrix), to_torch_matrix(sp.csr_array(matrix.T.tocsr()))


class _Layer(nn.Module):
    """A layer of torch_geometric, called as it is called."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


class _EdgeConvolution(_Layer):
    """``GCNConv`` with its defaults: Â x Wᵀ + b."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor, edge_weight: None = None) -> torch.Tensor:
        rows = self.layer.lin(x)  # type: ignore[operator]
        return multiply_along_edges(normalise_along_edges(edges, len(rows)), rows) + self.layer.bias  # type: ignore[operator]


class _EdgeMean(_Layer):
    """``SAGEConv`` with its defaults: W₁ mean(x of neighbours) + b + W₂ x."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        mean: _Pair = _kept(edges, "mean", lambda: _pair(walks.random_matrix(_adjacency(edges, len(x)))))
        heard = multiply_along_edges(mean, x)
        found: torch.Tensor = self.layer.lin_l(heard) + self.layer.lin_r(x)  # type: ignore[operator]
        return found


class _EdgeAttention(_Layer):
    """``GATConv`` with its defaults, heads joined or averaged; on a GPU the layer itself."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor, edge_attr: None = None) -> torch.Tensor:
        layer: Any = self.layer
        rows = layer.lin(x).view(-1, layer.heads, layer.out_channels)
        if rows.is_cuda:
            return torch.as_tensor(layer(x, edges))
        incoming: _Rows = _kept(edges, "with loops", lambda: _incoming(edges, len(rows)))
        source, target = (rows * layer.att_src).sum(dim=-1), (rows * layer.att_dst).sum(dim=-1)
        kept = functional.dropout(torch.ones(incoming[1].size, layer.heads), p=layer.dropout, training=self.training)
        found = _Attention.apply(rows, source, target, incoming, kept, layer.negative_slope)  # type: ignore[no-untyped-call]
        found = found.flatten(1) if layer.concat else found.mean(dim=1)
        return torch.as_tensor(found + layer.bias)


def sum_along_edges(network: Any) -> nn.Module:
    """A ``GCN``, ``GraphSAGE`` or ``GAT`` of torch_geometric, whose layers are replaced by their likes from this file."""
    kind = {"GCN": _EdgeConvolution, "GraphSAGE": _EdgeMean, "GAT": _EdgeAttention}[type(network).__name__]
    network.convs = nn.ModuleList(kind(layer) for layer in network.convs)
    found: nn.Module = network
    return found
