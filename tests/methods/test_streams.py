"""Names of random streams: what enters them, and what must not."""

from typing import ClassVar

import pytest
from pydantic import ValidationError

from fedgraph.documents.settings import Settings
from fedgraph.learning.optimisers.public_training import PublicTrainingEncoder, PublicTrainingSteps
from fedgraph.methods import features
from fedgraph.methods.base import Budget
from fedgraph.privacy.units import Viewer
from tests.public_facts import public_facts


def test_streams_do_not_follow_the_names_of_classes() -> None:
    """A class with another name must not draw other numbers. Where a setting is new, write the new fingerprint here."""
    encoder = PublicTrainingEncoder("classes", 64, 4, PublicTrainingSteps(60, 0.01, 5e-4))
    how = "Fitting(epochs=60, rate=0.01, decay=0.0005)"
    assert encoder.stream_words == f"Encoder(output='classes', hidden=64, folds=4, how={how})"
    facts = public_facts(100, 20, 3, (100,), Viewer.SERVER)
    assert features.plan(features.Params(steps=3), facts, Budget(1.0, 1e-5)).fingerprint == "806f49b141d7962e"


def test_a_constant_names_noise_as_a_setting_does() -> None:
    """Were it left out, another constant would put the same noise on another value, and the difference would show both."""

    class Base(Settings):
        steps: int = 3
        share: ClassVar[float] = 0.5
        rate: float = 1.0

    class Longer(Base):
        steps: int = 4
        knee: ClassVar[int] = 1

    assert repr(Base(rate=2.0)) == "Base(steps=3, share=0.5, rate=2.0)"
    assert repr(Longer()) == "Longer(steps=4, share=0.5, rate=1.0, knee=1)"
    with pytest.raises(ValidationError):
        Base(share=0.9)  # type: ignore[call-arg]
