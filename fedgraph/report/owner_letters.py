"""A page for the owner of one client: is it worth joining for my people, and what could others learn of one of them?

Plain words, whole numbers out of 100, and one table; no symbol but ε, which is explained below the table. A difference that
chance alone may make (``Choices.chance``) is called none.
"""

import math
from collections.abc import Sequence

from fedgraph.privacy.trust import Trust
from fedgraph.report import chance, choices
from fedgraph.report.choices import ALONE, CURATOR, JOINED, Choice, Choices, Own, join, out_of
from fedgraph.report.owner_words import FEW_SEEDS, SHORT, closing_words, unit_word
from fedgraph.report.report_rows import rounded
from fedgraph.report.sections.base import Letter


def write_letters(found: Choices, dataset: str) -> tuple[Letter, ...]:
    """One letter per client, in the order of the data."""
    return tuple(_letter(found, dataset, client) for client in found.clients)


def joining_gain(found: Choices, client: str, epsilon: float) -> float | None:
    """What the best way of joining at ``epsilon`` gives beyond a model that the client makes alone and keeps.

    Both sides are the client's own best of everything that was tried there. None where one of the two was not measured; 0 where
    chance alone may make the difference, the number of pairs and budgets among which this one was picked taken into account.
    """
    kept, joined = found.kept_by(client), found.joined_by(client, epsilon)
    if not kept or not joined:
        return None
    base, best = max(kept, key=found.mean), max(joined, key=found.mean)
    tried = len(kept) * len(joined) * sum(map(math.isfinite, found.epsilons))
    gain = found.mean(best) - found.mean(base)
    return gain if abs(gain) > chance.errors_for(tried) * found.error(best, base) else 0.0


def _base(found: Choices, client: str) -> float | None:
    return max((found.mean(key) for key in found.kept_by(client)), default=None)


def _picked(found: Choices, client: str, epsilon: float) -> tuple[str, Choice] | None:
    """(learner, choice) of the best way of joining for this client; for everybody where nothing was measured for it."""
    joined = found.joined_by(client, epsilon)
    if not joined:
        return found.best(epsilon, JOINED)
    learner, _, choice, _ = max(joined, key=found.mean)
    return learner, join(choice.trust)


def _letter(found: Choices, dataset: str, client: str) -> Letter:
    base = _base(found, client)
    finite = [e for e in found.epsilons if math.isfinite(e)]
    sentences = [_about(found, dataset, client, base)]
    if base is not None:
        sentences.append(
            f"Alone, with a model that you keep to yourself: {_hundred(base)}. Nobody else sees that model, so it needs "
            "no protection."
        )
    sentences += [_joining(found, client, epsilon, base) for epsilon in finite]
    sentences += [_unprotected(found, client, finite), _left_out(found, client, finite)]
    if client not in found.tested:
        sentences.append(_unmeasured(found))
    return Letter(
        client=client,
        title=f"For the owner of {client}",
        answer=_answer(found, client, finite),
        sentences=tuple(s for s in sentences if s),
        header=_header(found, client),
        rows=tuple(_row(found, client, epsilon) for epsilon in found.epsilons),
        last=closing_words(found.unit, found.called, found.assumed),
    )


def _unmeasured(found: Choices) -> str:
    """Why a client has no number."""
    many = found.called[1]
    if found.metric == choices.FOUND:
        return f"Nothing was measured for you: none of your {many} that were tested is of the kind that is looked for."
    return f"Nothing was measured for you: none of your {many} was tested, or no answer of those is known."


