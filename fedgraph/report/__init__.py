"""Everything a run leaves for people: tables, plots, one page that can be forwarded, and the ledger."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from fedgraph.cells.entry import portable
from fedgraph.cells.environment import Environment
from fedgraph.cells.store import FailedCell, write_atomically
from fedgraph.report import accuracy_curves, actors, page, result_files
from fedgraph.report.columns import numbers_of_cells
from fedgraph.report.report_rows import group_rows
from fedgraph.report.saved_run import UNFINISHED
from fedgraph.report.sections.base import Records
from fedgraph.types import Graph, GraphCollection, describe

SHORT_RUN = (
    "SHORT RUN (--quick): the scenario was shrunk so that it ends soon. This shows what a report looks like; do not decide by "
    "its numbers."
)


MOST_SENTENCES, MOST_NOTES = 9, 3  # on the screen; one line of either is broken into two or three there


class NamedData(Protocol):
    """What the report needs of a scenario's data set."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str | None: ...


class Asked(Protocol):
    """What the report needs of a scenario."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def seed(self) -> int | str: ...
    @property
    def datasets(self) -> Sequence[NamedData]: ...


class Screen(Protocol):
    """What the report needs of a console."""

    def say(self, text: str) -> None: ...
    def print(self, text: str) -> None: ...


def write(
    out: Path,
    scenario: Asked,
    resolved: str,
    records: Sequence[Records],
    graphs: Sequence[Graph | GraphCollection],
    environment: Environment,
    screen: Screen,
    failed: Sequence[FailedCell] = (),
) -> None:
    """Write every output into ``out`` and print the answer. failed: each failed cell, and ``why``."""
    notice = environment.notice
    names = [d.label or d.name for d in scenario.datasets]
    source = {name: g.provenance.source for name, g in zip(names, graphs, strict=True)}
    numbers = [n for r in records for n in numbers_of_cells(scenario.name, source.get(r.dataset, "none"), r.entries)]
    rows = result_files.read_columns([*numbers, *result_files.numbers_of_failures(scenario.name, source, failed)])
    short = _shortened(records, environment, len(failed))
    opening = {name: said for name, said in (("notice", notice), ("short", short)) if said}
    _text(out / "results.csv", result_files.as_csv(rows))
    listed = result_files.nest_metrics(rows)
    noted = result_files.notes_of_rows([entry for r in records for entry in r.entries])
    head = {**opening, "scenario": scenario.name}
    _text(out / "results.json", result_files.as_json(head, {"rows": listed, "notes": noted}))
    notes = tuple(dict.fromkeys(str(line["note"]) for line in noted))
    _json(out / "environment.json", {**opening, **dataclasses.asdict(environment)})
    _text(out / "scenario.yaml", (f"# {notice}\n" if notice else "") + resolved)
    _ledger(out / "ledger.jsonl", records, notice)
    grown = accuracy_curves.write_curves([entry for r in records for entry in r.entries])
    if grown is not None:
        _text(out / "curves.csv", grown)

    content = _content(
        out, scenario, resolved, records, dict(zip(names, graphs, strict=True)), environment, notice, len(failed)
    )
    if failed:
        said = f" {len(failed)} cell(s) failed and are in no table; results.csv says why in the column status."
        content = dataclasses.replace(content, lead=content.lead + said)
    for figure in content.figures:
        write_atomically(out / f"{figure.name}.png", figure.png)
        _text(out / f"{figure.name}.svg", figure.svg)
    _text(out / "report.html", page.render(content))
    for name, letter in page.render_owner_pages(content).items():
        (out / "owners").mkdir(exist_ok=True)
        _text(out / "owners" / name, letter)
    _text(out / "tables.txt", _whole(content, notes))
    _summary(out, content, notes, screen)


def _ledger(path: Path, records: Sequence[Records], notice: str | None) -> None:
    lines = [json.dumps({"kind": "notice", "text": notice})] if notice else []
    lines += [line for record in records for entry in record.entries for line in entry.ledger]
    _text(path, "".join(line + "\n" for line in lines))


def _content(
    out: Path,
    scenario: Asked,
    resolved: str,
    records: Sequence[Records],
    graphs: dict[str, Graph | GraphCollection],
    environment: Environment,
    notice: str | None,
    failed: int,
) -> page.Content:
    rows = [row for r in records for row in group_rows(r.entries)]
    described = {name: describe(g) for name, g in graphs.items()}
    cells = sum(len(r.entries) for r in records)
    lead = (
        f"{'; '.join(described.values()) or 'No data set is read'}. {cells} result{'' if cells == 1 else 's'}: one for each "
        "method, level of trust, ε and seed."
    )
    content = page.content_of(rows, scenario.title or scenario.name, lead, notice, records, described)
    return dataclasses.replace(
        content,
        secret=scenario.seed == "secret",
        short=_shortened(records, environment, failed),
        made=_made(out, resolved, records, environment),
    )


def _shortened(records: Sequence[Records], environment: Environment, failed: int) -> str | None:
    """What is said first of a run that was shrunk, or is not at its end."""
    done = sum(len(r.entries) for r in records)
    said = [SHORT_RUN] if any(r.short for r in records) else []
    if done + failed < environment.cells:
        said.append(UNFINISHED.format(done, environment.cells))
    return " ".join(said) or None


def _made(out: Path, resolved: str, records: Sequence[Records], environment: Environment) -> page.HowMade:
    """Time, version, command, duration, disk: what is known of how the run was made."""
    made = environment.made
    seconds = sum(e.seconds for r in records for e in r.entries)
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    known = {
        "Finished": made.finished,
        "fedgraph": " ".join(filter(None, (made.version, made.commit))),
        "Command": made.command,
        "Duration": "" if made.seconds is None else f"{_span(made.seconds)} for this command",
        "Computing": f"{_span(seconds)} over all workers",
        "Disk": f"{size / 1e6:.1f} MB in the run's folder",
        "Seed": str(environment.seed),
        "Machine": f"{environment.platform}, {', '.join(environment.devices)}",
    }
    known |= actors.count_actors(environment.runtime)
    facts = tuple((name, value) for name, value in known.items() if value)
    return page.HowMade(facts, resolved, json.dumps(dataclasses.asdict(environment), indent=2))


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _summary(out: Path, content: page.Content, notes: Sequence[str], screen: Screen) -> None:
    """The answer and the notes, as far as a screen holds them; ``tables.txt`` and the page have everything."""
    for said in filter(None, (content.notice, content.short)):
        screen.print(said)
    for note in notes[:MOST_NOTES]:
        screen.say(f"note: {note}")
    for sentence in content.opening[:MOST_SENTENCES]:
        screen.print(sentence)
    left = len(content.opening[MOST_SENTENCES:]), len(notes[MOST_NOTES:])
    more = "".join(f", {many} more {what}" for many, what in zip(left, ("sentences", "notes"), strict=True) if many)
    screen.print(f"every table{more}: fedgraph show --all {out}\nreport: {out / 'report.html'}")


def _whole(content: page.Content, notes: Sequence[str]) -> str:
    """All that the page says in words and tables, as text."""
    found = [*filter(None, (content.notice, content.short)), *content.opening, *(f"note: {note}" for note in notes)]
    for part in [part for chapter in content.chapters for part in chapter.parts]:
        for table in part.section.tables:
            lines = [[str(cell) for cell in row] for row in (table.header, *table.rows)]
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
            found += ["", f"{part.label} — {part.dataset}: {table.title}"]
            found += ["  ".join(f"{c:{'<' if k < 2 else '>'}{w}}" for k, (c, w) in enumerate(zip(line, widths, strict=True)))
                      for line in lines]  # fmt: skip
            found += [table.note] if table.note else []
    return "\n".join(line.rstrip() for line in found) + "\n"


def _json(path: Path, value: object) -> None:
    _text(path, json.dumps(portable(value), indent=1, ensure_ascii=False) + "\n")


def _text(path: Path, text: str) -> None:
    """The whole file or the one that was there: a full disk leaves nothing half-written."""
    write_atomically(path, text.encode())
