"""The networks of GAP and ProGAP as their released code trains them.

**GAP** (Sajadmanesh et al., USENIX Security 2023; github.com/sisaman/GAP):

* **Encoder**: x → linear → batch norm → SELU → linear → unit length. These rows are what is aggregated. They are signed, since
  nothing follows the second linear map: rows after a ReLU are positive, so as unit vectors they look much alike. To be
  trained it gets a head: batch norm → SELU → linear.
* **Classifier**: a linear map for each hop, joined → unit length → batch norm → SELU → linear.

16 units, full-batch Adam with step size 0.01 and no decay, 100 steps; of all steps the one that is best on validation nodes
counts. At edge level features and labels are public, so batch norm and the validation nodes read no private value.

**ProGAP**: the network grows by one part with every aggregation (Sajadmanesh & Gatica-Perez, WSDM 2024). Stage s reads x₀
(features) and the noisy sums x₁ … x_s:

    base_k(x_k) = batch norm(SELU(linear(x_k)));     scores = head_s([base₀(x₀) … base_s(x_s)] / norm)

Every stage begins with the bases that the stage before left, a new base and a new head, and trains them all, as in the released
code (github.com/sisaman/ProGAP, with one layer per base and per head and its joining ``cat``). What is aggregated next is
base_s(x_s), of unit length.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from fedgraph.learning import fitting
from fedgraph.learning.network_shapes import HopNetworkShape
from fedgraph.learning.networks import sparse_rows
from fedgraph.learning.tensors import torch_device, unit_matrix_rows
from fedgraph.types import Graph

_VALIDATION = 0.1  # share of the labelled nodes that choose the step
_RATE = 0.01


class _EncoderNetwork(nn.Module):
    """[n, c] scores while it is trained; ``rows`` are what it is trained for."""

    def __init__(self, num_features: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(num_features, hidden), nn.Linear(hidden, hidden)
        self.norm, self.head_norm = nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)
        self.head = nn.Linear(hidden, num_classes)

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """[n, hidden], of norm 1."""
        return functional.normalize(self.second(functional.selu(self.norm(self.first(x)))), dim=-1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(functional.selu(self.head_norm(self.rows(x))))
        return found


class _ClassifierNetwork(nn.Module):
    """[n, c] scores from the hops, side by side in [n, hops · width]."""

    def __init__(self, widths: Sequence[int], hidden: int, num_classes: int) -> None:
        super().__init__()
        self.widths = list(widths)
        self.bases = nn.ModuleList(nn.Linear(width, hidden) for width in widths)
        self.norm = nn.BatchNorm1d(hidden * len(widths))
        self.head = nn.Linear(hidden * len(widths), num_classes)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        hops = zip(self.bases, torch.split(x, self.widths, dim=1), strict=True)
        joined = functional.normalize(torch.cat([base(hop) for base, hop in hops], dim=-1), dim=-1)
        found: torch.Tensor = self.head(functional.selu(self.norm(joined)))
        return found


def train_encoder(public: Graph, hidden: int, epochs: int, rng: np.random.Generator) -> np.ndarray:
    """Parameters of the trained encoder, flat float32."""
    make = functools.partial(_EncoderNetwork, public.num_features, hidden, public.num_classes)
    seed, chooses = int(rng.integers(2**31)), draw_validation(public.labels, rng)
    return _train_best(make, _feature_inputs(public), public.labels, chooses, epochs, seed)


def encode(parameters: np.ndarray, public: Graph, hidden: int) -> np.ndarray:
    """float32 [n, hidden], of norm 1: the rows of any graph with the same features."""
    network = _EncoderNetwork(public.num_features, hidden, public.num_classes).to(torch_device())
    fitting.load_vector(network, parameters)
    network.eval()
    with torch.no_grad():
        return np.asarray(network.rows(_feature_inputs(public).x).cpu().numpy())


def score(trained: HopNetworkShape, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Scores of every node, float32 [n, c].
    trained: of ``train_classifier``. inputs: the hops, float [n, h] each.
    """
    network = _ClassifierNetwork(trained.widths, trained.hidden, trained.num_classes).to(torch_device())
    return fitting.score_after_fitting(network, trained.parameters, _side_by_side(inputs))


def train_classifier(
    inputs: Sequence[np.ndarray], labels: np.ndarray, hidden: int, num_classes: int, epochs: int, rng: np.random.Generator
) -> HopNetworkShape:
    """The classifier, trained on the labelled nodes.
    inputs: the hops, float [n, h] each. labels: int64 [n], −1 where unknown. rng: draws the initial parameters and the
    validation nodes.
    """
    widths = tuple(rows.shape[1] for rows in inputs)
    make = functools.partial(_ClassifierNetwork, widths, hidden, num_classes)
    seed = int(rng.integers(2**31))
    found = _train_best(make, _side_by_side(inputs), labels, draw_validation(labels, rng), epochs, seed)
    return HopNetworkShape(widths, hidden, num_classes, found)


