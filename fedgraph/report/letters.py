"""A page for the owner of one client: is it worth joining for my people, and what could others learn of one of them?

Plain words and one table; no symbol but ε, which is explained where it stands first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.report import choices
from fedgraph.report.choices import METRICS, Choices
from fedgraph.report.results import number

JOINED = ("secure", "local")
LIMITS = {  # assumptions that an owner has to know: name → plain words
    "features-from-edges": "What the rows of other people say of this person (for example payments that both took part in) is "
    "not covered by these numbers: only the person's own row, label and place among the others are.",
    "test-graph-public": "The people who test, with the ties among them, are taken as public: nothing of them is protected.",
    "features-labels-public": "Attributes and labels are taken as public: only who is tied to whom is protected.",
    "promised-degree": "The numbers hold only if nobody has more ties than was promised.",
}
LEAST = 0.005  # a smaller difference is called none


@dataclass(frozen=True)
class Letter:
    """client: whose owner reads it. sentences: what to read first. header, rows: the table. last: what the numbers rest on."""

    client: str
    title: str
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]


def of(found: Choices, dataset: str) -> tuple[Letter, ...]:
    """One letter per client, in the order of the data."""
    return tuple(_letter(found, dataset, client) for client in found.clients)


def _letter(found: Choices, dataset: str, client: str) -> Letter:
    people = f"{found.clients[client]:,} {'people' if found.unit == 'node' else 'nodes'}"
    inside = found.inside()
    base = found.value(inside[0], inside[1], "alone", client) if inside else None
    metric = METRICS[found.metric]
    sentences = [
        f"This is about {client}, which brings {people} of {dataset}. The numbers are {metric} on your own test nodes."
    ]
    if base is not None:
        sentences.append(f"Alone, with a model that never leaves you and so needs no privacy: {base:.2f}.")
    finite = [e for e in found.epsilons if math.isfinite(e)]
    sentences += [_joining(found, client, epsilon, base) for epsilon in finite]
    sentences += [_unprotected(found, client, finite), _left_out(found, client, finite)]
    return Letter(
        client=client,
        title=f"For the owner of {client}",
        sentences=tuple(s for s in sentences if s),
        header=_header(found),
        rows=tuple(_row(found, client, epsilon, base) for epsilon in found.epsilons),
        last=_last(found),
    )


def _joining(found: Choices, client: str, epsilon: float, base: float | None) -> str:
    picked = found.best(epsilon, JOINED)
    value = None if picked is None else found.value(picked[0], epsilon, picked[1], client)
    if picked is None or value is None:
        return ""
    where = "with secure sums" if picked[1] == "secure" else "with a server that sees your messages"
    text = f"Joining at ε = {number(epsilon)} {where}: {value:.2f}{_compared(value, base)}."
    for own, what in ((choices.HEAD, "the last step"), (choices.WEIGHTS, "the whole model")):
        value = found.value(picked[0], epsilon, picked[1] + own, client)
        if value is not None:
            text += (
                f" If you also fit {what} to your own people, and keep that to yourself: {value:.2f}{_compared(value, base)}."
            )
    price = found.price(picked[0], epsilon, picked[1], client)
    if price is not None:
        text += f" What {_who(picked[1])} could learn of one {_unit(found)}: {_learn(found, price)}."
    return text


def _unprotected(found: Choices, client: str, finite: Sequence[float]) -> str:
    """What joining would give if nothing were protected, and so what protection costs at the largest budget."""
    free = found.best(math.inf, JOINED)
    most = None if free is None else found.value(free[0], math.inf, free[1], client)
    paid = found.best(max(finite), JOINED) if finite else None
    value = None if paid is None else found.value(paid[0], max(finite), paid[1], client)
    if most is None or value is None:
        return ""
    cost = (
        f"so at ε = {number(max(finite))} protection costs you {most - value:.2f}"
        if most - value >= LEAST
        else f"so at ε = {number(max(finite))} protection costs you nothing"
    )
    return f"If nothing were protected, joining would give {most:.2f}, {cost}."


def _learn(found: Choices, price: float) -> str:
    what = "belongs to your data" if found.unit == "node" else "exists"
    return (
        f"asked whether one {_unit(found)} {what}, and knowing everything else, they are right "
        f"{choices.in_hundred(price, found.delta)}; a coin is right 50 times"
    )


def _who(choice: str) -> str:
    return "the server and the other clients" if choice == "secure" else "the server"


def _unit(found: Choices) -> str:
    return "person" if found.unit == "node" else "tie between two people"


def _compared(value: float, base: float | None) -> str:
    if base is None:
        return ""
    if abs(value - base) < LEAST:
        return " (as good as alone)"
    return f" ({abs(value - base):.2f} {'better' if value > base else 'worse'} than alone)"


def _left_out(found: Choices, client: str, finite: Sequence[float]) -> str:
    """What the client gets if it stays out and asks the others' model."""
    for epsilon in finite[::-1]:
        picked = found.best(epsilon, JOINED)
        if picked is None:
            continue
        value = found.value(picked[0], epsilon, f"out of {picked[1]}", client)
        if value is not None:
            return (
                f"If you stay out and only use the model of the others (ε = {number(epsilon)}): {value:.2f}. Of your people "
                "nobody then learns anything beyond what is public."
            )
    return ""


