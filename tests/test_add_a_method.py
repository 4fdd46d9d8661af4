"""docs/add_a_method.md is right: what stands there, installed as it says, is a row of a run and keeps the contract."""

from __future__ import annotations

import csv
import math
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fedgraph import plugins, run

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "add_a_method.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.M | re.S)
    return str(found)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the guide, laid out as pip lays it out in site-packages, and its scenario."""
    home = tmp_path_factory.mktemp("site")
    project = tomllib.loads(block("toml"))["project"]
    (home / "acme_dp.py").write_text(block("python"), encoding="utf-8")
    meta = home / f"acme_dp-{project['version']}.dist-info"
    meta.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (meta / "METADATA").write_text(head, encoding="utf-8")
    ((group, offered),) = project["entry-points"].items()
    (meta / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in offered.items()), "utf-8")
    (home / "means.yaml").write_text(block("yaml"), encoding="utf-8")
    return home


def python(installed: Path, *words: str) -> str:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *words], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def rows(folder: Path) -> list[dict[str, str]]:
    lines = (folder / "results.csv").read_text(encoding="utf-8").splitlines()
    return [row for row in csv.DictReader(lines) if row["metric"] == "accuracy" and "means" in row["method"]]


def test_it_is_a_row_of_a_run(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed))
    plugins.forget()
    try:
        assert run.main([str(installed / "means.yaml"), "--runtime", "serial", "--out", str(tmp_path / "out")]) == 0
    finally:
        monkeypatch.undo()
        sys.modules.pop("acme_dp", None)
        plugins.forget()
    found = rows(tmp_path / "out")
    assert len(found) == 9  # three levels of trust, three ε
    for row in found:
        epsilon, proven = float(row["epsilon"]), float(row["epsilon_provable"])
        assert proven <= epsilon
        assert math.isinf(epsilon) or proven > 0.99 * epsilon
    assert min(float(row["value"]) for row in found if math.isinf(float(row["epsilon"]))) > 0.5
    (page,) = (tmp_path / "out").glob("*.html")
    assert "Noisy class means" in page.read_text(encoding="utf-8"), "the citation that it brings"


def test_it_keeps_the_contract(installed: Path) -> None:
    files = [f"tests/methods/test_{name}.py" for name in ("contract", "situations")]
    told = python(installed, "-m", "pytest", *files, "-n", "0", "-k", "noisy_means", "-m", "not ray and not slow")
    assert int(re.search(r"(\d+) passed", told)[1]) > 6  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.ray("own")
def test_rays_workers_find_it(installed: Path, tmp_path: Path) -> None:
    quick = ["--set", "tasks.0.epsilons=[1]", "--set", "tasks.0.trust=[own-client]"]
    both = {}
    for engine in ("serial", "ray"):
        out = tmp_path / engine
        python(installed, "-m", "fedgraph.run", str(installed / "means.yaml"), "--runtime", engine, "--out", str(out), *quick)
        both[engine] = [row["value"] for row in rows(out)]
    assert both["serial"] == both["ray"]
    assert both["ray"]
