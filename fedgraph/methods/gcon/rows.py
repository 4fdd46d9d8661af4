"""The rows X of GCON: the output of its encoder for each node, scaled to norm at most 1. Only public data enter."""

from dataclasses import dataclass

import numpy as np

from fedgraph.learning.optimisers import public_training as public
from fedgraph.learning.propagation.aggregation import unit_length
from fedgraph.methods.gcon.params import Params
from fedgraph.types import Graph


@dataclass(frozen=True, eq=False)
class Encoded:
    """parameters: of the encoder, flat float32. mean: of the rows of the public nodes [h], where it is taken off."""

    parameters: np.ndarray
    mean: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Memory:
    """Of the server: the encoder (``of_new`` encodes other nodes with it), and the rows X of all nodes, float64 [n, h]."""

    encoder: Encoded
    rows: np.ndarray


def _encoder(params: Params) -> public.Encoder:
    return public.Encoder(params.encoder, params.hidden, params.folds, public.Fitting(params.epochs, 0.01, 5e-4))


def of_public(attributes: Graph, params: Params) -> tuple[np.ndarray, Encoded]:
    """(X of every public node, float64 [n, h]; what ``of_new`` needs).

    Hidden units are positive, so unit rows of them are much alike: ``centred`` subtracts their mean over these nodes, whose
    features are public, and scales again.
    """
    encoded = public.encode(attributes, _encoder(params))
    mean = encoded.own.mean(axis=0) if params.encoder == "hidden" and params.centred else None
    return _scaled(encoded.own, mean), Encoded(encoded.parameters, mean)


def of_new(encoded: Encoded, params: Params, graph: Graph) -> np.ndarray:
    """X of the nodes of another public graph with the same features."""
    return _scaled(public.rows_of(encoded.parameters, _encoder(params), graph), encoded.mean)


def _scaled(rows: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
    """Norm 1 where a mean was taken off; else scaled down where it is above 1."""
    out = np.asarray(rows if mean is None else unit_length(rows - mean), dtype=np.float64)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1.0)
