"""The report of a run, at its end and where it is broken off; and what the run was made with."""

from __future__ import annotations

import contextlib
import functools
import html
import importlib
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph import plugins
from fedgraph.cells import Cell, Environment, EnvironmentMaking, EnvironmentSource, Result, environment, portable, store
from fedgraph.runs.console import Console
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.runtime import Runtime
from fedgraph.scenario import ReadyScenario
from fedgraph.types import Graph, GraphCollection

if TYPE_CHECKING:
    from fedgraph.report import SectionRecords

_PACKAGES = (
    "fedgraph-privacy", "ray", "torch", "torch-geometric", "POT", "numpy", "scipy", "pydantic", "dp-accounting", "numba",
    "scikit-learn", "igraph", "altair", "vl-convert-python",
)  # fmt: skip

_GPU_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_TIMES = {"seconds", "clients_busy", "server_busy"}  # of ``RuntimeCount``
_FIRST_SAID = (
    "UNFINISHED RUN: this page was written when the run began. While it goes on, and after it was broken off, "
    "“fedgraph show {0}” prints what the finished cells say. The same command with “--resume {0}” (without --out) computes the "
    "others. When the run ends, its results stand here."
)
_FIRST_STYLE = "body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}p{font-weight:600}"


@dataclass(eq=False)
class Reporting:
    """What a report is made of."""

    ready: ReadyScenario  # the scenario
    graphs: Sequence[Graph | GraphCollection]  # its data sets
    out: Path  # the folder of the run
    text: str  # the scenario as it was read
    stages: Sequence[ScheduledStage]  # every cell
    kept: store.CellStore  # the finished ones
    where: Mapping[str, object]  # how the engine describes itself
    began: float  # ``time.time()`` at the start
    plans: Mapping[Cell, Mapping[str, object]] = field(default_factory=dict)  # row → what it declared, for ``outside``

    def environment(self) -> Environment:
        """As it is now: how long the run has taken, and how many cells it asks for."""
        cells = sum(len(stage.cells) for stage in self.stages)
        found = _describe_process(self.ready.scenario.seed, self.graphs, self.where, self.began, cells)
        found = replace(found, quick=self.ready.quick)
        return _without_times(found) if self.hides_times else found

    @property
    def hides_times(self) -> bool:
        """Whether a row chooses its settings: how long that took would tell how many trials there were, which is secret."""
        specs = (spec for stage in self.stages for spec in stage.task.params.model_dump().get("methods", ()))
        return any("select" in spec for spec in specs)

    def hide_times(self) -> None:
        """Let every file be as old as the beginning, where ``hides_times``: the last thing that a run does."""
        for file in (*self.out.rglob("*"), self.out) if self.hides_times else ():
            os.utime(file, (self.began, self.began))

    def write_environment(self) -> None:
        """Before the first cell, so that the folder can be read at any time."""
        text = json.dumps(portable(asdict(self.environment())), indent=1, ensure_ascii=False) + "\n"
        store.write_atomically(self.out / "environment.json", text.encode())

    def write_first_page(self) -> None:
        """Before the first cell: who opens ``report.html`` of a run that is killed reads how to go on."""
        if not (self.out / "report.html").exists():
            asked = self.ready.scenario
            store.write_atomically(self.out / "report.html", _first_page(asked.title or asked.name, self.out).encode())

    def load_libraries(self) -> None:
        """What draws and writes results, before it is needed."""
        for name in ("pandas", "altair", "vl_convert", "fedgraph.report.outputs", "fedgraph.report.outside"):
            importlib.import_module(name)

    def report(self, console: Console, ended: bool = True) -> list[Result]:
        """Write the report of every cell that is there; the cells that failed. ended: whether nothing is computed meanwhile."""
        from fedgraph import report  # what draws and writes is not needed before the last cell
        from fedgraph.report import outside, saved_run

        failed = [why for stage in self.stages for cell in stage.cells if (why := self.kept.failure(cell)) is not None]
        found = [_records_of(stage, self.kept, self.ready.quick) for stage in self.stages]
        whole = [records for records in found if records.entries]
        asked = self.ready.scenario
        graphs = dict(zip((d.label or d.name for d in asked.datasets), self.graphs, strict=True))
        report.write_report(self.out, asked.title or asked.name, self.text, whole, graphs, self.environment(), console, failed)
        if ended and whole:
            may_leave = outside.write_outside(saved_run.load_saved_run(self.out), self.text, self.plans)
            seeded = "" if isinstance(asked.seed, str) else " (of real people only with seed: secret)"
            console.print(f"may be handed out: {may_leave}{seeded}")
        return failed

    def note_engine(self, engine: Runtime) -> None:
        """How the engine describes itself, beside what was known of the rounds."""
        self.where = {**self.where, **engine.describe()}

    @contextlib.contextmanager
    def page_where_it_breaks_off(self) -> Iterator[None]:
        """Where what is inside breaks off, what is done has its page, if one can be made; who interrupts it reads one line.

        The line says how many cells are done, where their page is, and what to type.
        """
        try:
            yield
        except BaseException as error:
            cells = [cell for stage in self.stages for cell in stage.cells]
            many = sum(map(self.kept.written, cells))
            with contextlib.suppress(Exception, KeyboardInterrupt):
                if many:
                    self.report(Console(quiet=True), ended=False)
            if not isinstance(error, KeyboardInterrupt):
                raise
            page = self.out / "report.html"
            where = f", and what they say is in {page}" if many and (self.out / "results.csv").exists() else ""
            words = f"the same command with --resume {self.out} (without --out) goes on"
            raise KeyboardInterrupt(f"{many} of {len(cells)} cells are done{where}; {words}") from None


