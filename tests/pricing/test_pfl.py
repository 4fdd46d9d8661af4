"""pfl-research: its banded matrix mechanism and what else its files can say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError
from fedgraph.pricing import costs, pfl_mechanisms
from fedgraph.pricing.pfl_mechanisms import BandedPflSensitivity
from fedgraph.pricing.quotes import Quote
from fedgraph.privacy.accounting import gaussian

MAKE = (
    "make = lambda num_compositions: PLDPrivacyAccountant(num_compositions, sampling_probability=0.01, mechanism='gaussian', "
    "noise_parameter={noise}, delta=1e-6)\n"
)
CENTRAL = "CentrallyAppliedPrivacyMechanism"


def priced(tmp_path: Path, text: str, name: str = "job.py", fix: float | None = None) -> Quote:
    path = tmp_path / name
    path.write_text(("import pfl\n" if name.endswith(".py") else "") + text, encoding="utf-8")
    return pricing.price(path, fix=fix)


def banded(tmp_path: Path, rounds: object = 16, separation: object = 4, noise: float = 5.0, more: str = "") -> Quote:
    text = MAKE.format(noise=noise) + f"m = BandedMatrixFactorizationMechanism(1.0, {rounds}, {separation}, make)\n{more}"
    return priced(tmp_path, text)


def total(quote: Quote, row: int = 0) -> float:
    found = quote.rows[row].total
    assert found is not None
    return found.epsilon


def test_the_factor_is_banded_and_has_rows_of_norm_one() -> None:
    factor = pfl_mechanisms._factor(40, 7)
    row, column = np.indices(factor.shape)
    assert not factor[(column > row) | (row - column >= 6)].any()
    np.testing.assert_allclose(np.square(factor).sum(axis=1), 1)
    assert BandedPflSensitivity(40, 7).once() > 1.5, "columns are not of norm one, although the paper wants that"


def test_the_factor_is_no_worse_than_plain_noise() -> None:
    """The search did something: the error of the prefix sums is far below that of independent noise."""
    sums = np.tril(np.ones((40, 40)))
    plain, found = np.square(sums).sum(), np.square(sums @ np.linalg.inv(_upright(40, 7))).sum()
    assert found < 0.5 * plain


def _upright(rounds: int, separation: int) -> np.ndarray:
    """The factor that the paper means: GramᵀGram with columns of norm one, from the same G."""
    factor = pfl_mechanisms._factor(rounds, separation)
    gram = (factor @ factor.T)[::-1, ::-1]
    return np.linalg.cholesky(gram)[::-1, ::-1].T


@pytest.mark.parametrize(("rounds", "separation"), [(16, 4), (30, 5), (12, 20)])
def test_no_user_moves_more_than_is_stated(rounds: int, separation: int) -> None:
    """Random participations and directions, and the worst ones, against both sensitivities."""
    rng = np.random.default_rng(0)
    factor, stated = pfl_mechanisms._factor(rounds, separation), BandedPflSensitivity(rounds, separation)
    worst_apart = worst_always = 0.0
    for start in range(min(separation, rounds)):
        for _ in range(20):
            rows = rng.normal(size=(rounds, 3))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            worst_always = max(worst_always, float(np.linalg.norm(factor @ rows)))
            apart = np.zeros((rounds, 3))
            apart[start::separation] = rows[start::separation]
            worst_apart = max(worst_apart, float(np.linalg.norm(factor @ apart)))
    same = float(np.linalg.norm(factor @ np.ones((rounds, 1))))
    assert worst_apart <= stated.apart(rounds)
    assert max(worst_always, same) <= stated.always(rounds)
    assert worst_apart > 0.9 * stated.apart(rounds), "the statement is not loose either"
    assert same > 0.9 * stated.always(rounds)
    loose = BandedPflSensitivity(rounds, separation, math.sqrt(min(rounds, separation)))
    assert stated.apart(rounds) <= pfl_mechanisms._MARGIN * loose.apart(rounds)


def test_the_banded_price_is_the_gaussian_of_that_sensitivity(tmp_path: Path) -> None:
    quote = banded(tmp_path)
    mu = BandedPflSensitivity(16, 4).apart(16) / 5.0
    assert total(quote) == pytest.approx(gaussian.epsilon(mu, 1e-6), rel=1e-6)
    assert total(quote, 1) == pytest.approx(gaussian.epsilon(2 * mu, 1e-6), rel=1e-6)
    assert total(quote) > gaussian.epsilon(math.sqrt(4) / 5.0, 1e-6), "more than what unit columns would cost"
    assert total(quote, 2) > total(quote)
    assert total(quote, 3) <= total(quote)
    assert quote.headline.per_round.epsilon < total(quote)


def test_more_rounds_less_noise_and_closer_rounds_cost_more(tmp_path: Path) -> None:
    base = total(banded(tmp_path))
    assert total(banded(tmp_path, noise=10.0 / 3)) > base
    assert total(banded(tmp_path, noise=7.5)) < base
    assert total(banded(tmp_path, rounds=32)) > base
    assert total(banded(tmp_path, separation=8)) < base


def test_a_sampler_that_breaks_the_promise_heads_the_list(tmp_path: Path) -> None:
    quote = banded(tmp_path, more="s = get_user_sampler('random', range(10))\n")
    assert total(quote) == total(banded(tmp_path), 2)
    assert "the promise of min_separation is broken" in quote.reading.order[0]


def test_many_rounds_are_bounded_and_the_saved_matrix_is_asked_for(tmp_path: Path) -> None:
    quote = banded(tmp_path, rounds=1500, separation=48)
    [asked] = quote.asked
    assert asked.unknown.name == "largest column norm"
    assert total(quote) == pytest.approx(gaussian.epsilon(math.sqrt(1500) / 5, 1e-6), rel=1e-6)
    answers = dict(asked.answers)
    assert answers[1.0] == pytest.approx(gaussian.epsilon(math.sqrt(32) / 5, 1e-6), rel=1e-6)


def test_an_unknown_separation_is_asked_for(tmp_path: Path) -> None:
    assert [a.unknown.name for a in banded(tmp_path, separation="gap").asked] == ["min separation"]
    assert banded(tmp_path, separation="gap").headline.total is None


def test_a_fix_of_the_banded_mechanism(tmp_path: Path) -> None:
    text = MAKE.format(noise=5.0) + "m = BandedMatrixFactorizationMechanism(1.0, 16, 4, make)\n"
    fix = priced(tmp_path, text, fix=1.0).fix
    assert fix is not None
    assert fix.settings is not None
    again = banded(tmp_path, noise=float(fix.settings["noise_parameter"]))
    assert 0.999 < total(again) <= 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MAKE.format(noise=5) + "m = BandedMatrixFactorizationMechanism(1.0, 16, 1, make)\n", "min_separation one ≥ 2"),
        ("m = BandedMatrixFactorizationMechanism(1.0, 16, 4, make)\n", "is not in this file"),
        ("a = LaplaceMechanism(1, 1)\nb = AdaptiveClippingGaussianMechanism(f, 1, 9, 0.5)\n", "several mechanisms"),
        (MAKE.format(noise=5) + MAKE.format(noise=6), "several accountants"),
        ("a = JointPrivacyAccountant(['gaussian'], P, 10, 0.1, 1.0, 1e-6)\n", "print the noise_parameters"),
        (MAKE.format(noise=5) + "b = AdaptiveClippingGaussianMechanism(f, 1.0, 4.0, 0.5)\n", "must lie above"),
        ("m = LaplaceMechanism(1.0, eps)\n", "needs epsilon as a number"),
    ],
)
def test_one_line_of_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PricingError, match=message) as error:
        priced(tmp_path, text)
    assert "\n" not in str(error.value)


def test_adaptive_clipping_costs_what_its_accountant_says(tmp_path: Path) -> None:
    text = (
        "a = PLDPrivacyAccountant(num_compositions=100, sampling_probability=0.05, mechanism='gaussian', noise_parameter=1.0, "
        "delta=1e-5)\n"
    )
    more = "m = AdaptiveClippingGaussianMechanism.construct_from_privacy_accountant(a, 1.0, 5.0, 0.5)\n"
    assert total(priced(tmp_path, text + more)) == total(priced(tmp_path, text))


def test_laplace_alone_and_wrapped(tmp_path: Path) -> None:
    wrapped = priced(tmp_path, f"m = {CENTRAL}(LaplaceMechanism(1.0, 0.1))\n")
    assert wrapped.headline.per_round.epsilon == pytest.approx(0.1)
    assert [a.unknown.name for a in wrapped.asked] == ["sampling rate", "rounds", "delta"]
    own = priced(tmp_path, "m = LaplaceMechanism(1.0, 0.1)\n")
    assert "each user applies it" in own.reading.order[0]
    assert own.rows[1].per_round.epsilon == pytest.approx(0.2)


def test_parts_of_one_cohort_are_amplified_together(tmp_path: Path) -> None:
    """Two equal Gaussian parts are one of std/√2; parts with coins of their own, as pfl adds them up, would cost less."""
    text = (
        "a = JointPrivacyAccountant(mechanisms=['gaussian', 'gaussian'], accountants=P, num_compositions=100, "
        "sampling_probability=0.01, total_delta=1e-6, noise_parameters=[1.0, 1.0])\n"
    )
    quote = priced(tmp_path, text)
    assert total(quote) == pytest.approx(costs.cost_of_poisson(math.sqrt(0.5), 0.01)(100, 1e-6).epsilon, rel=1e-6)
    assert total(quote) > 1.2 * costs.cost_of_poisson(1.0, 0.01)(200, 1e-6).epsilon
    mixed = priced(tmp_path, text.replace("'gaussian', 'gaussian'", "'gaussian', 'laplace'"))
    assert total(mixed) > total(quote)


BENCHMARK = (
    "central_privacy_mechanism: {}\ncentral_num_iterations: 100\ncohort_size: 500\nnoise_cohort_size: 500\npopulation: 1e5\n"
)


def test_the_benchmarks_flags(tmp_path: Path) -> None:
    single = priced(tmp_path, BENCHMARK.format("gaussian"), "a.yaml")
    assert single.reading.published[0].scope == "per round"
    assert single.reading.published[0].epsilon == 1.0
    laplace = priced(tmp_path, BENCHMARK.format("laplace"), "b.yaml")
    assert laplace.headline.per_round.epsilon <= math.log1p(0.005 * math.expm1(1.0)) + 1e-9
    nothing = priced(tmp_path, BENCHMARK.format("none"), "c.yaml")
    assert math.isinf(total(nothing))
    local = priced(tmp_path, BENCHMARK.format("none") + "local_privacy_mechanism: laplace\nlocal_epsilon: 0.5\n", "d.yaml")
    assert local.headline.per_round.epsilon == pytest.approx(0.5, rel=1e-3)
    assert local.headline.row.viewer.startswith("the server, which sees")
    with pytest.raises(PricingError, match="pfl refuses it"):
        priced(tmp_path, BENCHMARK.format("gaussian_moments_accountant").replace("size: 500\nn", "size: 600\nn"), "e.yaml")
    with pytest.raises(PricingError, match="out of a population"):
        priced(tmp_path, BENCHMARK.format("gaussian").replace("1e5", "10"), "f.yaml")


@pytest.mark.slow
def test_the_benchmarks_accountant_finds_its_epsilon(tmp_path: Path) -> None:
    quote = priced(tmp_path, BENCHMARK.format("gaussian_moments_accountant") + "central_epsilon: 2.0\n", "a.yaml")
    assert 0.99 < total(quote) / 2.0 <= 1.0
    banded = priced(tmp_path, BENCHMARK.format("banded_matrix_factorization") + "min_separation: 20\n", "b.yaml")
    assert total(banded) > 1.0, "the accountant's amplification does not hold for a user kept apart, and columns are longer"
