"""Every way a scenario can be wrong gives one line: file:line, found, allowed, hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedgraph import data, runtime
from fedgraph.errors import ScenarioError
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.scenario import read
from tests.scenarios import GOOD


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_one_is_validated_and_frozen(tmp_path: Path) -> None:
    ready = read.from_file(write(tmp_path, GOOD))
    assert ready.scenario.seeds == 2
    assert ready.tasks[0].params.epsilons == [1.0, float("inf")]
    assert ready.tasks[0].params.delta == 1e-3, "PyYAML reads 1e-3 as a string; it must become a number"
    with pytest.raises(ValueError, match="frozen"):
        ready.scenario.seeds = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "line", "parts"),
    [
        ("seeds: 2", "sedes: 2", 2, ["unknown key 'sedes'", "did you mean 'seeds'", "allowed: name"]),
        ("seeds: 2", "seeds: 0", 2, ["seeds", "0", "greater than or equal to 1"]),
        ("epsilons: [1, inf]", "epsilons: [0]", 7, ["epsilons", "> 0", "nothing may be released"]),
        ("delta: 1e-3", "delta: 1.0", 8, ["delta", "0 < δ < 1", "1.0"]),
        (
            "trust: [curator]",
            "trust: [centre]",
            9,
            ["trust", "'centre'", "'curator', 'sums', 'own-client', 'active-server' or 'nobody'"],
        ),
        ("method: features", "method: feature", 11, ["unknown method 'feature'", "did you mean 'features'", "allowed: "]),
        ("model: logistic", "clip: -2", 12, ["clip", "-2", "greater than 0"]),
        ("name: tiny", "name: tiny\nname: twice", 2, ["'name' appears twice", "first on line 1"]),
        (
            "model: logistic",
            "trust: [curator, sums]",
            6,
            ["row features · default is to trust sums, where this task does not run (trust: [curator])", "allowed: curator"],
        ),
    ],
)
def test_errors_name_line_found_and_allowed(tmp_path: Path, old: str, new: str, line: int, parts: list[str]) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read.from_file(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    for part in parts:
        assert part in message


def test_with_owners_a_row_runs_under_its_own_trust(tmp_path: Path) -> None:
    owned = GOOD.replace("trust: [curator]", "trust: [sums]\n    owners: true").replace(
        "model: logistic", "trust: [own-client]"
    )
    (task,) = read.from_file(write(tmp_path, owned)).tasks
    assert task.params.methods[0]["trust"] == ["own-client"]


def test_missing_file_and_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        read.from_file(tmp_path / "absent.yaml")
    with pytest.raises(ScenarioError, match="is a mapping of keys"):
        read.from_file(write(tmp_path, ""))


def test_set_changes_nested_keys(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    ready = read.from_file(path, ["tasks.0.epsilons=[3]", "tasks.0.methods.0.clip=2", "runtime.engine=serial"])
    assert ready.tasks[0].params.epsilons == [3.0]
    assert ready.resolved["tasks"][0]["methods"][0]["clip"] == 2
    assert ready.scenario.runtime.engine == "serial"


def test_quick_and_seeds(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "quick:\n  seeds: 1\n  tasks.0.epsilons: [1]\n")
    quick = read.from_file(path, quick=True)
    assert (quick.scenario.seeds, quick.tasks[0].params.epsilons) == (1, [1.0])
    assert read.from_file(path, seeds=7).scenario.seeds == 7


def test_two_tasks_need_two_labels(tmp_path: Path) -> None:
    twice = GOOD + GOOD[GOOD.index("  - task") :]
    with pytest.raises(ScenarioError, match="two tasks are labelled"):
        read.from_file(write(tmp_path, twice))


def test_a_task_may_run_on_some_data_sets_only(tmp_path: Path) -> None:
    text = GOOD.replace("- name: embedded/library", "- name: embedded/library\n  - {name: embedded/library, label: again}")
    task = GOOD[GOOD.index("  - task") :]
    text += task.replace("    epsilons", "    label: second\n    datasets: [again]\n    epsilons")
    ready = read.from_file(write(tmp_path, text))
    with runtime.start("serial") as engine:
        graphs = [data.load("embedded/library")] * 2
        stages = list(experiment.stages_of(ready, graphs, engine, Console()))
    assert [(s.task.label, s.context.dataset) for s in stages] == [
        ("node_classification", "embedded/library"),
        ("node_classification", "again"),
        ("second", "again"),
    ]
    for wrong in ("[other]", "again", "3"):
        with pytest.raises(ScenarioError, match=r"x\.yaml:16: .*allowed: \['embedded/library', 'again'\]"):
            read.from_file(write(tmp_path, text.replace("datasets: [again]", f"datasets: {wrong}")))


@pytest.mark.parametrize("only", ["", "    datasets: [embedded/library]\n"])
def test_resolved_is_itself_a_scenario(tmp_path: Path, only: str) -> None:
    import yaml

    ready = read.from_file(write(tmp_path, GOOD + only))
    assert ready.tasks[0].datasets == (("embedded/library",) if only else ())
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(ready.resolved), encoding="utf-8")
    assert read.from_file(again).resolved == ready.resolved


def test_a_disabled_data_set_waits_until_it_is_enabled(tmp_path: Path) -> None:
    two = GOOD.replace(
        "  - name: embedded/library\n", "  - name: embedded/library\n  - name: synthetic/reddit_sized\n    enabled: false\n"
    )
    path = write(tmp_path, two)
    assert [d.name for d in read.from_file(path).scenario.datasets] == ["embedded/library"]
    enabled = read.from_file(path, changes=["datasets.1.enabled=true"]).scenario.datasets
    assert [d.name for d in enabled] == ["embedded/library", "synthetic/reddit_sized"]
    with pytest.raises(ScenarioError, match="enable"):
        read.from_file(path, changes=["datasets.0.enabled=false"])


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (
            "task: node_classification, methods: [{method: local_dp}], trust: [curator], epsilons: [1]",
            "needs one that gives",
        ),
        ("task: graph_clustering, method: {method: gcon}, epsilons: [1]", "needs one that releases embeddings"),
        ("task: graph_classification, methods: [{method: features, label: f}], epsilons: [1]", "needs one that releases"),
        (
            "task: node_classification, methods: [{method: gcon}], trust: [curator], epsilons: [1]",
            "not made for 'inductive'",
        ),
        (
            "task: node_classification, methods: [{method: sage_edge}], trust: [sums], protocol: transductive, epsilons: [1]",
            "cannot serve trust: sums",
        ),
    ],
)
def test_a_method_that_cannot_serve_is_refused_when_the_scenario_is_read(tmp_path: Path, task: str, wanted: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"name: s\ndatasets: [{{name: embedded/library}}]\ntasks:\n  - {{{task}}}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=wanted) as caught:
        read.from_file(file)
    assert str(caught.value).startswith(f"{file}:4: method ")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("    delta: 1e-3", "    calibrated_by: []", 8, "calibrated_by: found []"),
        ("    delta: 1e-3", "    attack: {canaries: 10, trust: []}", 8, "attack.trust: found []"),
        ("    delta: 1e-3", "    attack: {canaries: 10, epsilons: []}", 8, "attack.epsilons: found []"),
    ],
)
def test_a_list_that_leaves_nothing_to_run_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as caught:
        read.from_file(path)
    assert str(caught.value).startswith(f"{path}:{line}: {said}")


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
