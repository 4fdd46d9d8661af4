"""own_model: in how many examples of a step a node is, who reads whom, and that each example is clipped and seen by itself."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
import torch
from scipy.stats import binom, norm

from fedgraph import data, seeds
from fedgraph.errors import ScenarioError
from fedgraph.learning import NetworkExamples, NetworkSpec, example_gradients, isolation, neighbour_limits, own_network, rooted
from fedgraph.methods import own_model
from fedgraph.methods.base import Budget, PlanStreams, examples
from fedgraph.privacy import MentionedGaussian, Viewer, events
from fedgraph.privacy.accounting import pld
from fedgraph.types import Subgraph
from tests.mutants.code import Breaks, CodeMutant
from tests.public_facts import public_facts

_ROUNDS = 2


def _made() -> tuple[Any, Subgraph]:
    """A plan that reads neighbours under a promised degree, which a hub breaks; everybody may be read."""
    library = data.load("embedded/library")
    held, public = library.induced(np.arange(120)), library.induced(np.arange(120, 200))
    hub = held.adjacency.toarray()
    hub[0, 1:90] = hub[1:90, 0] = 1
    held = replace(held, adjacency=sp.csr_array(hub))
    facts = public_facts(
        120, held.num_features, held.num_classes, (120,), Viewer.CURATOR_TRUSTED, public_graph=public,
        members=(np.arange(120),), public_name="test-graph",
    )  # fmt: skip
    params = own_model.Params(
        model="torch_geometric.nn.GCN", arguments={"hidden_channels": 4, "num_layers": 2}, cap="promised", degree=3,
        mentions=1e3, hops=1, sampling_rate=0.6, projection=4, steps=_ROUNDS, clip=0.05, neighbours=50,
    )  # fmt: skip
    return own_model.plan(params, facts, Budget(4.0, 1e-3)), Subgraph(0, held, np.arange(120))


class _Open:
    """A desk that asks for the value and keeps nothing, so that no bound of its own stops a fault first."""

    def release(self, path: str, value: Any) -> None:
        value()


def _steps() -> Iterator[tuple[Any, PlanStreams, NetworkExamples]]:
    """(plan, streams, examples) of each step, as the method makes them."""
    plan, subgraph = _made()
    model, honest = own_model.start(plan, np.random.default_rng(0)).model, example_gradients.clipped_sum
    for round_ in range(_ROUNDS):
        streams, desk = PlanStreams(seeds.SecretSeed(bytes(32)), ("c", "client", 0, "round", round_)), _Open()
        with mock.patch.object(example_gradients, "clipped_sum", side_effect=honest) as summed:
            own_model.client(plan, own_model.prepare(plan, subgraph), model, round_, streams, desk)
        yield plan, streams, summed.call_args_list[0].args[2]


def _who_reads_whom_is_what_is_priced() -> None:
    for plan, streams, given in _steps():
        (release,) = plan.schedule.releases
        event, nodes = next(events.flatten(release.event))[0], given.samples.nodes
        others = event.others if isinstance(event, MentionedGaussian) else event.touched_rows - 1
        drawn, read = streams.drawn("batch", np.arange(120), event.sampling_rate), nodes[:, 1:]
        owner, node = np.repeat(nodes[:, 0], read.shape[1])[(read >= 0).ravel()], read[read >= 0]
        assert not drawn[node].any(), "a node that was drawn is in its own example alone"
        assert np.bincount(node, minlength=120).max() <= others, "a node is in more examples than are priced"
        pairs = np.stack([owner, node], axis=1)
        assert streams.drawn("mentions", pairs, plan.made.rules[0].rate).all(), "a pair is read whose coin says no"


def _alone(given: NetworkExamples, number: int) -> NetworkExamples:
    return NetworkExamples(given.rows, given.samples.of(np.array([number])), given.labels[[number]])


def _each_example_is_clipped() -> None:
    for plan, _, given in _steps():
        first = own_model.start(plan, np.random.default_rng(0)).model["parameters"]
        loud = first + 3 * np.random.default_rng(1).normal(size=first.size)
        for number in range(3):
            found = example_gradients.clipped_sum(plan.made.network, loud, _alone(given, number), plan.params.clip, 120)
            assert np.linalg.norm(found) <= plan.params.clip, "an example moves the sum by more than the clip"


class _Remembers(torch.nn.Linear):
    """What it answers once it was called often, which no look can wait for."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _Remembers.calls += 1
        return super().forward(x * (1 + (_Remembers.calls > 10**6)))


class _Measures(torch.nn.Linear):
    """Its gradient says how many places an example was given."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * len(x)


class _Stops(torch.nn.Linear):
    """It takes no row beyond what its author thought of."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x.detach() > 100).any()):
            raise ValueError("a value above 100")
        return super().forward(x)


def _spec(module: torch.nn.Linear) -> NetworkSpec:
    return NetworkSpec(own_network.hold(module), "{}", module.in_features, module.out_features)


def _nothing_is_kept() -> None:
    try:
        isolation.require(_spec(_Remembers(5, 3)))
    except ScenarioError:
        return
    raise AssertionError("a network that remembers examples is trained")


