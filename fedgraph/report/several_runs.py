"""Several runs on one page: the answer over all of them, the charts, one table, and every row's statement."""

from __future__ import annotations

from collections.abc import Sequence

from fedgraph.report import answer, columns, first_screen, page, report_rows, statement_families


def render_runs(rows: Sequence[report_rows.Row], runs: Sequence[str], notice: str | None = None) -> str:
    """The self-contained page of rows from several runs. runs: their names, for the title. notice: of generated data."""
    answered = answer.find_answer(rows)
    methods, datasets, papers = page.library(rows, {}, [])
    content = page.Content(
        title=f"{len(runs)} runs together: {', '.join(runs)}" if len(runs) > 1 else f"The run {runs[0]}",
        lead="Rows of runs with other seeds, data or versions can be compared only where these do not matter: each run's own "
        "report says how it was made.",
        notice=notice,
        answered=answered,
        opening=page.opening(answered, ()),
        front=first_screen.figures(answered, notice),
        prices=tuple(first_screen.tabulate_trust(answered)),
        chapters=(),
        said=statement_families.group_statements(rows),
        methods=methods,
        datasets=datasets,
        references=papers,
        made=page.HowMade((), "", ""),
        columns=columns.columns(answered.scores),
        lines=columns.lines(answered.scores),
    )
    return page.render(content)
