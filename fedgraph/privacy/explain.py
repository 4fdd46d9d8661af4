"""A ledger file in plain words: the guarantee, the releases, the theorem and the running total.

A summary has one line per cell. Then each cell has: what is protected, between which neighbouring worlds, from whom, and under
which assumptions; its releases in the order of their first rounds, equal ones as one line; after each line the ε of the worst
unit so far, for its path and in total; at the end the theorem and the unit of the price.

**Guarantee.** Prices are those of ``accountant`` for the releases of the ledger, and of nothing that a viewer received outside
it. Disjoint clients: the worst client. ``holders``: the clients that hold the worst node compose. An account with
``sampled_once`` is priced inside that secret one-time sample.

**Edge cases.** A cell without releases → ε = 0. A file that is missing, not UTF-8 or damaged →
``PrivacyError`` naming file and line.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events, ledger, settle
from fedgraph.privacy.accounting.accountant import Epsilon
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerLine, LedgerSpans
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit

_MOST_PARTS = 4  # parts of an event that are listed
_EVENT_WORDS: dict[type[events.Event], str] = {
    events.Gaussian: "Gaussian noise, {noise_multiplier:.4g} times the sensitivity",
    events.Laplace: "Laplace noise, its scale {noise_multiplier:.4g} times the sensitivity",
    events.RandomizedResponse: "one of {num_values} values by randomized response, ε = {epsilon:.4g}",
    events.MultiBit: "{num_bits} randomized bits, ε = {epsilon_per_bit:.4g} each",
    events.BoundedRange: "one pick of an exponential mechanism, of range {epsilon:.4g}",
    events.PureDP: "a mechanism of ε = {epsilon:.4g}",
    events.ApproxDP: "a mechanism of ε = {epsilon:.4g} with δ = {delta:.3g}",
    events.PoissonGaussian: "Gaussian noise, {noise_multiplier:.4g} times the clip, on a sum of rows, each drawn with rate "
    "{sampling_rate:.4g}; one unit is in at most {touched_rows}",
    events.FixedSizeGaussian: "Gaussian noise, {noise_multiplier:.4g} times the clip, on a batch of {batch_size:,} of "
    "{num_rows:,} rows; one unit is in at most {touched_rows}",
    events.EpochGaussian: "Gaussian noise, {noise_multiplier:.4g} times the clip, on each of {num_batches:,} fixed batches in "
    "one pass over the rows; one unit is in at most {touched_rows}",
    events.MentionedGaussian: "noise, {noise_multiplier:.4g} times the clip, on a sum of rows, each drawn with rate "
    "{sampling_rate:.4g}; a unit may be mentioned in {others:,} others, by coins of {mention_rate:.4g} (heavy tails: {heavy})",
    events.SampledOnce: "on one secret sample of rate {sampling_rate:.4g}: {parts}",
    events.Repeated: "{count:,} times ({parts})",
    events.Composed: "all of ({parts})",
    events.OneOf: "one of these, as earlier releases say ({parts})",
    events.PartOf: "{parts}; part of a choice that is priced as a whole, whichever way it goes",
    events.Selected: "the best of a secret number of trials (shape {shape:g}, stop {stop:.4g}); one trial is one of ({parts})",
    events.Unprotected: "sent in clear, ε = ∞: {reason}",
}
_MOST_RUNNING = 50  # lines of a cell up to which a running total is shown after each


def read(path: Path) -> Ledger:
    """The ledger in ``path``; ``PrivacyError`` in one line if it cannot be read."""
    try:
        return Ledger.read(path)
    except OSError as error:
        raise PrivacyError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PrivacyError(f"{path}: not a ledger: not UTF-8 text") from error


_Say = Callable[[str, str], str]  # (what a node is called, a text of nodes and edges) → the text in these words


def in_words(ledger: Ledger, cell: str | None = None, say: _Say = lambda one, text: text) -> str:
    """One line per cell with its total, then every cell in words; with ``cell`` only cells whose name contains it.

    ``say`` replaces node and edge by the words of the data (``types.in_words_of``); names stay as they are.

    Raises ``PrivacyError`` if no cell's name contains ``cell``.
    """
    if not ledger.accounts:
        return "The ledger is empty: nothing was released."
    accounts = [a for a in ledger.accounts if cell is None or cell in a.cell or cell in _in_words(a.cell)]
    if not accounts:
        raise PrivacyError(
            f"no cell is called {cell!r}, in whole or in part; the first of {len(ledger.accounts)}: "
            f"{_in_words(ledger.accounts[0].cell)}"
        )
    summary = "\n".join(_summary(ledger, accounts, say))
    cells = ("\n".join(_cell(a, ledger.of(a.cell), functools.partial(say, a.one))) for a in accounts)
    return "\n\n".join([summary, *cells])


def _releases(count: int) -> str:
    return "1 release" if count == 1 else f"{count:,} releases"


def _in_words(cell: str) -> str:
    """The name of a cell for people, without the escapes of ``ledger.account_name``.

    >>> _in_words("mine/own%2Fcsv/features")
    'mine · own/csv · features'
    """
    return cell.replace("/", " · ").replace("%2F", "/").replace("%25", "%")


def _ranges(found: LedgerSpans) -> str:
    """Ranges in words.

    >>> _ranges(((0, 2), (5, 5), (7, 8)))
    '0–2, 5, 7–8'
    """
    shown = [str(a) if a == b else f"{a}–{b}" for a, b in found]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:10], f"… ({len(shown) - 11} more ranges)", shown[-1]])


def _summary(ledger: Ledger, accounts: Sequence[LedgerAccount], say: _Say) -> Iterator[str]:
    count = "1 cell" if len(accounts) == 1 else f"{len(accounts)} cells"
    yield f"{count}, one for each method, trust, ε and seed. Each ε is of one cell: two on the same people cost more."
    for account in accounts:
        lines = ledger.of(account.cell)
        total = sum(line.count for line in lines)
        unit, trust = say(account.one, account.protection.unit.value), Trust.against(account.protection.viewer).value
        paid = _epsilon(settle.of_account(account, lines))
        yield f"  {_in_words(account.cell)}: {paid} at δ = {account.delta:g} per {unit}, trust {trust}; {_releases(total)}"


def _cell(account: LedgerAccount, lines: Sequence[LedgerLine], say: Callable[[str], str]) -> Iterator[str]:
    yield f"Cell {_in_words(account.cell)}"
    yield from _guarantee(account, say)
    yield "  Releases:" if lines else "  Releases: none."
    for number, line in enumerate(lines, 1):
        so_far = lines[:number]
        own = _epsilon(settle.of_account(account, so_far, line.path))
        count = _releases(line.count)
        who = f"rounds {_ranges(line.rounds)}, clients {_ranges(line.clients)}"
        yield f"    {line.path}: {who}: {say(line.mechanism)}, {count}"
        yield f"      one costs: {say(event_words(line.event))}"
        if len(lines) <= _MOST_RUNNING:
            yield f"      so far: {line.path} {own}; everything {_epsilon(settle.of_account(account, so_far))}"
    for path in dict.fromkeys(line.path for line in lines):
        paid = settle.of_account(account, lines, path)
        yield f"  Path {path}: {_epsilon(paid)} — {say(paid.theorem)}"
    paid = settle.of_account(account, lines)
    yield f"  Total: {_epsilon(paid)} at δ = {account.delta:g}, by {paid.accountant}: {say(paid.theorem)}"


def _guarantee(account: LedgerAccount, say: Callable[[str], str]) -> Iterator[str]:
    protection = account.protection
    yield f"  Protected: one {say(protection.unit.value)}."
    yield f"  Neighbouring worlds ({protection.relation.value}): {say(protection.neighbours)}."
    yield f"  From: {say(protection.viewer.words)} ({protection.viewer.value})."
    yield f"  δ = {account.delta:g}. Assuming:" + (" nothing further." if not protection.assumptions else "")
    for assumption in protection.assumptions:
        yield f"    - {assumption.value}: {say(protection.sentence(assumption))}"
    if account.broken is not None:
        yield f"  A promise is broken, so nothing can be proven: {say(account.broken)}"
    if account.holders is not None:
        if protection.unit is Unit.EDGE:
            where = " and ".join(str(client) for client in account.holders)
            ends = say("Events price one end of an edge; the worst edge has its ends")
            yield f"  {ends} at clients {where}, and they compose."
        else:
            held = _ranges(ledger.spans(account.holders))
            yield f"  {say('The worst node')} is held by clients {held}; their releases compose."
    if account.sampled_once is not None:
        yield f"  All of it ran on a secret sample, drawn once with rate {account.sampled_once:g}, which amplifies the total."


def _epsilon(paid: Epsilon) -> str:
    return "ε = ∞" if math.isinf(paid.epsilon) else f"ε = {paid.epsilon:.6g}"


def event_words(event: events.Event) -> str:
    """An event in words: what was done, and the numbers that its price depends on."""
    inside: tuple[events.Event, ...] = ()
    if isinstance(event, events.Composed):
        inside = event.events
    elif isinstance(event, events.OneOf):
        inside = event.alternatives
    elif isinstance(event, events.Selected):
        inside = event.candidates
    elif isinstance(event, events.SampledOnce | events.Repeated | events.PartOf):
        inside = (event.event,)
    parts = [event_words(one) for one in dict.fromkeys(inside)]
    shown = parts if len(parts) <= _MOST_PARTS else [*parts[:_MOST_PARTS], f"and {len(parts) - _MOST_PARTS} more"]
    return _EVENT_WORDS.get(type(event), type(event).__name__).format(**vars(event) | {"parts": "; ".join(shown)})
