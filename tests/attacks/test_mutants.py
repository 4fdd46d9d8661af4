"""Whole methods and their broken twins: the noise of one hop too few is told from what was planned."""

from __future__ import annotations

import pytest

from fedgraph.attacks.base import mutants
from fedgraph.privacy.units import Viewer


def test_every_mutant_has_its_sound_method_before_it() -> None:
    listed = list(mutants.cases())
    sound = {(str(c.method["method"]), c.viewer) for c in listed if not c.broken}
    assert {(str(c.method["method"]), c.viewer) for c in listed} == sound
    assert all(why.endswith(".") for why in (f"{w.rstrip('.')}." for w in mutants.UNSEEN.values()))


def test_a_sound_method_is_not_accused_in_few_runs() -> None:
    hops = {"method": "gap_edge", "hops": 1, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    found = mutants.judged(mutants.Case(hops, Viewer.CURATOR_TRUSTED, 1), 0, 12, 0.001)
    assert not found.accused
    assert found.verdict == "not accused"


@pytest.mark.slow
def test_two_thirds_of_the_noise_is_caught() -> None:
    hops = {"method": "gap_edge", "hops": 1, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    for broken in ("", "noise × ⅔"):
        found = mutants.judged(mutants.Case(hops, Viewer.CURATOR_TRUSTED, 1, broken), 0, 300, 0.002)  # type: ignore[arg-type]
        assert found.as_it_should, found
