"""``report.html``: all that a run found, on one page that needs no network, no server, and no scripts to be read."""

import base64
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from fedgraph.report import answer, attack_bounds, cards, plots, references, statement, sweeps
from fedgraph.report.answer import Answer
from fedgraph.report.cards import Card
from fedgraph.report.phrases import fill_phrase, read_phrase_asset
from fedgraph.report.plots import PlotFigure
from fedgraph.report.rows import Row
from fedgraph.report.sections import base
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.report.table_columns import ColumnCell, PageColumn, fill_page_columns, list_page_columns

_LETTERS = 126  # that stand side by side in a table of 1,000 pixels
_LONGEST = 26  # letters of a cell that may break into lines
_NAME_BYTES = 200  # of a file name, before a number and its ending: most file systems allow 255


@dataclass(frozen=True)
class PagePart:
    """One task on one data set.

    Attributes:
        at: Its value of what varies; empty where it is part of no sweep.
        section: What the page says of it.
    """

    label: str
    dataset: str
    at: str
    section: Section


@dataclass(frozen=True)
class PageChapter:
    """One section of the page: a part that stands alone, or several between which one thing varies.

    Attributes:
        thing: What varies; None for a part that stands alone.
        figures: With the varied thing on the axis.
        tables: The same as numbers.
    """

    title: str
    thing: str | None
    figures: tuple[PlotFigure, ...]
    tables: tuple[SectionTable, ...]
    parts: tuple[PagePart, ...]


@dataclass(frozen=True)
class PageHowMade:
    """How a run was made."""

    facts: tuple[tuple[str, str], ...]
    scenario: str
    environment: str


@dataclass(frozen=True)
class PageContent:
    """All that the page shows.

    Attributes:
        lead: The sentence below it.
        notice: Says that data were generated; None where they are real.
        opening: The sentences that the console shows, too.
        beside: What the cards do not say.
        front: Charts of the first screen.
        aside: Charts that stand folded.
        chapters: One for each task or sweep.
        datasets: Each data set with its papers.
        columns: Of the one table.
        lines: Of the one table, a row each.
        secret: Whether the run's seed was secret.
        short: What to say first of a run that was shrunk or is not at its end; None elsewhere.
    """

    title: str
    lead: str
    notice: str | None
    answered: Answer
    opening: tuple[str, ...]
    beside: tuple[str, ...]
    attacked: tuple[str, ...]
    front: tuple[PlotFigure, ...]
    aside: tuple[PlotFigure, ...]
    cards: tuple[Card, ...]
    chapters: tuple[PageChapter, ...]
    said: tuple[statement.StatementFamily, ...]
    methods: tuple[references.ReferencedEntry, ...]
    datasets: tuple[references.ReferencedEntry, ...]
    references: tuple[references.Reference, ...]
    made: PageHowMade
    columns: tuple[PageColumn, ...] = ()
    lines: tuple[tuple[Row, tuple[ColumnCell, ...]], ...] = ()
    secret: bool = False
    short: str | None = None

    @property
    def figures(self) -> list[PlotFigure]:
        """Every figure of the page."""
        inside = [f for c in self.chapters for p in c.parts for f in p.section.figures]
        return [*self.front, *self.aside, *(f for c in self.chapters for f in c.figures), *inside]


def _page_chapters(records: Sequence[SectionRecords], notice: str | None) -> tuple[PageChapter, ...]:
    found = []
    for sweep in sweeps.group_sweeps([r for r in records if r.entries]):
        values = sweep.at or ("",) * len(sweep.parts)
        parts = tuple(
            PagePart(r.label, r.dataset, f"{at:g}" if isinstance(at, float) else at, base.build_sections(r, notice))
            for r, at in zip(sweep.parts, values, strict=True)
        )
        figures, tables = sweeps.draw_sweep(sweep, notice)
        labels = list(dict.fromkeys(r.label for r in sweep.parts))
        where = list(dict.fromkeys(r.dataset for r in sweep.parts))
        title = f"{labels[0] if len(labels) == 1 else f'{len(labels)} tasks'} — {', '.join(where)}"
        if sweep.thing is not None and figures:
            title = f"By {sweep.thing}: {' to '.join(dict.fromkeys((labels[0], labels[-1])))} — {', '.join(where)}"
        found.append(PageChapter(title, sweep.thing if figures else None, figures, tables, parts))
    return tuple(found)