def _columns(found: Choices) -> list[str]:
    joined = (trust + own for trust in JOINED for own in ("", choices.HEAD, choices.WEIGHTS))
    return found.present(("alone", *joined, "out of secure", "central"))


def _header(found: Choices) -> tuple[str, ...]:
    return ("ε", *(choices.WORDS[c] for c in _columns(found)), "others are right about one", "verdict")


def _row(found: Choices, client: str, epsilon: float, base: float | None) -> tuple[str, ...]:
    picked = found.best(epsilon, JOINED) or found.best(epsilon, ("central", "alone"))
    cells = []
    for choice in _columns(found):
        own = found.best(epsilon, ("alone",)) if choice == "alone" else picked
        value = None if own is None else found.value(own[0], epsilon, choice, client)
        cells.append("—" if value is None else f"{value:.3f}")
    price = None if picked is None else found.price(picked[0], epsilon, picked[1], client)
    told = "—" if price is None else choices.in_hundred(price, found.delta)
    return (number(epsilon), *cells, told, _verdict(found, client, epsilon, base))


def _verdict(found: Choices, client: str, epsilon: float, base: float | None) -> str:
    picked = found.best(epsilon, JOINED)
    if picked is None or base is None:
        return "—"
    ways = (picked[1] + own for own in ("", choices.HEAD, choices.WEIGHTS))
    tried = [found.value(picked[0], epsilon, c, client) for c in ways]
    best = max((v for v in tried if v is not None), default=None)
    if best is None:
        return "—"
    return "joining helps" if best > base + LEAST else "alone is better" if best < base - LEAST else "no difference"


def _last(found: Choices) -> tuple[str, ...]:
    return (
        "ε says how much the presence of one "
        + _unit(found)
        + " can change what others see: the smaller, the less they learn. At ε = ∞ nothing is hidden.",
        "“Alone” in the table: at a finite ε the model may be shown to anybody; at ε = ∞ it must stay with you.",
        *(words for name, words in LIMITS.items() if name in found.assumed),
        "“Own head”, “own weights”: you fit the shared model's answers, or all of the model, to your own people in the clear. "
        "That costs them nothing toward others as long as what you fitted and its answers stay with you; whoever sees those is "
        "not kept from anything.",
        "In each row the method is the one that was best for everybody's nodes, picked by these same numbers, so they are a "
        "little optimistic. The guarantees, and what they rest on, are under “The privacy of every row” in report.html.",
    )
