"""Published claims: the figures of ``docs/PRIVACY.md``, 4 and 5, and each formula against an independent reading."""

import math
from pathlib import Path

import pytest

from benchmarks.reproductions import claims as gap
from fedgraph.errors import PrivacyError
from fedgraph.methods import dpar
from fedgraph.privacy.accounting import aggregation_noise
from fedgraph.privacy.mechanisms import objective_perturbation as gcon


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
    ("rows", "batch", "epochs", "hops", "epsilon", "delta", "authors"),
    [
        (3634, 256, 100, 2, 8, 1e-4, 2.4568),  # MIT8; hop noise 24.57 with D = 100
        (3639, 256, 100, 2, 1, 1e-4, 14.1029),
        (3639, 256, 100, 2, 4, 1e-4, 4.2307),
        (4830, 2048, 10, 2, 8, 1e-4, 2.0156),
        (4830, 4830, 60, 1, 1, 1e-4, 38.5869),  # whole batches, as ``gap_node`` trains
    ],
)
def test_gap_s_noise_multiplier_is_the_authors(
    rows: int, batch: int, epochs: int, hops: int, epsilon: float, delta: float, authors: float
) -> None:
    """authors: sisaman/GAP (gap_ndp.py, noisy_sgd.py, pma.py) with autodp 0.2.3.1: one multiplier for all stages."""
    pipeline = aggregation_noise.NodeAggregation(2 * (epochs * rows // batch), batch / rows, hops, replaced=False)
    found = aggregation_noise.node_level(pipeline, 0.3, epsilon, delta, "published", 1.0, "code")
    assert found.gradient == found.hop == pytest.approx(authors, rel=3e-5)
    assert found.published <= epsilon


def test_gap_formulas():
    std = gap.claimed_gap_edge_std(4.0, 2, 1e-7)
    assert 2 / (2 * std**2) + math.sqrt(4 * math.log(1e7)) / std == pytest.approx(4.0)
    assert gap.gap_refill_sensitivity(100, 42) == pytest.approx(21.0, abs=0.05)
    slides = gap.claimed_gap_node_epsilon(12.0, 1000, 100, 3, 1.0, 2, 10, 1e-5)
    assert slides == pytest.approx(_slides_by_hand(12.0, 1000, 100, 3, 1.0, 2, 10, 1e-5), rel=1e-9)


def _slides_by_hand(std, n, b, epochs, clip, hops, degree, delta):
    """The formula as printed, with big integers."""
    q, best = b / n, math.inf
    for a in range(2, 257):
        inner = (1 - q) ** (a - 1) * (a * q - q + 1)
        for j in range(2, a + 1):
            inner += math.comb(a, j) * (1 - q) ** (a - j) * q**j * math.exp((j - 1) * clip**2 * j / (2 * std**2))
        steps = 2 * epochs * n / b
        value = steps / (a - 1) * math.log(inner) + degree * hops * a / (2 * std**2) + math.log(1 / delta) / (a - 1)
        best = min(best, value)
    return best


ARGUMENTS = {
    "epsilon": 4.0,
    "delta": 1e-4,
    "share": 0.9,
    "bounds": gcon.LossBounds.soft_margin(7),
    "sensitivity": 1.12,
    "num_classes": 7,
    "dimension": 16,
    "num_labelled": 140,
    "per_end": False,
}


def perturbed(regulariser=1.0, **change):
    return gcon.gamma_noise(gcon.Situation(**(ARGUMENTS | change)), regulariser)


def test_gcon_perturbation():
    made = perturbed()
    assert made.log_determinant <= 0.1 * 4.0
    assert made.regulariser == 1.0
    tight = perturbed(share=0.9999, epsilon=2.0)
    assert tight.regulariser > 1.0
    assert tight.log_determinant <= (1 - 0.9999) * 2.0 * (1 + 1e-9)
    assert perturbed(sensitivity=0.0).rate == math.inf
    assert gcon.psi([0.0], 0.3) == 0.0
    outputs = [gcon.calibrated(gcon.Situation(**ARGUMENTS), 1.0, g).output_std for g in (1e-10, 2e-10)]
    assert outputs[1] == pytest.approx(2 * outputs[0])
    with pytest.raises(PrivacyError, match="gradient norm"):
        gcon.calibrated(gcon.Situation(**ARGUMENTS), 1.0, math.nan)


def test_the_page_is_what_the_command_prints():
    page = Path(__file__).parents[2] / "docs" / "data" / "published_claims.txt"
    assert page.read_text(encoding="utf-8") == gap.page(), (
        "python -m benchmarks.reproductions.claims --page > docs/data/published_claims.txt"
    )
