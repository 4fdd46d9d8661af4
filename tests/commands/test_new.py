"""``fedgraph new``: what is asked, what is written without being asked, and how much fits into two minutes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from fedgraph.commands import base as cli
from fedgraph.report.answer import LARGEST_DELTA
from fedgraph.runs import experiment, probe
from fedgraph.scenario import read, wanted

ROWS = range(60)
Captured = pytest.CaptureFixture[str]
Answers = Callable[[dict[str, str]], list[tuple[str, str]]]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """60 people with an age, a city, empty cells and two things that could be predicted."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    lines = [f"p{i},{20 + i % 50},{('Rome', 'Oslo', 'Bonn')[i % 3]},{'' if i % 7 else i},note {i}\n" for i in ROWS]
    (folder / "features.csv").write_text("id,age,city,visits,remark\n" + "".join(lines), encoding="utf-8")
    (folder / "edges.csv").write_text("".join(f"p{i},p{(i + 3) % 60}\n" for i in ROWS), encoding="utf-8")
    labels = "".join(f"p{i},{i % 2},{'abc'[i % 3]}\n" for i in ROWS)
    (folder / "labels.csv").write_text("id,churn,tariff\n" + labels, encoding="utf-8")
    return folder


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Answers:
    """Somebody at a terminal who says these; returns (question, what was printed before it) of all that is asked."""

    def sit_down(said: dict[str, str]) -> list[tuple[str, str]]:
        asked: list[tuple[str, str]] = []

        def answer(self: Console, question: object, **_: object) -> str:
            asked.append((str(question), capsys.readouterr().out))
            return next((a for words, a in said.items() if words in asked[-1][0]), "")

        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        monkeypatch.setattr(Console, "input", answer)
        return asked

    return sit_down


def new(*words: str) -> dict[str, Any]:
    label = ["--label", "churn"] if "--yes" in words and not {"links", "--label"} & set(words) else []
    assert cli.main(["new", "--graph", "mine", "--no-probe", *label, *words]) == 0
    found: dict[str, Any] = yaml.safe_load(Path("mine.yaml").read_text(encoding="utf-8"))
    return found


def cells_of(name: str, quick: bool) -> str:
    return probe.probe_scenario(read.from_file(Path(name), quick=quick), None, 0).estimate


def test_where_two_columns_may_be_the_label_nobody_guesses(people: Path, capsys: Captured) -> None:
    assert cli.main(["new", "--graph", "mine", "--yes", "--no-probe"]) == 2
    question = "labels.csv: which column is the label: 'churn' (0: 30, 1: 30) or 'tariff' (a: 20, b: 20, c: 20)? Say --label"
    assert question in capsys.readouterr().err


