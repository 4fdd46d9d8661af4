"""Whole methods, sound and deliberately broken, run many times on two neighbouring inputs: does an attack tell which is which?

One canary is there or not, everything else stays; each run has fresh noise; the score is the method's own ``evidence``. The
client's and the server's own code runs, and the desk releases what it is told to, so a mutant is a method whose plan says
one thing (that is what it is priced for) and whose door does another:

    noise × ⅔                 every release carries two thirds of the planned noise
    one hop not counted       the noise would do for one hop less than is released
    secure sum leaked         the server reads each client's message, which carries only its share of the noise
    colluder ignored          shares of the noise are cut as if no participant knew one; behind secure aggregation the last
                              client takes its own message off the sum, in the sound method as in the broken one
    second colluder           two clients pool what they know, where the plan priced one

**Judged** by ``audit.lower_bound.gaussian``: the score of a sound run is a sum of Gaussian releases along directions of one
length (gradients that are clipped, rows of norm one), so that the distance in standard deviations, estimated from the runs,
gives a lower limit of μ. All sound rows together are accused with probability at most ``ERROR_RATE``.

``UNSEEN`` (``unseen.toml``) lists what no attack here can tell, and why.
"""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from fedgraph import plugins, seeds
from fedgraph.attacks.base import mutant_games
from fedgraph.audit import lower_bound
from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.documents.settings import Spec
from fedgraph.methods.base import Inbox, Plan, State, Streams
from fedgraph.methods.base import seen as seen_by
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.settle import Guarantee
from fedgraph.privacy.units import Viewer
from fedgraph.types import Partition

ERROR_RATE = 0.01
RUNS = 300
_READ = ("method", "params", "made", "schedule", "sums", "watch")  # of a plan, what an ``evidence`` reads
Break = Literal["", "noise × ⅔", "one hop not counted", "secure sum leaked", "colluder ignored", "second colluder"]