def _answer(found: Choices, client: str, finite: Sequence[float]) -> str:
    """Join or not, at which ε."""
    if found.short:
        return SHORT
    if found.seeds < choices.FEWEST_SEEDS:
        return FEW_SEEDS.format(count=found.seeds, fewest=choices.FEWEST_SEEDS)
    gains = {e: g for e in finite if (g := joining_gain(found, client, e)) is not None}
    if not gains:
        return ""
    better = [e for e, g in gains.items() if g > 0]
    if not better:
        same = [e for e, g in gains.items() if g == 0]
        if same:
            return (
                f"In short: joining brings you nothing that can be told from chance. With ε = {_listed(same)} it is about as "
                "good as a model of your own that you keep to yourself"
                + (", otherwise it is worse." if len(same) < len(gains) else ".")
            )
        return (
            "In short: stay alone. A model of your own that you keep to yourself is better than joining with any ε that "
            "was tried."
        )
    most = max(better, key=lambda e: gains[e])
    told = f"{100 * gains[most]:.0f} more of 100 than alone"
    if len(better) == len(gains):
        return f"In short: joining helps you with every ε that was tried; at ε = {rounded(most)} you get {told}."
    return (
        f"In short: join only if ε = {_listed(better)} protects your {found.called[1]} enough. Then you get up to {told}. "
        "With the other ε that were tried you get no more than alone."
    )


def _listed(values: Sequence[float]) -> str:
    told = [rounded(v) for v in values]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"


def _about(found: Choices, dataset: str, client: str, base: float | None) -> str:
    """Who is meant, and what is counted."""
    many, size = found.called[1], found.clients[client]
    text = f"You are {client}, and you bring {size:,} {many if size != 1 else found.called[0]} of {dataset}. "
    if found.metric == choices.FOUND:
        text += (
            f"You can look at {100 * (found.alerts or 0):g} of every 100 {many}. The numbers say how many of 100 {many} "
            "of the kind "
            "that you look for are among those that a model tells you to look at."
        )
        if found.reachable.get(client, 1.0) < 0.995:
            text += (
                f" No model can find more than {_hundred(found.reachable[client])}, since there are more of them than you "
                "can look at."
            )
    else:
        text += (
            f"The numbers say for how many of 100 of your {many} a model gives the right answer, counted on "
            f"{found.tested_once(client):,} {many} whose answer it was not told."
        )
        if client in found.usual:
            text += f" The most frequent answer, given for everybody, would be right for {_hundred(found.usual[client])}."
    least = 0.0 if base is None else 100 * found.chance(client, base)
    return text + (f" Differences below {math.ceil(least)} may be chance." if least > 1 else "")


def _joining(found: Choices, client: str, epsilon: float, base: float | None) -> str:
    picked = _picked(found, client, epsilon)
    if picked is None:
        return ""
    where = "when the server sees only sums" if picked[1].trust is Trust.SUMS else "when the server sees your messages"
    value = found.value(picked[0], epsilon, picked[1], client)
    text = f"Joined at ε = {rounded(epsilon)}, {where}"
    text += "." if value is None else f": {_hundred(value)}{_compared(found, client, value, base)}."
    for own, what in ((Own.HEAD, "the last step"), (Own.WEIGHTS, "the whole model")):
        value = found.value(picked[0], epsilon, join(picked[1].trust, own), client)
        if value is not None:
            text += f" If you adapt {what} to your own {found.called[1]}, and keep that to yourself: {_hundred(value)}"
            text += f"{_compared(found, client, value, base)}."
    price = found.price(picked[0], epsilon, picked[1], client)
    if client in found.own and found.own[client] < epsilon:
        text += f" You asked for more protection: your own {found.called[1]} have ε = {rounded(found.own[client])}."
    if price is not None:
        text += f" What {_who(picked[1])} could learn of one {unit_word(found.unit, found.called)}: {_learn(found, price)}."
    return text