def test_without_questions_the_most_private_draft_that_choose_recommends(
    people: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = new("--yes")
    (task,) = written["tasks"]
    assert task["protocol"] == "asking"
    assert {"features", "label_hop"} <= {row["method"] for row in task["methods"]}
    (ceiling,) = (row for row in task["methods"] if row["method"] == "nonprivate")
    assert (ceiling["trust"], ceiling["seeds"]) == (["curator"], 1)
    reading = {"label": "churn", "text": "one-hot", "drop": ["remark"], "empty": "missing"}
    assert written["datasets"][0]["parameters"] == reading
    assert written["seed"] == "secret"
    text = Path("mine.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=")
    comments = "\n".join(line.partition("#")[2] for line in text.splitlines())
    assert "60 edges" not in comments, "how many ties there are is private"
    assert "what was read of mine was printed" in comments
    said = "about 12 of 60 with a label are tested: an accuracy is then known to ± 0.29, and of fewer than 100 nothing will be"
    assert said in capsys.readouterr().out
    assert cli.main(["check", "mine.yaml", "--probe", "0"]) == 0
    assert said in capsys.readouterr().out
    assert wanted.train_fraction_for(250) == 0.5, "as many as it says are enough"
    monkeypatch.chdir("/")
    path = read.from_file(people.parent / "mine.yaml").scenario.datasets[0].path
    assert path is not None
    assert Path(path).is_dir(), "the data are found from any folder"


def test_published_data_can_be_run_again(people: Path) -> None:
    assert cli.main(["new", "--graph", "embedded/library", "--yes", "--no-probe", "--out", "public.yaml"]) == 0
    assert yaml.safe_load(Path("public.yaml").read_text(encoding="utf-8"))["seed"] == 0


def test_the_ceiling_is_one_cell_and_quick_is_one_of_each(people: Path) -> None:
    new("--yes", "--trust", "curator", "sums")
    for quick, cells in ((False, 2 * 2 * 3 * 3 + 1), (True, 2 * 2 + 1)):
        assert f"{cells} cells" in cells_of("mine.yaml", quick)


def test_a_person_is_asked_in_plain_words(people: Path, answers: Answers) -> None:
    said = {"What is to be predicted": "tariff", "whose answers you want": "public", "age (numbers)": "0 120", "ε": "2 8"}
    asked = answers(said)
    written = new()
    assert (written["tasks"][0]["protocol"], written["tasks"][0]["epsilons"]) == ("inductive", [2, 8])
    reading = written["datasets"][0]["parameters"]
    assert (reading["label"], reading["bounds"]) == ("tariff", {"age": [0.0, 120.0]})
    assert any("churn" in words and "(churn)" in words for words, _ in asked), "what people want to know is offered"
    assert len(asked) == 7, "label, unit, asked, trust, budgets, and two columns of numbers"
    graph = experiment.load_data(read.from_file(Path("mine.yaml")).scenario.datasets[0], None, 0)
    assert graph.num_classes == 3
    assert "column 'churn'" in graph.provenance.detail


def test_what_was_understood_is_shown_before_anything_is_asked_of_it(people: Path, answers: Answers) -> None:
    shown = answers({"predicted": "churn", "age (": "0 120"})
    new()
    (label, first), (bounds, second), *others = shown
    assert "What is to be predicted" in label
    assert "people   60, named by 'id' of features.csv" in first
    assert "ties " in first
    assert "age (numbers)" in bounds
    assert re.search("what was understood(?s:.)*age +number", second)
    assert any("cut to 0 … 120" in out and "ties " not in out for _, out in others), "what an answer changed, and no more"
    shown.clear()
    assert cli.main(["new", "--graph", "mine", "--label", "churn"]) == 2, "mine.yaml is there"
    assert not shown, "which is said before anything is asked"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("joined=1970-01-01:2026-12-31", [0.0, 20818.0]),
        ("joined=01.01.1970 to 31.12.2026", [0.0, 20818.0]),
        ("age=0-120", [0.0, 120.0]),
        ("age=-5:-3", "all cells lie outside, in 20 … 69"),
        ("joined=5:95", "joined holds dates"),
    ],
)
def test_bounds_are_numbers_or_dates_as_the_column_is(people: Path, capsys: Captured, given: str, found: object) -> None:
    head, *rows = (people / "features.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{row},01.03.{2001 + place % 6}\n" for place, row in enumerate(rows)]
    (people / "features.csv").write_text(f"{head},joined\n{''.join(rows)}", encoding="utf-8")
    if isinstance(found, str):
        assert cli.main(["new", "--graph", "mine", "--label", "churn", "--yes", "--no-probe", "--bounds", given]) == 2
        assert found in capsys.readouterr().err
    else:
        assert list(new("--yes", "--bounds", given)["datasets"][0]["parameters"]["bounds"].values()) == [found]


def test_columns_that_their_owner_leaves_out_are_in_no_draft(people: Path, capsys: Captured) -> None:
    assert new("--yes", "--drop", "city", "visits")["datasets"][0]["parameters"]["drop"] == ["city", "visits", "remark"]
    assert "city: as said (drop)" in capsys.readouterr().out


def test_what_was_drafted_runs(people: Path, capsys: Captured) -> None:
    new("--yes", "--trust", "curator")
    assert cli.main(["run", "mine.yaml", "--quick", "--out", "out"]) == 0
    assert "nothing can be concluded" in capsys.readouterr().out


