"""The command as a person uses it: every command, what it prints, what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import fedgraph
from fedgraph import plugins
from fedgraph.commands import base as cli
from fedgraph.errors import DataError
from fedgraph.scenario import read, shipped

COMMANDS = {"export", "run", "ls", "new", "cp", "check", "show", "compare", "explain", "price", "schema", "sheet"}


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert cli.main(words) == status, capsys.readouterr().err
    out = capsys.readouterr()
    if status:
        assert len(out.err.strip().splitlines()) == 1
        assert "Traceback" not in out.err
        return out.err
    return out.out


def test_every_command_is_there_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(cli.names()) >= COMMANDS
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


def test_ls_names_everything_with_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    screen, text = said(capsys, "ls"), said(capsys, "ls", "--all")
    for name in ("citeseer", "features", "louvain", "node_classification", "lira", "neutral"):
        assert name in screen
        assert name in text
    assert "planetoid/citeseer" in text
    assert len(screen.splitlines()) <= 40, "one screen"
    assert max(map(len, screen.splitlines())) <= 100
    methods = said(capsys, "ls", "methods").splitlines()
    assert len(methods) == len(plugins.names("methods"))
    assert all(len(line.split(None, 1)) == 2 for line in methods), "each method says what it is"


def test_ls_of_one_says_its_settings_defaults_and_meanings(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "ls", "methods", "features")
    assert text.startswith("Features: a learner with clipped gradients.")
    settings = plugins.load("methods", "features").Params.model_fields
    assert all(re.search(rf"(?m)^  {name} +\S", text) for name in settings)
    assert re.search(r"(?m)^  momentum +0\.9 +heavy-ball momentum", text)
    assert "(number > 0 | auto)" in " ".join(text.split())
    assert len(text) < 4000
    assert max(map(len, text.splitlines())) <= 100
    for kind, room in (("methods", "methods"), ("partitions", "partition"), ("tasks", "tasks"), ("attacks", "attacks")):
        assert all("setting" in said(capsys, "ls", kind, name) for name in plugins.names(room)[:3])
    assert "data have no settings" in said(capsys, "ls", "data", "planetoid", status=2)


@pytest.mark.parametrize("words", ["run --help"])
def test_a_command_that_computes_nothing_loads_no_library(words: str) -> None:
    heavy = ("torch", "ray", "scipy", "numpy", "pandas", "pydantic", "altair")
    code = (
        "import sys\nfrom fedgraph.commands.base import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', *[name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_cp_copies_and_never_replaces_unasked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "cp", "quickstart")
    assert (tmp_path / "quickstart.yaml").read_bytes() == shipped.find("quickstart").read_bytes()
    assert "say --force" in said(capsys, "cp", "quickstart", status=2)
    said(capsys, "cp", "quickstart", "--force")
    assert "did you mean 'quickstart'" in said(capsys, "cp", "quikstart", status=2)
    assert "cannot be written" in said(capsys, "cp", "quickstart", "/proc/nowhere/x.yaml", status=2)


def test_new_writes_a_scenario_that_checks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    (folder / "features.csv").write_text("".join(f"n{i},{i % 3},{i % 2}\n" for i in range(40)), encoding="utf-8")
    (folder / "edges.csv").write_text("".join(f"n{i},n{(i + 1) % 40}\n" for i in range(40)), encoding="utf-8")
    (folder / "labels.csv").write_text("".join(f"n{i},{'ab'[i % 2]}\n" for i in range(40)), encoding="utf-8")
    out = tmp_path / "scenarios" / "mine.yaml"
    text = said(
        capsys, "new", "--graph", str(folder), "--unit", "edge", "--trust", "curator", "sums", "--epsilons", "1", "inf",
        "--clients", "3", "--out", str(out), "--no-probe",
    )  # fmt: skip
    assert "people   40" in text
    written = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert written["tasks"][0]["trust"] == ["curator", "sums"]
    monkeypatch.chdir("/")
    ready = read.from_file(out)
    assert ready.scenario.datasets[0].path is not None
    assert Path(ready.scenario.datasets[0].path).is_dir(), "the data are found from any folder"
    assert "exists already" in said(capsys, "new", "--graph", str(folder), "--out", str(out), status=2)


def federation(root: Path, clients: int = 2, masks: bool = False, cross: bool = False) -> Path:
    """A folder with small clients; ``masks``: with a split of their own; ``cross``: with an edge between the first two."""
    for k in range(clients):
        folder = root / f"bank_{k}"
        folder.mkdir(parents=True)
        (folder / "features.csv").write_text("id,age,visits\n" + "".join(f"n{i},{i % 3},{i % 2}\n" for i in range(20)))
        (folder / "edges.csv").write_text("".join(f"n{i},n{(i + 1) % 20}\n" for i in range(20)))
        (folder / "labels.csv").write_text("".join(f"n{i},{'ab'[i % 2]}\n" for i in range(20)))
        if masks:
            (folder / "masks.csv").write_text("".join(f"n{i},{'test' if i < 6 else 'train'}\n" for i in range(20)))
        if cross and k < 2:
            (folder / "ids.csv").write_text(f"n0,h{k}\n")
            (folder / "cross.csv").write_text(f"n0,h{1 - k}\n")
    return root


@pytest.mark.parametrize(
    ("unit", "trust"), [("node", ("curator", "sums", "own-client")), ("edge", ("sums",)), ("node", ("curator",))]
)
def test_new_asks_of_a_federation_whether_it_is_worth_joining(
    unit: str, trust: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = federation(tmp_path / "banks", clients=3, masks=True, cross=True)
    said(capsys, "new", "--federation", str(folder), "--unit", unit, "--trust", *trust, "--epsilons", "1", "inf", "--no-probe")
    ready = read.from_file(tmp_path / "banks.yaml")
    (task,) = ready.tasks
    assert (task.kind, task.params.owners) == ("node_classification", True)
    wanted = {"alone"} | ({"curator"} if "curator" in trust else set())
    wanted |= (
        ({"federated", "personalised"} | ({"left-out"} if unit == "node" else set())) if set(trust) - {"curator"} else set()
    )
    assert set(task.params.participations) == wanted
    assert task.params.split == "public"
    assert (task.params.cut_edges == "protected") == (unit == "edge")
    assert "ties between clients" in (told := (tmp_path / "banks.yaml").read_text(encoding="utf-8"))
    assert "1 ties between clients" not in told, "a draft tells no count of edges"


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "cross"), [("node", False), ("edge", False), ("edge", True)])
def test_what_new_writes_of_a_federation_runs(
    unit: str, cross: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = federation(tmp_path / "banks", cross=cross)
    asked = ["--unit", unit, "--trust", "curator", "sums", "--epsilons", "4", "--no-probe"]
    said(capsys, "new", "--federation", str(folder), *asked)
    said(capsys, "run", "banks.yaml", "--out", "out", "--runtime", "serial", "--quick")
    assert len(list((tmp_path / "out/owners").glob("*.html"))) >= 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no pipe is read; give --graph"),
        (("--graph", "nowhere"), "nowhere is neither a file"),
        (("--graph", "tu/mutag"), "collection of graphs"),
        (("--graph", "embedded/library", "--epsilons", "1", "1"), "twice"),
        (("--federation", "nowhere"), "not a folder"),
        (("--graph", "pair"), "2 nodes have a label; allowed: 5 or more"),
        (("--graph", "alike"), "all labelled nodes are of one class ('x'); allowed: two classes or more"),
        (("--graph", "embedded/library", "--out", "there.yaml"), "exists already; say --force"),
    ],
)
def test_new_refuses_in_one_line(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "there.yaml").write_text("mine")
    (tmp_path / "pair").mkdir()
    for name, text in (("features", "a,1\nb,0\n"), ("edges", "a,b\n"), ("labels", "a,x\nb,y\n")):
        (tmp_path / "pair" / f"{name}.csv").write_text(text)
    (tmp_path / "alike").mkdir()
    for name, word in (("features", "1"), ("edges", "0"), ("labels", "x")):
        (tmp_path / "alike" / f"{name}.csv").write_text("".join(f"{k},{word}\n" for k in range(6)))
    before = sorted(tmp_path.rglob("*"))
    assert says in said(capsys, "new", *words, status=2)
    assert sorted(tmp_path.rglob("*")) == before, "nothing is half-written"
    assert (tmp_path / "there.yaml").read_text() == "mine"


def test_check_counts_and_estimates(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "check", "quickstart", "--probe", "0")
    assert "valid" in text
    assert "cells in all" in text
    assert "unknown key" in said(capsys, "check", "quickstart", "--set", "sed=1", status=2)


@pytest.mark.slow
def test_check_probes(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "check", "quickstart", "--probe", "3", "--set", "tasks.0.epsilons=[1, 8]")
    assert "cells in all" in text
    assert "of one core, by trials of each method" in text


def test_the_schema_accepts_every_shipped_scenario_and_refuses_a_typo(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = json.loads(said(capsys, "schema"))
    validator = jsonschema.Draft202012Validator(found)
    for name in shipped.names():
        text = shipped.find(name).read_text(encoding="utf-8")
        errors = list(validator.iter_errors(yaml.safe_load(text)))
        assert not errors, f"{name}: {errors[0].message[:300]}"
    wrong = yaml.safe_load(shipped.find("quickstart").read_text(encoding="utf-8"))
    wrong["sed"] = 1
    assert list(validator.iter_errors(wrong))


@pytest.mark.parametrize("words", [["show"], ["explain"], ["compare"], ["watch"], ["sheet", "row"]])
def test_a_folder_that_is_no_run_is_the_same_kind_of_error_everywhere(words: list[str], tmp_path: Path) -> None:
    options = cli.parser(words[0]).parse_args([words[0], str(tmp_path), *words[1:]])
    with pytest.raises(DataError, match=str(tmp_path)):
        options.act(options)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of one read, in folders of one name, on a generated stand-in."""
    folders = [tmp_path_factory.mktemp(name) / "out" for name in ("first", "second")]
    asked = {
        "name": "twins",
        "runtime": {"engine": "serial"},
        "datasets": [{"name": "synthetic/block_model", "parameters": {"nodes": 200}}],
        "tasks": [
            {"task": "node_classification", "trust": ["curator"], "epsilons": [1],
             "methods": [{"method": "features", "model": "logistic", "steps": 3}]}
        ],
    }  # fmt: skip
    for seed, folder in enumerate(folders):
        fedgraph.run({**asked, "seed": seed}, out=folder, data_root=folder.parent, quiet=True)
    return folders


def test_compare_tells_runs_apart_and_says_what_was_generated(
    twins: list[Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    text = said(capsys, "compare", *map(str, twins), "--csv", str(table))
    names = [f"{folder.parent.name}/out" for folder in twins]
    assert "SYNTHETIC" in text
    assert sorted(line.split(",")[0] for line in table.read_text(encoding="utf-8").splitlines()[1:]) == sorted(names)
