"""What ties are worth at the ε of a training on tables: ``fedgraph price … --edges``, on the page of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedgraph.commands.base import main
from tests.models.conftest import write_people

FILES = Path(__file__).with_name("files")


@pytest.mark.slow
def test_rows_alone_beside_rows_with_ties_at_the_same_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(Path("people"), 400, 0, 1)
    assert main(["price", str(FILES / "neutral.yaml"), "--edges", "people"]) == 0
    said = capsys.readouterr().out
    assert "people, at ε = 1.828 and δ = 1e-05 for everything of one person, 3 seeds" in said
    alone, tied = (float(one) for one in re.findall(r"(?:rows alone|with ties)\s+([\d.]+)", said))
    assert 0.9 < alone < tied


def test_without_an_epsilon_there_is_nothing_to_compare_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", str(FILES / "opacus_train.py"), "--edges", str(tmp_path)]) == 2
    assert "nothing has a finite ε at a δ here" in capsys.readouterr().err