UNSEEN: dict[str, str] = tomllib.loads(
    resources.files("fedgraph.attacks.base").joinpath("unseen.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Whole:
    """A method on the bench, sound or broken.

    Attributes:
        method: Its settings, ``method`` (its name) among them.
        viewer: Who is priced.
        clients: How many clients there are.
        broken: What the door does otherwise than the plan says; empty: the method is sound.
        times: How many times the usual number of runs is made, where the break is small.
        opened: Whether all that is priced is read, also what stays at a client.
    """

    method: Spec
    viewer: Viewer
    clients: int
    broken: Break = ""
    times: int = 1
    opened: bool = False

    @property
    def name(self) -> str:
        """The name of the sound method, which its mutants share."""
        told = " ".join(str(self.method[key]) for key in ("method", "training", "updates") if key in self.method)
        return f"{told}, {self.clients} client{'s'[: self.clients > 1]}"


def methods_with_mutants() -> Iterator[Whole]:
    """Every sound method that the bench reads, each followed by its mutants."""
    features = {"method": "features", "steps": 2, "projection": "none"}
    together = Viewer.SERVER_SECURE_AGGREGATION
    yield from _sound_and_broken(features, Viewer.SERVER, 2, "noise × ⅔")
    yield from _sound_and_broken(features, together, 5, "secure sum leaked")
    yield from _sound_and_broken(features, together, 3, "secure sum leaked", "second colluder", times=2)
    yield from _sound_and_broken(features, together, 2, "colluder ignored", times=2)
    drawn = {"method": "heter_poisson", "steps": 2, "projection": 0, "sampling_rate": 1.0}  # its own row, in every step
    yield from _sound_and_broken(drawn, Viewer.SERVER, 2, "noise × ⅔")
    hops = {"method": "gap_edge", "hops": 2, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    stages = {"method": "progap_edge", "hops": 2, "epochs": 1, "hidden": 4}
    for method in (hops, stages):
        yield from _sound_and_broken(method, Viewer.CURATOR_TRUSTED, 1, "noise × ⅔", "one hop not counted")
    two_stages = {"method": "gap_node", "steps": 2, "projection": 0, "hop_share": 0.1}
    grown = {"method": "progap_node", "hops": 1, "steps": 2, "projection": 0, "hop_share": 0.1}
    for method in (two_stages, grown):
        yield from _sound_and_broken(method, Viewer.SERVER, 2, "noise × ⅔", opened=True)
    for training in ("dp_fedavg", "dp_sgd"):
        each = {"method": "local_dp", "training": training, "updates": "each", **mutant_games.SMALL}
        summed = {**each, "updates": "sum"}
        yield from _sound_and_broken(each, Viewer.SERVER, 2, "noise × ⅔")
        yield from _sound_and_broken(summed, Viewer.SERVER, 4, "noise × ⅔", "secure sum leaked")
        yield from _sound_and_broken(summed, Viewer.SERVER, 2, "colluder ignored", times=2)


def _sound_and_broken(
    method: Spec, viewer: Viewer, clients: int, *breaks: Break, times: int = 1, opened: bool = False
) -> Iterator[Whole]:
    sound = Whole(method, viewer, clients, "", times, opened)
    yield sound
    for broken in breaks:
        yield replace(sound, broken=broken)


def cases(runs: int = RUNS, seed: int = 0) -> Iterator[Case]:
    """All of them, for the bench. runs: per world. seed: of the games."""
    return (case_of(whole, runs, seed) for whole in methods_with_mutants())


def case_of(whole: Whole, runs: int = RUNS, seed: int = 0) -> Case:
    """``whole`` as the bench takes it: the price of its plan, and one run of the method for each score."""
    played = mutant_games.play(whole.method, whole.viewer, whole.clients, seeds.generator(seed, "mutants", "game"))
    played = replace(played, plan=replace(played.plan, watch=replace(played.plan.watch, opened=whole.opened)))

    @sampler
    def scores(count: int, rng: np.random.Generator, world: Partition) -> np.ndarray:
        root = int(rng.integers(2**31))
        return np.array([_score(whole, played, world, (root, "run", run)) for run in range(count)])

    absent, present = (scores(world) for world in played.worlds)
    return Case(
        whole.name,
        whole.viewer.value,
        Claim.paid(played.plan.provable(), mutant_games.DELTA),
        present,
        absent,
        lower_bound.gaussian(),
        runs=runs * whole.times,
        mutant=whole.broken or None,
        counts=False,
    )


def _score(whole: Whole, played: mutant_games.Game, world: Partition, path: tuple[int | str, ...]) -> float:
    """One run, read by the method's own evidence, as the viewer of the case sees it."""
    plan = played.plan
    state = _trained(whole, plan, world, path)
    seen_as: Any = plan
    if whole.broken == "second colluder":  # rows of the second one are known, too
        facts = replace(plan.facts, colluders=2)
        seen_as = SimpleNamespace(guarantee=plan.guarantee, facts=facts, **{n: getattr(plan, n) for n in _READ})
    if whole.broken == "secure sum leaked" and not plan.sums.paths:  # the server holds what each client sent
        # a plan with this viewer and so little noise refuses to be made (``Plan``): only what evidence reads is handed on
        seen_as = SimpleNamespace(guarantee=_seen_by_server(plan), facts=plan.facts, **{n: getattr(plan, n) for n in _READ})
    return played.read(seen_as, state)


def _seen_by_server(plan: Plan) -> Guarantee:
    hidden = ("ideal-secure-aggregation", "one-colluder")
    kept = tuple(a for a in plan.guarantee.protection.assumptions if a.value not in hidden)
    protection = replace(plan.guarantee.protection, viewer=Viewer.SERVER, assumptions=kept)
    return replace(plan.guarantee, protection=protection)


def _trained(whole: Whole, plan: Plan, world: Partition, path: tuple[int | str, ...]) -> State:
    """All rounds, by the method's own client and server, through a door that does what the case says."""
    method = plugins.load("methods", plan.method)
    releases = tuple(_as_broken(whole, plan, r) for r in plan.schedule.releases)
    state: State = method.start(plan, seeds.generator(0, "mutants", "start"))
    works = [method.prepare(plan, s) for s in world.subgraphs]
    seen: list[Any] = []
    digests: list[dict[str, str]] = [{} for _ in works]
    for round_ in range(plan.schedule.rounds):
        sent = []
        for client, work in enumerate(works):
            streams = Streams(int(path[0]), (*path[1:], client, round_), "")
            desk = Desk("mutant", client, round_, releases, streams.generator("noise"), released=digests[client])
            sent.append(method.client(plan, work, state.model, round_, streams, desk))
        each = {name: [m[name].value for m in sent] for name in sent[0]}
        sums = {name: np.sum(values, axis=0) for name, values in each.items()}
        hidden = set() if whole.broken == "secure sum leaked" else {name for name, _ in plan.sums.paths}
        told = {name: values for name, values in each.items() if name not in hidden}
        inbox = Inbox(round_, sums, told if plan.facts.viewer is not Viewer.SERVER_SECURE_AGGREGATION else {}, len(sent))
        after = method.server(plan, state, inbox)
        colluders = 2 if whole.broken == "second colluder" else len(seen_by.colluding(plan))
        known = {name: np.sum(values[len(works) - colluders :], axis=0) for name, values in each.items() if colluders}
        seen.append((state.model, replace(inbox, each=told if plan.sums.paths else each, colluding=known)))
        state = State(after.model, after.memory, tuple(seen))
    return state


def _as_broken(whole: Whole, plan: Plan, release: PlannedRelease) -> PlannedRelease:
    """The release as the door really makes it."""
    mechanism = release.mechanism
    if not isinstance(mechanism, GaussianNoise) or not whole.broken:
        return release
    clients, rounds = plan.facts.sizes.num_clients, plan.schedule.rounds
    factor = {
        "noise × ⅔": 2 / 3,
        "one hop not counted": math.sqrt((rounds - 1) / rounds) if rounds > 1 else 1.0,
        "secure sum leaked": 1.0,
        "colluder ignored": math.sqrt((clients - 1) / clients),
        "second colluder": 1.0,
    }[whole.broken]
    return replace(release, mechanism=GaussianNoise(mechanism.std * factor))
