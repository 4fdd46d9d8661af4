"""A world as it is dealt: a setting (what is held, asked and public), a partition of it, and who may see what."""

from dataclasses import dataclass, replace

from fedgraph.methods.base import ClearFacts, CutEdges, Derived, Membership, PublicFacts, PublicPart, Sizes
from fedgraph.methods.base.column_ranks import ColumnRanks
from fedgraph.privacy.units import Viewer
from fedgraph.types import Partition
from fedgraph.worlds import protocols
from fedgraph.worlds.world import World


@dataclass(frozen=True, eq=False)
class DealtWorld:
    """world: who trains together, and who is trusted. partition: who holds which node of ``setting.held``.

    cut_edges: what clients know of the edges between them (``Membership.cut_edges``).
    colluders: participants who may pool their noise with the server.
    """

    world: World
    setting: protocols.Setting
    partition: Partition
    cut_edges: CutEdges
    colluders: int

    @property
    def facts(self) -> PublicFacts:
        """All that a plan with a guarantee may be made from: counts, client sizes, the public test graph or attributes."""
        setting, shares, held = self.setting, self.partition.subgraphs, self.setting.held
        return PublicFacts(
            Sizes(
                num_nodes=sum(s.graph.num_nodes for s in shares),
                num_features=held.num_features,
                num_classes=held.num_classes,
                clients=tuple(s.graph.num_nodes for s in shares),
            ),
            self.world.viewer,
            Membership(
                from_edges=self.partition.from_edges,
                from_labels=self.partition.from_labels,
                holdings=None,
                cut_edges=self.cut_edges,
                nodes=tuple(s.nodes for s in shares),
            ),
            PublicPart(setting.public, setting.public_graph, setting.public_attributes, setting.asking),
            Derived(
                split_from_edges=setting.split_from_edges,
                split_from_labels=setting.split_from_labels,
                component_from_edges=held.nodes_from_edges,
                columns_from_rows=held.columns_from_rows and setting.public_attributes is None,
                features_from_edges=held.features_from_edges,
            ),
            colluders=self.colluders if self.world.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1,
            columns=held.columns if held.columns is not None and held.columns.places.size else None,
        )

    @property
    def clear_facts(self) -> ClearFacts:
        """The same, and what was counted in private rows: for a method that guarantees nothing."""
        held, known = self.setting.held, self.facts
        filled = held.features.nnz / max(1, held.num_nodes * held.num_features)
        return ClearFacts(
            known.sizes, known.viewer, known.membership, known.public, known.derived, known.colluders,
            columns=known.columns, filled=1.0 if self.setting.ranks is not None or held.columns is not None else filled,
        )  # fmt: skip

    def scaled(self, ranks: ColumnRanks) -> "DealtWorld":
        """The same people, with columns on one scale."""
        partition = self.partition.with_graphs(lambda share: ranks.scaled(share.graph))
        return replace(self, setting=self.setting.scaled(ranks), partition=partition)
