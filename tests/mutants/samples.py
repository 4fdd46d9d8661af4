"""Who is drawn is drawn afresh: the masks of two rounds of one client, and of two queries of PrivGnn, are not the same."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from fedgraph import data, plugins, seeds
from fedgraph.learning import descents
from fedgraph.methods.base import PlanStreams, method_kinds
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.trust import Trust
from tests.mutants.code import Breaks, CodeMutant
from tests.trainings import planned

_DRAWS = ("draw_poisson_mask", "draw_fixed_mask", "drawn")  # what gives bool [n]: who is drawn
_DRAWN: dict[str, dict[str, object]] = {  # settings of the methods that draw; some stand in the zoo
    "gap_node": {"sampling_rate": 0.4},
    "progap_node": {"sampling_rate": 0.4},
    "link_hops": {"hops": 0, "decoder": "steps", "steps": 3, "sampling_rate": 0.4},
    "sage_node": {"sampling_rate": 0.4, "cap": "promised", "degree": 3},
    "privgnn": {},
}
_MOST = 4  # rounds of a release that are looked at


def _replaced(name: str, other: Callable[[Any], Any]) -> Breaks:
    """What draws, in another form, wherever a method may find it: its own file, the room of descents, its streams."""
    rooms = plugins.load("methods", name), descents, PlanStreams
    return [(r, d, other(getattr(r, d))) for r, d in itertools.product(rooms, _DRAWS) if hasattr(r, d)]


def _require_fresh_masks(name: str) -> None:
    """``AssertionError`` where two rounds of a release draw the same, or nothing is drawn at all."""
    found: dict[str, list[np.ndarray]] = {}  # per release, whom client 0 draws in each of its first rounds: bool [n] each
    plan, partition, _ = planned(name, 0, Trust.CURATOR, data.load("embedded/library"), 2.0, **_DRAWN[name])
    method, subgraph = method_kinds.load(name), partition.subgraphs[0]
    model = method.start(plan, np.random.default_rng(0)).model

    def noting(drawn: list[np.ndarray], honest: Any) -> Any:
        return lambda *given: (drawn.append(honest(*given)), drawn[-1])[1]

    for release in plan.schedule.releases:
        for round_ in list(release.rounds)[:_MOST]:
            streams = PlanStreams(seeds.SecretSeed(bytes(32)), ("c", "client", 0, "round", round_), "")
            earlier = lambda _, streams=streams: streams.generator("noise")  # noqa: E731 (for a client that was restarted)
            desk = Desk("c", 0, round_, plan.schedule.of_client(0), streams.generator("noise"), earlier)
            with contextlib.ExitStack() as held:
                for patch in _replaced(name, partial(noting, found.setdefault(release.path, []))):
                    held.enter_context(mock.patch.object(*patch))
                method.client(plan, method.prepare(plan, subgraph), model, round_, streams, desk)
    assert any(len(masks) > 1 for masks in found.values()), f"{name} draws nobody"
    for path, masks in found.items():
        for one, other in itertools.combinations(masks, 2):
            assert not np.array_equal(one, other), f"{name}, {path}: the same sample in two rounds"


def _one_mask_for_all(name: str) -> Breaks:
    """The first mask of each size, drawn again and again."""
    known: dict[int, np.ndarray] = {}

    def again(honest: Any) -> Any:
        def draw(*given: Any) -> np.ndarray:
            mask = honest(*given)
            return known.setdefault(mask.size, mask)

        return draw

    return _replaced(name, again)


MUTANTS = [
    CodeMutant(
        "one Poisson sample for all queries of privgnn" if name == "privgnn" else f"one sample for all rounds of {name}",
        partial(_one_mask_for_all, name),
        partial(_require_fresh_masks, name),
    )
    for name in _DRAWN
    if name in plugins.names("methods")
]
