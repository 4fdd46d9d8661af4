"""How a score shows itself in a notebook."""

from __future__ import annotations

from fedgraph.report.rows import compare_rows, group_rows
from tests.report.test_answer import cell


def test_a_score_shows_itself_as_a_row_and_hides_no_name() -> None:
    (score,) = compare_rows(group_rows([cell("one", 0.5, variant="<b>mine")]))
    shown = score._repr_html_()
    assert shown.startswith("<table>")
    assert "&lt;b&gt;mine" in shown
    assert "<b>mine" not in shown
    assert "0.500" in shown
