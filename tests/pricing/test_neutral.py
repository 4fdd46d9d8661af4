"""The neutral description against closed forms and dp_accounting, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path

import dp_accounting
import numpy as np
import pytest
import yaml
from dp_accounting import pld
from scipy.stats import binom, norm

import fedgraph
from fedgraph.errors import PricingError
from fedgraph.pricing.readings import SEVERAL, Sums, rows_of_sums
from fedgraph.privacy import Repeated, price
from fedgraph.privacy.accounting import gaussian
from fedgraph.privacy.accounting.amplification import amplified_epsilon

BASE = {"mechanism": "gaussian", "unit": "client", "clip": 1.0, "noise_std": 2.0, "sampling": {"kind": "none"}, "rounds": 50,
        "clients": 1000, "delta": 1e-5, "relation": "zero-out"}  # fmt: skip


def write(tmp_path: Path, **changes: object) -> Path:
    described = {k: v for k, v in {**BASE, **changes}.items() if v is not None}
    path = tmp_path / "described.yaml"
    path.write_text(yaml.safe_dump(described), encoding="utf-8")
    return path


def total(tmp_path: Path, **changes: object) -> float:
    priced = fedgraph.price(write(tmp_path, **changes)).headline.total
    assert priced is not None
    return float(priced.epsilon)


def library(sigma: float, rate: float, rounds: int, delta: float, replaced: bool = False) -> float:
    relation = (
        dp_accounting.NeighboringRelation.REPLACE_ONE if replaced else dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    one = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, neighboring_relation=relation, value_discretization_interval=1e-3
    )
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta))


def test_gaussian_is_exact_and_replace_is_twice_the_clip(tmp_path: Path) -> None:
    assert total(tmp_path) == pytest.approx(gaussian.epsilon(math.sqrt(50) / 2, 1e-5), rel=1e-9)
    assert total(tmp_path, relation="replace") == pytest.approx(gaussian.epsilon(2 * math.sqrt(50) / 2, 1e-5), rel=1e-9)
    assert total(tmp_path, clip=2.0, noise_std=4.0) == pytest.approx(total(tmp_path), rel=1e-12)
    assert total(tmp_path, noise_std=None, noise_multiplier=2.0) == pytest.approx(total(tmp_path), rel=1e-12)


@pytest.mark.parametrize("replaced", [False, True])
def test_poisson_agrees_with_the_library(tmp_path: Path, replaced: bool) -> None:
    relation = "replace" if replaced else "zero-out"
    found = total(tmp_path, sampling={"kind": "poisson", "rate": 0.05}, noise_std=1.0, relation=relation)
    assert found == pytest.approx(library(1.0, 0.05, 50, 1e-5, replaced), rel=3e-3)


def test_fixed_size_lies_between_the_coins_and_no_amplification(tmp_path: Path) -> None:
    fixed = {"kind": "fixed", "rate": 0.05}
    replaced = total(tmp_path, sampling=fixed, relation="replace")
    assert library(1.0, 0.05, 50, 1e-5) <= replaced < total(tmp_path, relation="replace")
    one_round = total(tmp_path, sampling=fixed, relation="replace", rounds=1)
    for epsilon in (one_round * 0.97, one_round):  # Balle, Barthe & Gaboardi 2018: delta' = q delta at ln(1 + q(e^eps - 1))
        inner = math.log1p(math.expm1(epsilon) / 0.05)
        delta = 0.05 * math.exp(gaussian.log_delta(inner, 1.0))
        assert (delta <= 1.001e-5) == (epsilon == one_round)
    assert total(tmp_path, sampling=fixed) <= min(replaced, total(tmp_path))
    few, more = (total(tmp_path, sampling={**fixed, "rate": r}, clients=50, relation="replace") for r in (0.03, 0.04))
    assert few == pytest.approx(more), "a fixed sample is a whole number of clients"


def test_laplace_and_answers_add_up(tmp_path: Path) -> None:
    laplace = {"mechanism": "laplace", "noise_std": None, "noise_multiplier": 4.0, "delta": 0}
    assert total(tmp_path, **laplace) == pytest.approx(50 / 4)
    assert total(tmp_path, **laplace, relation="replace") == pytest.approx(50 / 2)
    assert total(tmp_path, mechanism="laplace", noise_std=4 * math.sqrt(2), delta=0) == pytest.approx(50 / 4)
    sampled = total(tmp_path, **laplace, sampling={"kind": "poisson", "rate": 0.1})
    assert sampled == pytest.approx(50 * amplified_epsilon(0.25, 0.1))
    answers = {"mechanism": "randomised-response", "noise_std": None, "clip": None, "delta": 0, "rounds": 3}
    assert fedgraph.price(write(tmp_path, **answers, flip_probability=0.25)).headline.row.relation == "replace"
    assert total(tmp_path, **answers, flip_probability=0.25) == pytest.approx(3 * math.log(3))
    assert total(tmp_path, **answers, num_values=4, truth_probability=0.5) == pytest.approx(3 * math.log(3))
    assert total(tmp_path, **answers, flip_probability=0) == math.inf


def test_what_is_missing_is_asked(tmp_path: Path) -> None:
    quote = fedgraph.price(write(tmp_path, rounds=None, sampling=None)).to_dict()
    assert list(quote) == ["total", "per_round", "published", "unprotected", "questions"]
    assert list(quote["total"]) == ["epsilon", "delta", "unit", "relation", "theorem"]
    assert quote["total"]["epsilon"] is None
    assert quote["per_round"]["epsilon"] > 0
    asked = {q["missing"]: q["table"] for q in quote["questions"]}
    assert set(asked) == {"rounds", "sampling rate"}
    assert asked["sampling rate"][0]["epsilon"] > asked["sampling rate"][-1]["epsilon"]
    assert total(tmp_path, sampling=None) == pytest.approx(total(tmp_path)), "the worst rate bounds every other"
    assert fedgraph.price(write(tmp_path, noise_std=0)).to_dict()["total"]["epsilon"] == "inf"


def test_a_fix_buys_what_it_says(tmp_path: Path) -> None:
    fix = fedgraph.price(write(tmp_path), fix=1.0).fix
    assert fix is not None
    assert fix.settings is not None
    assert 0.999 < total(tmp_path, **fix.settings) <= 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"clipp": 1}, "unknown option 'clipp'; did you mean 'clip'?"), ({"noise_multiplier": 3.0}, "contradict"),
     ({"sampling": {"kind": "poisson", "rate": 2}}, "lies in [0, 1]"), ({"delta": 1}, "a δ lies in"),
     ({"mechanism": "gauss"}, "did you mean 'gaussian'"), ({"noise_std": -1}, "≥ 0"), ({"rounds": 1.5}, "whole number"),
     ({"sampling": {"kind": "none", "rate": 0.1}}, "with kind: none"), ({"noise_std": None}, "missing option 'noise_std'"),
     ({"clip": None}, "needs 'clip'"), ({"noise_std": "much"}, "a number is allowed"), ({"clip": True}, "a number is allowed")],
)  # fmt: skip
def test_bad_values_are_one_line(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    with pytest.raises(PricingError) as raised:
        fedgraph.price(write(tmp_path, **changes))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "described.yaml:" in str(raised.value)


@pytest.mark.parametrize(("batch", "others"), [(1, 2), (1, 9), (3, 7)])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_laplace_noise_on_fixed_batches_covers_the_worst_answer(batch: int, others: int, scale: float) -> None:
    """Whoever is drawn takes the place of another one, whose contribution is −1: the ratio of both densities, far out."""
    rate = batch / (others + 1)
    y = np.linspace(-batch - 30 * scale, batch + 30 * scale, 20_001)

    def density(centre: float) -> np.ndarray:
        return np.asarray(np.exp(-np.abs(y - centre) / scale))

    rest = (1 - rate) * density(-batch)
    there, gone = (rate * density(own - (batch - 1)) + rest for own in (1.0, 0.0))
    worst = float(np.abs(np.log(there / gone)).max())
    assert price(Sums(scale, 1, "fixed", rate, laplace=True).event(replaced=False), 0.0).epsilon >= worst * (1 - 1e-9)


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "none"])
def test_whoever_has_more_records_pays_more(sampling: str) -> None:
    rows = rows_of_sums([[Sums(4.0, 20, sampling, 0.1)]], "example", "anybody", 1e-5)
    paid = [price(Repeated(row.event, row.rounds), row.delta).epsilon for row in rows if row.relation == "zero-out"]
    assert len(paid) == 1 + len(SEVERAL)
    assert paid == sorted(set(paid))


def test_parts_on_the_same_data_compose(tmp_path: Path) -> None:
    """One release and Poisson-sampled steps: by dp_accounting; a part in pure ε adds its own."""
    steps = {"mechanism": "gaussian", "noise_multiplier": 1.0, "sampling": {"kind": "poisson", "rate": 0.05}, "rounds": 50}
    once = {"mechanism": "gaussian", "noise_std": 6.0, "clip": 2.0}
    path = tmp_path / "parts.yaml"

    def priced(*parts: dict[str, object]) -> float:
        path.write_text(yaml.safe_dump({"unit": "node", "delta": 1e-5, "parts": list(parts)}), encoding="utf-8")
        found = fedgraph.price(path).headline.total
        assert found is not None
        return float(found.epsilon)

    sampled = pld.privacy_loss_distribution.from_gaussian_mechanism(1.0, sampling_prob=0.05, value_discretization_interval=1e-3)
    whole = pld.privacy_loss_distribution.from_gaussian_mechanism(3.0, value_discretization_interval=1e-3)
    truth = sampled.self_compose(50).compose(whole).get_epsilon_for_delta(1e-5)
    assert priced(steps, once) == pytest.approx(truth, rel=3e-3)
    answers = {"mechanism": "randomised-response", "epsilon": 1.0, "rounds": 2}
    assert truth < priced(steps, once, answers) <= truth + 2.05
    with pytest.raises(PricingError, match="unknown option 'noise'"):
        priced({**once, "noise": 1})


@pytest.mark.parametrize("records", [2, 5])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_coins_of_all_records_of_a_person_are_counted(records: int, rate: float) -> None:
    """One round by quadrature, each record in the sum by a coin of its own: one vanishes, and the others are turned round."""
    sigma, delta = 2.0, 1e-5
    epsilon = price(Sums(sigma, 1, "poisson", rate).event(False, records), delta).epsilon
    y = np.linspace(-40, 40, 400_001)
    there = sum(
        binom.pmf(j, records - 1, rate) * (rate * norm.pdf(y, j + 1, sigma) + (1 - rate) * norm.pdf(y, j, sigma))
        for j in range(records)
    )
    gone = sum(binom.pmf(j, records - 1, rate) * norm.pdf(y, -j, sigma) for j in range(records))
    missed = float(np.trapezoid(np.maximum(there - math.exp(epsilon) * gone, 0), y))
    assert 0.4 * delta < missed <= delta * (1 + 1e-6)
