"""A page for the owner of one client: is it worth joining for my people, and what could others learn of one of them?

Plain words, whole numbers out of 100, and one table; no symbol but ε, which is explained below the table. A difference that
chance alone may make (``ClientChoices.chance``) is called none. The words stand in ``templates/owner.txt``.
"""

import math
from collections.abc import Sequence

from fedgraph.privacy import Trust
from fedgraph.report import client_choices
from fedgraph.report.client_choices import ALONE, CURATOR, JOINED, ClientChoices
from fedgraph.report.phrases import load_template, phrase_number, phrase_upper_bound
from fedgraph.report.sections.base import SectionLetter


def write_owner_letters(found: ClientChoices, dataset: str, beside: Sequence[ClientChoices] = ()) -> tuple[SectionLetter, ...]:
    """One letter per client, in the order of the data. beside: the same cells by other measures, for its table."""
    return tuple(_letter(found, dataset, client, beside) for client in found.clients)


def _picked(found: ClientChoices, client: str, epsilon: float) -> tuple[str, str] | None:
    """(learner, choice) of the best way of joining for this client; for everybody where nothing was measured for it."""
    best, ways = found.best(epsilon, tuple(JOINED)), found.joined_by(client, epsilon)
    return best if best is None or not ways else (max(ways, key=found.mean)[0], best[1])


def _letter(found: ClientChoices, dataset: str, client: str, beside: Sequence[ClientChoices] = ()) -> SectionLetter:
    base = max((found.mean(key) for key in found.kept_by(client)), default=None)
    finite = [e for e in found.epsilons if math.isfinite(e)]
    gains = {e: gain for e in finite if (gain := found.gain(client, e)) is not None}
    better, same = [e for e, gain in gains.items() if gain > 0], [e for e, gain in gains.items() if gain == 0]
    text = load_template("owner.txt", escaped=False).render(
        f=found, client=client, dataset=dataset, size=found.clients[client], unit=_unit_word(found), base=base, finite=finite,
        linked=found.metric == client_choices.AUC, fewest=client_choices.FEWEST_SEEDS, gains=gains, better=better, same=same,
        most=max(better, key=lambda e: gains[e], default=None), least=0.0 if base is None else 100 * found.chance(client, base),
        joined=[way for e in finite if (way := _joining(found, client, e)) is not None],
        unprotected=_unprotected(found, client, finite), left_out=_left_out(found, client, finite), number=phrase_number,
        hundred=_hundred, compared=lambda value: _compared(found, client, value, base), listed=_listed,
        often=lambda price: _in_hundred(price, found.delta),
    )  # fmt: skip
    answer, said, last = ([*filter(None, part.split("\n"))] for part in text.split("---\n"))
    end = () if found.undecided else ("verdict",)
    header = ("ε", *_columns(found, client), f"others are right about one {_unit_word(found)}", *end)
    rows = tuple(_row(found, client, epsilon, shown) for shown in (found, *beside) for epsilon in found.epsilons)
    return SectionLetter(client, f"For the owner of {client}", "".join(answer), tuple(said), header, rows, tuple(last))


def _unit_word(found: ClientChoices) -> str:
    one, many = found.called
    if found.unit == "edge":
        return f"tie between two {many}"
    if found.metric == client_choices.AUC:  # who exists is public there, and all ties of somebody are private
        return f"{one}'s ties" if found.unit == "node" else "owner's ties"
    return one


def _listed(values: Sequence[float]) -> str:
    told = [phrase_number(v) for v in values]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


def _joining(found: ClientChoices, client: str, epsilon: float) -> dict[str, object] | None:
    """What the best way of joining at this ε gives; None where there is none."""
    picked = _picked(found, client, epsilon)
    if picked is None:
        return None
    learner, choice = picked
    fits = ((client_choices.HEAD, "the last step"), (client_choices.WEIGHTS, "the whole model"))
    adapted = [(what, found.value(learner, epsilon, choice + own, client)) for own, what in fits]
    return {
        "epsilon": epsilon, "sums": JOINED[choice] is Trust.SUMS, "value": found.value(learner, epsilon, choice, client),
        "adapted": [(what, value) for what, value in adapted if value is not None],
        "price": found.price(learner, epsilon, choice, client),
    }  # fmt: skip