def _an_example_is_seen_by_itself() -> None:
    plan, _, given = next(_steps())
    spec = _spec(_Measures(plan.made.network.inputs, plan.made.network.classes))
    summed = functools.partial(example_gradients.clipped_sum, spec, own_network.start(spec, np.random.default_rng(0)))
    whole, each = (
        np.sum([summed(one, 1e9, 120).astype(float) for one in parts], axis=0)
        for parts in ([given], [_alone(given, number) for number in range(len(given.labels))])
    )
    close = np.allclose(whole, each, rtol=1e-3, atol=1e-4 * np.abs(each).max())
    assert close, "an example shows how large others are"


def _nobody_sees_whose_row_stops_a_network() -> None:
    spec, rows = _spec(_Stops(5, 3)), np.eye(4, 5)
    summed = functools.partial(example_gradients.clipped_sum, spec, own_network.start(spec, np.random.default_rng(0)))
    given = NetworkExamples(rows, rooted.alone(np.arange(4)), np.arange(4) % 3)
    other = replace(given, rows=np.where(np.arange(4)[:, None] == 2, 1e3, rows))
    whole = summed(given, 0.1, 4, True)
    try:
        found = summed(other, 0.1, 4, True)
    except ValueError as error:
        raise AssertionError("a run stops at one person's row") from error
    assert np.linalg.norm(found.astype(float) - whole) <= 0.1


def _many_rows_cost_no_less_than_they_do() -> None:
    """The hockey-stick of the exact pair of 900 rows, whose shifts are nearly normal: here a fine grid says it.

    Of 300 to 600 drawn rows: others are ten standard deviations away, and weigh 10⁻²³.
    """
    sigma, rate, rows, hits = 40.0, 0.5, 900, np.arange(300, 601)
    there, _ = pld.MixturePair.of_rows(sigma, rate, rows, True).curves(1e-15)
    weights, x = binom.pmf(hits, rows, rate), np.linspace(-800, 800, 8001)
    above, below = (norm.pdf(x[:, None], sign * hits, sigma) @ weights for sign in (1, -1))
    for epsilon in (0.0, 60.0, 140.0):
        exact = np.maximum(above - np.exp(epsilon) * below, 0).sum() * (x[1] - x[0])
        assert there.deltas(np.array([epsilon]))[0] >= exact * (1 - 1e-6), "a step is priced for fewer rows than are drawn"


def _numbers_of_rows_are_rounded_down() -> Breaks:
    honest = pld._binomial

    def binomial(trials: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
        weights, hits = honest(trials, rate)
        return weights, np.append(hits[0], hits[:-1]) if trials > pld._MANY_ROWS else hits

    return [(pld, "_binomial", binomial)]


def _all_get_the_room_of_the_largest() -> Breaks:
    honest = rooted.RootedSamples.rooms
    return [(rooted.RootedSamples, "rooms", lambda self: np.full(len(self.nodes), honest(self).max(initial=1)))]


def _no_clip() -> Breaks:
    honest = example_gradients.weighed_rows
    return [
        (example_gradients, "weighed_rows", lambda spec, vector, given, limit, *loops: honest(spec, vector, given, 1e9, *loops))
    ]


def _counted_once() -> Breaks:
    honest = examples.rule
    return [(examples, "rule", lambda *how: replace(honest(*how), others=1))]


def _reads_whoever_is_there() -> Breaks:
    honest = rooted.subgraphs
    anybody = lambda edges, ids, roots, allowed, *how: honest(edges, ids, roots, lambda root, node: node >= 0, *how)  # noqa: E731
    return [(rooted, "subgraphs", anybody)]


MUTANTS = [
    CodeMutant("own_model's examples are not clipped", _no_clip, _each_example_is_clipped),
    CodeMutant(
        "own_model cuts neighbourhoods after it samples them",
        lambda: [(neighbour_limits, "at_most", lambda adjacency, degree, ids, coin=0: adjacency)],
        _who_reads_whom_is_what_is_priced,
    ),
    CodeMutant("own_model prices one other example for all that read a node", _counted_once, _who_reads_whom_is_what_is_priced),
    CodeMutant(
        "own_model trains what remembers examples",
        lambda: [(isolation, "_require_nothing_kept", lambda spec, before, module: None), (isolation, "_looked_at", {})],
        _nothing_is_kept,
    ),
    CodeMutant(
        "own_model gives all examples the room of the largest", _all_get_the_room_of_the_largest, _an_example_is_seen_by_itself
    ),
    CodeMutant(
        "own_model stops at the row of one person",
        lambda: [
            (example_gradients, "_rows", lambda spec, vector, given, loops: example_gradients.looped(spec, vector, given))
        ],
        _nobody_sees_whose_row_stops_a_network,
    ),
    CodeMutant(
        "numbers of many rows are rounded down", _numbers_of_rows_are_rounded_down, _many_rows_cost_no_less_than_they_do
    ),
    CodeMutant("own_model's roots read nodes that were drawn", _reads_whoever_is_there, _who_reads_whom_is_what_is_priced),
]
