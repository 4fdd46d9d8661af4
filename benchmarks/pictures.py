"""The pictures of the documents, from the tables in ``docs/data``: one SVG each in ``docs/pictures``.

    python -m benchmarks.pictures [NAME …]

``pictures.yaml`` lists them, and ``Picture`` says what its keys mean. Nothing is run; a number that a picture shows stands in
its table, and what makes that table again stands in the table's first line.
"""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
_NUMBER = re.compile(r"[-−+]?\d*\.?\d+(?:,\d{3})*")
_WIDTHS = {1: 520, 2: 250, 3: 165, 4: 130}


@dataclass(frozen=True)
class Picture:
    """One picture.

    Args:
        name: of its file.
        table: below ``docs/data``, without ``.csv``.
        title: above it.
        y: what the numbers are.
        x: what the parts of a cell stand for, e.g. ``[1, 4, 8]``; ``columns``: one number in each cell, the columns are x.
        split: what parts of a cell are divided by.
        rows: first cells of the rows that are shown; all where it is empty.
        columns: heads of the columns that are shown; all but the first where it is empty.
        part: which part of a cell alone is shown, from 0; None: all.
        label: of the axis x.
        mark: ``line``, ``point`` or ``bar``.
        log: ``y``: numbers on a logarithmic axis.
    """

    name: str
    table: str
    title: str
    y: str = "accuracy"
    x: list[object] | str = field(default_factory=list)
    split: str = " / "
    rows: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    part: int | None = None
    label: str = "ε"
    mark: str = "line"
    log: str = ""


def pictures() -> list[Picture]:
    return [Picture(**one) for one in yaml.safe_load((ROOT / "benchmarks" / "pictures.yaml").read_text(encoding="utf-8"))]


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table of ``docs/data``."""
    lines = (ROOT / "docs" / "data" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    head, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    heads = [h if h not in head[:i] else f"{h} ({i})" for i, h in enumerate(head)]
    return [dict(zip(heads, row, strict=False)) for row in rows]


def number(text: str) -> float | None:
    """The first number of a text; None where there is none."""
    found = _NUMBER.search(text.replace("−", "-"))
    return float(found.group().replace(",", "")) if found else None


def points(picture: Picture) -> list[dict[str, object]]:
    """What is drawn: one record for each number, with its row, column and place along x.

    Raises:
        ValueError: a row or a column that the table does not have, or nothing to draw.
    """
    rows = table(picture.table)
    first, *heads = rows[0]
    known = [row[first] for row in rows]
    if missing := [r for r in picture.rows if r not in known] + [c for c in picture.columns if c not in heads]:
        raise ValueError(f"{picture.name}: {picture.table} has no {missing[0]!r}; its rows: {known}; its columns: {heads}")
    found: list[dict[str, object]] = []
    for row in rows:
        if picture.rows and row[first] not in picture.rows:
            continue
        for column in picture.columns or heads:
            cell = row.get(column) or ""
            parts = [cell] if picture.x == "columns" else cell.split(picture.split)
            for place, part in enumerate(parts):
                value = number(part)
                if value is None or picture.part not in (None, place):
                    continue
                x = column if picture.x == "columns" else picture.x[place] if place < len(picture.x) else str(place)
                found.append({"row": row[first].replace("`", ""), "column": column, "x": str(x), "value": value})
    if not found:
        raise ValueError(f"{picture.name}: nothing to draw in {picture.table}")
    return found


def chart(picture: Picture) -> dict[str, object]:
    """The picture as Vega-Lite.

    Numbers stand on a straight axis, words and budgets side by side in their order. Where the parts of a cell are x and there
    are several columns, each column has a panel of its own.
    """
    import altair as alt

    values = points(picture)
    data = alt.InlineData(values=values)
    heads = picture.columns or list(table(picture.table)[0])[1:]
    met = dict.fromkeys(v["x"] for v in values)
    order = [head for head in heads if head in met] if picture.x == "columns" else [str(x) for x in met]
    rows = list(dict.fromkeys(str(v["row"]) for v in values))
    columns = list(dict.fromkeys(str(v["column"]) for v in values))
    panels = columns if picture.x != "columns" and picture.part is None and len(columns) > 1 else []
    side = picture.part is not None
    scale = alt.Scale(type="log") if picture.log else alt.Scale(zero=False)
    y = alt.Y("value:Q", title=picture.y, scale=scale)
    legend = alt.Legend(title=None, labelLimit=260)
    width = _WIDTHS.get(len(panels), 130) if panels else 520
    if picture.mark == "line":
        along = alt.X("x:N", sort=order, title=picture.label, axis=alt.Axis(labelAngle=0))
        color = alt.Color("row:N", sort=rows, legend=legend)
        made = alt.Chart(data).mark_line(point=True).encode(x=along, y=y, color=color).properties(width=width, height=220)
    else:
        color = alt.Color(f"{'column' if side else 'x'}:N", sort=columns if side else order, legend=legend)
        wide = alt.X("value:Q", title=picture.y, scale=scale)
        down = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labelLimit=260))
        base = alt.Chart(data)
        marked = base.mark_bar(opacity=0.8) if picture.mark == "bar" else base.mark_point(filled=True, size=60)
        made = marked.encode(x=wide, y=down, color=color).properties(width=width, height={"step": 17})
        if picture.mark == "bar":
            made = made.encode(yOffset=alt.YOffset(f"{'column' if side else 'x'}:N", sort=columns if side else order))
            made = made.properties(height={"step": 9})
    if panels:
        made = made.facet(facet=alt.Facet("column:N", sort=panels, title=None), columns=min(4, len(panels)))
    return dict(made.properties(title=picture.title).to_dict())


def draw(picture: Picture) -> Path:
    """Writes the picture; returns its file."""
    import vl_convert

    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{picture.name}.svg"
    path.write_text(vl_convert.vegalite_to_svg(chart(picture)), encoding="utf-8")
    return path


def main(names: list[str]) -> int:
    there = {p.name: p for p in pictures()}
    if unknown := [name for name in names if name not in there]:
        print(f"no picture is called {unknown[0]!r}; allowed: {', '.join(there)}", file=sys.stderr)
        return 2
    for name in names or there:
        print(draw(there[name]).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
