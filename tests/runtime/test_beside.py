"""An engine that starts beside its caller, and what a run loads before its first step."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fedgraph.errors import RuntimeFailure
from fedgraph.runtime import starting
from fedgraph.runtime.base import Runtime
from fedgraph.runtime.serial import SerialRuntime

SCENARIO = """\
name: first-step
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [1]
    trust: [own-client]
    partition: {partition: uniform, clients: 4}
    methods: [{method: features, steps: 1, projection: 16}]
"""


class Closing(SerialRuntime):
    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("engine", ["serial", "ray"])
def test_the_engine_is_closed_also_where_nobody_waited_for_it(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Closing] = []

    def start(*args: object) -> Runtime:
        made.append(Closing())
        return made[-1]

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(starting, "start", start)
    with starting.start_beside(engine) as begun:
        assert begun.ready() is made[0]
        assert begun.ready() is made[0]
        assert begun.is_up()
    with pytest.raises(ValueError, match="the data are wrong"), starting.start_beside(engine):
        raise ValueError("the data are wrong")
    assert [m.closed for m in made] == ([1] if engine == "serial" else [1, 1])


def test_an_engine_that_cannot_start_says_so_when_it_is_asked_for() -> None:
    with starting.start_beside("spark") as begun, pytest.raises(RuntimeFailure, match="allowed: ray, serial"):
        begun.ready()


@pytest.mark.slow
def test_a_first_step_loads_no_package_that_it_does_not_use(tmp_path: Path) -> None:
    scenario = tmp_path / "first.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    code = textwrap.dedent("""
        import sys
        from fedgraph import run
        from fedgraph.cells.store import CellStore
        save = CellStore.save
        def watched(*args):
            print("LOADED", *sorted({m.partition(".")[0] for m in sys.modules} | set(sys.modules)))
            return save(*args)
        CellStore.save = watched
        sys.exit(run.main(sys.argv[1:]))
    """)
    command = [sys.executable, "-c", code, str(scenario), "--runtime", "serial", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    heavy = {"sklearn", "pandas", "altair", "torch_geometric", "networkx", "ot", "ray", "dp_accounting", "jinja2"}
    assert not (heavy | {"scipy.stats", "scipy.signal", "fedgraph.seeds.chacha"}) & set(line.split())
