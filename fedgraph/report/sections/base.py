"""What a task contributes to a report: sentences, tables, figures.

A section module defines ``KINDS``, the kinds of task that it speaks of, and ``build(records, notice) -> Section``. A task may
have several sections, and a section several tasks; a task without any keeps its rows in the one table.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from fedgraph import plugins
from fedgraph.cells import Result, SolverFacts
from fedgraph.report.phrases import fill_phrase, phrase_number, read_phrases
from fedgraph.report.plots import PlotFigure
from fedgraph.report.rows import Row, format_row_mean

SECTION_ENCODERS, _MEASURES, _SOLVERS = (read_phrases()[part] for part in ("encoders", "measures", "solvers"))


@dataclass(frozen=True)
class SectionTable:
    """A table of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


_Line = TypeVar("_Line")


def tabulate_section(
    title: str, lines: Sequence[_Line], columns: Mapping[str, Callable[[_Line], str]], note: str = ""
) -> SectionTable:
    """A table of ``lines``. columns: title → what it says of a line."""
    return SectionTable(title, tuple(columns), tuple(tuple(read(x) for read in columns.values()) for x in lines), note)


@dataclass(frozen=True)
class SectionLetter:
    """A page for the owner of one client.

    Attributes:
        client: Whose owner reads it.
        answer: One sentence; empty where nothing can be advised.
        last: What the numbers rest on.
    """

    client: str
    title: str
    answer: str
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """What a report says of one task on one data set.

    Attributes:
        letters: Pages for the owners of its clients.
        first: What stands before the report's answer.
    """

    sentences: tuple[str, ...]
    tables: tuple[SectionTable, ...]
    figures: tuple[PlotFigure, ...]
    letters: tuple[SectionLetter, ...] = ()
    first: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SectionRecords:
    """Finished cells of one task on one data set.

    Attributes:
        kind: Of task, as ``KINDS`` of a section names it.
        artefacts: Named arrays of each cell, in the order of ``entries``.
        among: How many lower bounds on ε the whole report shows; 0: those of these cells.
        short: Whether they come from a run with ``--quick``.
    """

    name: str
    kind: str
    label: str
    dataset: str
    settings: Mapping[str, object]
    entries: tuple[Result, ...]
    artefacts: tuple[dict[str, np.ndarray], ...] = ()
    among: int = 0
    short: bool = False


def build_sections(records: SectionRecords, notice: str | None) -> Section:
    """Everything that the sections of this kind of task say, one after another."""
    modules = [plugins.load("report.sections", name) for name in plugins.usable("report.sections")]
    built: list[Section] = [m.build(records, notice) for m in modules if records.kind in m.KINDS and records.entries]
    return Section(*(tuple(part for section in built for part in vars(section)[f.name]) for f in fields(Section)))


def describe_section_solver(facts: Sequence[SolverFacts], settings: Mapping[str, object]) -> list[str]:
    """How sure the discrepancies of a table are, and where each pair's is kept."""
    every = [f.solved for f in facts if f.solved is not None and f.solved.pairs]
    if not every:
        return []
    # Seeds may share a table: the one that asked for most counts.
    found = {f.file or str(i): f for i, f in sorted(enumerate(every), key=lambda one: one[1].pairs)}
    pairs = sum(f.pairs for f in found.values())
    converged = sum(f.converged for f in found.values())
    share, others = ("all", "") if converged == pairs else (f"{converged:,}", ", the others at the limit of steps")
    solver = _SOLVERS[str(settings.get("solver", "fast"))]
    words = [fill_phrase("solver", "converged", solver=solver, pairs=pairs, share=share, others=others)]
    if settings.get("loss") == "kl":
        words.append(fill_phrase("solver", "divergence"))
    if all(f.file for f in found.values()):
        words.append(fill_phrase("solver", "files"))
    minima = [f.minima for f in facts if f.minima is not None]
    if minima:
        count = sum(m.pairs for m in minima)
        lower = sum(m.lower * m.pairs for m in minima) / count
        drop = sum(m.drop * m.pairs for m in minima) / count
        used = "of that search, as all rows here do" if all(m.careful for m in minima) else "of one, as rows here do"
        most = max(m.descents for m in minima)
        words.append(fill_phrase("solver", "minima", count=count, most=most, lower=100 * lower, drop=100 * drop, used=used))
    return [" ".join(words), *_verified(facts)]


def _verified(facts: Sequence[SolverFacts]) -> list[str]:
    every = [f.verified for f in facts if f.verified is not None]
    if not every:
        return []
    sums = {name: sum(vars(v)[name] for v in every) for name in ("pairs", "equal", "lower", "higher", "seconds")}
    most = {name: max(vars(v)[name] for v in every) for name in ("most_lower", "most_higher")}
    said = [fill_phrase("solver", "verified", **sums, **most, pot=sum(v.seconds_pot for v in every))]
    centres = [f.barycentres for f in facts if f.barycentres is not None]
    if centres:
        count = sum(b.count for b in centres)
        ours = sum(b.ours * b.count for b in centres) / count
        theirs = sum(b.pot * b.count for b in centres) / count
        said[0] += " " + fill_phrase("solver", "barycentres", count=count, ours=ours, theirs=theirs)
    if unexplained := sum(v.unexplained for v in every):
        said.append(fill_phrase("solver", "unexplained", pairs=unexplained))
    return said


def describe_section_majority(rows: Sequence[Row]) -> list[str]:
    """One sentence: what naming the largest class always would give. Nothing where it was not measured."""
    shares = [row.mean_of("majority_share") for row in rows]
    shares = [share for share in shares if not math.isnan(share)]
    if not shares:
        return []
    share = sum(shares) / len(shares)
    near = {row.head.method for row in rows if abs(row.mean_of("accuracy") - share) < 0.01}
    warning = " Rows within 0.01 of it may have learnt nothing else: look at macro-F1 below." if near else ""
    return [f"Naming the largest class of the test set always would be right for {share:.3f} (majority share).{warning}"]


def tabulate_section_measures(rows: Sequence[Row]) -> list[SectionTable]:
    """Row × measure that some row has; nothing where accuracy alone was measured."""
    if not any(row.values("macro_f1") for row in rows):
        return []
    measured = {key: title for key, title in _MEASURES.items() if any(row.values(key) for row in rows)}
    columns: dict[str, Callable[[Row], str]] = {
        "learner": lambda r: r.who,
        "trust": lambda r: r.head.world.words,
        "ε": lambda r: phrase_number(r.head.epsilon),
        **{title: functools.partial(format_row_mean, metric=key) for key, title in measured.items()},
    }
    note = fill_phrase("node_classification", "measures" if "auroc" in measured else "macro_f1")
    return [tabulate_section("Beyond accuracy", rows, columns, note)]
