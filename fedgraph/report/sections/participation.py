"""Participation: what each choice is worth to everybody, what each client gains by joining, who loses; a letter per client."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from fedgraph.privacy.trust import Trust
from fedgraph.report import charts, choices, owner_letters
from fedgraph.report.choices import ALONE, CURATOR, METRICS, Choice, Choices, Own, join, out_of
from fedgraph.report.phrases import phrase, phrase_first, rounded, rounded_up, say_count
from fedgraph.report.plots import Figure
from fedgraph.report.sections.base import Records, Section, Table, tabulate
from fedgraph.worlds.world import Kind

LINES = (ALONE, *(join(Trust.SUMS, own) for own in Own), join(Trust.OWN_CLIENT), CURATOR)
MOST_NAMED = 6  # rows that a sentence lists
PART = "participation"
KINDS = (PART,)  # the tasks that this section speaks of


def build(records: Records, notice: str | None) -> Section:
    """Sentences, the table of everybody, one table of clients for each ε, a chart, and the letters."""
    found = choices.read_choices(records)
    facts = records.entries[0].facts
    seeds = say_count(len({e.seed for e in records.entries}), "seed")
    sizes = found.clients.values()
    alerts = "" if found.alerts is None else f" ({100 * found.alerts:g} of 100 nodes are looked at)"
    counts = {"clients": len(sizes), "nodes": sum(sizes), "least": min(sizes), "most": max(sizes)}
    sentences = [
        phrase(PART, "hold", **counts, facts=facts, what=METRICS[found.metric] + alerts, seeds=seeds, delta=found.delta),
        *_same_people(records, len(found.clients)),
        *_majority(found),
        *_who_gains(found),
    ]
    ranked = [] if found.metric != choices.FOUND else [_everybody(choices.read_choices(records, choices.RANKED))]
    return of_choices(records, found, tuple(sentences), ranked, (), notice)


def of_choices(
    records: Records,
    found: Choices,
    sentences: tuple[str, ...],
    more: Sequence[Table],
    beside: Sequence[Choices],
    notice: str | None,
) -> Section:
    """Tables of everybody and of each client, a chart, and letters. more: tables after the first. beside: other measures."""
    tables = [_everybody(found), *more, *(_clients(found, e) for e in found.epsilons)]
    letters = owner_letters.write_letters(found, records.dataset, beside)
    first = () if owner_letters.undecided(found) else _first(found, records.label)
    return Section(sentences, tuple(t for t in tables if t.rows), _figure(records.name, found, notice), letters, first)


def _first(found: Choices, label: str) -> tuple[str, ...]:
    """Is joining worth it, and for whom? One sentence for the first screen; none where nobody could stay alone."""
    told = []
    for epsilon in (e for e in found.epsilons if math.isfinite(e)):
        gains = {c: g for c in found.clients if (g := owner_letters.joining_gain(found, c, epsilon)) is not None}
        better = sorted((c for c, g in gains.items() if g > 0), key=lambda c: -gains[c])
        worse = sorted((c for c, g in gains.items() if g < 0), key=lambda c: gains[c])
        if not gains:
            continue
        named = f" ({_named(better, gains)})" if better else ""
        lost = f", {len(worse)} lose{'s' if len(worse) == 1 else ''} ({_named(worse, gains)})" if worse else ", none loses"
        told.append(f"at ε = {rounded(epsilon)}, {len(better) or 'none'} of {len(gains)} gain{named}{lost}")
    if not told:
        return ()
    said = {choices.FOUND: "nodes found", choices.LINKED: "pairs that a hidden tie is put above, out"}
    what = said.get(found.metric, "right answers")
    return (phrase(PART, "first", label=label, told="; ".join(told), what=what),)


def _same_people(records: Records, clients: int) -> list[str]:
    """In how many trainings that others see one person's data took part, and what all of them would cost the person."""
    worlds = {entry.world for entry in records.entries if entry.world.kind is not Kind.ALONE}
    without = Counter(world.without for world in worlds if world.without is not None)
    own = len(worlds) - (min(without.values()) if len(without) == clients else 0)
    if own < 2:
        return []
    return [phrase(PART, "same_people", own=own)]


def _majority(found: Choices) -> list[str]:
    """What naming the largest class always would give, and which rows reach no more; nothing where that was not measured."""
    share = found.usual.get(choices.ALL)
    if share is None or found.metric != choices.RIGHT:
        return []
    said = f"Naming the largest class of everybody's tested nodes always would be right for {share:.3f} (majority share)."
    near = [
        f"{learner}, {choice.words}, ε = {rounded(epsilon)}"
        for learner in found.learners
        for choice in found.present(choices.EVERY)
        for epsilon in found.epsilons
        if (value := found.value(learner, epsilon, choice)) is not None and value <= share + 0.01
    ]
    if not near:
        return [said]
    return [f"{said} These rows reach no more, and may have learnt nothing else: {phrase_first(near, MOST_NAMED, '; ')}."]


