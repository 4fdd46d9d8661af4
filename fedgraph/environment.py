"""What a run was made with: versions, devices, seed, data checksums. Enough to repeat it."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

import torch

from fedgraph.types import Graph, GraphCollection

PACKAGES = (
    "fedgraph-privacy", "ray", "torch", "torch-geometric", "POT", "numpy", "scipy", "pydantic", "dp-accounting", "numba",
    "scikit-learn", "igraph", "matplotlib",
)  # fmt: skip


def describe(seed: int, graphs: list[Graph | GraphCollection], runtime: dict[str, Any]) -> dict[str, Any]:
    """The content of ``environment.json``."""
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "platform": f"{platform.system()} {platform.machine()}",
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] or ["cpu"],
        "runtime": runtime,
        "seed": seed,
        "data": [{"name": g.name, "source": g.provenance.source, "sha256": g.provenance.checksums} for g in graphs],
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
