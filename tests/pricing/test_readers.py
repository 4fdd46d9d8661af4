"""Every reader: recognised by one file, priced, and a changed noise, clip, count or δ moves the price the right way."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from dp_accounting import pld

from fedgraph import pricing
from fedgraph.errors import PricingError
from fedgraph.pricing import catalogue
from fedgraph.pricing.quotes import Quote
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerRelease
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

FILES = Path(__file__).parent / "files"

# (reader, file, text found in it, its replacement, +1 where the price must rise and −1 where it must fall)
MOVES = [
    ("flower", "flower_local/pyproject.toml", "clip = 1.0", "clip = 2.0", 1),
    ("flower", "flower_local/pyproject.toml", "sensitivity = 1.0e-4", "sensitivity = 1.0", -1),
    ("flower", "flower_local/pyproject.toml", "num-server-rounds = 20", "num-server-rounds = 40", 1),
    ("flower", "flower_central/pyproject.toml", "noise-multiplier = 1.2", "noise-multiplier = 2.4", -1),
    ("flower", "flower_central/pyproject.toml", "num-supernodes = 200", "num-supernodes = 100", 0),
    ("nvflare", "nvflare_svt.json", '"args": {}', '"args": {"noise_var": 0.2}', 1),
    ("nvflare", "nvflare_svt.json", '"args": {}', '"args": {"fraction": 0.01}', -1),
    ("federatedscope", "federatedscope_sgdmf.yaml", "epsilon: 4.0", "epsilon: 2.0", -1),
    ("federatedscope", "federatedscope_sgdmf.yaml", "delta: 0.5", "delta: 0.9", 1),
    ("openfgl", "openfgl.sh", "--dp_eps 10", "--dp_eps 5", -1),
    ("openfgl", "openfgl.sh", "--dp_eps 10", "--dp_eps 20", 1),
    ("openfgl", "openfgl.sh", "--dp_delta 1e-5", "--dp_delta 1e-6", 0),
    ("opacus", "opacus_train.py", "default=1.1", "default=2.2", -1),
    ("opacus", "opacus_train.py", "delta=1e-5", "delta=1e-7", 1),
    ("opacus", "opacus_train.py", "noise_multiplier=args.sigma,", "noise_multiplier=args.sigma, poisson_sampling=False,", 1),
    ("opacus", "opacus_epsilon.py", "target_epsilon=1.0", "target_epsilon=2.0", 1),
    ("tf_privacy", "tf_privacy.sh", "--noise_multiplier=1.1", "--noise_multiplier=2.2", -1),
    ("tf_privacy", "tf_privacy.sh", "--epochs=60", "--epochs=120", 1),
    ("tf_privacy", "tf_privacy.sh", "--used_microbatching=False", "--used_microbatching=True", 1),
    ("jax_privacy", "jax_privacy_plan.py", "noise_multiplier=1.0", "noise_multiplier=2.0", -1),
    ("jax_privacy", "jax_privacy_plan.py", "expected_participations=10", "expected_participations=20", 1),
    ("tff", "tff_aggregator.py", "noise_multiplier=1.5", "noise_multiplier=3.0", -1),
    ("pfl", "pfl_benchmark.py", "epsilon=2.0", "epsilon=4.0", 1),
    ("pfl", "pfl_benchmark.py", "delta=1e-6", "delta=1e-6, noise_parameter=2.0", -1),
    ("pfl", "pfl_banded.py", "noise_parameter=3.0", "noise_parameter=6.0", -1),
    ("pfl", "pfl_banded.py", "num_iterations=60", "num_iterations=72", 1),
    ("pfl", "pfl_banded.py", "min_separation=12", "min_separation=6", 1),
    ("pfl", "pfl_banded.py", "delta=1e-6", "delta=1e-8", 1),
    ("gap", "gap_edp.sh", "--epsilon 8", "--epsilon 4", -1),
    ("gap", "gap_ndp.sh", "--epsilon 8", "--epsilon 4", -1),
    ("progap", "progap.sh", "--epsilon 1", "--epsilon 2", 1),
    ("dpdgc", "dpdgc.sh", "--epsilon 1", "--epsilon 2", 1),
    ("dpar", "dpar.yaml", "epsilon: 8", "epsilon: 4", -1),
    ("gcon", "gcon.yaml", "epsilon: 1", "epsilon: 2", 1),
    ("pnpignns", "pnpignns.sh", "--priv_epsilon 8", "--priv_epsilon 4", 0),
    ("daigavane", "daigavane.py", "training_noise_multiplier = 2.0", "training_noise_multiplier = 4.0", -1),
    ("daigavane", "daigavane.py", "num_training_steps = 3000", "num_training_steps = 6000", 1),
    ("lpgnn", "lpgnn.txt", "x_eps=3.0", "x_eps=2.0", -1),
    ("lpgnn", "lpgnn.txt", "repeats=1", "repeats=3", 1),
    ("blink", "blink.sh", "--eps 4", "--eps 2", -1),
    ("fedgraph_cmu", "fedgraph_cmu.yaml", "dp_epsilon: 2.0", "dp_epsilon: 1.0", -1),
    ("fedgraph_cmu", "fedgraph_cmu.yaml", "dp_clip_norm: 1.0", "dp_clip_norm: 2.0", 1),
    ("neutral", "neutral.yaml", "noise_multiplier: 1.0", "noise_multiplier: 2.0", -1),
]
MODEL_PATH_IS_CLEAR = {"fedgraph_cmu"}  # its total is ∞ whatever the noise: the second row moves


def last(quote: Quote, row: int) -> float:
    """The row's total, or the headline's where the first question is answered by its last value."""
    total = quote.rows[row].total
    if total is not None and (math.isfinite(total.epsilon) or not quote.asked):
        return total.epsilon
    return quote.asked[0].answers[-1][1]


SLOW = {"dpar", "gap_ndp.sh", "pfl_benchmark.py"}  # several seconds each: the authors' own calibration is repeated


@pytest.mark.parametrize(
    ("reader", "file", "old", "new", "direction"),
    [pytest.param(*m, marks=[pytest.mark.slow] if SLOW & set(m[:2]) else []) for m in MOVES],
    ids=lambda v: str(v)[:24],
)
def test_the_price_moves(tmp_path: Path, reader: str, file: str, old: str, new: str, direction: int) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FILES, folder)
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1, "the change must be of something that is there"
    before = pricing.price(path)
    assert before.system == catalogue.catalogue_entries()[reader]
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    row = 1 if reader in MODEL_PATH_IS_CLEAR else 0
    one, two = last(before, row), last(pricing.price(path), row)
    assert (two > one) - (two < one) == direction if direction else two == one or abs(two / one - 1) < 0.5


def test_every_reader_has_a_file_and_states_its_source() -> None:
    covered = {reader for reader, *_ in MOVES} | {"ledger", "scenario", "exported"}  # tests/export
    assert covered == set(pricing.systems())
    assert sorted(catalogue.catalogue_entries()) == pricing.systems()
    for entry in catalogue.catalogue_entries().values():
        assert all((entry.name, entry.version, entry.source))
        assert not {
            name for words in entry.calls.values() for name in words.split() if not (name == "*" or name.isidentifier())
        }


@pytest.mark.parametrize(
    ("file", "row", "epsilon"),
    [
        ("flower_local/pyproject.toml", 0, None),
        ("nvflare_percentile.json", 0, math.inf),
        ("federatedscope_nbafl.yaml", 0, math.inf),
        ("fedgraph_cmu.yaml", 0, math.inf),
        ("gap_edp.sh", 0, 12.0),
        ("progap.sh", 0, 1.45),
        ("blink.sh", 0, 8.0),
        ("lpgnn.txt", 0, 4.0),
    ],
)
def test_what_the_defaults_are_worth(file: str, row: int, epsilon: float | None) -> None:
    quote = pricing.price(FILES / file)
    if epsilon is None:  # clip 1, sensitivity 1e-4, ε = 10, δ = 1e-5: one client at μ ≈ 20,640
        assert quote.rows[0].per_round.epsilon == pytest.approx(2.13e8, rel=1e-2)
        assert quote.rows[1].per_round.epsilon == pytest.approx(8.52e8, rel=1e-2)
    else:
        total = quote.rows[row].total
        assert total is not None
        assert total.epsilon == pytest.approx(epsilon, rel=2e-3)


def test_svt_of_seven_million_parameters() -> None:
    answers = {u.unknown.name: dict(u.answers) for u in pricing.price(FILES / "nvflare_svt.json").asked}
    assert answers["parameters"][7e6] / 1000 == pytest.approx(70_001, rel=1e-3)


@pytest.mark.slow
def test_dpar_as_coded_from_below_and_above() -> None:
    quote = pricing.price(FILES / "dpar.yaml")
    assert quote.rows[1].per_round.epsilon == pytest.approx(65.2, rel=2e-3)
    assert quote.rows[1].row.kind == "lower bound"
    assert dict(quote.asked[0].answers)[4.0] == pytest.approx(3274, rel=2e-3)


@pytest.mark.parametrize(
    "file", [f for f in dict.fromkeys(m[1] for m in MOVES) if "dpar" not in f and "pfl_benchmark" not in f]
)
def test_a_fix_is_at_or_below_its_target_or_says_why_not(file: str) -> None:
    fix = pricing.price(FILES / file, fix=2.0).fix
    assert fix is not None
    assert fix.settings is not None or fix.why
    assert fix.epsilon is None or fix.epsilon <= 2.0


@pytest.mark.parametrize("target", [0.5, 8.0])
def test_flower_settings_written_back_buy_the_epsilon(tmp_path: Path, target: float) -> None:
    shutil.copytree(FILES / "flower_local", tmp_path / "app")
    path = tmp_path / "app" / "pyproject.toml"
    fix = pricing.price(path, fix=target).fix
    assert fix is not None
    assert fix.settings is not None
    text = path.read_text(encoding="utf-8").replace("epsilon = 10.0", f"epsilon = {fix.settings['epsilon']!r}")
    path.write_text(text, encoding="utf-8")
    total = pricing.price(path).headline.total
    assert total is not None
    assert 0.999 * target < total.epsilon <= target


def test_words_of_other_repositories_of_the_same_authors(tmp_path: Path) -> None:
    path = tmp_path / "gap.sh"
    path.write_text("python train.py gap edge --epsilon 8 --delta 1e-7 --hops 2\n", encoding="utf-8")
    total = pricing.price(path).headline.total
    assert total is not None
    assert total.epsilon == pytest.approx(12.0, rel=2e-3)


def test_known_sizes_answer_the_question(tmp_path: Path) -> None:
    path = tmp_path / "fs.yaml"
    text = (FILES / "federatedscope_sgdmf.yaml").read_text(encoding="utf-8")
    path.write_text(text + "dataloader: {batch_size: 100}\nmodel: {num_user: 1000}\n", encoding="utf-8")
    quote = pricing.price(path)
    assert not quote.asked
    asked = dict(pricing.price(FILES / "federatedscope_sgdmf.yaml").asked[0].answers)
    assert quote.headline.per_round.epsilon == pytest.approx(asked[0.1])


def test_several_records_agree_with_the_library(tmp_path: Path) -> None:
    """A user with two records, both of which vanish: dp_accounting's one-sided mixture."""
    path = tmp_path / "n.yaml"
    path.write_text(
        "mechanism: gaussian\nunit: example\nnoise_multiplier: 1.5\nsampling: {kind: poisson, rate: 0.1}\n"
        "rounds: 20\ndelta: 1e-5\n",
        encoding="utf-8",
    )
    mixture = pld.privacy_loss_distribution.from_mixture_gaussian_mechanism(
        1.5, [0.0, 1.0, 2.0], [0.81, 0.18, 0.01], value_discretization_interval=1e-3
    )
    two = pricing.price(path).rows[1]
    assert two.row.unit == "user"
    assert two.total is not None
    assert two.total.epsilon == pytest.approx(mixture.self_compose(20).get_epsilon_for_delta(1e-5), rel=5e-3)