def _unprotected(found: ClientChoices, client: str, finite: Sequence[float]) -> tuple[float, str] | None:
    """(what joining would give without protection, what protection costs at the largest ε)."""
    most, value = (
        None if picked is None else found.value(picked[0], epsilon, picked[1], client)
        for epsilon in (math.inf, max(finite, default=math.nan))
        for picked in [_picked(found, client, epsilon)]
    )
    if most is None or value is None:
        return None
    cost = round(100 * most) - round(100 * value)
    alike = cost <= 0 or _alike(found, client, most, value)
    return most, "nothing that can be told from chance" if alike else f"{cost} of 100"


def _hundred(value: float) -> str:
    return f"{100 * value:.0f} of 100"


def _alike(found: ClientChoices, client: str, value: float, base: float) -> bool:
    return round(100 * value) == round(100 * base) or abs(value - base) <= found.chance(client, base)


def _compared(found: ClientChoices, client: str, value: float, base: float | None) -> str:
    if base is None:
        return ""
    difference = round(100 * value) - round(100 * base)
    if not difference:
        return " (as good as alone)"
    told = ", which may be chance" if _alike(found, client, value, base) else ""
    return f" ({abs(difference)} {'more' if difference > 0 else 'fewer'} than alone{told})"


def _left_out(found: ClientChoices, client: str, finite: Sequence[float]) -> tuple[float, float] | None:
    """(the largest ε at which the others were asked, what they knew)."""
    for epsilon in finite[::-1]:
        picked = _picked(found, client, epsilon)
        value = None if picked is None else found.value(picked[0], epsilon, client_choices.leave_out(JOINED[picked[1]]), client)
        if value is not None:
            return epsilon, value
    return None


def _columns(found: ClientChoices, client: str) -> list[str]:
    run = {key[2] for key in found.values if key[3] == client}
    return [choice for choice in (ALONE, *client_choices.OF_ONE_CLIENT) if choice in run]


def _row(found: ClientChoices, client: str, epsilon: float, shown: ClientChoices) -> tuple[str, ...]:
    """A line of the table. shown: ``found``, or the same cells by another measure; rows are picked by ``found``."""
    picked = _picked(found, client, epsilon) or found.best(epsilon, (CURATOR, ALONE))
    cells = []
    for choice in _columns(found, client):
        own = found.best(epsilon, (ALONE,)) if choice == ALONE else picked
        value = None if own is None else shown.value(own[0], epsilon, choice, client)
        cells.append("—" if value is None else f"{100 * value:.0f}" + _within(shown, client, value))
    price = None if picked is None else found.price(picked[0], epsilon, picked[1], client)
    told = "—" if price is None else _in_hundred(price, found.delta)
    if shown is not found:
        measure = client_choices.OTHER_METRICS[shown.metric]
        end = () if found.undecided else ("",)
        return (f"{phrase_number(epsilon)}, {measure}", *cells, "", *end)
    gain = found.gain(client, epsilon)
    verdict = "—" if gain is None else "joining helps" if gain > 0 else "alone is better" if gain < 0 else "no difference"
    return (phrase_number(epsilon), *cells, told, *(() if found.undecided else (verdict,)))


def _within(shown: ClientChoices, client: str, value: float) -> str:
    """Two standard errors of one number, of hidden ties; of a difference of two numbers they are √2 times that."""
    if shown.metric != client_choices.AUC and shown.metric not in client_choices.OTHER_METRICS:
        return ""
    return f" ± {math.ceil(100 * shown.chance(client, value) / math.sqrt(2))}"


def _in_hundred(epsilon: float, delta: float) -> str:
    """``at most 74 of 100 times``, rounded up; near 100 with a second digit."""
    if epsilon == 0:
        return "no more often than by guessing, 50 of 100 times"
    share = _right_at_most(epsilon, delta)
    if share >= 0.99995:
        return "up to always: nothing limits it"
    return f"at most {phrase_upper_bound(100 * share, 1 + (share > 0.995))} of 100 times"


def _right_at_most(epsilon: float, delta: float) -> float:
    """How often, of 1, an attacker can be right who tells two equally likely worlds apart that differ in one unit.

    (ε, δ) bounds both errors a, b by 1 − a ≤ e^ε b + δ and 1 − b ≤ e^ε a + δ, so 1 − (a + b)/2 ≤ (e^ε + δ)/(1 + e^ε).
    """
    return min(1.0, (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)))
