"""A commented scenario, written from what a person wants: the text is ``draft.yaml.j2``, the rows are in ``drafts.yaml``.

There are four kinds. One graph that is dealt to clients: which method, whom to trust, at what cost? A federation: is it worth
joining, for whom, and at what cost? Many small graphs: which are of which kind, with whole graphs private? Links of one graph
or a federation: who will be tied to whom?
"""

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import jinja2
import yaml

from fedgraph import scenario
from fedgraph.methods import method_kinds
from fedgraph.privacy import Trust
from fedgraph.scenario.wanted import FEWEST_WANTED_OF_A_CLASS, MANY_WANTED_PEOPLE, TIES_OF_A_PERSON, WANTED_WHOLE, Wanted
from fedgraph.types import in_words_of

_SCHEMA = "fedgraph.schema.json"
_COMMENT_AT = 52  # column at which a short row's comment begins
_LEFT_OUT = 3  # clients of a federation that are left out in turn, from the smallest to the largest
_COMPARED = (400, 300, 200, 100, 60)  # graphs that are compared pair by pair, from the dearest draft to the cheapest
PAIRWISE_DRAFT_TASKS = ("compared", "clusters")  # tasks whose work grows with the pairs
_QUICK_CEILING = 50_000  # people; of more, the row without privacy takes most of --quick: 86 s for 200,000 (2026-11)

_SHORT = "; what the data give without privacy is left out, for it takes most of the time here"


@dataclass(frozen=True)
class _Draft:
    """A row of ``drafts.yaml``."""

    data: Literal[
        "graph", "federation", "links"
    ]  # a graph that is dealt to clients, a federation of one's own, links of either
    unit: Literal["node", "edge", "entity", "any"]  # of the guarantee that is wanted; any: the row stands beside all of them
    settings: Mapping[str, object]  # of the row, its label among them
    comment: str  # what the row shows, for the line's end
    compared: bool = False  # the row is a comparison: it is written after the others, and runs at one level of trust
    quick: Mapping[str, object] = field(default_factory=dict)  # what ``--quick`` sets
    crossing: bool = True  # the row also makes sense where edges lead from one client to another
    edgeless: bool = False  # the row also makes sense where no row has an edge
    spare: bool = False  # the row is written only where there is time
    # (cost, settings) from the dearest to the cheapest, in units of the last one's time; a draft takes the first that fits,
    # ``--quick`` the last
    cheaper: Sequence[tuple[float, Mapping[str, object]]] = ((1.0, {}),)


_Rows = Sequence[tuple[str, _Draft]]  # method, row


@functools.cache
def _drafts() -> Mapping[str, list[_Draft]]:
    text = resources.files("fedgraph.scenario").joinpath("drafts.yaml").read_text(encoding="utf-8")
    return {method: [_Draft(**row) for row in rows] for method, rows in yaml.safe_load(text).items()}


def as_yaml(wanted: Wanted, folder: Path) -> str:
    """A commented scenario. Of own data it has a secret seed, and says no count of ties.

    Args:
        wanted: What a person wants.
        folder: Where the file will lie. The path of the data is written relative to it.

    Returns:
        YAML text, ready to be run.
    """
    data, many = wanted.data, wanted.data.collection is not None
    datasets = [(wanted.title, {**wanted.parameters, **({"rows": True} if many else {})})]
    datasets += [(f"{wanted.title}{WANTED_WHOLE}", {**wanted.parameters})] if many else []
    writer = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    writer.filters |= {"line": _as_line, "say": functools.partial(in_words_of, _one(wanted))}
    template = writer.from_string(resources.files("fedgraph.scenario").joinpath("draft.yaml.j2").read_text(encoding="utf-8"))
    own = data.path is not None  # somebody's own data, of which the draft tells no count that is private
    people = _protected(wanted)
    each = f"{people:,} ties, {TIES_OF_A_PERSON} of each person" if own else f"all {people:,}"
    kinds = {"edge": each, "entity": "them" if own else f"all {people:,}"} if wanted.links else {}
    many_of = kinds.get(wanted.unit, f"all {people:,}")
    why = f"δ: that the guarantee fails for any of {many_of} has a chance of 1 in 10 at most"
    told = _federation(wanted) if data.federation and not wanted.links else _one_graph_or_many(wanted)
    told["path"] = data.path and os.path.relpath(data.path.resolve(), folder.resolve())
    told["finder"] = ", algorithm: leiden" if data.people >= MANY_WANTED_PEOPLE else ""
    told["delta"] = f"delta: {scenario.wanted.delta_of(people):.0e}                 # {why}"
    return template.render(told, wanted=wanted, data=data, schema=_SCHEMA, datasets=datasets, own=own)


