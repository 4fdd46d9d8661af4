"""The contract of every method, in every situation that it declares; no method is left out.

Declared = spent; noise that is not there changes nothing at ε = ∞; inputs stay as they were; and what one unit can change in a
release is at most what the price says, and more than two thirds of it: a sensitivity that is half as large again as the priced
one is found here, whatever the method's own words for it are.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import plugins, seeds
from fedgraph.errors import PrivacyError
from fedgraph.learning import descents, per_sample
from fedgraph.methods.base import Budget, MethodReads, Plan, PlanStreams, State, method_kinds
from fedgraph.privacy import events, ledger
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk, DeskWalk, PlannedRelease, Released
from fedgraph.privacy.mechanisms.blocks import PerBlock
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, NoiseMechanism
from fedgraph.privacy.mechanisms.objective_perturbation import ObjectivePerturbation
from fedgraph.privacy.neighbour_sums import NeighbourSums
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Unit, Viewer
from fedgraph.runtime.base import Runtime
from fedgraph.types import Graph, Partition, Subgraph, graph_without_edges
from tests.graphs import zeroed
from tests.trainings import Key, Trainings, cases, difference, placed, planned, train

CASES = cases()
CENTRAL = [p for p in CASES if p.values[2] is Trust.CURATOR or (p.values[0] == "local_dp" and p.values[2] is not Trust.SUMS)]


@pytest.mark.parametrize(("name", "index", "trusted"), cases(turn=1))
@pytest.mark.parametrize("epsilon", [2.0, pytest.param(np.inf, marks=pytest.mark.slow)])
def test_declared_is_spent_inputs_stay_a_round_may_be_asked_again_and_an_answer_reads_no_more_than_is_said(
    name: str, index: int, trusted: Trust, epsilon: float, trainings: Trainings
) -> None:
    """``fedgraph predict`` decides by ``OFFERS.reads`` whom a model may answer."""
    training = trainings.of(Key(name, index, trusted, epsilon))
    plan = training.plan
    whole = dataclasses.replace(plan, guarantee=dataclasses.replace(plan.guarantee, sampled_once=None))
    paid, declared, nothing = ledger.spent_by_client(training.outcome.releases), whole.declared(), events.Composed(())
    for client in range(plan.facts.num_clients):
        one, other = (price(of, plan.guarantee.delta).epsilon for of in (paid.get(client, nothing), declared[client]))
        assert one == pytest.approx(other, rel=1e-9)
    assert not training.changed
    offers, asked = method_kinds.load(name).OFFERS, training.asked
    said = offers.reads(plan) if offers.reads is not None else None
    if offers.kind == "classifier" and said in (MethodReads.OWN_ROW, MethodReads.NOTHING):
        other = graph_without_edges(asked)
        if said is MethodReads.NOTHING:
            other = dataclasses.replace(other, features=0 * other.features)
        predict, state = method_kinds.load_classifier(name).predict, training.outcome.state
        assert np.allclose(predict(plan, state, asked), predict(plan, state, other), atol=1e-6)


# A plan knows the least that a unit moves a release: half of what sage_node's rows of neighbours move, one row of local_dp's.
NOISE_LEFT = {"sage_node": 1 / 3, "local_dp": 1e-3}  # of others two thirds


def weakened(mechanism: NoiseMechanism, left: float) -> NoiseMechanism:
    """That part of the noise; of a perturbed objective none, since how much it needs is calibrated beside its proof."""
    if isinstance(mechanism, PerBlock):
        return dataclasses.replace(mechanism, parts=tuple(weakened(part, left) for part in mechanism.parts))
    if isinstance(mechanism, ObjectivePerturbation):
        return dataclasses.replace(mechanism, rate=math.inf, noise_std=0.0, output_std=0.0)
    less = {"std": left, "scale": left, "epsilon": 1 / left, "epsilon_per_bit": 1 / left}
    fields = {name: getattr(mechanism, name) * times for name, times in less.items() if hasattr(mechanism, name)}
    return dataclasses.replace(mechanism, **fields)  # type: ignore[arg-type]


STREAM_WORDS = {"Protection"}  # classes in a plan's fingerprint: with another name they would draw other noise


@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=pytest.mark.slow), 2.0])
@pytest.mark.parametrize(("name", "index", "trusted"), CASES)
def test_a_plan_is_what_is_offered_and_spends_its_budget(
    name: str, index: int, trusted: Trust, epsilon: float, library: Graph, trainings: Trainings
) -> None:
    """And two thirds of the noise at full price is no plan, whatever release it is: hops, bits, degrees, gradients."""
    method = method_kinds.load(name)
    offers, plan = method.OFFERS, trainings.planned(Key(name, index, trusted, epsilon))[0]
    protection, releases = plan.guarantee.protection, plan.schedule.releases
    situation, in_clear = offers.situations[index], all(isinstance(r.mechanism, Disclose) for r in releases)
    assert protection.unit in offers.units
    assert (protection.viewer is Viewer.WORLD) == offers.trusts_nobody
    assert in_clear != offers.is_private(situation.settings)
    assert set(re.findall(r'"record","(\w+)"', plan.fingerprint_text)) <= STREAM_WORDS
    if not in_clear and Assumption.MODEL_GIVEN not in protection.assumptions:  # then the ε is of one release
        assert 0.95 * epsilon < plan.provable().epsilon <= epsilon * (1 + 1e-12), "more than asked for, or too much noise"
    for release in (r for r in releases if not isinstance(r.event, events.Unprotected)):
        less = dataclasses.replace(release, mechanism=weakened(release.mechanism, NOISE_LEFT.get(name, 2 / 3)))
        broken = tuple(less if r is release else r for r in releases)
        with pytest.raises(PrivacyError, match=f"release '{release.path}' is priced as"):
            dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, releases=broken))
    if offers.ignores_budget is not None:
        free = dataclasses.replace(situation, settings={**situation.settings, **offers.ignores_budget})
        without = method.plan(method.Params(**free.settings), placed(free, trusted, library)[1], Budget(epsilon, 1e-3))
        assert all(isinstance(r.mechanism, Disclose) for r in without.schedule.releases)
        assert math.isinf(without.provable().epsilon)


@pytest.mark.parametrize(
    ("name", "index", "trusted"),
    [pytest.param(*p.values, id=p.id, marks=() if p.values[1] == 0 else pytest.mark.slow) for p in CENTRAL],
)
def test_at_infinity_no_noise_is_drawn(
    name: str, index: int, trusted: Trust, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another noise stream, all other streams as they are: the result must be the same."""
    plan, partition, asked = planned(name, index, trusted, library, np.inf)
    honest = PlanStreams.generator

    def trained_with(seed: int) -> State:
        def generator(streams: PlanStreams, stream: str) -> np.random.Generator:
            return np.random.default_rng(seed) if stream == "noise" else honest(streams, stream)

        monkeypatch.setattr(PlanStreams, "generator", generator)
        return train(plan, partition).state

    first, second = trained_with(1), trained_with(2)
    assert not difference(first, second)
    if method_kinds.load(name).OFFERS.kind == "classifier":
        scores = method_kinds.load_classifier(name).predict(plan, first, asked)
        assert scores.shape == (asked.num_nodes, asked.num_classes)
        assert np.isfinite(scores).all()


