"""Networks that are trained on public data or on released values, so no private data are read here.

``_fit_network`` is full-batch Adam on the mean cross-entropy of the labelled rows. Out of fold, a labelled row has the
scores of a network that did not see its label: a network that is fed its own training scores learns to
trust them and to ignore the neighbours; out-of-fold scores are as good as those of an unseen row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph import seeds
from fedgraph.learning import layouts, per_sample, public_cache
from fedgraph.learning.aggregation import scale_to_unit_length
from fedgraph.learning.descents import descend_by_adam
from fedgraph.learning.layouts import Layout
from fedgraph.learning.tensors import DenseMatrix, FeatureMatrix, TorchMatrix, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph


@dataclass(frozen=True)
class PublicTrainingSteps:
    """How long a network is trained, by full-batch Adam."""

    epochs: int  # steps
    rate: float  # step size
    decay: float  # weight of the L2 penalty


def _fit_network(
    layout: Layout, x: TorchMatrix, labels: np.ndarray, how: PublicTrainingSteps, rng: np.random.Generator
) -> np.ndarray:
    """Parameters of ``layout`` trained on the rows with a label ≥ 0; flat float32 [num_parameters].
    labels: int64 [n]. Without a labelled row the initial parameters come back.
    """
    known = int((labels >= 0).sum())
    start = layout.start(rng)
    if known == 0:
        return start
    target = torch.tensor(labels, device=torch_device())

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        return per_sample.loss_gradient(layout, vector, x, target) / known

    return descend_by_adam(layouts.to_device(start), gradient, how.epochs, how.rate, how.decay).cpu().numpy()


def centred_probabilities(scores: np.ndarray) -> np.ndarray:
    """softmax(scores) − 1/c, [n, c]: a row that knows nothing is zero, so it sends nothing to its neighbours."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (shifted / shifted.sum(axis=1, keepdims=True) - 1.0 / scores.shape[1]).astype(np.float32)


def hidden_units(layout: Layout, vector: np.ndarray, x: TorchMatrix) -> np.ndarray:
    """Activations of the first hidden layer: float32 [n, hidden]. vector: [num_parameters]. x: rows [n, d]."""
    weight, bias = layout.layers(layouts.to_device(vector))[0]
    return torch.relu(x @ weight + bias).cpu().numpy()


@dataclass(frozen=True)
class PublicTrainingEncoder:
    """How public features become the rows that are aggregated. No edge is read. ``output`` is what a row is:

    * ``classes``: centred class probabilities; a labelled node's own row is out of fold;
    * ``hidden``: hidden units after ReLU;
    * ``published``: signed unit rows of the network that GAP's released code trains;
    * ``none``: the features themselves.
    """

    output: str
    hidden: int  # units of the hidden layer
    folds: int  # for ``classes``; 1: none
    how: PublicTrainingSteps

    @property
    def stream_words(self) -> str:
        """Names the random stream by values. Another name of this class must not draw other numbers."""
        how = f"Fitting(epochs={self.how.epochs!r}, rate={self.how.rate!r}, decay={self.how.decay!r})"
        return f"Encoder(output={self.output!r}, hidden={self.hidden!r}, folds={self.folds!r}, how={how})"


@dataclass(frozen=True, eq=False)
class PublicTrainingEncoded:
    """What an encoder gives for every node."""

    own: np.ndarray  # float32 [n, h], what the classifier sees of the node itself
    message: np.ndarray  # float32 [n, h], what its neighbours sum
    # the trained network's, flat float32 (``encode_after`` encodes other nodes with them); empty without a network
    parameters: np.ndarray


_encoded: dict[str, PublicTrainingEncoded] = {}
_KEEP = 4


