"""Names of random streams: what enters them, and what must not."""

from dataclasses import replace

import numpy as np

from fedgraph.learning.optimisers.public_training import PublicTrainingEncoder, PublicTrainingSteps
from fedgraph.methods import features
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.own_budgets import apply_own_budgets
from fedgraph.privacy.units import Viewer
from tests.public_facts import public_facts


def test_streams_do_not_follow_the_names_of_classes() -> None:
    """A class with another name must not draw other numbers. Where a setting is new, write the new fingerprint here."""
    encoder = PublicTrainingEncoder("classes", 64, 4, PublicTrainingSteps(60, 0.01, 5e-4))
    how = "Fitting(epochs=60, rate=0.01, decay=0.0005)"
    assert encoder.stream_words == f"Encoder(output='classes', hidden=64, folds=4, how={how})"
    facts = public_facts(100, 20, 3, (100,), Viewer.SERVER)
    assert features.plan(features.Params(steps=3), facts, Budget(1.0, 1e-5)).fingerprint == "806f49b141d7962e"


def test_a_run_with_an_epsilon_of_ones_own_draws_other_noise() -> None:
    """A client sends w·value and noise in one run, and value and noise in the other: the same noise would show the value."""
    facts = public_facts(90, 20, 3, (30, 30, 30), Viewer.SERVER, members=tuple(np.arange(90).reshape(3, 30)))
    plain = features.plan(features.Params(steps=3), facts, Budget(2.0, 1e-5))

    def asking(**own: float) -> Plan:
        wanted = {int(client[1:]): epsilon for client, epsilon in own.items()}
        releases = apply_own_budgets(plain.schedule.releases, wanted, 3, 1e-5)
        return replace(plain, schedule=replace(plain.schedule, releases=releases))

    plans = [plain, asking(c0=0.5), asking(c0=1.0), asking(c1=0.5), asking(c0=0.5, c1=0.5)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert asking(c0=9.0).fingerprint == plain.fingerprint, "who asks for more than all get sends what it sent"
