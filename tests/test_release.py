"""What a release holds: the source distribution has what README's commands and links need."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from benchmarks import release

ROOT = Path(__file__).parent.parent


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.whl").touch()
    with pytest.raises(SystemExit, match="is not empty; name another folder"):
        release.build(tmp_path)


@pytest.mark.slow
def test_four_files_are_made_and_the_source_distribution_holds_what_readme_names(tmp_path: Path) -> None:
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    subprocess.run(["tar", "x", "-C", str(source)], input=archive, check=True)
    out.mkdir()
    wheel, sdist, zoo_wheel, _ = release.packed(source, out)
    assert (wheel.name.partition("-")[0], zoo_wheel.name.partition("-")[0]) == ("fedgraph_privacy", "fedgraph_zoo")
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    page = (source / "README.md").read_text(encoding="utf-8")
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", page) if "://" not in link}
    needed = {
        "constraints.txt",
        "zoo/pyproject.toml",
        "tests/conftest.py",
        "scenarios/citeseer.yaml",
        "fedgraph/privacy/desk.py",
    }
    assert {name for name in linked | needed if name} - names == set()
