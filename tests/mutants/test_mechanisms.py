"""Every mutant is caught, no sound mechanism is accused, and the command says so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from fedgraph.privacy.accounting.pld import MixturePair
from tests.mutants import bench, mechanisms
from tests.mutants.bench import BenchCase

NAMED = {  # none of these may go
    "gaussian-sum": {"noise × ⅔", "sensitivity halved"},
    "edge-aggregate": {"√2 forgotten"},
    "poisson-gaussian": {"sampling claimed but not done"},
    "gumbel-top-k": {"scale halved"},
    "multi-bit-per-row": {"budget not divided by the rows"},
    "poisson-two-sided-mixture": {"one-sided mixture, rows change"},
    "overlapping-secure-sum": {"clients added in squares"},
    "composition": {"count dropped"},
    "choice": {"both alternatives released"},
    "label-sets": {"noise × ⅔"},
    "desk-refusals": {"NaN passed through"},
    "log-cap-hop": {"h twice as steep", "cut with refill priced as √D"},
    "owned-records": {"noise × ⅔"},
    "gaussian-objective": {"noise × ⅔", "Ψ of one end for two"},
    "fixed-size-sample": {"amplified by q' instead of size/n"},
    "gaussian-sum-of-millions": {"sum in single precision"},
    "noise-of-messages": {"private streams from public seed 0", "the same noise in every round"},
    "noise-of-blocks": {"private streams from public seed 0", "the same noise in every round"},
    "neighbour-gradients": {"parameters not projected"},
    "one score": {"the best of 20, selection unpriced"},
    "choice at the desk": {"scores with a quarter of the noise", "scores without a bound"},
}
BLIND_BY_DESIGN = {
    "desk-refusals",  # nothing leaves, so there is nothing to distinguish
    "choice at the desk",  # few runs: whether the door bounds and noises; the price is that of "private selection"
    "neighbour-gradients",  # parameters that hurt where they are not projected are saturated where they are
}


@pytest.fixture(scope="module")
def cases() -> list[BenchCase]:
    return list(bench.all_bench_cases())


@pytest.fixture(scope="module")
def report(cases: list[BenchCase]) -> bench.BenchReport:
    return bench.run_bench(cases)


def test_every_mutant_is_caught(report: bench.BenchReport) -> None:
    assert [row for row in report.rows if row.mutant is not None and not row.accused] == []
    for name, mutants in NAMED.items():
        assert mutants <= {row.mutant for row in report.rows if row.mechanism == name}, name


def test_no_sound_mechanism_is_accused(report: bench.BenchReport) -> None:
    assert [row for row in report.rows if row.mutant is None and row.accused] == []


def test_the_audit_is_not_blind_where_it_accuses_nobody(report: bench.BenchReport) -> None:
    """A sound mechanism's bound reaches at least half of its claim."""
    for row in report.rows:
        if row.mutant is None and row.mechanism not in BLIND_BY_DESIGN:
            claimed = row.epsilon if row.measures == "epsilon" else row.delta
            assert row.lower_bound >= 0.5 * claimed, row


def test_every_mutant_stands_once_beside_its_sound_mechanism_and_the_summary_counts(report: bench.BenchReport) -> None:
    twins = [(row.mechanism, row.mutant) for row in report.rows]
    assert len(set(twins)) == len(twins)
    sound = {name for name, mutant in twins if mutant is None}
    assert {name for name, _ in twins} == sound
    mutants = len(twins) - len(sound)
    assert report.summary == f"{mutants} of {mutants} mutants caught, 0 of {len(sound)} sound mechanisms accused"
    assert report.ok


def test_the_one_sided_mixture_is_the_librarys() -> None:
    """The mutant's claim is what ``from_mixture_gaussian_mechanism`` says: 0.806 where the truth is 0.846."""
    wrong = mechanisms.one_sided_pair(1.0, 0.3, 3)
    library = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        1.0, wrong.shifts_p.tolist(), wrong.weights_p.tolist(), value_discretization_interval=0.05
    )
    assert mechanisms.hockey_stick(wrong, 0.0) == pytest.approx(library.get_delta_for_epsilon(0.0), abs=1e-6)
    assert mechanisms.hockey_stick(mechanisms.one_sided_pair(1.0, 0.3, 8), 0.0) == pytest.approx(0.806, abs=5e-4)
    assert mechanisms.hockey_stick(MixturePair.of_rows(1.0, 0.3, 8, False), 0.0) == pytest.approx(0.846, abs=5e-4)


def test_a_mutant_that_poses_as_sound_is_accused_and_a_sound_one_as_a_mutant_is_missed(cases: list[BenchCase]) -> None:
    sound, mutant = (next(c for c in cases if (c.name, c.mutant) == ("gaussian-sum", m)) for m in (None, "noise × ⅔"))
    accused = bench.run_bench([dataclasses.replace(mutant, mutant=None)])
    assert (accused.ok, accused.summary) == (False, "0 of 0 mutants caught, 1 of 1 sound mechanisms accused")
    missed = bench.run_bench([dataclasses.replace(sound, mutant="nothing broken")])
    assert (missed.ok, missed.summary) == (False, "0 of 1 mutants caught, 0 of 0 sound mechanisms accused")


@pytest.mark.slow
@pytest.mark.parametrize("seed", np.random.default_rng(7).integers(0, 2**31, size=10).tolist())
def test_any_seed_will_do(cases: list[BenchCase], seed: int) -> None:
    assert bench.run_bench(cases, seed).ok
