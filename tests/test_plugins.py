"""A file is a plugin, and a misspelt one is suggested."""

from __future__ import annotations

import pytest

from fedgraph import plugins
from fedgraph.errors import ScenarioError


def test_files_are_found_and_furniture_is_not() -> None:
    found = plugins.names("methods")
    assert {"features", "local_dp", "nonprivate"} <= set(found)
    assert not any(name == "base" or name.startswith("_") for name in found)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(ScenarioError, match=r"unknown method 'fetures'; did you mean 'features'\?; allowed: "):
        plugins.load("methods", "fetures")
