"""A quote as JSON. ∞ is the string ``"inf"``, as in results.json; an ε that a missing fact leaves open is null."""

import math

from fedgraph.pricing.base import Json, Priced, Published, Quote
from fedgraph.privacy.accounting.accountant import Price


def quoted(quote: Quote, details: bool = False) -> dict[str, Json]:
    """total, per_round, published, unprotected, questions; with ``details`` also every row, the source and the fix."""
    top, reading, system, fix = quote.headline, quote.reading, quote.system, quote.fix
    published: list[Json] = [_published(p) for p in reading.published]
    out: dict[str, Json] = {
        "total": _price(top, top.total),
        "per_round": _price(top, top.per_round),
        "published": published[0] if published else None,
        "unprotected": [*reading.unprotected, *(f"not priced: {name}" for name in reading.not_priced)],
        "questions": [
            {"missing": a.unknown.name, "question": a.unknown.question,
             "table": [{a.unknown.name: value, "epsilon": _number(epsilon)} for value, epsilon in a.answers]}
            for a in quote.asked
        ],
    }  # fmt: skip
    if fix is not None:
        settings: Json = None if fix.settings is None else {name: _number(value) for name, value in fix.settings.items()}
        out["fix"] = {"epsilon": fix.target, "settings": settings, "provable": _number(fix.epsilon), "why": fix.why}
    if details:
        out["details"] = {
            "file": quote.path, "system": system.name, "version": system.version, "source": system.source,
            "authors_say": system.said, "published": published, "assumed": list(reading.assumed),
            "order": list(reading.order), "guarantees": [_row(p) for p in quote.rows],
        }  # fmt: skip
    return out


def _number(value: float | int | str | None) -> Json:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _price(row: Priced, price: Price | None) -> dict[str, Json]:
    open_total = "a missing fact leaves the total open: see questions"
    return {
        "epsilon": None if price is None else _number(price.epsilon),
        "delta": row.row.delta if price is None else price.delta,
        "unit": row.row.unit,
        "relation": row.row.relation,
        "theorem": open_total if price is None else f"{price.accountant}: {price.theorem}",
    }


def _published(said: Published) -> Json:
    return {"epsilon": _number(said.epsilon), "delta": said.delta, "scope": said.scope, "words": said.words}


def _row(priced: Priced) -> Json:
    row, total = priced.row, priced.total
    return {
        "unit": row.unit, "relation": row.relation, "viewer": row.viewer, "kind": row.kind, "rounds": row.rounds,
        "delta": row.delta, "per_round": _number(priced.per_round.epsilon),
        "total": None if total is None else _number(total.epsilon), "why": row.why,
    }  # fmt: skip
