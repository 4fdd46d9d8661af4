"""What a task contributes to a report: sentences, tables, figures.

A section module defines ``KINDS``, the kinds of task that it speaks of, and ``build(records, notice) -> Section``. A task may
have several sections, and a section several tasks; a task without any keeps its rows in the one table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedgraph import plugins
from fedgraph.cells.entry import Entry
from fedgraph.cells.facts import SolverFacts
from fedgraph.report.plots import Figure

ENCODERS = {
    "none": "in clear",
    "multi-bit": "multi-bit, m per row",
    "multi-bit-total": "multi-bit, m in total",
    "multi-bit-node": "multi-bit per node",
    "gaussian-as-coded": "N(0, ε²), as coded",
}


@dataclass(frozen=True)
class Table:
    """header and rows of text; ``note`` below it. on_page: False for what the page's one table says already."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    on_page: bool = True


@dataclass(frozen=True)
class Letter:
    """client: whose owner reads it. answer: in one sentence. sentences: why. header, rows: a table. last: what it rests on."""

    client: str
    title: str
    answer: str
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """One task on one data set. letters: pages for the owners of its clients. first: what stands before a report's answer."""

    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    letters: tuple[Letter, ...] = ()
    first: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Records:
    """Finished cells of one task on one data set.

    name: unique, usable in file names. settings: of the task. among: how many lower bounds on ε the whole report shows (0:
    those of these cells). short: whether they come from a run with ``--quick``.
    """

    name: str
    kind: str
    label: str
    dataset: str
    settings: Mapping[str, object]
    entries: tuple[Entry, ...]
    artefacts: tuple[dict[str, np.ndarray], ...] = field(default_factory=tuple)
    among: int = 0
    short: bool = False


def build_sections(records: Records, notice: str | None) -> Section:
    """Everything that the sections of this kind of task say, one after another."""
    modules = [plugins.load("report.sections", name) for name in plugins.names("report.sections")]
    built: list[Section] = [m.build(records, notice) for m in modules if records.kind in m.KINDS and records.entries]
    return Section(
        tuple(s for section in built for s in section.sentences),
        tuple(t for section in built for t in section.tables),
        tuple(f for section in built for f in section.figures),
        tuple(letter for section in built for letter in section.letters),
        tuple(s for section in built for s in section.first),
    )


def describe_solver(facts: Sequence[SolverFacts]) -> list[str]:
    """How sure the discrepancies of a table are, and where each pair's is kept."""
    every = [f.solved for f in facts if f.solved is not None and f.solved.pairs]
    found = {f.file or str(i): f for i, f in enumerate(every)}  # seeds may share a table
    if not found:
        return []
    pairs, converged = sum(f.pairs for f in found.values()), sum(f.converged for f in found.values())
    share = "all" if converged == pairs else f"{converged:,}"
    words = (
        f"A Gromov-Wasserstein value is the local minimum at which conditional gradient ended; of {pairs:,} pairs solved here "
        f"{share} ended by the tolerance{'' if converged == pairs else ', the others at the limit of steps'}."
    )
    if all(f.file for f in found.values()):
        words += (
            " Value, convergence and steps of every pair are in the file of the run's folder that its cell names (pairs/….npz)."
        )
    minima = [f.minima for f in facts if f.minima is not None]
    if minima:
        count = sum(m.pairs for m in minima)
        lower, drop = sum(m.lower * m.pairs for m in minima) / count, sum(m.drop * m.pairs for m in minima) / count
        most = max(m.descents for m in minima)
        used = "of that search, as all rows here do" if all(m.careful for m in minima) else "of one, as rows here do"
        words += (
            f" Other starts end in other minima: of {count:,} sampled pairs, the best of {most} descents is lower than one "
            f"on {100 * lower:.0f} %, by {100 * drop:.1f} % on average over all of them; these tables take the value {used}."
        )
    return [words, *_verified(facts)]


def _verified(facts: Sequence[SolverFacts]) -> list[str]:
    """How our solver and POT agree on the pairs that both solved (``comparison.agreement``)."""
    every = [f.verified for f in facts if f.verified is not None]
    if not every:
        return []
    pairs, equal, unexplained = sum(v.pairs for v in every), sum(v.equal for v in every), sum(v.unexplained for v in every)
    lower, higher = sum(v.lower for v in every), sum(v.higher for v in every)
    said = [
        f"Checked against POT: the server solved {pairs:,} of these pairs with both solvers. Ours is equal on {equal:,}, lower "
        f"on {lower:,} (by {max(v.most_lower for v in every):.1%} at most) and higher on {higher:,} (by "
        f"{max(v.most_higher for v in every):.1%} at most); on one thread ours took {sum(v.seconds for v in every):.2g} s and "
        f"POT {sum(v.seconds_pot for v in every):.2g} s."
    ]
    centres = [f.barycentres for f in facts if f.barycentres is not None]
    if centres:
        count = sum(b.count for b in centres)
        ours, theirs = sum(b.ours * b.count for b in centres) / count, sum(b.pot * b.count for b in centres) / count
        said[0] += (
            f" Of {count:,} barycentres made by both from equal starts, the members' mean discrepancy is {ours:.4g} by ours "
            f"and {theirs:.4g} by POT."
        )
    if unexplained:
        said.append(
            f"Warning: on {unexplained:,} of these pairs different starts do not explain the difference: POT goes on from the "
            "coupling at which our solver ended, or that coupling has another value than was printed."
        )
    return said
