"""Data files that a program reads, notebooks that write files, estimators, and readers of other frameworks' newer parts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError
from fedgraph.pricing.quotes import Quote
from tests.pricing.corpus import truths


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    """The first of the files."""
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / next(iter(files))


def total(quote: Quote) -> float:
    assert quote.headline.total is not None, [a.unknown.name for a in quote.asked]
    return quote.headline.total.epsilon


OPACUS = "import opacus, {}\n{}\nm = e.make_private(noise_multiplier={}, max_grad_norm=1.0)\ne.get_epsilon(delta=1e-5)\n"
GIVEN = {"sampling rate": 0.01, "steps": 200.0}
LOADS = [
    ("yaml", "c = yaml.safe_load(open('c.yaml'))", "c['dp']['sigma']", "c.yaml"),
    ("yaml", "with open('c.yaml') as f:\n    c = yaml.load(f, Loader=yaml.SafeLoader)", "c['dp'].get('sigma', 9.0)", "c.yaml"),
    ("yaml, pathlib", "c = yaml.safe_load(pathlib.Path('c.yaml').read_text())", "c['dp']['sigma']", "c.yaml"),
    ("json", "c = json.loads(open('c.json').read())", "c['dp']['sigma']", "c.json"),
    ("omegaconf", "c = omegaconf.OmegaConf.load('c.yaml')", "c.dp.sigma", "c.yaml"),
]


@pytest.mark.parametrize(("module", "loads", "value", "name"), LOADS)
def test_a_data_file_of_a_program_is_followed(tmp_path: Path, module: str, loads: str, value: str, name: str) -> None:
    prices = []
    for sigma in (1.0, 2.0):
        held = json.dumps({"dp": {"sigma": sigma}})  # JSON is YAML
        prices.append(
            total(pricing.price(written(tmp_path, {"t.py": OPACUS.format(module, loads, value), name: held}), given=GIVEN))
        )
    assert prices == pytest.approx([truths.poisson(s, 0.01, 200, 1e-5) for s in (1.0, 2.0)], rel=6e-3)


@pytest.mark.parametrize("name", ["/etc/hostname.yaml", "../c.yaml", "missing.yaml"])
def test_a_data_file_elsewhere_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "c.yaml").write_text("sigma: 9.0\n", encoding="utf-8")
    (tmp_path / "app").mkdir()
    text = OPACUS.format("yaml", f"c = yaml.safe_load(open({name!r}))", "c['sigma']")
    quote = pricing.price(written(tmp_path / "app", {"t.py": text}), given=GIVEN)
    assert [a.unknown.name for a in quote.asked] == ["noise_multiplier"]


def test_a_notebook_that_writes_its_program(tmp_path: Path) -> None:
    cells = ["%%writefile train.py\n" + OPACUS.format("os", "", "1.0"), "%%bash\nrm -r x", "not ] python", "!python train.py"]
    book = json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]})
    found = pricing.price(written(tmp_path, {"n.ipynb": book}), given=GIVEN)
    assert total(found) == pytest.approx(truths.poisson(1.0, 0.01, 200, 1e-5), rel=6e-3)


ESTIMATOR = """from tensorflow_privacy import DPAdamGaussianOptimizer
from tensorflow import estimator
def model_fn(features, labels, mode):
    if mode == estimator.ModeKeys.{}:
        optimizer = DPAdamGaussianOptimizer(l2_norm_clip=1.0, noise_multiplier=2.0)
model = estimator.Estimator(model_fn=model_fn)
for epoch in range(9):
    model.train()
