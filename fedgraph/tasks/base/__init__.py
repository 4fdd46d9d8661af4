"""The contract of a task: what is run, cell by cell, and what a cell leaves behind.

A task module defines

    Params                                 pydantic model, frozen, unknown keys forbidden
    plugins_of(params)                     (location, package, settings) of every nested plugin, for validation
    refuses(params, method) → str | None   where it uses methods: why this one cannot serve (kind, protocol, setting)
    cells(params, context) → list[Cell]    all that will be run, in order
    plan(params, cell, context) → Plan     its noise and releases, from public facts (None: nothing is released)
    run(params, cell, context) → Outcome   the numbers, the releases and the artefacts
    alone(params, cell) → bool             optional: one worker can do the whole cell, so that cells may run side by side
    NEEDS_DATA = False                     only where a task reads no data set

A *cell* is one method in one setting at one budget with one seed. It is computed whole or not at all, so
a killed run resumes at the first cell that is missing.
"""

from fedgraph.cells.cell import Cell as Cell
from fedgraph.cells.cell import Context as Context
from fedgraph.cells.cell import Outcome as Outcome
from fedgraph.cells.cell import Pairs as Pairs
from fedgraph.cells.cell import require_distinct as require_distinct
