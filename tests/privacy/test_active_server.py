"""A server that chooses the model: who is priced for it, and at what."""

from __future__ import annotations

from fedgraph import plugins
from fedgraph.methods.base import method_kinds
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph


def test_only_methods_that_hold_for_any_broadcast_may_be_asked() -> None:
    for name in plugins.names("methods"):
        why = method_kinds.explain_misfit(
            name,
            method_kinds.load(name).OFFERS.kind,
            method_kinds.load(name).OFFERS.situations[0].given,
            [Trust.ACTIVE_SERVER],
        )
        assert (why is None) == method_kinds.load(name).OFFERS.any_broadcast, name
        assert why is None or "follows the protocol" in why or "protects itself" in why


def test_the_price_is_that_of_an_honest_server_and_the_viewer_is_named(library: Graph) -> None:
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    params = node_classification.Params(
        methods=[{"method": "features", "steps": 3}], trust=["own-client", "active-server"], epsilons=[2.0], delta=1e-3,
        partition={"partition": "uniform", "clients": 3},
    )  # fmt: skip
    honest, active = (node_classification.plan(params, c, where) for c in node_classification.cells(params, where))
    assert active.guarantee.protection.viewer is Viewer.ACTIVE_SERVER
    assert active.guarantee.protection.viewer.sees_messages
    assert active.provable().epsilon == honest.provable().epsilon <= 2.0
