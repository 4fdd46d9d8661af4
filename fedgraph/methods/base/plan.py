"""A plan: a method's noise and every release, fixed before any private data are read.

Also the parts of a run: the server's state, its inbox, and the random streams of a client.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeAlias

import numpy as np
from typing_extensions import TypeVar

from fedgraph import privacy, seeds
from fedgraph.documents import canonical
from fedgraph.errors import PrivacyError, RuntimeFailure
from fedgraph.methods.base.public_facts import ClearFacts, PublicFacts
from fedgraph.privacy import desk, events, ledger, priced_noise, settle
from fedgraph.types import Graph

Model: TypeAlias = Mapping[str, np.ndarray]  # what the server broadcasts
PlanSent: TypeAlias = dict[str, privacy.Released]  # one client's message

_S_co = TypeVar("_S_co", default=object, covariant=True)


@dataclass(frozen=True, eq=False)
class State(Generic[_S_co]):
    """What the server knows after a round, a function of released values and public facts."""

    model: dict[str, np.ndarray]  # broadcast to every client
    memory: _S_co  # kept at the server, of the method's own type
    # (model, inbox) of every round so far, if the plan keeps rounds; else empty
    seen: tuple[tuple[dict[str, np.ndarray], PlanInbox], ...] = ()


@dataclass(frozen=True, eq=False)
class PlanInbox:
    """One round's messages as the server may see them."""

    round: int  # its number, from 0
    sums: dict[str, np.ndarray]  # name → sum over the clients that sent this part
    each: dict[str, list[np.ndarray]]  # name → one value per client, in client order; empty behind secure aggregation
    num_clients: int  # number of clients that finished the round
    # name → sum over the colluding clients; only in rounds that are kept for an attack
    colluding: dict[str, np.ndarray] = field(default_factory=dict)


PLAN_PUBLIC_COINS = "public-coins"  # the one stream of a client that everybody may know


def client_path(cell: tuple[str | int | float, ...], client: int, round_: int) -> tuple[str | int | float, ...]:
    """The name of one client's streams in one round of a cell."""
    return (*cell, "client", client, "round", round_)


def block_path(cell: tuple[str | int | float, ...], first: int, last: int, round_: int) -> tuple[str | int | float, ...]:
    """The name of the streams of the clients ``first`` … ``last`` in one round, if they compute as one."""
    return (*cell, "clients", first, last, "round", round_)


@dataclass(frozen=True)
class PlanStreams:
    """A client's random streams for one round; noise and training never share one.

    The fingerprint of the plan is a part of every name except that of the public coins. So runs with different settings, public
    data or holders of nodes never draw the same noise (whose difference would show the data), nor the same sample or batches.
    Runs of one plan on different private data do so under the same written seed: they need ``seed: secret``. Cells of one run
    have different paths.
    """

    root: int  # root of all streams of the run, a number or a secret
    path: tuple[str | int | float, ...]  # names the client and the round (``client_path``, ``block_path``)
    fingerprint: str = ""  # ``Plan.fingerprint``

    def generator(self, name: str) -> np.random.Generator:
        """The stream called ``name``, from its start; it is secret unless it is ``PLAN_PUBLIC_COINS``."""
        if name == PLAN_PUBLIC_COINS:
            return seeds.seeded_generator(self.root, *self.path, name)
        return seeds.secret_seeded_generator(self.root, *self.path, name, self.fingerprint)

    def drawn(self, name: str, things: np.ndarray, rate: float) -> np.ndarray:
        """bool [m]: which of some private things are in a Poisson sample, each by its own secret coin (``seeds.coins``).

        things: int64 [m] or [m, 2], ids of nodes, or of both ends of edges. rate: chance of each thing; from 1 on all are
        drawn.
        """
        return seeds.coins(self.root, *self.path, name, self.fingerprint, things=things) < rate

    def of_client(self, client: int) -> PlanStreams:
        """One client's own streams, if these are the streams of its block (``block_path``)."""
        *cell, _, _, _, _, round_ = self.path
        return replace(self, path=client_path(tuple(cell), client, int(round_)))


_P = TypeVar("_P", default=object, covariant=True)
_M = TypeVar("_M", default=object, covariant=True)


