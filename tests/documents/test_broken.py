# ruff: noqa: PT017 (an input may be sound, so an error is allowed and not expected)
"""Broken scenarios and files, drawn by hypothesis: each gives one line or is right, and nothing else."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fedgraph.data
from fedgraph import data
from fedgraph.errors import DataError, ScenarioError
from fedgraph.scenario import read

SCENARIOS = sorted((Path(fedgraph.__file__).parents[1] / "scenarios").glob("*.yaml"))
LIBRARY = (Path(fedgraph.data.__file__).parent / "library.npz").read_bytes()
CSV = {"features.csv": b"a,1,2\nb,2,3\nc,0,1\n", "edges.csv": b"a,b\nb,c\n", "labels.csv": b"a,x\nb,y\nc,x\n"}
WITHOUT_A_METHOD = """\
name: x
datasets: [{name: embedded/library}]
tasks:
  - {task: node_classification, epsilons: [1], trust: [curator], methods: [{}]}
"""
ODD: list[Any] = [
    True, False, None, -1, 0, 10**12, 10**400, 1e-300, 1e300, float("inf"), float("-inf"), float("nan"), "", " ", "inf", "1e-6",
    "a/b", "..", "\u0000", "é" * 300, [], [[]], [1, 1], {}, {"a": 1}, {"method": "gcon"}, {"partition": "ego"},
]  # fmt: skip
SHORT = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key and entry inside ``value``."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(*at, k) for k, _ in inside] + [p for k, v in inside for p in places(v, (*at, k))]


@st.composite
def broken_scenarios(draw: st.DrawFn) -> str:
    """A shipped scenario with one to three places replaced, dropped or doubled, or its text cut or overwritten."""
    text = draw(st.sampled_from(SCENARIOS)).read_text(encoding="utf-8")
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(text)))
        return text[:at] + draw(st.sampled_from(["", "\t", "[", "{", "*", "&a ", "!!", "\x01", ": :", "- ", "%", "\ud800"]))
    content = copy.deepcopy(yaml.safe_load(text))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(content)))
        holder = content
        for part in path:
            holder = holder[part]
        how = draw(st.sampled_from(["odd", "drop", "double", "typo"]))
        if how == "odd":
            holder[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif how == "drop":
            del holder[last]
        elif how == "typo" and isinstance(holder, dict):
            holder[f"{last}x"] = holder.pop(last)
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
    return yaml.safe_dump(content, allow_unicode=True)


@st.composite
def broken_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """Cut, overwritten, doubled, or with bytes put in."""
    at, junk = draw(st.integers(0, max(len(whole) - 1, 0))), draw(st.binary(max_size=40))
    over = whole[:at] + junk + whole[at + len(junk) :]
    return draw(st.sampled_from([whole[:at], over, whole[:at] + junk + whole[at:], whole + whole, junk]))


@SHORT
@example(WITHOUT_A_METHOD)
@given(broken_scenarios())
def test_scenarios(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            read.from_file(path)
        except ScenarioError as error:
            assert str(error).startswith(f"{path}"), error
            assert "\n" not in str(error)
            assert len(str(error)) < 2000


@SHORT
@given(broken_bytes(LIBRARY))
def test_npz(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        path.write_bytes(content)
        try:
            graph = data.load("own/npz", path=path)
        except DataError as error:
            assert str(path) in str(error)
        else:
            assert (graph.num_nodes, graph.num_edges) == (300, 720)  # type: ignore[union-attr]


@SHORT
@given(st.sampled_from(sorted(CSV)).flatmap(lambda name: st.tuples(st.just(name), broken_bytes(CSV[name]))))
def test_csv(pair: tuple[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, whole in {**CSV, pair[0]: pair[1]}.items():
            (Path(folder) / name).write_bytes(whole)
        try:
            data.load("own/csv", path=folder)
        except DataError as error:
            assert folder in str(error)
