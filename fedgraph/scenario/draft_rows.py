"""The rows of ``methods`` in a drafted scenario: those that the methods themselves offer for this data and unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import yaml

from fedgraph import plugins
from fedgraph.methods.base import Draft, kinds

COMMENT_AT = 52  # column at which a short row's comment begins


def offered(data: Literal["graph", "federation"], unit: str, crossing: int = 0) -> list[tuple[str, Draft]]:
    """(method, row) of every row that fits (``Offers.drafts``), methods by name, comparisons last.

    Args:
        data: one graph that is dealt to clients, or a federation of one's own.
        unit: what the guarantee protects, ``node`` or ``edge``.
        crossing: number of edges between clients; where there are some, rows that cannot use them are left out.
    """
    every = [(name, draft) for name in plugins.names("methods") for draft in kinds.method(name).OFFERS.drafts]
    fitting = [(n, d) for n, d in every if d.data == data and d.unit == unit and (d.crossing or not crossing)]
    return sorted(fitting, key=lambda row: row[1].compared)


def as_yaml(rows: Sequence[tuple[str, Draft]], trust: str | None = None) -> str:
    """The rows as YAML, indented for ``methods:``. trust: where comparisons run; None: wherever the others do."""
    lines = []
    for method, draft in rows:
        once = {"trust": [trust]} if trust is not None and draft.compared else {}
        entry = {"method": method, **draft.settings, **once}
        text = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True).strip()
        lines.append(f"      - {text}".ljust(COMMENT_AT) + f"   # {draft.comment}")
    return "\n".join(lines)