@pytest.mark.parametrize("count", [2, 999, 200_000])
def test_the_drafted_delta_is_no_reason_to_conclude_nothing(count: int) -> None:
    delta = wanted.delta_of(count)
    assert min(0.1 / count, 1e-4) / 2 < delta <= min(0.1 / count, 1e-4), "rounded down, not away"
    assert delta < LARGEST_DELTA


def test_many_small_graphs_become_rows_that_are_classified_and_graphs_that_are_grouped(people: Path) -> None:
    folder = people.parent / "many"
    folder.mkdir()
    nodes = "".join(f"g{g},{node},{node % 2},{30 + g}\n" for g in range(30) for node in range(4))
    (folder / "nodes.csv").write_text("graph,id,member,age\n" + nodes, encoding="utf-8")
    edges = "".join(f"g{g},0,{node}\n" for g in range(30) for node in range(1, 3 + g % 2))
    (folder / "edges.csv").write_text("graph,source,target\n" + edges, encoding="utf-8")
    labels = "".join(f"g{g},{'odd' if g % 2 else 'even'},{g % 3}\n" for g in range(30))
    (folder / "labels.csv").write_text("graph,parity,owner\n" + labels, encoding="utf-8")
    asked = ["new", "--graph", "many", "--yes", "--no-probe"]
    assert cli.main([*asked, "--trust", "curator"]) == 0
    kinds = [task.kind for task in read.from_file(Path("many.yaml")).tasks]
    assert kinds == ["node_classification", "graph_clustering", "graph_classification"]
    for quick, cells in ((False, 10 + 3 * 6 + 3 * 7), (True, 2 + 4 + 5)):
        assert f"{cells} cells" in cells_of("many.yaml", quick)
    assert cli.main([*asked, "--force", "--unit", "edge"]) == 2
    (folder / "labels.csv").write_text("graph,parity\n" + "g1,odd\n" + "g2,even\n" + "g4,even\n", encoding="utf-8")
    assert cli.main([*asked, "--force"]) == 2


@pytest.mark.parametrize(
    ("unit", "row", "delta"), [("node", "per person", 1e-4), ("edge", "noisy hops", 3e-5), ("entity", "per owner", 1e-4)]
)
def test_links_are_drafted_for_every_unit_without_labels(people: Path, unit: str, row: str, delta: float) -> None:
    """60 people, 1,600 edges, 9 households. How many edges there are is private: δ takes fifty of each person."""
    (people / "labels.csv").unlink()
    pairs = [(i, j) for i in range(60) for j in range(i)][:1600]
    lines = [f"p{i},p{j},h{i % 9}\n" for i, j in pairs]
    (people / "edges.csv").write_text("source,target,household\n" + "".join(lines), encoding="utf-8")
    written = new("--yes", "--task", "links", *(["--owner", "household"] if unit == "entity" else ["--unit", unit]))
    (task,) = written["tasks"]
    assert (task["task"], task["label"], float(task["delta"])) == ("link_prediction", f"{unit}-links", delta)
    rows = [row, "pairs"] if unit == "edge" else [row]
    assert [m["label"] for m in task["methods"]] == [*rows, "shared neighbours", "GCN", "public features"]
    assert written["datasets"][0]["parameters"]["label"] == ""
    assert unit != "edge" or cli.main(["check", "mine.yaml"]) == 0


def test_links_of_a_federation_are_drafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for bank in ("bank_a", "bank_b"):
        folder = tmp_path / "banks" / bank
        folder.mkdir(parents=True)
        (folder / "features.csv").write_text("id,x\n" + "".join(f"n{i},{i % 2}\n" for i in range(20)), encoding="utf-8")
        (folder / "edges.csv").write_text("".join(f"n{i},n{(i + 1) % 20}\n" for i in range(20)), encoding="utf-8")
    assert cli.main(["new", "--federation", "banks", "--yes", "--no-probe", "--task", "links"]) == 0
    assert cli.main(["check", "banks.yaml"]) == 0
    (task,) = yaml.safe_load(Path("banks.yaml").read_text(encoding="utf-8"))["tasks"]
    assert (task["task"], task["partition"]) == ("link_prediction", {"partition": "natural"})
