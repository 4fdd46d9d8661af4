"""One list of columns, and every table reads it."""

from __future__ import annotations

from fedgraph.cells.entry import Entry
from fedgraph.cells.facts import NodeClassificationFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Protection, Relation, Viewer
from fedgraph.report import trackers
from fedgraph.report.columns import COLUMNS, number_of_score, numbers_of_cells, page_columns, page_lines
from fedgraph.report.report_rows import group_rows
from fedgraph.report.result_files import NAMING, WRITTEN, read_columns
from fedgraph.report.scores import score_rows
from fedgraph.worlds.world import trusting

ENTRY = Entry(
    "t", "d", "m", "v", trusting(Trust.CURATOR), "provable", 1.0, 0, {"accuracy": 0.5}, NodeClassificationFacts(clients=3),
    Protection(Relation.NODE_REPLACE, Viewer.CURATOR_TRUSTED, ()), 1e-5, None, 0.9, None, "theorem", {"model": 0.9},
    (), 0.1, (),
)  # fmt: skip


def test_a_column_has_one_name_and_one_value_wherever_it_stands() -> None:
    keys = [column.key for column in COLUMNS]
    assert len(set(keys)) == len(keys)
    (score,) = score_rows(group_rows([ENTRY]))
    (written,) = read_columns(numbers_of_cells("s", "real", [ENTRY]))
    number = number_of_score(score)
    for column in COLUMNS:
        if column.csv and column.table and column.key != "metric":
            assert written[column.key] == column.value(number), column.key
    assert set(NAMING) < set(written)


def test_the_page_and_the_trackers_have_what_the_list_says() -> None:
    scores = score_rows(group_rows([ENTRY]))
    ((_, cells),), (tracked,) = page_lines(scores), trackers.lines(scores)
    shown = {column.key: cell.text for (column, _), cell in zip(page_columns(scores), cells, strict=True)}
    assert (shown["epsilon_provable"], shown["clients"], shown["mean"], shown["trust"]) == ("0.9", "3", "0.500", "curator")
    assert set(tracked.params) == {column.key for column in COLUMNS if column.tracked in ("parameter", "both")}
    assert tracked.metrics == {"accuracy": 0.5, "epsilon_provable": 0.9}


def test_every_line_of_results_csv_names_its_cell() -> None:
    assert all(key in {column.key for column in WRITTEN} for key in NAMING)
