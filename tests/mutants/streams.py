"""The noise of a run with a secret seed: fresh for every client, round, block and plan, and nobody can draw it again.

**Echo** is a method that sends what it holds: a client's column of numbers in [0, 1], every entry a run of its own. It stands
where a method's module stands (``method_kinds.load``), so that the product's own client, desk, streams, blocks and masks
carry thousands of independent runs at once; whatever is broken there shows in what it sends. The unit is an entry of client 0,
there in round 0 and gone in the rounds after: a value that did change.

The viewer sees every message and knows every name of a stream, and all values but those of the units. It takes off each noise
that it knows, or that another message holds, and looks whether zeros and ones are left; else the message itself is its score.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from unittest import mock

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.audit import lower_bound
from fedgraph.federation import client as one_client
from fedgraph.federation import messages
from fedgraph.federation.messages import ClientJob
from fedgraph.methods import base
from fedgraph.methods.base import Plan, PlanStreams, block_path, client_path, gradient_std, method_kinds
from fedgraph.methods.base.contract import PLAN_PUBLIC_COINS
from fedgraph.methods.base.seen import FEW_SEEN_CLIENTS
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import GraphProvenance, Partition, Subgraph, plain_graph
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler, twins
from tests.public_facts import public_facts

_EPSILON, _DELTA = 2.0, 1e-3
_MULTIPLIER = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
_RUNS = 4_000
_SURE = 1e6  # a score, where the noise is gone
_ROUNDS, _SUM = 2, "sum"
_MODEL = {"weights": np.array([1.0, 0.0])}  # of a client's column, in each round
_Break = tuple[object, str, object]  # (owner, name, what stands there instead)
_numbers = count()  # workers remember jobs by their keys


@dataclass(frozen=True)
class _Situation:
    """A federation that carries many independent runs at once: each is an entry of every client's column."""

    clients: int
    viewer: Viewer
    entries: int

    @property
    def facts(self) -> base.PublicFacts:
        sizes = (self.entries,) * self.clients
        return public_facts(sum(sizes), 1, 2, sizes, self.viewer, public_name="nothing")

    def partition(self, present: bool) -> Partition:
        """Client 0 holds ones where the units are there; all others hold zeros, which everybody knows."""
        no_edges, labels, held = sp.csr_array((self.entries, self.entries)), np.zeros(self.entries, np.int64), []
        for client in range(self.clients):
            column = sp.csr_array(np.full((self.entries, 1), float(present and client == 0)))
            graph = plain_graph("echo", no_edges, column, labels, 2, GraphProvenance("own", "echo"))
            held.append(Subgraph(client, graph, np.arange(self.entries) + client * self.entries))
        return Partition(tuple(held), True, 0, "echo", from_edges=False, from_labels=False)

    def job(self, root: int, noise: GaussianNoise, additive: bool = False, fingerprint: str = "plan") -> ClientJob:
        """A run of ``_ROUNDS`` rounds of one sum, of a whole column, whose norm is at most √entries."""
        bound = ClippedSum(math.sqrt(self.entries), self.clients, "echo: one row, of norm √entries at most")
        release = PlannedRelease(_SUM, bound, noise, Gaussian(_MULTIPLIER / math.sqrt(self.entries)), range(_ROUNDS))
        guarantee = base.guarantee_from_public_facts(self.facts, Relation.NODE_ZERO_OUT, (), 1e-3, per_end=False)
        schedule = base.PlanSchedule(_ROUNDS, (release,), min_clients=1)
        plan = Plan("echo", None, self.facts, guarantee, schedule, None, sums=base.PlanSums(additive=additive))
        return ClientJob(f"echo {next(_numbers)}", root, ("echo",), plan, fingerprint)


def _prepare(plan: Plan, subgraph: Subgraph) -> np.ndarray:
    """float64 [entries]: the columns of all clients that ``subgraph`` unites, added."""
    return np.asarray(subgraph.graph.features.toarray().reshape(-1, plan.facts.clients[0]).sum(axis=0))


def _client(plan: Plan, work: np.ndarray, model: Mapping[str, np.ndarray], round_: int, streams, desk):
    return {_SUM: desk.release(_SUM, work * model["weights"][round_])}


@contextlib.contextmanager
def _broken(*breaks: _Break) -> Iterator[None]:
    """Echo in the place of every method, and each of ``breaks``."""
    with contextlib.ExitStack() as held:
        held.enter_context(
            mock.patch.object(method_kinds, "load", return_value=SimpleNamespace(prepare=_prepare, client=_client))
        )
        for patch in breaks:
            held.enter_context(mock.patch.object(*patch))
        yield


