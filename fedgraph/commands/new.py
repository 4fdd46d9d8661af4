"""``fedgraph new``: a commented scenario for your own graph, from a few questions or from options.

    fedgraph new --graph my_folder
    fedgraph new --federation clients --yes --out mine.yaml

At a terminal it asks what the options leave open. With ``--yes``, or where nobody can be asked, it takes the most private
answer to every question. Unless ``--no-probe`` is given it tries what fits into two minutes, and shrinks the draft to that.
"""

import argparse
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fedgraph import privacy
from fedgraph.commands.base import require_free_file, write_file
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.privacy import Trust
from fedgraph.scenario import wanted as wishes

HELP = "write a commented scenario for your own graph or federation"
_LABEL = "What is to be predicted? one of: {}"
_LINKS_UNIT = "What is private? node: all ties of a person; edge: one tie; entity: all records of one owner (with --owner)"
_UNIT = "What is private? node: everything about a person; edge: only who is tied to whom"
_ASKED = (
    "Are the people whose answers you want private, too? private: each gives its own data and only it sees its answer; "
    "public: they and their ties are known"
)
_WHOM = "Whom can people trust with their data? some of: curator (one party holds all), sums (a server sees sums), own-client"
_BUDGETS = "Budgets ε (1 is strong, 8 is weak protection)"
_UNKNOWN = "unknown"
_BOUNDS = "{} (numbers): least and largest that anybody could have, known without the data, such as 0 120; Enter: unknown"
_DATES = (
    "{} (dates): earliest and latest that anybody could have, known without the data, such as 1970-01-01 2026-12-31; "
    "Enter: unknown"
)
_DAY = r"\d{4}-\d\d-\d\d|\d\d?\.\d\d?\.\d{4}"
_ONE = rf"({_DAY}|[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_TWO = re.compile(rf"{_ONE}(?:\s*(?:[:,…–]|to)\s*|\s+){_ONE}", re.IGNORECASE)
_HYPHEN = re.compile(rf"({_DAY}|\d+(?:\.\d+)?)\s*-\s*({_DAY}|\d+(?:\.\d+)?)")  # a sign beside it may be either
_EMPTY_ANSWERS = 3  # after so many nobody is asked again


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--graph",
        metavar="PATH",
        help="your file, folder of tables, or folder of graphs, as it is; or a name (fedgraph ls data)",
    )
    data.add_argument("--federation", type=Path, metavar="DIR", help="your federation: a folder with one folder per client")
    add("--task", choices=wishes.WANTED_TASKS, default="nodes", help="classify nodes, or say who will be linked")
    add("--owner", metavar="COLUMN", help="links: column of edges.csv that says who owns each record")
    add("--label", metavar="COLUMN", help="what is to be predicted: a column, or a file that lists some people")
    add("--id", metavar="COLUMN", help="the column that names people, or row: the number of a row")
    add("--ends", nargs=2, metavar="COLUMN", help="the two columns of the ends of ties")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns that are left out")
    add("--unit", choices=wishes.WANTED_UNITS, help="what is one person's data: a node, an edge, or an owner's edges")
    add("--asked", choices=wishes.WANTED_ASKED, help="whether the people whose answers you want are private, too")
    add("--trust", nargs="+", choices=[t.value for t in Trust], help="who may be trusted; several are compared")
    add("--epsilons", nargs="+", type=float, metavar="ε", help="privacy budgets, e.g. 1 4 8 inf")
    add("--bounds", nargs="+", default=[], metavar="COLUMN=LEAST:LARGEST", help="of numbers or dates, known without the data")
    add("--clients", type=int, metavar="N", help="clients that share one graph (default 10)")
    add("--yes", action="store_true", help="ask nothing: the most private answer to every question")
    add("--no-probe", action="store_true", help="do not try what fits into two minutes")
    add("--name", help="name of the scenario (default: of the data)")
    add("--out", type=Path, metavar="FILE", help="where to write it (default NAME.yaml)")
    add("--force", action="store_true", help="replace FILE where it exists")


_Spans = Mapping[str, tuple[bool, float, float]]  # as ``Reading.spans``


