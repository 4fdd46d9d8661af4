"""No test here may find files by accident: neither the user's cache nor ``FEDGRAPH_DATA`` is seen.

``data_root`` (session scope, tests/conftest.py) is resolved before the variable is hidden.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in the place of the user's cache."""
    if "data_root" in request.fixturenames:
        request.getfixturevalue("data_root")
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.delenv("FEDGRAPH_DATA", raising=False)
    return home / "fedgraph"
