"""docs/use.md: every command, the Python block and every printed line, on a folder of people."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.commands.base import main
from tests.models.conftest import write_people

TEXT = (Path(__file__).parents[2] / "docs" / "use.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.S | re.M)


def test_the_page_goes_from_a_folder_to_predictions_for_new_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(Path("people"), 150, 0, 1)
    write_people(Path("newcomers"), 40, 2000, 3, header="id,city,member,age", known=False)
    for name, text in zip(("people.yaml", "choice.yaml"), blocks("yaml"), strict=True):
        Path(name).write_text(text, encoding="utf-8")
    commands = [shlex.split(line)[1:] for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        assert main(command) == 0, command
    spent, refused = (block.strip() for block in blocks("text"))
    printed = capsys.readouterr().out
    assert spent in printed
    fit = next(command for command in commands if command[0] == "fit")
    assert main(fit) == 2, "never over a file that is there"
    answers = pd.read_csv("answers.csv")
    assert list(answers["id"]) == [f"p{2000 + k}" for k in range(40)]
    shares = answers.drop(columns=["id", "class"])
    assert np.allclose(shares.sum(axis=1), 1)
    assert (shares.idxmax(axis=1) == [f"p({name})" for name in answers["class"]]).all()
    assert main(["predict", "people.model", "newcomers", "-o", "other.csv"]) == 1
    assert refused in capsys.readouterr().err
    (python,) = blocks("python")
    exec(compile(python, "use.md", "exec"), {})
    assert Path("second.model").exists()
