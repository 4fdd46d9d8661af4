"""A project in use: an owner's tables become its site file, and the server's folder (``out``) becomes a model.

Tables are read at the owner, as everybody's are. The model has the price of what was released until then.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedgraph import data
from fedgraph.data import ReadRules
from fedgraph.errors import DataError
from fedgraph.export import deployable, site
from fedgraph.export.site import SitePlan
from fedgraph.methods import Plan
from fedgraph.models import Model, fit, match_columns
from fedgraph.pricing import EXPORTED_MANIFEST, exported_plan
from fedgraph.privacy import LedgerLine, budget_book, ledger
from fedgraph.types import Graph, Subgraph


def read_app(app: Path) -> tuple[SitePlan, Path]:
    """(what is agreed, the file of the plan) of an exported project, or of the folder of an answer.

    Raises:
        DataError: neither is there, or the plan is not the one of the manifest.
    """
    manifest = app / EXPORTED_MANIFEST
    if not manifest.is_file():
        if not (app / "plan.json").is_file():
            raise DataError(f"{app}: no project of fedgraph export, and no folder that a deployment wrote")
        return site.read_agreed_plan(app / "plan.json"), app / "plan.json"
    try:
        said = json.loads(manifest.read_text(encoding="utf-8"))
        plan = app / exported_plan(said["framework"])
        return site.read_agreed_plan(plan, said["plan_sha256"]), plan
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{manifest}: not as fedgraph export writes it ({type(error).__name__}: {error})") from error


def write_site(tables: Path, app: Path, client: int, out: Path) -> str:
    """Write the site file of an owner, the client of this number, of its own tables; say in one sentence what was written.

    Columns and classes are matched by name with the agreed ones. The owner may have fewer people than was planned, which is an
    upper bound: empty places are filled with nodes of nobody, which add nothing.

    Raises:
        DataError: tables that cannot be read, an unknown column or class, more people than were planned, or no such client.
        PrivacyError: the owner's budget cannot be read, or somebody is not in it.
    """
    agreed, plan = read_app(app)
    facts = agreed.plan.facts
    if not 0 <= client < facts.num_clients:
        raise DataError(f"client {client}; allowed: 0 … {facts.num_clients - 1}, as agreed who is which")
    rules = {key: value for key, value in agreed.reading.items() if key in ReadRules.model_fields}
    found = data.read(tables, columns=rules).graph
    if not isinstance(found, Graph):
        raise DataError(f"{tables}: a collection of graphs; allowed: one graph of people")
    most = facts.clients[client]
    if found.num_nodes > most:
        raise DataError(
            f"{tables}: {found.num_nodes:,} people; planned for client {client}: at most {most:,}. Plan again with more"
        )
    graph = match_columns(_with_classes(found, agreed, tables), agreed.names.columns, facts.num_features)
    first = sum(facts.clients[:client])
    book = budget_book.find(None, tables)
    place = budget_book.absolute(book or f"{str(tables).rstrip('/')}.budget")
    held = Subgraph(client, graph, np.arange(first, first + found.num_nodes))
    if book is not None:
        charged = f"charged to {place}{_refusal(agreed, held, plan, place)}"
    elif budget_book.is_lost(place):
        charged = f"charged to {place}, which was deleted (the hash of its last line is there), so that it would be refused"
    else:
        charged = f"charged to {place}, which is made with the ε of the plan as its cap"
    site.write_site_file(out, held, budget=place)
    digest = hashlib.sha256(out.read_bytes()).hexdigest()[:12]
    return f"{found.num_nodes:,} people of at most {most:,}, client {client}, SHA-256 {digest}; what it releases is {charged}"


def _refusal(agreed: SitePlan, held: Subgraph, plan: Path, place: str) -> str:
    """What a book says to a new deployment: nothing where it is allowed."""
    paid, cap = site.price_of_another(agreed, held, site.digest_of(plan), place)
    if paid <= cap:
        return ""
    again = "one that is charged already goes on"
    return f", where a new deployment would be refused: one person would have paid ε = {paid:.4g} of {cap:g} ({again})"


def _with_classes(graph: Graph, agreed: SitePlan, tables: Path) -> Graph:
    """With labels as the plan numbers them."""
    known, own = agreed.names.classes, graph.names.classes
    if not known:
        if graph.num_classes > agreed.plan.facts.num_classes:
            raise DataError(f"{tables}: {graph.num_classes} classes; planned: {agreed.plan.facts.num_classes}")
        return replace(graph, num_classes=agreed.plan.facts.num_classes)
    if unknown := [name for name in own if name not in known]:
        raise DataError(f"{tables}: the class {unknown[0]!r} is not planned; allowed: {', '.join(known)}")
    place = np.array([*(known.index(name) for name in own), -1], dtype=np.int64)
    return replace(graph, labels=place[graph.labels], num_classes=len(known), names=replace(graph.names, classes=known))


def open_model(answer: Path) -> Model:
    """The model of a deployment, as ``fedgraph fit`` makes one, of the folder that its server wrote.

    Its ε is that of every release that was made: of rounds that were merged, of rounds that were left out, and of the round
    that was asked last, in which some clients may have answered. ``DataError`` for another folder, or one whose plan and state
    do not belong together.
    """
    agreed, file = read_app(answer)
    digest = site.digest_of(file)
    found = site.read_site_progress(answer, digest)
    if found is None:
        raise DataError(f"{answer}: holds no state.json; allowed: the folder 'out' of a deployment")
    state, deployment, done, left_out = found
    plan, rounds = agreed.plan, agreed.plan.schedule.rounds
    begun = next((r for r in range(rounds) if r not in done and r not in left_out), None)
    released = sorted({*done, *left_out, *([] if begun is None else [begun])})
    said = [f"{len(done)} of {rounds} rounds were merged, in the deployment {deployment[:8]}."]
    if left_out:
        said.append(f"Rounds {', '.join(map(str, left_out))} were left out, since a client was away; they are paid.")
    if begun is not None:
        said.append(f"The deployment is not at its end: round {begun} is counted as released.")
    lines = _released_lines(plan, agreed.cohorts, released)
    protection = replace(plan.guarantee.protection, assumptions=deployable.assumed(plan.guarantee.protection))
    plan = replace(plan, guarantee=replace(plan.guarantee, protection=protection))
    return fit.of_deployment(agreed.row, plan, state, agreed.names, agreed.reading, lines, (*said, *agreed.said))


def _released_lines(plan: Plan, cohorts: tuple[tuple[int, ...], ...], rounds: list[int]) -> list[LedgerLine]:
    """The lines of a ledger for everything that the plan releases in some rounds, each client in those that ask it."""
    lines = []
    for release in plan.schedule.releases:
        words = release.mechanism.words
        for round_ in (r for r in rounds if r in release.rounds):
            who = ledger.spans(k for k in site.asked_clients(plan, cohorts, round_) if release.client in (None, k))
            lines.append(
                LedgerLine("deployment", release.path, who, ((round_, round_),), release.per_round, words, release.event)
            )
    return list(ledger.merged(lines))
