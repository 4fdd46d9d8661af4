"""Full-batch descent with heavy-ball momentum."""

from __future__ import annotations

import pytest
import torch

from fedgraph.learning import descend


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_descent_is_the_recurrence(momentum: float) -> None:
    """On ½‖w‖², by hand; the start is not written over."""
    start = torch.tensor([1.0, -2.0])
    found = descend(start, lambda w: w, epochs=3, rate=0.1, momentum=momentum)
    w, v = [1.0, -2.0], [0.0, 0.0]
    for _ in range(3):
        v = [momentum * b + a for a, b in zip(w, v, strict=True)]
        w = [a - 0.1 * b for a, b in zip(w, v, strict=True)]
    assert found.tolist() == pytest.approx(w)
    assert start.tolist() == [1.0, -2.0]
