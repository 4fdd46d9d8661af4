"""Attacks on whole runs: two versions are neighbours, a run that counts is not touched, broken and refuted methods are told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import fedgraph.methods
from fedgraph import plugins, run
from fedgraph.attacks.base import coin_game, whole_run
from fedgraph.errors import PrivacyError
from fedgraph.methods import features
from fedgraph.methods.base import Budget, PlanInbox, PublicFacts, State, gradient_std, seen
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Relation, Viewer
from fedgraph.types import Graph, Partition, Subgraph, partition_of_one
from tests.attacks.test_named import outcome
from tests.graphs import same, zeroed
from tests.public_facts import public_facts
from tests.trainings import planned

ATTACK = {"canaries": 200, "guesses": [0.2]}
THREE = {"partition": {"partition": "uniform", "clients": 3}}


@pytest.mark.parametrize("kind", ["word", "full"])
def test_one_coin_zeroes_one_node_and_nothing_else(library: Graph, kind: coin_game.CanaryKind) -> None:
    rng, ids = np.random.default_rng(0), np.arange(library.num_nodes)
    found = coin_game.draw_canary_nodes(library, library, Relation.NODE_ZERO_OUT, 60, kind, rng)
    for canary in range(5):
        both = [np.where(np.arange(found.coins.size) == canary, there, found.coins) for there in (True, False)]
        one, zero = (found.planted(library, ids, coins) for coins in both)
        assert not same(one, zero)
        assert same(zeroed(one, int(found.nodes[canary])), zero)


def test_one_coin_adds_one_edge_between_nodes_of_no_other_canary(library: Graph) -> None:
    one, ids = partition_of_one(library, "one"), np.arange(library.num_nodes)
    found = coin_game.draw_canary_edges(library, one, Relation.EDGE_UNDIRECTED, 50, np.random.default_rng(0))
    assert np.unique(found.pairs).size == found.pairs.size == 100
    assert not library.adjacency[found.pairs[:, 0], found.pairs[:, 1]].any()
    assert (library.labels[found.pairs[:, 0]] != library.labels[found.pairs[:, 1]]).all()
    assert same(found.planted(library, ids, np.zeros(50, bool)), library)
    changed = (found.planted(library, ids, np.arange(50) == 7).adjacency - library.adjacency).tocoo()
    assert sorted(zip(*map(list, changed.coords), strict=True)) == sorted([tuple(found.pairs[7]), tuple(found.pairs[7][::-1])])


def test_one_coin_replaces_the_label_of_one_node_and_nothing_else(library: Graph) -> None:
    rng, ids = np.random.default_rng(0), np.arange(library.num_nodes)
    found = coin_game.draw_canary_nodes(library, library, Relation.NODE_REPLACE, 40, "word", rng)
    one, zero = found.planted(library, ids, ~found.coins), found.planted(library, ids, found.coins)
    assert same(replace(one, labels=zero.labels), zero)
    assert np.array_equal(np.flatnonzero(one.labels != zero.labels), found.nodes)
    assert (one.labels[found.nodes] >= 0).all()


def test_clients_hold_what_the_whole_graph_would(library: Graph) -> None:
    """Planting client by client is planting at once, for the edges that a client holds."""
    halves = np.array_split(np.random.default_rng(1).permutation(library.num_nodes), 2)
    parts = tuple(Subgraph(i, library.induced(nodes), nodes) for i, nodes in enumerate(halves))
    dealt = Partition(parts, True, 0, "two", from_edges=False, from_labels=False)
    joined, rng = coin_game.join_canary_clients(dealt, library), np.random.default_rng(0)
    for found in (
        coin_game.draw_canary_nodes(joined, library, Relation.NODE_ZERO_OUT, 50, "word", rng),
        coin_game.draw_canary_edges(joined, dealt, Relation.EDGE_UNDIRECTED, 50, rng),
    ):
        at_once = found.planted(joined, np.arange(library.num_nodes), found.coins)
        for part, s in zip(coin_game.plant(dealt, found).subgraphs, dealt.subgraphs, strict=True):
            assert same(part.graph, at_once.induced(s.nodes))


@pytest.mark.parametrize("trust", ["curator", "sums", "own-client"])
def test_the_run_that_counts_is_not_touched(library: Graph, trust: str) -> None:
    attacked, plain = (
        outcome(library, {"method": "features", "steps": 5}, trust=[trust], **THREE, **more)
        for more in ({"attack": ATTACK}, {"attack": None})
    )
    assert attacked.metrics["accuracy"] == plain.metrics["accuracy"]
    assert attacked.releases == plain.releases
    assert plain.epsilon_measured is None
    assert 0 <= attacked.epsilon_measured <= attacked.epsilon_provable
    assert attacked.facts.attack.counts[0][0] >= 40


@pytest.mark.parametrize(
    ("method", "part", "changes"),
    [
        ({"method": "gap_edge", "epochs": 20}, 5, {"protocol": "transductive", "attack": ATTACK}),
        *(({"method": "features"}, 6, {"trust": [t], "attack": {"guesses": [0.5]}, **THREE}) for t in ("sums", "own-client")),
    ],
    ids=["gap_edge", "sums", "own-client"],
)
def test_a_part_of_the_noise_is_caught_and_the_whole_not_accused(
    library: Graph, method: dict[str, Any], part: int, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees every round reads the messages themselves, by the test that the proof prices."""
    whole = {"attack": {"canaries": 1000} | changes["attack"]}
    sound = outcome(library, method, **(changes | whole))
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / part), v, rng))
    broken = outcome(library, method, **(changes | whole))
    assert sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.epsilon_measured > broken.epsilon_provable == sound.epsilon_provable, "only the attack can tell"
    if "trust" in changes:
        assert "read in the released values" in sound.facts.attack.what
        assert broken.facts.attack.estimator == "curve", "everything that features releases is Gaussian"


