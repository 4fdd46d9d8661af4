"""Everything a run leaves for people: tables, plots, one page that can be forwarded, and the ledger."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import jinja2

from fedgraph import plugins
from fedgraph.report import references, results, statement
from fedgraph.report.sections.base import Records, Section
from fedgraph.types import Graph, GraphCollection


class Screen(Protocol):
    """What the report needs of a console."""

    def say(self, text: str) -> None: ...
    def print(self, text: str) -> None: ...
    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None: ...


def describe(graph: Graph | GraphCollection) -> str:
    """One line: name, counts, source."""
    if isinstance(graph, GraphCollection):
        counts = f"{len(graph.graphs)} graphs, {graph.num_classes} classes"
    else:
        counts = f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features:,} features, "
        counts += f"{graph.num_classes} classes"
    return f"{graph.name}: {counts} ({graph.provenance.source}: {graph.provenance.detail})"


def notice_of(graphs: Sequence[Graph | GraphCollection]) -> str | None:
    """The sentence that must open every output when data was generated, asked for or in place of real files."""
    made = [g.name for g in graphs if g.provenance.source == "synthetic"]
    asked = [name for name in made if name.startswith("synthetic/")]
    missing = [name for name in made if name not in asked]
    said = []
    if missing:
        said.append(
            f"{', '.join(missing)} was not available; a generated stand-in was used. No number here is about the real graph."
        )
    if asked:
        said.append(f"{', '.join(asked)} is generated, as the scenario asks.")
    return "SYNTHETIC DATA: " + " ".join(said) if said else None


def write(
    out: Path,
    scenario: Any,
    resolved: str,
    records: Sequence[Records],
    graphs: Sequence[Graph | GraphCollection],
    environment: dict[str, Any],
    screen: Screen,
    failed: Sequence[dict[str, Any]] = (),
) -> None:
    """Write every output into ``out`` and print the summary. failed: identity of each cell that failed, and ``why``."""
    notice = notice_of(graphs)
    source = {name: g.provenance.source for name, g in zip([d.label or d.name for d in scenario.datasets], graphs, strict=True)}
    rows = [row for r in records for row in results.flat(scenario.name, source.get(r.dataset, "none"), r.entries)]
    rows += results.failures(scenario.name, source, failed)
    opening = {"notice": notice} if notice else {}
    _text(out / "results.csv", results.as_csv(rows, notice))
    _json(out / "results.json", {**opening, "scenario": scenario.name, "rows": rows})
    _json(out / "environment.json", {**opening, **environment})
    _text(out / "scenario.yaml", (f"# {notice}\n" if notice else "") + resolved)
    _ledger(out / "ledger.jsonl", records, notice)

    from fedgraph.store import write_atomically

    parts = []
    for r in records:
        section = plugins.load("report.sections", r.kind).build(r, notice)
        for figure in section.figures:
            write_atomically(out / f"{figure.name}.png", figure.png)
        parts.append(_part(r, section))
    _page(out / "report.html", scenario, resolved, parts, records, graphs, environment, notice)
    _summary(out, parts, notice, screen)


def _ledger(path: Path, records: Sequence[Records], notice: str | None) -> None:
    lines = [json.dumps({"kind": "notice", "text": notice})] if notice else []
    lines += [line for record in records for entry in record.entries for line in entry["ledger"]]
    _text(path, "".join(line + "\n" for line in lines))


def _part(record: Records, section: Section) -> dict[str, Any]:
    figures = [{**dataclasses.asdict(f), "base64": base64.b64encode(f.png).decode()} for f in section.figures]
    return {
        "label": record.label,
        "dataset": record.dataset,
        "section": {"sentences": section.sentences, "tables": section.tables, "figures": figures},
        "statements": [statement.of(row) for row in results.grouped(record.entries) if row["protection"] is not None],
    }


def _page(
    path: Path,
    scenario: Any,
    resolved: str,
    parts: list[dict[str, Any]],
    records: Sequence[Records],
    graphs: Sequence[Graph | GraphCollection],
    environment: dict[str, Any],
    notice: str | None,
) -> None:
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        resources.files("fedgraph.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    methods = list(dict.fromkeys(e["method"] for r in records for e in r.entries))
    cells = sum(len(r.entries) for r in records)
    text = template.render(
        title=scenario.title or scenario.name,
        lead=f"Scenario “{scenario.name}”: {cells} cells ({', '.join(r.label for r in records)}), root seed {scenario.seed}. "
        "For each: what accuracy, at which ε as published, at which ε that can be proven, and what an attacker could measure.",
        data=[describe(g) for g in graphs],
        parts=parts,
        scenario=resolved,
        environment=json.dumps(environment, indent=2),
        references=references.of(methods, geometry=any(r.kind.startswith("graph") for r in records)),
        caveats=statement.CAVEATS,
        notice=notice,
    )
    _text(path, text)


def _summary(out: Path, parts: list[dict[str, Any]], notice: str | None, screen: Screen) -> None:
    if notice:
        screen.print(notice)
    for part in parts:
        for table in part["section"]["tables"]:
            screen.table(f"{part['label']} — {part['dataset']}: {table.title}", table.header, table.rows)
            if table.note:
                screen.print(table.note)
    screen.print(f"report: {out / 'report.html'}")


def _json(path: Path, value: Any) -> None:
    from fedgraph.store import portable

    _text(path, json.dumps(portable(value), indent=1, ensure_ascii=False) + "\n")


def _text(path: Path, text: str) -> None:
    """The whole file or the one that was there: a full disk leaves nothing half-written."""
    from fedgraph.store import write_atomically

    write_atomically(path, text.encode())
