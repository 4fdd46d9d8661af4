"""Layers of torch_geometric whose sums over neighbours are one sparse product each.

torch_geometric copies one row per edge, forwards and backwards. A product with a matrix that is made once gives the same
numbers in less time. Parameters, their order and their first values stay those of the layers that are wrapped.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from fedgraph.learning.baselines.attention import Rows, attended
from fedgraph.learning.layers.sparse import to_torch

Pair = tuple[torch.Tensor, torch.Tensor]

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


def product(matrix: Pair, x: torch.Tensor) -> torch.Tensor:
    """float32 [n, h]: (A, Aᵀ) times x [n, h]."""
    found: torch.Tensor = _Product.apply(x, *matrix)  # type: ignore[no-untyped-call]
    return found


def normalised(edges: torch.Tensor, num_nodes: int) -> Pair:
    """D^{-1/2} (A + I) D^{-1/2} of edges int64 [2, m] (source, target); a self-loop that is there is kept, not doubled."""
    return _once(edges, "normalised", num_nodes)


def mean(edges: torch.Tensor, num_nodes: int) -> Pair:
    """D^{-1} A: the mean over incoming edges, zero where there is none."""
    return _once(edges, "mean", num_nodes)


def with_loops(edges: torch.Tensor, num_nodes: int) -> Rows:
    """The sources of each node's incoming edges, itself among them once."""
    found: Rows = _kept(edges, "with loops", lambda: _incoming(edges, num_nodes))
    return found


def _once(edges: torch.Tensor, what: str, num_nodes: int) -> Pair:
    found: Pair = _kept(edges, what, lambda: _pair(edges, what, num_nodes))
    return found


def _kept(edges: torch.Tensor, what: str, make: Callable[[], Any]) -> Any:
    if edges not in _MADE:
        _MADE[edges] = {}
    kept: dict[str, Any] = _MADE[edges]
    if what not in kept:
        kept[what] = make()
    return kept[what]


def _adjacency(edges: torch.Tensor, num_nodes: int) -> sp.csr_array:
    source, target = edges.cpu().numpy()
    return sp.csr_array((np.ones(source.size), (target, source)), shape=(num_nodes, num_nodes))


def _pair(edges: torch.Tensor, what: str, num_nodes: int) -> Pair:
    adjacency = _adjacency(edges, num_nodes)
    matrix = _symmetric(adjacency) if what == "normalised" else _row_mean(adjacency)
    return to_torch(matrix), to_torch(sp.csr_array(matrix.T.tocsr()))


def _incoming(edges: torch.Tensor, num_nodes: int) -> Rows:
    adjacency = sp.csr_array(_adjacency(edges, num_nodes) + sp.eye_array(num_nodes))
    return adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)


def _symmetric(adjacency: sp.csr_array) -> sp.csr_array:
    loops = (adjacency.diagonal() == 0).astype(np.float64)
    whole = adjacency + sp.diags_array(loops)
    scale = sp.diags_array(1 / np.sqrt(np.asarray(whole.sum(axis=1)).ravel()))
    return sp.csr_array(scale @ whole @ scale)


def _row_mean(adjacency: sp.csr_array) -> sp.csr_array:
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    return sp.csr_array(sp.diags_array(1 / np.maximum(degrees, 1)) @ adjacency)


class _Layer(nn.Module):
    """A layer of torch_geometric, called as it is called."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer


class Convolution(_Layer):
    """``GCNConv`` with its defaults: Â x Wᵀ + b."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor, edge_weight: None = None) -> torch.Tensor:
        rows = self.layer.lin(x)  # type: ignore[operator]
        return product(normalised(edges, len(rows)), rows) + self.layer.bias  # type: ignore[operator]


class MeanOfNeighbours(_Layer):
    """``SAGEConv`` with its defaults: W₁ mean(x of neighbours) + b + W₂ x."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        heard = product(mean(edges, len(x)), x)
        found: torch.Tensor = self.layer.lin_l(heard) + self.layer.lin_r(x)  # type: ignore[operator]
        return found


class Attention(_Layer):
    """``GATConv`` with its defaults, heads joined or averaged; on a GPU the layer itself."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor, edge_attr: None = None) -> torch.Tensor:
        layer: Any = self.layer
        rows = layer.lin(x).view(-1, layer.heads, layer.out_channels)
        if rows.is_cuda:
            return torch.as_tensor(layer(x, edges))
        incoming = with_loops(edges, len(rows))
        source, target = (rows * layer.att_src).sum(dim=-1), (rows * layer.att_dst).sum(dim=-1)
        kept = functional.dropout(torch.ones(incoming[1].size, layer.heads), p=layer.dropout, training=self.training)
        found = attended(incoming, rows, source, target, kept, layer.negative_slope)
        found = found.flatten(1) if layer.concat else found.mean(dim=1)
        return torch.as_tensor(found + layer.bias)


def with_products(network: Any) -> nn.Module:
    """A ``GCN``, ``GraphSAGE`` or ``GAT`` of torch_geometric, whose layers are replaced by their likes from this file."""
    kind = {"GCN": Convolution, "GraphSAGE": MeanOfNeighbours, "GAT": Attention}[type(network).__name__]
    network.convs = nn.ModuleList(kind(layer) for layer in network.convs)
    found: nn.Module = network
    return found
