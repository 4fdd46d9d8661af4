"""docs/papers.md is made of its tables, and docs/tutorial.md of its club."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import fedgraph
from benchmarks import club, papers
from fedgraph.errors import FedgraphError

ROOT = Path(__file__).parent.parent
CLUB = ROOT / "docs" / "club"


def test_the_page_is_what_the_tables_say() -> None:
    assert papers.PAGE.read_text(encoding="utf-8") == papers.page(), "python -m benchmarks.papers > docs/papers.md"
    assert len(papers.items()) == 43


def test_an_item_says_how_it_is_made() -> None:
    """A scenario that is named is there; a table is linked or a sentence says why there is none."""
    for one in papers.items():
        assert one.made in papers.MARKS, one
        assert (one.by == "–") == (one.made == "no"), one
        for word in one.by.replace("`", " ").replace(",", " ").split():
            if word.endswith(".yaml"):
                assert (ROOT / "scenarios" / Path(word).name).exists(), one
        assert one.ours, one


def test_a_reference_without_a_row_is_named() -> None:
    assert papers.value("node_level/table1_published|DPAR-EM0|Physics[1]") == "0.924"
    assert papers.value("edge_level/gcon_steps|Actor, private test graph (Figure 2)|m = 1[0]") == "0.348"
    with pytest.raises(ValueError, match="has 0 rows 'nobody'"):
        papers.value("node_level/table1_published|nobody|CS")


def test_the_club_is_what_its_command_writes(tmp_path: Path) -> None:
    club.write(tmp_path)
    for name in ("members.csv", "games.csv"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (CLUB / name).read_text(encoding="utf-8")


def test_the_tutorial_shows_what_is_read() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    with pytest.raises(FedgraphError) as asked:
        fedgraph.read(CLUB)
    question = str(asked.value).partition(": ")[2].partition("? Say")[0]
    assert question.startswith("which column is the label")
    assert question in page.replace("\n", " ")
    shown = str(fedgraph.read(CLUB, label="section")).splitlines()[1:8]
    for line in shown:
        assert line in page
    with (ROOT / "docs" / "newcomers" / "members.csv").open(encoding="utf-8") as lines:
        assert {row["member"] for row in csv.DictReader(lines)} >= {"N1", "N2"}
