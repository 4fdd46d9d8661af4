"""Every output of a run, in the order in which it is written; and the answer, printed: one table of a screen."""

import dataclasses
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from fedgraph.cells import Environment, Result, portable, store
from fedgraph.report import answer, charts, page, phrases, table
from fedgraph.report.answer import Question
from fedgraph.report.saved_run import SHORT_SAVED_RUN, UNFINISHED_SAVED_RUN
from fedgraph.report.sections.base import SectionRecords
from fedgraph.types import Graph, GraphCollection, counted, describe_graph_size

_MOST_LINES = 25  # of the table at the end
_WIDE = 100  # letters of its lines


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
    """Write every output of a run into its folder, each whole or not at all, and print the answer.

    resolved: The scenario as it was read. records: Finished cells, one record for each task and data set. graphs: By label.
    failed: Cells without a result; results.csv names each of them with its reason.
    """
    notice, found = environment.notice, [result for r in records for result in r.entries]
    cells, ended = len(found), len(found) + len(failed) >= environment.cells
    lines = table.tabulate([*found, *failed], {dataset: g.provenance.source for dataset, g in graphs.items()})
    shortened = [SHORT_SAVED_RUN] if any(r.short for r in records) else []
    shortened += [] if ended else [UNFINISHED_SAVED_RUN.format(cells, environment.cells)]
    # said first: of data that were generated, and of a run that was shrunk, or is not at its end
    opening = {key: said for key, said in (("notice", notice), ("short", " ".join(shortened))) if said}
    table.write(lines, out, ended)
    whole = portable({**opening, **dataclasses.asdict(environment)})
    ledger = [json.dumps({"kind": "notice", "text": notice})] if notice else []
    ledger += [line for result in found for line in result.ledger]
    files = {
        "environment.json": json.dumps(whole, indent=1, ensure_ascii=False) + "\n",
        "scenario.yaml": (f"# {notice}\n" if notice else "") + resolved,
        "ledger.jsonl": "".join(line + "\n" for line in ledger),
    }
    sizes = "; ".join(map(describe_graph_size, graphs.values())) or "No data set is read"
    where = " What was read, and how, stands under Data." if graphs else ""
    lead = f"{sizes}. {cells} result{'' if cells == 1 else 's'}: one for each method, level of trust, ε and seed.{where}"
    if failed:
        lead += f" {len(failed)} cell(s) failed and are in no table; results.csv says why in the column status."
    rows = table.rows(lines, found)
    parts = [
        dataclasses.replace(r, lines=[row for row in rows if (row.task, row.dataset) == (r.label, r.dataset)]) for r in records
    ]
    content = page.PageContent(
        rows, title, lead, list(opening.values()), parts, graphs, str(out), _made(records, environment), resolved,
        environment.seed == "secret",
    )  # fmt: skip
    if content.picture is not None:
        store.write_atomically(out / "answer.png", content.picture.picture())
        files["answer.svg"] = content.picture.svg
    files["report.html"] = page.render_report_page(content)
    for file, letter in page.render_letter_pages(content).items():
        (out / "owners").mkdir(exist_ok=True)
        files[f"owners/{file}"] = letter
    for file, text in files.items():  # each whole or the one that was there: a full disk leaves nothing half-written
        store.write_atomically(out / file, text.encode())
    told = {graph.names.label: graph.names.classes for graph in graphs.values() if isinstance(graph, Graph)}
    for label, classes in told.items() if content.questions else ():
        if label and len(told) == 1:  # of what so many are right
            screen.print(f"predicted: {label} ({', '.join(classes[:4])}{', …' if len(classes) > 4 else ''})")
    said = summarise(content.notices, content.first, content.questions) if content.questions else content.sentences
    own = f"report: {out / 'report.html'} (like these lines, exact: for the holder of the data alone)"
    for line in (*said, *filter(None, [content.spent]), f"{own}; every table: fedgraph show {out} --csv"):
        screen.print(line)


def summarise(notices: Sequence[str], first: Sequence[str], questions: Sequence[Question]) -> list[str]:
    """The end of a run on a screen: what was found, how strong its ε is, and one table of at most ``_MOST_LINES`` lines."""
    asked = [q for q in questions if q.kept and q.budgets]
    head = [f"{phrases.begin(questions[0].finding)} {questions[0].strength}".strip()] if questions else []
    head += [] if asked else [phrases.begin(q.finding) for q in questions[1:]]
    blocks = [_block(question) for question in asked]
    table: list[str] = []
    more = ""
    for shown, block in enumerate(blocks):
        if len(table) + len(block) > _MOST_LINES - 1:
            more = f"{counted(len(blocks) - shown, 'more question')}, "
            break
        table += block
    stars = " or ".join(dict.fromkeys(q.star for q in asked if q.pick))
    stars += " of this short run" if stars and any(SHORT_SAVED_RUN in notice for notice in notices) else ""
    star = [f"{f'*: {stars}; ' if stars else ''}{more}conditions, costs and every ε: in the report"] if table else []
    return [*notices, *first, *head[:6], *table, *star]


def _block(question: Question) -> list[str]:
    """A question, its ε, and a line for each trust: the least and the largest ε, and that of the answer or one between."""
    name = question.head.metric
    unit = "right of 100" if name == "accuracy" else charts.name_scale(question.head)
    last = len(question.budgets) - 1
    between = last // 2 if question.pick is None else question.budgets.index(question.pick.budget)
    shown = sorted({0, between, last} if last > 1 else {*range(last + 1)})
    lines = [["", *(f"ε ≤ {phrases.rounded(question.budgets[k])}" for k in shown), "without privacy"]]
    top = "" if question.ceiling is None else f"{answer.format_mean(question.ceiling)} {question.ceiling.name}"
    for place, (trust, cells) in enumerate(page.table_lines(question)):
        said = []
        for cell in (cells[k] for k in shown):
            span = f" ({cell.span})" if cell.span else ""
            named = ", ".join(filter(None, ("" if cell.row is None else cell.row.name, cell.made)))
            said.append(f"{'* ' if cell.look == 'best' else ''}{cell.number}{span} {named}".rstrip())
        lines.append([f"  {trust.value}", *said, top if place == 0 else ""])
    first = max(len(line[0]) for line in lines) + 2
    wide = (_WIDE - first) // (len(shown) + 1)
    table = []
    for head, *found in lines:  # no name is cut: what a column has no room for goes on in the next line
        folded = itertools.zip_longest([head], *(textwrap.wrap(cell, wide - 2) for cell in found), fillvalue="")
        table += [(part[0].ljust(first) + "".join(cell.ljust(wide) for cell in part[1:])).rstrip() for part in folded]
    told = f"; nothing can be concluded: {question.doubt}" if question.doubt else "" if question.pick else f": {question.found}"
    return [*textwrap.wrap(f"{question.title} ({unit}){told}", _WIDE), *table]


def _made(records: Sequence[SectionRecords], environment: Environment) -> dict[str, str]:
    """Time, version, command, duration: what is known of how the run was made."""
    made, spent = environment.made, sum(e.seconds or 0.0 for r in records for e in r.entries)
    took = "" if made.seconds is None else f"{made.seconds:.0f} s for this command; cells, added up: {spent:.0f} s"
    known = {
        "Finished": made.finished, "fedgraph": f"{made.version} {made.commit}".strip(), "Command": made.command,
        "Duration": took, "Seed": str(environment.seed), "Machine": f"{environment.platform}, {', '.join(environment.devices)}",
    }  # fmt: skip
    return {name: value for name, value in known.items() if value}
