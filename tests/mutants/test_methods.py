"""Whole methods and their broken twins: what the page counts, and the noise of some of them is told from what was planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants import bench, code
from tests.mutants import methods as mutants

DOCS = Path(__file__).parents[2] / "docs"
JUDGED = [
    "gap_edge, 1 client",
    "features, 2 clients",
    "local_dp dp_fedavg each, 2 clients",
    "local_dp dp_fedavg sum, 4 clients",
]


def test_the_page_counts_what_the_benches_have_and_every_mutant_has_its_sound_method() -> None:
    sound, broken = ([(w.name, w.viewer) for w in mutants.listed() if bool(w.broken) is b] for b in (False, True))
    assert len(set(sound)) == len(sound)
    assert set(broken) <= set(sound)
    page = " ".join((DOCS / "attacks.md").read_text(encoding="utf-8").split())
    assert f"The bench has {len(broken)} mutants and {len(sound)} sound rows." in page
    rows = (DOCS / "data" / "attacks" / "broken.csv").read_text(encoding="utf-8").splitlines()[2:]  # below command and heads
    assert sum(row.count(";") + 1 for row in rows) == len(broken), "every mutant has its number in the table"
    judged = [case.mutant is not None for case in bench.all_bench_cases()]
    assert f"{sum(judged)} of {sum(judged)} mutants caught, 0 of {len(judged) - sum(judged)} sound" in page
    assert f"stand {len(code.all_code_mutants())} faults of the code" in page


def test_a_sound_method_is_not_accused_in_few_runs() -> None:
    (hops,) = (w for w in mutants.listed() if w.name == "gap_edge, 1 client" and not w.broken)
    found = bench.judge_bench_case(mutants._case_of(hops, 12), 0, 0.001)
    assert found.verdict == "not accused"


@pytest.mark.slow
@pytest.mark.parametrize("whole", [w for w in mutants.listed() if w.name in JUDGED], ids=lambda w: f"{w.name} {w.broken}")
def test_too_little_noise_of_a_method_is_caught(whole: mutants._Whole) -> None:
    found = bench.judge_bench_case(mutants._case_of(whole), 0, 0.002)
    assert found.as_it_should, found
