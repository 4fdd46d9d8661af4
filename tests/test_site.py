"""The documents: commands, links, names, pictures and tables in them are there, and the site builds without a warning."""

from __future__ import annotations

import ast
import csv
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fedgraph
from benchmarks import club, papers, pictures
from fedgraph import plugins
from fedgraph.errors import FedgraphError

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURES = pictures.pictures()


def test_the_first_two_commands_are_one_line_each_and_self_contained() -> None:
    blocks = [b.strip() for b in re.findall(r"```bash\n(.*?)```", README, re.S)]
    run, test = blocks[:2]
    for command in (run, test):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && ")
        assert "-c constraints.txt" in command
    assert run.endswith("-m fedgraph.run scenarios/citeseer.yaml")
    assert test.endswith("-m pytest")
    assert next(b for b in blocks if "pytest" in b) == test, "which CI runs"


def test_files_named_in_the_readme_exist() -> None:
    named = re.findall(r"\]\(([^)#]+)\)|(scenarios/\w+\.yaml|fedgraph/\w+\.py|ray_cluster\.yaml)", README)
    assert len(named) > 10
    assert not [name for name in map("".join, named) if not (ROOT / name).exists()]


def test_every_method_has_a_page_that_the_table_names() -> None:
    table, site = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/choose.md", "mkdocs.yml"))
    for name in plugins.own_names("methods"):
        page = (DOCS / "methods" / f"{name}.md").read_text(encoding="utf-8")
        for part in ("**Idea.**", "**Guarantee.**", "**What we found.**", "**Reference.**"):
            assert part in page, name
        assert f"(methods/{name}.md)" in table
        assert f"methods/{name}.md" in site


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the documentation is built where the extra 'docs' is installed")
    pytest.importorskip("material")
    options = ["build", "--strict", "-q", "-f", str(ROOT / "mkdocs.yml"), "-d", str(tmp_path / "site")]
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", **nowhere}
    command = [sys.executable, "-m", "mkdocs", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    start = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "Start here in ten minutes" in start
    assert "fonts.googleapis" not in start


def cells() -> list[str]:
    found: list[dict[str, Any]] = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


def test_the_notebook_is_python_and_holds_no_outputs_of_an_older_run() -> None:
    assert len([ast.parse(source) for source in cells()]) >= 6
    assert not re.findall(
        r'"outputs": \[\s*[^\]\s]|"execution_count": \d', (DOCS / "notebook.ipynb").read_text(encoding="utf-8")
    )


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
    assert max(names["best"].epsilon_provable, names["quote"].fix.epsilon, names["private"].trained.epsilon) <= 8.0
    assert names["edges"].trained.epsilon <= 4.0


def test_the_page_of_papers_is_what_the_tables_say_and_scenarios_that_it_names_are_there() -> None:
    assert papers.PAGE.read_text(encoding="utf-8") == papers.page(), "python -m benchmarks.papers > docs/papers.md"
    for one in papers.items():
        assert one.made in papers.MARKS, one
        assert (one.by == "–") == (one.made == "no"), one
        assert one.ours, one
        assert not [n for n in re.findall(r"[\w/]+\.yaml", one.by) if not (ROOT / "scenarios" / Path(n).name).exists()], one
    assert papers.value("node_level/table1_published|DPAR-EM0|Physics[1]") == "0.924"
    with pytest.raises(ValueError, match="has 0 rows 'nobody'"):
        papers.value("node_level/table1_published|nobody|CS")


def test_the_tutorial_shows_what_is_read_of_the_club_that_its_command_writes(tmp_path: Path) -> None:
    club.write(tmp_path)
    for name in ("members.csv", "games.csv"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (DOCS / "club" / name).read_text(encoding="utf-8")
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    with pytest.raises(FedgraphError) as asked:
        fedgraph.read(DOCS / "club")
    question = str(asked.value).partition(": ")[2].partition("? Say")[0]
    assert question.startswith("which column is the label")
    assert question in page.replace("\n", " ")
    shown = str(fedgraph.read(DOCS / "club", label="section")).splitlines()[1:8]
    assert not [line for line in shown if line not in page]
    with (DOCS / "newcomers" / "members.csv").open(encoding="utf-8") as lines:
        assert {row["member"] for row in csv.DictReader(lines)} >= {"N1", "N2"}


def test_pages_show_the_pictures_that_are_made() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *DOCS.rglob("*.md"))]
    shown = {name for page in pages for name in re.findall(r"\(pictures/(\w+)\.svg\)", page)}
    assert {p.name for p in PICTURES} == shown == {path.stem for path in pictures.FOLDER.glob("*.svg")}
    assert len(shown) >= 20


def test_a_picture_shows_its_table() -> None:
    """Every number that is drawn stands in the table, and in the committed picture (its description of a mark)."""
    for picture in PICTURES:
        drawn = pictures.points(picture)
        table = (DOCS / "data" / f"{picture.table}.csv").read_text(encoding="utf-8").replace("−", "-").replace(",", "")
        svg = (pictures.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
        for point in drawn:
            value = float(point["value"])  # type: ignore[arg-type]
            forms = [f"{value:g}", *(f"{value:.{digits}f}".lstrip("0") for digits in (1, 2, 3))]
            assert any(form in table for form in forms), (picture.name, point)
        if picture.mark != "line":
            marks = svg.count('aria-roledescription="point"') + svg.count('aria-roledescription="bar"')
            assert marks == len(drawn), picture.name
    with pytest.raises(ValueError, match="has no 'nobody'"):
        pictures.points(replace(PICTURES[0], rows=["nobody"]))
    assert [pictures.number(cell) for cell in ("−.36 ± .01", "31,841", "curve")] == [-0.36, 31841, None]
