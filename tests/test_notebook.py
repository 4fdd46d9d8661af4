"""The notebook of the documents runs from its first cell to its last, and holds no outputs of an older run."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


def cells() -> list[str]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not [cell for cell in found if cell.get("outputs") or cell.get("execution_count")]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


def test_the_cells_are_python_and_there_are_several() -> None:
    sources = cells()
    assert len(sources) >= 6
    for source in sources:
        ast.parse(source)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, when torch_geometric is imported
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, source in enumerate(cells(), 1):
        exec(compile(source, f"cell {number}", "exec"), names)
    assert (tmp_path / "compared" / "report.html").is_file()
    assert "<html" in (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert math.isfinite(names["quote"].headline.total.epsilon)
    assert names["best"].epsilon_provable <= 8.0
    assert names["quote"].fix.epsilon <= 8.0
    assert names["private"].trained.epsilon <= 8.0
    assert names["edges"].trained.epsilon <= 4.0
