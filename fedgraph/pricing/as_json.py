"""A quote as JSON. ∞ is the string ``"inf"``, as in results.json; an ε that a missing fact leaves open is null."""

from __future__ import annotations

import math
from typing import TypeAlias

from fedgraph.pricing.base import Asked, Priced, Published, Quote
from fedgraph.privacy.accounting.accountant import Price

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def of(quote: Quote, details: bool = False) -> dict[str, Json]:
    """total, per_round, published, unprotected, questions; with ``details`` also every row, the source and the fix."""
    top = quote.headline
    published = quote.reading.published
    questions: list[Json] = [_asked(a) for a in quote.asked]
    out: dict[str, Json] = {
        "total": _price(top, top.total),
        "per_round": _price(top, top.per_round),
        "published": _published(published[0]) if published else None,
        "unprotected": [*quote.reading.unprotected, *(f"not priced: {name}" for name in quote.reading.not_priced)],
        "questions": questions,
    }
    if quote.fix is not None:
        fix = quote.fix
        settings: Json = None if fix.settings is None else {name: number(value) for name, value in fix.settings.items()}
        out["fix"] = {"epsilon": fix.target, "settings": settings, "provable": number(fix.epsilon), "why": fix.why}
    if details:
        out["details"] = {
            "file": quote.path,
            "system": quote.system,
            "version": quote.version,
            "source": quote.source,
            "authors_say": quote.said,
            "published": [_published(p) for p in published],
            "assumed": list(quote.reading.assumed),
            "order": list(quote.reading.order),
            "guarantees": [_row(p) for p in quote.rows],
        }
    return out


def number(value: float | int | str | None) -> Json:
    """A number that every JSON parser takes; ∞ is ``"inf"``."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _price(row: Priced, price: Price | None) -> dict[str, Json]:
    open_total = "a missing fact leaves the total open: see questions"
    return {
        "epsilon": None if price is None else number(price.epsilon),
        "delta": row.row.delta if price is None else price.delta,
        "unit": row.row.unit,
        "relation": row.row.relation,
        "theorem": open_total if price is None else f"{price.accountant}: {price.theorem}",
    }


def _published(said: Published) -> dict[str, Json]:
    return {"epsilon": number(said.epsilon), "delta": said.delta, "scope": said.scope, "words": said.words}


def _asked(asked: Asked) -> dict[str, Json]:
    table: list[Json] = [{asked.unknown.name: value, "epsilon": number(epsilon)} for value, epsilon in asked.answers]
    return {"missing": asked.unknown.name, "question": asked.unknown.question, "table": table}


def _row(priced: Priced) -> dict[str, Json]:
    row = priced.row
    return {
        "unit": row.unit,
        "relation": row.relation,
        "viewer": row.viewer,
        "kind": row.kind,
        "rounds": row.rounds,
        "delta": row.delta,
        "per_round": number(priced.per_round.epsilon),
        "total": None if priced.total is None else number(priced.total.epsilon),
        "why": row.why,
    }
