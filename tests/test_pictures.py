"""Pictures of the documents: each is of its table as it is, stands in a page, and no page shows another."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import pictures

ROOT = Path(__file__).parent.parent
EVERY = pictures.pictures()


def test_pages_show_the_pictures_that_are_made() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"\(pictures/(\w+)\.svg\)", page.read_text(encoding="utf-8"))}
    made = {p.name for p in EVERY}
    assert made == shown == {path.stem for path in pictures.FOLDER.glob("*.svg")}
    assert len(made) >= 20


def test_a_picture_shows_its_table() -> None:
    """Every number that is drawn stands in the table, and in the committed picture (its description of a mark)."""
    for picture in EVERY:
        drawn = pictures.points(picture)
        table = (ROOT / "docs" / "data" / f"{picture.table}.csv").read_text(encoding="utf-8").replace("−", "-").replace(",", "")
        svg = (pictures.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
        for point in drawn:
            value = float(point["value"])  # type: ignore[arg-type]
            forms = [f"{value:g}", *(f"{value:.{digits}f}".lstrip("0") for digits in (1, 2, 3))]
            assert any(form in table for form in forms), (picture.name, point)
        if picture.mark != "line":
            marks = svg.count('aria-roledescription="point"') + svg.count('aria-roledescription="bar"')
            assert marks == len(drawn), picture.name


def test_a_row_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="has no 'nobody'"):
        pictures.points(replace(EVERY[0], rows=["nobody"]))
    assert pictures.number("−.36 ± .01") == -0.36
    assert pictures.number("31,841") == 31841
    assert pictures.number("curve") is None
