"""A plan: a method's noise and every release it will make, fixed before any private data is touched.

And what a run of it is made of: the server's state, its inbox, and the random streams of a client.
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
    """What the server knows after a round; a function of released values only."""

    model: dict[str, np.ndarray]  # broadcast to every client
    memory: _S_co  # kept at the server, of the method's own type
    # (model, inbox) of every round so far, where the plan keeps rounds; else empty
    seen: tuple[tuple[dict[str, np.ndarray], PlanInbox], ...] = ()


@dataclass(frozen=True, eq=False)
class PlanInbox:
    """One round's messages as the server may see them."""

    round: int  # its number, from 0
    sums: dict[str, np.ndarray]  # name → sum over the clients that sent this part
    each: dict[str, list[np.ndarray]]  # name → one value per client, in client order; empty behind secure aggregation
    num_clients: int  # how many finished the round
    # name → sum over the colluding clients, who know what they sent; only in rounds that are kept for an attack
    colluding: dict[str, np.ndarray] = field(default_factory=dict)


PLAN_PUBLIC_COINS = "public-coins"  # the one stream of a client that everybody may know


def client_path(cell: tuple[str | int | float, ...], client: int, round_: int) -> tuple[str | int | float, ...]:
    """Names the streams of one client in one round of the cell ``cell``."""
    return (*cell, "client", client, "round", round_)


def block_path(cell: tuple[str | int | float, ...], first: int, last: int, round_: int) -> tuple[str | int | float, ...]:
    """Names the streams of the clients ``first`` … ``last`` in one round, where they are computed as one."""
    return (*cell, "clients", first, last, "round", round_)


@dataclass(frozen=True)
class PlanStreams:
    """A client's random streams for one round; noise and training never share one.

    The fingerprint of the plan enters the name of every stream but the public coins. So runs with other settings, other public
    data or other holders of nodes never add the same noise twice (their difference would show the data), nor draw the same
    secret sample or batches. Two runs of one plan on other private data do, under one written seed: they need ``seed:
    secret``. Cells of one run have other paths.
    """

    root: int  # the secret or the number from which all streams of the run follow
    path: tuple[str | int | float, ...]  # names the client and the round (``plan_client_path``, ``plan_block_path``)
    fingerprint: str = ""  # of the plan (``Plan.fingerprint``)

    def generator(self, name: str) -> np.random.Generator:
        """The stream called ``name``, from its beginning: secret, unless it is ``PLAN_PUBLIC_COINS``."""
        if name == PLAN_PUBLIC_COINS:
            return seeds.seeded_generator(self.root, *self.path, name)
        return seeds.secret_seeded_generator(self.root, *self.path, name, self.fingerprint)

    def drawn(self, name: str, things: np.ndarray, rate: float) -> np.ndarray:
        """Who of a private list is in a Poisson sample: bool [m], by a secret coin of each thing's own (``seeds.coins``).
        things: int64 [m] or [m, 2], ids of nodes, or of both ends of edges. rate: of a thing to be drawn; from 1 on all are.
        """
        return seeds.coins(self.root, *self.path, name, self.fingerprint, things=things) < rate

    def of_client(self, client: int) -> PlanStreams:
        """One client's own streams, where these are the streams of its block (``plan_block_path``)."""
        *cell, _, _, _, _, round_ = self.path
        return replace(self, path=client_path(tuple(cell), client, int(round_)))


_P = TypeVar("_P", default=object, covariant=True)
_M = TypeVar("_M", default=object, covariant=True)


