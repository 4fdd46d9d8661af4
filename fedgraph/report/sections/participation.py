"""Owners: what each choice is worth to everybody, what each client gains by joining, who loses; a letter per client."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fedgraph.cells import Result
from fedgraph.federation import WorldKind
from fedgraph.privacy import Trust, Unit
from fedgraph.report import charts, client_choices, owner_letters
from fedgraph.report.client_choices import ALONE, CURATOR, FITS, JOINED, ClientChoices, join
from fedgraph.report.phrases import fill_phrase, phrase_number
from fedgraph.report.plots import PlotFigure
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.types import counted, in_words_of

KINDS = ("participation", "link_prediction")  # the tasks that this section speaks of
_PART = "participation"
_DRAWN = (ALONE, *(join(Trust.SUMS, own) for own in FITS), join(Trust.OWN_CLIENT), CURATOR)
_PROTECTED = {Unit.EDGE: "edge", Unit.NODE: "node with all its edges", Unit.ENTITY: "owner with all its records"}


def build(records: SectionRecords, notice: str | None) -> Section:
    """The table of everybody, a chart, the letters; nothing where owners are not compared."""
    if not any(e.facts.results for e in records.entries):
        return Section()
    beside: list[ClientChoices] = []
    if records.kind == "link_prediction":
        unit, entries = _of_one_unit(records.entries)
        records = replace(records, entries=tuple(entries))
        found = client_choices.read(records, unit=unit.value)
        beside = [also for metric in client_choices.OTHER_METRICS if (also := client_choices.read(records, metric)).values]
        sentences = [fill_phrase(_PART, "ties", unit=_PROTECTED[unit])]
    else:
        found = client_choices.read(records)
        sentences = [_held(records, found), *_same_people(records, len(found.clients))]
    ranked = []
    if found.metric == client_choices.RECALL:
        ranked = [_everybody(client_choices.read(records, client_choices.PRECISION))]
    tables = [_everybody(found), *ranked]
    letters = owner_letters.write_owner_letters(found, records.dataset, beside)
    one = records.entries[0].facts.one
    first = (_undecided if found.undecided else _first)(found, records.label, one)
    said, figures = tuple(in_words_of(one, sentence) for sentence in sentences), _figure(records.name, found, notice, one)
    return Section(said, tuple(table.in_words_of(one) for table in tables if table.rows), figures, letters, first)


def _of_one_unit(entries: Sequence[Result]) -> tuple[Unit, list[Result]]:
    """(the largest unit that a price is about, the cells whose price is about it, or that have none): units never mix."""
    priced = {e.protection.unit for e in entries if e.protection and 0 < e.epsilon_provable < math.inf}
    unit = next((one for one in (Unit.ENTITY, Unit.NODE) if one in priced), Unit.EDGE)
    same = [e for e in entries if e.protection and (e.protection.unit is unit or not 0 < e.epsilon_provable < math.inf)]
    return unit, same


def _held(records: SectionRecords, found: ClientChoices) -> str:
    sizes = found.clients.values()
    alerts = "" if found.alerts is None else f" ({100 * found.alerts:g} of 100 nodes are looked at)"
    said = fill_phrase(
        _PART, "hold", clients=len(sizes), nodes=sum(sizes), least=min(sizes), most=max(sizes), facts=records.entries[0].facts,
        what=client_choices.METRICS[found.metric] + alerts, delta=found.delta,
        seeds=counted(len({e.seed for e in records.entries}), "seed"),
    )  # fmt: skip
    share = found.usual.get(client_choices.EVERYBODY)
    if share is None or found.metric != client_choices.ACCURACY:
        return said
    return (
        f"{said} Naming the largest class of everybody's tested nodes always would be right for {share:.3f} (majority share)."
    )


def _same_people(records: SectionRecords, clients: int) -> list[str]:
    worlds = {entry.world for entry in records.entries if entry.world.kind is not WorldKind.ALONE}
    without = Counter(world.without for world in worlds if world.without is not None)
    own = len(worlds) - (min(without.values()) if len(without) == clients else 0)
    return [fill_phrase(_PART, "same_people", own=own)] if own > 1 else []


def _undecided(found: ClientChoices, label: str, one: str) -> tuple[str, ...]:
    """Both sides beside each other, where nobody is advised."""
    kept, told = found.inside(), []
    if kept is not None:
        told.append(f"alone {100 * (found.value(*kept) or 0):.0f}")
    for epsilon in filter(math.isfinite, found.epsilons):
        if (best := found.best(epsilon, tuple(JOINED))) is not None:
            value = found.value(best[0], epsilon, best[1]) or 0.0
            told.append(f"{best[1]}: {100 * value:.0f} at ε = {phrase_number(epsilon)}")
    if len(told) < 2:
        return ()
    short, seeds = "a short run of " if found.short else "", counted(found.seeds, "seed")
    wanted = client_choices.FEWEST_SEEDS
    both, what = "; ".join(told), _what(found).capitalize()
    filled = {"label": label, "short": short, "seeds": seeds, "wanted": wanted, "told": both, "what": what}
    return (in_words_of(one, fill_phrase(_PART, "undecided", **filled)),)


def _what(found: ClientChoices) -> str:
    """What numbers of 100 count."""
    said = {client_choices.RECALL: "nodes found", client_choices.AUC: "pairs that a hidden edge is put above, out"}
    return said.get(found.metric, "right answers")


def _first(found: ClientChoices, label: str, one: str) -> tuple[str, ...]:
    told = []
    for epsilon in (e for e in found.epsilons if math.isfinite(e)):
        gains = {c: g for c in found.clients if (g := found.gain(c, epsilon)) is not None}
        better = sorted((c for c, g in gains.items() if g > 0), key=lambda c: -gains[c])
        worse = sorted((c for c, g in gains.items() if g < 0), key=lambda c: gains[c])
        if not gains:
            continue
        named = f" ({_named(better, gains)})" if better else ""
        lost = f", {len(worse)} lose{'s' if len(worse) == 1 else ''} ({_named(worse, gains)})" if worse else ", none loses"
        told.append(f"at ε = {phrase_number(epsilon)}, {len(better) or 'none'} of {len(gains)} gain{named}{lost}")
    if not told:
        return ()
    return (fill_phrase(_PART, "first", label=label, told="; ".join(told), what=in_words_of(one, _what(found))),)


def _named(clients: Sequence[str], gains: dict[str, float]) -> str:
    shown = ", ".join(f"{c} {100 * gains[c]:+.0f}" for c in clients[:2])
    return shown + (" …" if len(clients) > 2 else "")


def _everybody(found: ClientChoices) -> SectionTable:
    body = []
    for learner in found.learners:
        for choice in found.present(client_choices.EVERY):
            cells = [found.spread(learner, e, choice) for e in found.epsilons]
            if any(c != "—" for c in cells):
                body.append((learner, choice, *cells, found.toward(choice)))
    header = ("learner", "choice", *(f"ε = {phrase_number(e)}" for e in found.epsilons), "protects from")
    adapted = any(choice.endswith(FITS[1:]) for choice in found.present(client_choices.EVERY))
    note = fill_phrase(_PART, "everybody") + (f" {fill_phrase(_PART, 'own')}" if adapted else "")
    return SectionTable(f"Each choice, {client_choices.METRICS[found.metric]}", header, tuple(body), note)


def _figure(name: str, found: ClientChoices, notice: str | None, one: str) -> tuple[PlotFigure, ...]:
    points = [
        charts.ChartPoint(learner, in_words_of(one, client_choices.METRICS[found.metric]), choice, epsilon, value)
        for learner in found.learners
        for choice in found.present(_DRAWN)
        for epsilon in found.epsilons
        if (value := found.value(learner, epsilon, choice)) is not None
    ]
    caption = in_words_of(one, "Each choice against ε, over everybody's test nodes.")
    drawn = points if len(found.epsilons) > 1 else ()
    return charts.draw_lines(f"{name}-choices", caption, drawn, notice, across="ε", shared=True)
