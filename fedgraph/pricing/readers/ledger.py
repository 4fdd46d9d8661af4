"""Our own ledger (``ledger.jsonl`` of a run): what was really released, priced by the same accountant as the report."""

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing.base import Reading, Row, no_claim
from fedgraph.pricing.documents import Document
from fedgraph.privacy import explain
from fedgraph.privacy.accounting.accountant import Price
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.settle import again
from fedgraph.privacy.units import Unit


def read(document: Document) -> Reading:
    """One row per cell, the dearest first."""
    try:
        ledger = explain.read(document.path)
    except PrivacyError as error:
        raise PricingError(str(error)) from None
    if not ledger.accounts:
        raise PricingError(f"{document.path}:1: the ledger is empty: nothing was released")
    priced = sorted(((again(a, ledger.of(a.cell)), a) for a in ledger.accounts), key=lambda pair: -pair[0].epsilon)
    assumptions = {a.value: a.words for account in ledger.accounts for a in account.protection.assumptions}
    return Reading(
        tuple(_row(paid, account) for paid, account in priced),
        no_claim(f"{len(ledger.accounts)} cells; each row is one, counted for its worst unit"),
        order=tuple(f"assuming {name}: {words}" for name, words in sorted(assumptions.items())),
        no_fix="a ledger is history; change the scenario's epsilons and run again",
    )


def _row(paid: Price, account: Account) -> Row:
    said = account.protection
    relation = said.relation.value if said.unit is Unit.EDGE else said.relation.value.removeprefix(f"{said.unit.value}-")
    words = f"cell {account.cell}"
    return Row(said.unit.value, relation, said.viewer.words, lambda rounds, delta: paid, 1, account.delta, words)