@dataclass(frozen=True)
class PlanSchedule:
    """What is released when."""

    rounds: int  # how many there are
    releases: tuple[privacy.PlannedRelease, ...]  # what each client will release
    min_clients: int  # a round in which fewer clients finish is aborted (secure aggregation)
    # so many first rounds are the same for all cells of one ``shared_key``; 0: they share the start alone
    shared_rounds: int = 0
    shared_key: str = ""  # names what is shared; empty: nothing is

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path of the releases, once, in the order in which they are planned."""
        return tuple(dict.fromkeys(r.path for r in self.releases))

    @cached_property
    def _of_one(self) -> dict[int, tuple[privacy.PlannedRelease, ...]]:
        own: dict[int, tuple[privacy.PlannedRelease, ...]] = {}
        for release in self.releases:
            if release.client is not None:
                own[release.client] = (*own.get(release.client, ()), release)
        return own

    def of_client(self, client: int) -> tuple[privacy.PlannedRelease, ...]:
        """What ``client`` will release: what all clients release, and what is planned for it alone."""
        if not self._of_one:
            return self.releases
        return (*(r for r in self.releases if r.client is None), *self._of_one.get(client, ()))


@dataclass(frozen=True)
class PlanSums:
    """How far the messages of clients may be added up before the server reads them."""

    # (part of a message, clients that each sum must hold): these parts reach the server as a sum over clients only, whatever
    # the viewer sees of the rest. Such a part is named as its path.
    paths: tuple[tuple[str, int], ...] = ()
    suffice: bool = False  # the server reads ``PlanInbox.sums`` only, so many clients may send theirs as one
    # as ``suffice``, and the exact value of a disjoint union of subgraphs is the sum of theirs. So ``client`` may compute the
    # clients of a block as one client that holds their union. Where clients draw samples of their own, ``client`` must draw
    # those of each (``PlanStreams.of_client``).
    additive: bool = False


@dataclass(frozen=True)
class _Watch:
    """What is kept for an attack.
    keeps_rounds: what every round broadcast and received (``State.seen``). opened: an attack reads every value that is priced,
    so clients also send what otherwise stays with them.
    """

    keeps_rounds: bool = False
    opened: bool = False


@dataclass(frozen=True, eq=False)
class Plan(Generic[_P, _M]):
    """A method made ready: its noise is fixed and every release is declared.
    Raises ``PrivacyError``: a release says other noise than its event prices (``priced_noise.require``), a release with a price
    is made from ``ClearFacts``, or ``guarantee`` and ``facts`` differ in who holds which node.
    """

    method: str  # the name of the method
    params: _P  # its settings
    facts: PublicFacts  # the public facts that it was made from
    guarantee: privacy.Guarantee  # what its releases are counted for, before any data are read
    schedule: PlanSchedule  # what is released when
    made: _M  # what the method made of its settings and of public facts, of the method's own type
    epsilon_published: float | None = None  # what the paper's formula says of this noise; None: it claims nothing
    sums: PlanSums = PlanSums()  # how far messages may be added up before the server reads them
    watch: _Watch = _Watch()  # what is kept for an attack
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
            # how many clients' noise hides one unit in what the viewer sees: of a path's own sum one colluder knows its part
            hiding = fewest.get(release.path, others + 1) - 1
            place = priced_noise.NoisePlace(release.bound, protection, hiding, per_end=self.guarantee.per_end)
            priced_noise.require(release, place)

    @cached_property
    def public_text(self) -> str:
        """What is public of the data, and who holds which node, as it enters names of streams: counts and digests.

        Nothing here follows from what the guarantee protects. Membership that was computed from edges, or from protected
        labels, enters by its sizes alone.
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
        """What shapes the releases, as it enters the fingerprint: settings, price, who answers, and ``public_text``."""
        said = (self.method, self.params, self.guarantee.delta, self.guarantee.protection, self.schedule.rounds)
        return canonical.text((said, self.facts.answering, self.public_text))

    @property
    def fingerprint(self) -> str:
        """A digest of ``fingerprint_text``: 16 hexadecimal digits.

        It enters the names of secret random streams, so whatever changes that text changes every noise that is drawn.
        """
        return hashlib.sha256(self.fingerprint_text.encode()).hexdigest()[:16]

    @property
    def shared_fingerprint(self) -> str:
        """As ``fingerprint``, of the first rounds that plans with one ``shared_key`` have in common."""
        return hashlib.sha256(canonical.text((self.schedule.shared_key, self.public_text)).encode()).hexdigest()[:16]

    def declared(self, path: str | None = None) -> dict[int, privacy.Event]:
        """Client → all that it will release (on ``path``, or on all), composed, and amplified where the plan samples once."""
        clients, releases = range(self.facts.num_clients), self.schedule.releases
        return settle.amplified(self.guarantee, {c: desk.declared(releases, c, path) for c in clients})

    def provable(self, path: str | None = None) -> privacy.Epsilon:
        """The provable price of the worst unit, where the data keep every promise; of ``path`` alone, or of everything."""
        return settle.of_plan(self.guarantee, self.schedule.releases, path)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what is declared before any private data are read. Alike releases of many clients are one entry.

        Of a bound it holds the class and its numbers; no graph, no array and no digest.
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
    """The numbers of a public graph; its name, its people's ids and where it came from shape no release."""
    return None if graph is None else (graph.num_classes, graph.adjacency, graph.features, graph.labels)


PLAN_WITHOUT_NOISE: tuple[privacy.NoiseMechanism, privacy.Event] = (
    privacy.Disclose("no noise was asked for"),
    privacy.Unprotected("no noise"),
)
_R = TypeVar("_R")


def require_received(plan: Plan, found: _R | None) -> _R:
    """``found``, which the last round left at the server; ``RuntimeFailure`` where it is None, as it is asked for too early."""
    if found is None:
        raise RuntimeFailure(f"{plan.method} was asked for predictions before its last round")
    return found


def gradient_std(noise_multiplier: float, sensitivity: float, facts: PublicFacts) -> tuple[float, int]:
    """The noise of one client in a release that is summed over clients.

        std = σΔ                        the viewer sees the client's own message, which must carry all the noise
        std = σΔ / √(n_min − t)         the viewer sees the sum, and t of the participants tell it their shares

    noise_multiplier: σ, the standard deviation of the noise over the sensitivity; at least 0. sensitivity: Δ₂ of the sum, in
    data units. facts: say who sees what, how many clients answer (n_min = ``cohort``) and how many collude (t = ``colluders``).
    Returns (standard deviation that each client adds, in data units; clients that must finish a round). Raises
    ``PrivacyError``: behind secure aggregation no more clients answer than collude.
    """
    if facts.viewer is not privacy.Viewer.SERVER_SECURE_AGGREGATION:
        return noise_multiplier * sensitivity, 1
    if facts.cohort <= facts.colluders:
        raise PrivacyError(
            f"secure aggregation hides a client among more than {facts.colluders} others, found {facts.cohort} clients; "
            "allowed: fewer colluders than clients that answer"
        )
    return noise_multiplier * sensitivity / math.sqrt(facts.cohort - facts.colluders), facts.cohort
