"""One method trained in one world: what is public of it, its training, its price.

A world is a setting (who is held, who is asked, what is public), dealt to clients, and who may see what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.federation.participation import Attendance
from fedgraph.federation.secure.protocol import Masks
from fedgraph.methods.base import Plan, PublicFacts, kinds
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.settle import Guarantee, Settlement, settle
from fedgraph.privacy.units import Viewer
from fedgraph.tasks import _promises, _protocols
from fedgraph.tasks.base import Cell, Context
from fedgraph.types import Partition


@dataclass(frozen=True, eq=False)
class World:
    """partition: who holds which node of ``setting.held``. cut_edges_shared: edges between clients are known to both.
    cut_edges_generated: but not what they lead to.

    split_from_edges: who trains was computed from edges. colluders: participants who may pool their noise with the server.
    """

    setting: _protocols.Setting
    partition: Partition
    viewer: Viewer
    cut_edges_shared: bool = False
    cut_edges_generated: bool = False
    split_from_edges: bool = False
    colluders: int = 1

    @property
    def facts(self) -> PublicFacts:
        """All that a plan may be made from: counts, client sizes, the public test graph or attributes."""
        setting, shares = self.setting, self.partition.subgraphs
        return PublicFacts(
            num_nodes=sum(s.graph.num_nodes for s in shares),
            num_features=setting.held.num_features,
            num_classes=setting.held.num_classes,
            client_sizes=tuple(s.graph.num_nodes for s in shares),
            viewer=self.viewer,
            public_graph=setting.public_graph,
            public_attributes=setting.public_attributes,
            members=tuple(s.nodes for s in shares),
            membership_from_edges=self.partition.from_edges,
            cut_edges_shared=self.cut_edges_shared,
            cut_edges_generated=self.cut_edges_generated,
            split_from_edges=self.split_from_edges,
            columns_from_rows=setting.held.columns_from_rows and setting.public_attributes is None,
            features_from_edges=setting.held.features_from_edges,
            public_name=setting.public,
            asking=setting.asking,
            filled=setting.held.features.nnz / max(1, setting.held.num_nodes * setting.held.num_features),
            colluders=self.colluders if self.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1,
        )


@dataclass(frozen=True, eq=False)
class Trained:
    """outcome: final state and every release. settled: the price, with every promise looked up in the data."""

    outcome: rounds.Outcome
    guarantee: Guarantee
    settled: Settlement


def require_answers(setting: _protocols.Setting, method: kinds.Classifier, cell: Cell, protocol: str) -> None:
    """``ScenarioError`` where test nodes are private and the method has no answer for such a node."""
    if not (setting.test_graph_public or setting.public_attributes is not None or getattr(method, "PRIVATE_TEST_NODES", False)):
        raise ScenarioError(
            f"{cell.method} predicts on a public test graph, and here test nodes are private (public: {setting.public}, "
            f"protocol: {protocol}): write public: test-graph with protocol: inductive, or choose features"
        )


def train(
    world: World,
    key: str,
    made: Plan[Any, Any],
    cell: Cell,
    context: Context,
    who: Sequence[str | int] = (),
    *,
    attendance: Attendance | None = None,
    masks: Masks | None = None,
    on_state: Callable[[int, Any], None] = lambda round_, state: None,
) -> Trained:
    """All rounds, and their price. key: names the partition at the workers. who: names one of several trainings of a cell.

    attendance: which clients answer in which round; None where all do. masks: how sums are hidden.
    on_state: told of the state after each round (``federation.rounds``). One client without noise begins as a curator does,
    so both end with the same model.
    """
    shared = context.runtime.share(f"partition:{context.label}:{key}", world.partition)
    common = (cell.task, cell.dataset, cell.method, cell.variant, cell.setting, cell.seed, *who)
    path = (*cell.path, *who)
    progress = (context.prefixes, context.on_round)
    noisy = any(not isinstance(release.mechanism, Disclose) for release in made.releases)
    one = made.facts.num_clients == 1 and not noisy and not who
    outcome = rounds.run(
        context.runtime, shared, made, context.root, path, common, *progress,
        attendance=attendance, masks=masks, starts=replace(cell, setting="central").path if one else None, on_state=on_state,
    )  # fmt: skip
    guarantee = replace(made.guarantee, promises=_promises.looked_up(made, world.partition))
    return Trained(outcome, guarantee, settle(guarantee, outcome.releases))
