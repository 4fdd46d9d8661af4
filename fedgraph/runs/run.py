"""A finished run, for programs: tables, the best row, the figure, the sheet of a row.

run = fedgraph.run("quickstart")
run.answer                                          # the table at the end of the run
run.table()                                         # pandas: one line per cell; table(per="row"): per configuration
run.best(unit="node", trust="curator", epsilon=1)   # its name, mean, provable ε, …; None where no row keeps it
run.figure().save("answer.png")
run.sheet("label_hop, sums, ε=1")
run.best(unit="node", trust="curator", epsilon=4).fit("people")   # a model: fedgraph.models
"""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph import privacy
from fedgraph.errors import DataError, ScenarioError
from fedgraph.report import Line, answer, summarise, table
from fedgraph.report import saved_run as stored

if TYPE_CHECKING:
    import altair
    import pandas

    from fedgraph.models import Model


_SHOWN = (
    "row", "trust", "unit", "epsilon", "epsilon_published", "epsilon_provable", "epsilon_measured", "metric", "mean",
    "deviation", "seeds", "status",
)  # fmt: skip


class ChosenRow(Line):
    """A row of a run, which can be fitted: the columns of ``table(per="row")`` as attributes, such as ``mean`` and
    ``epsilon_provable``."""

    run: Run

    def fit(
        self,
        data: object = None,
        *,
        public: object = None,
        budget: str | Path | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        columns: Mapping[str, object] | None = None,
        nothing_protected: bool = False,
        select: str | Path | Mapping[str, object] | None = None,
    ) -> Model:
        """Train this row once, on everybody, with noise from the operating system.

        Args:
            data: a folder of CSV files, a file, the name of a data set, or a graph in memory; None: the run's own data.
            public: the same, of people whose rows and edges are public, for rows that take a test graph as public.
            budget: the book of ``fedgraph budget`` that is charged before anything is released; None: the run's, or what
                ``FEDGRAPH_BUDGET`` or a file beside the people names.
            epsilon: in the place of the row's.
            delta: in the place of the row's.
            columns: how own tables are read, as for ``own/read``; default: as in the run.
            nothing_protected: needed for a row whose ε is ∞.
            select: settings that are chosen privately, within the row's ε: ``{"over": {"steps": [20, 60]}, "among": 20}``, or a
                YAML file that says so.

        Returns:
            The model: ``predict``, ``predict_proba``, ``classes_``, ``save``.

        Raises:
            PrivacyError: the budget does not allow it, or nothing would be protected.
            ScenarioError: rows of this task are no models.
            DataError: the data cannot be read.

        Example:
            >>> model = run.best(unit="node", trust="curator", epsilon=4).fit("people", public="volunteers")
        """
        from fedgraph.models import fit as fits
        from fedgraph.tasks import TaskRowSelect

        asked = TaskRowSelect(**dict(select)) if isinstance(select, Mapping) else select and fits.read_select(Path(select))
        place = None if budget is None else str(budget)
        wanted = fits.FitOptions(epsilon, delta, place, public, nothing_protected, columns, asked or None)
        owner, name = self.run.owner(self)
        return fits.fit_row(owner.folder, owner.find(name).head.row, data, wanted, self.run.candidates())


