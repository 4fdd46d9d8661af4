"""One function prices every run: composition, overlap, ends of edges, one-time samples, and promises that the data break."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import privacy
from fedgraph.errors import PrivacyError
from fedgraph.privacy import ledger
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Gaussian, Repeated, SampledOnce
from fedgraph.privacy.ledger import Ledger, LedgerRelease
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.settle import Guarantee, Promise
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

NODE = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.COUNTS_PUBLIC,))
EDGE = Protection(Relation.EDGE_UNDIRECTED, Viewer.SERVER, (Assumption.FEATURES_LABELS_PUBLIC,))
DELTA = 1e-5


def released(*entries):
    """(path, client, round, noise multiplier) …"""
    return ledger.merged(
        LedgerRelease("c", path, client, round_, "g", Gaussian(sigma)) for path, client, round_, sigma in entries
    )


LINES = released(*(("model", c, r, 4.0 + c) for c in range(3) for r in range(5)), ("embedding", 1, 5, 2.0))
TOGETHER = Composed((Repeated(Gaussian(5.0), 5), Gaussian(2.0)))


def test_disjoint_clients_pay_the_dearest_of_them():
    found = privacy.settle.of_releases(Guarantee(NODE, DELTA, holdings=None, per_end=False), LINES)
    assert found.epsilon == price(TOGETHER, DELTA).epsilon
    assert found.paths["embedding"].price == price(Gaussian(2.0), DELTA)
    assert found.path_epsilons() == {p: s.price.epsilon for p, s in found.paths.items()}


def test_clients_that_share_nodes_compose_at_the_worst_node():
    holdings = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))
    found = privacy.settle.of_releases(Guarantee(NODE, DELTA, holdings=holdings, per_end=False), LINES)
    of_both = Composed((Repeated(Gaussian(4.0), 5), TOGETHER))
    assert found.epsilon == pytest.approx(price(of_both, DELTA).epsilon, rel=1e-9)
    assert found.total.holders == (0, 1)


def test_an_edge_pays_its_two_ends():
    found = privacy.settle.of_releases(Guarantee(EDGE, DELTA, per_end=True, holdings=None), LINES)
    assert found.epsilon == price(Composed((TOGETHER, TOGETHER)), DELTA).epsilon
    assert found.total.holders == (1, 1)


GUARANTEES = {
    "disjoint": Guarantee(NODE, DELTA, holdings=None, per_end=False),
    "sampled": Guarantee(NODE, DELTA, sampled_once=0.1, holdings=None, per_end=False),
    "ends": Guarantee(EDGE, DELTA, per_end=True, holdings=None),
    "overlapping": Guarantee(NODE, DELTA, holdings=sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]])), per_end=False),
}
PLANNED = (
    *(PlannedRelease("model", L2Ball(1.0), GaussianNoise(4.0 + c), Gaussian(4.0 + c), range(5), client=c) for c in range(3)),
    PlannedRelease("embedding", L2Ball(1.0), GaussianNoise(2.0), Gaussian(2.0), range(5, 6), client=1),
)


@pytest.mark.parametrize("name", GUARANTEES)
def test_plan_run_and_ledger_file_are_worth_the_same(name, tmp_path):
    guarantee = GUARANTEES[name]
    found = privacy.settle.of_releases(guarantee, LINES)
    Ledger([found.account("c", guarantee)], LINES).write(tmp_path / "ledger.jsonl")
    read = Ledger.read(tmp_path / "ledger.jsonl")
    (same,) = read.accounts
    assert privacy.settle.of_account(same, read.of("c")).epsilon == pytest.approx(found.epsilon, rel=1e-9)
    assert privacy.settle.of_plan(guarantee, PLANNED).epsilon == pytest.approx(found.epsilon, rel=1e-9)
    if guarantee.holdings is not None:
        alone = privacy.settle.of_account(same, read.of("c"), "model").epsilon
        assert alone == pytest.approx(found.path_epsilons()["model"], rel=1e-9)


@pytest.mark.parametrize("name", ["disjoint", "sampled", "ends"])
def test_each_client_is_told_the_price_of_its_dearest_unit(name):
    """Found by trying every unit: of an edge with one end here, the other end may be at whoever pays most."""
    guarantee = GUARANTEES[name]
    own = {client: Composed((Repeated(Gaussian(4.0 + client), 5), *((Gaussian(2.0),) * (client == 1)))) for client in range(3)}
    if guarantee.sampled_once is not None:
        own = {client: SampledOnce(event, guarantee.sampled_once) for client, event in own.items()}
    units = {c: [Composed((e, o)) for o in own.values()] if guarantee.per_end else [e] for c, e in own.items()}
    found = privacy.settle.per_client(guarantee, LINES)
    for client, each in units.items():
        assert found[client] == pytest.approx(max(price(unit, DELTA).epsilon for unit in each), rel=1e-9)
    assert max(found.values()) == pytest.approx(privacy.settle.of_releases(guarantee, LINES).epsilon, rel=1e-9)
    broken = replace(guarantee, promises=(Promise(Assumption.PROMISED_DEGREE, 10, 168, 15, 200),))
    assert privacy.settle.per_client(broken, LINES) == dict.fromkeys(range(3), math.inf)


def test_a_broken_promise_is_worth_nothing_and_says_so():
    kept = Promise(Assumption.PROMISED_DEGREE, 10, 10, 0, 200)
    broken = Promise(Assumption.PROMISED_DEGREE, 10, 168, 15, 200)
    same = privacy.settle.of_releases(replace(GUARANTEES["disjoint"], promises=(kept,)), LINES)
    assert same.epsilon == price(TOGETHER, DELTA).epsilon
    guarantee = replace(GUARANTEES["disjoint"], promises=(broken,))
    found = privacy.settle.of_releases(guarantee, LINES)
    assert math.isinf(found.epsilon)
    assert set(map(math.isinf, found.path_epsilons().values())) == {True}
    assert broken.share == 0.075
    assert "15 of 200 nodes (7.5 %) do, up to 168; if none did, ε would be at most" in found.broken_words
    account = found.account("c", guarantee)
    assert not any(str(count) in str(account.broken) for count in (15, 168, 200)), "a ledger is handed out"
    assert math.isinf(privacy.settle.of_account(account, LINES).epsilon), "whoever prices the ledger again finds the same"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sampled_once": 0.5, "holdings": sp.csr_array(np.ones((2, 2))), "per_end": False}, "one-time sample"),
        ({"holdings": sp.csr_array(np.ones((2, 2))), "per_end": True}, "ends of an edge"),
        ({"sampled_once": 0.5, "holdings": None, "per_end": True}, "ends of an edge"),
    ],
)
def test_what_nobody_has_proven_together_is_refused(given, says):
    with pytest.raises(PrivacyError, match=says):
        Guarantee(EDGE if given["per_end"] else NODE, DELTA, **given)
