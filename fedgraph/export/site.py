"""What an exported project uses of fedgraph: the exact, bounded values of one client, and what the server keeps.

Values leave ``Site.bounded`` without noise. The project's own ``private_sums.py`` adds it, in the same process, before anything
is sent; only answers that each record randomises by itself (randomised response) are drawn here. Every private random number,
here as there, comes from the operating system.

A plan, a state or a graph travels as one file of text without code (``models.model_file`` in base 64), since Flower sends text
only. Nothing is unpickled, and no name in it is called (``models.model_file``).
"""

import base64
import contextlib
import csv
import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.errors import DataError, PrivacyError
from fedgraph.methods import Plan, PlanStreams, State, method_kinds
from fedgraph.models import model_file
from fedgraph.privacy import (
    Candidate,
    Desk,
    Disclose,
    GaussianNoise,
    LedgerRelease,
    PlannedRelease,
    Unit,
    budget_book,
)
from fedgraph.types import GraphNames, Subgraph

_T = TypeVar("_T")
_STATE = "state.json"


def write_site_file(path: Path, value: object, **more: object) -> None:
    """``value``, made of frozen records; ``more`` stands beside it, as JSON. The file is whole at every moment."""
    text = base64.b64encode(zlib.compress(model_file.to_bytes(value))).decode()
    made = path.with_name(f".{path.name}.new")
    with made.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"holds": type(value).__name__, **more, "bytes": text}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)


def read_site_file(path: Path, kind: type[_T]) -> _T:
    """The ``kind`` that ``write_site_file`` wrote. ``DataError`` in one line where the file holds none."""
    try:
        found = model_file.parse(zlib.decompress(base64.b64decode(json.loads(path.read_text(encoding="utf-8"))["bytes"])))
    except Exception as error:
        why = " ".join(str(error).split())[:200] if isinstance(error, (OSError, DataError)) else type(error).__name__
        raise DataError(f"{path}: not as fedgraph writes it: {why}") from error
    if not isinstance(found, kind):
        raise DataError(f"{path}: holds {type(found).__name__}; allowed: {kind.__name__}")
    return found


_OUTSIDE = Disclose("noise is added by private_sums.py")


@dataclass(frozen=True, eq=False)
class Site:
    """One client. Its random streams have a secret of their own, from the operating system."""

    plan: Plan  # of all
    subgraph: Subgraph  # its own graph
    work: object  # what the method makes of the graph once
    secret: seeds.SecretSeed = field(default_factory=lambda: seeds.SecretSeed(os.urandom(seeds.SEED_KEY_BYTES)))

    @property
    def client(self) -> int:
        """Its number."""
        return self.subgraph.client

    def bounded(self, model: Mapping[str, np.ndarray], round_: int) -> dict[str, tuple[str, np.ndarray]]:
        """name → (path, value) of what the plan lets this client release in the round: bounded by the desk, without noise."""
        streams = PlanStreams(self.secret, ("site", self.client, round_), self.plan.fingerprint)
        planned = [_in_clear(r) for r in self.plan.schedule.of_client(self.client)]
        desk = Desk("site", self.client, round_, planned, streams.generator("noise"))
        released = method_kinds.load(self.plan.method).client(self.plan, self.work, model, round_, streams, desk)
        entries = {name: value.entry for name, value in released.items()}
        return {n: (e.path, np.asarray(released[n].value)) for n, e in entries.items() if isinstance(e, LedgerRelease)}


def _in_clear(release: PlannedRelease) -> PlannedRelease:
    """The same bound and rounds; Gaussian noise is added outside."""
    return release if not isinstance(release.mechanism, GaussianNoise) else replace(release, mechanism=_OUTSIDE)


@lru_cache(maxsize=4)
def open_site(plan: Path, digest: str, graph: Path) -> Site:
    """The client whose graph lies in the file ``graph``, once per process.

    Raises:
        DataError: the plan is not the one of ``digest`` (SHA-256), or the graph has other columns or nodes than were planned.
    """
    made = read_site_plan(plan, digest)
    subgraph = read_site_file(graph, Subgraph)
    facts, own = made.facts, subgraph.graph
    if not 0 <= subgraph.client < facts.num_clients:
        raise DataError(f"{graph}: client {subgraph.client}; allowed: 0 … {facts.num_clients - 1}")
    found, most = (own.num_features, own.num_classes), facts.clients[subgraph.client]
    if found != (wanted := (facts.num_features, facts.num_classes)) or own.num_nodes > most:
        raise DataError(
            f"{graph}: {own.num_nodes} nodes, {found} columns and classes; planned for client {subgraph.client}: at most "
            f"{most}, {wanted}"
        )
    subgraph = _filled(subgraph, facts.clients)
    return Site(made, subgraph, method_kinds.load(made.method).prepare(made, subgraph))


