"""Several filters at once, adaptive clipping, truncated batches, and answers whose ε is only claimed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import dp_accounting
import pytest
from dp_accounting.pld import pld_privacy_accountant

from fedgraph import pricing
from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.quotes import Quote

SVT, PERCENTILE = {"path": "a.SVTPrivacy", "args": {}}, {"path": "a.PercentilePrivacy", "args": {}}


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def flare(
    tmp_path: Path, *chains: list[object], kind: str = "task_result_filters", tasks: tuple[str, ...] = ("train",)
) -> Quote:
    groups = [{"tasks": [task], "filters": chain} for task, chain in zip(tasks, chains, strict=True)]
    return pricing.price(write(tmp_path, "config_fed_client.json", json.dumps({kind: groups, "num_rounds": 5})))


def answer(quote: Quote) -> float:
    return dict(next(a for a in quote.asked if a.unknown.name == "parameters").answers)[1e5]


def test_what_stands_around_svt_changes_no_price(tmp_path: Path) -> None:
    alone = answer(flare(tmp_path, [SVT]))
    assert answer(flare(tmp_path, [PERCENTILE, SVT])) == alone
    assert answer(flare(tmp_path, [SVT, PERCENTILE, {"name": "ExcludeVars"}])) == alone
    louder = {"path": "a.SVTPrivacy", "args": {"noise_var": 0.01, "epsilon": 0.01}}
    assert answer(flare(tmp_path, [SVT, louder])) == answer(flare(tmp_path, [louder])) < alone


def test_filters_of_two_tasks_add_up_and_percentile_alone_is_open(tmp_path: Path) -> None:
    both = answer(flare(tmp_path, [SVT], [SVT], tasks=("train", "submit_model")))
    assert both == pytest.approx(2 * answer(flare(tmp_path, [SVT])))
    half = flare(tmp_path, [SVT], [PERCENTILE], tasks=("train", "submit_model")).headline.total
    assert half is not None
    assert math.isinf(half.epsilon)


def test_filters_on_what_arrives_protect_nothing(tmp_path: Path) -> None:
    quote = flare(tmp_path, [SVT], kind="task_data_filters")
    assert quote.headline.total is not None
    assert math.isinf(quote.headline.total.epsilon)
    assert "arrives" in quote.reading.not_priced[0]


def test_scopes_and_job_files(tmp_path: Path) -> None:
    scopes = {"scopes": [{"name": "private", "task_result_filters": [SVT]}, {"name": "open", "task_result_filters": []}]}
    site = write(tmp_path, "privacy.json", json.dumps(scopes))
    assert pricing.price(site).system.name == "NVIDIA FLARE"
    assert total_of(pricing.price(site)) == math.inf
    assert answer(pricing.price(site, given={"job in scope private": 1, "rounds": 5})) == answer(flare(tmp_path, [SVT]))
    named = write(tmp_path, "named.json", json.dumps({**scopes, "default_scope": "open"}))
    assert total_of(pricing.price(named)) == math.inf
    two = {"scopes": [{"name": n, "task_result_filters": [SVT]} for n in ("a", "b")]}
    with pytest.raises(PricingError, match="a job runs in one scope"):
        pricing.price(write(tmp_path, "privacy.json", json.dumps(two)))
    job = (
        "from nvflare.app_common.filters import SVTPrivacy\nfrom nvflare import FilterType\njob = Job(num_rounds=5)\n"
        "job.to(SVTPrivacy(0.1, 0.1), 's', filter_type=FilterType.TASK_RESULT, tasks=['train'])\n"
    )
    assert answer(pricing.price(write(tmp_path, "job.py", job))) == answer(flare(tmp_path, [SVT]))
    with pytest.raises(PricingError, match="write it out"):
        pricing.price(write(tmp_path, "job.py", job.replace("0.1, 0.1", "epsilon=choose()")))


def test_a_split_that_nvflare_refuses(tmp_path: Path) -> None:
    wrong = {"path": "a.SVTPrivacy", "args": {"epsilon": 1.0, "epsilon_threshold": 0.2, "epsilon_query": 0.2}}
    with pytest.raises(PricingError, match="refused there"):
        flare(tmp_path, [wrong])


def total_of(quote: Quote) -> float:
    assert quote.headline.total is not None
    return quote.headline.total.epsilon


def opacus(tmp_path: Path, more: str, given: dict[str, float] | None = None) -> Quote:
    text = f"import opacus\nm = e.make_private(noise_multiplier=1.0, max_grad_norm=1.0{more})\ne.get_epsilon(delta=1e-5)\n"
    return pricing.price(write(tmp_path, "train.py", text), given=given)


def test_adaptive_clipping_of_opacus_costs_its_count_too(tmp_path: Path) -> None:
    facts = {"sampling rate": 0.01, "steps": 500.0}
    adaptive = opacus(tmp_path, ", clipping='adaptive', unclipped_num_std=2.0", facts)
    plain, counted = total_of(opacus(tmp_path, "", facts)), total_of(adaptive)
    update, count = (1 - 1 / 16) ** -0.5, 2.0  # z' of the gradients, σ_b of the count
    together = 1 / math.hypot(1 / update, 1 / count)
    assert counted == pytest.approx(costs.cost_of_poisson(together, 0.01)(500, 1e-5).epsilon, rel=1e-6)
    assert counted > plain > costs.cost_of_poisson(update, 0.01)(500, 1e-5).epsilon, "the last is what Opacus accounts for"
    assert any("size of each batch" in said for said in adaptive.reading.unprotected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", clipping='adaptive', unclipped_num_std=0.4", "Opacus refuses it"),
        (", clipping='adaptive'", "needs unclipped_num_std"),
        (", clipping='ghostly'", "is not priced; allowed"),
    ],
)
def test_what_opacus_would_refuse(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(PricingError, match=message):
        opacus(tmp_path, more)


@pytest.mark.slow
def test_truncated_batches_cost_at_least_what_the_library_says(tmp_path: Path) -> None:
    plan = (
        "import jax_privacy\nplan = BandMFConfig(iterations=20, expected_participations=1, num_bands=1, "
        "noise_multiplier=1.0{})\n"
    )
    given = {"delta": 1e-5}
    cut = pricing.price(write(tmp_path, "plan.py", plan.format(", truncated_batch_size=60")), given=given).headline.total
    whole = pricing.price(write(tmp_path, "plan.py", plan.format("")), given=given).headline.total
    assert cut is not None
    assert whole is not None
    event = dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.05, 60, 1.0)
    accountant = pld_privacy_accountant.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(event, 20)
    assert cut.epsilon >= 0.999 * accountant.get_epsilon(1e-5)
    assert whole.epsilon <= cut.epsilon < 6 * whole.epsilon


def test_an_argument_of_a_function_called_once_is_known(tmp_path: Path) -> None:
    """The way of TFF's tutorial: the aggregator is made in a function that gets its numbers."""
    text = (
        "import tensorflow_federated as tff\ndef train(rounds, noise_multiplier, clients_per_round):\n"
        "    a = tff.learning.dp_aggregator(noise_multiplier, clients_per_round)\n    b = build(num_rounds=rounds)\n{}"
    )
    once = pricing.price(
        write(tmp_path, "t.py", text.format("train(rounds=100, noise_multiplier=0.5, clients_per_round=50)\n"))
    )
    assert once.headline.row.rounds == 100
    for calls in ("train(1, 0.5, 50)\ntrain(1, 0.7, 50)\n", "for n in [1, 2]:\n    train(1, n, 50)\n"):
        with pytest.raises(PricingError, match="2 DP aggregators"):
            pricing.price(write(tmp_path, "t.py", text.format(calls)))


