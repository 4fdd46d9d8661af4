"""The privacy of one row in plain words: what is protected, from whom, at which ε, and under which assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedgraph.cells import GraphClusteringCellFacts, Result
from fedgraph.privacy import Protection
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import Row
from fedgraph.types import counted, in_words_of


def list_statement_caveats(secret: bool) -> tuple[str, ...]:
    """What is outside every statement. secret: whether the run's seed was ``secret``."""
    return tuple(fill_phrase("statement", name) for name in ("floating_point", "secret" if secret else "seed", "page"))


def add_up(results: Iterable[Result]) -> str:
    """What all private trainings of a run cost together, by data set and unit, in words; an ε of ∞ adds up to nothing.

    The sum of their prices bounds it (basic composition).
    """
    spent: dict[tuple[str, str], list[float]] = {}
    for one in results:
        if one.protection is not None and one.paths and math.isfinite(one.epsilon_provable):
            unit = in_words_of(one.facts.one, one.protection.unit.value)
            spent.setdefault((one.dataset, unit), []).append(one.epsilon_provable)
    each = [f"ε = {phrase_upper_bound(sum(found), 4)} at {unit} level of {dataset} ({counted(len(found), 'training')})"
            for (dataset, unit), found in spent.items()]  # fmt: skip
    return fill_phrase("outside", "together", each=", ".join(each)) if each else ""


@dataclass(frozen=True)
class Statement:
    """The privacy of one row in words."""

    row: Row
    target: str  # the ε that was asked for
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]  # what it assumes, one sentence each
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Which row."""
        return f"{self.row.who} · {self.row.head.world.words} · {self.target}"


def make_statement(row: Row) -> Statement:
    """The statement of one row."""
    protection = row.protection
    target = "no budget" if math.isinf(row.head.epsilon) else f"ε = {phrase_number(row.head.epsilon)}"
    reading = " (as published)" if row.head.calibrated_by == "published" else ""
    notes = tuple(in_words_of(row.one, note) for note in dict.fromkeys(note for e in row.results for note in e.notes))
    said = tuple(in_words_of(row.one, sentence) for sentence in _sentences(row, protection))
    return Statement(row, f"{target}{reading}", said, row.assumptions, notes)


def _sentences(row: Row, protection: Protection) -> list[str]:
    who = f"from {protection.viewer.words}"
    unit, relation = protection.unit.value, protection.neighbours
    if not row.paths and math.isinf(row.provable):
        return [f"Computed on the raw data, for comparison: it protects nothing {who}, ε = ∞."]
    if not row.paths:
        return ["Nothing private is sent; only public sizes are used, so nothing is to be protected."]
    found = []
    broken = next((e.facts.broken_promise for e in row.results if e.facts.broken_promise), None)
    if broken is not None:
        found.append(f"It protects nothing that can be proven {who}, ε = ∞: {broken}")
    elif math.isinf(row.provable):
        open_paths = [p for p in row.paths if math.isinf(row.path(p))]
        names = " and ".join(f"“{p}”" for p in open_paths)
        listed = f"the path {names} is" if len(open_paths) == 1 else f"the paths {names} are"
        found.append(f"As a whole this row protects nothing {who}: {listed} sent in clear, ε = ∞.")
    else:
        found += ["Here each row is one whole graph."] if row.one == "graph" else []
        found.append(f"Protects each {unit}: two worlds are compared, where {relation}.")
        cost = f"ε = {phrase_upper_bound(row.provable, 4)} with δ = {row.head.delta:.3g} ({row.head.theorem})"
        found += [f"Protected {who}.", f"{row.head.world.words}: what is seen in the two worlds differs by at most {cost}."]
    if len(row.paths) > 1 and broken is None:
        count = max(
            (e.facts.worst_node_clients for e in row.results if isinstance(e.facts, GraphClusteringCellFacts)), default=0
        )
        worst = f", which {count} clients hold" if count > 1 else ""
        for path in row.paths:
            price = row.path(path)
            if math.isfinite(price):
                where = f" ({relation})" if math.isinf(row.provable) else ""  # else it was said above
                given = f"The path “{path}” alone, taking the rest as given"
                found.append(f"{given}: ε = {phrase_upper_bound(price, 4)} for the worst {unit}{where}{worst}.")
            else:
                found.append(f"The path “{path}” alone: ε = ∞.")
    published = "makes no claim for this noise" if row.published is None else f"gives ε = {phrase_number(row.published, 4)}"
    found.append(f"The published formula {published}; {attack_bounds.describe(row)}.")
    if row.canaries is not None:
        found.append(f"The attacker read: {row.canaries.one.what}.")
    if len(row.results) > 1:
        found.append(fill_phrase("statement", "one_run", runs=len(row.results)))
    return found


def group_statements(rows: Sequence[Row]) -> list[tuple[list[Statement], frozenset[str]]]:
    """Every row that states a protection, with the others of its method, variant and trust, in order of first appearance.

    Returns:
        For each group its statements, and the texts that all of them say, where there are several.
    """
    groups: dict[tuple[str, ...], list[Statement]] = {}
    for row in rows:
        if row.head.protection is not None:
            groups.setdefault((row.task, row.dataset, row.who, row.head.world.words), []).append(make_statement(row))
    return [(told, _shared(told) if len(told) > 1 else frozenset()) for told in groups.values()]


def _shared(told: Sequence[Statement]) -> frozenset[str]:
    return frozenset.intersection(*(frozenset((*one.sentences, *one.conditions, *one.notes)) for one in told))
