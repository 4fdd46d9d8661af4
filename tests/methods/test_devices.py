"""Every method trains on a GPU as it does on the CPU: ``pytest -m gpu`` compares them, each method once.

Without a GPU the same code runs with the CPU as its device (``-m slow``), and gives the same bits twice. Noise is drawn on the
CPU everywhere, dropout on the device, so a GPU gives other numbers: what is released and spent is equal, the accuracy nearly.
"""

import numpy as np
import pytest
import torch

from fedgraph import plugins
from fedgraph.federation.rounds import RoundsOutcome
from fedgraph.learning import tensors
from fedgraph.methods.base import method_kinds
from fedgraph.types import Graph
from tests.trainings import planned, train

MOST_APART = 0.15  # of accuracies; of 60 nodes a chance draw has a standard deviation of .06
HAS_GPU = torch.cuda.is_available()


def trained_on(device: str, name: str, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> tuple[RoundsOutcome, float | None]:
    """(what the first situation of the method gives there, accuracy where it names classes)."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    assert tensors.torch_device().type == device
    method = method_kinds.load(name)
    plan, partition, asked = planned(name, 0, method.OFFERS.situations[0].trusted[0], graph, 4.0)
    out = train(plan, partition)
    if method.OFFERS.kind != "classifier":
        return out, None
    scores = plugins.load("methods", name).predict(plan, out.state, asked)
    return out, float((scores.argmax(axis=1) == asked.labels).mean())


@pytest.mark.parametrize(
    "device",
    [
        pytest.param("cpu", marks=pytest.mark.slow),
        pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")]),
    ],
)
@pytest.mark.parametrize("name", plugins.names("methods"))
def test_a_method_trains_on_the_device_as_on_the_cpu(
    name: str, device: str, library: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, accuracy = trained_on(device, name, library, monkeypatch)  # first: a network is looked at once, on the device
    truth, expected = trained_on("cpu", name, library, monkeypatch)
    assert found.releases == truth.releases
    assert found.state.model.keys() == truth.state.model.keys()
    for key, value in truth.state.model.items():
        there = np.asarray(found.state.model[key])
        assert there.shape == np.asarray(value).shape
        assert np.array_equal(there, value) if device == "cpu" else np.isfinite(there).all(), key
    assert (accuracy is None) == (expected is None)
    if accuracy is not None and expected is not None:
        assert abs(accuracy - expected) <= (0 if device == "cpu" else MOST_APART)
