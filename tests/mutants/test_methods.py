"""Whole methods and their broken twins: the noise of one hop too few is told from what was planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedgraph.privacy.units import Viewer
from tests.mutants import bench, code
from tests.mutants import methods as mutants


def test_every_mutant_has_its_sound_method_before_it() -> None:
    listed = list(mutants._methods_with_mutants())
    sound = [(w.name, w.viewer) for w in listed if not w.broken]
    assert len(set(sound)) == len(sound)
    assert {(w.name, w.viewer) for w in listed} == set(sound)
    assert all(why.endswith(".") for why in (f"{w.rstrip('.')}." for w in mutants.UNSEEN_MUTANTS.values()))


def test_the_page_counts_what_the_benches_have() -> None:
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text(encoding="utf-8")
    broken, sound = (sum(bool(w.broken) is b for w in mutants._methods_with_mutants()) for b in (True, False))
    assert f"The bench has {broken} mutants and {sound} sound rows." in page
    table = (Path(__file__).parents[2] / "docs" / "data" / "attacks" / "broken.csv").read_text(encoding="utf-8")
    rows = table.splitlines()[2:]  # below its command and its heads
    assert sum(row.count(";") + 1 for row in rows) == broken, "every mutant has its number in the table"
    judged = list(bench.all_bench_cases())
    wrong = sum(case.mutant is not None for case in judged)
    assert f"{wrong} of {wrong} mutants caught, 0 of {len(judged) - wrong} sound" in page.replace("\n", " ")
    assert f"stand {len(code.all_code_mutants())} faults of the code" in page.replace("\n", " ")


def test_a_sound_method_is_not_accused_in_few_runs() -> None:
    hops = {"method": "gap_edge", "hops": 1, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    found = bench.judge_bench_case(mutants._case_of(mutants._Whole(hops, Viewer.CURATOR_TRUSTED, 1), 12), 0, 0.001)
    assert not found.accused
    assert found.verdict == "not accused"


@pytest.mark.slow
def test_two_thirds_of_the_noise_is_caught() -> None:
    hops = {"method": "gap_edge", "hops": 1, "encoder": "none", "epochs": 1, "depth": "all", "classifier": 0}
    for broken in ("", "noise × ⅔"):
        found = bench.judge_bench_case(mutants._case_of(mutants._Whole(hops, Viewer.CURATOR_TRUSTED, 1, broken)), 0, 0.002)  # type: ignore[arg-type]
        assert found.as_it_should, found