def _side_by_side(inputs: Sequence[np.ndarray]) -> fitting.FittingInputs:
    rows = np.concatenate(inputs, axis=1).astype(np.float32)
    return _inputs(torch.tensor(rows, device=torch_device()))


def _feature_inputs(public: Graph) -> fitting.FittingInputs:
    return _inputs(sparse_rows(unit_matrix_rows(public.features)))


def _inputs(x: torch.Tensor) -> fitting.FittingInputs:
    """What a network that reads no edge is called with. x: float32 [n, d]."""
    return fitting.FittingInputs(x, torch.zeros((2, 0), dtype=torch.int64, device=torch_device()))


def draw_validation(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the labelled nodes that choose the step: bool [n].
    labels: int64 [n], −1 where unknown. rng: draws each with chance ``_VALIDATION``.
    """
    return (rng.random(labels.size) < _VALIDATION) & (labels >= 0)


def _train_best(
    make: Callable[[], nn.Module], given: fitting.FittingInputs, labels: np.ndarray, chooses: np.ndarray, epochs: int, seed: int
) -> np.ndarray:
    """The parameters after the step that is best on the nodes that ``chooses`` names (the first of equals); the last where it
    names none. seed: of the initial parameters that ``make`` draws."""
    network = fitting.build(make, seed)
    training = np.where(chooses, -1, labels)
    vector = fitting.vector_of(network)
    now = fitting.FittingProgress(vector, np.zeros((2, vector.size), np.float32))
    chosen, most = vector, -1.0
    for step in range(epochs):
        now = fitting.continue_fitting(
            network, given, training, now, fitting.FittingSteps(1, step, _RATE, 0.0), lambda number: number
        )
        if not chooses.any():
            chosen = now.vector
            continue
        right = float(
            (fitting.score_after_fitting(network, now.vector, given)[chooses].argmax(axis=1) == labels[chooses]).mean()
        )
        if right > most:
            chosen, most = now.vector, right
    return chosen


class _Progressive(nn.Module):
    """[n, c] scores of the last stage; sums: x₁ … x_s, [n, hidden] each."""

    def __init__(self, num_features: int, hidden: int, num_classes: int, sums: Sequence[torch.Tensor]) -> None:
        super().__init__()
        widths = (num_features, *(hidden for _ in sums))
        self.sums = list(sums)
        self.bases = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.SELU(), nn.BatchNorm1d(hidden)) for width in widths
        )
        self.head = nn.Linear(hidden * len(widths), num_classes)

    def rows(self, x: torch.Tensor) -> list[torch.Tensor]:
        """base_k(x_k) for every k, [n, hidden] each."""
        return [base(given) for base, given in zip(self.bases, (x, *self.sums), strict=True)]

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(functional.normalize(torch.cat(self.rows(x), dim=-1), dim=-1))
        return scores


def train_progressive_stage(
    before: np.ndarray | None,
    public: Graph,
    sums: Sequence[np.ndarray],
    chooses: np.ndarray,
    hidden: int,
    epochs: int,
    seed: int,
) -> np.ndarray:
    """Parameters of stage s = len(sums): flat float32.
    before: those of stage s − 1, flat float32; None at s = 0. public: a graph whose features and labels are public. sums: x₁ …
    x_s, float [n, hidden] each. chooses: bool [n], labels that are held out. seed: of what is new in this stage.
    """

    def make() -> nn.Module:
        network = _progressive(public, sums, hidden)
        if before is not None:
            smaller = _progressive(public, sums[:-1], hidden)
            fitting.load_vector(smaller, before)
            for mine, theirs in zip(network.bases, smaller.bases, strict=False):
                mine.load_state_dict(theirs.state_dict())
        return network

    return _train_best(make, _feature_inputs(public), public.labels, chooses, epochs, seed)


def progressive_rows(parameters: np.ndarray, public: Graph, sums: Sequence[np.ndarray], hidden: int) -> np.ndarray:
    """What is aggregated after stage s = len(sums): float32 [n, hidden]. sums: x₁ … x_s, float [n, hidden] each."""
    network = _progressive(public, sums, hidden)
    fitting.load_vector(network, parameters)
    network.eval()
    with torch.no_grad():
        return np.asarray(network.rows(_feature_inputs(public).x)[-1].cpu().numpy())


def score_progressive_stage(parameters: np.ndarray, public: Graph, sums: Sequence[np.ndarray], hidden: int) -> np.ndarray:
    """Scores of stage s = len(sums): float32 [n, c]. sums: x₁ … x_s, float [n, hidden] each."""
    return fitting.score_after_fitting(_progressive(public, sums, hidden), parameters, _feature_inputs(public))


def _progressive(public: Graph, sums: Sequence[np.ndarray], hidden: int) -> _Progressive:
    given = [torch.tensor(s, dtype=torch.float32, device=torch_device()) for s in sums]
    return _Progressive(public.num_features, hidden, public.num_classes, given).to(torch_device())
