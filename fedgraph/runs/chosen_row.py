"""A row of a run that can be trained once more, as a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.privacy import Candidate
from fedgraph.report import Row

if TYPE_CHECKING:
    from fedgraph.models import Model


@dataclass(frozen=True, repr=False)
class ChosenRow(Row):
    """A row of a run, which can be fitted."""

    folder: Path = field(kw_only=True)  # of its run
    # gives the rows of the run that a budget might still carry
    others: Callable[[], list[Candidate]] = field(kw_only=True, compare=False)

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
        return fits.fit_row(self.folder, self.head.row, data, wanted, self.others())
