"""Both distributions that import as ``fedgraph`` in one environment: one warning says so, and alone ours says nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def said(place: Path) -> str:
    code = f"import sys; sys.path.append({str(place)!r}); import fedgraph; print(fedgraph.__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "fedgraph\n"
    return done.stderr


def test_the_other_fedgraph_is_named_in_one_warning(tmp_path: Path) -> None:
    name = "fedgraph-0.2.5.dist-info"
    (tmp_path / name).mkdir()
    found = said(tmp_path)
    assert found.count("UserWarning") == 1
    assert str(tmp_path / name) in found
    assert "allowed: one of them in an environment" in found


def test_ours_alone_says_nothing(tmp_path: Path) -> None:
    for name in ("fedgraph_privacy-0.4.0.dist-info", "fedgraph_zoo-0.4.0.dist-info", "fedgraph-privacy-0.3.egg-info"):
        (tmp_path / name).mkdir()
    assert said(tmp_path) == ""
    assert said(tmp_path / "nowhere") == ""


def test_the_command_says_so_where_the_other_was_installed_last(tmp_path: Path) -> None:
    (tmp_path / "fedgraph").mkdir()  # the other's front has replaced ours, and the rooms behind it are ours
    (tmp_path / "fedgraph" / "__init__.py").write_text(f"__path__ = [{str(ROOT / 'fedgraph')!r}]\n", encoding="utf-8")
    (tmp_path / "fedgraph-0.2.5.dist-info").mkdir()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from fedgraph.commands import base; base.main(['ls', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("usage: fedgraph ls")
    assert done.stderr.count("UserWarning") == 1
    assert str(tmp_path / "fedgraph-0.2.5.dist-info") in done.stderr
