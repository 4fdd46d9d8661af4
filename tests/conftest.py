"""How the suite is dealt to processes, and what its tests share: a small graph, the real data where it is, one Ray."""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:  # the process that only deals tests to others starts without the package
    from fedgraph.runtime.base import Runtime
    from fedgraph.types import Graph

MOST_PROCESSES = 4
SELDOM = (20_000, 20, 20)  # thresholds of ``gc``: a test makes many objects and few circles
# Files that share what was trained or read: one run for all of a folder; every method in its situations, serially and under
# Ray; the syntax tree of every module.
TOGETHER = {
    "tests/export/": "tests/export",
    "tests/models/": "tests/models",
    "tests/methods/test_contract.py": "ray",
    "tests/methods/test_situations.py": "ray",
    "tests/test_randomness.py": "tests/test_architecture.py",
}
# Rooms with files that take more than five seconds, the longest first; files of a few seconds fill up what is left.
LONG = tuple(f"tests/{room}" for room in ("export", "models", "methods", "comparison", "tasks", "runs", "scenario", "mutants",
                                          "test_library", "commands", "attacks", "data"))  # fmt: skip
# Only tests that say so (``dataset``) see the real data, so that all others pass on a machine without.
REAL_DATA = "FEDGRAPH_TEST_DATA"
if "FEDGRAPH_DATA" in os.environ:
    os.environ[REAL_DATA] = os.environ.pop("FEDGRAPH_DATA")
# Compiled once, by whoever is first, and not by each of the many processes that tests start, whatever this machine's setting.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A slow machine is no fault, and nothing fails by chance: the same examples each time, new ones by --hypothesis-profile=search.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("same")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process for each core where the whole suite is asked for; where files are named, this process alone."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or cores == 1:
        return 0
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the processes share the cores
    return min(cores, MOST_PROCESSES)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting imports stays to the end: Python looks for garbage neither meanwhile nor among it later, and seldom."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*SELDOM)
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, which it does once
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the items: a file stays in one process, and everything that uses Ray, a fixed port or a kill in one, too.

    Ray's come first, then files with slow tests, then the rooms whose files take longest, so that no process is left with a
    long one at the end. ``FEDGRAPH_QUALITY`` (``.ci/changed.py`` prints it) names the rooms whose tests of quality are wanted.
    """
    unwanted = [item for item in items if not _is_wanted(item, os.environ.get("FEDGRAPH_QUALITY", "all"))]
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]
    slow = {item.path for item in items if item.get_closest_marker("slow") and "not slow" not in config.option.markexpr}
    for item in items:
        item.add_marker(pytest.mark.xdist_group("ray" if item.get_closest_marker("ray") else _group(item)))
    items.sort(key=lambda item: (_rays_turn(item), item.path not in slow, _rooms_turn(item)))


def _is_wanted(item: pytest.Item, rooms: str) -> bool:
    """Whether the item is no test of quality, or one of these ``rooms`` (or ``all`` of them); it may name its own by a call."""
    marker = item.get_closest_marker("quality")
    if marker is None or rooms == "all":
        return True
    own = {room for given in marker.args for room in (given() if callable(given) else (given,))}
    return not own.isdisjoint(rooms.split(","))


def _group(item: pytest.Item) -> str:
    """Its file; or that of the files with which it shares what was trained."""
    file = item.nodeid.partition("::")[0]
    return next((group for start, group in TOGETHER.items() if file.startswith(start)), file)


def _rooms_turn(item: pytest.Item) -> int:
    """Where its room stands in ``LONG``; what is not there comes last."""
    return next((k for k, room in enumerate(LONG) if item.nodeid.startswith(room)), len(LONG))


def _rays_turn(item: pytest.Item) -> int:
    """0 for the tests that share one Ray, 1 for those that start or kill their own, 2 for the others."""
    marker = item.get_closest_marker("ray")
    return 2 if marker is None else int("own" in marker.args)


class _SameSecrets:
    """Stands where the keys of ``seed: secret`` are drawn: they are the same in every run of a test, and of a fixture.

    Each run of a test would have other noise, and one in so many thousands would fail. Other processes draw what they draw.
    """

    def __init__(self) -> None:
        self._rng = random.Random()

    def begin(self, name: str) -> None:
        """What ``name`` draws begins anew, whatever was drawn before: secret keys, and torch's own numbers."""
        self._rng.seed(name)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(0)

    def urandom(self, count: int) -> bytes:
        return self._rng.randbytes(count)


_SECRETS = _SameSecrets()


@pytest.fixture(scope="session", autouse=True)
def _same_secrets() -> Iterator[None]:
    from fedgraph import seeds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeds, "os", _SECRETS)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """A fixture of many tests is the same whichever asks first."""
    if fixturedef.scope != "function":
        _SECRETS.begin(f"{fixturedef.baseid} {fixturedef.argname}")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    _SECRETS.begin(item.nodeid)
    return (yield)


class OneRay:
    """The Ray that all tests of a session share; it starts when the first one asks."""

    def __init__(self) -> None:
        self._engine: Runtime | None = None

    def engine(self) -> Runtime:
        from fedgraph import runtime
        from fedgraph.errors import RuntimeFailure

        for tries in range(5):  # Ray gives its processes 30 seconds, which a busy machine may need for others
            try:
                self._engine = self._engine or runtime.start("ray", workers=2)
                break
            except RuntimeFailure as error:
                if tries == 4 or "timed out during startup" not in str(error):
                    raise
        assert self._engine is not None
        return self._engine

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None


_ONE_RAY = OneRay()


@pytest.fixture(scope="session")
def one_ray() -> Iterator[OneRay]:
    yield _ONE_RAY
    _ONE_RAY.close()


@pytest.fixture
def ray_engine(one_ray: OneRay, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """Two workers, shared by the session. A test that starts or kills workers is marked ``ray("own")`` and asks for none."""
    engine = one_ray.engine()
    share, shared = engine.share, dict[Any, Any]()

    def noted(key: Any, value: object) -> Any:
        shared[key] = share(key, value)
        return shared[key]

    monkeypatch.setattr(engine, "share", noted)
    yield engine
    for handle in shared.values():  # the next test may share another value under the same name
        engine.forget(handle)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before a test with a Ray of its own, and before its module's fixtures, the shared one ends: they compete for the CPUs."""
    marker = item.get_closest_marker("ray")
    if marker is not None and "own" in marker.args:
        _ONE_RAY.close()


@pytest.fixture(autouse=True)
def _real_data(request: pytest.FixtureRequest) -> None:
    """A test of real data finds them under their names, or is skipped."""
    if request.node.get_closest_marker("dataset") is not None:
        root = request.getfixturevalue("data_root")
        request.getfixturevalue("monkeypatch").setenv("FEDGRAPH_DATA", str(root))


@pytest.fixture(scope="session")
def library() -> Graph:
    """The graph that ships with fedgraph: 300 nodes, 4 classes."""
    from fedgraph import data
    from fedgraph.types import Graph

    graph = data.load("embedded/library")
    assert isinstance(graph, Graph)
    return graph


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real data; skips, with the reason, where there is none."""
    named = os.environ.get(REAL_DATA, "")
    if not named or not Path(named).is_dir():
        pytest.skip("set FEDGRAPH_DATA to a folder with data in PyG's raw layout to run this test")
    return Path(named)