def _root(rng: np.random.Generator) -> seeds.SecretSeed:
    """As ``seed: secret`` draws one, of the bench's own randomness, so that a run of the bench repeats."""
    return seeds.SecretSeed(rng.bytes(32))


def _read(message: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    """float64 [runs]: the message, or what is left of it where one of ``known`` holds its noise."""
    for noise in known:
        left, near = message - noise, np.rint(message - noise)
        if (np.abs(left - near) < 1e-6).all() and (np.abs(left - 0.5) < 0.51).all():  # zeros and ones: the noise was taken off
            return _SURE * near
    return message


@bench_sampler
def _messages(runs, rng, present: bool, *breaks: _Break):
    """A message of one of two clients, beside all others that the viewer sees or can draw again."""
    root, here = _root(rng), _Situation(2, Viewer.SERVER, runs)
    held, gone = here.partition(present), here.partition(False)

    def sent(of: int, client: int, round_: int, plan: str = "plan", known: bool = False) -> np.ndarray:
        job = here.job(of, GaussianNoise(_MULTIPLIER), fingerprint=plan)
        (found,) = one_client.run_blocks([client], (gone if known else held).subgraphs, job, _MODEL, round_)
        return found.released[_SUM].value

    with _broken(*breaks):
        message = sent(root, 0, 0)
        others = [sent(root, 0, 1), sent(root, 1, 0), sent(root, 0, 0, "another plan", True), sent(0, 0, 0, known=True)]
        coins = PlanStreams(root, client_path(("echo",), 0, 0), "plan").generator(PLAN_PUBLIC_COINS)
    return _read(message, [*others, _MULTIPLIER * coins.standard_normal(runs)])


@bench_sampler
def _blocks(runs, rng, present: bool, *breaks: _Break):
    """Twice ``FEW_SEEN_CLIENTS`` clients, two in a block: their noise is one draw with the law of the sum of their shares."""
    clients = 2 * FEW_SEEN_CLIENTS
    here, every = _Situation(clients, Viewer.SERVER_SECURE_AGGREGATION, runs), range(len(messages.cut_blocks(clients)))
    (share, _), root = gradient_std(_MULTIPLIER, 1.0, here.facts), _root(rng)

    def total(of: int, round_: int, known: bool = False) -> np.ndarray:
        job, subgraphs = here.job(of, GaussianNoise(share), additive=True), here.partition(present and not known).subgraphs
        found = one_client.run_blocks(every, subgraphs, job, _MODEL, round_)
        return np.sum([block.released[_SUM].value for block in found], axis=0)

    with _broken(*breaks):
        return _read(total(root, 0), [total(root, 1), total(0, 0, True)])


def cases() -> Iterator[BenchCase]:
    """Single messages of two clients; sums of many clients, computed block by block."""
    honest, blocks = client_path, block_path

    def public_coins(streams: PlanStreams, name: str) -> np.random.Generator:
        return seeds.seeded_generator(streams.root, *streams.path, PLAN_PUBLIC_COINS)

    def without_plan(streams: PlanStreams, name: str) -> np.random.Generator:
        return seeds.secret_seeded_generator(streams.root, *streams.path, name)

    public = seeds, "secret_seeded_generator", seeds.seeded_generator
    of_messages: dict[str, _Break] = {
        "private streams from public seed 0": public,
        "the same noise in every round": (one_client, "client_path", lambda cell, client, _: honest(cell, client, 0)),
        "the same noise at every client": (one_client, "client_path", lambda cell, _, round_: honest(cell, 0, round_)),
        "the same noise under every plan": (PlanStreams, "generator", without_plan),
        "noise from the public coins": (PlanStreams, "generator", public_coins),
    }
    of_blocks: dict[str, _Break] = {
        "one share of noise for a block": (GaussianNoise, "of_many", lambda noise, shares: noise),
        "the same noise in every round": (one_client, "block_path", lambda cell, a, b, _: blocks(cell, a, b, 0)),
        "private streams from public seed 0": public,
    }
    claim = BenchClaim.of(Gaussian(_MULTIPLIER), _DELTA)
    for name, seen, release, breaks in (
        ("noise-of-messages", "every message", _messages, of_messages), ("noise-of-blocks", "secure sum", _blocks, of_blocks),
    ):  # fmt: skip
        relation, worlds = f"{Relation.NODE_ZERO_OUT.value}, {seen}", (release(True), release(False))
        broken = {mutant: (release(True, patch), release(False, patch)) for mutant, patch in breaks.items()}
        yield from twins(name, relation, claim, worlds, broken, lower_bound.gaussian(), runs=_RUNS)
