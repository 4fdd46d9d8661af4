"""Our own ledger agrees with what a run reports."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import fedgraph
from fedgraph import pricing, run
from tests.scenarios import small

pytestmark = pytest.mark.slow  # a small run, which loads the learners

TASK = "    delta: 1.0e-3\n    trust: [curator, own-client]\n    partition: {partition: uniform, clients: 3}\n"
SCENARIO = small("{method: features, steps: 5, projection: 16}", TASK, name="priced", seed="3", runtime="{engine: serial}")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("priced")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    assert run.main([str(folder / "s.yaml"), "--out", str(folder / "out")]) == 0
    return folder


def test_a_ledger_agrees_with_the_report(finished: Path) -> None:
    lines = fedgraph.open_run(finished / "out").table()
    reported = sorted(set(zip(lines["trust"], lines["epsilon_provable"], strict=True)))
    quote = pricing.price(finished / "out")
    assert quote.system.name == "fedgraph ledger"
    priced = sorted(p.per_round.epsilon for p in quote.rows)
    assert priced == pytest.approx(sorted(epsilon for _, epsilon in reported), rel=1e-9)
    assert quote.headline.per_round.epsilon == math.inf, "the dearest cell stands first"
