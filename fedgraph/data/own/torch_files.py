"""A graph that PyTorch wrote as a plain dictionary of tensors; nothing is unpickled."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError

if TYPE_CHECKING:
    import torch


def read(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray, sp.csr_array, np.ndarray, dict[int, str]]:
    """(sources, targets, features, labels, row → part) of ``torch.save(data.to_dict(), file)``; nothing is unpickled.

    Reads ``x`` [n, d], ``edge_index`` [2, m], ``y`` [n] (−1 where unknown) and, where they are there, ``train_mask``,
    ``val_mask``, ``test_mask``. Raises ``DataError`` naming the file and the key.
    """
    import pickle
    import warnings

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a pickle that is refused in the next line
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError, AttributeError) as error:
        hint = "write torch.save(data.to_dict(), file)"
        raise DataError(f"{name}: refused, it is not a plain dictionary of tensors; {hint}") from error
    if not isinstance(found, dict):
        raise DataError(f"{name}: holds {type(found).__name__}; allowed: data.to_dict() of a PyG Data")
    missing = [key for key in ("x", "edge_index", "y") if not isinstance(found.get(key), torch.Tensor)]
    if missing:
        raise DataError(f"{name}: no tensor {', '.join(missing)}; found: {', '.join(map(str, found)) or 'nothing'}")
    x, arcs, y = (_plain(found[key], f"{name}: {key}", dense=key != "x") for key in ("x", "edge_index", "y"))
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise DataError(f"{name}: y has shape {tuple(y.shape)}; allowed: one whole number per node, [n]")
    y = y.reshape(-1)
    n = y.numel()
    if x.ndim != 2 or x.shape[0] != n or n == 0:
        raise DataError(f"{name}: x has shape {tuple(x.shape)} for {n} labels; allowed: [{n}, features]")
    if arcs.ndim != 2 or arcs.shape[0] != 2 or arcs.is_floating_point():
        shape = f"shape {tuple(arcs.shape)} and type {arcs.dtype}"
        raise DataError(f"{name}: edge_index has {shape}; allowed: whole numbers [2, m]")
    if arcs.numel() and (int(arcs.min()) < 0 or int(arcs.max()) >= n):
        wrong = int(arcs.min()) if int(arcs.min()) < 0 else int(arcs.max())
        raise DataError(f"{name}: edge_index names node {wrong}; allowed: 0 … {n - 1}")
    if y.is_floating_point() or int(y.min()) < -1:
        raise DataError(f"{name}: y has type {y.dtype}, the least is {y.min():g}; allowed: whole numbers, -1 where unknown")
    split: dict[int, str] = {}
    for key, part in (("train_mask", "train"), ("val_mask", "validation"), ("test_mask", "test")):
        mask = found.get(key)
        if mask is None:
            continue
        if not isinstance(mask, torch.Tensor) or mask.shape != (n,) or mask.dtype != torch.bool:
            shape = f"{tuple(mask.shape)} of {mask.dtype}" if isinstance(mask, torch.Tensor) else type(mask).__name__
            raise DataError(f"{name}: {key} is {shape}; allowed: true or false for each of the {n} nodes, one split")
        for row in mask.nonzero().reshape(-1).tolist():
            if row in split:
                raise DataError(f"{name}: node {row} is in {split[row]} and in {part}; allowed: one part")
            split[row] = part
    pair = arcs.numpy().astype(np.int64)
    dense = x.to_dense() if x.layout is not torch.strided else x
    features = sp.csr_array(dense.to(torch.float32).numpy())
    return pair[0], pair[1], features, y.numpy().astype(np.int64), split


def _plain(given: torch.Tensor, name: str, dense: bool) -> torch.Tensor:
    """Without its gradient. ``DataError`` for complex numbers, and where ``dense``, for a sparse tensor."""
    import torch

    if given.is_complex() or (dense and given.layout is not torch.strided):
        raise DataError(f"{name} is {given.dtype}, {given.layout}; allowed: a dense tensor of real numbers")
    return given.detach()
