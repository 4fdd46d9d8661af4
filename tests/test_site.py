"""The documentation: it builds without a network and without a warning, and every method has its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedgraph import plugins

ROOT = Path(__file__).parent.parent


def test_every_method_has_a_page_that_the_table_names() -> None:
    table, site = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/choose.md", "mkdocs.yml"))
    for name in plugins.own_names("methods"):
        page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
        for part in ("**Idea.**", "**Guarantee.**", "**What we found.**", "**Reference.**"):
            assert part in page, name
        assert f"(methods/{name}.md)" in table
        assert f"methods/{name}.md" in site


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the documentation is built where the extra 'docs' is installed")
    pytest.importorskip("material")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-q",
        "-f",
        str(ROOT / "mkdocs.yml"),
        "-d",
        str(tmp_path / "site"),
    ]
    settings = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=settings, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Start here in ten minutes" in start
    assert "fonts.googleapis" not in start
