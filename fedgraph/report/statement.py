"""The privacy of one row in plain words: what is protected, from whom, at which ε, and under which assumptions.

Rows of one method and variant are one family: what several of them share is said once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from fedgraph.cells import GraphClusteringCellFacts, Result
from fedgraph.privacy import Protection
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import Row
from fedgraph.types import in_words_of


def list_statement_caveats(secret: bool) -> tuple[str, ...]:
    """What is outside every statement. secret: whether the run's seed was ``secret``."""
    return tuple(fill_phrase("statement", name) for name in ("floating_point", "secret" if secret else "seed", "page"))


def add_up(results: Iterable[Result]) -> tuple[str, ...]:
    """What all private trainings of a run cost together: one line for each data set and unit; an ε of ∞ adds up to nothing.

    The sum of their prices bounds it (basic composition).
    """
    spent: dict[tuple[str, str], list[float]] = {}
    for one in results:
        if one.protection is not None and one.paths and math.isfinite(one.epsilon_provable):
            unit = in_words_of(one.facts.one, one.protection.unit.value)
            spent.setdefault((one.dataset, unit), []).append(one.epsilon_provable)
    return tuple(
        fill_phrase("outside", "together", dataset=dataset, unit=unit, runs=len(each), epsilon=phrase_upper_bound(sum(each), 4))
        for (dataset, unit), each in spent.items()
    )


@dataclass(frozen=True)
class Statement:
    """The privacy of one row in words."""

    anchor: str  # the name of its place in the page
    who: str  # method and variant
    world: str  # who is trusted
    target: str  # the ε that was asked for
    sentences: tuple[str, ...]
    conditions: tuple[str, ...]  # what it assumes, one sentence each
    notes: tuple[str, ...] = ()

    @property
    def at(self) -> str:
        """Which row of its family."""
        return f"{self.world} · {self.target}"

    @property
    def title(self) -> str:
        """Which row."""
        return f"{self.who} · {self.at}"

    def only(self, these: Collection[str]) -> Statement:
        """The same with these sentences, conditions and notes alone."""
        sentences, conditions, notes = (
            tuple(x for x in each if x in these) for each in (self.sentences, self.conditions, self.notes)
        )
        return replace(self, sentences=sentences, conditions=conditions, notes=notes)


def make_statement(row: Row) -> Statement:
    """The statement of one row."""
    protection = row.protection
    target = "no budget" if math.isinf(row.head.epsilon) else f"ε = {phrase_number(row.head.epsilon)}"
    reading = " (as published)" if row.head.calibrated_by == "published" else ""
    notes = tuple(in_words_of(row.one, note) for note in dict.fromkeys(note for e in row.results for note in e.notes))
    said = tuple(in_words_of(row.one, sentence) for sentence in _sentences(row, protection))
    return Statement(row.anchor, row.who, row.head.world.words, f"{target}{reading}", said, row.assumptions, notes)


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


@dataclass(frozen=True)
class StatementFamily:
    """Rows of one method and variant, of one task on one data set."""

    who: str
    task: str
    dataset: str
    said: tuple[Statement, ...]  # what each of them says alone
    shared: tuple[tuple[str, Statement], ...]  # what several of them say, each once, with which they are in words


def group_statements(rows: Sequence[Row]) -> tuple[StatementFamily, ...]:
    """Every row that states a protection, in order of first appearance."""
    groups: dict[tuple[str, str, str], list[Statement]] = {}
    for row in rows:
        if row.head.protection is not None:
            groups.setdefault((row.head.task, row.head.dataset, row.who), []).append(make_statement(row))
    return tuple(_family(who, task, dataset, every) for (task, dataset, who), every in groups.items())


def _family(who: str, task: str, dataset: str, every: Sequence[Statement]) -> StatementFamily:
    holders: dict[str, list[int]] = {}
    for number, one in enumerate(every):
        for text in dict.fromkeys((*one.sentences, *one.conditions, *one.notes)):
            holders.setdefault(text, []).append(number)
    groups = sorted({tuple(found) for found in holders.values() if len(found) > 1}, key=lambda group: (-len(group), group))
    alone = {text for text, found in holders.items() if len(found) == 1}
    own = tuple(one.only(alone) for one in every)
    shared = []
    for group in groups:
        alike = {text for text, found in holders.items() if tuple(found) == group}
        rows = f"each of these {len(every)} rows" if len(group) == len(every) else _in_words([every[i] for i in group])
        shared.append((rows, every[group[0]].only(alike)))
    return StatementFamily(who, task, dataset, own, tuple(shared))


def _in_words(rows: Sequence[Statement]) -> str:
    targets: dict[str, list[str]] = {}
    for row in rows:
        targets.setdefault(row.world, []).append(row.target)
    return "; ".join(f"{world} · {', '.join(found)}" for world, found in targets.items())
