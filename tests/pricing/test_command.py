"""``fedgraph price`` from the outside: bad input, the gate, answers, Python files alone, pages, the committed table, ties."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import deployed_noise
from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.errors import PricingError
from fedgraph.pricing import quotes
from tests.models.conftest import write_people
from tests.pricing import truths

ROOT = Path(__file__).parents[2]
FILES = Path(__file__).parent / "files"
NEUTRAL = "mechanism: gaussian\nunit: client\nnoise_multiplier: 2.0\nrounds: 9\ndelta: 1e-5\nsampling: {kind: none}\n"
TRAIN = """from opacus import PrivacyEngine

EPOCHS = 5
engine = PrivacyEngine()
model, opt, loader = engine.make_private(module=model, optimizer=opt, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1)
for _ in range(EPOCHS):
    for x, y in loader:
        opt.step()
print(engine.get_epsilon(delta=1e-5))
"""
FLAGS = """from absl import app, flags
from tensorflow_privacy import DPKerasSGDOptimizer
flags.DEFINE_float("noise_multiplier", 1.1, "noise")
flags.DEFINE_integer("epochs", 10, "epochs")
FLAGS = flags.FLAGS
def main(_):
    model.compile(optimizer=DPKerasSGDOptimizer(l2_norm_clip=1, noise_multiplier=FLAGS.noise_multiplier, num_microbatches=200))
    model.fit(x, y, epochs=FLAGS.epochs, batch_size=200)
