"""A finished run, for programs: tables, the best row, the figure, the sheet of a row.

run = fedgraph.run("quickstart")
run.answer                                          # the table at the end of the run
run.table()                                         # pandas: one line per configuration
run.best(unit="node", trust="curator", epsilon=1)   # its name, mean, provable ε, …; None where no row keeps it
run.figure().savefig("answer.png")
run.sheet(run.best(unit="node", trust="curator", epsilon=1).anchor)
run.best(unit="node", trust="curator", epsilon=4).fit("people")   # a model: fedgraph.models
"""

from __future__ import annotations

import html
import os
from collections import Counter
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph import privacy
from fedgraph.errors import ScenarioError
from fedgraph.privacy import Candidate, Ledger
from fedgraph.report import Score, answer, compared, frame, name_score_anchor, page, report_rows, score_rows, summarise
from fedgraph.report import saved_run as stored
from fedgraph.runs.chosen_row import ChosenRow

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Run:
    """One run, or several together.

    Attributes:
        kept: The runs as they lie in their folders.
    """

    kept: tuple[stored.SavedRun, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where they lie."""
        return tuple(run.folder for run in self.kept)

    @property
    def folder(self) -> Path:
        """Of the first run."""
        return self.folders[0]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What tables call each run: its folder's name, with as many of the folders above it as tell it from the others."""
        whole = [folder.resolve().parts for folder in self.folders]
        deepest = max(map(len, whole))
        for depth in range(1, deepest + 1):
            found = ["/".join(parts[-depth:]) for parts in whole]
            if len(set(found)) == len(found):
                break
        return tuple(found)

    @property
    def notice(self) -> str | None:
        """What every output says where data of a run were generated; None where all are real."""
        said = [(name, run.notice) for name, run in zip(self.names, self.kept, strict=True) if run.notice]
        if len({notice for _, notice in said}) == 1 and len(said) == len(self.kept):
            return said[0][1]
        return " ".join(f"{name}: {notice}" for name, notice in said) or None

    @cached_property
    def rows(self) -> tuple[report_rows.ReportRow, ...]:
        """Every configuration, its seeds together, run by run."""
        return tuple(row for _, row in self._owned)

    @cached_property
    def _owned(self) -> tuple[tuple[Path, report_rows.ReportRow], ...]:
        found = [(run.folder, row) for run in self.kept for row in run.rows]
        seen = Counter(name_score_anchor(row) for _, row in found)
        called = dict(zip(self.folders, self.names, strict=True))
        return tuple((f, row.of_run(called[f]) if seen[name_score_anchor(row)] > 1 else row) for f, row in found)

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The rows that can be compared."""
        return score_rows(self.rows)

    @cached_property
    def questions(self) -> tuple[answer.Question, ...]:
        """What was asked, and what was found, as values (``report.answer``)."""
        return answer.ask(compared.rows_of(frame.of_rows(self.rows), page.refuted(self.rows)))

    @property
    def answer(self) -> str:
        """The table at the end of a run: the best row for each question, trust and ε."""
        return "\n".join(summarise([], [], self.questions))

    def best(
        self, *, unit: str = "node", trust: str = "curator", epsilon: float, dataset: str | None = None
    ) -> ChosenRow | None:
        """The best row that provably keeps an ε and needs no more trust than is given.

        Args:
            unit: Whom the guarantee protects: ``node``, ``edge``, ``entity``, ``client`` or ``graph``.
            trust: The most that may be trusted: ``curator``, ``sums``, ``own-client``,
                ``active-server`` or ``nobody``.
            epsilon: The provable ε of the row is at most this; above 0.
            dataset: The data set, needed where the run has rows of several.

        Returns:
            The row with its mean, deviation, provable ε and anchor; None where no row keeps ``epsilon``.

        Raises:
            ScenarioError: A word or a data set is not known, ``epsilon`` is no number above 0, or ``dataset`` is missing.

        Example:
            >>> run.best(unit="node", trust="sums", epsilon=1)
        """
        trusted = privacy.trust.called(trust)
        if unit not in answer.UNITS:
            raise ScenarioError(f"unit is {unit!r}; allowed: {', '.join(answer.UNITS)}")
        if not isinstance(epsilon, Real) or not epsilon > 0:
            raise ScenarioError(f"epsilon is {epsilon!r}; allowed: a number above 0")
        known = sorted({s.dataset for s in self.scores})
        if dataset is not None and dataset not in known:
            raise ScenarioError(f"dataset is {dataset!r}; allowed: {', '.join(known)}")
        asked = [q for q in self.questions if q.unit == unit and dataset in (None, q.head.dataset)]
        if len(names := sorted({q.head.dataset for q in asked})) > 1:
            raise ScenarioError(f"these rows are about several data sets; say dataset=…, one of: {', '.join(names)}")
        if not asked:
            return None
        found = answer.best(asked[0].rows, unit=unit, trust=trusted, epsilon=epsilon)
        if found is None:
            return None
        row = self.rows[frame.names(self.rows).index(found.name)]
        return self._chosen(next(s for s in self.scores if s.row is row))

    def score(self, row: str) -> ChosenRow:
        """One row by its name.

        Args:
            row: The anchor of the row, its name (with `` · `` and its trust), or a part of either that only one row has.

        Returns:
            The row with its mean, deviation, provable ε and anchor.

        Raises:
            ScenarioError: No row, or more than one, has this name; the line lists anchors.
        """
        scores = self.scores
        found = [s for s in scores if row in (s.anchor, s.name, f"{s.name} · {s.trust.value}")]
        found = found or [s for s in scores if row and (row in s.anchor or row in s.name)]
        exact = [s for s in found if s.anchor == row]
        if len(exact) == 1 or len(found) == 1:
            return self._chosen((exact or found)[0])
        listed = "; ".join(s.anchor for s in (found or scores)[:12])
        what = "names several rows" if found else "is no row of this run"
        raise ScenarioError(f"{row!r} {what}; say one of: {listed}")

    def table(self) -> pandas.DataFrame:
        """All rows as a pandas table.

        Returns:
            One line for each configuration, with the columns of ``report.table_columns.TABLE_COLUMNS``. ε and δ are floats, ∞
            included; ``mean`` and ``deviation`` are in the unit of ``metric``, over ``seeds`` repetitions.

        Example:
            >>> run.table().query("epsilon_provable <= 1")
        """
        import pandas

        from fedgraph.report import TABLE_COLUMNS, column_number_of_score

        called = dict(zip(self.folders, self.names, strict=True))
        owner = {id(row): called[folder] for folder, row in self._owned}
        numbers = [column_number_of_score(s, owner[id(s.row)]) for s in self.scores]
        return pandas.DataFrame({c.key: [c.value(n) for n in numbers] for c in TABLE_COLUMNS if c.table})

    def figure(self, unit: str | None = None) -> Figure:
        """A figure of accuracy against provable ε, of every row that releases something.

        Args:
            unit: Only rows that protect this unit (``node``, ``edge``, ``graph``); None: all, a panel for each.

        Returns:
            A matplotlib figure.
        """
        from fedgraph.report import charts

        drawn = [q for q in self.questions if q.kept and unit in (None, q.unit)]
        if not drawn:
            asked = f" at unit {unit!r}" if unit else ""
            raise ScenarioError(f"no row with a finite provable ε{asked}: nothing to draw")
        return charts.draw_for_notebook(drawn)

    def sheet(self, row: str) -> str:
        """The privacy sheet of a row, to be read and signed (``fedgraph sheet`` also writes the record for the registry).

        Args:
            row: The anchor of the row, or its name where only one row has it.

        Returns:
            One HTML page that needs no other file.

        Raises:
            ScenarioError: No row, or more than one, has this name.
        """
        from fedgraph.report import outside

        asked = self.score(row).row
        run = next(run for run, folder in zip(self.kept, self.folders, strict=True) if self.folder_of(asked) == folder)
        here = [row for folder, row in self._owned if folder == run.folder]  # in the order of the run's own rows
        own = next(own for own, row in zip(run.rows, here, strict=True) if row is asked)
        return outside.make_outside_sheet(run, name_score_anchor(own)).html

    def folder_of(self, row: report_rows.ReportRow) -> Path:
        """The run that ``row`` is of."""
        return next(folder for folder, own in self._owned if own is row)

    def candidates(self) -> list[Candidate]:
        """Rows that a budget might still carry, those of the best mean first."""
        scores = sorted((s for s in self.scores if s.private and s.usable), key=lambda s: -s.mean)
        found = []
        for score in scores:
            ledger = Ledger.of_lines(score.row.head.ledger)
            found += [Candidate.released(score.anchor, account, ledger.of(account.cell)) for account in ledger.accounts]
        return found

    def _chosen(self, score: Score) -> ChosenRow:
        given = {f.name: vars(score)[f.name] for f in fields(score)}
        return ChosenRow(**given, folder=self.folder_of(score.row), others=self.candidates)

    def _repr_html_(self) -> str:
        """In a notebook: the answer, and every row."""
        found = [s for q in self.questions for s in (q.finding, q.strength)]
        said = "<br>".join(map(html.escape, filter(None, (self.notice, *found))))
        return f"<p>{said}</p>{self.table().to_html(index=False)}"

    def __repr__(self) -> str:
        return f"<Run {', '.join(str(f) for f in self.folders)}: {len(self.rows)} rows>"


def open_run(*folders: str | Path) -> Run:
    """Open finished runs by their folders.

    Args:
        folders: One folder, or several that are read together; each once.

    Returns:
        One object for all of them; ``table()`` has a column that names each run.

    Raises:
        DataError: A folder holds no finished run.
        ScenarioError: No folder is named, or one is named twice.

    Example:
        >>> fedgraph.open_run("runs/one", "runs/other").table()
    """
    if not folders:
        raise ScenarioError("name at least one run's folder")
    if wrong := [f for f in folders if not isinstance(f, (str, os.PathLike))]:
        raise ScenarioError(f"open_run: found {wrong[0]!r}; allowed: folders of runs, one after another")
    twice = [str(f) for f, count in Counter(Path(f).resolve() for f in folders).items() if count > 1]
    if twice:
        raise ScenarioError(f"{twice[0]} is named twice; allowed: each run once")
    return Run(tuple(stored.load_saved_run(Path(f)) for f in folders))
