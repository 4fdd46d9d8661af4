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
Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *words: str, status: int = 0) -> str:
    """What is printed; of a refusal its one line."""
    assert cli.main(words) == status, capsys.readouterr().err
    out = capsys.readouterr()
    if status:
        assert len(out.err.strip().splitlines()) == 1
        assert "Traceback" not in out.err
    return out.err if status else out.out


def test_every_command_is_there_with_its_help(capsys: Captured) -> None:
    assert set(cli.names()) >= COMMANDS
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if name not in text] == []


def test_a_command_that_computes_nothing_loads_no_library() -> None:
    heavy = ("torch", "ray", "scipy", "numpy", "pandas", "pydantic", "altair")
    code = (
        "import sys\nfrom fedgraph.commands.base import main\ntry:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', *[name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "loaded:"


def test_ls_names_everything_with_one_line_each(capsys: Captured) -> None:
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


def test_ls_of_one_says_its_settings_defaults_and_meanings(capsys: Captured) -> None:
    text = said(capsys, "ls", "methods", "features")
    assert text.startswith("Features: a learner with clipped gradients.")
    settings = plugins.load("methods", "features").Params.model_fields
    assert all(re.search(rf"(?m)^  {name} +\S", text) for name in settings)
    assert re.search(r"(?m)^  momentum +0\.9 +heavy-ball momentum", text)
    assert "(number > 0 | auto)" in " ".join(text.split())
    for kind, room in (("partitions", "partition"), ("tasks", "tasks"), ("attacks", "attacks")):
        assert "setting" in said(capsys, "ls", kind, plugins.names(room)[0])
    assert "data have no settings" in said(capsys, "ls", "data", "planetoid", status=2)


def test_cp_copies_and_never_replaces_unasked(capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "cp", "quickstart")
    assert (tmp_path / "quickstart.yaml").read_bytes() == shipped.find("quickstart").read_bytes()
    assert "say --force" in said(capsys, "cp", "quickstart", status=2)
    said(capsys, "cp", "quickstart", "--force")
    assert "did you mean 'quickstart'" in said(capsys, "cp", "quikstart", status=2)
    assert "cannot be written" in said(capsys, "cp", "quickstart", "/proc/nowhere/x.yaml", status=2)


def federation(root: Path, clients: int, cross: bool) -> Path:
    """A folder with small clients and a split of their own; ``cross``: with an edge between the first two."""
    for k in range(clients):
        files = {
            "features": "id,age,visits\n" + "".join(f"n{i},{i % 3},{i % 2}\n" for i in range(20)),
            "edges": "".join(f"n{i},n{(i + 1) % 20}\n" for i in range(20)),
            "labels": "".join(f"n{i},{'ab'[i % 2]}\n" for i in range(20)),
            "masks": "".join(f"n{i},{'test' if i < 6 else 'train'}\n" for i in range(20)),
            **({"ids": f"n0,h{k}\n", "cross": f"n0,h{1 - k}\n"} if cross and k < 2 else {}),
        }
        (root / f"bank_{k}").mkdir(parents=True)
        for name, text in files.items():
            (root / f"bank_{k}" / f"{name}.csv").write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("unit", "trust"), [("node", ("curator", "sums", "own-client")), ("edge", ("sums",)), ("node", ("curator",))]
)
def test_new_asks_of_a_federation_whether_it_is_worth_joining(
    unit: str, trust: tuple[str, ...], capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = federation(tmp_path / "banks", 3, cross=True)
    said(capsys, "new", "--federation", str(folder), "--unit", unit, "--trust", *trust, "--epsilons", "1", "inf", "--no-probe")
    (task,) = read.from_file(tmp_path / "banks.yaml").tasks
    assert (task.kind, task.params.owners) == ("node_classification", True)
    wanted = {"alone"} | ({"curator"} if "curator" in trust else set())
    if set(trust) - {"curator"}:
        wanted |= {"federated", "personalised"} | ({"left-out"} if unit == "node" else set())
    assert set(task.params.participations) == wanted
    assert task.params.split == "public"
    assert (task.params.cut_edges == "protected") == (unit == "edge")
    assert "ties between clients" in (told := (tmp_path / "banks.yaml").read_text(encoding="utf-8"))
    assert "1 ties between clients" not in told, "a draft tells no count of edges"


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "cross"), [("node", False), ("edge", True)])
def test_what_new_writes_of_a_federation_runs(
    unit: str, cross: bool, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--unit", unit, "--trust", "curator", "sums", "--epsilons", "4", "--no-probe"]
    said(capsys, "new", "--federation", str(federation(tmp_path / "banks", 2, cross)), *asked)
    said(capsys, "run", "banks.yaml", "--out", "out", "--runtime", "serial", "--quick")
    assert len(list((tmp_path / "out/owners").glob("*.html"))) >= 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "no pipe is read; give --graph"),
        ("--graph nowhere", "nowhere is neither a file"),
        ("--graph tu/mutag", "collection of graphs"),
        ("--graph embedded/library --epsilons 1 1", "twice"),
        ("--federation nowhere", "not a folder"),
        ("--graph pair", "2 nodes have a label; allowed: 5 or more"),
        ("--graph bare", "Which column is predicted (--label NAME), or are links foreseen (--task links)?"),
        ("--graph alike", "all labelled nodes are of one class ('x'); allowed: two classes or more"),
        ("--graph embedded/library --out there.yaml", "exists already; say --force"),
    ],
)
def test_new_refuses_in_one_line(
    words: str, says: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.yaml").write_text("mine")
    for folder, tables in (
        ("pair", {"features": "a,1\nb,0\n", "edges": "a,b\n", "labels": "a,x\nb,y\n"}),
        ("bare", {"ties": "source,target\na,b\nb,c\n"}),
        ("alike", {n: "".join(f"{k},{w}\n" for k in range(6)) for n, w in (("features", 1), ("edges", 0), ("labels", "x"))}),
    ):
        (tmp_path / folder).mkdir()
        for name, text in tables.items():
            (tmp_path / folder / f"{name}.csv").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    assert says in said(capsys, "new", *words.split(), status=2)
    assert sorted(tmp_path.rglob("*")) == before, "nothing is half-written"
    assert (tmp_path / "there.yaml").read_text() == "mine"


@pytest.mark.parametrize("probe", ["0", pytest.param("3", marks=pytest.mark.slow)])
def test_check_counts_and_estimates(probe: str, capsys: Captured) -> None:
    text = said(capsys, "check", "quickstart", "--probe", probe, "--set", "tasks.0.epsilons=[1, 8]")
    assert "valid" in text
    assert "cells in all" in text
    assert ("of one core, by trials of each method" in text) is (probe == "3")
    assert "unknown key" in said(capsys, "check", "quickstart", "--set", "sed=1", status=2)


def test_the_schema_accepts_every_shipped_scenario_and_refuses_a_typo(capsys: Captured) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(said(capsys, "schema")))
    for name in shipped.names():
        found = yaml.safe_load(shipped.find(name).read_text(encoding="utf-8"))
        assert [error.message[:300] for error in validator.iter_errors(found)] == [], name
    assert list(validator.iter_errors({**found, "sed": 1}))


