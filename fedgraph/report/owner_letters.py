"""A page for the owner of one client: is it worth joining for my people, and what could others learn of one of them?

Plain words, whole numbers out of 100, and one table; no symbol but ε, which is explained below the table. A difference that
chance alone may make (``ClientChoices.chance``) is called none.
"""

import math
from collections.abc import Sequence

from fedgraph.privacy import Assumption, Trust
from fedgraph.report import client_choices
from fedgraph.report.client_choices import ALONE, CURATOR, JOINED, ClientChoices
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound, read_phrases
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
    sentences = [
        _about(found, dataset, client, base),
        "" if base is None else fill_phrase("owner", "base", base=_hundred(base)),
        *(_joining(found, client, epsilon, base) for epsilon in finite),
        _unprotected(found, client, finite),
        _left_out(found, client, finite),
    ]
    if client not in found.tested:
        names = {client_choices.RECALL: "nothing_found", client_choices.AUC: "nothing_linked"}
        sentences.append(_say(found, names.get(found.metric, "nothing_tested")))
    end = () if found.undecided else ("verdict",)
    header = ("ε", *_columns(found, client), f"others are right about one {_unit_word(found)}", *end)
    rows = tuple(_row(found, client, epsilon, shown) for shown in (found, *beside) for epsilon in found.epsilons)
    title, answer = f"For the owner of {client}", _answer(found, client, finite)
    return SectionLetter(client, title, answer, tuple(filter(None, sentences)), header, rows, _end(found))


def _say(found: ClientChoices, name: str, **values: object) -> str:
    return fill_phrase("owner", name, one=found.called[0], many=found.called[1], **values)


def _unit_word(found: ClientChoices) -> str:
    one, many = found.called
    if found.unit == "edge":
        return f"tie between two {many}"
    if found.metric == client_choices.AUC:  # who exists is public there, and all ties of somebody are private
        return f"{one}'s ties" if found.unit == "node" else "owner's ties"
    return one


def _end(found: ClientChoices) -> tuple[str, ...]:
    absent = {assumption.value for assumption in Assumption} - found.assumed
    absent |= {"own", "choices"} if found.metric == client_choices.AUC else {"linked"}
    absent |= {"verdict"} if found.undecided else set()
    words = {"one": found.called[0], "many": found.called[1], "unit": _unit_word(found)}
    return tuple(fill_phrase("owner_end", name, **words) for name in read_phrases()["owner_end"] if name not in absent)


def _answer(found: ClientChoices, client: str, finite: Sequence[float]) -> str:
    if found.short:
        return fill_phrase("owner", "short")
    if found.seeds < client_choices.FEWEST_SEEDS:
        return fill_phrase("owner", "few_seeds", count=found.seeds, fewest=client_choices.FEWEST_SEEDS)
    gains = {e: g for e in finite if (g := found.gain(client, e)) is not None}
    better = [e for e, g in gains.items() if g > 0]
    same = [e for e, g in gains.items() if g == 0]
    if not gains:
        return ""
    if not better:
        otherwise = ", otherwise it is worse" if len(same) < len(gains) else ""
        if not same:
            return fill_phrase("owner", "alone")
        return fill_phrase("owner", "nothing", same=_listed(same), otherwise=otherwise)
    most = max(better, key=lambda e: gains[e])
    gain = f"{100 * gains[most]:.0f}"
    if len(better) == len(gains):
        return fill_phrase("owner", "always", at=phrase_number(most), gain=gain)
    return _say(found, "only", better=_listed(better), gain=gain)


def _listed(values: Sequence[float]) -> str:
    told = [phrase_number(v) for v in values]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


def _about(found: ClientChoices, dataset: str, client: str, base: float | None) -> str:
    size = found.clients[client]
    said = [_say(found, "about", client=client, size=size, called=found.called[size != 1], dataset=dataset)]
    if found.metric == client_choices.RECALL:
        said.append(_say(found, "about_found", alerts=100 * (found.alerts or 0)))
        if found.reachable.get(client, 1.0) < 0.995:
            said.append(_say(found, "about_reachable", reachable=_hundred(found.reachable[client])))
    else:
        linked = found.metric == client_choices.AUC
        said.append(_say(found, "about_linked" if linked else "about_right", tested=found.tested_once(client)))
        if client in found.usual and not linked:
            said.append(_say(found, "about_usual", usual=_hundred(found.usual[client])))
    least = 0.0 if base is None else 100 * found.chance(client, base)
    return " ".join([*said, *([f"Differences below {math.ceil(least)} may be chance."] if least > 1 else [])])


def _joining(found: ClientChoices, client: str, epsilon: float, base: float | None) -> str:
    picked = _picked(found, client, epsilon)
    if picked is None:
        return ""
    learner, choice = picked
    where, who = "when the server sees your messages", "the server"
    if JOINED[choice] is Trust.SUMS:
        where, who = "when the server sees only sums", "the server and the other clients"
    value = found.value(learner, epsilon, choice, client)
    text = f"Joined at ε = {phrase_number(epsilon)}, {where}"
    text += "." if value is None else f": {_hundred(value)}{_compared(found, client, value, base)}."
    for own, what in ((client_choices.HEAD, "the last step"), (client_choices.WEIGHTS, "the whole model")):
        value = found.value(learner, epsilon, choice + own, client)
        if value is not None:
            compared = _compared(found, client, value, base)
            text += " " + _say(found, "adapted", what=what, value=_hundred(value), compared=compared)
    price = found.price(learner, epsilon, choice, client)
    if price is not None:
        of_links = "exists" if found.unit == "edge" else "are in the data"
        what = "belongs to your data" if (found.unit, found.metric != client_choices.AUC) == ("node", True) else of_links
        often = _in_hundred(price, found.delta)
        text += " " + _say(found, "learn", who=who, unit=_unit_word(found), what=what, often=often)
    return text


def _unprotected(found: ClientChoices, client: str, finite: Sequence[float]) -> str:
    free = _picked(found, client, math.inf)
    most = None if free is None else found.value(free[0], math.inf, free[1], client)
    paid = _picked(found, client, max(finite)) if finite else None
    value = None if paid is None else found.value(paid[0], max(finite), paid[1], client)
    if most is None or value is None:
        return ""
    cost = round(100 * most) - round(100 * value)
    told = f"{cost} of 100" if cost > 0 and not _alike(found, client, most, value) else "nothing that can be told from chance"
    return fill_phrase("owner", "unprotected", most=_hundred(most), at=phrase_number(max(finite)), cost=told)


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


def _left_out(found: ClientChoices, client: str, finite: Sequence[float]) -> str:
    for epsilon in finite[::-1]:
        picked = _picked(found, client, epsilon)
        value = None if picked is None else found.value(picked[0], epsilon, client_choices.leave_out(JOINED[picked[1]]), client)
        if value is not None:
            return _say(found, "left_out", epsilon=phrase_number(epsilon), value=_hundred(value))
    return ""


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
