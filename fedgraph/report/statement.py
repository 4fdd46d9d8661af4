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
    private = (
        "it is exact and computed on private people, so one person's answer can move it and no ε counts it (of nodes that are"
    )
    exact = f"{private} answered from their own row, publish_accuracy buys a noisy one)"
    clear = "this row guarantees nothing (ε = ∞), so nothing bounds what the number tells of one person"
    return in_words_of(one, f"withheld: {exact if math.isfinite(epsilon) else clear}")


def caveats(secret: bool) -> tuple[str, ...]:
    """What is outside every statement. secret: whether the run's seed was ``secret``."""
    return tuple(phrases.template("caveats.txt", escaped=False).render(secret=secret).splitlines())


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
    what = f"All private trainings here together cost at most {', '.join(each)}."
    return f"{what} One row that alone is handed out costs its own ε." if each else ""


def sentences(row: Line) -> tuple[str, ...]:
    """What a row that states a protection promises. It assumes ``row.assumptions``."""
    text = phrases.template("statement.txt", escaped=False).render(
        row=row, held=row.held, inf=math.inf, bound=phrases.upper, number=phrases.rounded,
        broken=next((e.facts.broken_promise for e in row.cells if e.facts.broken_promise), None),
        clear=[path for path, price in row.paths.items() if math.isinf(price)],
        holders=max(vars(e.facts).get("worst_node_clients", 0) for e in row.cells),
        measured=attack_bounds.describe(row),
    )  # fmt: skip
    return tuple(in_words_of(row.one, line) for line in text.splitlines() if line)