@pytest.mark.parametrize("words", [["show"], ["explain"], ["compare"], ["watch"], ["sheet", "row"]])
def test_a_folder_that_is_no_run_is_the_same_kind_of_error_everywhere(words: list[str], tmp_path: Path) -> None:
    options = cli.parser(words[0]).parse_args([words[0], str(tmp_path), *words[1:]])
    with pytest.raises(DataError, match=str(tmp_path)):
        options.act(options)


def test_compare_tells_runs_apart_and_says_what_was_generated(capsys: Captured, tmp_path: Path) -> None:
    """Two runs in folders of one name, on a generated stand-in."""
    task = {"task": "node_classification", "trust": ["curator"], "epsilons": [1],
            "methods": [{"method": "features", "model": "logistic", "steps": 3}]}  # fmt: skip
    data = [{"name": "synthetic/block_model", "parameters": {"nodes": 200}}]
    names = ["first/out", "second/out"]
    for seed, name in enumerate(names):
        asked = {"name": "twins", "seed": seed, "runtime": {"engine": "serial"}, "datasets": data, "tasks": [task]}
        fedgraph.run(asked, out=tmp_path / name, data_root=tmp_path, quiet=True)
    table = tmp_path / "table.csv"
    assert "SYNTHETIC" in said(capsys, "compare", *(str(tmp_path / name) for name in names), "--csv", str(table))
    assert sorted(line.split(",")[0] for line in table.read_text(encoding="utf-8").splitlines()[1:]) == names