accountant.get_epsilon(target_delta=1e-5)
EPOCHS = flags.DEFINE_integer('epochs', 9, '')
"""


def test_the_optimizer_of_an_estimator_is_that_of_its_training(tmp_path: Path) -> None:
    found = pricing.price(written(tmp_path, {"t.py": ESTIMATOR.format("TRAIN")}))
    assert total(found) == pytest.approx(truths.gaussian(3 / 2.0, 1e-5), rel=6e-3)
    assert math.isinf(total(pricing.price(written(tmp_path, {"t.py": ESTIMATOR.format("EVAL")}))))


KERAS = """from jax_privacy import keras_api
c = keras_api.DPKerasConfig(2.0, 2e-3, 1.0, 10, 1, 900, 1000{})
m = keras_api.make_private(model, c)
"""


def test_keras_places_and_a_delta_above_one_over_the_people(tmp_path: Path) -> None:
    coins = pricing.price(written(tmp_path, {"t.py": KERAS.format(", True")}))
    assert total(coins) == pytest.approx(2.0)
    turns = pricing.price(written(tmp_path, {"t.py": KERAS.format("")}))
    assert total(turns) > 2.0, "batches that are cut in turn are not amplified"
    assert all("above 1/1,000" in " ".join(q.reading.order) for q in (coins, turns))


NEUTRAL = (
    "mechanism: gaussian\nunit: client\nnoise_multiplier: 2\nrounds: 1\nclients: 100\ndelta: {}\nsampling: {{kind: none}}\n"
)
PFL = "central_privacy_mechanism: gaussian\npopulation: 5000\ncentral_delta: {}\n"


@pytest.mark.parametrize("text", [NEUTRAL, PFL])
def test_a_delta_above_one_over_the_people_is_said_everywhere(tmp_path: Path, text: str) -> None:
    said = [pricing.price(written(tmp_path, {"c.yaml": text.format(delta)})).reading.order for delta in ("0.1", "1e-7")]
    assert [any("it allows giving one of them away" in s for s in order) for order in said] == [True, False]


def test_noise_of_jax_privacy_1_is_found_for_coins(tmp_path: Path) -> None:
    text = (
        "from jax_privacy.accounting import calibrate\nfrom jax_privacy.dp_sgd import gradients\n"
        "z = calibrate.calibrate_noise_multiplier(target_epsilon=1.0, target_delta=1e-5, batch_sizes=100, num_updates=90, "
        "num_samples=1000)\nc = gradients.DpsgdGradientComputer(clipping_norm=1.0, noise_multiplier=z)\n"
    )
    path = written(tmp_path, {"t.py": text})
    assert total(pricing.price(path, given={"poisson sampling": 1})) == pytest.approx(1.0)
    assert total(pricing.price(path)) > 1.5


def test_several_models_with_an_epsilon_each_add_it_at_their_delta(tmp_path: Path) -> None:
    one = "m = e.make_private_with_epsilon(target_epsilon={}, target_delta=1e-6, epochs=3, max_grad_norm=1.0)\n"
    quote = pricing.price(written(tmp_path, {"t.py": "import opacus\n" + one.format(1.0) + one.format(2.0)}))
    assert total(quote) == pytest.approx(3.0)
    assert quote.headline.row.delta == pytest.approx(2e-6)


FLAGS = (
    "central_privacy_mechanism: gaussian_moments_accountant\ncentral_num_iterations: 50\ncohort_size: {}\n"
    "noise_cohort_size: 400\npopulation: 1e4\n"
)


def test_the_configuration_that_a_command_line_of_pfl_names(tmp_path: Path) -> None:
    line = "python -m train --args_config c.yaml --central_epsilon 1.5 --central_delta 1e-6\n"
    files = {"run.sh": line.replace("-m train", "train.py"), "c.yaml": FLAGS.format(400) + "central_epsilon: 9.0\n"}
    assert total(pricing.price(written(tmp_path, files))) == pytest.approx(1.5, rel=6e-3)
    (tmp_path / "c.yaml").unlink()
    with pytest.raises(PricingError, match=r"there is no c\.yaml"):
        pricing.price(tmp_path / "run.sh")


VERTICAL = (
    "federate: {{total_round_num: 1}}\nvertical: {{use: true, algo: xgb, protect_object: feature_order, "
    "protect_method: op_boost, protect_args: [{{{}}}]}}\n"
)


def op_boost(low: int, high: int, epsilon: float) -> float:
    """The largest logarithm of a ratio of two values' probabilities of one answer, by hand."""
    values = np.arange(low, high + 1)
    rows = np.array([np.exp(-abs(values - x) * epsilon / 2) for x in values])
    rows /= rows.sum(axis=1, keepdims=True)
    return float(np.log(rows.max(axis=0) / rows.min(axis=0)).max())


def test_op_boost_costs_what_its_answers_tell(tmp_path: Path) -> None:
    given = {"features": 3.0, "range is public": 1.0}
    path = written(tmp_path, {"f.yaml": VERTICAL.format("algo: global, lower_bound: 1, upper_bound: 8, epsilon: 0.5")})
    assert math.isinf(total(pricing.price(path)))
    assert total(pricing.price(path, given=given)) == pytest.approx(3 * op_boost(1, 8, 0.5), rel=1e-9)
    assert total(pricing.price(path, given=given)) > 3 * 0.5, "more than the option says"
    wide = written(tmp_path, {"f.yaml": VERTICAL.format("algo: adjusting, lower_bound: 1, upper_bound: 8, partition_num: 8")})
    alone = total(pricing.price(wide, given=given)) / 3
    assert alone == pytest.approx(op_boost(0, 7, 2.0), rel=1e-9), "parts of one value: the choice of the part is the answer"


def test_a_delta_of_one_over_the_batches_is_told(tmp_path: Path) -> None:
    """As a tutorial of Opacus has it; the number itself is asked."""
    text = (
        "import opacus, torch\nloader = torch.utils.data.DataLoader(rows, batch_size=32)\nDELTA = 1.0 / len(loader)\n"
        "engine = opacus.PrivacyEngine()\nmodel, optimizer, loader = engine.make_private_with_epsilon(module=net, "
        "optimizer=sgd, data_loader=loader, target_delta=DELTA, target_epsilon=7.5, epochs=3, max_grad_norm=0.1)\n"
    )
    (tmp_path / "tutorial.py").write_text(text, encoding="utf-8")
    quote = pricing.price(tmp_path / "tutorial.py")
    assert [asked.unknown.name for asked in quote.asked] == ["delta"]
    assert any("one over the number of batches" in said for said in quote.reading.unprotected)