def encode(public: Graph, encoder: PublicTrainingEncoder) -> PublicTrainingEncoded:
    """The encoder's outputs for every node. They depend on features, labels, the number of classes and ``encoder`` alone, so
    they are computed once (``learning.public_cache``). Entries of features, labels and ``encoder`` name the random stream.
    public: a graph whose features and labels are public.
    """
    digest = hashlib.sha256(encoder.stream_words.encode())
    for array in (public.features.indptr, public.features.indices, public.features.data, public.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    stream = digest.hexdigest()
    key = public_cache.key_of(encoder, public.features, public.labels, public.num_classes)
    if key not in _encoded:
        while len(_encoded) >= _KEEP:
            del _encoded[next(iter(_encoded))]
        _encoded[key] = public_cache.make(key, lambda: _encode(public, encoder, seeds.seeded_generator(0, "encoder", stream)))
    return _encoded[key]


def _encode(public: Graph, encoder: PublicTrainingEncoder, rng: np.random.Generator) -> PublicTrainingEncoded:
    if encoder.output == "published":
        from fedgraph.learning import gap_networks  # not before it is used: it imports torch

        trained = gap_networks.train_encoder(public, encoder.hidden, encoder.how.epochs, rng)
    elif encoder.output != "none":
        x, layout = _network(public, encoder)
        trained = _fit_network(layout, x, public.labels, encoder.how, rng)
        if encoder.output == "hidden":
            hidden = hidden_units(layout, trained, x)
            return PublicTrainingEncoded(scale_to_unit_length(hidden), hidden, trained)
        scores = layouts.logits(layout, trained, x)
        own = scores.copy()
        if encoder.folds > 1:  # a labelled row has the scores of a network that did not see its fold
            fold = rng.integers(encoder.folds, size=public.labels.size)
            for number in range(encoder.folds):
                left_out = (fold == number) & (public.labels >= 0)
                others = _fit_network(layout, x, np.where(left_out, -1, public.labels), encoder.how, rng)
                own[left_out] = layouts.logits(layout, others, x)[left_out]
        own, message = centred_probabilities(own), centred_probabilities(scores)
        return PublicTrainingEncoded(own, message, trained)
    else:
        trained = np.zeros(0, dtype=np.float32)
    rows = encode_after(trained, encoder, public)
    return PublicTrainingEncoded(rows, rows, trained)


def _network(graph: Graph, encoder: PublicTrainingEncoder) -> tuple[FeatureMatrix, Layout]:
    layout = Layout((graph.num_features, encoder.hidden, graph.num_classes))
    return FeatureMatrix(unit_matrix_rows(graph.features)), layout


def encode_after(parameters: np.ndarray, encoder: PublicTrainingEncoder, graph: Graph) -> np.ndarray:
    """What the trained encoder says of the nodes of another graph with the same features: ``own`` of unseen rows.
    parameters: of ``PublicTrainingEncoded``. Returns float32 [n, h].
    """
    if encoder.output == "none":
        return unit_matrix_rows(graph.features).toarray()
    if encoder.output == "published":
        from fedgraph.learning import gap_networks  # not before it is used: it imports torch

        return scale_to_unit_length(gap_networks.encode(parameters, graph, encoder.hidden))
    x, layout = _network(graph, encoder)
    if encoder.output == "hidden":
        return scale_to_unit_length(hidden_units(layout, parameters, x))
    return centred_probabilities(layouts.logits(layout, parameters, x))


@dataclass(frozen=True)
class PublicTrainingClassifier:
    """A classifier on the first ``depth + 1`` inputs."""

    layout: Layout  # of its network
    parameters: np.ndarray  # flat float32
    depth: int  # the last input that it reads

    def scores(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """float32 [n, c]. inputs: as in ``classify``."""
        return layouts.logits(self.layout, self.parameters, _side_by_side(inputs, self.depth))


def classify(
    inputs: Sequence[np.ndarray],
    labels: np.ndarray,
    widths: tuple[int, ...],
    how: PublicTrainingSteps,
    choose: bool,
    rng: np.random.Generator,
) -> PublicTrainingClassifier:
    """A network on inputs side by side, trained on the labelled rows.
    inputs: float [n, h] each, the hops in order. labels: int64 [n], −1 where unknown; they are public. widths: (hidden…,
    classes). choose: how many of the inputs to read is decided on a fifth of the labels, so a noisy deep hop cannot harm.
    Otherwise all of them are read. rng: chooses the fifth and draws initial parameters.
    """

    def fitted(known: np.ndarray, depth: int) -> PublicTrainingClassifier:
        x = _side_by_side(inputs, depth)
        layout = Layout((x.forward.shape[1], *widths))
        return PublicTrainingClassifier(layout, _fit_network(layout, x, known, how, rng), depth)

    depths = range(len(inputs)) if choose else range(len(inputs) - 1, len(inputs))
    best, best_depth = -1.0, depths[-1]
    held_out = (rng.random(labels.size) < 0.2) & (labels >= 0)
    for depth in depths if len(depths) > 1 and held_out.any() else ():
        named = fitted(np.where(held_out, -1, labels), depth).scores(inputs)[held_out].argmax(axis=1)
        right = float((named == labels[held_out]).mean())
        if right > best:
            best, best_depth = right, depth
    return fitted(labels, best_depth)


def _side_by_side(inputs: Sequence[np.ndarray], depth: int) -> DenseMatrix:
    return DenseMatrix(np.concatenate(inputs[: depth + 1], axis=1))
