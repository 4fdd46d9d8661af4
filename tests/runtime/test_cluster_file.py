"""The two cluster files are what Ray itself accepts, and the documented commands work on local raylets."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import processes

ROOT = Path(__file__).parent.parent.parent
FILES = ["ray_cluster.yaml", "ray_cluster_onprem.yaml"]
TINY = """\
name: tiny
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [1]
    trust: [own-client]
    partition: {partition: uniform, clients: 4}
    methods: [{method: features, steps: 3, projection: 16}]
"""
RAY = [sys.executable, "-m", "ray.scripts.scripts"]


@pytest.mark.ray
@pytest.mark.parametrize("name", FILES)
def test_valid_against_rays_own_schema(name: str) -> None:
    import ray.autoscaler

    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text(encoding="utf-8"))
    cluster = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    jsonschema.validate(cluster, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cluster, "no_such_key": 1}, schema)


@pytest.mark.ray
def test_node_types_are_what_rays_autoscaler_reads() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    cluster = yaml.safe_load((ROOT / "ray_cluster.yaml").read_text(encoding="utf-8"))
    validate_config(prepare_config(copy.deepcopy(cluster)))
    kinds = cluster["available_node_types"]
    assert [name for name, kind in kinds.items() if kind["resources"].get("GPU")] == ["gpu_worker"]
    gpus, cpus = kinds["gpu_worker"], kinds["cpu_worker"]
    head = kinds[cluster["head_node_type"]]["resources"]
    most = gpus["max_workers"] * gpus["resources"]["GPU"]
    assert head == {"CPU": 0, "gpus_to_start": most, "cpus_per_gpu_to_start": gpus["resources"]["CPU"]}
    assert gpus["min_workers"] == 0 < cpus["min_workers"], "CPUs are the default"


@pytest.mark.parametrize("name", FILES)
def test_commands_name_what_the_repository_has(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "constraints.txt" in text
    assert (ROOT / "constraints.txt").exists()
    assert "scenarios/citeseer.yaml" in text
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"fedgraph\[(\w+)\]", text)) == {"cluster"} <= set(extras)


def test_the_image_has_the_pinned_ray() -> None:
    (pinned,) = re.findall(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    for name in ("ray_cluster.yaml", "docs/kuberay.yaml", "Dockerfile"):
        found = re.findall(r"rayproject/ray:([\d.]+)-", (ROOT / name).read_text(encoding="utf-8"))
        assert found or name == "docs/kuberay.yaml", name
        assert set(found) <= {pinned}, name


def test_images_and_citation_have_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tags = re.findall(r"REGISTRY/fedgraph[\w-]*:(\S+)", (ROOT / "docs" / "kuberay.yaml").read_text(encoding="utf-8"))
    assert set(tags) == {version}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version


def test_kuberay_page_is_a_cluster_of_three_groups() -> None:
    cluster = yaml.safe_load((ROOT / "docs" / "kuberay.yaml").read_text(encoding="utf-8"))
    (pinned,) = re.findall(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    assert cluster["kind"] == "RayCluster"
    assert cluster["spec"]["rayVersion"] == pinned
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert [g["groupName"] for g in cluster["spec"]["workerGroupSpecs"]] == ["cpu", "gpu"]


def ended(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def two_raylets(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a head and a second raylet with one CPU each; ``--block`` keeps them this test's children."""
    folder = f"{tempfile.gettempdir()}/fg{os.getpid()}"  # tmp_path is too long for Ray's sockets
    env = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS",)}
    env |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    quiet: dict[str, Any] = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = [*RAY, "start", "--head", "--port=6398", "--num-cpus=1", "--dashboard-port=8298", f"--temp-dir={folder}", "--block"]
    head.append("--dashboard-agent-listen-port=52398")  # Ray's own choice is taken where another Ray runs on this machine
    second = [*RAY, "start", "--address=127.0.0.1:6398", "--num-cpus=1", f"--temp-dir={folder}b", "--block"]
    second.append("--dashboard-agent-listen-port=52399")
    started = [subprocess.Popen(head, **quiet)]
    try:
        until = time.monotonic() + 90
        listed = [*RAY, "job", "list", "--address", "http://127.0.0.1:8298"]
        while subprocess.run(listed, check=False, **quiet).returncode and time.monotonic() < until:
            time.sleep(1)
        started.append(subprocess.Popen(second, **quiet))
        yield env
    finally:
        family = processes.family(*(p.pid for p in started))
        for pid in [*(p.pid for p in started), *(pid for pid, _ in family)]:
            ended(pid)
        for process in started:
            process.wait()


@pytest.mark.ray("own")
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("aiohttp_cors") is None, reason="ray job submit needs ray[default]: [cluster]")
def test_job_submit_as_documented(two_raylets: dict[str, str], tmp_path: Path) -> None:
    """The documented line, with this address, this folder and a small scenario."""
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^RAY_AUTH_MODE=token (ray job submit .*)$", text, re.M)
    line = line.replace("ray job submit", " ".join([*RAY, "job", "submit"]))
    tiny = tmp_path / "tiny.yaml"
    tiny.write_text(TINY, encoding="utf-8")
    line = line.replace("http://localhost:8265", "http://127.0.0.1:8298").replace("scenarios/citeseer.yaml", str(tiny))
    line = re.sub(r"--out \S+", f"--out {tmp_path}/out --set runtime.workers=2", line)
    asked: dict[str, Any] = {
        "shell": True,
        "cwd": ROOT,
        "env": two_raylets,
        "capture_output": True,
        "text": True,
        "timeout": 500,
    }
    until = time.monotonic() + 90
    while "No available agent" in (done := subprocess.run(line, check=False, **asked)).stderr and time.monotonic() < until:
        time.sleep(3)  # the head's agent starts after its raylet
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    facts = json.loads((tmp_path / "out" / "environment.json").read_text(encoding="utf-8"))["runtime"]
    assert facts["workers"] == 2
    assert facts["nodes"] == 2