def make_page_content(
    rows: Sequence[Row],
    title: str,
    lead: str,
    notice: str | None,
    records: Sequence[SectionRecords] = (),
    described: Mapping[str, str] | None = None,
) -> PageContent:
    """What the page shows of any rows: the answer over all of them, charts, one table, statements and papers.

    Args:
        rows: of one run or of several.
        title, lead, notice: what opens the page; notice says that data were generated.
        records: the tasks of one run, each of which gets its own part.
        described: data set → one line; only data sets that are described are listed.
    """
    answered, parts = answer.find_answer(rows), _page_chapters(records, notice)
    front, aside = cards.draw_card_figures(answered, notice)
    first = tuple(s for c in parts for p in c.parts for s in p.section.first)
    methods, datasets, papers = _page_library(rows, described or {}, [r.kind for r in records])
    opening = _page_opening(answered, parts)
    return PageContent(
        title=title, lead=lead, notice=notice, answered=answered, opening=opening, beside=first if answered.scores else opening,
        attacked=tuple(attack_bounds.summarise_attack_bounds(rows)), front=front, aside=aside, cards=cards.make_cards(answered),
        chapters=parts, said=statement.group_statements(rows), methods=methods, references=papers, made=PageHowMade((), "", ""),
        datasets=datasets if described is None else tuple(d for d in datasets if d.name in described),
        columns=list_page_columns(answered.scores), lines=fill_page_columns(answered.scores),
    )  # fmt: skip


def render_page_of_runs(rows: Sequence[Row], runs: Sequence[str], notice: str | None = None) -> str:
    """The self-contained page of rows from several runs.

    Args:
        runs: Their names, for the title; at least one.
        notice: Says that data were generated; None where they are real.
    """
    title = f"{len(runs)} runs together: {', '.join(runs)}" if len(runs) > 1 else f"The run {runs[0]}"
    return render_report_page(make_page_content(rows, title, fill_phrase("page", "runs"), notice))


def _page_opening(answered: Answer, parts: Sequence[PageChapter]) -> tuple[str, ...]:
    """What the first screen says: warnings, what parts put first, the answer; where rows have no rank, how each part begins."""
    if answered.scores:
        first = (s for c in parts for p in c.parts for s in p.section.first)
        return (*answered.sentences[: answered.warnings], *first, *answered.sentences[answered.warnings :])
    return tuple(p.section.sentences[0] for c in parts for p in c.parts if p.section.sentences)


def _page_library(
    rows: Sequence[Row], described: Mapping[str, str], kinds: Sequence[str]
) -> tuple[tuple[references.ReferencedEntry, ...], tuple[references.ReferencedEntry, ...], tuple[references.Reference, ...]]:
    """(methods, data sets, papers), each method and data set with the rows that use it. described: data set → one line."""
    methods: dict[str, references.ReferencedEntry] = {}
    datasets: dict[str, references.ReferencedEntry] = {}
    for row in rows:
        for entries, name, words, papers in (
            (methods, str(row.head.method), references.describe_referenced_method, references.find_method_references),
            (datasets, str(row.head.dataset), lambda n: described.get(n, ""), references.find_data_references),
        ):
            if name not in entries:
                entries[name] = references.ReferencedEntry(name, words(name), tuple(r.key for r in papers(name)))
            entries[name].rows.setdefault(f"{row.name} ({row.head.task})", row.anchor)
    papers_of_all = references.collect_references(methods, datasets, geometry=any(kind.startswith("graph") for kind in kinds))
    return tuple(methods.values()), tuple(datasets.values()), tuple(papers_of_all)


