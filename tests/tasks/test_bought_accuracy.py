"""A noisy accuracy: how far one person moves it, how much noise it gets, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from fedgraph import data
from fedgraph.cells.cell import Cell, CellContext
from fedgraph.federation import world_of_trust
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.node_classification import bought_accuracy
from fedgraph.tasks.node_classification.bought_accuracy import Bought
from fedgraph.types import Graph

EPSILON, PRICE = 2.0, 0.5


@pytest.fixture(scope="module", params=["inductive", "asking"])
def trained(request: pytest.FixtureRequest) -> Iterator[tuple[TrainedCell, Bought, Cell]]:
    """A training, and what buying its accuracy declares."""
    graph = data.load("embedded/library")
    assert isinstance(graph, Graph)
    row = {"method": "features", "steps": 3, "publish_accuracy": PRICE}
    params = node_classification.Params(
        methods=[row], trust=[Trust.CURATOR], epsilons=[EPSILON], protocol=request.param, public="nothing", delta=1e-4
    )
    cell = Cell("t", "d", "features", "default", world_of_trust(Trust.CURATOR), EPSILON, "provable", 0, 0)
    with SerialRuntime() as engine:
        context = CellContext("t", "d", graph, 0, 1, engine)
        done = node_classification.train(params, cell, context)
        bought = bought_accuracy.declare(params, cell, context)
        assert bought is not None
        yield done, bought, cell


def sums_and_noise(monkeypatch: pytest.MonkeyPatch) -> list[tuple[np.ndarray, np.ndarray]]:
    """Filled with every bounded value that meets noise, and the noise."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    apply = GaussianNoise.apply

    def spied(self: GaussianNoise, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        noised = apply(self, value, rng)
        found.append((np.array(value), noised - value))
        return noised

    monkeypatch.setattr(GaussianNoise, "apply", spied)
    return found


def without(done: TrainedCell, person: int) -> TrainedCell:
    """One of the tested is masked: no features, no edges, no label."""
    setting = done.federation
    keep = np.ones(setting.asked.num_nodes)
    keep[person] = 0.0
    there = sp.diags_array(keep)
    truth = setting.truth.copy()
    truth[person] = -1
    features = sp.csr_array(there @ setting.asked.features).astype(np.float32)
    asked = replace(
        setting.asked, features=features, adjacency=sp.csr_array(there @ setting.asked.adjacency @ there), labels=truth
    )
    return replace(done, federation=replace(setting, asked=asked, truth=truth))


def test_one_person_moves_the_counts_by_one_and_no_more(
    trained: tuple[TrainedCell, Bought, Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, bought, cell = trained
    seen = sums_and_noise(monkeypatch)
    bought.buy(done, cell, 0)
    tested = np.flatnonzero(done.federation.truth >= 0)
    hubs = tested[np.argsort(-done.federation.asked.degrees[tested])]
    for person in (*hubs[:5], tested[0], tested[-1]):
        bought.buy(without(done, int(person)), cell, 0)
    (whole, _), *others = seen
    assert whole.sum() == pytest.approx(tested.size, rel=1e-6), "each of the tested counts once"
    moved = [float(np.linalg.norm(value - whole)) for value, _ in others]
    assert moved == pytest.approx([1.0] * len(others), rel=1e-6), "the sensitivity that is priced, attained and not exceeded"
    mechanism = bought.release.mechanism
    assert isinstance(mechanism, GaussianNoise)
    assert mechanism.std == pytest.approx(bought.release.event.noise_multiplier), "Δ₂ = 1"  # type: ignore[attr-defined]


def test_the_noise_is_that_of_the_plan_and_not_two_thirds_of_it(trained: tuple[TrainedCell, Bought, Cell]) -> None:
    _, bought, cell = trained
    (round_,), zero = bought.release.rounds, np.zeros((1, 2))
    doors = (Desk(cell.key, 0, round_, (bought.release,), np.random.default_rng(root)) for root in range(400))
    noise = np.concatenate([door.release("accuracy", lambda: zero).value for door in doors])
    mechanism = bought.release.mechanism
    assert isinstance(mechanism, GaussianNoise)
    assert stats.kstest(noise, "norm", (0, mechanism.std)).pvalue > 0.001
    assert stats.kstest(noise, "norm", (0, mechanism.std * 2 / 3)).pvalue < 0.001


def test_training_and_accuracy_together_keep_the_epsilon_of_the_row(
    trained: tuple[TrainedCell, Bought, Cell],
) -> None:
    done, bought, cell = trained
    priced, accuracy = bought.buy(done, cell, 3)
    assert 0.9 * EPSILON < priced.settled.epsilon <= EPSILON
    assert priced.settled.epsilon == pytest.approx(bought.whole.provable().epsilon), "planned = spent"
    assert priced.settled.path_epsilons()["accuracy"] == pytest.approx(PRICE, rel=1e-6)
    assert 0 <= accuracy <= 1
    assert "standard deviation" in priced.said[0]
