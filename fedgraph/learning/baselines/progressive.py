"""The network of ProGAP, which grows by one part with every aggregation (Sajadmanesh & Gatica-Perez, WSDM 2024).

Stage s reads x₀ (features) and the noisy sums x₁ … x_s:

    base_k(x_k) = batch norm(SELU(linear(x_k)));     scores = head_s([base₀(x₀) … base_s(x_s)] / norm)

Every stage begins with the bases that the stage before left, a new base and a new head, and trains them all: full-batch Adam
with step size 0.01, the step that is best on held-out labels counts, as in the released code (github.com/sisaman/ProGAP, with
one layer per base and per head and its joining ``cat``). What is aggregated next is base_s(x_s), of unit length. Batch norm
and held-out labels read public values only at edge level.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from fedgraph.learning.baselines import fitting, gap_networks
from fedgraph.learning.baselines.networks import sparse_network_rows
from fedgraph.learning.layers.torch_matrices import torch_device, unit_matrix_rows
from fedgraph.types import Graph


class _Progressive(nn.Module):
    """[n, c] scores of the last stage.

    Args:
        num_features: d.
        hidden: Units.
        num_classes: c.
        sums: x₁ … x_s, [n, hidden] each.
    """

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
    """Parameters of stage s = len(sums).

    Args:
        before: Those of stage s − 1, flat float32; None at s = 0.
        public: A graph whose features and labels are public.
        sums: x₁ … x_s, float [n, hidden] each.
        chooses: bool [n], labels that are held out.
        hidden: Units.
        epochs: Steps of Adam.
        seed: Of what is new in this stage.

    Returns:
        Flat float32.
    """

    def make() -> nn.Module:
        network = _network(public, sums, hidden)
        if before is not None:
            smaller = _network(public, sums[:-1], hidden)
            fitting.write_fitting_vector(smaller, before)
            for mine, theirs in zip(network.bases, smaller.bases, strict=False):
                mine.load_state_dict(theirs.state_dict())
        return network

    return gap_networks.train_best_gap_network(make, _inputs(public), public.labels, chooses, epochs, seed)


def progressive_rows(parameters: np.ndarray, public: Graph, sums: Sequence[np.ndarray], hidden: int) -> np.ndarray:
    """What is aggregated after stage s = len(sums).

    Args:
        parameters: Of the stage.
        public: The graph.
        sums: x₁ … x_s, float [n, hidden] each.
        hidden: Units.

    Returns:
        float32 [n, hidden].
    """
    network = _network(public, sums, hidden)
    fitting.write_fitting_vector(network, parameters)
    network.eval()
    with torch.no_grad():
        return np.asarray(network.rows(_inputs(public).x)[-1].cpu().numpy())


def score_progressive_stage(parameters: np.ndarray, public: Graph, sums: Sequence[np.ndarray], hidden: int) -> np.ndarray:
    """Scores of stage s = len(sums).

    Args:
        parameters: Of the stage.
        public: The graph.
        sums: x₁ … x_s, float [n, hidden] each.
        hidden: Units.

    Returns:
        float32 [n, c].
    """
    return fitting.score_after_fitting(_network(public, sums, hidden), parameters, _inputs(public))


def _inputs(public: Graph) -> fitting.FittingInputs:
    return gap_networks.gap_network_inputs(sparse_network_rows(unit_matrix_rows(public.features)))


def _network(public: Graph, sums: Sequence[np.ndarray], hidden: int) -> _Progressive:
    given = [torch.tensor(s, dtype=torch.float32, device=torch_device()) for s in sums]
    return _Progressive(public.num_features, hidden, public.num_classes, given).to(torch_device())
