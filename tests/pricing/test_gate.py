"""``fedgraph price`` as a gate: answers, exit status, SARIF, and what is never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.commands import price as command
from tests.pricing import truths

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent / "files"
NEUTRAL = "mechanism: gaussian\nunit: client\nnoise_multiplier: 2.0\nrounds: 9\ndelta: 1e-5\nsampling: {kind: none}\n"
OPEN = "import opacus\nm = e.make_private(noise_multiplier=1.0, max_grad_norm=1.0)\ne.get_epsilon(delta=1e-5)\n"


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "name", "limit", "status"),
    [
        (NEUTRAL, "n.yaml", "8", 0), (NEUTRAL, "n.yaml", "7", 1),
        (NEUTRAL.replace("2.0", "0"), "n.yaml", "8", 1), (OPEN, "t.py", "8", 2),
        (NEUTRAL.replace("2.0", "-1"), "n.yaml", "8", 2), (NEUTRAL, "n.yaml", "nan", 2), (NEUTRAL, "n.yaml", "inf", 0),
    ],
)  # fmt: skip
def test_the_exit_status_is_the_verdict(tmp_path: Path, text: str, name: str, limit: str, status: int) -> None:
    assert truths.gaussian(1.5, 1e-5) == pytest.approx(7.05, abs=0.01)
    assert cli.main(["price", str(written(tmp_path, name, text)), "--at-most", limit]) == status


def test_two_facts_are_answered_by_options_and_by_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "n.yaml", "mechanism: gaussian\nunit: client\nnoise_multiplier: 1.0\ndelta: 1e-5\n")
    facts = written(tmp_path, "facts.yaml", "sampling-rate: 0.01\nrounds: 200\n")
    for given in (["--given", "sampling rate=0.01", "--given", "rounds=200"], ["--given", str(facts)]):
        assert cli.main(["price", str(path), *given, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["questions"] == []
        assert found["total"]["epsilon"] == pytest.approx(truths.poisson(1.0, 0.01, 200, 1e-5), rel=6e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [("sampling rate=2", "in [0, 1]"), ("sampling rat=0.1", "did you mean 'sampling rate'"),
     ("steps", "NAME=NUMBER"), ("steps=many", "a number"),
     ("steps=-1", "≥ 0"), ("steps=１", "a number is allowed"), ("sampling rate=nan", "a number is allowed")],
)  # fmt: skip
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, given: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["price", str(written(tmp_path, "t.py", OPEN)), "--given", given]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert words in line


def test_sarif_shows_the_line_that_costs_privacy(tmp_path: Path) -> None:
    out = tmp_path / "out.sarif"
    cheap, dear = written(tmp_path, "n.yaml", NEUTRAL), written(tmp_path, "t.py", OPEN)
    assert cli.main(["price", str(cheap), str(dear), "--at-most", "1", "--sarif", str(out)]) == 2
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["version"] == "2.1.0"
    results = found["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [("too-dear", "error"), ("open", "warning")]
    lines = [r["locations"][0]["physicalLocation"]["region"]["startLine"] for r in results]
    assert lines == [3, 2]
    assert {r["ruleId"] for r in results} <= {rule["id"] for rule in found["runs"][0]["tool"]["driver"]["rules"]}


@pytest.mark.parametrize("option", ["--html", "--sarif"])
def test_nothing_overwrites_a_configuration(tmp_path: Path, option: str) -> None:
    path, beside = written(tmp_path, "n.yaml", NEUTRAL), written(tmp_path, "train.py", "x = 1\n")
    link = tmp_path / "page.html"
    link.symlink_to(path)
    for target in (path, beside, link):
        assert cli.main(["price", str(path), option, str(target)]) == 2
    assert path.read_text(encoding="utf-8") == NEUTRAL
    assert beside.read_text(encoding="utf-8") == "x = 1\n"


def test_what_is_no_file_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (tmp_path / "pipe.yaml", Path("/dev/zero"), tmp_path / "nothing"):
        assert cli.main(["price", str(path)]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_an_interruption_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pricing, "price", stop)
    assert cli.main(["price", str(FILES / "neutral.yaml")]) == 2
    assert capsys.readouterr().err == "fedgraph price: interrupted\n"


@pytest.mark.parametrize("file", ["pfl_benchmark.yaml", "neutral.yaml", "tf_privacy.sh", "opacus_train.py"])
def test_a_fix_names_options_that_are_there(file: str) -> None:
    """Each setting is a word of the file."""
    fix = pricing.price(FILES / file, fix=1.0).fix
    assert fix is not None
    text = (FILES / file).read_text(encoding="utf-8")
    for name in fix.settings or {}:
        assert name in text
    assert fix.settings or fix.why


def test_a_delta_above_one_over_the_people_is_said(tmp_path: Path) -> None:
    words = "compute_dp_sgd_privacy --N=1000 --batch_size=10 --noise_multiplier=1 --epochs=1 --delta={}\n"
    said = [pricing.price(written(tmp_path, "c.sh", words.format(delta))).reading.order for delta in (1e-2, 1e-5)]
    assert [any("above 1/1,000" in sentence for sentence in order) for order in said] == [True, False]


def test_randomised_answers_are_replaced_not_zeroed(tmp_path: Path) -> None:
    text = "mechanism: randomised-response\nunit: user\nflip_probability: 0.2\nrounds: 1\n"
    assert pricing.price(written(tmp_path, "n.yaml", text)).headline.row.relation == "replace"


def test_the_hook_and_the_action_use_options_that_exist() -> None:
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    action = yaml.safe_load((ROOT / ".github/actions/price/action.yml").read_text(encoding="utf-8"))
    assert [h["entry"] for h in hook] == ["fedgraph price"]
    steps = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite"
    assert all("${{" not in step["run"] for step in steps), "what a workflow passes is never part of the script"
    parser = cli.CommandParser()
    command.configure(parser)
    for option in ("--at-most", "--given", "--sarif"):
        assert option in steps[1]["run"]
        assert option in parser.format_help()