def _filled(subgraph: Subgraph, clients: Sequence[int]) -> Subgraph:
    """With nodes of nobody behind the own ones, up to the number that was planned: no label, no columns, no edges.

    They take the client's own public numbers (``deployment.write_site``): where each node answers, nobody sees their number.
    """
    most = clients[subgraph.client]
    own, more = subgraph.graph, most - subgraph.graph.num_nodes
    if not more:
        return subgraph
    into = sp.eye_array(most, own.num_nodes, dtype=np.float32, format="csr")
    graph = replace(
        own,
        adjacency=sp.csr_array(into @ own.adjacency @ into.T),
        features=sp.csr_array(into @ own.features),
        labels=np.concatenate([own.labels, np.full(more, -1, dtype=np.int64)]),
        names=replace(own.names, ids=()),
        masks=(),
        validation=None,
        owner=None if own.owner is None else np.concatenate([own.owner, np.zeros(more, dtype=own.owner.dtype)]),
        edge_owners=tuple(sp.csr_array(into @ one @ into.T) for one in own.edge_owners),
    )
    first = sum(clients[: subgraph.client])
    numbers = (np.setdiff1d(part, subgraph.nodes) for part in (np.arange(first, first + most), np.arange(sum(clients))))
    free = np.array(list(dict.fromkeys(np.concatenate(list(numbers)).tolist()))[:more], dtype=np.int64)
    return replace(subgraph, graph=graph, nodes=np.concatenate([subgraph.nodes, free]))


@dataclass(frozen=True, eq=False)
class SitePlan:
    """What is agreed: the plan, and what everybody reads and calls in the same way."""

    plan: Plan  # of all
    names: GraphNames  # of columns and classes; nobody's id
    reading: Mapping[str, object]  # how own tables are read (bounds, texts, empty cells)
    row: str  # what is deployed, in words
    said: tuple[str, ...]  # what is known of its accuracy, one sentence each
    cohorts: tuple[tuple[int, ...], ...] = ()  # the clients of each round; empty where all of them answer in every round


