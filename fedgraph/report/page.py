"""``report.html``: all that a run found, on one page that needs no network and no server.

First what was found and how strong its ε is, then the picture, one table, what to type next, and what it rests on. Everything
else is folded.
"""

import base64
import json
import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from markupsafe import Markup

from fedgraph import plugins
from fedgraph.errors import ScenarioError
from fedgraph.privacy import Assumption, Trust
from fedgraph.report import answer, attack_bounds, charts, phrases, statement
from fedgraph.report.answer import Question
from fedgraph.report.chance import is_worse
from fedgraph.report.charts import Spec
from fedgraph.report.sections import base
from fedgraph.report.sections.base import Section, SectionLetter, SectionRecords
from fedgraph.report.table import Line, answering
from fedgraph.types import Graph, GraphCollection, describe_graph, describe_graph_size, in_words_of

_NAME_BYTES = 200  # of a file name, before a number and its ending: most file systems allow 255
_SEED = "nobody knows the seed, which this page prints and all noise follows from (for real people write seed: secret)"
_FLOATS = "nobody attacks how floating-point noise is drawn (Mironov 2012)"
_MOST_QUESTIONS = 6  # on the first screen; the others are folded


@dataclass(frozen=True, eq=False)
class PageContent:
    """What the page is made of; what it says follows from that."""

    every: Sequence[Line]  # all rows
    title: str  # of the scenario
    lead: str  # how much was computed of which data
    opening: Sequence[str] = ()  # said before everything: data were generated, the run was shrunk or is not whole
    records: Sequence[SectionRecords] = ()  # the tasks of the run, each of which gets its own part
    graphs: Mapping[str, Graph | GraphCollection] = field(default_factory=dict)  # data set → its graph; only these are listed
    folder: str = "RUN"  # of the run, as a command names it
    made: Mapping[str, str] = field(default_factory=dict)  # what is known of how the run was made
    scenario: str = ""
    secret: bool = False

    @cached_property
    def rows(self) -> tuple[Line, ...]:
        """That can be compared."""
        return answering(self.every)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        return answer.ask(self.rows)

    @cached_property
    def parts(self) -> list[tuple[SectionRecords, Section]]:
        """What is said of each task on each data set."""
        return [(record, base.build_sections(record)) for record in self.records if record.entries]

    @cached_property
    def notices(self) -> tuple[str, ...]:
        """``opening``, and warnings: an attack refutes a proof, or rows have no result."""
        return (*self.opening, *attack_bounds.contradictions(self.every), *filter(None, [answer.missing(self.rows)]))

    @property
    def first(self) -> tuple[str, ...]:
        """What stands before everything else: doubts about the data, and what owners asked."""
        doubts = [f"Look at the data first: {said}." for graph in self.graphs.values() for said in graph.provenance.doubts]
        return (*doubts, *(said for _, section in self.parts for said in section.first))

    @property
    def finding(self) -> str:
        """The title: what was found first; of a run without a question its own title."""
        return self.questions[0].finding if self.questions else self.title

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the first screen says, in words: warnings, what owners asked, every finding with the strength of its ε."""
        found = [s for q in self.questions for s in (q.finding, q.strength)]
        if not self.questions:
            found = [section.sentences[0] for _, section in self.parts if section.sentences]
        return tuple(filter(None, (*self.notices, *self.first, *found, *attack_bounds.closest(self.every))))

    @property
    def spent(self) -> str:
        """What all private trainings cost together."""
        return statement.add_up(e for row in self.every for e in row.cells)

    @cached_property
    def picture(self) -> charts.Figure | None:
        """One panel for each question; None where no private row has a number."""
        panels = tuple(charts.draw_question(question) for question in self.questions if question.kept)
        return charts.Figure("Accuracy against provable ε", panels, columns=3) if panels else None

    @cached_property
    def letters(self) -> dict[str, tuple[str, SectionLetter]]:
        """Name of the file → which task and data, and what it says: one for the owner of each client."""
        found: dict[str, tuple[str, SectionLetter]] = {}
        taken: set[str] = set()
        for of, letter in ((of, letter) for of, section in self.parts for letter in section.letters):
            name = _file(f"{of.label}-{of.dataset}-{letter.client}", taken)
            taken.add(name.casefold())
            found[f"{name}.html"] = f"{of.label}, {of.dataset}", letter
        return found


# ---- what the first screen shows of a question ------------------------------------------------------------------------


class _TableCell(NamedTuple):
    """The best row made with one level of trust within one ε."""

    number: str  # how good it is; ``—`` where no row keeps the ε
    span: str = ""  # its interval
    row: Line | None = None  # None where there is none
    made: str = ""  # with which ε, where that is less than the column's
    words: str = ""  # what it costs, and what else is to know
    look: str = ""  # ``best``: recommended; ``dim``: not better than guessing on every seed


def table_lines(question: Question) -> list[tuple[Trust, list[_TableCell]]]:
    """One line for each level of trust, one cell for each ε of the question."""
    return [(trust, [_cell(question, budget, trust) for budget in question.budgets]) for trust in question.trusts]


def _cell(question: Question, budget: float, trust: Trust) -> _TableCell:
    row = question.at(budget, trust)
    if row is None:
        return _TableCell("—", words="no row keeps it")
    said, top = [], question.ceiling
    if top is not None and is_worse(row, top):
        digits = 0 if row.metric == "accuracy" else 2  # of the numbers beside it, so that whoever subtracts them agrees
        lost = float(answer.format_mean(top)) - float(answer.format_mean(row))
        said = [f"costs {lost:.{digits}f}" if lost > 0 else f"costs less than {10.0**-digits:g}"]
    elif top is not None:
        said = ["better than all that was run without privacy" if is_worse(top, row) else "no clear cost"]
    if rare := answer.find_rare(row, top):  # rows are compared by AUROC, in which half of a rare class is a small step
        said = [rare]
    less = question.within(budget, trust)
    if less is not None and less is not row and less.private and less.mean > row.mean:
        said.append(f"less trust does as well: {less.trust.value} {answer.format_mean(less)}")
    elif less is not None and not less.private and less.mean >= row.mean:
        said.append(f"{less.name}, which releases nothing private, has {answer.format_mean(less)}")
    look = "best" if question.pick is not None and question.pick.row is row and question.pick.budget == budget else ""
    if not row.beats:
        above = any(value > row.guesses[seed] for seed, value in row.scores.items())
        said, look = [f"{'not clearly' if above else 'no'} better than guessing on every seed"], "dim"
    made = f"made with ε = {phrases.rounded(row.epsilon)}" if row.epsilon < budget else ""
    return _TableCell(answer.format_mean(row), answer.span(row), row, made, "; ".join(said), look)


def commands(content: PageContent) -> list[tuple[str, ...]]:
    """What to type next, with what it does: ``templates/next.txt``."""
    typed, whole = shlex.split(content.made.get("Command", "")), ""
    if "--quick" in typed:  # nothing is decided by its numbers
        own = ("--quick", "--out", "--resume")
        kept = [word for before, word in zip(["", *typed], typed, strict=False) if word not in own and before not in own[1:]]
        whole = shlex.join(kept)
    picked = list({q.pick.row.row: q.pick.row for q in content.questions if q.pick is not None}.values())
    run = content.folder if re.fullmatch(r"[\w./+-]+", content.folder) else _quote(content.folder)
    text = phrases.template("next.txt", escaped=False).render(whole=whole, picked=picked, run=run, quote=_quote)
    return [tuple(line.split("\t")) for line in text.splitlines()]


def _quote(text: str) -> str:
    """As a shell reads it: what a person typed may hold a $ or a quote."""
    return shlex.quote(text) if re.search(r'["$`!\\]', text) else f'"{text}"'


def conditions(content: PageContent, question: Question) -> tuple[str, ...]:
    """What the guarantee of a question's answer rests on: its own conditions, and those of every run of a simulator."""
    if question.pick is None:
        return ()
    row = question.pick.row
    copies = tuple(note for e in row.cells for note in e.notes) if question.unit == "graph" else ()
    seed = () if content.secret else (_SEED,)
    return tuple(dict.fromkeys((*seed, *copies, *answer.conditions(row, content.rows), _FLOATS)))