def _one(wanted: Wanted) -> str:
    """What a node is called (``types.GraphNames``): where the data are there, as they call it."""
    many = wanted.data.collection is not None and not wanted.links
    return "graph" if many else "node" if wanted.data.path is None else "person"


def _protected(wanted: Wanted) -> int:
    """How many there are of what is private: edges, or owners of records, where links alone are; else people.

    Of own data edges are not counted, since their number is private, but taken as so many of each person.
    """
    graph, people = wanted.data.graph, wanted.data.people
    if not wanted.links or graph is None or wanted.unit == "node":
        return people
    if wanted.unit == "edge":
        return people * TIES_OF_A_PERSON if wanted.data.path is not None else max(people, graph.num_edges)
    return max(people, max(int(owners.max()) for owners in graph.edge_owners))


def rows_for(wanted: Wanted) -> _Rows:
    """Every row of ``drafts.yaml`` that fits, methods by name, comparisons last.

    Where edges join clients, rows that cannot use them are left out; of many small graphs, rows that read edges, since a graph
    that became a row has none; of one graph, methods that do not serve the protocol.

    Args:
        wanted: What a person wants.

    Returns:
        Pairs of a method's name and its row.
    """
    data = wanted.data
    kind = "links" if wanted.links else "federation" if data.federation else "graph"

    def serves(name: str) -> bool:
        return any(place.given == wanted.protocol for place in method_kinds.load(name).OFFERS.situations)

    fitting = [
        (name, draft)
        for name in sorted(_drafts())
        if (data.federation and not wanted.links) or serves(name)
        for draft in _drafts()[name]
        if draft.data == kind and draft.unit in (wanted.unit, "any")
        if (draft.crossing or not data.crossing) and (draft.edgeless or data.collection is None)
    ]
    return sorted(fitting, key=lambda row: row[1].compared)


def cost_of_pairs(cheaper: int, people: int) -> float:
    """What comparing all pairs of graphs costs, against the cheapest draft.

    Args:
        cheaper: Which of the drafts; 0 is the dearest.
        people: How many graphs there are.

    Returns:
        A factor ≥ 1: pairs of this draft over pairs of the cheapest.
    """
    return (min(_COMPARED[cheaper], people) / min(_COMPARED[-1], people)) ** 2