def digest_of(path: Path) -> str:
    """SHA-256 of a file; of none that is there ``no file``."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"


def read_agreed_plan(path: Path, digest: str | None = None) -> SitePlan:
    """What a file of a plan holds. ``DataError`` where its SHA-256 is not ``digest``."""
    found = digest_of(path)
    if digest is not None and found != digest:
        raise DataError(f"{path}: not the plan that was exported ({found[:12]}, not {digest[:12]}); export it again")
    return read_site_file(path, SitePlan)


def read_site_plan(path: Path, digest: str) -> Plan:
    """The plan in a file. ``DataError`` where its SHA-256 is not ``digest``."""
    return read_agreed_plan(path, digest).plan


def charge_site(site: Site, graph: Path, digest: str, deployment: str, cohorts: Sequence[Sequence[int]] = ()) -> None:
    """Charge all that a plan lets this client release in one deployment, before the first of it, and once.

    The book is that of FEDGRAPH_BUDGET; else the one that the file of the graph names (``fedgraph site``: beside the tables);
    else the one beside the graph (``graph.json.budget``). One beside that is not there is made, and its cap is this plan's ε:
    then a second deployment, or another plan, is refused.

    graph: the client's file. digest: SHA-256 of the plan. deployment: what the server drew at its beginning, and what the
    records of these releases are called: records that were lost are charged once more, and so are those of a copy of the
    file, or of other people. cohorts: the clients of each round; none: all of them in every round. ``PrivacyError`` where the
    budget does not allow it.
    """
    plan = site.plan
    row = _planned_row(plan, site.client, digest, cohorts)
    held = read_site_file(graph, Subgraph)
    named = json.loads(graph.read_text(encoding="utf-8")).get("budget")
    said, beside, ids = budget_book.find(None), str(named or f"{graph}.budget"), _people(held)
    place = said or beside
    if said is None and not budget_book.is_url(place) and not Path(place).exists():
        delta = plan.guarantee.delta
        with contextlib.suppress(PrivacyError):  # another process has made it
            cap = budget_book.jointly([row.dearest], delta) * (1 + 1e-9)
            budget_book.create(place, plan.guarantee.protection.unit, cap, delta, ids)
    whose = json.dumps([digest, deployment, site.client, str(graph.resolve()), ids])
    mark = hashlib.sha256(whose.encode()).hexdigest()[:32]
    budget_book.charge(place, f"deployment {deployment[:8]} of {row.name}", [row], _charged_ids(plan, ids), mark)


def price_of_another(agreed: SitePlan, held: Subgraph, digest: str, place: str) -> tuple[float, float]:
    """(the ε that the dearest person of a client would have paid after a new deployment, the cap) in the book at a place.

    Raises:
        PrivacyError: the book cannot be read, or somebody is not in it.
    """
    book, plan = budget_book.read(place), agreed.plan
    row = _planned_row(plan, held.client, digest, agreed.cohorts)
    return book.epsilon_with(row.dearest, book.people_of(_charged_ids(plan, _people(held)))), book.epsilon


def asked_clients(plan: Plan, cohorts: Sequence[Sequence[int]], round_: int) -> Sequence[int]:
    """The clients that a round asks: those of its cohort; all of them where there are no cohorts."""
    return cohorts[round_] if cohorts else range(plan.facts.num_clients)


def releases_of(plan: Plan, cohorts: Sequence[Sequence[int]], client: int) -> list[PlannedRelease]:
    """What a plan lets a client release, in the rounds that ask it."""
    return [
        replace(r, client=client, rounds=tuple(k for k in r.rounds if client in asked_clients(plan, cohorts, k)))
        for r in plan.schedule.of_client(client)
    ]


def _planned_row(plan: Plan, client: int, digest: str, cohorts: Sequence[Sequence[int]]) -> Candidate:
    """All that a plan lets a client release in one deployment."""
    own = releases_of(plan, cohorts, client)
    return Candidate.planned(f"{plan.method}, plan {digest[:12]}", plan.guarantee, own)


def _charged_ids(plan: Plan, ids: list[str]) -> list[str] | None:
    return None if plan.guarantee.protection.unit is Unit.ENTITY else ids


def _people(held: Subgraph) -> list[str]:
    """The ids of an owner's people; the public numbers of their rows where they have none."""
    return list(held.graph.names.ids) or [str(node) for node in held.nodes]


def write_site_progress(
    folder: Path, state: State, digest: str, deployment: str, done: Sequence[int], left_out: Sequence[int]
) -> None:
    """``state.json``: what the server holds after some rounds. All of it follows from released values."""
    folder.mkdir(parents=True, exist_ok=True)
    more = {"plan": digest, "deployment": deployment, "done": list(done), "left_out": list(left_out)}
    write_site_file(folder / _STATE, state, **more)


def read_site_progress(folder: Path, digest: str) -> tuple[State, str, list[int], list[int]] | None:
    """(state, deployment, rounds that were merged, rounds that were left out); None where nothing has begun.

    ``DataError`` where the folder holds the state of another plan.
    """
    file = folder / _STATE
    if not file.exists():
        return None
    state = read_site_file(file, State)
    told = json.loads(file.read_text(encoding="utf-8"))
    if told.get("plan") != digest:
        raise DataError(f"{file}: the state of another plan ({str(told.get('plan'))[:12]}); allowed: another folder")
    return state, str(told["deployment"]), [int(r) for r in told["done"]], [int(r) for r in told["left_out"]]


def save_site_answer(plan: Plan, state: State, folder: Path) -> None:
    """Of what classifies nodes ``predictions.csv`` of the public ones, where there are any. It follows from released values."""
    facts = plan.facts
    graph = facts.public_graph if facts.public_graph is not None else facts.public_attributes
    if graph is None or method_kinds.load(plan.method).OFFERS.kind != "classifier":
        return
    scores = method_kinds.load_classifier(plan.method).predict(plan, state, graph)
    with (folder / "predictions.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["node", "class", *(f"score {k}" for k in range(scores.shape[1]))])
        rows.writerows([i, int(row.argmax()), *(f"{x:.6g}" for x in row)] for i, row in enumerate(scores))
