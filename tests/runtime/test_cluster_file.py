"""``ray_cluster.yaml`` is what Ray itself accepts."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.ray
def test_valid_against_rays_own_schema() -> None:
    import ray.autoscaler

    schema = json.loads((Path(ray.autoscaler.__file__).parent / "ray-schema.json").read_text(encoding="utf-8"))
    cluster = yaml.safe_load((ROOT / "ray_cluster.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(cluster, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**cluster, "no_such_key": 1}, schema)


def test_commands_name_what_the_repository_has() -> None:
    text = (ROOT / "ray_cluster.yaml").read_text(encoding="utf-8")
    assert "constraints.txt" in text
    assert (ROOT / "constraints.txt").exists()
    assert "scenarios/citeseer.yaml" in text
