"""What Gaussian values say of coins that all show in them."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.privacy.mechanisms import likelihood_ratios


def test_one_coin_alone_is_read_by_its_exact_likelihood_ratio() -> None:
    rng = np.random.default_rng(0)
    h, seen, std = rng.normal(size=7), rng.normal(size=7), 1.3
    exact = (np.square(seen + h).sum() - np.square(seen - h).sum()) / (2 * std**2)
    (found,) = likelihood_ratios.of_coins(np.array([[h @ h / std**2]]), np.array([h @ seen / std**2]))
    assert found == pytest.approx(exact)


def test_a_direction_that_all_coins_share_is_taken_off() -> None:
    """Two hundred coins along one direction, and each along one of its own: by themselves the products would drown them."""
    rng = np.random.default_rng(2)
    moved = np.vstack([np.eye(200) * 2, np.full((1, 200), 5.0)])
    coins = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    along = moved.T @ (moved @ coins + rng.standard_normal(201))
    right = [np.mean(np.sign(score) == coins) for score in (likelihood_ratios.of_coins(moved.T @ moved, along), along)]
    assert right[0] > 0.93 > 0.75 > right[1]
