"""What a sheet says of a row's price, computed anew from the ledger lines in its cells: it signs nothing that it only reads."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

from fedgraph.cells.entry import Entry
from fedgraph.errors import DataError, PrivacyError
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.lines import Line
from fedgraph.privacy.settle import again
from fedgraph.privacy.units import Protection, Viewer
from fedgraph.report import attacks
from fedgraph.report.report_rows import Row, lower_bound, rounded

STD = re.compile(r"standard deviation (\d[\d.e+-]*)")  # in the words of a mechanism
ADDED_UP = {
    Viewer.CURATOR_TRUSTED: "at the curator, who adds up the rows of all people and the noise once",
    Viewer.SERVER_SECURE_AGGREGATION: "each client adds up its own people and its share of the noise; the server reads only "
    "the sum over the clients that answered",
    Viewer.SERVER: "each client adds up its own people and all of the noise; the server reads every message",
    Viewer.ACTIVE_SERVER: "each client adds up its own people and all of the noise; the server reads every message",
    Viewer.WORLD: "nowhere: each person adds noise before anything leaves",
}


def require_price(folder: Path, row: Row) -> None:
    """``DataError`` in one line where a cell of the row states another ε, of everything or of a path, than its ledger costs."""
    for entry in row.entries:
        name = f"{folder}: the cell of {entry.method} · {entry.variant}, seed {entry.seed},"
        try:
            account, lines = ledger_of(entry)
            costs = {"": again(account, lines).epsilon} | {path: again(account, lines, path).epsilon for path in entry.paths}
        except (ValueError, KeyError, TypeError, PrivacyError) as error:
            raise DataError(f"{name} holds no ledger that can be priced ({' '.join(str(error).split())[:200]})") from error
        if (account.protection, account.delta) != (entry.protection, entry.delta) or {line.path for line in lines} != {
            *entry.paths
        }:
            raise DataError(f"{name} states another guarantee than its ledger; it was edited, and nothing was written")
        for path, cost in costs.items():
            stated = entry.paths[path] if path else entry.epsilon_provable
            if not math.isclose(stated, cost, rel_tol=1e-6):
                of = f" of the path {path!r}" if path else ""
                raise DataError(f"{name} states ε = {stated:.4g}{of}, and its ledger costs ε = {cost:.4g}; it was edited")


def ledger_of(entry: Entry) -> tuple[Account, list[Line]]:
    """The account of the cell and its releases. ``ValueError`` and the like where it has none."""
    first, *others = (json.loads(line) for line in entry.ledger)
    return Account.from_dict(first), [Line.from_dict(line) for line in others]


def shares(row: Row, protection: Protection) -> Iterator[tuple[str, str]]:
    """Sensitivity, noise of one client, and what is added up where, of each kind of release."""
    yield "What is added up where", ADDED_UP[protection.viewer]
    secure = protection.viewer is Viewer.SERVER_SECURE_AGGREGATION
    colluders = (protection.colluders or 1) if secure else 0
    for line in {(line.path, line.mechanism): line for line in ledger_of(row.head)[1]}.values():
        found, multiplier = STD.search(line.mechanism), vars(line.event).get("noise_multiplier")
        if found is None or not isinstance(multiplier, float) or not multiplier:
            yield f"Sensitivity on the path {line.path}", f"in the price: {line.event}"
            continue
        share, clients = float(found[1]), row.head.facts.clients or 1
        hiding = clients - colluders if secure else 1
        total = share * math.sqrt(hiding)
        behind = f"; the shares of {hiding} of {clients} clients hide one person: {total:.4g}" if secure else ""
        yield (
            f"Sensitivity on the path {line.path}",
            f"Δ₂ = {total / multiplier:.4g}: noise of standard deviation {share:.4g} at each client{behind}; "
            f"noise / Δ₂ = {multiplier:.4g}",
        )


def delta_words(row: Row, people: int) -> str:
    """What δ allows, where it is not far below one over the number of people (0: unknown) who trained; else empty."""
    delta = row.head.delta or 0.0
    if delta * people < 0.01:
        return ""
    allowed = (
        "publishes one of them, drawn at random, in full"
        if delta * people >= 1 - 1e-9
        else (f"publishes one of them in full with probability {delta * people:.2g}")
    )
    return (
        f"δ = {delta:.3g} of {people:,} people: a method that {allowed}, and does nothing else, keeps this ε. "
        f"Choose δ far below 1/{people:,}"
    )


def measured(row: Row) -> str:
    """The lower bound of an attack, and what it rests on."""
    found = attacks.describe_bound(row).removeprefix("measured by an attack").lstrip(" :")
    if row.measured is None or row.attack.estimator != "curve":
        return found
    plain = lower_bound(tuple(row.attacked), row.head.delta or 0.0, "counting")
    return (
        f"{found}. This refutes curves of Gaussian noise only, which the ledger says it is; without that assumption the same "
        f"guesses give ε ≥ {rounded(math.floor(plain * 100) / 100, 2)}"
    )
