"""The contract of a task: what is run, cell by cell, and what a cell leaves behind.

A task module defines

    Params                                 pydantic model, frozen, unknown keys forbidden
    plugins_of(params)                     (location, package, settings) of every nested plugin, for validation
    cells(params, context) → list[Cell]    all that will be run, in order
    plan(params, cell, context) → Plan     its noise and releases, from public facts (None: nothing is released)
    run(params, cell, context) → Outcome   the numbers, the releases and the artefacts
    TASK: TaskOffers[Params]               what it says of itself (``tasks.base.offers``)

A *cell* is one method in one setting at one budget with one seed. It is computed whole or not at all, so
a killed run resumes at the first cell that is missing.
"""

from fedgraph.cells.cell import Cell as Cell
from fedgraph.cells.cell import Context as Context
from fedgraph.cells.cell import Outcome as Outcome
from fedgraph.cells.cell import Pairs as Pairs
from fedgraph.cells.cell import require_distinct as require_distinct
from fedgraph.tasks.base.offers import Models as Models
from fedgraph.tasks.base.offers import Nested as Nested
from fedgraph.tasks.base.offers import TaskOffers as TaskOffers
from fedgraph.tasks.base.offers import entries_of as entries_of
from fedgraph.tasks.base.offers import no_plugins as no_plugins
from fedgraph.tasks.base.offers import releases_nothing as releases_nothing
from fedgraph.tasks.base.offers import task as task
