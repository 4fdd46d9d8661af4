"""A quote as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from fedgraph.pricing.base import Priced, Quote, written_epsilon

WIDTH = 110


def printed(quote: Quote) -> str:
    """Published, provable, unprotected, questions, fix; lines of at most ``WIDTH`` columns."""
    return "\n".join(_lines(quote))


def _lines(quote: Quote) -> Iterator[str]:
    reading = quote.reading
    yield f"{quote.path}: {quote.system.name} (reader written for {quote.system.version})"
    if reading.published:
        for said in reading.published:
            claim = "no ε" if said.epsilon is None else f"ε = {written_epsilon(said.epsilon)}"
            at = "" if said.delta is None else f" at δ = {said.delta:g}"
            yield from _wrapped("published  ", f"{claim}{at}, {said.scope}: {said.words}")
    else:
        yield "published  – (the file claims no ε)"
    yield ""
    yield f"  {'ε':>10} {'per round':>10}  {'unit':<8} {'relation':<10} seen by"
    for priced in quote.rows:
        yield from _row(priced)
    said_in_turn = {
        "assumed    ": reading.assumed,
        "order      ": reading.order,
        "unprotected": reading.unprotected,
        "not priced ": reading.not_priced,
    }
    for title, sentences in said_in_turn.items():
        for sentence in sentences:
            yield from _wrapped(title, sentence)
    for asked in quote.asked:
        yield from _wrapped("question   ", asked.unknown.question)
        used = f" (the total above takes {asked.unknown.worst:g})" if asked.unknown.worst is not None else ""
        cells = " | ".join(f"{value:g} → {written_epsilon(epsilon)}" for value, epsilon in asked.answers)
        yield from _wrapped("           ", f"{asked.unknown.name} → ε: {cells}{used}")
    if quote.fix is not None:
        yield from _wrapped("fix        ", _fix(quote))
    if quote.system.said:
        yield from _wrapped("authors say", quote.system.said)
    yield from _wrapped("source     ", quote.system.source)


def _row(priced: Priced) -> Iterator[str]:
    row = priced.row
    mark = "≥ " if row.kind == "lower bound" else ""
    total = "?" if priced.total is None else mark + written_epsilon(priced.total.epsilon)
    yield f"  {total:>10} {mark + written_epsilon(priced.per_round.epsilon):>10}  {row.unit:<8} {row.relation:<10} {row.viewer}"
    theorem = (priced.total or priced.per_round).theorem
    times = f"{row.rounds:,} round{'s' if row.rounds != 1 else ''}, δ = {row.delta:g}"
    yield from _wrapped("             ", f"{row.why}; {times}; {theorem}", "")


def _fix(quote: Quote) -> str:
    fix = quote.fix
    if fix is None or fix.settings is None:
        return f"ε = {written_epsilon(fix.target if fix else None)}: none — {fix.why if fix else ''}"
    pairs = [f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}" for name, value in fix.settings.items()]
    settings = ", ".join(pairs)
    return f"ε = {written_epsilon(fix.target)} is bought by {settings} (provable {written_epsilon(fix.epsilon)}): {fix.why}"


def _wrapped(title: str, sentence: str, gap: str = "  ") -> Iterator[str]:
    head = title + gap
    words = " ".join(sentence.split())
    yield from textwrap.wrap(words, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False)
