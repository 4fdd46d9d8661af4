"""One list of columns, and every table reads it."""

from __future__ import annotations

from dataclasses import replace

from fedgraph.cells.entry import CellEntry
from fedgraph.cells.task_facts import ClientResultCellFacts, NodeClassificationCellFacts, ParticipationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report.report_rows import group_report_rows
from fedgraph.report.result_files import _WRITTEN, RESULT_NAMING, read_result_columns
from fedgraph.report.scores import score_rows
from fedgraph.report.statement import make_statement
from fedgraph.report.table_columns import (
    TABLE_COLUMNS,
    column_number_of_score,
    column_numbers_of_cells,
)
from fedgraph.worlds.world import world_of_trust

ENTRY = CellEntry(
    "t", "d", "m", "v", world_of_trust(Trust.CURATOR), "provable", 1.0, 0, {"accuracy": 0.5},
    NodeClassificationCellFacts(clients=3),
    Protection(Relation.NODE_REPLACE, Viewer.CURATOR_TRUSTED, ()), 1e-5, None, 0.9, None, "theorem", {"model": 0.9},
    (), 0.1, (),
)  # fmt: skip


def test_a_column_has_one_name_and_one_value_wherever_it_stands() -> None:
    keys = [column.key for column in TABLE_COLUMNS]
    assert len(set(keys)) == len(keys)
    (score,) = score_rows(group_report_rows([ENTRY]))
    (written,) = read_result_columns(column_numbers_of_cells("s", "real", [ENTRY]))
    number = column_number_of_score(score)
    for column in TABLE_COLUMNS:
        if column.csv and column.table and column.key != "metric":
            assert written[column.key] == column.value(number), column.key
    assert set(RESULT_NAMING) < set(written)


def test_every_assumption_stands_in_every_table_and_statement() -> None:
    stated = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, Assumption.CLIENTS_DISJOINT)
    entry = replace(ENTRY, protection=Protection(Relation.NODE_REPLACE, Viewer.SERVER, stated))
    (row,) = group_report_rows([entry])
    (score,) = score_rows([row])
    (written,) = read_result_columns(column_numbers_of_cells("s", "real", [entry]))
    column = next(column for column in TABLE_COLUMNS if column.key == "assumptions")
    for text in (written["assumptions"], column.value(column_number_of_score(score))):
        assert str(text).split() == [assumption.value for assumption in stated]
    assert make_statement(row).conditions == tuple(assumption.words for assumption in stated)


def test_a_number_of_one_client_stands_beside_the_epsilon_of_that_client() -> None:
    results = tuple(
        ClientResultCellFacts("federated", name, 5, 2, {"accuracy": 0.5}, epsilon, "the server")
        for name, epsilon in (("all", 0.9), ("a", 0.3), ("b", 0.9), ("c", 0.0))
    )
    entry = replace(ENTRY, facts=ParticipationCellFacts(results=results), epsilon_provable=0.9)
    written = read_result_columns(column_numbers_of_cells("s", "real", [entry]))
    assert {line["client"]: line["epsilon_provable"] for line in written} == {r.client: r.epsilon for r in results}


def test_every_line_of_results_csv_names_its_cell() -> None:
    assert all(key in {column.key for column in _WRITTEN} for key in RESULT_NAMING)