def _without_times(found: Environment) -> Environment:
    """Nothing of when the run ended, and of its runtime no number of seconds nor share of time."""
    counts = found.runtime.get("federation")
    runtime = dict(found.runtime)
    if isinstance(counts, Mapping):
        runtime["federation"] = {task: {**count, **dict.fromkeys(_TIMES & count.keys(), 0.0)} for task, count in counts.items()}
    return replace(found, made=replace(found.made, finished="", seconds=None), runtime=runtime)


def _first_page(title: str, folder: Path) -> str:
    """The page; what draws and writes results is not loaded for it."""
    said, title = html.escape(_FIRST_SAID.format(folder), quote=False), html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<style>{_FIRST_STYLE}</style>\n</head>\n'
        f'<body>\n<h1>{title}</h1>\n<p role="alert">{said}</p>\n</body>\n</html>\n'
    )


def _records_of(stage: ScheduledStage, kept: store.CellStore, short: bool) -> SectionRecords:
    """The finished cells of a stage, for the report. short: whether the run was shrunk."""
    from fedgraph.report import SectionRecords

    found = tuple(kept.load(cell) for cell in stage.cells if kept.written(cell))
    task = stage.task
    kind = next((f.facts.kind for f in found if not f.failed), task.kind)  # with owners nodes have a section of their own
    return SectionRecords(kind, task.label, stage.context.dataset, task.params.model_dump(), found, short=short)


def _describe_process(
    seed: int | str, graphs: Sequence[Graph | GraphCollection], runtime: Mapping[str, object], began: float, cells: int
) -> Environment:
    """What ``environment.json`` says of a run that this process made, since ``began`` (``time.time()``)."""
    program = _program()
    command = f"{program} {shlex.join(sys.argv[1:])}".strip() if program else ""
    finished = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return Environment(
        versions={"python": platform.python_version()}
        | {name: _version(name) for name in _PACKAGES}
        | dict(plugins.distributions()),
        platform=f"{platform.system()} {platform.machine()}",
        devices=_devices(),
        runtime=runtime,
        seed=seed,
        data=tuple(EnvironmentSource(g.name, g.provenance.source, g.provenance.outward.checksums) for g in graphs),
        made=EnvironmentMaking(_version("fedgraph-privacy"), _commit(), command, finished, round(time.time() - began, 1)),
        cells=cells,
        notice=environment.notice(graphs),
    )


def _devices() -> tuple[str, ...]:
    """GPUs that torch can use here, else the CPU. Where no driver of one is there nobody asks, since asking imports torch."""
    if sys.platform == "linux" and not any(Path(driver).exists() for driver in _GPU_DRIVERS):
        return ("cpu",)
    import torch

    return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())) or ("cpu",)


def _program() -> str:
    """What was typed before the options; empty where that was a text (``python -c``) or nothing: nobody can type it again."""
    started = Path(sys.argv[0])
    if started.name in ("", "-c", "-"):
        return ""
    modules = {"run.py": "python -m fedgraph.run", "__main__.py": "python -m fedgraph", "__init__.py": "python -m fedgraph"}
    return modules.get(started.name, started.name)


@functools.cache  # git and every package's metadata are asked once in a process, whose code was imported once, too
def _commit() -> str:
    """The commit of the source that runs, and whether it was changed since; empty where it is no git checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        asked = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


@functools.cache
def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
