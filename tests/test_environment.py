"""What is promised of an environment: which Pythons install it, what is imported, and what is compiled."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from fedgraph import compiled
from fedgraph.errors import DataError, RuntimeFailure
from fedgraph.types import Graph, Partition, Subgraph

HOME = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    name.lower(): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)$", (HOME / "constraints.txt").read_text(encoding="utf-8"), re.M)
}


def promised() -> list[str]:
    """The Pythons of the README's range, such as 3.11."""
    found = re.search(r"Python 3\.(\d+) to 3\.(\d+)", (HOME / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    return [f"3.{minor}" for minor in range(int(found[1]), int(found[2]) + 1)]


def test_readme_and_classifiers_name_the_same_pythons() -> None:
    assert [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c] == promised()
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(f"{python}.0") for python in promised())


def test_no_pin_excludes_a_python_that_the_readme_promises() -> None:
    """Of what is installed here in the version that is pinned; of others nothing is known."""
    known = 0
    for installed in importlib.metadata.distributions():
        name = installed.metadata["Name"].lower()
        if PINS.get(name) == installed.version.partition("+")[0]:
            known += 1
            allowed = SpecifierSet(installed.metadata["Requires-Python"] or "")
            assert [python for python in promised() if not allowed.contains(f"{python}.9")] == [], name
    if not known:
        pytest.skip("nothing is installed here in the version that is pinned")


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    for needed in map(Requirement, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]):
        assert needed.specifier.contains(PINS[needed.name.lower()]), needed


def test_a_long_tmpdir_gives_ray_a_short_folder_or_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from fedgraph.runtime.ray import cluster

    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert cluster.folder_of_sockets() is None
    monkeypatch.setenv("TMPDIR", f"/{'x' * 100}")
    found = cluster.folder_of_sockets()
    assert found is not None
    assert len(found) < 60
    monkeypatch.setenv("RAY_TMPDIR", f"/{'y' * 60}")
    with pytest.raises(RuntimeFailure, match="RAY_TMPDIR has 61 characters"):
        cluster.folder_of_sockets()


LISTED = """
import sys
import fedgraph.run, fedgraph.runs.experiment, fedgraph.runtime, fedgraph.plugins as plugins
for room in ("methods", "tasks"):
    for name in plugins.names(room):
        plugins.load(room, name)
print(*sorted(sys.modules))
"""


def python(code: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def test_every_method_and_task_is_listed_without_what_computes() -> None:
    late = "torch torch_geometric numba sklearn ot networkx pandas altair ray dp_accounting"
    loaded = python(LISTED)[0].split()
    assert {"fedgraph.methods.features", "fedgraph.tasks.graph_clustering"} < set(loaded)
    assert not set(late.split()) & set(loaded)


def test_the_other_distribution_that_imports_as_fedgraph_is_named_in_one_warning(tmp_path: Path) -> None:
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import fedgraph; print(fedgraph.__name__)"
    for name in ("fedgraph_privacy-0.4.0.dist-info", "fedgraph_zoo-0.4.0.dist-info", "fedgraph-privacy-0.3.egg-info"):
        (tmp_path / name).mkdir()
    assert python(code) == ("fedgraph\n", "")
    (tmp_path / "fedgraph-0.2.5.dist-info").mkdir()
    (tmp_path / "fedgraph").mkdir()  # the other's front has replaced ours, and the rooms behind it are ours
    (tmp_path / "fedgraph" / "__init__.py").write_text(f"__path__ = [{str(HOME / 'fedgraph')!r}]\n", encoding="utf-8")
    there = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from fedgraph.commands import base; base.main(['ls', '--help'])"
    )
    for asked, printed in ((code, "fedgraph\n"), (there, "usage: fedgraph ls")):
        out, found = python(asked)
        assert out.startswith(printed)
        assert found.count("UserWarning") == 1
        assert str(tmp_path / "fedgraph-0.2.5.dist-info") in found
        assert "allowed: one of them in an environment" in found


def test_what_is_compiled_lies_in_the_users_cache_and_one_process_compiles_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not numba.config.CACHE_DIR or not Path(numba.config.CACHE_DIR).is_relative_to(Path(compiled.__file__).parent)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    done = threading.Event()

    def second() -> None:
        with compiled.one_process_at_a_time("room.loop"):
            done.set()

    waiting = threading.Thread(target=second)
    with compiled.one_process_at_a_time("room.loop"), compiled.one_process_at_a_time("room.other"):
        waiting.start()
        assert not done.wait(0.2)
        with compiled.one_process_at_a_time("room.loop", patience=0.1):
            pass  # one that was stopped holds nobody up
    waiting.join(5.0)
    assert done.is_set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.zeros(3, dtype=np.int64)}, "do not describe the same nodes"),
        ({"features": sp.csr_array((3, 240), dtype=np.float32)}, "do not describe the same nodes"),
        ({"num_classes": 2}, "allowed: 0 … 1, or -1"),
    ],
)
def test_graphs_refuse_to_be_inconsistent(library: Graph, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        dataclasses.replace(library, **change)


def test_an_induced_graph_keeps_edges_among_the_chosen_and_holdings_count_every_client(library: Graph) -> None:
    nodes = np.array([5, 3, 200, 17])
    small, expected = library.induced(nodes), library.adjacency.toarray()[np.ix_(nodes, nodes)]
    assert np.array_equal(small.adjacency.toarray(), expected)
    assert np.array_equal(small.labels, library.labels[nodes])
    held = [np.array([0, 1]), np.array([1, 2, 5])]
    parts = tuple(Subgraph(i, library.induced(nodes), nodes) for i, nodes in enumerate(held))
    partition = Partition(parts, False, 0, "test", from_edges=False, from_labels=False)
    assert partition.holdings(300).sum(axis=0)[:6].tolist() == [1, 2, 1, 0, 0, 1]
