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

**Judged** by ``audit.lower_bound.gaussian``: the score of a sound run is a sum of Gaussian releases along
directions of one length (gradients that are clipped, rows of norm one), so that the distance in standard deviations, estimated
from the runs, gives a lower limit of μ. All sound rows together are accused with probability at most ``MUTANT_ERROR_RATE``.

``UNSEEN_MUTANTS`` (``unseen.toml``) lists what no attack here can tell, and why.

**The two inputs.** Nodes and edges: 90 nodes of the graph that is shipped, one canary node or edge. Graphs (``local_dp``):
clients of six nodes each with two classes, and one canary graph: with two classes the gradients of the two versions point away
from each other exactly, and a large step makes the clip bind, so that the canary moves an update by all that is priced. The
histogram of labels that is released beside it moves by all that is priced, too.
"""

import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from fedgraph import data, plugins, seeds
from fedgraph.attacks import evidence
from fedgraph.attacks.base import canary_graphs, coin_game
from fedgraph.audit import lower_bound
from fedgraph.documents.settings import SettingsSpec
from fedgraph.methods import base
from fedgraph.methods.base import Plan, State
from fedgraph.methods.base import seen as seen_by
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.types import Graph, Partition, Subgraph, graph_without_edges
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler
from tests.public_facts import public_facts

EPSILON, DELTA = 4.0, 1e-3
_SMALL = {  # one step of a small model, clipped, and a histogram of labels
    "unit": "graph", "rounds": 2, "hidden": 2, "projection": 4, "local_epochs": 1, "learning_rate": 50.0, "clip": 0.01,
    "release": "labels", "server_rate": 0.1,
}  # fmt: skip
_NODES = 6  # of a client's graph
MUTANT_ERROR_RATE = 0.01
MUTANT_RUNS = 300
_READ = ("method", "params", "made", "schedule", "sums", "watch")  # of a plan, what an ``evidence`` reads
_Break = Literal["", "noise × ⅔", "one hop not counted", "secure sum leaked", "colluder ignored", "second colluder"]
UNSEEN_MUTANTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("unseen.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class _Whole:
    """A method on the bench, sound or broken.

    method: its settings, its name among them. viewer: who is priced. broken: what the door does otherwise than the plan says;
    empty: nothing. times: how many times the usual number of runs is made, where the break is small. opened: whether all that
    is priced is read, also what stays at a client.
    """

    method: SettingsSpec
    viewer: Viewer
    clients: int
    broken: _Break = ""
    times: int = 1
    opened: bool = False

    @property
    def name(self) -> str:
        """The name of the sound method, which its mutants share."""
        told = " ".join(str(self.method[key]) for key in ("method", "training", "updates") if key in self.method)
        return f"{told}, {self.clients} client{'s'[: self.clients > 1]}"


def listed() -> Iterator[_Whole]:
    """Every sound method, and after it its mutants."""

    def both(method: SettingsSpec, viewer: Viewer, clients: int, *breaks: _Break, **how: Any) -> Iterator[_Whole]:
        return (_Whole(method, viewer, clients, broken, **how) for broken in ("", *breaks))

    features = {"method": "features", "steps": 2, "projection": "none"}
    alone, server, together = Viewer.CURATOR_TRUSTED, Viewer.SERVER, Viewer.SERVER_SECURE_AGGREGATION
    yield from both(features, server, 2, "noise × ⅔")
    yield from both(features, together, 5, "secure sum leaked")
    yield from both(features, together, 3, "secure sum leaked", "second colluder", times=2)
    yield from both(features, together, 2, "colluder ignored", times=2)
    drawn = {"method": "heter_poisson", "steps": 2, "projection": 0, "sampling_rate": 1.0}  # its own row, in every step
    yield from both(drawn, server, 2, "noise × ⅔")
    hops = {"method": "gap_edge", "hops": 2, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    for method in (hops, {"method": "progap_edge", "hops": 2, "epochs": 1, "hidden": 4}):
        yield from both(method, alone, 1, "noise × ⅔", "one hop not counted")
    staged = {"steps": 2, "projection": 0, "hop_share": 0.1}
    for method in ({"method": "gap_node", **staged}, {"method": "progap_node", "hops": 1, **staged}):
        yield from both(method, server, 2, "noise × ⅔", opened=True)
    for training in ("dp_fedavg", "dp_sgd"):
        each = {"method": "local_dp", "training": training, "updates": "each", **_SMALL}
        summed = {**each, "updates": "sum"}
        yield from both(each, server, 2, "noise × ⅔")
        yield from both(summed, server, 4, "noise × ⅔", "secure sum leaked")
        yield from both(summed, server, 2, "colluder ignored", times=2)


# (a plan at ``EPSILON`` and ``DELTA``; the clients without the canary, or with it in version 0, and with it; from what a viewer
# sees of the plan, and the final state, to the score of one run)
_Game = tuple[Plan, tuple[Partition, Partition], Callable[[Any, State], float]]


def _units(module: Any, settings: Any, whole: Graph, viewer: Viewer, clients: int, rng: np.random.Generator) -> _Game:
    held, public = whole.induced(np.arange(90)), whole.induced(np.arange(90, 180))
    parts = np.array_split(np.arange(held.num_nodes), clients)
    dealt = _dealt(tuple(Subgraph(i, held.induced(p), p) for i, p in enumerate(parts)))
    edge = module.OFFERS.units == (Unit.EDGE,) or dict(settings).get("unit") == "edge"
    known = {"public_attributes": graph_without_edges(held)} if edge else {"public_graph": public}
    sizes = tuple(p.size for p in parts)
    facts = public_facts(
        held.num_nodes, held.num_features, held.num_classes, sizes, viewer, members=tuple(parts), **known
    )  # fmt: skip
    plan: Plan = module.plan(settings, facts, base.Budget(EPSILON, DELTA))
    asked, relation = coin_game.join_canary_clients(dealt, held), plan.guarantee.protection.relation
    found: coin_game.Canaries
    if relation.unit is Unit.NODE:
        own = np.isin(np.arange(asked.num_nodes), parts[0])
        honest = replace(asked, labels=np.where(own, asked.labels, -1))
        found = coin_game.draw_canary_nodes(honest, public, relation, 1, "word", rng)
        asked = found.planted(asked, np.arange(asked.num_nodes), np.ones(1, dtype=bool))
    else:
        found = coin_game.draw_canary_edges(asked, dealt, relation, 1, rng)
    without, with_it = (coin_game.plant(dealt, replace(found, coins=np.array([there]))) for there in (False, True))
    read = evidence.readers(plan.method).evidence
    return plan, (without, with_it), lambda seen_as, state: float(read(seen_as, state, asked, found.units)[0])


def _graphs(module: Any, settings: Any, whole: Graph, viewer: Viewer, clients: int, rng: np.random.Generator) -> _Game:
    two = replace(whole, labels=np.where(whole.labels >= 0, whole.labels % 2, -1), num_classes=2)
    parts = [np.arange(_NODES * i, _NODES * (i + 1)) for i in range(clients)]
    dealt = _dealt(tuple(Subgraph(i, two.induced(p), p, center=0) for i, p in enumerate(parts)))
    sizes, holdings = (_NODES,) * clients, dealt.holdings(two.num_nodes)
    facts = public_facts(two.num_nodes, two.num_features, 2, sizes, viewer, holdings, public_name="nothing")
    plan: Plan = module.plan(settings, facts, base.Budget(EPSILON, DELTA))
    found = canary_graphs.draw(plan, dealt, rng)
    assert found is not None
    one = replace(found.zero, subgraphs=(found.one.subgraphs[0], *found.zero.subgraphs[1:]))
    units = (found.units[0], *(np.full_like(own, -1) for own in found.units[1:]))
    read = evidence.readers(plan.method).graph_evidence
    return plan, (found.zero, one), lambda seen_as, state: float(read(seen_as, state, found.zero, one, units)[0])


def _dealt(clients: tuple[Subgraph, ...]) -> Partition:
    return Partition(clients, True, 0, f"{len(clients)} clients", from_edges=False, from_labels=False)


def list_mutant_cases(runs: int = MUTANT_RUNS, seed: int = 0) -> Iterator[BenchCase]:
    """All of them, for the bench. runs: per world. seed: of the games."""
    here = plugins.names("methods")  # some stand in the zoo, which may not be installed
    return (_case_of(whole, runs, seed) for whole in listed() if whole.method["method"] in here)


def _case_of(whole: _Whole, runs: int = MUTANT_RUNS, seed: int = 0) -> BenchCase:
    module, graph = plugins.load("methods", whole.method["method"]), data.load("embedded/library")
    rng, settings = seeds.seeded_generator(seed, "mutants", "game"), {k: v for k, v in whole.method.items() if k != "method"}
    play = _graphs if module.OFFERS.kind == "embedder" else _units
    plan, worlds, read = play(module, module.Params(**settings), graph, whole.viewer, whole.clients, rng)
    plan = replace(plan, watch=replace(plan.watch, opened=whole.opened))

    @bench_sampler
    def scores(count: int, rng: np.random.Generator, world: Partition) -> list[float]:
        root = int(rng.integers(2**31))
        return [_score(whole, plan, read, world, (root, "run", run)) for run in range(count)]

    absent, present = (scores(world) for world in worlds)
    claim, how = BenchClaim.paid(plan.provable(), DELTA), lower_bound.gaussian()
    told = {"mutant": whole.broken or None, "runs": runs * whole.times, "counts": False}
    return BenchCase(whole.name, whole.viewer.value, claim, present, absent, how, **told)


def _score(whole: _Whole, plan: Plan, read: Any, world: Partition, path: tuple[int | str, ...]) -> float:
    state = _trained(whole, plan, world, path)
    facts, guarantee = plan.facts, plan.guarantee
    if whole.broken == "second colluder":  # rows of the second one are known, too
        facts = replace(facts, colluders=2)
    elif whole.broken == "secure sum leaked" and not plan.sums.paths:  # the server holds what each client sent
        hidden = ("ideal-secure-aggregation", "one-colluder")
        kept = tuple(a for a in guarantee.protection.assumptions if a.value not in hidden)
        guarantee = replace(guarantee, protection=replace(guarantee.protection, viewer=Viewer.SERVER, assumptions=kept))
    # a plan that says so, with so little noise, refuses to be made (``Plan``): only what evidence reads is handed on
    seen = {name: getattr(plan, name) for name in _READ}
    return read(SimpleNamespace(guarantee=guarantee, facts=facts, **seen), state)


def _trained(whole: _Whole, plan: Plan, world: Partition, path: tuple[int | str, ...]) -> State:
    """All rounds, by the method's own client and server, through a door that does what the case says."""
    method = plugins.load("methods", plan.method)
    clients, rounds = plan.facts.num_clients, plan.schedule.rounds
    factor = {  # of the noise, at the door as it really is
        "noise × ⅔": 2 / 3,
        "one hop not counted": math.sqrt((rounds - 1) / rounds) if rounds > 1 else 1.0,
        "colluder ignored": math.sqrt((clients - 1) / clients),
    }.get(whole.broken, 1.0)
    releases = []
    for release in plan.schedule.releases:
        noise = release.mechanism
        less = GaussianNoise(noise.std * factor) if isinstance(noise, GaussianNoise) else noise
        releases.append(replace(release, mechanism=less))
    state: State = method.start(plan, seeds.seeded_generator(0, "mutants", "start"))
    works = [method.prepare(plan, s) for s in world.subgraphs]
    seen: list[Any] = []
    digests: list[dict[str, str]] = [{} for _ in works]
    for round_ in range(rounds):
        sent = []
        for client, work in enumerate(works):
            streams = base.PlanStreams(int(path[0]), (*path[1:], client, round_), "")
            desk = Desk("mutant", client, round_, tuple(releases), streams.generator("noise"), released=digests[client])
            sent.append(method.client(plan, work, state.model, round_, streams, desk))
        each = {name: [m[name].value for m in sent] for name in sent[0]}
        sums = {name: np.sum(values, axis=0) for name, values in each.items()}
        hidden = set() if whole.broken == "secure sum leaked" else {name for name, _ in plan.sums.paths}
        told = {name: values for name, values in each.items() if name not in hidden}
        secure = plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION
        inbox = base.PlanInbox(round_, sums, {} if secure else told, len(sent))
        after = method.server(plan, state, inbox)
        colluders = 2 if whole.broken == "second colluder" else len(seen_by.colluders_of(plan))
        known = {name: np.sum(values[len(works) - colluders :], axis=0) for name, values in each.items() if colluders}
        seen.append((state.model, replace(inbox, each=told if plan.sums.paths else each, colluding=known)))
        state = State(after.model, after.memory, tuple(seen))
    return state
