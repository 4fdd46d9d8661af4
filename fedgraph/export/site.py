"""What an exported project uses of fedgraph: the exact, bounded values of one client, and what the server keeps.

Values leave ``Site.bounded`` without noise. The project's own ``private_sums.py`` adds it, in the same process, before anything
is sent; only answers that each record randomises by itself (randomised response) are drawn here. Every private random number,
here as there, comes from the operating system.

A plan, a state or a graph travels as one file of text without code (``models.model_file`` in base 64), since Flower sends text
only. Nothing is unpickled, and no name in it is called (``models.model_file``).
"""

import base64
import csv
import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from fedgraph import seeds
from fedgraph.errors import DataError
from fedgraph.methods import Plan, PlanStreams, State, method_kinds
from fedgraph.models import model_file
from fedgraph.privacy import Desk, Disclose, GaussianNoise, LedgerRelease, PlannedRelease
from fedgraph.types import Subgraph

_T = TypeVar("_T")


def write_site_file(path: Path, value: object) -> None:
    """``value``, made of frozen records."""
    text = base64.b64encode(zlib.compress(model_file.to_bytes(value))).decode()
    path.write_text(json.dumps({"holds": type(value).__name__, "bytes": text}) + "\n", encoding="utf-8")


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
    """One client.

    Attributes:
        plan: of all.
        subgraph: its own graph.
        work: what the method makes of the graph once.
        secret: of its random streams; by default new, from the operating system.
    """

    plan: Plan
    subgraph: Subgraph
    work: object
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
    return release if not isinstance(release.mechanism, GaussianNoise) else dataclasses.replace(release, mechanism=_OUTSIDE)


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
    found = (own.num_nodes, own.num_features, own.num_classes)
    wanted = (facts.clients[subgraph.client], facts.num_features, facts.num_classes)
    if found != wanted:
        raise DataError(f"{graph}: {found} nodes, columns and classes; planned for client {subgraph.client}: {wanted}")
    return Site(made, subgraph, method_kinds.load(made.method).prepare(made, subgraph))


def read_site_plan(path: Path, digest: str) -> Plan:
    """The plan in a file. ``DataError`` where its SHA-256 is not ``digest``."""
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if found != digest:
        raise DataError(f"{path}: not the plan that was exported ({found[:12]}, not {digest[:12]}); export it again")
    return read_site_file(path, Plan)


def save_site_answer(plan: Plan, state: State, folder: Path) -> None:
    """``state.json``, and of what classifies nodes ``predictions.csv`` of the public ones, where there are any.

    Both follow from released values.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_site_file(folder / "state.json", state)
    facts = plan.facts
    graph = facts.public_graph if facts.public_graph is not None else facts.public_attributes
    if graph is None or method_kinds.load(plan.method).OFFERS.kind != "classifier":
        return
    scores = method_kinds.load_classifier(plan.method).predict(plan, state, graph)
    with (folder / "predictions.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["node", "class", *(f"score {k}" for k in range(scores.shape[1]))])
        rows.writerows([i, int(row.argmax()), *(f"{x:.6g}" for x in row)] for i, row in enumerate(scores))
