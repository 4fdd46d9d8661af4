"""Our own ledger, and a neutral description, agree with what a run reports."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

import fedgraph
from fedgraph import pricing, run
from fedgraph.privacy.events import Gaussian, PoissonGaussian
from fedgraph.privacy.ledger import Ledger

pytestmark = pytest.mark.slow  # a small run, which loads the learners

SCENARIO = """\
name: priced
seed: 3
runtime: {engine: serial}
datasets:
  - name: embedded/library
tasks:
  - task: node_classification
    epsilons: [1, inf]
    delta: 1.0e-3
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods:
      - {method: features, steps: 5, projection: 16}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("priced")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    assert run.main([str(folder / "s.yaml"), "--out", str(folder / "out")]) == 0
    return folder


def test_a_ledger_agrees_with_the_report(finished: Path) -> None:
    lines = fedgraph.open_run(finished / "out").table()
    reported = sorted(set(zip(lines["trust"], lines["epsilon_provable"], strict=True)))
    quote = pricing.price(finished / "out" / "ledger.jsonl")
    priced = sorted(p.per_round.epsilon for p in quote.rows)
    assert priced == pytest.approx(sorted(epsilon for _, epsilon in reported), rel=1e-9)
    assert quote.headline.per_round.epsilon == math.inf, "the dearest cell stands first"


def test_a_neutral_description_of_a_cell_agrees_with_the_report(finished: Path) -> None:
    ledger = Ledger.read(finished / "out" / "ledger.jsonl")
    account = next(
        a for a in ledger.accounts if any(isinstance(r.event, (Gaussian, PoissonGaussian)) for r in ledger if r.cell == a.cell)
    )
    releases = list(ledger.of(account.cell))
    event = releases[0].event
    assert isinstance(event, Gaussian), "the shipped learner adds Gaussian noise to whole sums"
    assert {r.event for r in releases} == {event}
    described = {
        "mechanism": "gaussian", "unit": "node", "noise_multiplier": event.noise_multiplier, "sampling": {"kind": "none"},
        "rounds": sum(line.of_one_client for line in releases), "delta": account.delta, "relation": "zero-out",
    }  # fmt: skip
    path = finished / "cell.yaml"
    path.write_text(yaml.safe_dump(described), encoding="utf-8")
    finite = [epsilon for epsilon in fedgraph.open_run(finished / "out").table()["epsilon_provable"] if math.isfinite(epsilon)]
    total = pricing.price(path).headline.total
    assert total is not None
    assert any(total.epsilon == pytest.approx(epsilon, rel=1e-9) for epsilon in finite)


def test_the_folder_of_a_run_is_its_ledger(finished: Path) -> None:
    assert pricing.price(finished / "out").system.name == "fedgraph ledger"