@dataclass(frozen=True)
class _Questions:
    """asks: whether a person sits at a terminal and did not say ``--yes``."""

    asks: bool

    def ask(self, option: str, question: str, default: str = "", check: Callable[[str], object] = str) -> str:
        """The answer of a person, which is asked again until ``check`` takes it; the default where nobody is asked.

        Raises ``ScenarioError`` where nobody is asked and there is no default, and where nobody answers.
        """
        if not self.asks:
            if default:
                return default
            raise ScenarioError(f"{question}? Prompts need a terminal and no --yes, and no pipe is read; give {option}")
        from rich.markup import escape
        from rich.prompt import Prompt

        empty = 0
        while empty < _EMPTY_ANSWERS:
            try:
                answer = (Prompt.ask(escape(question), default=default or None) or "").strip()
            except EOFError:
                break
            try:
                check(answer)
                if answer:
                    return answer
            except (ScenarioError, PrivacyError) as error:
                print(error if answer or empty else f"{error}. Ctrl-C leaves, and nothing is written")
            empty += not answer
        raise ScenarioError(f"{option}: nobody answered; give {option}, or answer where it is asked")

    def data_as_they_are(
        self,
        graph: str | None,
        federation: Path | None,
        said: Mapping[str, object],
        given: Mapping[str, str],
        task: str,
        check: Callable[[wishes.WantedData], object],
    ) -> wishes.WantedData:
        """One's own data: what their tables leave open is asked; what was understood is shown; then bounds are asked.

        check: raises before bounds are asked where the draft cannot be written.
        """
        from fedgraph.data import ReadingQuestion

        bounds = {column: _bounds(column, text, {}) for column, text in given.items()}
        said = {**said, "bounds": bounds}
        while True:
            try:
                data = wishes.find_data(graph, federation, said, task)
                break
            except ReadingQuestion as question:
                if not self.asks:
                    raise
                print(*filter(None, (question.understood, question)), sep="\n")
                choices = {one if isinstance(one, str) else " ".join(one): one for one in question.choices}
                tables = re.findall(r"(\S+) \((.+?), (.+?)\)", str(question))  # of which each holds ties
                choices |= {title: pair for title, *pair in tables if tuple(pair) in question.choices}
                choices |= dict.fromkeys(("yes",) * (len(question.choices) == 1), question.choices[0])
                asked = _LABEL if question.option == "label" else f"What is right (--{question.option})? one of: {{}}"
                option = f"--{question.option}"
                answer = self.ask(option, asked.format(", ".join(choices)), question.likely, _one_of(option, tuple(choices)))
                chosen = choices[answer]
                said = {**said, question.option: chosen if isinstance(chosen, str) else list(chosen)}
        print(data.found)
        check(data)
        one = data.graph if data.collection is None else data.collection.graphs[0]
        for column, text in given.items():
            _bounds(column, text, data.spans)
        for column in one.columns.names if self.asks and one is not None and one.columns is not None else ():
            if column not in bounds:
                asked = (_DATES if data.spans.get(column, (False,))[0] else _BOUNDS).format(column)
                read = partial(_answered, column, spans=data.spans)
                bounds |= read(self.ask("--bounds", asked, _UNKNOWN, read))
        if set(bounds) == set(given):
            return data
        known = set(data.found.splitlines())
        data = wishes.find_data(graph, federation, {**said, "bounds": bounds}, task)
        print(*(line for line in data.found.splitlines() if line not in known), sep="\n")  # what the answers changed
        return data