@dataclass(frozen=True, eq=False)
class Run:
    """One run, or several together."""

    kept: tuple[stored.SavedRun, ...]  # the runs as they lie in their folders

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
    def rows(self) -> list[Line]:
        """Every configuration, its seeds together, run by run (``report.table.rows``)."""
        if len(self.kept) == 1:
            return self.kept[0].rows
        cells, names = [], {}
        for called, run in zip(self.names, self.kept, strict=True):
            for row in run.rows:
                twice = row.row in self._twice
                own = [replace(e, variant=f"{e.variant} @ {called}") if twice else e for e in row.cells]
                names[own[0].row] = f"{row.row} @ {called}" if twice else row.row
                cells += own
        return table.rows(table.tabulate(cells, {}, names), cells)

    @cached_property
    def _twice(self) -> frozenset[str]:
        """Names of rows that several of the runs have, however they are typed."""
        every = [name for run in self.kept for name in run.table["row"].unique()]
        seen = Counter(map(table.plain_name, every))
        return frozenset(name for name in every if seen[table.plain_name(name)] > 1)

    @cached_property
    def scores(self) -> tuple[Line, ...]:
        """The rows that can be compared."""
        return tuple(row for row in self.rows if row.metric)

    @cached_property
    def questions(self) -> tuple[answer.Question, ...]:
        """What was asked, and what was found, as values (``report.answer``)."""
        return answer.ask(table.answering(self.rows))

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
            The row with its mean, deviation, provable ε and name; None where no row keeps ``epsilon``.

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
        found = asked[0].within(epsilon, trusted)
        if found is None:
            return None
        return self._chosen(next(s for s in self.scores if s.row == found.row))

    def score(self, row: str) -> ChosenRow:
        """One row by its name.

        Args:
            row: As the page and ``table()`` name it, ``"label_hop, sums, ε=4"``; or words of it that only
                one row has. ``eps=4`` and ``e=4`` are ``ε=4``.

        Returns:
            The row with its mean, deviation and provable ε.

        Raises:
            ScenarioError: No row, or more than one, has this name; the line lists those that may be meant.
        """
        scores = self.scores
        try:
            said = {s.row: f"{s.method} {s.task} {s.dataset}" for s in scores}
            name = table.find_row_name(said, row, "this run" if len(self.kept) == 1 else "these runs")
        except DataError as error:
            raise ScenarioError(str(error)) from None
        return self._chosen(next(s for s in scores if s.row == name))

    def table(self, per: str = "cell") -> pandas.DataFrame:
        """What the run found, as a pandas table.

        Args:
            per: ``cell``: one line for each method, trust, ε and seed, as ``results.parquet`` holds it. ``row``: one line for
                each configuration, over its seeds. ``client``: what single clients reach, where owners are compared.

        Returns:
            The columns of ``report.table``; of several runs also ``run``. ε and δ are floats, ∞ included. Of rows, ``mean`` and
            ``deviation`` are in the unit of ``metric``, over ``seeds`` repetitions, and every ε is the largest.

        Raises:
            ScenarioError: ``per`` is another word.

        Example:
            >>> run.table(per="row").query("epsilon_provable <= 1")
        """
        import pandas

        read = {"cell": lambda whole: whole, "row": table.group, "client": table.per_client}
        if per not in read:
            raise ScenarioError(f"per is {per!r}; allowed: {', '.join(read)}")
        parts = []
        for name, run in zip(self.names, self.kept, strict=True):
            one = read[per](run.table)
            if len(self.kept) > 1:
                one = one.assign(row=one["row"].where(~one["row"].isin(self._twice), one["row"] + f" @ {name}"))
                one.insert(0, "run", name)
            parts.append(one)
        return pandas.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0].copy()

    def figure(self, unit: str | None = None) -> altair.HConcatChart:
        """The page's picture, of accuracy against provable ε: of every row that releases something.

        Args:
            unit: Only rows that protect this unit (``node``, ``edge``, ``graph``); None: all, a panel for each.

        Returns:
            A chart of altair, which a notebook draws and ``save`` writes as PNG, SVG or HTML.
        """
        import altair

        from fedgraph.report import charts

        drawn = [q for q in self.questions if q.kept and unit in (None, q.unit)]
        if not drawn:
            asked = f" at unit {unit!r}" if unit else ""
            raise ScenarioError(f"no row with a finite provable ε{asked}: nothing to draw")
        return altair.hconcat(*map(charts.draw_question, drawn)).resolve_scale(color="independent", shape="independent")

    def sheet(self, row: str) -> str:
        """The privacy sheet of a row, to be read and signed (``fedgraph sheet`` also writes the record for the registry).

        Args:
            row: The row's name, as for ``score``.

        Returns:
            One HTML page that needs no other file.

        Raises:
            ScenarioError: No row, or more than one, has this name.
        """
        from fedgraph.report import outside

        run, name = self.owner(self.score(row))
        return outside.make_outside_sheet(run, name).html

    def owner(self, row: Line) -> tuple[stored.SavedRun, str]:
        """(the run that a row is of, what the row is called there)."""
        owners = [(run, own.row) for run in self.kept for own in run.rows]
        return owners[[one.row for one in self.rows].index(row.row)]

    def candidates(self) -> list[privacy.Candidate]:
        """Rows that a budget might still carry, those of the best mean first."""
        scores = sorted((s for s in self.scores if s.private and s.usable), key=lambda s: -s.mean)
        found = []
        for score in scores:
            ledger = privacy.Ledger.of_lines(score.head.ledger)
            found += [privacy.Candidate.released(score.row, account, ledger.of(account.cell)) for account in ledger.accounts]
        return found

    def _chosen(self, score: Line) -> ChosenRow:
        return ChosenRow(**vars(score), run=self)

    def _repr_html_(self) -> str:
        """In a notebook: the answer, and every row."""
        found = [s for q in self.questions for s in (q.finding, q.strength)]
        said = "<br>".join(map(html.escape, filter(None, (self.notice, *found))))
        return f"<p>{said}</p>{self.table('row')[list(_SHOWN)].to_html(index=False)}"

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
