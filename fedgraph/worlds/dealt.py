"""A world as it is dealt: a setting (what is held, asked and public), a partition of it, and who may see what."""

from __future__ import annotations

from dataclasses import dataclass

from fedgraph.methods.base import PublicFacts
from fedgraph.privacy.units import Viewer
from fedgraph.types import Partition
from fedgraph.worlds import protocols
from fedgraph.worlds.world import World


@dataclass(frozen=True, eq=False)
class DealtWorld:
    """world: who trains together, and who is trusted. partition: who holds which node of ``setting.held``.

    cut_edges_shared: edges between clients are known to both.
    cut_edges_generated: but not what they lead to.

    split_from_edges: who trains was computed from edges. colluders: participants who may pool their noise with the server.
    """

    world: World
    setting: protocols.Setting
    partition: Partition
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
            viewer=self.world.viewer,
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
            colluders=self.colluders if self.world.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1,
        )