def run(options: argparse.Namespace) -> int:
    from fedgraph.data import is_graph_folder
    from fedgraph.scenario import draft

    began = time.process_time()
    questions = _Questions(sys.stdin.isatty() and not options.yes)
    graph = options.graph
    if not graph and not options.federation:
        graph = questions.ask("--graph", "Your graph (a file, a folder of tables, or a name)", check=_named_graph)
    links, there = options.task == "links", Path(graph or "")
    if options.owner and not (links and graph and there.exists()):
        raise ScenarioError(
            f"--owner is {options.owner!r}; allowed with --task links and --graph PATH, whose table of ties has that column"
        )
    many = is_graph_folder(there)  # then a whole graph is private

    def free(data: wishes.WantedData) -> None:
        require_free_file(options.out or Path(f"{wishes.title_of(options.name, data)}.yaml"), options.force)

    if options.federation or (graph and there.exists()):
        said = {"label": options.label, "id": options.id, "ends": options.ends, "owner": options.owner}
        said["drop"] = options.drop
        said = {key: value for key, value in said.items() if value}
        bounds = dict(text.rpartition("=")[::2] for text in options.bounds)
        data = questions.data_as_they_are(graph, options.federation, said, bounds, options.task, free)
    else:
        data = wishes.find_data(graph, None, {}, options.task)
        print(data.found)
        free(data)
    out = options.out or Path(f"{wishes.title_of(options.name, data)}.yaml")
    parameters = dict(data.parameters)
    most = "entity" if options.owner else "node"
    unit = options.unit or (
        "node"
        if many
        else questions.ask("--unit", _LINKS_UNIT if links else _UNIT, most, _one_of("--unit", wishes.WANTED_UNITS))
    )
    told = unit == "edge" or options.federation or links
    asked = options.asked or (
        "private" if told else questions.ask("--asked", _ASKED, "private", _one_of("--asked", wishes.WANTED_ASKED))
    )
    levels = _one_of("--trust", [one.value for one in Trust], several=True)
    trust = options.trust or questions.ask("--trust", _WHOM, "curator sums own-client", levels).split()
    usual = "1 8 inf" if options.federation else "1 4 8"
    budgets = options.epsilons or questions.ask("--epsilons", _BUDGETS, usual, _read_budgets).split()
    trusted = tuple(map(privacy.trust.called, trust))
    chosen = (wishes.budgets(budgets), options.clients, options.name, asked, parameters)
    wanted = wishes.Wanted(data, unit, trusted, *chosen, task=options.task)
    if not options.no_probe:
        from fedgraph.runs import probe

        wanted = probe.probe_draft_size(wanted, bool(options.trust) or questions.asks, began)
    write_file(out, draft.as_yaml(wanted, out.parent).encode(), options.force)
    if wanted.fits:
        print(wanted.fits)
    print(f"{out}: check it with: fedgraph check {out}; run it with: fedgraph run {out}")
    return 0


def _one_of(option: str, allowed: Sequence[str], several: bool = False) -> Callable[[str], object]:
    """A check of an answer: one of ``allowed``, or some of them."""

    def check(answer: str) -> None:
        if not answer:
            raise ScenarioError(f"{option}: no answer was given; allowed: {', '.join(allowed)}")
        unknown = [one for one in (answer.split() if several else [answer]) if one not in allowed]
        if unknown:
            raise ScenarioError(f"{option} is {unknown[0]!r}; allowed: {', '.join(allowed)}")

    return check


def _named_graph(text: str) -> None:
    if not text:
        raise ScenarioError("--graph: no answer was given; allowed: a file, a folder, or a data set (fedgraph ls data)")
    if not Path(text).exists() and ("/" not in text or text.startswith((".", "/"))):
        raise ScenarioError(f"--graph: {text} is neither a file, nor a folder, nor a data set (fedgraph ls data)")


def _read_budgets(text: str) -> tuple[float, ...]:
    return wishes.budgets(text.split())


def _answered(column: str, text: str, spans: _Spans) -> dict[str, list[float]]:
    return {} if text == _UNKNOWN else {column: _bounds(column, text, spans)}


def _bounds(column: str, text: str, spans: _Spans) -> list[float]:
    """The least and the largest, of dates in days since 1970. spans: what is known of columns; the owner sees it anyway.

    Raises ``ScenarioError`` for what is no such pair, of the other kind than the column, or would make all cells one value.
    """
    from fedgraph.data import day_in, day_text

    found = _TWO.fullmatch(text.strip()) or _HYPHEN.fullmatch(text.strip())
    pair = found.groups() if found else ()
    days = [re.fullmatch(_DAY, one) is not None for one in pair]
    least, largest = (day_in(one) if day else float(one) for one, day in zip(pair, days, strict=True)) if pair else (0.0, 0.0)
    dates, first, last = spans.get(column, (days == [True, True], -math.inf, math.inf))
    says = f"--bounds {column}={text}: "
    such = f"two {'dates' if dates else 'numbers'}, such as {column}={'1970-01-01:2026-12-31' if dates else '0:120'}"
    if not column or days != [dates, dates] or not least < largest or not math.isfinite(largest - least):
        holds = f"{column} holds {'dates' if dates else 'numbers'}; " if column in spans else ""
        such = such if spans else "two numbers such as age=0:120, or dates such as joined=1970-01-01:2026-12-31"
        raise ScenarioError(f"{says}{holds}allowed: COLUMN=LEAST:LARGEST, {such}")
    if last < least or largest < first:
        write = day_text if dates else "{:.10g}".format
        held = f"{write(first)} … {write(last)}"
        raise ScenarioError(f"{says}all cells lie outside, in {held}, and would be cut to one value; allowed: {such}")
    return [least, largest]
