"""The server's descent: what noise on gradients becomes in the averaged parameters, and settings that follow the signal."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.learning.optimisers.dp_training import Descent, full_width


@pytest.mark.parametrize(("momentum", "averaged"), [(0.9, 0.5), (0.0, 1.0), (0.5, 0.1)])
def test_gain_is_the_spread_of_parameters_that_noise_alone_makes(momentum: float, averaged: float) -> None:
    descent, rng = Descent(0.7, momentum, 12, averaged), np.random.default_rng(0)
    memory = descent.start(np.zeros(40_000, dtype=np.float64))
    for number in range(descent.steps):
        memory = descent.step(memory, rng.standard_normal(40_000), number)
    assert memory.average.std() == pytest.approx(descent.gain(), rel=0.02)


def test_more_signal_takes_more_steps() -> None:
    found = [full_width(s) for s in (10.0, 1e3, 5e3, 3e4, 1e6)]
    assert [steps for steps, _, _ in found] == [20, 40, 89, 200, 200]
    assert all(rate * clip >= 8 for _, rate, clip in found)
