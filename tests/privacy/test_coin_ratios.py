"""What Gaussian values say of coins that all show in them."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy.mechanisms import likelihood_ratios


def test_one_coin_alone_is_read_by_its_exact_likelihood_ratio() -> None:
    rng = np.random.default_rng(0)
    h, seen, std = rng.normal(size=7), rng.normal(size=7), 1.3
    exact = (np.square(seen + h).sum() - np.square(seen - h).sum()) / (2 * std**2)
    (found,) = likelihood_ratios.of_coins(np.array([[h @ h / std**2]]), np.array([h @ seen / std**2]))
    assert found == pytest.approx(exact)


def test_it_is_the_linear_estimate_written_down_once_more() -> None:
    rng = np.random.default_rng(1)
    moved, seen = rng.normal(size=(9, 4)), rng.normal(size=9)
    inverse = np.linalg.inv(moved.T @ moved + np.eye(4))
    expected = 2 * inverse @ moved.T @ seen / np.diag(inverse)
    np.testing.assert_allclose(likelihood_ratios.of_coins(moved.T @ moved, moved.T @ seen), expected)


def test_a_direction_that_all_coins_share_is_taken_off() -> None:
    """Two hundred coins along one direction, and each along one of its own: by themselves the products would drown them."""
    rng = np.random.default_rng(2)
    moved = np.vstack([np.eye(200) * 2, np.full((1, 200), 5.0)])
    coins = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    along = moved.T @ (moved @ coins + rng.standard_normal(201))
    right = [np.mean(np.sign(score) == coins) for score in (likelihood_ratios.of_coins(moved.T @ moved, along), along)]
    assert right[0] > 0.93 > 0.75 > right[1]


def test_no_coin_says_nothing_and_nonsense_is_refused() -> None:
    assert likelihood_ratios.of_coins(np.zeros((0, 0)), np.zeros(0)).size == 0
    with pytest.raises(PrivacyError, match="are not finite"):
        likelihood_ratios.of_coins(np.array([[np.nan]]), np.ones(1))