@dataclass(frozen=True)
class PlanSchedule:
    """What is released when."""

    rounds: int  # number of rounds
    releases: tuple[privacy.PlannedRelease, ...]  # what each client will release
    min_clients: int  # a round with fewer clients is aborted (secure aggregation)
    shared_rounds: int = 0  # number of first rounds that all cells of one ``shared_key`` share; 0: they share only the start
    shared_key: str = ""  # names what is shared; empty: nothing

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path of the releases once, in their order."""
        return tuple(dict.fromkeys(r.path for r in self.releases))

    @cached_property
    def _of_one(self) -> dict[int, tuple[privacy.PlannedRelease, ...]]:
        own: dict[int, tuple[privacy.PlannedRelease, ...]] = {}
        for release in self.releases:
            if release.client is not None:
                own[release.client] = (*own.get(release.client, ()), release)
        return own

    def of_client(self, client: int) -> tuple[privacy.PlannedRelease, ...]:
        """What ``client`` will release: the releases of all clients, and those of this client alone."""
        if not self._of_one:
            return self.releases
        return (*(r for r in self.releases if r.client is None), *self._of_one.get(client, ()))


@dataclass(frozen=True)
class PlanSums:
    """How far the messages of clients may be added up before the server reads them."""

    # (part of a message, least number of clients in its sum): parts that reach the server only as a sum over clients, whatever
    # the viewer sees of the rest. Such a part has the name of its path.
    paths: tuple[tuple[str, int], ...] = ()
    suffice: bool = False  # whether the server reads only ``PlanInbox.sums``, so many clients may send a sum
    # as ``suffice``, and the exact value of a disjoint union of subgraphs is the sum of their values. Then ``client`` may
    # compute the clients of a block as one that holds their union; samples are drawn for each (``PlanStreams.of_client``).
    additive: bool = False


@dataclass(frozen=True)
class _Watch:
    """What is kept for an attack."""

    keeps_rounds: bool = False  # whether every broadcast and inbox is kept (``State.seen``)
    opened: bool = False  # whether clients also send priced values that otherwise stay with them


@dataclass(frozen=True, eq=False)
class Plan(Generic[_P, _M]):
    """A method made ready: its noise is fixed and every release is declared.

    ``PrivacyError`` if a release has other noise than its event prices (``priced_noise.require``), if a release with a price
    comes from ``ClearFacts``, or if ``guarantee`` and ``facts`` differ in who holds which node.
    """

    method: str  # name of the method
    params: _P  # its settings
    facts: PublicFacts  # the public facts that it was made from
    guarantee: privacy.Guarantee  # what its releases are priced for
    schedule: PlanSchedule
    made: _M  # what the method made of its settings and of public facts, of the method's own type
    epsilon_published: float | None = None  # ε of this noise by the paper's formula; None: it claims nothing
    sums: PlanSums = PlanSums()
    watch: _Watch = _Watch()
    notes: tuple[str, ...] = ()  # sentences for the report

    def __post_init__(self) -> None:
        protection = self.guarantee.protection
        protected = [r.path for r in self.schedule.releases if not isinstance(r.event, privacy.Unprotected)]
        if isinstance(self.facts, ClearFacts) and protected:
            raise PrivacyError(
                f"{self.method} is made from what was counted in private rows (ClearFacts), so every release must be "
                f"Unprotected; found a price on {', '.join(protected)}: make the plan from PublicFacts"
            )
        if protection.unit is not privacy.Unit.GRAPH and self.guarantee.holdings is not self.facts.holdings:
            raise PrivacyError(f"{self.method}: who holds which node is counted otherwise than the public facts say")
        secure, fewest = protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION, dict(self.sums.paths)
        others = self.facts.cohort - self.facts.colluders if secure else 1
        for release in self.schedule.releases:
            # number of clients whose noise hides one unit from the viewer; in a path's own sum one colluder knows its part
            hiding = fewest.get(release.path, others + 1) - 1
            place = priced_noise.NoisePlace(release.bound, protection, hiding, per_end=self.guarantee.per_end)
            priced_noise.require(release, place)

    @cached_property
    def public_text(self) -> str:
        """The public part of the data and who holds which node, as text for names of streams: counts and digests.

        Nothing in it follows from what the guarantee protects. Of membership that was computed from edges, or from protected
        labels, it has only the sizes.
        """
        facts, relation = self.facts, self.guarantee.protection.relation
        from_private = facts.membership_from_edges or (facts.membership_from_labels and relation.protects_labels)
        holders = () if from_private else (facts.members, facts.holdings)
        said = (
            (facts.num_nodes, facts.num_features, facts.num_classes, facts.clients, facts.graphs),
            (facts.membership_from_edges, facts.membership_from_labels, facts.cut_edges, holders),
            (
                facts.public,
                _public_part(facts.public_graph),
                _public_part(facts.public_attributes),
                *filter(None, [facts.drawn]),
            ),
        )
        return canonical.text(said)

    @cached_property
    def fingerprint_text(self) -> str:
        """The text of ``fingerprint``: settings, price, who answers, and ``public_text``."""
        said = (self.method, self.params, self.guarantee.delta, self.guarantee.protection, self.schedule.rounds)
        return canonical.text((said, self.facts.answering, self.public_text))

    @property
    def fingerprint(self) -> str:
        """A digest of ``fingerprint_text``, 16 hexadecimal digits.

        It is a part of the names of secret random streams, so every change of that text changes all noise.
        """
        return hashlib.sha256(self.fingerprint_text.encode()).hexdigest()[:16]

    @property
    def shared_fingerprint(self) -> str:
        """As ``fingerprint``, for the first rounds that plans with one ``shared_key`` share."""
        return hashlib.sha256(canonical.text((self.schedule.shared_key, self.public_text)).encode()).hexdigest()[:16]

    def declared(self, path: str | None = None) -> dict[int, privacy.Event]:
        """Client → all its releases (on ``path``, or on all paths), composed, and amplified if the plan samples once."""
        clients, releases = range(self.facts.num_clients), self.schedule.releases
        return settle.amplified(self.guarantee, {c: desk.declared(releases, c, path) for c in clients})

    def provable(self, path: str | None = None) -> privacy.Epsilon:
        """The provable price of the worst unit, if the data keep every promise; of ``path`` alone, or of everything."""
        return settle.of_plan(self.guarantee, self.schedule.releases, path)

    def to_dict(self) -> dict[str, Any]:
        """The declared releases as JSON; equal releases of many clients are one entry.

        It has the class and the numbers of each bound, but no graph, array or digest.
        """
        clients: dict[str, list[int | None]] = {}
        for release in self.schedule.releases:
            held = {f.name: vars(release.bound)[f.name] for f in dataclasses.fields(release.bound)}
            bound = {name: value for name, value in held.items() if isinstance(value, (bool, int, float, str))}
            said = {
                "path": release.path,
                "bound": {"kind": type(release.bound).__name__, **bound},
                "mechanism": release.mechanism.words,
                "event": events.to_dict(release.event),
                "rounds": [list(span) for span in ledger.spans(release.rounds)],
                "per_round": release.per_round,
            }
            clients.setdefault(json.dumps(said), []).append(release.client)
        releases = [
            {**json.loads(said), "clients": [list(span) for span in ledger.spans(c for c in who if c is not None)] or "all"}
            for said, who in clients.items()
        ]
        return {
            "method": self.method,
            "delta": self.guarantee.delta,
            "protection": self.guarantee.protection.to_dict(),
            "sampled_once": self.guarantee.sampled_once,
            "epsilon_published": self.epsilon_published,
            "public": self.facts.public,
            "clients": self.facts.num_clients,
            "least_answers": self.schedule.min_clients,
            "rounds": self.schedule.rounds,
            "releases": releases,
            "notes": list(self.notes),
        }


def _public_part(graph: Graph | None) -> object:
    """The numbers of a public graph; its name, ids and provenance shape no release."""
    return None if graph is None else (graph.num_classes, graph.adjacency, graph.features, graph.labels)


PLAN_WITHOUT_NOISE: tuple[privacy.NoiseMechanism, privacy.Event] = (
    privacy.Disclose("no noise was asked for"),
    privacy.Unprotected("no noise"),
)
_R = TypeVar("_R")


def require_received(plan: Plan, found: _R | None) -> _R:
    """``found``; ``RuntimeFailure`` if it is None, because predictions were asked for before the last round."""
    if found is None:
        raise RuntimeFailure(f"{plan.method} was asked for predictions before its last round")
    return found


def gradient_std(noise_multiplier: float, sensitivity: float, facts: PublicFacts) -> tuple[float, int]:
    """(standard deviation of the noise that each client adds, in data units; clients that must finish a round).

        std = σΔ                        the viewer sees each client's message, which must carry all the noise
        std = σΔ / √(n_min − t)         the viewer sees the sum, and t of the clients tell it their shares of noise

    noise_multiplier: σ, the standard deviation of the noise over the sensitivity; at least 0. sensitivity: Δ₂ of the sum, in
    data units. facts: have the viewer, the number of clients that answer (n_min = ``cohort``) and of those that collude
    (t = ``colluders``). ``PrivacyError`` if, behind secure aggregation, no more clients answer than collude.
    """
    if facts.viewer is not privacy.Viewer.SERVER_SECURE_AGGREGATION:
        return noise_multiplier * sensitivity, 1
    if facts.cohort <= facts.colluders:
        raise PrivacyError(
            f"secure aggregation hides a client among more than {facts.colluders} others, found {facts.cohort} clients; "
            "allowed: fewer colluders than clients that answer"
        )
    return noise_multiplier * sensitivity / math.sqrt(facts.cohort - facts.colluders), facts.cohort