QUICK_RAY = {"features", "label_hop", "link_hops"}  # hidden layers of a server, answers of clients, pairs: one of each
RAY = [
    pytest.param(
        *p.values, id=p.id, marks=() if p.values[0] in QUICK_RAY and p.id.endswith("-0-own-client") else pytest.mark.slow
    )
    for p in CASES
]


@pytest.mark.ray
@pytest.mark.parametrize(("name", "index", "trusted"), RAY)
def test_serial_equals_ray_bit_for_bit(
    name: str, index: int, trusted: Trust, trainings: Trainings, ray_engine: Runtime
) -> None:
    training = trainings.of(Key(name, index, trusted))
    parallel = train(training.plan, training.partition, ray_engine)
    assert training.outcome.releases == parallel.releases
    assert not difference(training.outcome.state, parallel.state)


class Watched(Desk):
    """A desk that keeps the bounded values that meet noise. earlier: what the other world's desk let out, let out here again.

    Releases of one round compose: what a later one may move is counted with the same earlier values in both worlds.
    """

    def __init__(self, plan: Plan, round_: int, streams: PlanStreams, other: "Watched | None") -> None:
        own = [r for r in plan.schedule.releases if r.client in (None, 0)]
        super().__init__("watched", 0, round_, own, streams.generator("noise"), lambda r: streams.generator("noise"))
        self.seen: dict[str, list[np.ndarray]] = {}
        self.left: dict[str, list[Released]] = {}
        self.replayed: dict[str, np.ndarray] = {}
        self.other = other

    def release(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> Released:
        bound = next(r for r in self.planned if r.path == path).bound
        given = np.asarray(value() if callable(value) else value)
        number = len(self.seen.setdefault(path, []))
        self.seen[path].append(bound.enforce(given))
        released = super().release(path, given) if self.other is None else self.other.left[path][number]
        self.left.setdefault(path, []).append(released)
        return released

    def replay(self, path: str, value: np.ndarray | Callable[[], np.ndarray]) -> np.ndarray:
        self.replayed[path] = super().replay(path, value) if self.other is None else self.other.replayed[path]
        return self.replayed[path]

    def walk(self, path: str, walk: DeskWalk) -> Released:
        plan = next(r for r in self.planned if r.path == path)
        self.seen.setdefault(path, []).append(plan.bound.enforce(np.asarray(walk.private(walk.start))))
        return super().walk(path, walk)


def worlds(plan: Plan, graph: Graph) -> Iterator[tuple[Graph, Graph, int]]:
    """Graphs made to hurt, each beside a neighbour: a hub, a clique's member, a leaf; or an edge of each."""
    n = graph.num_nodes
    star = np.zeros((n, n))
    star[0, 1:] = star[1:, 0] = 1
    for adjacency in (graph.adjacency.toarray(), star):
        world = dataclasses.replace(graph, adjacency=sp.csr_array(adjacency))
        for node in (0, int(world.degrees.argmax()), n - 1):
            if plan.guarantee.protection.unit is Unit.NODE:
                yield world, zeroed(world, node), node
            else:
                other = int(np.flatnonzero(adjacency[node])[0]) if adjacency[node].any() else 1
                gone = adjacency.copy()
                gone[node, other] = gone[other, node] = 0
                yield world, dataclasses.replace(world, adjacency=sp.csr_array(gone)), node


def hurtful(plan: Plan) -> dict[str, np.ndarray]:
    """What is broadcast first, with parameters so large that gradients are clipped."""
    state, rng = method_kinds.load(plan.method).start(plan, np.random.default_rng(0)), np.random.default_rng(1)
    return {k: (v + 3 * rng.standard_normal(v.shape).astype(v.dtype) if v.ndim == 1 else v) for k, v in state.model.items()}


def priced(release: PlannedRelease) -> float | None:
    """The change that the noise is priced for: its std over its multiplier (of one row, where rows are drawn by coins)."""
    event = release.event.event if isinstance(release.event, events.Repeated | events.PartOf) else release.event
    if not isinstance(release.mechanism, GaussianNoise) or not isinstance(event, events.Gaussian | events.PoissonGaussian):
        return None
    return release.mechanism.std / event.noise_multiplier


def shown(
    plan: Plan, subgraph: Subgraph, model: dict[str, np.ndarray], round_: int, root: Any = 0, other: Watched | None = None
) -> Watched:
    """The desk of the client with ``subgraph`` after one round. root: of all its streams."""
    method, streams = method_kinds.load(plan.method), PlanStreams(root, ("c", "client", 0, "round", round_))
    desk = Watched(plan, round_, streams, other)
    method.client(plan, method.prepare(plan, subgraph), model, round_, streams, desk)
    return desk


def moved(plan: Plan, partition: Partition) -> dict[str, float]:
    """Per path, the largest change that one unit of client 0 made in a bounded value, over worlds and rounds.

    Parameters are so large that gradients are clipped. What a server sends that deviates is for the two-worlds test.
    """
    subgraph, found, model = partition.subgraphs[0], dict[str, float](), hurtful(plan)
    for one, two, node in worlds(plan, subgraph.graph):
        for round_ in sorted({r.rounds[0] for r in plan.schedule.releases if len(r.rounds)}):
            here = shown(plan, dataclasses.replace(subgraph, graph=one), model, round_)
            there = shown(plan, dataclasses.replace(subgraph, graph=two), model, round_, other=here)
            for path, values in here.seen.items():
                for value, other in zip(values, there.seen[path], strict=True):
                    if value.shape != other.shape:
                        continue  # e.g. one answer of each labelled node
                    change = value.astype(float) - other
                    if Assumption.ROWS_NEVER_RELEASED in plan.guarantee.protection.assumptions and path.startswith("aggregate"):
                        change[node] = 0  # shown to nobody: it enters the node's own gradient, which is clipped
                    found[path] = max(found.get(path, 0.0), float(np.linalg.norm(change)))
    return found


def largest_row_of_one_neighbour(plan: Plan, partition: Partition) -> float:
    """The largest norm of a row of a hop where everybody has one neighbour; of the noisy rows of the hop before, too."""
    hops = {r.path: r.rounds for r in plan.schedule.releases if isinstance(r.bound, NeighbourSums)}
    whole, found, model = partition.subgraphs[0], 0.0, hurtful(plan)
    pairs = np.kron(np.eye(-(-whole.nodes.size // 2)), 1 - np.eye(2))[: whole.nodes.size, : whole.nodes.size]
    subgraph = dataclasses.replace(whole, graph=dataclasses.replace(whole.graph, adjacency=sp.csr_array(pairs)))
    for round_ in sorted({rounds[0] for rounds in hops.values()}):
        seen = shown(plan, subgraph, model, round_).seen
        for value in (value for path in hops for value in seen.get(path, ())):
            found = max(found, float(np.linalg.norm(value.astype(float), axis=1).max()))
    return found


MEASURED = [p for p in CENTRAL if p.values[2] is Trust.CURATOR and p.values[0] not in ("nonprivate",)]


@pytest.mark.parametrize(("name", "index", "trusted"), MEASURED)
def test_one_unit_moves_a_release_by_what_is_priced(name: str, index: int, trusted: Trust, trainings: Trainings) -> None:
    """And a price for two thirds of it is found out: the noise of every Gaussian release is what the worst unit needs."""
    plan, partition, _ = trainings.planned(Key(name, index, trusted))
    assert largest_row_of_one_neighbour(plan, partition) <= 1 + 1e-6, "the price of hops rests on rows of norm 1 at most"
    changes = moved(plan, partition)
    for release in plan.schedule.releases:
        least = priced(release)
        if least is None or release.path not in changes:
            continue
        rows = 1
        event = release.event.event if isinstance(release.event, events.Repeated | events.PartOf) else release.event
        if isinstance(event, events.PoissonGaussian):
            rows = 2 * event.touched_rows - 1 + int(event.replaced)
        assert changes[release.path] <= least * rows * (1 + 1e-6), f"{release.path} moves more than is priced"
        if isinstance(release.bound, ClippedSum) and isinstance(
            event, events.Gaussian
        ):  # where rows are drawn, the unit may not be
            reached = min(least, release.bound.clip)  # some methods also price what neighbours of the unit may move
            assert changes[release.path] > reached * 2 / 3, f"{release.path}: a price for two thirds would not be seen"


MAY_MISS = [p for p in MEASURED if method_kinds.load(str(p.values[0])).OFFERS.partial_rounds]


@pytest.mark.parametrize(("name", "index", "trusted"), MAY_MISS)
def test_who_may_miss_rounds_needs_nothing_that_it_released_in_one(
    name: str, index: int, trusted: Trust, trainings: Trainings
) -> None:
    """``Offers.partial_rounds``: whoever was away has released nothing, so what it makes again then was never recorded."""
    plan, partition, _ = trainings.planned(Key(name, index, trusted))
    method = method_kinds.load(name)
    model = method.start(plan, np.random.default_rng(0)).model
    for round_ in range(plan.schedule.rounds):
        streams = PlanStreams(0, ("c", "client", 0, "round", round_))
        desk = Desk("c", 0, round_, plan.schedule.of_client(0), streams.generator("noise"))
        sent = method.client(plan, method.prepare(plan, partition.subgraphs[0]), model, round_, streams, desk)
        assert {value.entry for value in sent.values()} == set(desk.entries), "what stays with the client is needed later"


def test_every_kernel_that_a_plan_names_is_run_here(trainings: Trainings) -> None:
    named = {
        release.bound.kernel
        for p in MEASURED
        if method_kinds.load(str(p.values[0])).__name__.startswith("fedgraph")  # of another package: its own matter
        for release in trainings.planned(Key(*p.values))[0].schedule.releases
        if isinstance(release.bound, ClippedSum)
    }
    learning = {f"fedgraph.learning.{room}.clipped_sum" for room in ("per_sample", "example_gradients", "pair_scorer")}
    assert learning <= named, "each is measured above"
    aside = {"fedgraph.learning.aggregated_rows.clipped_sum", "fedgraph_zoo.staged.clip_staged_gradients"}
    assert named <= learning | aside, "a kernel that a plan names is listed here, and its file has a test that it clips"


def test_a_sensitivity_of_one_and_a_half_priced_as_one_is_caught(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner clips to 1.5 times the clip that is priced: the check above must see it."""
    honest = per_sample.clipped_sum
    monkeypatch.setattr(per_sample, "clipped_sum", lambda *given: honest(*given[:-1], 1.5 * given[-1]))
    plan, partition, _ = planned("features", 0, Trust.CURATOR, library, 2.0)
    assert moved(plan, partition)["model"] > priced(plan.schedule.releases[0]) * 1.2


# ---------------------------------------------------------------------------------------------- who is drawn, in secret

DRAWN: dict[str, dict[str, Any]] = {  # of the zoo's methods where it is installed
    "dpar": {},
    "gap_node": {"sampling_rate": 0.4},
    "progap_node": {"sampling_rate": 0.4},
    "privgnn": {},
    "heter_poisson": {},
    "own_model": {},
    "link_hops": {"hops": 0, "decoder": "steps", "steps": 3, "sampling_rate": 0.4},
    "sage_node": {"sampling_rate": 0.4, "cap": "promised", "degree": 3},
}
SECRET = {"dpar": {"sample"}, "heter_poisson": {"batch", "mentions"}, "own_model": {"batch", "mentions"}}  # of others a batch
each_that_draws = pytest.mark.parametrize("name", [name for name in DRAWN if name in plugins.names("methods")])
By_coins = events.PoissonGaussian | events.FixedSizeGaussian | events.MentionedGaussian


def drawing(name: str, graph: Graph) -> tuple[Plan, Subgraph, dict[str, np.ndarray]]:
    plan, partition, _ = planned(name, 0, Trust.CURATOR, graph, 2.0, **DRAWN[name])
    return plan, partition.subgraphs[0], hurtful(plan)


def leaf_of(release: PlannedRelease) -> object:
    return next(leaf for leaf, _ in events.flatten(release.event))


def differ(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return any(not np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def elsewhere(stream: str, honest: Callable[..., Any]) -> Callable[..., Any]:
    """``honest``, whose numbers of this one stream come from another."""
    return lambda streams, of, *given: honest(
        dataclasses.replace(streams, fingerprint="other") if of == stream else streams, of, *given
    )


@each_that_draws
def test_who_is_drawn_follows_the_secret_and_the_round_by_each_stream_that_says_so(
    name: str, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coins that come from elsewhere (a seed that everybody knows, another stream) leave a name without any effect."""
    plan, subgraph, model = drawing(name, library)
    secrets = [seeds.SecretSeed(bytes([key]) * 32) for key in (1, 2)]
    drawn = [r for r in plan.schedule.releases if isinstance(leaf_of(r), By_coins) or plan.guarantee.sampled_once is not None]
    for release in drawn:
        first, *later = release.rounds
        one, again, *others = (
            shown(plan, subgraph, model, round_, secrets[key]).seen[release.path]
            for key, round_ in ((0, first), (0, first), (1, first), *((0, round_) for round_ in later[:1]))
        )
        assert not differ(one, again), "a restarted worker draws them again"
        assert all(differ(one[:1], other[:1]) for other in others), f"{release.path}: the same rows again"
    assert drawn
    first = next(r for r in plan.schedule.releases if not isinstance(leaf_of(r), events.Gaussian)).rounds[0]
    honest = shown(plan, subgraph, model, first, secrets[0]).seen
    for stream in SECRET.get(name, {"batch"}):
        with monkeypatch.context() as patch:
            for draws in ("generator", "drawn"):
                patch.setattr(PlanStreams, draws, elsewhere(stream, getattr(PlanStreams, draws)))
            moved_by = shown(plan, subgraph, model, first, secrets[0]).seen
        assert any(differ(honest[path], moved_by[path]) for path in honest), stream


class Forced:
    """A private stream in which the coin of one node falls as is wanted, of as many coins as there are nodes."""

    def __init__(self, rng: np.random.Generator, node: int, coin: float, num_nodes: int) -> None:
        self._rng, self._node, self._coin, self._num_nodes = rng, node, coin, num_nodes

    def random(self, size: int) -> np.ndarray:
        found = self._rng.random(size)
        if size == self._num_nodes:
            found[self._node] = self._coin
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)


@pytest.mark.parametrize("name", [n for n in DRAWN if n != "link_hops" and n in plugins.names("methods")])  # edges have no coin
def test_who_is_gone_leaves_the_same_whether_it_is_drawn_or_not(
    name: str, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a secret sample hides under zero-out: a node without data is as good as one that was not drawn."""
    plan, subgraph, model = drawing(name, library)
    generator, drawn = PlanStreams.generator, PlanStreams.drawn
    # Of all that one sample feeds, the first release: the coins of later ones are counted along the rows that are left.
    first = next(r for r in plan.schedule.releases if not isinstance(leaf_of(r), events.Gaussian))
    for node in (int(subgraph.graph.degrees.argmax()), subgraph.nodes.size - 1):
        gone, desks = dataclasses.replace(subgraph, graph=zeroed(subgraph.graph, node)), list[Watched]()
        for coin in (0.0, 1.0):

            def forced(streams: PlanStreams, of: str, node: int = node, coin: float = coin) -> Any:
                rng = generator(streams, of)
                return Forced(rng, node, coin, subgraph.nodes.size) if of in ("batch", "sample") else rng

            def tossed(streams: PlanStreams, of: str, things: Any, rate: float, node: int = node, coin: float = coin) -> Any:
                found = drawn(streams, of, things, rate)
                if things.ndim == 1:
                    found[things == subgraph.nodes[node]] = coin < rate
                return found

            monkeypatch.setattr(PlanStreams, "generator", forced)
            monkeypatch.setattr(PlanStreams, "drawn", tossed)
            desks.append(shown(plan, gone, model, first.rounds[0], other=desks[0] if desks else None))
        one, two = (desk.seen[first.path] for desk in desks)
        assert one
        assert not differ(one, two), f"node {node}, which is gone, was heard"


@each_that_draws
def test_rows_are_drawn_at_the_rate_that_is_priced(name: str, library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price for half of the rate would be far too small, and moves no value that a test of sensitivities sees."""
    plan, subgraph, model = drawing(name, library)
    drawn: list[float] = []

    def keep(room: Any, draws: str) -> None:
        honest = getattr(room, draws, None)
        if honest is None:
            return

        def kept(*given: Any) -> Any:
            mask = honest(*given)
            drawn.append(float(given[3]) if draws == "drawn" else float(given[1]))
            assert draws != "draw_fixed_mask" or mask.sum() == given[1]
            return mask

        monkeypatch.setattr(room, draws, kept)

    keep(PlanStreams, "drawn")
    for draws in ("draw_poisson_mask", "draw_fixed_mask"):
        keep(method_kinds.load(name), draws)
        keep(descents, draws)  # a method may reach it through its module
    checked = 0
    for release in plan.schedule.releases:
        leaf = leaf_of(release)
        if plan.guarantee.sampled_once is not None or not isinstance(leaf, By_coins):
            continue
        drawn.clear()
        shown(plan, subgraph, model, release.rounds[0], seeds.SecretSeed(bytes(32)))
        if isinstance(leaf, events.FixedSizeGaussian):
            assert (drawn, leaf.num_rows) == ([leaf.batch_size], subgraph.nodes.size)
        elif isinstance(leaf, events.MentionedGaussian):
            assert drawn == [leaf.sampling_rate, leaf.mention_rate]
        else:
            assert drawn == [leaf.sampling_rate]
        checked += 1
    assert checked or name == "dpar"
