"""The cluster files are what Ray itself accepts, and name one version."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
FILES = ["ray_cluster.yaml", "ray_cluster_onprem.yaml"]


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


def test_every_file_has_the_pinned_ray_and_the_version_of_the_package() -> None:
    (pinned,) = re.findall(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    for name in ("ray_cluster.yaml", "Dockerfile"):
        assert set(re.findall(r"rayproject/ray:([\d.]+)-", (ROOT / name).read_text(encoding="utf-8"))) == {pinned}, name
    text = (ROOT / "docs" / "kuberay.yaml").read_text(encoding="utf-8")
    spec = yaml.safe_load(text)["spec"]
    assert spec["rayVersion"] == pinned
    assert spec["authOptions"] == {"mode": "token"}, "Ray's head asks for a token, and a worker without it cannot join"
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"REGISTRY/fedgraph[\w-]*:(\S+)", text)) == {project["version"]}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == project["version"]
    for name in FILES:
        assert set(re.findall(r"fedgraph\[(\w+)\]", (ROOT / name).read_text(encoding="utf-8"))) == {"cluster"}
    assert "cluster" in project["optional-dependencies"]
