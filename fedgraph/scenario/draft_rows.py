"""The rows of ``methods`` in a drafted scenario: those that the methods themselves offer for this data and unit."""

from collections.abc import Mapping, Sequence
from typing import Literal

import yaml

from fedgraph import plugins
from fedgraph.methods.base import Draft, kinds
from fedgraph.scenario.wanted import delta_for

COMMENT_AT = 52  # column at which a short row's comment begins


def offered(
    data: Literal["graph", "federation"], unit: str, crossing: int = 0, protocol: str | None = None
) -> list[tuple[str, Draft]]:
    """(method, row) of every row that fits (``Offers.drafts``), methods by name, comparisons last.

    Args:
        data: one graph that is dealt to clients, or a federation of one's own.
        unit: what the guarantee protects, ``node`` or ``edge``.
        crossing: number of edges between clients; where there are some, rows that cannot use them are left out.
        protocol: methods that do not serve it are left out.
    """
    every = [(name, kinds.method(name).OFFERS) for name in plugins.names("methods")]
    fitting = [
        (name, draft)
        for name, offers in every
        if protocol is None or any(situation.given == protocol for situation in offers.situations)
        for draft in offers.drafts
        if draft.data == data and draft.unit == unit and (draft.crossing or not crossing)
    ]
    return sorted(fitting, key=lambda row: row[1].compared)


def entry_of(method: str, draft: Draft, trust: str | None, cheaper: int = 0) -> dict[str, object]:
    """The entry of ``methods``. trust: where comparisons run; None: wherever the others do. cheaper: which of its settings.

    What is never private differs by chance alone between seeds and levels of trust: it runs once, at one of them.
    """
    once: dict[str, object] = {"trust": [trust]} if trust is not None and draft.compared else {}
    if once and kinds.method(method).OFFERS.never_private and draft.data == "graph":
        once["seeds"] = 1
    return {"method": method, **draft.settings, **draft.cheaper[min(cheaper, len(draft.cheaper) - 1)][1], **once}


def delta_line(people: int) -> str:
    """δ, and what it means to all of them."""
    why = f"δ: that the guarantee fails for anybody of all {people:,} has a chance of 1 in 10 at most"
    return f"delta: {delta_for(people):.0e}                 # {why}"


def as_yaml(rows: Sequence[tuple[Mapping[str, object], str]], indent: int = 6) -> str:
    """Entries with their comments, one a line."""
    return "\n".join(f"{' ' * indent}- {as_line(entry)}".ljust(COMMENT_AT) + f"   # {comment}" for entry, comment in rows)


def as_line(value: object) -> str:
    """One line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return text.strip().removesuffix("...").strip()
