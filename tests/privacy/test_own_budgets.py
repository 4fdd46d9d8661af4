"""A client's own ε: its price, its noise, and what one of its units moves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk, PlannedRelease, declared_at_desk
from fedgraph.privacy.events import Gaussian, PoissonGaussian, PureDP
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise
from fedgraph.privacy.own_budgets import OwnBudgetNoise, _own_budget_share, apply_own_budgets
from fedgraph.privacy.sensitivity import Rows

DELTA = 1e-4


PLAIN = Gaussian(3.0)


def planned(event: Gaussian | PoissonGaussian = PLAIN, std: float = 3.0) -> tuple[PlannedRelease, ...]:
    return (PlannedRelease("model", Rows(1.0, 50), GaussianNoise(std), event, range(8)),)


@pytest.mark.parametrize(
    "event",
    [Gaussian(3.0), PoissonGaussian(1.5, 0.2, touched_rows=1, replaced=False), PoissonGaussian(2.5, 0.3, 4, True)],
    ids=str,
)
@pytest.mark.parametrize("wanted", [0.3, 1.0])
def test_the_client_pays_what_it_asked_for_and_the_others_what_they_did(
    event: Gaussian | PoissonGaussian, wanted: float
) -> None:
    before = price(declared_at_desk(planned(event), 0), DELTA).epsilon
    assert before > wanted
    after = apply_own_budgets(planned(event), {2: wanted}, 4, DELTA)
    own, other = (price(declared_at_desk(after, client), DELTA).epsilon for client in (2, 1))
    assert wanted * 0.98 < own <= wanted
    assert other == before


@pytest.mark.parametrize(("rounds", "per_round"), [(range(8), 1), (range(2), 4), (range(3, 4), 2)])
def test_every_release_counts_however_the_rounds_hold_them(rounds: range, per_round: int) -> None:
    """Hops are released several times in one round, beside sums of other rounds."""
    hops = PlannedRelease("hops", Rows(1.0, 50), GaussianNoise(2.0), Gaussian(2.0), rounds, per_round)
    after = apply_own_budgets((*planned(), hops), {1: 0.5}, 3, DELTA)
    own, other = (price(declared_at_desk(after, client), DELTA).epsilon for client in (1, 0))
    assert 0.5 * 0.98 < own <= 0.5
    assert other == price(declared_at_desk((*planned(), hops), 0), DELTA).epsilon


def test_more_than_the_plan_gives_changes_nothing() -> None:
    after = apply_own_budgets(planned(), {0: 100.0}, 2, DELTA)
    assert {type(r.mechanism) for r in after} == {GaussianNoise}
    assert _own_budget_share(planned(), 100.0, DELTA) == 1.0


def test_what_one_row_moves_and_the_noise_it_hides_in() -> None:
    """The measured distance of neighbouring sums, over the measured noise, is the price; ⅔ of the noise is refused."""
    (release,) = (r for r in apply_own_budgets(planned(), {0: 0.5}, 1, DELTA))
    mechanism, rng = release.mechanism, np.random.default_rng(4)
    assert isinstance(mechanism, OwnBudgetNoise)
    rows = rng.standard_normal((50, 4000)) * 10
    zero = rows.copy()
    zero[7] = 0
    sums = [release.bound.enforce(r) for r in (rows, zero)]
    noisy = [mechanism.apply(s, np.random.default_rng(9)) for s in sums]  # the same noise twice: only the sums differ
    moved = float(np.linalg.norm(noisy[0] - noisy[1]))
    noise = mechanism.apply(np.zeros(40_000), rng)
    assert moved <= mechanism.share * 1.0
    assert moved > 0.99 * mechanism.share
    assert isinstance(release.event, Gaussian)
    assert moved <= mechanism.std / release.event.noise_multiplier * (1 + 1e-9)
    assert kstest(noise / mechanism.std, "norm").pvalue > 1e-3
    assert kstest(noise / mechanism.std * 2 / 3, "norm").pvalue < 1e-6


def test_the_ledger_says_what_was_done() -> None:
    after = apply_own_budgets(planned(), {1: 0.5}, 2, DELTA)
    desk = Desk("c", 1, 3, after, np.random.default_rng(0))
    entry = desk.release("model", np.ones((3, 2))).entry
    assert entry.event == next(r.event for r in after if r.client == 1)
    assert "times the value" in entry.mechanism


@pytest.mark.parametrize(
    "release",
    [
        PlannedRelease("labels", Rows(1.0, 5), Disclose("in clear"), PureDP(1.0), range(1)),
        PlannedRelease("model", Rows(1.0, 5), Disclose("in clear"), Gaussian(1.0), range(1)),
    ],
)
def test_refuses_what_is_no_gaussian_sum(release: PlannedRelease) -> None:
    with pytest.raises(PrivacyError, match="own ε is offered"):
        apply_own_budgets((release,), {0: 1.0}, 2, DELTA)


@pytest.mark.parametrize("own", [{5: 1.0}, {0: 0.0}, {0: float("inf")}])
def test_refuses_clients_and_budgets_that_are_none(own: dict[int, float]) -> None:
    with pytest.raises(PrivacyError, match="allowed"):
        apply_own_budgets(planned(), own, 2, DELTA)


@pytest.mark.parametrize(("std", "kept"), [(0.0, 0.5), (1.0, 0.0), (1.0, 1.5), (1.0, float("nan"))])
def test_refuses_shares_that_are_none(std: float, kept: float) -> None:
    with pytest.raises(PrivacyError):
        OwnBudgetNoise(std, kept)
