"""Small graphs in clear, and embeddings of them by a model trained on their node labels: for looking at geometry, not privacy.

One sample of ego-networks (of a graph) or of whole graphs (of a collection), and the shared GCN or GIN of ``local_dp`` trained
on all of them at once. Nothing here is released: a task that uses it claims no ε.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from fedgraph import seeds
from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.learning import descend_by_adam, layouts, shared_gnn
from fedgraph.partition import ego_nodes
from fedgraph.tasks.base import CellContext, graphs
from fedgraph.types import Graph, GraphCollection


class ClearEmbeddingModel(Settings):
    """The shared model and its training."""

    model: shared_gnn.SharedGnnModel = Field("gcn", description="gcn (two layers) or gin, trained on node labels")
    hidden: int = Field(16, ge=1, description="hidden units")
    layers: int = Field(5, ge=1, description="message rounds of gin")
    epochs: int = Field(200, ge=1, description="full-batch Adam steps")
    learning_rate: float = Field(0.01, gt=0, allow_inf_nan=False, description="step size")
    embedding: shared_gnn.SharedGnnSource = Field(
        "softmax", description="softmax, or hidden: x/(1 + x) of the last hidden layer"
    )


@dataclass(frozen=True, eq=False)
class ClearSample:
    """Small graphs of one repetition.

    Attributes:
        graphs: The graphs; their ``labels`` are labels of nodes.
        label: int64 [graphs], the class of each: of the centre of an ego-network, or of the graph.
    """

    graphs: tuple[Graph, ...]
    label: np.ndarray


@dataclass(frozen=True, eq=False)
class ClearEmbedder:
    """The trained model.

    Attributes:
        parameters: float [num_parameters].
        source: Which of its numbers are the embedding.
    """

    network: shared_gnn.SharedGnn
    parameters: np.ndarray
    source: shared_gnn.SharedGnnSource

    def of(self, graph: Graph) -> np.ndarray:
        given = shared_gnn.prepare(self.network, graph, (graph.num_nodes,))
        own, where = shared_gnn.select_inputs(self.network, given)
        return shared_gnn.embed(own, layouts.to_device(self.parameters[where]), given, self.source)


def _train(members: tuple[Graph, ...], how: ClearEmbeddingModel, rng: np.random.Generator) -> ClearEmbedder:
    labels = np.concatenate([g.labels for g in members])
    union = graphs.unite(members[0].name, members, labels, members[0].num_classes)
    sizes = (union.num_features, how.hidden, how.layers, union.num_classes)
    net = shared_gnn.make(how.model, *sizes, "none", norm="none")
    given = shared_gnn.prepare(net, union, tuple(g.num_nodes for g in members))
    own, where = shared_gnn.select_inputs(net, given)
    parameters = net.layout.start(rng)
    gradient = functools.partial(shared_gnn.gradient, own, given=given)
    found = descend_by_adam(layouts.to_device(parameters[where]), gradient, how.epochs, how.learning_rate, 0.0)
    parameters[where] = found.cpu().numpy()
    return ClearEmbedder(net, parameters, how.embedding)


class ClearSampleSettings(Settings):
    """Which small graphs a repetition samples, and the model that embeds them."""

    graphs: int = Field(100, ge=2, description="small graphs of one repetition")
    hops: int = Field(1, ge=0, description="radius of the ego-networks, where the data is one graph")
    min_nodes: int = Field(3, ge=1, description="smallest graph")
    max_nodes: int = Field(60, ge=1, description="largest graph")
    max_degree: int = Field(64, ge=1, description="largest one-hot degree, where nodes have no features")
    training: ClearEmbeddingModel = Field(ClearEmbeddingModel(), description="the model, and how it is trained")

    def embedded(self, context: CellContext, seed: int, count: int) -> tuple[ClearSample, ClearEmbedder, np.random.Generator]:
        """``count`` graphs of a repetition, the model trained on them, and the stream that drew them."""
        where = (context.label, context.dataset, seed)
        rng = seeds.seeded_generator(context.root, "sample", *where)
        found = self.sample(context.data, count, rng)
        return found, _train(found.graphs, self.training, seeds.seeded_generator(context.root, "model", *where)), rng

    def sample(self, data: Graph | GraphCollection, count: int, rng: np.random.Generator) -> ClearSample:
        """``count`` random graphs; ``DataError`` where fewer have a number of nodes that is allowed."""
        found: list[Graph] = []
        labels: list[int] = []
        if isinstance(data, GraphCollection):
            data = graphs.prepare(data, None, self.max_degree, 0)
            kinds, classes = graphs.node_kinds(data)
            for index in rng.permutation(len(data.graphs)):
                if len(found) < count and self.min_nodes <= data.graphs[index].num_nodes <= self.max_nodes:
                    found.append(replace(data.graphs[index], labels=kinds[index], num_classes=classes))
                    labels.append(int(data.labels[index]))
        else:
            for centre in rng.permutation(data.num_nodes):
                if len(found) == count:
                    break
                members = ego_nodes(data.adjacency, int(centre), self.hops)
                if self.min_nodes <= members.size <= self.max_nodes:
                    found.append(data.induced(members))
                    labels.append(int(data.labels[centre]))
        if len(found) < count:
            allowed = f"{count} graphs of {self.min_nodes} to {self.max_nodes} nodes"
            raise DataError(f"{data.name}: {allowed} were asked for, {len(found)} exist")
        return ClearSample(tuple(found), np.array(labels))