@pytest.mark.parametrize("name", ["dpar", "features", "label_hop", "nonprivate"])
def test_a_node_that_is_asked_alone_is_answered_without_spread(name: str, library: Graph) -> None:
    made, _, _ = planned(name, 0, Trust.CURATOR, library, math.inf)
    assert made.params.propagation_steps > 0
    assert whole_run.without_spread(made).params.propagation_steps == 0


# ---------------------------------------------------------------------------------------------------------------- colluders


def facts(clients: int, colluders: int) -> PublicFacts:
    members, secure = tuple(np.array_split(np.arange(10 * clients), clients)), Viewer.SERVER_SECURE_AGGREGATION
    return public_facts(10 * clients, 5, 3, (10,) * clients, secure, members=members, colluders=colluders)


def test_sums_are_hidden_by_and_read_of_those_who_do_not_collude() -> None:
    for colluders in (1, 7):
        std, least = gradient_std(2.0, 3.0, facts(8, colluders))
        assert std * math.sqrt(8 - colluders) == pytest.approx(6.0)
        assert least == 8
        with pytest.raises(PrivacyError, match=f"more than {colluders} others, found {colluders} clients"):
            gradient_std(2.0, 3.0, facts(colluders, colluders))
    made = features.plan(features.Params(projection="none", steps=1), facts(4, 2), Budget(4.0, 1e-3))
    inbox = PlanInbox(0, {"gradient": np.full(3, 10.0)}, {}, 4, {"gradient": np.full(3, 4.0)})
    ((_, _, message),) = seen.gradients_of(made, State({}, None, (({}, inbox),)), 0)
    assert message.tolist() == [6.0] * 3
    assert list(seen.colluders_of(made)) == [2, 3]
    assert seen.groups_of(made)[0].tolist() == list(range(20)), "nodes of colluders are no secret"


# ----------------------------------------------------------------------------------------------- from a scenario to the page

LIAR = """
import dataclasses

import fedgraph.methods.features as honest
from fedgraph.attacks.base.evidence import features as read
from fedgraph.privacy.mechanisms.noise import GaussianNoise

globals().update({name: value for name, value in vars(honest).items() if not name.startswith("__")})
OFFERS = dataclasses.replace(honest.OFFERS, evidence=read.evidence, reads_rounds=read.reads_rounds)


def plan(params, facts, budget):
    return dataclasses.replace(honest.plan(params, facts, budget), method="liar")


def client(plan, work, model, round_, streams, desk):
    less = tuple(dataclasses.replace(r, mechanism=GaussianNoise(r.mechanism.std / 20)) for r in desk.planned)
    door = dataclasses.replace(desk, planned=less)
    sent = honest.client(plan, work, model, round_, streams, door)
    desk.entries.extend(e for e in door.entries if e not in desk.entries)
    return sent
"""


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[None]:
    """A method file of the user's own, beside those that are shipped, which adds less noise than it declares."""
    home = tmp_path / "methods"
    home.mkdir()
    (home / "liar.py").write_text(LIAR)
    fedgraph.methods.__path__.append(str(home))
    plugins.forget()
    yield
    fedgraph.methods.__path__.remove(str(home))
    plugins.forget()


def ran(folder: Path, names: tuple[str, ...], **changes: Any) -> Path:
    rows = [{"method": name, "model": "logistic", "label": name, "steps": 4, "projection": "none"} for name in names]
    task = {"task": "node_classification", "label": "told", "methods": rows, **changes}
    file, out = folder / "scenario.yaml", folder / "out"
    file.write_text(yaml.safe_dump({"name": "s", "datasets": [{"name": "embedded/library"}], "tasks": [task]}))
    assert run.main([str(file), "--runtime", "serial", "--out", str(out)]) == 0
    return out


def test_a_refuted_epsilon_is_the_first_sentence_everywhere(
    liar: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    eight, attack = {"partition": "uniform", "clients": 8}, {"canaries": 60, "guesses": [1.0]}
    out = ran(tmp_path, ("features", "liar"), epsilons=[1], trust=["own-client"], partition=eight, attack=attack)
    printed, page = (" ".join(text.split()) for text in (capsys.readouterr().out, (out / "report.html").read_text()))
    begins = "CONTRADICTION: an attack measured more than was proven, so a proof or its code is wrong (liar"
    for text in (printed, page):
        assert text.index(begins) < text.index("ode level"), "it comes before the answer"
    said = printed[printed.index(begins) :]
    for part in ("provable ε = 1", "all 2 bounds of the report together", "task told", "trust own-client", "environment.json"):
        assert part in said, part
    assert "features · features" not in said[: said.index("To repeat it")], "the honest row is not accused"
    assert "liar" not in said[said.index("ode level") :].split("report:")[0], "a refuted row is no answer"


def test_a_scenario_with_colluders_is_priced_and_attacked(tmp_path: Path) -> None:
    """The ε of the row stays, the noise of each client grows, and canaries are nodes of clients that do not collude."""
    four, attack = {"partition": "uniform", "clients": 4}, {"canaries": 40, "guesses": [0.5]}
    out = ran(tmp_path, ("features",), epsilons=[4], trust=["sums"], colluders=2, partition=four, attack=attack)
    table = fedgraph.open_run(out).table()
    assert table["epsilon_provable"].to_list() == pytest.approx([4.0], rel=1e-3)
    assert table["epsilon_measured"].between(0, 4.0).all()
    assert '"colluders":2' in (out / "ledger.jsonl").read_text()
    assert "(t = 2)" in (out / "report.html").read_text()