def test_the_statement_of_tensorflow_privacy_by_all_its_names(tmp_path: Path) -> None:
    one = "compute_dp_sgd_privacy --N=60000 --batch_size=256 --noise_multiplier=1.3 --epochs=60 --delta=1e-5\n"
    two = one.replace("--N", "--number_of_examples").replace("--epochs", "--num_epochs")
    first = pricing.price(write(tmp_path, "a.sh", one)).headline.total
    script = f"python {two}".replace("privacy ", "privacy_statement.py ")
    assert first == pricing.price(write(tmp_path, "b.sh", script)).headline.total


def described(tmp_path: Path, text: str) -> Quote:
    return pricing.price(write(tmp_path, "n.yaml", "mechanism: randomised-response\nunit: user\nrounds: 3\n" + text))


def test_a_claimed_epsilon_stands_beside_what_the_flips_prove(tmp_path: Path) -> None:
    both = described(tmp_path, "epsilon: 1.0\nflip_probability: 0.1\n")
    assert both.reading.published[0].epsilon == 1.0
    assert both.headline.per_round.epsilon == pytest.approx(math.log(9))
    believed = described(tmp_path, "epsilon: 1.0\n")
    assert believed.headline.total is not None
    assert believed.headline.total.epsilon == pytest.approx(3.0)
    assert "not by how answers are drawn" in believed.headline.row.why
    with pytest.raises(PricingError, match="or the epsilon of one answer"):
        described(tmp_path, "")
    with pytest.raises(PricingError, match="did you mean 'flip_probability'"):
        described(tmp_path, "flip_prob: 0.1\nepsilon: 1\n")
