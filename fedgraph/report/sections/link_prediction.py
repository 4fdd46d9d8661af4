"""Link prediction: how well hidden edges are told from pairs without one, at each trust and ε."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from fedgraph.cells import LinkPredictionCellFacts, Result
from fedgraph.privacy import Unit
from fedgraph.report import client_choices
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import Row, format_row_mean, group_rows
from fedgraph.report.sections.base import Section, SectionRecords, tabulate_section
from fedgraph.report.sections.participation import section_participation_choices

KINDS = ("link_prediction",)  # the tasks that this section speaks of
_PROTECTED = {Unit.EDGE: "tie", Unit.NODE: "node with all its ties", Unit.ENTITY: "owner with all its records"}
_TITLES = {"auc": "AUC", "hits_at_20": "Hits@20", "hits_at_50": "Hits@50", "hits_at_100": "Hits@100", "mrr": "MRR"}


def build(records: SectionRecords, notice: str | None) -> Section:
    """What was asked, one table; and where owners are compared, what each of them gains by joining."""
    rows = group_rows([e for e in records.entries if e.metrics])
    facts = records.entries[0].facts_as(LinkPredictionCellFacts)
    columns: dict[str, Callable[[Row], str]] = {
        "method": _name,
        "trust": lambda r: r.head.world.trust.title,
        "unit": lambda r: "—" if math.isinf(r.provable) else r.protection.unit.value,
        "ε asked": lambda r: "no noise" if math.isinf(r.head.epsilon) else phrase_number(r.head.epsilon),
        "ε provable": lambda r: phrase_upper_bound(r.provable, 2),
    }
    measured = {m: title for m, title in _TITLES.items() if any(m in r.head.metrics for r in rows)}
    columns |= {title: functools.partial(format_row_mean, metric=metric) for metric, title in measured.items()}
    apart = max((e.facts.cut_edges or 0 for e in records.entries), default=0)
    shared = any(e.facts.cut_edges_shared for e in records.entries)
    known = "both ends know and protect" if shared else "nobody knows"
    lost = f"Up to {apart:,} edges lie between clients; in federated rows {known} them. " if apart else ""
    sentence = lost + fill_phrase("link_prediction", "asked", tested=facts.tested, negatives=facts.negatives)
    table = tabulate_section("Hidden edges", rows, columns)
    if not any(e.facts.results for e in records.entries):
        return Section((sentence,), (table,), ())
    unit, entries = _of_one_unit(records.entries)
    own = replace(records, entries=tuple(entries))
    found = replace(client_choices.read_client_choices(own), unit=unit.value)
    beside = [client_choices.read_client_choices(own, metric) for metric in client_choices.OTHER_CHOICE_METRICS]
    told = fill_phrase("link_prediction", "owners", unit=_PROTECTED[unit])
    more = section_participation_choices(own, found, (told,), (), [one for one in beside if one.values], notice)
    return replace(more, sentences=(sentence, told), tables=(table, *more.tables))


def _of_one_unit(entries: Sequence[Result]) -> tuple[Unit, list[Result]]:
    """(the largest unit that a price is about, the cells whose price is about it, or that have none): units never mix."""
    priced = {e.protection.unit for e in entries if e.protection and 0 < e.epsilon_provable < math.inf}
    unit = next((one for one in (Unit.ENTITY, Unit.NODE) if one in priced), Unit.EDGE)
    same = [e for e in entries if e.protection and (e.protection.unit is unit or not 0 < e.epsilon_provable < math.inf)]
    return unit, same


def _name(row: Row) -> str:
    return row.head.method if row.head.variant == "default" else row.head.variant
