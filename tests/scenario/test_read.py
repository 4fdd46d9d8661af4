"""Every way a scenario can be wrong gives one line: file:line, found, allowed, hint."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fedgraph import data, runtime
from fedgraph.errors import ScenarioError
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.scenario import read
from tests.scenarios import GOOD

TASK = GOOD[GOOD.index("  - task") :]
TWO = GOOD.replace("- name: embedded/library", "- name: embedded/library\n  - {name: embedded/library, label: again}")
SECOND = TASK.replace("    epsilons", "    label: second\n    datasets: [again]\n    epsilons")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("only", ["", "    datasets: [embedded/library]\n"])
def test_a_good_one_is_validated_frozen_and_resolved_is_itself_a_scenario(tmp_path: Path, only: str) -> None:
    ready = read.from_file(write(tmp_path, GOOD + only))
    assert ready.scenario.seeds == 2
    (task,) = ready.tasks
    assert task.params.epsilons == [1.0, float("inf")]
    assert task.params.delta == 1e-3, "PyYAML reads 1e-3 as a string; it must become a number"
    assert task.datasets == (("embedded/library",) if only else ())
    with pytest.raises(ValueError, match="frozen"):
        ready.scenario.seeds = 3  # type: ignore[misc]
    assert read.from_file(write(tmp_path, yaml.safe_dump(ready.resolved))).resolved == ready.resolved


@pytest.mark.parametrize("name", ["facebook_federation", "dpar_table1", "ldp_gw_table1"])
def test_what_a_short_run_writes_down_can_be_run_again(name: str, tmp_path: Path) -> None:
    ready = read.from_file(Path(__file__).parents[2] / "scenarios" / f"{name}.yaml", [], quick=True)
    assert read.from_file(write(tmp_path, yaml.safe_dump(ready.resolved))).resolved == ready.resolved


METHOD = "model: logistic"
CANNOT = "name: s\ndatasets: [{name: embedded/library}]\ntasks:\n  - {task: node_classification, methods: [{method: %s}], %s}\n"
GRAPHS = "name: s\ndatasets: [{name: embedded/library}]\ntasks:\n  - {task: graph_%s, epsilons: [1]}\n"
TRUSTS = "'curator', 'sums', 'own-client', 'active-server' or 'nobody'"
WRONG = [
    (GOOD.replace("seeds: 2", "sedes: 2"), 2, ["unknown key 'sedes'", "did you mean 'seeds'", "allowed: name"]),
    (GOOD.replace("seeds: 2", "seeds: 0"), 2, ["seeds", "0", "greater than or equal to 1"]),
    (GOOD.replace("epsilons: [1, inf]", "epsilons: [0]"), 7, ["epsilons", "> 0", "nothing may be released"]),
    (GOOD.replace("delta: 1e-3", "delta: 1.0"), 8, ["delta", "0 < δ < 1", "1.0"]),
    (GOOD.replace("delta: 1e-3", "calibrated_by: []"), 8, ["calibrated_by: found []"]),
    (GOOD.replace("delta: 1e-3", "attack: {canaries: 10, trust: []}"), 8, ["attack.trust: found []"]),
    (GOOD.replace("delta: 1e-3", "attack: {canaries: 10, epsilons: []}"), 8, ["attack.epsilons: found []"]),
    (GOOD.replace("trust: [curator]", "trust: [centre]"), 9, ["trust", "'centre'", TRUSTS]),
    (GOOD.replace("method: features", "method: feature"), 11, ["unknown method 'feature'", "did you mean 'features'"]),
    (GOOD.replace(METHOD, "clip: -2"), 12, ["clip", "-2", "greater than 0"]),
    (GOOD.replace("name: tiny", "name: tiny\nname: twice"), 2, ["'name' appears twice", "first on line 1"]),
    (GOOD.replace(METHOD, "trust: [curator, sums]"), 6,
     ["row features · default is to trust sums, where this task does not run (trust: [curator])", "allowed: curator"]),
    (TWO + SECOND.replace("[again]", "[other]"), 16, ["allowed: ['embedded/library', 'again']"]),
    (TWO + SECOND.replace("[again]", "again"), 16, ["allowed: ['embedded/library', 'again']"]),
    (TWO + SECOND.replace("[again]", "3"), 16, ["allowed: ['embedded/library', 'again']"]),
    (CANNOT % ("local_dp", "trust: [curator], epsilons: [1]"), 4, ["method ", "needs one that gives"]),
    (CANNOT % ("gcon", "trust: [curator], epsilons: [1]"), 4, ["method ", "not made for 'inductive'"]),
    (CANNOT % ("sage_edge", "trust: [sums], protocol: transductive, epsilons: [1]"), 4, ["cannot serve trust: sums"]),
    (GRAPHS % "clustering, method: {method: gcon}", 4, ["method ", "needs one that releases embeddings"]),
    (GRAPHS % "classification, methods: [{method: features, label: f}]", 4, ["method ", "needs one that releases"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "parts"), WRONG)
def test_errors_name_line_found_and_allowed(tmp_path: Path, text: str, line: int, parts: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        read.from_file(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(("text", "says"), [("", "is a mapping of keys"), (GOOD + TASK, "two tasks are labelled")])
def test_what_is_no_scenario_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        read.from_file(write(tmp_path, text))
    with pytest.raises(ScenarioError, match="cannot be read"):
        read.from_file(tmp_path / "absent.yaml")


def test_with_owners_a_row_runs_under_its_own_trust(tmp_path: Path) -> None:
    owned = GOOD.replace("trust: [curator]", "trust: [sums]\n    owners: true").replace(METHOD, "trust: [own-client]")
    (task,) = read.from_file(write(tmp_path, owned)).tasks
    assert task.params.methods[0]["trust"] == ["own-client"]


def test_changes_quick_and_seeds_are_taken(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "quick:\n  seeds: 1\n  tasks.0.epsilons: [1]\n")
    ready = read.from_file(path, ["tasks.0.epsilons=[3]", "tasks.0.methods.0.clip=2", "runtime.engine=serial"])
    assert (ready.tasks[0].params.epsilons, ready.resolved["tasks"][0]["methods"][0]["clip"]) == ([3.0], 2)
    assert ready.scenario.runtime.engine == "serial"
    quick = read.from_file(path, quick=True)
    assert (quick.scenario.seeds, quick.tasks[0].params.epsilons) == (1, [1.0])
    assert read.from_file(path, seeds=7).scenario.seeds == 7


def test_a_task_may_run_on_some_data_sets_only(tmp_path: Path) -> None:
    ready = read.from_file(write(tmp_path, TWO + SECOND))
    with runtime.start("serial") as engine:
        stages = list(experiment.stages_of(ready, [data.load("embedded/library")] * 2, engine, Console()))
    first = "node_classification"
    wanted = [(first, "embedded/library"), (first, "again"), ("second", "again")]
    assert [(s.task.label, s.context.dataset) for s in stages] == wanted


def test_a_disabled_data_set_waits_until_it_is_enabled(tmp_path: Path) -> None:
    known, more = "  - name: embedded/library\n", "  - name: synthetic/reddit_sized\n    enabled: false\n"
    path = write(tmp_path, GOOD.replace(known, known + more))
    assert [d.name for d in read.from_file(path).scenario.datasets] == ["embedded/library"]
    enabled = read.from_file(path, changes=["datasets.1.enabled=true"]).scenario.datasets
    assert [d.name for d in enabled] == ["embedded/library", "synthetic/reddit_sized"]
    with pytest.raises(ScenarioError, match="enable"):
        read.from_file(path, changes=["datasets.0.enabled=false"])


@pytest.mark.parametrize(("clients", "clusters", "line"), [(6, "    clusters: 9\n", 7), (2, "", 4)])
def test_more_clusters_than_clients_are_refused_before_a_cell_runs(
    tmp_path: Path, clients: int, clusters: str, line: int
) -> None:
    """Where ``clusters`` is written, when the file is read; where it is the number of classes (4), when the data are."""
    text = (
        "name: c\ndatasets: [{name: embedded/library}]\ntasks:\n  - task: graph_clustering\n    epsilons: [8]\n"
        f"    partition: {{partition: ego, clients: {clients}}}\n{clusters}"
        "    methods: [{method: local_dp, training: none}]\n"
    )
    path = write(tmp_path, text)
    with pytest.raises(ScenarioError, match=f":{line}: clusters.*allowed: at most {clients}, as many"):
        experiment.dry_run(read.from_file(path), Console(quiet=True))
