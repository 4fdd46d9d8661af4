"""Published claims: noise is the authors', and the page is what the command prints."""

import math
from pathlib import Path

import pytest

from benchmarks.reproductions import claims
from fedgraph.methods import dpar
from fedgraph.privacy.accounting import aggregation_noise


@pytest.mark.parametrize(
    ("rows", "authors"),
    [
        (210, (5.504086, 3.199856, 1.972640, 1.291424)),  # Cora-ML
        (1320, (2.157009, 1.348399, 0.936199, 0.704857)),  # CS
        (2483, (1.649745, 1.079765, 0.788882, 0.619220)),  # Physics
    ],
)
def test_dpar_s_noise_is_the_authors(rows: int, authors: tuple[float, ...]) -> None:
    """authors: Emory-AIMS/DPAR at 62159715, utils.compute_epsilon solved for σ / C at ε = 1, 2, 4, 8."""
    steps = 200 * math.ceil(rows / 60)
    for epsilon, sigma in zip((1, 2, 4, 8), authors, strict=True):
        found = dpar.claimed_sgd_multiplier(epsilon / 2 / 0.09, 60 / rows, steps, 1e-3 / 0.09)
        assert found == pytest.approx(sigma, rel=2e-6)


@pytest.mark.parametrize(
    ("rows", "batch", "epochs", "hops", "epsilon", "authors"),
    [
        (3634, 256, 100, 2, 8, 2.4568),  # MIT8; hop noise 24.57 with D = 100
        (3639, 256, 100, 2, 1, 14.1029),
        (3639, 256, 100, 2, 4, 4.2307),
        (4830, 2048, 10, 2, 8, 2.0156),
        (4830, 4830, 60, 1, 1, 38.5869),  # whole batches, as ``gap_node`` trains
    ],
)
def test_gap_s_noise_multiplier_is_the_authors(rows, batch, epochs, hops, epsilon, authors) -> None:
    """authors: sisaman/GAP (gap_ndp.py, noisy_sgd.py, pma.py) with autodp 0.2.3.1: one multiplier for all stages."""
    pipeline = aggregation_noise.NodeAggregation(2 * (epochs * rows // batch), batch / rows, hops, replaced=False)
    found = aggregation_noise.node_level(pipeline, 0.3, epsilon, 1e-4, "published", 1.0, "code")
    assert found.gradient == found.hop == pytest.approx(authors, rel=3e-5)
    assert found.published <= epsilon


def test_the_page_is_what_the_command_prints() -> None:
    page = Path(__file__).parents[2] / "docs" / "data" / "published_claims.txt"
    command = "python -m benchmarks.reproductions.claims --page > docs/data/published_claims.txt"
    assert page.read_text(encoding="utf-8") == claims.page(), command
