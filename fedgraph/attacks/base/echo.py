"""A method that sends what it holds: a client's column of numbers in [0, 1], every entry a run of its own.

It stands where a method's module stands (``kinds.method``), so that the product's own client, desk, streams, blocks and masks
carry thousands of independent runs at once; whatever is broken there shows in what it sends. The unit is an entry of client 0,
there in round 0 and gone in the rounds after: a value that did change.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import TypeAlias
from unittest import mock

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.federation.messages import Job
from fedgraph.methods.base import (
    NOTHING_DERIVED,
    AttendanceRule,
    Membership,
    Plan,
    PublicFacts,
    PublicPart,
    Schedule,
    Sizes,
    Streams,
    Sums,
    guarantee_of,
    kinds,
)
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Event
from fedgraph.privacy.mechanisms.noise import Mechanism
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import Partition, Provenance, Subgraph, plain_graph

ROUNDS, SUM = 2, "sum"
MODEL = {"weights": np.array([1.0, 0.0])}  # of a client's column, in each round
Break: TypeAlias = tuple[object, str, object]  # (owner, name, what stands there instead)
_numbers = count()  # workers remember jobs by their keys


@dataclass(frozen=True)
class Situation:
    """clients: how many. viewer: who looks. entries: runs at once. least: answers that every round has; None: all clients'."""

    clients: int
    viewer: Viewer
    entries: int
    least: int | None = None

    @property
    def facts(self) -> PublicFacts:
        """What is public of it."""
        sizes = (self.entries,) * self.clients
        return PublicFacts(
            Sizes(sum(sizes), 1, 2, sizes),
            self.viewer,
            Membership(from_edges=False, from_labels=False, holdings=None, cut_edges="dropped"),
            PublicPart("nothing"),
            NOTHING_DERIVED,
            colluders=1,
            attendance=AttendanceRule(least_answers=self.least),
        )

    def partition(self, present: bool) -> Partition:
        """Client 0 holds ones where the units are there; all others hold zeros, which everybody knows."""

        def held(client: int) -> Subgraph:
            column = sp.csr_array(np.full((self.entries, 1), float(present and client == 0)))
            nothing, labels = sp.csr_array((self.entries, self.entries)), np.zeros(self.entries, np.int64)
            graph = plain_graph("echo", nothing, column, labels, 2, Provenance("own", "echo"))
            return Subgraph(client, graph, np.arange(self.entries) + client * self.entries)

        return Partition(
            tuple(held(client) for client in range(self.clients)), True, 0, "echo", from_edges=False, from_labels=False
        )

    def job(self, root: int, mechanism: Mechanism, event: Event, additive: bool = False, fingerprint: str = "plan") -> Job:
        """A run of ``ROUNDS`` rounds of one sum. event: of a whole column, whose norm is at most √entries."""
        bound = ClippedSum(math.sqrt(self.entries), self.clients, "echo: one row, of norm √entries at most")
        release = PlannedRelease(SUM, bound, mechanism, event, range(ROUNDS))
        guarantee = guarantee_of(self.facts, Relation.NODE_ZERO_OUT, (), 1e-3, per_end=False)
        schedule = Schedule(ROUNDS, (release,), min_clients=1)
        plan = Plan("echo", None, self.facts, guarantee, schedule, None, sums=Sums(additive=additive))
        return Job(f"echo {next(_numbers)}", root, ("echo",), plan, fingerprint)


def _prepare(plan: Plan[None, None], subgraph: Subgraph) -> np.ndarray:
    """float64 [entries]: the columns of all clients that ``subgraph`` unites, added."""
    entries = plan.facts.sizes.clients[0]
    return np.asarray(subgraph.graph.features.toarray().reshape(-1, entries).sum(axis=0))


def _client(
    plan: Plan[None, None], work: np.ndarray, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    return {SUM: desk.release(SUM, work * model["weights"][round_])}


METHOD = SimpleNamespace(prepare=_prepare, client=_client, OFFERS=SimpleNamespace(together=None, prepare_together=None))


@contextlib.contextmanager
def broken(*breaks: Break) -> Iterator[None]:
    """Echo in the place of every method, and each of ``breaks``."""
    with contextlib.ExitStack() as held:
        held.enter_context(mock.patch.object(kinds, "method", return_value=METHOD))
        for owner, name, instead in breaks:
            held.enter_context(mock.patch.object(owner, name, instead))
        yield


def secret_root(rng: np.random.Generator) -> seeds.Secret:
    """As ``seed: secret`` draws one, of the bench's own randomness, so that a run of the bench repeats."""
    return seeds.Secret(rng.bytes(32))


def exact(residue: np.ndarray) -> bool:
    """Whether nothing but zeros and ones is left: the noise was taken off."""
    return bool((np.abs(residue - np.rint(residue)) < 1e-6).all() and (np.abs(residue - 0.5) < 0.51).all())
