"""Participation: what each choice is worth to everybody, what each client gains by joining, who loses; a letter per client."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from fedgraph.privacy import Trust
from fedgraph.report import charts, client_choices, owner_letters
from fedgraph.report.client_choices import ALONE_CHOICE, CLIENT_CHOICE_METRICS, CURATOR_CHOICE, ClientChoice, ClientChoices
from fedgraph.report.phrases import fill_phrase, phrase_count, phrase_first, phrase_number, phrase_upper_bound
from fedgraph.report.plots import PlotFigure
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section
from fedgraph.worlds import WorldKind

_SUMS = tuple(client_choices.make_joined_choice(Trust.SUMS, own) for own in client_choices.ChoiceOwnFit)
_LINES = (ALONE_CHOICE, *_SUMS, client_choices.make_joined_choice(Trust.OWN_CLIENT), CURATOR_CHOICE)
_MOST_NAMED = 6  # rows that a sentence lists
_PART = "participation"
KINDS = (_PART,)  # the tasks that this section speaks of


def build(records: SectionRecords, notice: str | None) -> Section:
    """Sentences, the table of everybody, one table of clients for each ε, a chart, and the letters."""
    found = client_choices.read_client_choices(records)
    facts = records.entries[0].facts
    seeds = phrase_count(len({e.seed for e in records.entries}), "seed")
    sizes = found.clients.values()
    alerts = "" if found.alerts is None else f" ({100 * found.alerts:g} of 100 nodes are looked at)"
    counts = {"clients": len(sizes), "nodes": sum(sizes), "least": min(sizes), "most": max(sizes)}
    sentences = [
        fill_phrase(
            _PART,
            "hold",
            **counts,
            facts=facts,
            what=CLIENT_CHOICE_METRICS[found.metric] + alerts,
            seeds=seeds,
            delta=found.delta,
        ),
        *_same_people(records, len(found.clients)),
        *_majority(found),
        *_who_gains(found),
    ]
    ranked = []
    if found.metric == client_choices.CHOICE_RECALL:
        ranked = [_everybody(client_choices.read_client_choices(records, client_choices.CHOICE_PRECISION))]
    return section_participation_choices(records, found, tuple(sentences), ranked, (), notice)


def section_participation_choices(
    records: SectionRecords,
    found: ClientChoices,
    sentences: tuple[str, ...],
    more: Sequence[SectionTable],
    beside: Sequence[ClientChoices],
    notice: str | None,
) -> Section:
    """Tables of everybody and of each client, a chart, and letters. more: tables after the first. beside: other measures."""
    tables = [_everybody(found), *more, *(_clients(found, e) for e in found.epsilons)]
    letters = owner_letters.write_owner_letters(found, records.dataset, beside)
    first = () if owner_letters.is_owner_letter_undecided(found) else _first(found, records.label)
    return Section(sentences, tuple(t for t in tables if t.rows), _figure(records.name, found, notice), letters, first)


def _first(found: ClientChoices, label: str) -> tuple[str, ...]:
    told = []
    for epsilon in (e for e in found.epsilons if math.isfinite(e)):
        gains = {c: g for c in found.clients if (g := owner_letters.owner_letter_gain(found, c, epsilon)) is not None}
        better = sorted((c for c, g in gains.items() if g > 0), key=lambda c: -gains[c])
        worse = sorted((c for c, g in gains.items() if g < 0), key=lambda c: gains[c])
        if not gains:
            continue
        named = f" ({_named(better, gains)})" if better else ""
        lost = f", {len(worse)} lose{'s' if len(worse) == 1 else ''} ({_named(worse, gains)})" if worse else ", none loses"
        told.append(f"at ε = {phrase_number(epsilon)}, {len(better) or 'none'} of {len(gains)} gain{named}{lost}")
    if not told:
        return ()
    said = {client_choices.CHOICE_RECALL: "nodes found", client_choices.CHOICE_AUC: "pairs that a hidden tie is put above, out"}
    what = said.get(found.metric, "right answers")
    return (fill_phrase(_PART, "first", label=label, told="; ".join(told), what=what),)


def _same_people(records: SectionRecords, clients: int) -> list[str]:
    worlds = {entry.world for entry in records.entries if entry.world.kind is not WorldKind.ALONE}
    without = Counter(world.without for world in worlds if world.without is not None)
    own = len(worlds) - (min(without.values()) if len(without) == clients else 0)
    if own < 2:
        return []
    return [fill_phrase(_PART, "same_people", own=own)]


def _majority(found: ClientChoices) -> list[str]:
    share = found.usual.get(client_choices.ALL_CHOICE_CLIENTS)
    if share is None or found.metric != client_choices.CHOICE_ACCURACY:
        return []
    said = f"Naming the largest class of everybody's tested nodes always would be right for {share:.3f} (majority share)."
    near = [
        f"{learner}, {choice.words}, ε = {phrase_number(epsilon)}"
        for learner in found.learners
        for choice in found.present(client_choices.EVERY_CHOICE)
        for epsilon in found.epsilons
        if (value := found.value(learner, epsilon, choice)) is not None and value <= share + 0.01
    ]
    if not near:
        return [said]
    return [f"{said} These rows reach no more, and may have learnt nothing else: {phrase_first(near, _MOST_NAMED, '; ')}."]


def _named(clients: Sequence[str], gains: dict[str, float]) -> str:
    shown = ", ".join(f"{c} {100 * gains[c]:+.0f}" for c in clients[:2])
    return shown + (" …" if len(clients) > 2 else "")


def _who_gains(found: ClientChoices) -> list[str]:
    inside = found.inside()
    said = []
    for epsilon in found.epsilons:
        for choice in found.present(client_choices.ADAPTED_CHOICES):
            picked = found.best(epsilon, (choice,))
            if picked is None or inside is None:
                continue
            gains = {c: _gain(found, epsilon, picked, inside, c) for c in found.clients}
            known = {c: g for c, g in gains.items() if g is not None}
            if not known:
                continue
            losers = sorted((c for c, g in known.items() if g < 0), key=lambda c: known[c])
            top, low = max(known, key=lambda c: known[c]), min(known, key=lambda c: known[c])
            asked = f"ε = {phrase_number(epsilon)}, {choice.words} ({picked[0]})"
            well = f"{len(known) - len(losers)} of {len(known)}"
            gained = {"largest": f"{known[top]:+.3f} ({top})", "least": f"{known[low]:+.3f} ({low})"}
            lost = f" Who loses: {', '.join(losers[:6])}{' …' if len(losers) > 6 else ''}." if losers else ""
            said.append(fill_phrase(_PART, "gains", asked=asked, well=well, inside=inside[0], **gained) + lost)
    return said


def _gain(
    found: ClientChoices, epsilon: float, picked: tuple[str, ClientChoice], inside: tuple[str, float, ClientChoice], client: str
) -> float | None:
    joined = found.value(picked[0], epsilon, picked[1], client)
    base = found.value(*inside, client)
    return None if joined is None or base is None else joined - base


def _everybody(found: ClientChoices) -> SectionTable:
    body = []
    for learner in found.learners:
        for choice in found.present(client_choices.EVERY_CHOICE):
            cells = [found.spread(learner, e, choice) for e in found.epsilons]
            if any(c != "—" for c in cells):
                body.append((learner, choice.words, *cells, found.toward.get(choice, "")))
    header = ("learner", "choice", *(f"ε = {phrase_number(e)}" for e in found.epsilons), "protects from")
    adapted = any(choice.own.value for choice in found.present(client_choices.EVERY_CHOICE))
    note = fill_phrase(_PART, "everybody") + (f" {fill_phrase(_PART, 'own')}" if adapted else "")
    return SectionTable(f"Each choice, {CLIENT_CHOICE_METRICS[found.metric]}", header, tuple(body), note)


def _clients(found: ClientChoices, epsilon: float) -> SectionTable:
    title = f"Each client at ε = {phrase_number(epsilon)}, {CLIENT_CHOICE_METRICS[found.metric]}"
    picked = found.best(epsilon, (*client_choices.JOINED_CHOICES, CURATOR_CHOICE))
    if picked is None:
        return SectionTable(title, (), ())
    learner, choice = picked
    inside, here = found.inside(), found.best(epsilon, (ALONE_CHOICE,))
    columns: dict[str, Callable[[str], str]] = {"client": str, "nodes": lambda c: f"{found.clients[c]:,}"}
    if found.metric == client_choices.CHOICE_ACCURACY and found.usual:
        columns["majority share"] = lambda c: _text(found.usual.get(c))
    columns["alone, kept inside"] = lambda c: _text(found.value(*inside, c) if inside else None)
    noised = f"alone at ε = {phrase_number(epsilon)}"
    columns[noised] = lambda c: _text(found.value(here[0], epsilon, ALONE_CHOICE, c) if here else None)
    for other in found.present(client_choices.SINGLE_CLIENT_CHOICES):
        columns[other.words] = lambda c, other=other: _text(found.value(learner, epsilon, other, c))  # type: ignore[misc]
    columns["gain"] = lambda c: _text(_gain(found, epsilon, picked, inside, c) if inside else None, "+.3f")
    columns["ε provable"] = lambda c: phrase_upper_bound(found.price(learner, epsilon, choice, c), 3)
    note = fill_phrase(_PART, "clients", learner=f"{learner}, the best of those that join", choice=choice.words)
    return tabulate_section(title, list(found.clients), columns, note)


def _text(value: float | None, form: str = ".3f") -> str:
    return "—" if value is None else f"{value:{form}}"


def _figure(name: str, found: ClientChoices, notice: str | None) -> tuple[PlotFigure, ...]:
    if len(found.epsilons) < 2:
        return ()
    panels = [
        charts.ChartPanel(one, CLIENT_CHOICE_METRICS[found.metric], tuple(_lines(found, one)), ()) for one in found.learners
    ]
    caption = "Each choice against ε, over everybody's test nodes."
    return charts.draw_chart(f"{name}-choices", caption, panels, notice, shared=True)


def _lines(found: ClientChoices, learner: str) -> Sequence[charts.ChartSeries]:
    lines = []
    for choice in found.present(_LINES):
        points = [(e, v) for e in found.epsilons if (v := found.value(learner, e, choice)) is not None]
        if len(points) > 1:
            lines.append(charts.ChartSeries(choice.words, [e for e, _ in points], [v for _, v in points], [0.0] * len(points)))
    return lines