def test_a_script_is_read_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    script = tmp_path / "train.py"
    body = (FILES / "opacus_train.py").read_text(encoding="utf-8")
    script.write_text(f"open({str(marker)!r}, 'w').write('x')\n" + body, encoding="utf-8")
    assert pricing.price(script).system.name == "Opacus"
    assert not marker.exists()


def test_a_flower_app_may_not_point_outside_its_folder(tmp_path: Path) -> None:
    shutil.copytree(FILES / "flower_local", tmp_path / "app")
    path = tmp_path / "app" / "pyproject.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("imaging.client_app:app", "../../etc/passwd:app"), encoding="utf-8"
    )
    with pytest.raises(PricingError, match=r"is not package\.module"):
        pricing.price(path)


def test_a_ledger_with_a_broken_promise_is_worth_nothing(tmp_path: Path) -> None:
    """As ``explain`` says: what the data do to a promise makes every ε of the account infinite."""
    protection = Protection(Relation.NODE_ZERO_OUT, Viewer.CURATOR_TRUSTED, (Assumption.PROMISED_DEGREE,), promised_degree=3)
    for broken, finite in ((None, True), ("a node has 7 neighbours", False)):
        release = LedgerRelease("cell", "model", 0, 0, "noise", Gaussian(1.0))
        Ledger([LedgerAccount("cell", protection, 1e-5, broken=broken)], [release]).write(tmp_path / "ledger.jsonl")
        total = pricing.price(tmp_path / "ledger.jsonl").headline.total
        assert total is not None
        assert math.isfinite(total.epsilon) is finite
