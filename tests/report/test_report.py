"""Words and numbers of the report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import NodeClassificationCellFacts
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import statement
from fedgraph.report.table import rows_of
from tests.results import plain_result


def entry(**changes: Any) -> Result:
    protection = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.CLIENTS_DISJOINT,))
    made = plain_result(
        "t", "d", "m", "v", world_of_trust(Trust.OWN_CLIENT),
        "provable", 1.0, 0, {"accuracy": 0.5}, NodeClassificationCellFacts(), protection, 1e-5, None,
        1.0, None, "theorem", {"model": 1.0}, (), 0.1, (),
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_every_price_of_a_row_is_that_of_its_dearest_seed(order: tuple[int, ...]) -> None:
    paid = (0.5, 2.0, 1.0)
    made = [entry(seed=s, epsilon_provable=paid[s], epsilon_published=2 * paid[s], paths={"model": paid[s] / 2}) for s in order]
    (row,) = rows_of(made)
    assert (row.epsilon_provable, row.epsilon_published, row.paths["model"]) == (2.0, 4.0, 1.0)
    said = " ".join(statement.sentences(row))
    assert "ε = 2 with δ" in said
    assert "gives ε = 4" in said


def test_seeds_that_chose_otherwise_are_one_row_with_all_their_paths() -> None:
    other = entry(seed=1, paths={"meetings": 0.2, "labels": 0.7})
    row = rows_of([entry(paths={"meetings": 0.2, "rows": 0.9}), other])[0]
    assert row.paths == {"meetings": 0.2, "rows": 0.9, "labels": 0.7}
    assert all(f"“{path}”" in " ".join(statement.sentences(row)) for path in row.paths)


def test_a_statement_names_unit_relation_viewer_delta_and_conditions() -> None:
    (row,) = rows_of([entry()])
    text = " ".join(statement.sentences(row))
    for part in (
        "each node",
        "the server, which sees each client",
        "features become zero",
        "ε = 1",
        "δ = 1e-05",
        "makes no claim",
    ):
        assert part in text
    assert row.assumptions == (Assumption.CLIENTS_DISJOINT.words,)


def test_an_open_path_is_said_to_protect_nothing() -> None:
    row = rows_of([entry(epsilon_provable=math.inf, paths={"model": math.inf, "embedding": 3.0})])[0]
    text = " ".join(statement.sentences(row))
    assert "protects nothing" in text
    assert "“model” is sent in clear" in text
    assert "“embedding” alone" in text


def test_rows_on_raw_data_are_not_called_public() -> None:
    (raw,), (sizes,) = (rows_of([entry(paths={}, epsilon_provable=price, epsilon=math.inf)]) for price in (math.inf, 0.0))
    assert "raw data" in " ".join(statement.sentences(raw))
    assert "ε = ∞" in " ".join(statement.sentences(raw))
    assert "only public sizes" in " ".join(statement.sentences(sizes))


def test_a_row_that_cannot_be_private_says_what_it_is() -> None:
    """FedAvg in clear: its embeddings have noise for ε = 64, its model leaves as it is."""
    clear = entry(epsilon=64.0, epsilon_provable=math.inf, paths={"model": math.inf, "embedding": 128.0})
    told = NodeClassificationCellFacts(broken_promise="degree 9 > 5")
    broken = entry(epsilon=8.0, epsilon_provable=math.inf, paths={"model": math.inf}, facts=told)
    free = entry(epsilon=math.inf, calibrated_by="none", epsilon_provable=math.inf, paths={"model": math.inf})
    assert [(one.noise_for, one.status) for one in (clear, broken, free, entry())] == [
        ("provable (embedding alone)", "not private: ε = ∞ (model)"),
        ("provable", "not private: the promise is broken: degree 9 > 5"),
        ("none", "ok"),
        ("provable", "ok"),
    ]
    assert clear.row.calibrated_by == "provable", "streams and rows keep their names"
