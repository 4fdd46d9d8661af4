"""Owners: what each choice is worth to everybody, what each client gains by joining, who loses; a letter per client."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fedgraph.cells import Result
from fedgraph.federation import WorldKind
from fedgraph.privacy import Unit
from fedgraph.report import client_choices, owner_letters
from fedgraph.report.client_choices import FITS, JOINED, ClientChoices
from fedgraph.report.phrases import load_template, phrase_number
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.types import counted, in_words_of

KINDS = ("participation", "link_prediction")  # the tasks that this section speaks of
_PROTECTED = {Unit.EDGE: "edge", Unit.NODE: "node with all its edges", Unit.ENTITY: "owner with all its records"}


def build(records: SectionRecords) -> Section:
    """The table of everybody, the letters; nothing where owners are not compared."""
    if not any(e.facts.results for e in records.entries):
        return Section()
    beside: list[ClientChoices] = []
    unit = None
    if records.kind == "link_prediction":
        unit, entries = _of_one_unit(records.entries)
        records = replace(records, entries=tuple(entries))
        beside = [also for metric in client_choices.OTHER_METRICS if (also := client_choices.read(records, metric)).values]
    found = client_choices.read(records, unit=unit.value if unit else "")
    tables = [_everybody(found)]
    if found.metric == client_choices.RECALL:
        tables.append(_everybody(client_choices.read(records, client_choices.PRECISION)))
    facts, one = records.entries[0].facts, records.entries[0].facts.one
    text = load_template("owners.txt", escaped=False).render(
        f=found, kind=records.kind, label=records.label, facts=facts, metric=client_choices.METRICS[found.metric],
        protected=_PROTECTED[unit or Unit.EDGE], own=_trainings(records, len(found.clients)), both=_both_sides(found),
        gained=_gained(found), named=_named, fewest=client_choices.FEWEST_SEEDS, count=counted, number=phrase_number,
        seeds=len({e.seed for e in records.entries}), say=partial(in_words_of, one),
    )  # fmt: skip
    first, said = (tuple(filter(None, part.split("\n"))) for part in text.split("---\n"))
    letters = owner_letters.write_owner_letters(found, records.dataset, beside)
    said = tuple(in_words_of(one, line) for line in said)
    return Section(said, tuple(table.in_words_of(one) for table in tables if table.rows), (), letters, first)


def _of_one_unit(entries: Sequence[Result]) -> tuple[Unit, list[Result]]:
    """(the largest unit that a price is about, the cells whose price is about it, or that have none): units never mix."""
    priced = {e.protection.unit for e in entries if e.protection and 0 < e.epsilon_provable < math.inf}
    unit = next((one for one in (Unit.ENTITY, Unit.NODE) if one in priced), Unit.EDGE)
    same = [e for e in entries if e.protection and (e.protection.unit is unit or not 0 < e.epsilon_provable < math.inf)]
    return unit, same


def _trainings(records: SectionRecords, clients: int) -> int:
    """How often each row trains on the same people."""
    worlds = {entry.world for entry in records.entries if entry.world.kind is not WorldKind.ALONE}
    without = Counter(world.without for world in worlds if world.without is not None)
    return len(worlds) - (min(without.values()) if len(without) == clients else 0)


def _both_sides(found: ClientChoices) -> list[str]:
    """What is reached alone, and joined at each finite ε, over everybody's nodes."""
    kept = found.inside()
    told = [] if kept is None else [f"alone {100 * (found.value(*kept) or 0):.0f}"]
    for epsilon in filter(math.isfinite, found.epsilons):
        if (best := found.best(epsilon, tuple(JOINED))) is not None:
            value = found.value(best[0], epsilon, best[1]) or 0.0
            told.append(f"{best[1]}: {100 * value:.0f} at ε = {phrase_number(epsilon)}")
    return told


def _gained(found: ClientChoices) -> list[tuple[float, dict[str, float], list[str], list[str]]]:
    """For each finite ε: it, the gain of each client, who gains (most first), who loses (most first)."""
    told = []
    for epsilon in filter(math.isfinite, found.epsilons):
        if gains := {c: g for c in found.clients if (g := found.gain(c, epsilon)) is not None}:
            better, worse = (sorted((c for c in gains if s * gains[c] > 0), key=lambda c: -abs(gains[c])) for s in (1, -1))
            told.append((epsilon, gains, better, worse))
    return told


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
    own = " Own head, own weights: a client fits the last step, or all of the shared model, to its own data in clear."
    note = "Over everybody's test nodes. ε as asked; what each row provably keeps stands in results.csv and in its statement."
    return SectionTable(f"Each choice, {client_choices.METRICS[found.metric]}", header, tuple(body), note + own * adapted)
