"""From a file to an answer, as a new user goes: seconds from ``fedgraph new`` to the first screen, on generated own data.

    python -m benchmarks.front_door [--quick] [--python] [NAME …]

For each graph: ``fedgraph new --yes``, ``fedgraph check`` (what it says of the time), ``fedgraph run``. Printed are wall
seconds (goal: 120 s for new and run together on two quiet cores, 30 s for a run with ``--quick``), processor seconds, the ratio
of what check said to what run took, in both (goal: 0.5 … 2), the first sentence of the answer, and the load of the machine.
``--python`` goes the same way by ``fedgraph.compare``. No graph is one of the shipped sets.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MAIN = "import sys; from fedgraph.commands.base import main; sys.exit(main(sys.argv[1:]))"
WORDS = ("red", "green", "blue", "black", "white")


@dataclass(frozen=True, eq=False)
class Made:
    """columns, rows: of features. labels: text, empty where unknown. edges: int [m, 2]."""

    columns: list[str]
    rows: np.ndarray
    labels: list[str]
    edges: np.ndarray

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        table = np.column_stack([np.arange(len(self.labels)).astype(str), self.rows.astype(str)])
        _csv(folder / "features.csv", ["id", *self.columns], table)
        _csv(folder / "labels.csv", ["id", "label"], np.column_stack([table[:, 0], np.array(self.labels)]))
        _csv(folder / "edges.csv", ["source", "target"], self.edges.astype(str))


def _csv(file: Path, head: list[str], rows: np.ndarray) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.write(",".join(head) + "\n")
        out.writelines(",".join(row) + "\n" for row in rows)


def people(n: int, classes: int = 3, degree: float = 4.0, alike: float = 0.7, seed: int = 0) -> Made:
    """Yes/no facts that go with the class, and ties of which a share leads to one's own class."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, classes, n)
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(classes + 1))
    one = rng.integers(0, n, int(n * degree / 2))
    inside = order[np.minimum(starts[of[one]] + (rng.random(one.size) * np.diff(starts)[of[one]]).astype(int), n - 1)]
    two = np.where(rng.random(one.size) < alike, inside, rng.integers(0, n, one.size))
    facts = rng.random((n, 10)) < np.where((np.arange(10)[None] % classes) == of[:, None], 0.55, 0.2)
    edges = np.column_stack([one, two])[one != two]
    return Made([f"fact {k}" for k in range(10)], facts.astype(int), [str(c) for c in of], edges)


def hubs(n: int) -> Made:
    """Half of all ties lead to ten people."""
    made, rng = people(n), np.random.default_rng(1)
    stars = np.column_stack([rng.integers(0, 10, n), rng.integers(10, n, n)])
    return Made(made.columns, made.rows, made.labels, np.concatenate([made.edges, stars]))