def render_report_page(content: PageContent) -> str:
    """The page as HTML; it needs no other file, no network, and no script to be read."""
    shown = [table for chapter in content.chapters for table in chapter.tables]
    inside = [table for chapter in content.chapters for part in chapter.parts for table in part.section.tables]
    text = load_page_template("page.html").render(
        c=content, price_note=cards.explain_card_prices(content.cards), spec=_embed_json, words=_word_columns,
        picture=lambda figure: "data:image/webp;base64," + base64.b64encode(plots.compress_plot(figure)).decode(),
        sort=lambda value: value if isinstance(value, str) else f"{value:.6g}",
        widest=max((len(table.header) for table in (*shown, *inside)), default=0),
        wide=_is_wide, tips_of=_shared_tips, hides_order=_hides_its_order,
        kinds={k: list(dict.fromkeys(getattr(s, k) for s, _ in content.lines)) for k in ("dataset", "unit", "trust", "method")},
        holder=fill_phrase("outside", "holder"),
        outside=statement.list_statement_caveats(content.secret), style=_markup("page.css"), script=_markup("page.js"),
    )  # fmt: skip
    # HTML needs none of these
    return re.sub(r"</t[dhr]>\s*(?=<t[dhr]|</t[rbh])|</li>\s*(?=<li|</ul)|</p>\s*(?=<p|<ul|<h\d|</?div|</?details)", "", text)


def load_page_template(name: str, escaped: bool = True) -> jinja2.Template:
    """A template of this package, where a name that nobody gave is an error."""
    loader, strict = jinja2.FunctionLoader(lambda file: read_phrase_asset(f"templates/{file}")), jinja2.StrictUndefined
    environment = jinja2.Environment(autoescape=escaped, undefined=strict, trim_blocks=True, lstrip_blocks=True, loader=loader)
    return environment.get_template(name)


def render_letter_pages(content: PageContent) -> dict[str, str]:
    """File name → page, one for the owner of each client of each task that counts its clients one by one."""
    template, style = load_page_template("owner.html"), _markup("page.css")
    found: dict[str, str] = {}
    taken: set[str] = set()
    for part in (p for c in content.chapters for p in c.parts):
        for letter in part.section.letters:
            name = _file(f"{part.label}-{part.dataset}-{letter.client}", taken)
            taken.add(name.casefold())
            lead = f"{content.title} ({part.label}, {part.dataset})"
            found[f"{name}.html"] = template.render(letter=letter, lead=lead, notice=content.notice, style=style)
    return found


def _file(title: str, taken: Collection[str]) -> str:
    """A name for a file, without its ending: not one of ``taken``, upper and lower case alike, and no file system's limit."""
    plain = re.sub(r"[^\w.+-]", "-", title)
    short = plain.encode()[:_NAME_BYTES].decode(errors="ignore")
    name, number = short, 1
    while name.casefold() in taken:
        number += 1
        name = f"{short}-{number}"
    return name


def _markup(name: str) -> Markup:
    return Markup(read_phrase_asset(f"templates/{name}"))


def _is_wide(table: SectionTable) -> bool:
    """Whether a table needs more room than a page of 1,000 pixels has; its rows are then shown as cards there."""
    columns = [[row[i] for row in table.rows if i < len(row)] for i in range(len(table.header))]
    needed = [
        max(max(map(len, head.split() or [""])), min(_LONGEST, max(map(len, cells), default=0)))
        for head, cells in zip(table.header, columns, strict=True)
    ]
    return sum(needed) + 2 * len(needed) > _LETTERS


def _word_columns(table: SectionTable) -> frozenset[int]:
    found = set()
    for i in range(len(table.header)):
        cells = [row[i].lstrip("“(") for row in table.rows if i < len(row) and row[i] not in ("", "—")]
        if 2 * sum(cell[:1].isalpha() for cell in cells) > len(cells):
            found.add(i)
    return frozenset(found)


def _hides_its_order(cell: ColumnCell) -> bool:
    """Whether a cell is sorted by something else than the text, or the number, that it begins with."""
    if isinstance(cell.sort, str):
        return cell.sort not in ("", cell.text)
    shown = re.match(r"-?\d+(\.\d+)?(?![\d.,e])", cell.text)
    return shown is None or abs(float(shown[0]) - cell.sort) > 0.005 * abs(cell.sort)


def _shared_tips(lines: Sequence[tuple[Row, Sequence[ColumnCell]]]) -> dict[str, int]:
    counted = Counter(cell.tip for _, cells in lines for cell in cells if cell.tip)
    return {tip: number for number, tip in enumerate(tip for tip, count in counted.items() if count > 1)}


def _embed_json(value: object) -> Markup:
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026"))
