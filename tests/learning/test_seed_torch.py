"""Seeding torch for a step: the same stream as ``torch.manual_seed``, and nothing is left behind."""

from __future__ import annotations

import torch

from fedgraph.learning.layers.torch_matrices import seed_learner


def test_it_is_the_same_stream() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(7)
        wanted = torch.rand(5)
        seed_learner(7)
        assert torch.equal(torch.rand(5), wanted)


def test_no_note_is_left_for_devices_that_are_not_there() -> None:
    before = len(torch.cuda._queued_calls)
    for seed in range(10):
        seed_learner(seed)
    assert len(torch.cuda._queued_calls) == before
