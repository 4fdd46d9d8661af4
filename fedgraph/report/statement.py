"""The privacy of rows in plain words, which stand in ``templates/statement.txt``: what is protected, from whom, at which ε."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fedgraph.cells import Result
from fedgraph.report import attack_bounds, phrases
from fedgraph.report.table import Line
from fedgraph.types import counted, in_words_of


def withheld(one: str, epsilon: float) -> str:
    """Why a number on private people is not handed out, of a row that proves ``epsilon``."""
    return in_words_of(one, phrases.fill("outside", "exact" if math.isfinite(epsilon) else "open"))


def caveats(secret: bool) -> tuple[str, ...]:
    """What is outside every statement. secret: whether the run's seed was ``secret``."""
    return tuple(phrases.fill("statement", name) for name in ("floating_point", "secret" if secret else "seed", "page"))


def add_up(results: Iterable[Result]) -> str:
    """What all private trainings of a run cost together, by data set and unit, in words; an ε of ∞ adds up to nothing.

    The sum of their prices bounds it (basic composition).
    """
    spent: dict[tuple[str, str], list[float]] = {}
    for one in results:
        if one.protection is not None and one.paths and math.isfinite(one.epsilon_provable):
            unit = in_words_of(one.facts.one, one.protection.unit.value)
            spent.setdefault((one.dataset, unit), []).append(one.epsilon_provable)
    each = [f"ε = {phrases.upper(sum(found), 4)} at {unit} level of {dataset} ({counted(len(found), 'training')})"
            for (dataset, unit), found in spent.items()]  # fmt: skip
    return phrases.fill("outside", "together", each=", ".join(each)) if each else ""


def target(row: Line) -> str:
    """The ε that was asked for, in words."""
    asked = "no budget" if math.isinf(row.epsilon) else f"ε = {phrases.rounded(row.epsilon)}"
    return asked + (" (as published)" if row.calibrated_by == "published" else "")


def sentences(row: Line) -> tuple[str, ...]:
    """What a row that states a protection promises. It assumes ``row.assumptions``."""
    text = phrases.template("statement.txt", escaped=False).render(
        row=row, held=row.held, inf=math.inf, bound=phrases.upper, number=phrases.rounded,
        broken=next((e.facts.broken_promise for e in row.cells if e.facts.broken_promise), None),
        clear=[path for path, price in row.paths.items() if math.isinf(price)],
        holders=max(vars(e.facts).get("worst_node_clients", 0) for e in row.cells),
        measured=attack_bounds.describe(row), one_run=phrases.fill("statement", "one_run", runs=row.seeds),
    )  # fmt: skip
    return tuple(in_words_of(row.one, line) for line in text.splitlines() if line)
