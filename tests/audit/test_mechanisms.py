"""Every mutant is caught, no sound mechanism is accused, and the command says so."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution

from fedgraph.audit import bench
from fedgraph.audit.__main__ import main
from fedgraph.audit.bench import BenchCase
from fedgraph.audit.families import sampling
from fedgraph.privacy.accounting import mixture

NAMED_IN_THE_PLAN = [
    ("gaussian-sum", "noise × ⅔"),
    ("gaussian-sum", "sensitivity halved"),
    ("edge-aggregate", "√2 forgotten"),
    ("poisson-gaussian", "sampling claimed but not done"),
    ("gumbel-top-k", "scale halved"),
    ("multi-bit-per-row", "budget not divided by the rows"),
    ("poisson-two-sided-mixture", "one-sided mixture, rows change"),
    ("overlapping-secure-sum", "clients added in squares"),
    ("composition", "count dropped"),
    ("choice", "both alternatives released"),
    ("label-sets", "noise × ⅔"),
    ("desk-refusals", "NaN passed through"),
    ("log-cap-hop", "h twice as steep"),
    ("owned-records", "noise × ⅔"),
    ("log-cap-hop", "cut with refill priced as √D"),
    ("gaussian-objective", "noise × ⅔"),
    ("gaussian-objective", "Ψ of one end for two"),
    ("fixed-size-sample", "amplified by q' instead of size/n"),
    ("gaussian-sum-of-millions", "sum in single precision"),
    ("noise-of-messages", "private streams from public seed 0"),
    ("noise-of-messages", "the same noise in every round"),
    ("noise-of-blocks", "private streams from public seed 0"),
    ("noise-of-blocks", "the same noise in every round"),
    ("neighbour-gradients", "parameters not projected"),
    ("one score", "the best of 20, selection unpriced"),
    ("choice at the desk", "scores with a quarter of the noise"),
    ("choice at the desk", "scores without a bound"),
]
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


@pytest.mark.parametrize(("name", "mutant"), NAMED_IN_THE_PLAN)
def test_the_mutants_of_the_plan_are_caught(report: bench.BenchReport, name: str, mutant: str) -> None:
    (row,) = [row for row in report.rows if (row.mechanism, row.mutant) == (name, mutant)]
    assert row.verdict == "caught"


def test_every_mutant_is_caught(report: bench.BenchReport) -> None:
    assert [row for row in report.rows if row.mutant is not None and not row.accused] == []


def test_no_sound_mechanism_is_accused(report: bench.BenchReport) -> None:
    assert [row for row in report.rows if row.mutant is None and row.accused] == []


def test_the_audit_is_not_blind_where_it_accuses_nobody(report: bench.BenchReport) -> None:
    """A sound mechanism's bound reaches at least half of its claim."""
    for row in report.rows:
        if row.mutant is None and row.mechanism not in BLIND_BY_DESIGN:
            claimed = row.epsilon if row.measures == "epsilon" else row.delta
            assert row.lower_bound >= 0.5 * claimed, row


def test_every_mutant_stands_beside_its_sound_mechanism(cases: list[BenchCase]) -> None:
    sound = [case.name for case in cases if case.mutant is None]
    assert len(set(sound)) == len(sound)
    assert {case.name for case in cases} == set(sound)
    twins = [(case.name, case.mutant) for case in cases]
    assert len(set(twins)) == len(twins)


def test_the_summary_counts(report: bench.BenchReport) -> None:
    mutants = sum(row.mutant is not None for row in report.rows)
    sound = len(report.rows) - mutants
    assert report.summary == f"{mutants} of {mutants} mutants caught, 0 of {sound} sound mechanisms accused"
    assert report.ok


def test_only_changes_no_row(cases: list[BenchCase], report: bench.BenchReport) -> None:
    alone = bench.run_bench(cases, 0, "laplace")
    assert alone.rows == tuple(row for row in report.rows if row.mechanism == "laplace")


def test_another_seed_draws_other_runs(cases: list[BenchCase], report: bench.BenchReport) -> None:
    other = bench.run_bench(cases, 1, "laplace")
    assert other.rows[0].lower_bound != report.rows[0].lower_bound
    assert other.ok


def test_the_one_sided_mixture_is_the_librarys() -> None:
    """The mutant's claim is what ``from_mixture_gaussian_mechanism`` says: 0.806 where the truth is 0.846."""
    wrong = sampling._one_sided_sampling_pair(1.0, 0.3, 3)
    library = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        1.0, wrong.shifts_p.tolist(), wrong.weights_p.tolist(), value_discretization_interval=0.05
    )
    assert mixture.mixture_hockey_stick(wrong, 0.0) == pytest.approx(library.get_delta_for_epsilon(0.0), abs=1e-6)
    assert mixture.mixture_hockey_stick(sampling._one_sided_sampling_pair(1.0, 0.3, 8), 0.0) == pytest.approx(0.806, abs=5e-4)
    assert mixture.mixture_hockey_stick(mixture.mixture_pair(1.0, 0.3, 8, False), 0.0) == pytest.approx(0.846, abs=5e-4)


def test_the_command_ends_with_the_summary(cases: list[BenchCase], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--only", "edge-aggregate"], cases) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "1 of 1 mutants caught, 0 of 1 sound mechanisms accused"
    assert "√2 forgotten" in out


def test_the_command_fails_where_a_mutant_poses_as_sound(cases: list[BenchCase], capsys: pytest.CaptureFixture[str]) -> None:
    mutant = next(case for case in cases if case.mutant == "noise × ⅔")
    assert main(["mechanisms"], [dataclasses.replace(mutant, mutant=None)]) == 1
    out = capsys.readouterr().out
    assert "ACCUSED" in out
    assert out.splitlines()[-1] == "0 of 0 mutants caught, 1 of 1 sound mechanisms accused"


def test_the_command_fails_where_a_mutant_is_missed(cases: list[BenchCase], capsys: pytest.CaptureFixture[str]) -> None:
    sound = next(case for case in cases if case.name == "gaussian-sum")
    assert main(["mechanisms"], [dataclasses.replace(sound, mutant="nothing broken")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 1 mutants caught, 0 of 0 sound mechanisms accused"


def test_json_holds_every_row(cases: list[BenchCase], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mechanisms", "--only", "composition", "--seed", "3", "--json"], cases) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["seed"] == 3
    assert read["ok"] is True
    assert [row["verdict"] for row in read["rows"]] == ["not accused", "caught", "caught"]


def test_an_infinite_bound_is_written_as_text(report: bench.BenchReport) -> None:
    row = dataclasses.replace(report.rows[0], lower_bound=float("inf"))
    assert json.loads(json.dumps(row.to_dict(), allow_nan=False))["lower_bound"] == "inf"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "gaussian"], "--only gaussian: no mechanism of that name; allowed: laplace, "),
        (["--seed", "-1"], "--seed -1: a root seed is an integer ≥ 0"),
    ],
)
def test_wrong_options_give_one_line_and_status_two(
    cases: list[BenchCase], capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["mechanisms", *options], cases) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize("seed", np.random.default_rng(7).integers(0, 2**31, size=10).tolist())
def test_any_seed_will_do(cases: list[BenchCase], seed: int) -> None:
    assert bench.run_bench(cases, seed).ok


@pytest.mark.slow
def test_the_whole_command() -> None:
    done = subprocess.run([sys.executable, "-m", "fedgraph.audit", "mechanisms"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1].endswith("sound mechanisms accused")