def _unprotected(found: Choices, client: str, finite: Sequence[float]) -> str:
    """What joining would give if nothing were protected, and so what protection costs at the largest budget."""
    free = _picked(found, client, math.inf)
    most = None if free is None else found.value(free[0], math.inf, free[1], client)
    paid = _picked(found, client, max(finite)) if finite else None
    value = None if paid is None else found.value(paid[0], max(finite), paid[1], client)
    if most is None or value is None:
        return ""
    cost = round(100 * most) - round(100 * value)
    told = f"{cost} of 100" if cost > 0 and not _alike(found, client, most, value) else "nothing that can be told from chance"
    at = rounded(max(finite))
    return f"If nothing were protected, joining would give {_hundred(most)}: at ε = {at} protection costs you {told}."


def _learn(found: Choices, price: float) -> str:
    what = "belongs to your data" if found.unit == "node" else "exists"
    return (
        f"asked whether one {unit_word(found.unit, found.called)} {what}, and knowing everything else, they are right "
        f"{choices.in_hundred(price, found.delta)}; a coin is right 50 times"
    )


def _who(choice: Choice) -> str:
    return "the server and the other clients" if choice.trust is Trust.SUMS else "the server"


def _hundred(value: float) -> str:
    return f"{100 * value:.0f} of 100"


def _alike(found: Choices, client: str, value: float, base: float) -> bool:
    """Whether they are the same in whole numbers, or so near that chance may make the difference."""
    return round(100 * value) == round(100 * base) or abs(value - base) <= found.chance(client, base)


def _compared(found: Choices, client: str, value: float, base: float | None) -> str:
    if base is None:
        return ""
    difference = round(100 * value) - round(100 * base)
    if not difference:
        return " (as good as alone)"
    told = ", which may be chance" if _alike(found, client, value, base) else ""
    return f" ({abs(difference)} {'more' if difference > 0 else 'fewer'} than alone{told})"


def _left_out(found: Choices, client: str, finite: Sequence[float]) -> str:
    """What the client gets if it stays out and asks the others' model."""
    for epsilon in finite[::-1]:
        picked = _picked(found, client, epsilon)
        if picked is None:
            continue
        value = found.value(picked[0], epsilon, out_of(picked[1].trust), client)
        if value is not None:
            return (
                f"If you stay out and only use the model of the others (ε = {rounded(epsilon)}): {_hundred(value)}. Of "
                f"your {found.called[1]} "
                "nobody then learns anything beyond what is public."
            )
    return ""


def _columns(found: Choices, client: str) -> list[Choice]:
    """The choices that were measured for this client."""
    run = {key[2] for key in found.values if key[3] == client}
    return [c for c in (ALONE, *choices.ADAPTED, *map(out_of, choices.SEEN), CURATOR) if c in run]


def _header(found: Choices, client: str) -> tuple[str, ...]:
    end = () if undecided(found) else ("verdict",)
    return (
        "ε",
        *(c.words for c in _columns(found, client)),
        f"others are right about one {unit_word(found.unit, found.called)}",
        *end,
    )


def _row(found: Choices, client: str, epsilon: float) -> tuple[str, ...]:
    picked = _picked(found, client, epsilon) or found.best(epsilon, (CURATOR, ALONE))
    cells = []
    for choice in _columns(found, client):
        own = found.best(epsilon, (ALONE,)) if choice == ALONE else picked
        value = None if own is None else found.value(own[0], epsilon, choice, client)
        cells.append("—" if value is None else f"{100 * value:.0f}")
    price = None if picked is None else found.price(picked[0], epsilon, picked[1], client)
    told = "—" if price is None else choices.in_hundred(price, found.delta)
    return (rounded(epsilon), *cells, told, *(() if undecided(found) else (_verdict(found, client, epsilon),)))


def undecided(found: Choices) -> bool:
    """Whether nobody is advised: the run was shrunk, or repeated too seldom."""
    return found.short or found.seeds < choices.FEWEST_SEEDS


def _verdict(found: Choices, client: str, epsilon: float) -> str:
    gain = joining_gain(found, client, epsilon)
    if gain is None:
        return "—"
    return "joining helps" if gain > 0 else "alone is better" if gain < 0 else "no difference"