# ---- HTML ---------------------------------------------------------------------------------------------------------------


def render_report_page(content: PageContent) -> str:
    """The page as HTML; it needs no other file and no network. Without scripts its pictures stand, and do not answer."""
    specs, look = list[Spec](), Spec()
    tables: dict[tuple[str, str], dict[str, Line]] = {}  # for each task on each data set
    for row in (*content.rows, *content.every):  # one that cannot be compared is there, too
        tables.setdefault((row.task, row.dataset), {}).setdefault(row.row, row)

    def place(spec: Spec) -> int:
        specs.append({key: value for key, value in spec.items() if key not in ("title", "config", "$schema")})
        look.update(spec["config"])
        return len(specs) - 1

    text = phrases.template("page.html").render(
        c=content, answer=answer, begin=phrases.begin, number=phrases.rounded, upper=phrases.upper, lower=phrases.lower,
        inf=math.inf, say=in_words_of, embed=_embed, scale=charts.name_scale, place=place, head=_MOST_QUESTIONS,
        drawn=[q for q in content.questions if q.kept], several=any(len(q.budgets) > 1 for q in content.questions),
        still="" if content.picture is None else _embed(content.picture), lines=table_lines, commands=commands(content),
        conditions=conditions, edges_public=Assumption.EDGES_PUBLIC,
        tables=[(" — ".join(of), list(rows.values()), base.measures_of(list(rows.values()))) for of, rows in tables.items()],
        parts=content.parts,
        swept=base.draw_settings([of for of, _ in content.parts]), attacked=attack_bounds.closest(content.every),
        attacks=attack_bounds.section(content.every),
        sentences=statement.sentences, outside=statement.caveats(content.secret), method=method,
        datasets=[name for name in dict.fromkeys(row.dataset for row in content.every) if name in content.graphs],
        whole=describe_graph, size=describe_graph_size,
        style=Markup(phrases.asset("templates/page.css")), script=Markup(phrases.asset("templates/page.js")),
        vega=Markup(charts.scripts()),
        specs=lambda: json.dumps({"look": look, "specs": specs}, ensure_ascii=False, separators=(",", ":")),
    )  # fmt: skip
    # HTML needs none of these
    head, scripts, tail = text.partition("<script")
    return re.sub(r"</t[dhr]>\s*(?=<t[dhr]|</t[rbh])|</li>\s*(?=<li|</ul)", "", head) + scripts + tail


def _embed(figure: charts.Figure) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(figure.picture(small=True)).decode()


def method(name: str) -> tuple[str, str]:
    """(the first sentence of a method's file, its papers as bibtex); no paper of a row that is no method."""
    try:
        module = plugins.load("methods", name)
    except ScenarioError:
        return "A row to compare with, not a method.", ""
    return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split()), module.REFERENCE.strip()


def render_letter_pages(content: PageContent) -> dict[str, str]:
    """File name → page, one for the owner of each client of each task that counts its clients one by one."""
    template = phrases.template("owner.html")
    notice = content.notices[0] if content.notices else None
    return {
        file: template.render(letter=letter, title=letter.title, lead=f"{content.title} ({of})", notice=notice)
        for file, (of, letter) in content.letters.items()
    }


def _file(title: str, taken: Collection[str]) -> str:
    """A name for a file, without its ending: not one of ``taken``, upper and lower case alike, and no file system's limit."""
    plain = re.sub(r"[^\w.+-]", "-", title)
    short = plain.encode()[:_NAME_BYTES].decode(errors="ignore")
    name, number = short, 1
    while name.casefold() in taken:
        number += 1
        name = f"{short}-{number}"
    return name