def islands(n: int) -> Made:
    """A third of all people know nobody."""
    made = people(n)
    return Made(made.columns, made.rows, made.labels, made.edges[(made.edges >= n // 3).all(axis=1)])


def two_nodes(_: int) -> Made:
    return Made(["a"], np.array([[1], [0]]), ["x", "y"], np.array([[0, 1]]))


def text_labels(n: int) -> Made:
    made = people(n, 5)
    return Made(made.columns, made.rows, [WORDS[int(c)] for c in made.labels], made.edges)


def money(n: int) -> Made:
    """Income, age and a city as text, beside yes/no facts; one income in a hundred is absurd."""
    made, rng = people(n), np.random.default_rng(2)
    of = np.array(made.labels).astype(int)
    income = (rng.lognormal(10, 0.5, n) * (1 + 0.5 * of)).round()
    income[rng.random(n) < 0.01] = 9e9
    city = np.array(["Rome", "Oslo", "Bonn"])[rng.integers(0, 3, n)]
    rows = np.column_stack([income.astype(str), (20 + rng.integers(0, 60, n)).astype(str), city, made.rows[:, :6].astype(str)])
    return Made(["income", "age", "city", *made.columns[:6]], rows, made.labels, made.edges)


def unlabelled(n: int) -> Made:
    """Nine of ten people have no label."""
    made, rng = people(n), np.random.default_rng(3)
    return Made(made.columns, made.rows, [c if rng.random() < 0.1 else "" for c in made.labels], made.edges)


@dataclass(frozen=True, eq=False)
class Many:
    """Small graphs. Half are rings with many chords, whose nodes are mostly of one kind. of: their classes. edges: of each."""

    of: list[str]
    kinds: list[np.ndarray]
    edges: list[np.ndarray]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        nodes = [[f"g{g}", str(i), str(k)] for g, own in enumerate(self.kinds) for i, k in enumerate(own.astype(int))]
        ends = [[f"g{g}", str(a), str(b)] for g, own in enumerate(self.edges) for a, b in own]
        _csv(folder / "nodes.csv", ["graph", "id", "kind"], np.array(nodes))
        _csv(folder / "edges.csv", ["graph", "source", "target"], np.array(ends))
        _csv(folder / "labels.csv", ["graph", "label"], np.array([[f"g{g}", label] for g, label in enumerate(self.of)]))


def many(count: int, seed: int = 0) -> Many:
    """Graphs of 10 to 29 nodes."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, 2, count)
    sizes = rng.integers(10, 30, count)
    kinds = [rng.random(n) < (0.65 if c else 0.35) for n, c in zip(sizes, of, strict=True)]
    edges = [
        np.concatenate(
            [np.column_stack([np.arange(n), (np.arange(n) + 1) % n]), rng.integers(0, n, (int(n * (0.3 + 0.6 * c)), 2))]
        )
        for n, c in zip(sizes, of, strict=True)
    ]
    return Many(["dense" if c else "sparse" for c in of], kinds, edges)


def with_degree(n: int) -> Made:
    """A column that was computed from the edges."""
    made = people(n)
    degree = np.bincount(made.edges.ravel(), minlength=n)
    return Made([*made.columns, "contacts"], np.column_stack([made.rows, degree]), made.labels, made.edges)


GRAPHS: dict[str, tuple[Callable[[int], Made | Many], int]] = {
    "people": (people, 1_500),
    "thirty": (people, 30),
    "two nodes": (two_nodes, 2),
    "hubs": (hubs, 3_000),
    "islands": (islands, 2_000),
    "text labels": (text_labels, 2_000),
    "money": (money, 1_500),
    "unlabelled": (unlabelled, 5_000),
    "contacts": (with_degree, 2_000),
    "unlike neighbours": (lambda n: people(n, alike=0.05), 2_000),
    "200,000": (people, 200_000),
    "five owners": (people, 600),
    "1,000 small graphs": (many, 1_000),
}


def command(*words: str, folder: Path) -> tuple[float, float, str, str]:
    """(wall seconds, processor seconds, what it said, what it said on the way) of one command."""
    began, work = time.monotonic(), dict[int, float]()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with subprocess.Popen([sys.executable, "-c", MAIN, *words], cwd=folder, stdout=out, stderr=err) as running:
            while running.poll() is None:
                work |= seconds_below(running.pid)
                time.sleep(0.5)  # all processes are looked at
        out.seek(0), err.seek(0)
        said, way = out.read(), err.read()
    said = said if running.returncode == 0 else f"exit {running.returncode}: {way.strip().splitlines()[-1:]}"
    return time.monotonic() - began, sum(work.values()), said, way


def in_seconds(number: str, unit: str) -> float:
    return float(number) * (60 if unit == "min" else 1)


def estimates(way: str, took: float) -> str:
    """How well a run said on the way what was left of its ``took`` seconds, as shares of the truth."""
    told = re.findall(r"\[([\d.]+) (s|min)\].*?about ([\d.]+) (s|min) left", way)
    shares = [in_seconds(*one[2:]) / max(took - in_seconds(*one[:2]), 1.0) for one in told]
    return f"; {len(shares)} estimates on the way, {min(shares):.2f} … {max(shares):.2f} of the rest" if shares else ""


def seconds_below(root: int) -> dict[int, float]:
    """Process → its processor seconds so far, of ``root`` and all that it started, workers of Ray included (Linux)."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, fields = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
            parents[pid], seconds[pid] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def below(pid: int) -> bool:
        return pid == root or (pid in parents and below(parents[pid]))

    return {pid: seconds[pid] for pid in parents if below(pid)}


def by_command(name: str, folder: Path, quick: bool) -> str:
    make, size = GRAPHS[name]
    if name == "five owners":
        for k in range(5):
            people(size, seed=k).write(folder / "mine" / f"owner {k}")
    else:
        make(size).write(folder / "mine")
    fast = ["--quick"] if quick else []
    option = "--federation" if name == "five owners" else "--graph"
    drafted = command("new", option, "mine", "--yes", folder=folder)
    if not (folder / "mine.yaml").exists():
        return f"{drafted[0]:5.0f} s  {drafted[2]}"
    checked = command("check", "mine.yaml", *fast, folder=folder)
    ran = command("run", "mine.yaml", "--out", "out", *fast, folder=folder)
    told = re.search(r"about ([\d.]+) (s|min) of one core", checked[2])
    said = f"check/run {in_seconds(*told.groups()) / ran[1]:.2f} in processor seconds" if told else f"check says: {checked[2]}"
    failed = ran[2].startswith("exit ")
    answer = [ran[2]] if failed else command("show", "out", folder=folder)[2].strip().splitlines()
    times = f"{drafted[0]:4.0f} + {ran[0]:4.0f} = {drafted[0] + ran[0]:4.0f} s ({drafted[1] + ran[1]:4.0f} s of processors)"
    return f"{times}, {said}{estimates(ran[3], ran[0])}; {' '.join(answer)[:260]}"


def by_python(name: str) -> str:
    """The same graph in memory, with the methods that a draft would take: arrays, two tables, a list, or a federation."""
    import pandas as pd
    import scipy.sparse as sp

    make, size = GRAPHS[name]
    made = make(size)
    if isinstance(made, Many):
        return _compared(_networks(made), None)
    if name == "five owners":
        from fedgraph import data

        with tempfile.TemporaryDirectory() as folder:
            for k in range(5):
                people(size, seed=k).write(Path(folder) / "mine" / f"owner {k}")
            return _compared(data.load("own/federation", path=Path(folder) / "mine"), ["features", "label_hop"])
    labels = [c if c else None for c in made.labels]
    if made.rows.dtype.kind == "U":
        nodes = pd.DataFrame(made.rows, columns=made.columns).assign(label=labels)
        edges = pd.DataFrame(made.edges, columns=["source", "target"])
        return _compared((nodes, edges), ["features", "label_hop"], columns={"text": "one-hot"})
    n = len(made.labels)
    arcs = sp.coo_array((np.ones(len(made.edges)), (made.edges[:, 0], made.edges[:, 1])), shape=(n, n))
    return _compared((arcs, made.rows.astype(float), labels), ["features", "label_hop"])


def _compared(given: Any, methods: list[str] | None, **more: Any) -> str:
    import fedgraph

    began, used = time.monotonic(), time.process_time()
    run = fedgraph.compare(given, methods, [1, 8], ["curator"], protocol="asking", name="mine", **more)
    took = f"{time.monotonic() - began:4.0f} s ({time.process_time() - used:4.0f} s of processors) by compare"
    return f"{took}; {' '.join(run.answer.splitlines())[:200]}"


def _networks(made: Many) -> list[Any]:
    import networkx as nx

    graphs = []
    for label, kinds, edges in zip(made.of, made.kinds, made.edges, strict=True):
        graph = nx.Graph(y=label)
        graph.add_nodes_from((node, {"x": [float(kind)]}) for node, kind in enumerate(kinds))
        graph.add_edges_from(edges.tolist())
        graphs.append(graph)
    return graphs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(GRAPHS)}")
    parser.add_argument("--quick", action="store_true", help="run the drafts with --quick")
    parser.add_argument("--python", action="store_true", help="by fedgraph.compare instead of the commands")
    options = parser.parse_args()
    if unknown := set(options.names) - set(GRAPHS):
        parser.error(f"unknown: {', '.join(unknown)}")
    for name in options.names or GRAPHS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = by_python(name) if options.python else by_command(name, Path(folder), options.quick)
            except Exception as error:  # the others go on
                said = f"{type(error).__name__}: {error}"
        print(f"{name:<18} {said}  [load {os.getloadavg()[0]:.1f}]", flush=True)


if __name__ == "__main__":
    main()