def _named(clients: Sequence[str], gains: dict[str, float]) -> str:
    """The first two, with what they gain or lose."""
    shown = ", ".join(f"{c} {100 * gains[c]:+.0f}" for c in clients[:2])
    return shown + (" …" if len(clients) > 2 else "")


def _who_gains(found: Choices) -> list[str]:
    """For each ε and way of joining: how many clients gain over a model of their own that never leaves them, and who loses."""
    inside = found.inside()
    said = []
    for epsilon in found.epsilons:
        for choice in found.present(choices.ADAPTED):
            picked = found.best(epsilon, (choice,))
            if picked is None or inside is None:
                continue
            gains = {c: _gain(found, epsilon, picked, inside, c) for c in found.clients}
            known = {c: g for c, g in gains.items() if g is not None}
            if not known:
                continue
            losers = sorted((c for c, g in known.items() if g < 0), key=lambda c: known[c])
            top, low = max(known, key=lambda c: known[c]), min(known, key=lambda c: known[c])
            asked = f"ε = {rounded(epsilon)}, {choice.words} ({picked[0]})"
            well = f"{len(known) - len(losers)} of {len(known)}"
            gained = {"largest": f"{known[top]:+.3f} ({top})", "least": f"{known[low]:+.3f} ({low})"}
            lost = f" Who loses: {', '.join(losers[:6])}{' …' if len(losers) > 6 else ''}." if losers else ""
            said.append(phrase(PART, "gains", asked=asked, well=well, inside=inside[0], **gained) + lost)
    return said


def _gain(
    found: Choices, epsilon: float, picked: tuple[str, Choice], inside: tuple[str, float, Choice], client: str
) -> float | None:
    joined = found.value(picked[0], epsilon, picked[1], client)
    base = found.value(*inside, client)
    return None if joined is None or base is None else joined - base


def _everybody(found: Choices) -> Table:
    body = []
    for learner in found.learners:
        for choice in found.present(choices.EVERY):
            cells = [found.spread(learner, e, choice) for e in found.epsilons]
            if any(c != "—" for c in cells):
                body.append((learner, choice.words, *cells, found.toward.get(choice, "")))
    header = ("learner", "choice", *(f"ε = {rounded(e)}" for e in found.epsilons), "protects from")
    adapted = any(choice.own is not Own.NOTHING for choice in found.present(choices.EVERY))
    note = phrase(PART, "everybody") + (f" {phrase(PART, 'own')}" if adapted else "")
    return Table(f"Each choice, {METRICS[found.metric]}", header, tuple(body), note)


def _clients(found: Choices, epsilon: float) -> Table:
    """Per client: alone, joined in each way, left out, gain; for the learner that joins best. No line where nobody joined."""
    title = f"Each client at ε = {rounded(epsilon)}, {METRICS[found.metric]}"
    picked = found.best(epsilon, (*choices.JOINED, CURATOR))
    if picked is None:
        return Table(title, (), ())
    learner, choice = picked
    inside, here = found.inside(), found.best(epsilon, (ALONE,))
    columns: dict[str, Callable[[str], str]] = {"client": str, "nodes": lambda c: f"{found.clients[c]:,}"}
    if found.metric == choices.RIGHT and found.usual:
        columns["majority share"] = lambda c: _text(found.usual.get(c))
    columns["alone, kept inside"] = lambda c: _text(found.value(*inside, c) if inside else None)
    columns[f"alone at ε = {rounded(epsilon)}"] = lambda c: _text(found.value(here[0], epsilon, ALONE, c) if here else None)
    for other in found.present((*choices.ADAPTED, *map(out_of, choices.SEEN), CURATOR)):
        columns[other.words] = lambda c, other=other: _text(found.value(learner, epsilon, other, c))  # type: ignore[misc]
    columns["gain"] = lambda c: _text(_gain(found, epsilon, picked, inside, c) if inside else None, "+.3f")
    columns["ε provable"] = lambda c: rounded_up(found.price(learner, epsilon, choice, c), 3)
    note = phrase(PART, "clients", learner=f"{learner}, the best of those that join", choice=choice.words)
    return tabulate(title, list(found.clients), columns, note)


def _text(value: float | None, form: str = ".3f") -> str:
    return "—" if value is None else f"{value:{form}}"


def _figure(name: str, found: Choices, notice: str | None) -> tuple[Figure, ...]:
    if len(found.epsilons) < 2:
        return ()
    panels = [charts.Panel(one, METRICS[found.metric], tuple(_lines(found, one)), ()) for one in found.learners]
    caption = "Each choice against ε, over everybody's test nodes."
    return charts.draw(f"{name}-choices", caption, panels, notice, shared=True)


def _lines(found: Choices, learner: str) -> Sequence[charts.Series]:
    lines = []
    for choice in found.present(LINES):
        points = [(e, v) for e in found.epsilons if (v := found.value(learner, e, choice)) is not None]
        if len(points) > 1:
            lines.append(charts.Series(choice.words, [e for e, _ in points], [v for _, v in points], [0.0] * len(points)))
    return lines
