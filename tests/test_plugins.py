"""A file is a plugin, and a misspelt one is suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedgraph.partition
from fedgraph import plugins
from fedgraph.errors import ScenarioError


def test_files_are_found_and_furniture_is_not() -> None:
    found = plugins.names("methods")
    assert {"features", "local_dp", "nonprivate"} <= set(found)
    assert not any(name == "base" or name.startswith("_") for name in found)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(ScenarioError, match=r"unknown method 'fetures'; did you mean 'features'\?; allowed: "):
        plugins.load("methods", "fetures")


@pytest.mark.parametrize("package", plugins.PLUGIN_CONTRACTS)
def test_every_file_holds_the_contract_of_its_room(package: str) -> None:
    for name in plugins.names(package):
        plugins.load(package, name)


def test_a_file_that_lacks_a_part_is_named_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stripes.py").write_text("class Params: ...\n", encoding="utf-8")
    monkeypatch.setattr(fedgraph.partition, "__path__", [*fedgraph.partition.__path__, str(tmp_path)])
    plugins.names.cache_clear()
    try:
        with pytest.raises(ScenarioError, match="fedgraph/partition/stripes lacks PARTITION"):
            plugins.load("partition", "stripes")
    finally:
        monkeypatch.undo()
        plugins.names.cache_clear()
