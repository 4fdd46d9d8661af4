"""Against the packages themselves, where installed (``pip install flwr opacus pfl``): their noise, their accountants."""

from __future__ import annotations

import importlib
import importlib.util
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedgraph import pricing
from fedgraph.pricing import pfl_mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")


def package(name: str) -> Any:
    return pytest.importorskip(
        name, reason=f"pip install {name.partition('.')[0]} to compare with the package itself", exc_type=ImportError
    )


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_flower_local_noise_is_what_is_priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply passes the real LocalDpMod: its norm is clipped and its noise has the std that the price is for."""
    app = package("flwr.app")
    identity = package("flwr.supercore.task_identity").TaskIdentity  # what a running Flower sets for its messages
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(identity, name, 1, raising=False)
    mods = package("flwr.clientapp.mod")
    zeros = np.zeros(200_000, dtype=np.float64)
    moved = np.full(200_000, 1.0)
    request = app.Message(content=app.RecordDict({"arrays": app.ArrayRecord([zeros])}), dst_node_id=1, message_type="train")
    reply = app.RecordDict({"arrays": app.ArrayRecord([moved])})
    context = app.Context(run_id=1, node_id=1, node_config={}, state=app.RecordDict(), run_config={})
    mod = mods.LocalDpMod(2.0, 0.5, 4.0, 1e-5)
    noised = mod(request, context, lambda message, ctxt: app.Message(content=reply, reply_to=message))
    [record] = noised.content.array_records.values()
    [values] = record.to_numpy_ndarrays()
    std = 0.5 * math.sqrt(2 * math.log(1.25 / 1e-5)) / 4.0
    assert float(values.std()) == pytest.approx(std, rel=0.01)
    assert float(values.mean()) == pytest.approx(2.0 / math.sqrt(200_000), abs=5 * std / math.sqrt(200_000))
    text = "import flwr\nm = LocalDpMod(2.0, 0.5, 4.0, 1e-5)\nFedAvg().start(num_rounds=1)\na = ClientApp(mods=[m])\n"
    row = pricing.price(written(tmp_path, "client_app.py", text)).headline
    assert f"noise std = {std:.6g}" in row.row.why
    assert row.per_round.epsilon == pytest.approx(_gaussian(2.0 / std), rel=1e-6)


def test_flower_central_noise_is_what_is_priced() -> None:
    """std on the mean is z·clip/m, so that one of m equal clients is at μ = 1/z."""
    package("flwr")
    where = ("flwr.supercore.differential_privacy", "flwr.common.differential_privacy")  # new and old place
    found = [name for name in where if importlib.util.find_spec(name)]
    common = importlib.import_module(found[0])
    assert common.compute_stdv(1.2, 5.0, 20) == pytest.approx(1.2 * 5.0 / 20)
    count_std, update = common.compute_adaptive_noise_params(1.2, 100, None)
    assert count_std == pytest.approx(5.0)
    assert update == pytest.approx((1.2**-2 - (2 * 5.0) ** -2) ** -0.5)


@pytest.mark.parametrize(("accountant", "at_least", "at_most"), [("prv", 0.99, 1.03), ("rdp", 1.0, 1.5), ("gdp", 0.5, 1.0)])
def test_opacus_trains_and_its_accountants_agree(tmp_path: Path, accountant: str, at_least: float, at_most: float) -> None:
    """Two epochs of a tiny model: prv agrees with the price, rdp lies above it, gdp below (it reports too little)."""
    opacus = package("opacus")
    torch = package("torch")
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(200, 4), torch.randint(0, 2, (200,)))
    engine = opacus.PrivacyEngine(accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.nn.Linear(4, 2)
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(data, batch_size=20),
            noise_multiplier=0.8,
            max_grad_norm=1.0,
        )
        for _ in range(2):
            for rows, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(rows), labels).backward()
                optimizer.step()
        theirs = engine.get_epsilon(delta=1e-5)
    text = "import opacus\nmodel = e.make_private(noise_multiplier=0.8, max_grad_norm=1.0)\ne.get_epsilon(delta=1e-5)\n"
    total = pricing.price(written(tmp_path, "train.py", text), given={"sampling rate": 0.1, "steps": 20}).headline.total
    assert total is not None
    ours = total.epsilon
    assert at_least * ours <= theirs <= at_most * ours


def test_pfl_finds_the_price_that_we_find(tmp_path: Path) -> None:
    accountants = package("pfl.privacy.privacy_accountant")
    theirs = accountants.PLDPrivacyAccountant(
        num_compositions=100, sampling_probability=0.05, mechanism="gaussian", noise_parameter=1.0, delta=1e-5,
        value_discretization_interval=1e-3,
    )  # fmt: skip
    text = (
        "import pfl\na = PLDPrivacyAccountant(num_compositions=100, sampling_probability=0.05, mechanism='gaussian', "
        "noise_parameter=1.0, delta=1e-5)\n"
    )
    total = pricing.price(written(tmp_path, "job.py", text)).headline.total
    assert total is not None
    assert total.epsilon == pytest.approx(theirs.epsilon, rel=5e-3)


def test_pfl_builds_the_banded_matrix_that_we_build() -> None:
    """Its optimiser and its Cholesky factor: rows of norm one, the first column longer than one."""
    mechanism = package("pfl.privacy.ftrl_mechanism")
    selector = package("pfl.internal.ops.selector")
    selector.set_framework_module(package("pfl.internal.ops.pytorch_ops"))
    for rounds, separation in ((16, 4), (40, 7)):
        mask = mechanism.BandedMatrixFactorizationMechanism._get_banded_matrix_mask(rounds, separation - 1)
        gram = mechanism.FTRLMatrixFactorizer(np.tril(np.ones((rounds, rounds))), mask).optimize()
        theirs = np.linalg.cholesky(np.asarray(gram, dtype=float))
        ours = pfl_mechanisms._factor(rounds, separation)
        np.testing.assert_allclose(np.linalg.norm(theirs, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(theirs, axis=0), np.linalg.norm(ours, axis=0), rtol=3e-3)
        assert np.linalg.norm(theirs, axis=0).max() <= pfl_mechanisms.BandedPflSensitivity(rounds, separation).once()
        assert np.linalg.norm(theirs, axis=0).max() > 1.25


def _gaussian(mu: float) -> float:
    from fedgraph.privacy.accounting import gaussian

    return gaussian.epsilon(mu, 1e-5)
