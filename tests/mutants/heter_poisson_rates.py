"""HeterPoisson: each client mentions neighbours at its own rate, which is the one that its own releases price."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from fedgraph import data, plugins
from fedgraph.methods.base import Budget, PlanStreams
from fedgraph.privacy import events
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.units import Viewer
from fedgraph.types import Subgraph
from tests.mutants.code import Breaks, CodeMutant
from tests.public_facts import public_facts

_SIZES = (20, 60, 120)


def _every_client_keeps_its_rate() -> None:
    library, method, ends = data.load("embedded/library"), plugins.load("methods", "heter_poisson"), np.cumsum((0, *_SIZES))
    parts = tuple(np.arange(a, b) for a, b in itertools.pairwise(ends))
    facts = public_facts(
        int(ends[-1]), library.num_features, library.num_classes, _SIZES, Viewer.SERVER,
        public_graph=library.induced(np.arange(ends[-1], library.num_nodes)), members=parts, public_name="test-graph",
    )  # fmt: skip
    plan = method.plan(method.Params(steps=2, projection=4), facts, Budget(2.0, 1e-3))
    model, honest, rates = method.start(plan, np.random.default_rng(0)).model, PlanStreams.drawn, []
    for client, nodes in enumerate(parts):
        used: list[float] = []

        def noted(streams: PlanStreams, name: str, things: Any, rate: float, used: list[float] = used) -> Any:
            used += [rate] if name == "mentions" else []
            return honest(streams, name, things, rate)

        streams = PlanStreams(0, ("c", "client", client, "round", 0), "")
        desk = Desk("c", client, 0, plan.schedule.of_client(client), streams.generator("noise"))
        with mock.patch.object(PlanStreams, "drawn", noted):
            method.client(plan, method.prepare(plan, Subgraph(client, library.induced(nodes), nodes)), model, 0, streams, desk)
        (release,) = plan.schedule.of_client(client)
        rates.append(next(events.flatten(release.event))[0].mention_rate)
        assert used == rates[-1:], f"client {client} mentions at {used}, and pays for {rates[-1]}"
    assert len(set(rates)) == len(_SIZES), "clients of other sizes have other rates"


def _the_largest_rate() -> Breaks:
    method = plugins.load("methods", "heter_poisson")
    honest = method.prepare

    def prepare(plan: Any, subgraph: Subgraph) -> Any:
        return replace(honest(plan, subgraph), number=int(np.argmax([rule.rate for rule in plan.made.rules])))

    return [(method, "prepare", prepare)]


MUTANTS = [CodeMutant("heter_poisson takes another client's larger rate", _the_largest_rate, _every_client_keeps_its_rate)]
