"""What every discovered method must hold in its file; what it must do is in test_situations.py."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from fedgraph import plugins
from fedgraph.methods.base import method_kinds
from fedgraph.privacy import settle
from fedgraph.privacy.trust import Trust
from fedgraph.types import Graph
from tests.trainings import planned

KIND_OF = {"classifier": ("predict",), "embedder": ("answers", "in_clear"), "linker": ("scores",)}
PROTOCOL_OF = {
    "classifier": method_kinds.ClassifierMethod,
    "embedder": method_kinds.EmbedderMethod,
    "linker": method_kinds.LinkerMethod,
}


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_the_file_holds_the_contract(name: str) -> None:
    module = plugins.load("methods", name)
    assert "@" in module.REFERENCE
    wanted = PROTOCOL_OF[module.OFFERS.kind]
    for function in ("plan", "start", "prepare", "client", "server", *KIND_OF[module.OFFERS.kind]):
        here = list(inspect.signature(getattr(module, function)).parameters)
        assert here == list(inspect.signature(getattr(wanted, function)).parameters)[1:], f"{name}.{function}"
    for key, field in module.Params.model_fields.items():
        assert field.description, f"{name}.Params.{key} says nothing about itself"


def test_overlapping_clients_compose_per_node(library: Graph) -> None:
    """The worst node of pure ε-LDP encoders pays for every client that holds it (or a tighter valid bound)."""
    plan, partition, _ = planned("local_dp", 0, Trust.OWN_CLIENT, library, 3.0)
    holders = np.asarray(partition.holdings(library.num_nodes).sum(axis=0)).ravel()
    worst = plan.provable("embedding").epsilon
    assert worst <= 3.0 * holders.max() + 1e-9
    assert worst > 3.0 * holders.max() * 0.7
    pure = replace(plan.guarantee, delta=0.0, holdings=partition.holdings(library.num_nodes))
    assert settle.of_events(pure, plan.declared("embedding")).price.epsilon == pytest.approx(3.0 * holders.max())
    assert plan.provable("model").epsilon == np.inf
