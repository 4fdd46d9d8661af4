"""The contract of a task: what is run, cell by cell, and what a cell leaves behind.

A task module defines

    Params                                    pydantic model, frozen, unknown keys forbidden
    plugins_of(params)                        (location, package, settings) of every nested plugin, for validation
    cells(params, context) → list[Cell]       all that will be run, in order
    plan(params, cell, context) → Plan        its noise and releases, from public facts (None: nothing is released)
    run(params, cell, context) → Result  the numbers, the releases and the artefacts
    TASK: TaskOffers[Params]                  what it says of itself (``tasks.base.task_offers``)

A *cell* is one method in one setting at one budget with one seed. It is computed whole or not at all, so
a killed run resumes at the first cell that is missing.
"""

from fedgraph.cells import Cell as Cell
from fedgraph.cells import CellContext as CellContext
from fedgraph.cells import CellPairKeeper as CellPairKeeper
from fedgraph.cells import Result as Result
from fedgraph.cells import require_distinct_cells as require_distinct_cells
from fedgraph.tasks.base.task_offers import NestedTaskPlugin as NestedTaskPlugin
from fedgraph.tasks.base.task_offers import TaskModels as TaskModels
from fedgraph.tasks.base.task_offers import TaskOffers as TaskOffers
from fedgraph.tasks.base.task_offers import load as load
from fedgraph.tasks.base.task_offers import nest_methods as nest_methods
from fedgraph.tasks.base.task_offers import no_plan as no_plan
from fedgraph.tasks.base.task_offers import no_plugins as no_plugins
