"""Several colluding clients: priced by what is left of the noise, stated with their number, and used by the attack."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from fedgraph.errors import PrivacyError
from fedgraph.library import run
from fedgraph.methods import features
from fedgraph.methods.base import Budget, PlanInbox, PublicFacts, State, gradient_std, seen
from fedgraph.privacy.units import Viewer
from tests.mutants import bench
from tests.mutants import methods as mutants
from tests.public_facts import public_facts

SECURE = Viewer.SERVER_SECURE_AGGREGATION


def facts(clients: int, colluders: int, viewer: Viewer = SECURE) -> PublicFacts:
    members = tuple(np.array_split(np.arange(10 * clients), clients))
    return public_facts(10 * clients, 5, 3, (10,) * clients, viewer, members=members, colluders=colluders)


@pytest.mark.parametrize("colluders", [1, 7])
def test_what_the_colluders_do_not_know_hides_everything(colluders: int) -> None:
    std, least = gradient_std(2.0, 3.0, facts(8, colluders))
    assert std * math.sqrt(8 - colluders) == pytest.approx(6.0)
    assert least == 8
    with pytest.raises(PrivacyError, match=f"more than {colluders} others, found {colluders} clients"):
        gradient_std(2.0, 3.0, facts(colluders, colluders))


def test_sums_are_read_without_what_colluders_sent() -> None:
    made = features.plan(features.Params(projection="none", steps=1), facts(4, 2), Budget(4.0, 1e-3))
    inbox = PlanInbox(0, {"gradient": np.full(3, 10.0)}, {}, 4, {"gradient": np.full(3, 4.0)})
    ((_, _, message),) = seen.gradients_of(made, State({}, None, (({}, inbox),)), 0)
    assert message.tolist() == [6.0] * 3
    assert list(seen.colluders_of(made)) == [2, 3]
    assert seen.groups_of(made)[0].tolist() == list(range(20)), "nodes of colluders are no secret"


def test_a_scenario_with_colluders_is_priced_and_attacked(tmp_path: Path) -> None:
    """The ε of the row stays, the noise of each client grows, and canaries are nodes of clients that do not collude."""
    task = {
        "task": "node_classification", "epsilons": [4], "trust": ["sums"], "colluders": 2,
        "partition": {"partition": "uniform", "clients": 4}, "attack": {"canaries": 40, "guesses": [0.5]},
        "methods": [{"method": "features", "model": "logistic", "steps": 3, "projection": "none"}],
    }  # fmt: skip
    file = tmp_path / "colluders.yaml"
    file.write_text(yaml.safe_dump({"name": "c", "datasets": [{"name": "embedded/library"}], "tasks": [task]}))
    done = run(str(file), out=tmp_path / "out", runtime="serial")
    assert done.table()["epsilon_provable"].to_list() == pytest.approx([4.0], rel=1e-3)
    assert done.table()["epsilon_measured"].between(0, 4.0).all()
    assert '"colluders":2' in (tmp_path / "out" / "ledger.jsonl").read_text()
    assert "(t = 2)" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["", "colluder ignored"])
def test_an_ignored_colluder_is_caught_where_two_clients_take_part(broken: mutants._Break) -> None:
    plain = {"method": "features", "steps": 2, "projection": "none"}
    found = bench.judge_bench_case(mutants._case_of(mutants._Whole(plain, SECURE, 2, broken), 400), 0, 0.002)
    assert found.as_it_should, found
