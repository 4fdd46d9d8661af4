"""What a run was made with: versions, devices, seed, data checksums. Enough to repeat it."""

import importlib.metadata
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fedgraph.cells.environment import DataSource, Environment, Making, notice_of
from fedgraph.types import Graph, GraphCollection

PACKAGES = (
    "fedgraph-privacy", "ray", "torch", "torch-geometric", "POT", "numpy", "scipy", "pydantic", "dp-accounting", "numba",
    "scikit-learn", "igraph", "matplotlib",
)  # fmt: skip

GPU_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def describe(
    seed: int | str, graphs: Sequence[Graph | GraphCollection], runtime: Mapping[str, object], began: float, cells: int
) -> Environment:
    """What ``environment.json`` says of a run that this process made.

    Args:
        seed: the root seed, or ``secret``.
        graphs: its data sets.
        runtime: as the engine describes itself.
        began: ``time.time()`` at its start.
        cells: how many the scenario asks for.
    """
    return Environment(
        versions={"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        platform=f"{platform.system()} {platform.machine()}",
        devices=_devices(),
        runtime=runtime,
        seed=seed,
        data=tuple(DataSource(g.name, g.provenance.source, g.provenance.checksums) for g in graphs),
        made=Making(
            version=_version("fedgraph-privacy"),
            commit=_commit(),
            command=" ".join([_program(), shlex.join(sys.argv[1:])]).strip(),
            finished=time.strftime("%Y-%m-%d %H:%M:%S %z"),
            seconds=round(time.time() - began, 1),
        ),
        cells=cells,
        notice=notice_of(graphs),
    )


def _devices() -> tuple[str, ...]:
    """GPUs that torch can use here, else the CPU. Where no driver of one is there nobody asks, since asking imports torch."""
    if sys.platform == "linux" and not any(Path(driver).exists() for driver in GPU_DRIVERS):
        return ("cpu",)
    import torch

    return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())) or ("cpu",)


def _program() -> str:
    """What was typed before the options."""
    started = Path(sys.argv[0])
    modules = {"run.py": "python -m fedgraph.run", "__main__.py": "python -m fedgraph", "__init__.py": "python -m fedgraph"}
    return modules.get(started.name, started.name)


def _commit() -> str:
    """The commit of the source that runs, and whether it was changed since; empty where it is no git checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        asked = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
