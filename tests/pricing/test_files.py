"""Bad input: one line each, nothing hangs, nothing is run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.errors import PricingError

BAD = {
    "unknown.docx": ("x", "unknown file type"),
    "deep.json": ("[" * 200000, "nested too deeply"),
    "tag.yaml": ("mechanism: !!python/object/apply:os.system ['echo hi']\n", "would run code"),
    "twice.json": ('{"a": 1, "a": 2}', "appears twice"),
    "nan.json": ('{"a": NaN}', "not a number of JSON"),
    "list.yaml": ("- 1\n", "a mapping of keys"),
    "empty.yaml": ("", "a mapping of keys"),
    "broken.toml": ("a = = 1\n", "not TOML"),
    "broken.py": ("def f(:\n", "not Python"),
    "null.py": ("x = 1\x00\n", "not Python"),
    "shell.sh": ("python train.py --epsilon $(cat e)\n", "shell code"),
    "two.sh": ("python a.py --x 1\npython b.py --y 2\n", "2 command lines"),
    "prose.txt": ("Our training used noise.\n", "not a command line"),
    "tasks.yaml": ("name: s\ntasks: [{task: node_classification, epsilons: [1]}]\n", "no system known here"),
    "nobody.yaml": ("learning_rate: 0.1\n", "no system known here"),
    "option.sh": (
        "compute_dp_sgd_privacy --N=9 --batch_size=3 --noise_multiplier=1 --epochs=2 --epochss=4\n",
        "unknown option 'epochss'; did you mean 'epochs'?",
    ),
    "none.py": ("x = 1\n", "no call of differential privacy"),
    "app.toml": ("[tool.flwr.app.components]\nserverapp = 'a.b:app'\n", "there is no a/b.py"),
    "gauss.json": ('{"task_result_filters": [{"filters": [{"name": "GaussianPrivacy"}]}]}', "not a filter of nvflare"),
    "ledger.jsonl": ("{}\n", "not a ledger line"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, words = BAD[name]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    started = time.perf_counter()
    with pytest.raises(PricingError) as raised:
        pricing.price(path)
    assert time.perf_counter() - started < 5
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert name in str(raised.value)
    assert cli.main(["price", str(path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_missing_a_large_and_a_binary_file(tmp_path: Path) -> None:
    with pytest.raises(PricingError, match="cannot be read"):
        pricing.price(tmp_path / "nothing.yaml")
    (tmp_path / "large.yaml").write_text("a: 1\n" * 300_000, encoding="utf-8")
    with pytest.raises(PricingError, match="at most 1,000,000"):
        pricing.price(tmp_path / "large.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(PricingError, match="not UTF-8"):
        pricing.price(tmp_path / "binary.yaml")


def test_the_command_line_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["price"]) == 2
    assert "name a FILE" in capsys.readouterr().err
    assert (
        cli.main(
            ["price", "--command", "compute_dp_sgd_privacy --N=9000 --batch_size=90 --noise_multiplier=2 --epochs=2", "--json"]
        )
        == 0
    )
    assert '"unit": "example"' in capsys.readouterr().out
    assert cli.main(["price", "x.yaml", "--as", "floer"]) == 2


def test_numbers_in_a_file_become_numbers(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(
        "mechanism: gaussian\nunit: client\nclip: 1\nnoise_std: 2\nrounds: 1\ndelta: 1e-5\nsampling: {kind: none}\n"
    )
    assert pricing.price(path).headline.row.delta == 1e-5
