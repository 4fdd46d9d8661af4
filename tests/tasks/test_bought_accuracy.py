"""A noisy accuracy: how far one person moves it, how much noise it gets, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fedgraph import data
from fedgraph.cells.cell import Cell, CellContext
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.tasks.node_classification import paid_scores
from fedgraph.tasks.node_classification.paid_scores import Bought
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
        bought = paid_scores.accuracy_of(params, cell, context)
        assert bought is not None
        yield done, bought, cell


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
