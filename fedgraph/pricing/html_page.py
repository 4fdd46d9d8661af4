"""Quotes as one self-contained page: no script, no link outwards, readable in the dark and on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from fedgraph.pricing.base import Quote, shown


def of(quotes: Sequence[Quote]) -> str:
    """The page as text."""
    import jinja2  # only a page needs it

    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        resources.files("fedgraph.pricing").joinpath("page.html").read_text(encoding="utf-8")
    )
    return template.render(quotes=quotes, shown=shown)