def _one_graph_or_many(wanted: Wanted) -> dict[str, Any]:
    data, size, trust = wanted.data, wanted.size, [t.value for t in wanted.trust[: wanted.size.trust]]
    many = data.collection is not None
    rows = [(n, d) for n, d in rows_for(wanted) if many or size.spare or not d.spare]
    short = not many and not wanted.links and data.people > _QUICK_CEILING
    brief = [(n, d) for n, d in rows if many or not (d.spare or (short and d.compared))]
    quick = [(_entry(n, d, trust[0], len(d.cheaper), data.federation) | dict(d.quick), d.comment) for n, d in brief]
    finite = [e for e in wanted.epsilons if math.isfinite(e)]
    split = data.graph is None or data.split  # of own data who has a label is private: all people count
    return {
        "trust": trust,
        "budgets": _numbers(sorted(wanted.epsilons, key=math.isinf) if many else wanted.epsilons),
        "quick_budgets": _numbers([max(finite, default=math.inf)]),
        "rows": _as_yaml([(_entry(n, d, trust[0], size.cheaper, data.federation), d.comment) for n, d in rows], _one(wanted)),
        "quick_rows": _as_yaml(quick, _one(wanted), 4),
        "quick_without": _SHORT if short else "",
        "tasks": range((3 if size.spare else 2) if many else 1),
        "train_fraction": None if split else scenario.wanted.train_fraction_for(data.people),
        "dealt": "natural" if data.owners or data.federation else f"uniform, clients: {wanted.clients or 10}",
        "whole": f"{wanted.title}{WANTED_WHOLE}",
        "folds": FEWEST_WANTED_OF_A_CLASS, "most": _COMPARED[size.cheaper], "least": _COMPARED[-1],
    }  # fmt: skip


def _federation(wanted: Wanted) -> dict[str, Any]:
    """Its short form has one budget and no privacy, one client left out, few steps."""
    data, edge = wanted.data, wanted.unit == "edge"
    kept = sorted(wanted.trust, key=lambda t: t is Trust.CURATOR)  # joining is what a federation asks about
    trust = [t for t in wanted.trust if t in kept[: wanted.size.trust]]
    joined = [t for t in trust if t is not Trust.CURATOR]
    choices = ["alone", *(["federated"] if joined else []), *(["curator"] if Trust.CURATOR in trust else [])]
    choices += ["personalised"] if joined else []
    enough = data.clients > (2 if Trust.SUMS in joined else 1)  # a sum hides nobody where one client is left
    choices += ["left-out"] if joined and not edge and enough else []
    trusted, rows = [t.value for t in joined] or [Trust.SUMS.value], rows_for(wanted)
    finite = [e for e in wanted.epsilons if math.isfinite(e)]
    without = not edge or len(finite) < len(wanted.epsilons)
    return {
        "edge": edge,
        "choices": choices,
        "left_out": min(_LEFT_OUT if wanted.size.spare else 1, data.clients),
        "trust": trusted,
        "budgets": _numbers(wanted.epsilons),
        "quick_budgets": _numbers([*([max(finite)] if finite else []), *([math.inf] if without else [])]),
        "rows": _as_yaml([(_entry(n, d, trusted[0], 0, True), d.comment) for n, d in rows], _one(wanted)),
        "quick_settings": [(f"{i}.{key}", fewer) for i, (_, d) in enumerate(rows) for key, fewer in d.quick.items()],
    }


def _entry(method: str, draft: _Draft, trust: str, cheaper: int, owned: bool) -> dict[str, object]:
    """The entry of ``methods``. trust: where comparisons run. cheaper: which of its settings.

    What is never private differs by chance alone between seeds and levels of trust: it runs once, at one of them. Where owners
    are compared (``owned``) it is what they have alone, and runs as often as the others.
    """
    once: dict[str, object] = {"trust": [trust]} if draft.compared else {}
    if once and method_kinds.load(method).OFFERS.never_private and not owned:
        once["seeds"] = 1
    return {"method": method, **draft.settings, **draft.cheaper[min(cheaper, len(draft.cheaper) - 1)][1], **once}


def _numbers(epsilons: Sequence[float]) -> list[str]:
    return [f"{epsilon:g}" for epsilon in epsilons]


def _as_yaml(rows: Sequence[tuple[Mapping[str, object], str]], one: str, indent: int = 6) -> str:
    """Entries with their comments, one a line. one: what a node is called."""
    lines = ((f"{' ' * indent}- {_as_line(entry)}", in_words_of(one, comment)) for entry, comment in rows)
    return "\n".join(f"{line.ljust(_COMMENT_AT)}   # {comment}" for line, comment in lines)


def _as_line(value: object) -> str:
    """One line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return text.strip().removesuffix("...").strip()
