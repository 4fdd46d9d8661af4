"""Every output of a run, in the order in which it is written; and the answer, printed."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pandas as pd

from fedgraph.cells import Environment, NodeClassificationCellFacts, Result, portable, store
from fedgraph.report import page, table
from fedgraph.report.phrases import fill_phrase, phrase_count
from fedgraph.report.rows import group_rows
from fedgraph.report.saved_run import SHORT_SAVED_RUN, UNFINISHED_SAVED_RUN
from fedgraph.report.sections.base import SectionRecords
from fedgraph.types import Graph, GraphCollection, describe_graph, describe_graph_size

_CURVE = ["task", "dataset", "method", "variant", "trust", "world", "calibrated_by", "epsilon", "seed", "round", "accuracy"]
_MOST_SENTENCES, _MOST_NOTES = 9, 3  # on the screen; one line of either is broken into two or three there


class _Screen(Protocol):
    def say(self, text: str) -> None: ...
    def print(self, text: str) -> None: ...


def write_report(
    out: Path,
    title: str,
    resolved: str,
    records: Sequence[SectionRecords],
    graphs: Mapping[str, Graph | GraphCollection],
    environment: Environment,
    screen: _Screen,
    failed: Sequence[Result] = (),
) -> None:
    """Write every output of a run into its folder, and print the answer.

    The order is: results.csv, results.parquet at the end of the run, environment.json, scenario.yaml, ledger.jsonl, curves.csv
    where a cell kept one, the figures, report.html, and a page for each owner. Each file is written whole or not at all.

    Args:
        resolved: The scenario as it was read, as text.
        records: Finished cells, one for each task and data set.
        graphs: Label of a data set → its graph or collection.
        environment: What the run was made with.
        failed: Cells without a result; results.csv names each of them with its reason.

    Raises:
        OSError: A file cannot be written.
    """
    notice = environment.notice
    found = [result for r in records for result in r.entries]
    cells, ended = len(found), len(found) + len(failed) >= environment.cells
    lines = table.tabulate([*found, *failed], {dataset: g.provenance.source for dataset, g in graphs.items()})
    shortened = [SHORT_SAVED_RUN] if any(r.short for r in records) else []
    shortened += [] if ended else [UNFINISHED_SAVED_RUN.format(cells, environment.cells)]
    short = " ".join(shortened) or None  # said first of a run that was shrunk, or is not at its end
    opening = {key: said for key, said in (("notice", notice), ("short", short)) if said}
    table.write(lines, out, ended)
    notes = tuple(dict.fromkeys(note for result in found for note in result.notes))
    whole = portable({**opening, **dataclasses.asdict(environment)})
    _text(out / "environment.json", json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    _text(out / "scenario.yaml", (f"# {notice}\n" if notice else "") + resolved)
    ledger = [json.dumps({"kind": "notice", "text": notice})] if notice else []
    ledger += [line for result in found for line in result.ledger]
    _text(out / "ledger.jsonl", "".join(line + "\n" for line in ledger))
    grown = _curves(found)
    if grown is not None:
        _text(out / "curves.csv", grown)

    described = {dataset: describe_graph(g) for dataset, g in graphs.items()}
    sizes = "; ".join(map(describe_graph_size, graphs.values())) or "No data set is read"
    where = " What was read, and how, stands under Data." if graphs else ""
    lead = f"{sizes}. {cells} result{'' if cells == 1 else 's'}: one for each method, level of trust, ε and seed.{where}"
    if failed:
        lead += f" {len(failed)} cell(s) failed and are in no table; results.csv says why in the column status."
    rows = group_rows(found)
    content = page.make_page_content(rows, title, lead, notice, records, described)
    made = _made(out, resolved, records, environment)
    content = dataclasses.replace(content, secret=environment.seed == "secret", short=short, made=made)
    for figure in content.figures:
        store.write_atomically(out / f"{figure.name}.png", figure.png)
        _text(out / f"{figure.name}.svg", figure.svg)
    _text(out / "report.html", page.render_report_page(content))
    for file, letter in page.render_letter_pages(content).items():
        (out / "owners").mkdir(exist_ok=True)
        _text(out / "owners" / file, letter)
    _summary(out, content, notes, screen)


def _made(out: Path, resolved: str, records: Sequence[SectionRecords], environment: Environment) -> page.PageHowMade:
    """Time, version, command, duration, disk: what is known of how the run was made."""
    made = environment.made
    seconds = sum(e.seconds or 0.0 for r in records for e in r.entries)
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    known = {
        "Finished": made.finished,
        "fedgraph": " ".join(filter(None, (made.version, made.commit))),
        "Command": made.command,
        "Duration": "" if made.seconds is None else f"{_span(made.seconds)} for this command",
        "Cells": f"{_span(seconds)} from begin to end, added up; cells that ran at the same time count each",
        "Disk": f"{size / 1e6:.1f} MB in the run's folder",
        "Seed": str(environment.seed),
        "Machine": f"{environment.platform}, {', '.join(environment.devices)}",
    }
    known |= _count_actors(environment.runtime)
    facts = tuple((name, value) for name, value in known.items() if value)
    return page.PageHowMade(facts, resolved, json.dumps(dataclasses.asdict(environment), indent=2))


def _count_actors(runtime: Mapping[str, object]) -> dict[str, str]:
    """One line for the actors, and one for each task whose rounds were counted: title → words."""
    found: dict[str, str] = {}
    where = runtime.get("federations")
    names = runtime.get("actors")
    counts = runtime.get("federation")
    names = list(names) if isinstance(names, Mapping) else []
    kinds = {kind: sum(name.rpartition("/")[2].startswith(kind) for name in names) for kind in ("client", "server", "curator")}
    actors = ", ".join(phrase_count(many, kind) for kind, many in kinds.items() if many)
    if where:
        found["Federations"] = str(where) + (f"; actors: {actors}" if actors else "")
    clients = max(1, kinds["client"])
    for task, count in counts.items() if isinstance(counts, Mapping) else ():
        found[f"Rounds of {task}"] = _in_words(count, clients)
    return found


def _in_words(count: Mapping[str, float], clients: int) -> str:
    """Rounds, calls, messages, bytes, and which share of the time nobody was at work."""
    seconds, sizes = count["seconds"], {"up": count["bytes_up"] / 1e6, "down": count["bytes_down"] / 1e6}
    rate = f" ({count['calls'] / seconds:,.0f} a second)" if seconds else ""
    text = fill_phrase("page", "traffic", c=count, rate=rate, **sizes)
    if not seconds:
        return text
    idle = [1 - count["clients_busy"] / (clients * seconds), 1 - count["server_busy"] / seconds]
    return text + "; idle: clients {:.0%}, server {:.0%}".format(*(min(max(share, 0.0), 1.0) for share in idle))


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _summary(out: Path, content: page.PageContent, notes: Sequence[str], screen: _Screen) -> None:
    """The answer and the notes, as far as a screen holds them; the page has everything."""
    for said in filter(None, (content.notice, content.short)):
        screen.print(said)
    for note in notes[:_MOST_NOTES]:
        screen.say(f"note: {note}")
    for sentence in content.opening[:_MOST_SENTENCES]:
        screen.print(sentence)
    left = len(content.opening[_MOST_SENTENCES:]), len(notes[_MOST_NOTES:])
    kinds = zip(left, ("sentence", "note"), strict=True)
    more = "".join(f", {phrase_count(many, f'more {what}')}" for many, what in kinds if many)
    screen.print(f"every row: fedgraph show {out}")
    screen.print(f"report{more}: {out / 'report.html'} (for the holder of the data alone)")


def _curves(found: Sequence[Result]) -> str | None:
    """CSV text of all curves, one line for each kept round of each cell; None where no cell kept one."""
    rows = [
        (*r.kind[:4], r.world.trust.value, r.world.kind.value, r.noise_for, r.epsilon, r.seed, *point)
        for r in found
        if isinstance(r.facts, NodeClassificationCellFacts)
        for point in r.facts.curve
    ]
    return pd.DataFrame(rows, columns=_CURVE).to_csv(index=False, lineterminator="\n") if rows else None


def _text(path: Path, text: str) -> None:
    """The whole file or the one that was there: a full disk leaves nothing half-written."""
    store.write_atomically(path, text.encode())
