"""The networks of the non-private rows: by a short name, or any model of ``torch_geometric.nn`` by its dotted name.

Short names: ``logistic`` and ``mlp`` (no edges), ``gcn``, ``gat``, ``sage``, ``gcn-jk`` (an encoder, graph convolutions with
batch norm, all layers read together: neighbours may be unlike a node), ``appnp``, ``gprgnn`` (Chien et al., ICLR 2021: the
weight of every hop is learnt, and may be negative). A dotted name is called with ``in_channels``, ``hidden_channels``,
``num_layers``, ``out_channels`` and ``dropout`` where its signature knows them, then with the given arguments, which win.

Any of them takes sparse features: a ``_SparseRows`` is a tensor that a linear layer reads at the cost of its non-zeros, and of
which dropout removes non-zeros; every other operation sees the dense matrix. So a GCN or a GAT, which begin with a linear map,
never make the n × d matrix.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.nn import functional

from fedgraph.learning.network_shapes import NETWORK_SHAPE_PREFIX, NetworkShape
from fedgraph.learning.tensors import multiply, to_torch_matrix, torch_device

_SHAPE = {  # what may be asked without making the dense matrix
    torch.Tensor.dim, torch.Tensor.size, torch.Tensor.shape.__get__, torch.Tensor.dtype.__get__,  # type: ignore[attr-defined]
    torch.Tensor.device.__get__, torch.Tensor.ndim.__get__, torch.Tensor.requires_grad.__get__, torch.Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
}  # fmt: skip


class _SparseRows(torch.Tensor):
    """float32 [n, d]: CSR of the matrix, of its transpose, and where each non-zero of ``backwards`` is in ``forwards``."""

    forwards: torch.Tensor
    backwards: torch.Tensor
    order: torch.Tensor

    @classmethod
    def __torch_function__(cls, function: Any, kinds: Any, given: Any = (), named: Any = None) -> Any:
        named = named or {}
        if function is functional.linear and isinstance(given[0], _SparseRows):
            rows, weight, bias = (*given, named.get("bias"))[:3]
            with torch._C.DisableTorchFunctionSubclass():  # the backward pass of torch is ten times slower than this one
                found = multiply(rows.forwards, rows.backwards, weight.T)
                return found if bias is None else found + bias
        if function is functional.dropout and isinstance(given[0], _SparseRows):
            share = named.get("p", given[1] if len(given) > 1 else 0.5)
            training = named.get("training", given[2] if len(given) > 2 else True)
            return _dropped(given[0], share) if training and share else given[0]
        if function in _SHAPE:
            return super().__torch_function__(function, kinds, given, named)  # type: ignore[no-untyped-call]
        dense = [g.dense() if isinstance(g, _SparseRows) else g for g in given]
        return function(*dense, **{k: v.dense() if isinstance(v, _SparseRows) else v for k, v in named.items()})

    def dense(self) -> torch.Tensor:
        """float32 [n, d]."""
        with torch._C.DisableTorchFunctionSubclass():
            return self.forwards.to_dense()


def sparse_rows(matrix: sp.csr_array) -> _SparseRows:
    """``matrix`` as a tensor."""
    places = sp.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).T.tocsr().data
    with torch._C.DisableTorchFunctionSubclass():
        forwards, backwards = to_torch_matrix(matrix), to_torch_matrix(sp.csr_array(matrix.T.tocsr()))
        return _joined(forwards, backwards, torch.tensor(places, device=torch_device()))


def _joined(forwards: torch.Tensor, backwards: torch.Tensor, order: torch.Tensor) -> _SparseRows:
    empty = torch.empty(1, device=torch_device()).expand(forwards.shape)  # the shape, and no memory
    found = empty.as_subclass(_SparseRows)
    found.forwards = forwards
    found.backwards = backwards
    found.order = order
    return found


def _dropped(rows: _SparseRows, share: float) -> _SparseRows:
    """Each non-zero is removed with chance ``share`` (torch's global stream, as its own dropout), the others are scaled."""
    with torch._C.DisableTorchFunctionSubclass():
        scale = (torch.rand(rows.order.numel()).to(rows.order.device) >= share) / (1 - share)
        values = rows.forwards.values() * scale
        return _joined(_with_values(rows.forwards, values), _with_values(rows.backwards, values[rows.order]), rows.order)


def _with_values(matrix: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.sparse_csr_tensor(
        matrix.crow_indices(), matrix.col_indices(), values, size=matrix.shape, check_invariants=False
    )


_NUM_HOPS = 10  # of appnp and gprgnn, as published


class Network(nn.Module):
    """[n, c] scores from (x, edges); dropout of the input first.
    Raises ``ValueError``: a dotted name is no network, or does not take its arguments.
    """

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        self.input_dropout = shape.input_dropout
        # no affine part, and no memory of earlier steps: training always sees the same rows
        self.columns = nn.BatchNorm1d(shape.num_features, 1e-8, 1.0, affine=False) if shape.columns else None
        self.reads_edges = shape.model not in ("logistic", "mlp")
        self.body = _dotted(shape) if shape.model.startswith(NETWORK_SHAPE_PREFIX) else _short(shape)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = x if self.columns is None else self.columns(x)
        x = functional.dropout(x, p=self.input_dropout, training=self.training)
        found: torch.Tensor = self.body(x, edges) if self.reads_edges else self.body(x)
        return found


class _Encoded(nn.Module):
    """A linear layer on the features, ReLU and dropout, then a network of torch_geometric on what it gives."""

    def __init__(self, shape: NetworkShape, after: nn.Module) -> None:
        super().__init__()
        self.encoder, self.after, self.dropout = nn.Linear(shape.num_features, shape.hidden), after, shape.dropout

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        rows = functional.dropout(torch.relu(self.encoder(x)), p=self.dropout, training=self.training)
        found: torch.Tensor = self.after(rows, edges)
        return found


class _Spread(nn.Module):
    """Σₖ γₖ Âᵏ MLP(x): fixed γₖ = α(1 − α)ᵏ (APPNP, Klicpera et al., ICLR 2019), or learnt from there (GPR-GNN)."""

    def __init__(self, shape: NetworkShape, learnt: bool, alpha: float = 0.1) -> None:
        super().__init__()
        self.mlp = _mlp(shape)
        gamma = alpha * (1 - alpha) ** torch.arange(_NUM_HOPS + 1, dtype=torch.float32)
        gamma[-1] = (1 - alpha) ** _NUM_HOPS
        self.gamma = nn.Parameter(gamma, requires_grad=learnt)
        self.hop = _torch_geometric().SimpleConv(aggr="sum")

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        rows = self.mlp(x)
        edges, weights = _torch_geometric().conv.gcn_conv.gcn_norm(edges, None, len(rows))
        found = self.gamma[0] * rows
        for gamma in self.gamma[1:]:
            rows = self.hop(rows, edges, weights)
            found = found + gamma * rows
        return torch.as_tensor(found)


def _torch_geometric() -> Any:
    """``torch_geometric.nn``. Its import calls deprecated parts of torch, which is no news to anybody here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module("torch_geometric.nn")


def _mlp(shape: NetworkShape) -> nn.Module:
    return nn.Sequential(
        nn.Linear(shape.num_features, shape.hidden),
        nn.ReLU(),
        nn.Dropout(shape.dropout),
        nn.Linear(shape.hidden, shape.num_classes),
    )


def _short(shape: NetworkShape) -> nn.Module:
    d, h, c = shape.num_features, shape.hidden, shape.num_classes
    if shape.model == "logistic":
        return nn.Linear(d, c)
    if shape.model == "mlp":
        return _mlp(shape)
    pyg = _torch_geometric()  # not before it is used: its import costs more than a short training
    if shape.model == "gcn":
        return pyg.GCN(d, h, 2, c, dropout=shape.dropout)
    if shape.model == "gat":
        network = pyg.GAT(d, h, 2, c, dropout=shape.dropout, act="elu", v2=False, heads=8 if h % 8 == 0 else 1)
        network.convs[-1] = pyg.GATConv(h, c, heads=1, concat=False, dropout=shape.dropout)  # published: Cora, CiteSeer
        return network
    if shape.model == "sage":
        return _Encoded(shape, pyg.GraphSAGE(h, h, 2, c, dropout=shape.dropout))
    if shape.model == "gcn-jk":
        return _Encoded(shape, pyg.GCN(h, h, 2, c, dropout=shape.dropout, norm="BatchNorm", jk="cat"))
    return _Spread(shape, learnt=shape.model == "gprgnn")


def _dotted(shape: NetworkShape) -> nn.Module:
    """``ValueError`` for a name that is no network, or arguments it does not take."""
    module, _, name = shape.model.rpartition(".")
    pyg = _torch_geometric()
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise ValueError(f"{shape.model} does not exist") from None
    if not (inspect.isclass(kind) and issubclass(kind, nn.Module)):
        raise ValueError(f"{shape.model} is not a network (a class of torch.nn.Module)")
    known = inspect.signature(kind).parameters
    own = {
        "in_channels": shape.num_features,
        "hidden_channels": shape.hidden,
        "num_layers": 2,
        "out_channels": shape.num_classes,
        "dropout": shape.dropout,
    }
    if "num_nodes" in known:
        raise ValueError(f"{shape.model} is made for one fixed set of nodes; the asked nodes are others")
    if not {"in_channels", "out_channels"} <= set(known) | set(shape.arguments):
        raise ValueError(f"{shape.model} does not take in_channels and out_channels, so it cannot name classes")
    try:
        basic = issubclass(kind, pyg.models.basic_gnn.BasicGNN)
        taken = {k: v for k, v in own.items() if k in known or (k == "dropout" and basic)}
        found = kind(**taken | dict(shape.arguments))
    except (TypeError, ValueError, AssertionError, KeyError) as error:
        raise ValueError(f"{shape.model} with arguments {dict(shape.arguments)}: {error}") from None
    if not isinstance(found, nn.Module):
        raise ValueError(f"{shape.model} with arguments {dict(shape.arguments)} made a {type(found).__name__}, no network")
    return found


def require_callable_network(model: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a dotted name and arguments of which no network can be made that answers on a tiny graph.
    Raises ``ValueError``: it cannot be made, cannot be called with features and edges, or does not give [nodes, classes].
    """
    with torch.random.fork_rng():
        network = Network(NetworkShape(model, 3, 2, 8, arguments=arguments)).eval()
        edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        try:
            scores = network(torch.eye(3), edges)
        except Exception as error:
            raise ValueError(f"{model} cannot be called with features and edges: {type(error).__name__}: {error}") from None
    if not isinstance(scores, torch.Tensor) or scores.shape != (3, 2):
        raise ValueError(f"{model} gives {getattr(scores, 'shape', type(scores))} for 3 nodes and 2 classes; needed: [3, 2]")
