"""Published privacy statements against what can be proven: no data, no learning, only accounting.

One cell per claim of ``privacy.claims``: the noise of a paper as published, and the ε it is worth as
published, as provable, and at least (a lower bound no analysis can beat).
"""

import math

from pydantic import Field

from fedgraph.cells.task_facts import ClaimCellFacts
from fedgraph.documents.settings import Settings
from fedgraph.privacy.claims import table
from fedgraph.tasks.base import Cell, CellContext, CellOutcome, TaskOffers, task_without_plan, task_without_plugins
from fedgraph.worlds.world import PAPER_WORLD


class Params(Settings):
    """Which papers."""

    papers: list[str] = Field(default_factory=list, description="beginnings of paper names, e.g. DPAR; empty: all")


plugins_of, plan = task_without_plugins, task_without_plan


def cells(params: Params, context: CellContext) -> list[Cell]:
    """One cell for each claim of the papers that are asked for; its number keeps equal names apart."""
    found = []
    for number, claim in enumerate(table.rows()):
        if not params.papers or claim.paper.startswith(tuple(params.papers)):
            name = f"{number}: {claim.mechanism}"
            ours = (context.label, context.dataset, claim.paper, name, PAPER_WORLD, claim.epsilon_claimed, "published", 0)
            found.append(Cell(*ours, entry=number))
    return found


def run(params: Params, cell: Cell, context: CellContext) -> CellOutcome:
    """The claim, priced by our accountants."""
    claim = cell.among(table.rows())
    bound, proven, said = claim.epsilon_lower_bound, claim.epsilon_provable, claim.explanation
    facts = ClaimCellFacts(mechanism=claim.mechanism, inputs=dict(claim.inputs), explanation=said, delta=claim.delta)
    metrics = {"epsilon_lower_bound": math.nan if bound is None else bound}
    price = (claim.epsilon_published, math.nan if proven is None else proven, said)
    return CellOutcome(metrics, facts, None, (), *price, {})


TASK: TaskOffers[Params] = TaskOffers(needs_data=False)
