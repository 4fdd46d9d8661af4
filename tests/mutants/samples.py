"""Who is drawn is drawn afresh in each round: the masks of two rounds of one client are not the same."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from fedgraph import data, plugins, seeds
from fedgraph.learning import descents
from fedgraph.methods.base import PlanStreams, method_kinds
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph
from tests.mutants.code import CodeMutant
from tests.trainings import planned

_DRAWS = ("draw_poisson_mask", "draw_fixed_mask", "drawn")  # what gives bool [n]: who is drawn
_DRAWN: dict[str, list[dict[str, object]]] = {
    "gap_node": [{"sampling_rate": 0.4}],
    "progap_node": [{"sampling_rate": 0.4}],
    "link_hops": [{"hops": 0, "decoder": "steps", "steps": 3, "sampling_rate": 0.4}],
    "sage_node": [{"sampling_rate": 0.4, "cap": "promised", "degree": 3}],
}
_DRAWN = {name: settings for name, settings in _DRAWN.items() if name in plugins.names("methods")}  # some stand in the zoo
Draw = Callable[..., np.ndarray]


def _rooms(name: str) -> list[object]:
    """Where a method may find what draws: its own file, the room of descents, its streams."""
    return [plugins.load("methods", name), descents, PlanStreams]


@contextlib.contextmanager
def _noted(name: str, drawn: list[np.ndarray]) -> Iterator[None]:
    """Adds every mask that is drawn to ``drawn``."""

    def noting(honest: Draw) -> Draw:
        def draw(*given: Any) -> np.ndarray:
            mask = honest(*given)
            drawn.append(mask)
            return mask

        return draw

    with contextlib.ExitStack() as held:
        for room, draws in itertools.product(_rooms(name), _DRAWS):
            if hasattr(room, draws):
                held.enter_context(mock.patch.object(room, draws, noting(getattr(room, draws))))
        yield


def streams_of_noise(streams: PlanStreams) -> Callable[[int], np.random.Generator]:
    """Of earlier rounds, for a client that was restarted."""
    return lambda _: streams.generator("noise")


def masks_of_rounds(name: str, settings: dict[str, object], most: int = 4) -> dict[str, list[np.ndarray]]:
    """Per release, whom client 0 draws in each of its first rounds: bool [n] each."""
    library = data.load("embedded/library")
    assert isinstance(library, Graph)
    plan, partition, _ = planned(name, 0, Trust.CURATOR, library, 2.0, **settings)
    method, subgraph = method_kinds.load(name), partition.subgraphs[0]
    model = method.start(plan, np.random.default_rng(0)).model
    found: dict[str, list[np.ndarray]] = {}
    for release in plan.schedule.releases:
        for round_ in list(release.rounds)[:most]:
            drawn = found.setdefault(release.path, [])
            streams = PlanStreams(seeds.SecretSeed(bytes(32)), ("c", "client", 0, "round", round_), "")
            desk = Desk("c", 0, round_, plan.schedule.of_client(0), streams.generator("noise"), streams_of_noise(streams))
            with _noted(name, drawn):
                method.client(plan, method.prepare(plan, subgraph), model, round_, streams, desk)
    return found


def require_fresh_masks(name: str, settings: dict[str, object]) -> None:
    """``AssertionError`` where two rounds of a release draw the same, or nothing is drawn at all."""
    found = masks_of_rounds(name, settings)
    assert any(len(masks) > 1 for masks in found.values()), f"{name} draws nobody"
    for path, masks in found.items():
        for one, other in itertools.combinations(masks, 2):
            assert not np.array_equal(one, other), f"{name}, {path}: the same sample in two rounds"


def one_mask_for_all(name: str) -> list[tuple[object, str, object]]:
    """The first mask of each size, drawn again and again."""
    known: dict[int, np.ndarray] = {}

    def again(honest: Draw) -> Draw:
        def draw(*given: Any) -> np.ndarray:
            mask = honest(*given)
            return known.setdefault(mask.size, mask)

        return draw

    return [(room, draws, again(getattr(room, draws))) for room in _rooms(name) for draws in _DRAWS if hasattr(room, draws)]


def _mutant(name: str, settings: list[dict[str, object]]) -> CodeMutant:
    def check() -> None:
        for each in settings:
            require_fresh_masks(name, each)

    return CodeMutant(f"one sample for all rounds of {name}", lambda: one_mask_for_all(name), check)


MUTANTS = [_mutant(name, settings) for name, settings in _DRAWN.items()]