app.run(main)
"""
WHOLE = {"noise multiplier": 1.1, "sampling rate": 0.01, "steps": 500.0, "delta": 1e-5, "examples of one person": 1.0,
         "other steps or files": 0.0}  # fmt: skip


def written(tmp_path: Path, text: str, name: str = "train.py") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


BAD = {
    "unknown.docx": ("x", "unknown file type"),
    "deep.json": ("[" * 200000, "nested too deeply"),
    "tag.yaml": ("mechanism: !!python/object/apply:os.system ['echo hi']\n", "would run code"),
    "twice.json": ('{"a": 1, "a": 2}', "appears twice"),
    "nan.json": ('{"a": NaN}', "not a number of JSON"),
    "list.yaml": ("- 1\n", "a mapping of keys"),
    "broken.toml": ("a = = 1\n", "not TOML"),
    "broken.py": ("def f(:\n", "not Python"),
    "null.py": ("x = 1\x00\n", "not Python"),
    "shell.sh": ("python train.py --epsilon $(cat e)\n", "shell code"),
    "two.sh": ("python a.py --x 1\npython b.py --y 2\n", "2 command lines"),
    "prose.txt": ("Our training used noise.\n", "not a command line"),
    "nobody.yaml": ("learning_rate: 0.1\n", "no system known here"),
    "option.sh": ("compute_dp_sgd_privacy --N=9 --batch_size=3 --noise_multiplier=1 --epochs=2 --epochss=4", "mean 'epochs'?"),
    "none.py": ("x = 1\n", "no call of differential privacy"),
    "app.toml": ("[tool.flwr.app.components]\nserverapp = 'a.b:app'\n", "there is no a/b.py"),
    "gauss.json": ('{"task_result_filters": [{"filters": [{"name": "GaussianPrivacy"}]}]}', "not a filter of nvflare"),
    "ledger.jsonl": ("{}\n", "not a ledger line"),
    "large.yaml": ("a: 1\n" * 300_000, "at most 1,000,000"),
    "binary.yaml": ("\x00\x80", "cannot be read|not UTF-8|not YAML"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, words = BAD[name]
    assert cli.main(["price", str(written(tmp_path, text, name))]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert re.search(words if "|" in words else re.escape(words), line)
    assert name in line


def test_what_is_no_file_and_no_question_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for words in ([str(tmp_path / "pipe.yaml")], ["/dev/zero"], [str(tmp_path / "nothing")], [], ["x.yaml", "--as", "floer"]):
        assert cli.main(["price", *words]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "name", "limit", "status"),
    [
        (NEUTRAL, "n.yaml", "8", 0), (NEUTRAL, "n.yaml", "7", 1),
        (NEUTRAL.replace("2.0", "0"), "n.yaml", "8", 1), (TRAIN, "t.py", "8", 2), (FLAGS, "t.py", "inf", 2),
        (TRAIN.replace("noise_multiplier=1.1", "noise_multiplier=sigma"), "t.py", "1e9", 2),
        (NEUTRAL.replace("2.0", "-1"), "n.yaml", "8", 2), (NEUTRAL, "n.yaml", "nan", 2), (NEUTRAL, "n.yaml", "inf", 0),
    ],
)  # fmt: skip
def test_the_exit_status_is_the_verdict(tmp_path: Path, text: str, name: str, limit: str, status: int) -> None:
    assert truths.gaussian(1.5, 1e-5) == pytest.approx(7.05, abs=0.01)
    assert cli.main(["price", str(written(tmp_path, text, name)), "--at-most", limit]) == status


def test_two_facts_are_answered_by_options_and_by_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "mechanism: gaussian\nunit: client\nnoise_multiplier: 1.0\ndelta: 1e-5\n", "n.yaml")
    facts = written(tmp_path, "sampling-rate: 0.01\nrounds: 200\n", "facts.yaml")
    for given in (["--given", "sampling rate=0.01", "--given", "rounds=200"], ["--given", str(facts)]):
        assert cli.main(["price", str(path), *given, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["questions"] == []
        assert found["total"]["epsilon"] == pytest.approx(truths.poisson(1.0, 0.01, 200, 1e-5), rel=6e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [("sampling rate=2", "in [0, 1]"), ("sampling rat=0.1", "did you mean 'sampling rate'"), ("steps", "NAME=NUMBER"),
     ("steps=many", "a number"), ("steps=-1", "≥ 0"), ("steps=１", "a number is allowed"), ("delta=nan", "is allowed")],
)  # fmt: skip
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, given: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["price", str(written(tmp_path, TRAIN)), "--given", given]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert words in line


def test_the_gate_of_several_files_is_the_worst_of_theirs(tmp_path: Path) -> None:
    cheap, open_ = written(tmp_path, NEUTRAL, "n.yaml"), written(tmp_path, TRAIN)
    assert cli.main(["price", str(cheap), str(open_), "--at-most", "8"]) == 2


@pytest.mark.parametrize("file", ["pfl_benchmark.yaml", "neutral.yaml", "tf_privacy.sh", "opacus_train.py"])
def test_a_fix_names_options_that_are_there(file: str) -> None:
    fix = pricing.price(FILES / file, fix=1.0).fix
    assert fix is not None
    text = (FILES / file).read_text(encoding="utf-8")
    assert all(name in text for name in fix.settings or {})
    assert fix.settings or fix.why


def test_a_delta_above_one_over_the_people_is_said() -> None:
    words = "compute_dp_sgd_privacy --N=1000 --batch_size=10 --noise_multiplier=1 --epochs=1 --delta={}"
    said = [pricing.price_command(words.format(delta)).reading.order for delta in (1e-2, 1e-5)]
    assert [any("above 1/1,000" in sentence for sentence in order) for order in said] == [True, False]
    gate = [cli.main(["price", "--command", words.format(delta), "--at-most", "100"]) for delta in (1e-2, 1e-5)]
    assert gate == [2, 0], "an ε at such a δ proves nothing"


def test_the_hook_and_the_action_use_options_that_exist() -> None:
    hook = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    action = yaml.safe_load((ROOT / ".github/actions/price/action.yml").read_text(encoding="utf-8"))
    assert [h["entry"] for h in hook] == ["fedgraph price"]
    steps = action["runs"]["steps"]
    assert all("${{" not in step["run"] for step in steps), "what a workflow passes is never part of the script"
    assert all(option in steps[1]["run"] for option in ("--at-most", "--given"))


def test_the_command_imports_neither_torch_nor_ray() -> None:
    code = f"import sys; from fedgraph.commands import base; base.main(['price', {str(FILES / 'neutral.yaml')!r}]); "
    code += "sys.exit('torch' in sys.modules or 'ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


# A Python file or a notebook alone: its calls with their lines, questions, and never a total.


def test_answers_make_a_table_and_never_a_total(tmp_path: Path) -> None:
    path = written(tmp_path, TRAIN)
    quote = pricing.price(path, given=WHOLE)
    assert quote.headline.total is None
    assert quote.headline.per_round.epsilon == pytest.approx(truths.poisson(1.1, 0.01, 1, 1e-5), abs=1e-3)
    assert '--run "python train.py"' in quote.reading.order[0]
    assert [line.partition("(")[0] for line in quote.reading.order[1:]] == [
        "train.py:4: PrivacyEngine", "train.py:5: make_private", "train.py:9: get_epsilon",
    ]  # fmt: skip
    with pytest.raises(PricingError, match="only searched"):
        pricing.price(path, system="flower")


def test_what_the_file_writes_is_the_first_plausible_answer(tmp_path: Path) -> None:
    asked = {a.unknown.name: a.answers for a in pricing.price(written(tmp_path, FLAGS)).asked}
    assert (asked["noise multiplier"][0][0], asked["epochs"][0][0]) == (1.1, 10)
    [(_, epsilon)] = [answer for answer in asked["delta"] if answer[0] == 1e-7]
    assert epsilon == pytest.approx(truths.gaussian(math.sqrt(10) / 1.1, 1e-7)), "a pass is one sum: nothing is amplified"


@pytest.mark.parametrize(
    ("call", "words"),
    [("LocalDpMod(1.0, 1.0, 2.0, 1e-5)", "price the pyproject.toml of its app"),
     ("job.to(PercentilePrivacy(percentile=10), 'site-1')", "export the job, and price its folder")],
)  # fmt: skip
def test_a_program_whose_noise_is_declared_elsewhere_is_sent_there(tmp_path: Path, call: str, words: str) -> None:
    with pytest.raises(PricingError, match=words):
        pricing.price(written(tmp_path, f"{call}\n"))


def test_of_a_program_that_protects_users_the_unit_is_a_user(tmp_path: Path) -> None:
    quote = pricing.price(written(tmp_path, "PLDPrivacyAccountant(num_compositions=9, sampling_probability=0.1)\n"))
    assert quote.headline.row.unit == "user"
    assert [a.unknown.name for a in quote.asked] == [
        "noise multiplier",
        "other steps or files",
        "steps",
        "sampling rate",
        "delta",
    ]
    assert [a.answers[0][0] for a in quote.asked if a.unknown.name in ("steps", "sampling rate")] == [9, 0.1]


def test_a_question_says_how_it_is_answered_and_a_loader_without_coins_is_asked_for_its_epochs(tmp_path: Path) -> None:
    quote = pricing.price(written(tmp_path, TRAIN.replace("max_grad_norm=1", "max_grad_norm=1, poisson_sampling=False")))
    assert "epochs" in [asked.unknown.name for asked in quote.asked]
    assert '--given "epochs=…" → ε: 5 →' in quotes.text(quote)


def test_no_cell_of_a_notebook_is_dropped_in_silence(tmp_path: Path) -> None:
    cells = ("import opacus\n!pip install opacus", "%%time\nengine.make_private(noise_multiplier=1.0)", "%%bash\nls", "if x\n")
    made = {"cells": [{"cell_type": "code", "source": cell, "outputs": ["a picture" * 99_999]} for cell in cells]}
    quote = pricing.price(written(tmp_path, json.dumps(made), "nb.ipynb"))
    assert '--run "jupyter execute nb.ipynb"' in quote.reading.order[0]
    assert any("nb.ipynb, cell 2:2: make_private" in line for line in quote.reading.order)
    assert [words.partition(",")[0] for words in quote.reading.not_priced] == ["cell 3", "cell 4"]


# What is shown.


def test_every_row_of_a_quote_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FILES / "blink.yaml")
    assert cli.main(["price", path, "--fix", "1"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{priced.row.unit} " in shown and priced.row.relation in shown for priced in pricing.price(path).rows)


def test_where_the_total_is_open_the_theorem_beside_the_rounds_is_said_to_price_one() -> None:
    svt = pricing.price(FILES / "nvflare_svt.json")
    answered = pricing.price(FILES / "nvflare_svt.json", given={"parameters": 9, "rounds": 4})
    assert svt.headline.total is None
    assert ["one of" in shown for shown in (quotes.text(svt), quotes.text(answered))] == [True, False]


def test_a_batch_share_of_federatedscope_is_taken_as_the_one_that_protects_least() -> None:
    quote = pricing.price(FILES / "federatedscope_sgdmf.yaml", fix=8.0)
    ((_, *others),) = (tuple(epsilon for _, epsilon in asked.answers) for asked in quote.asked)
    assert quote.headline.per_round.epsilon > max(others)
    assert quote.fix is not None
    assert quote.fix.why.endswith("if batch share = 0.001")


def test_shown_bounds_are_never_below() -> None:
    for value in (1.23441, 9.9999, 0.0123451, 12345.6, 8.0, 1e-9, 213_000_000.4):
        assert float(quotes.readable(value)) >= value * (1 - 1e-12)
    assert (quotes.readable(8.0), quotes.readable(math.inf)) == ("8", "∞")


@pytest.mark.slow
def test_the_committed_table_is_what_the_command_prints() -> None:
    committed = (ROOT / "docs" / "data" / "deployed_noise.csv").read_text(encoding="utf-8")
    made = deployed_noise.table(FILES, "python -m benchmarks.deployed_noise tests/pricing/files")
    assert made == committed
    page = (ROOT / "docs" / "what_deployed_noise_buys.md").read_text(encoding="utf-8")
    shown = [line.strip("| ").split(" | ")[-1] for line in page.splitlines() if line.startswith("|")][2:]
    assert all(worth in made for worth in shown)


CLAIMS = {"fedlap": math.inf, "hogs": 6.0, "upgnet": math.inf, "advsgm": truths.poisson(5.0, 128 * 5 / 4039, 750, 1e-5)}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_of_repositories_are_priced(name: str) -> None:
    """What their public settings are worth; truths by hand and by dp_accounting."""
    total = pricing.price(FILES / f"claim_{name}.yaml").headline.total
    assert total is not None
    assert total.epsilon == pytest.approx(CLAIMS[name], rel=6e-3)


@pytest.mark.slow
def test_rows_alone_beside_rows_with_ties_at_the_same_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(Path("people"), 400, 0, 1)
    assert cli.main(["price", str(FILES / "neutral.yaml"), "--edges", "people"]) == 0
    said = capsys.readouterr().out
    assert "people, at ε = 1.828 and δ = 1e-05 for everything of one person, 3 seeds" in said
    alone, tied = (float(one) for one in re.findall(r"(?:rows alone|with ties)\s+([\d.]+)", said))
    assert 0.9 < alone < tied
    assert cli.main(["price", str(FILES / "opacus_train.py"), "--edges", str(tmp_path)]) == 2
    assert "nothing has a finite ε at a δ here" in capsys.readouterr().err
