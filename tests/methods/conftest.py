"""What the tests of methods share."""

import pytest

from fedgraph.types import Graph
from tests.trainings import Trainings


@pytest.fixture(scope="session")
def trainings(library: Graph) -> Trainings:
    """Every method in every situation, trained when it is first asked for."""
    return Trainings(library)
