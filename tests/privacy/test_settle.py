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
from fedgraph.privacy.events import Composed, Gaussian, PoissonGaussian, PureDP, Repeated, SampledOnce, Unprotected
from fedgraph.privacy.ledger import Ledger, LedgerRelease
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.settle import Guarantee, Promise
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

NODE = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.COUNTS_PUBLIC,))
EDGE = Protection(Relation.EDGE_UNDIRECTED, Viewer.SERVER, (Assumption.FEATURES_LABELS_PUBLIC,))
DELTA = 1e-5
MADE = [*(("model", c, r, 4.0 + c) for c in range(3) for r in range(5)), ("embedding", 1, 5, 2.0)]  # path, client, round, noise
LINES = ledger.merged(LedgerRelease("c", path, c, r, "g", Gaussian(sigma)) for path, c, r, sigma in MADE)
TOGETHER = Composed((Repeated(Gaussian(5.0), 5), Gaussian(2.0)))
HELD = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))
GUARANTEES = {
    "disjoint": Guarantee(NODE, DELTA, holdings=None, per_end=False),
    "sampled": Guarantee(NODE, DELTA, sampled_once=0.1, holdings=None, per_end=False),
    "ends": Guarantee(EDGE, DELTA, per_end=True, holdings=None),
    "overlapping": Guarantee(NODE, DELTA, holdings=HELD, per_end=False),
}
PLANNED = (
    *(PlannedRelease("model", L2Ball(1.0), GaussianNoise(4.0 + c), Gaussian(4.0 + c), range(5), client=c) for c in range(3)),
    PlannedRelease("embedding", L2Ball(1.0), GaussianNoise(2.0), Gaussian(2.0), range(5, 6), client=1),
)


@pytest.mark.parametrize(
    ("name", "paid", "holders"),
    [
        ("disjoint", TOGETHER, None),  # the dearest of them
        ("sampled", SampledOnce(TOGETHER, 0.1), None),
        ("ends", Composed((TOGETHER, TOGETHER)), (1, 1)),  # both at the dearest
        ("overlapping", Composed((Repeated(Gaussian(4.0), 5), TOGETHER)), (0, 1)),  # the node that two hold
    ],
)
def test_plan_run_and_ledger_file_are_worth_what_the_worst_unit_pays(name, paid, holders, tmp_path):
    guarantee = GUARANTEES[name]
    found = privacy.settle.of_releases(guarantee, LINES)
    assert found.epsilon == pytest.approx(price(paid, DELTA).epsilon, rel=1e-9)
    assert holders in (None, found.total.holders)
    assert found.path_epsilons() == {p: s.price.epsilon for p, s in found.paths.items()}
    Ledger([found.account("c", guarantee)], LINES).write(tmp_path / "ledger.jsonl")
    read = Ledger.read(tmp_path / "ledger.jsonl")
    (same,) = read.accounts
    assert privacy.settle.of_account(same, read.of("c")).epsilon == pytest.approx(found.epsilon, rel=1e-9)
    assert privacy.settle.of_plan(guarantee, PLANNED).epsilon == pytest.approx(found.epsilon, rel=1e-9)
    if guarantee.holdings is not None:
        alone = privacy.settle.of_account(same, read.of("c"), "model").epsilon
        assert alone == pytest.approx(found.path_epsilons()["model"], rel=1e-9)


def worst(spent, holdings):
    return privacy.settle.of_events(Guarantee(NODE, DELTA, sp.csr_array(holdings), per_end=False), spent)


def test_events_of_any_kind_are_grouped_and_priced_exactly_whatever_a_table_of_holders_says():
    rng = np.random.default_rng(0)
    kinds = [PureDP(0.2), PoissonGaussian(2.0, 0.1, touched_rows=1, replaced=False), Repeated(Gaussian(9.0), 2)]
    spent, held = {c: kinds[c % 3] for c in range(12)}, (rng.random((12, 30)) < 0.25).astype(float)
    each = [price(Composed(tuple(spent[c] for c in np.flatnonzero(held[:, n]))), DELTA).epsilon for n in range(30)]
    found = worst(spent, held)
    assert found.price.epsilon == pytest.approx(max(each), rel=1e-12)
    assert found.holders == tuple(np.flatnonzero(held[:, int(np.argmax(each))]))
    table = sp.csr_array((np.array([0.0, 7.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 1))
    assert worst({0: Gaussian(1.0), 1: Gaussian(5.0)}, table).holders == (1,)
    assert worst({0: Unprotected("in clear")}, np.ones((1, 1))).price.epsilon == np.inf
    assert worst({}, np.ones((1, 1))).price.epsilon == 0
    with pytest.raises(PrivacyError, match="no nodes"):
        worst({}, np.ones((3, 0)))


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
    kept, broken = (Promise(Assumption.PROMISED_DEGREE, 10, most, above, 200) for most, above in ((10, 0), (168, 15)))
    same = privacy.settle.of_releases(replace(GUARANTEES["disjoint"], promises=(kept,)), LINES)
    assert same.epsilon == price(TOGETHER, DELTA).epsilon
    guarantee = replace(GUARANTEES["disjoint"], promises=(broken,))
    found = privacy.settle.of_releases(guarantee, LINES)
    assert all(map(math.isinf, (found.epsilon, *found.path_epsilons().values())))
    assert "15 of 200 nodes (7.5 %) do, up to 168; if none did, ε would be at most" in found.broken_words
    account = found.account("c", guarantee)
    assert not any(str(count) in str(account.broken) for count in (15, 168, 200)), "a ledger is handed out"
    assert math.isinf(privacy.settle.of_account(account, LINES).epsilon), "whoever prices the ledger again finds the same"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sampled_once": 0.5, "holdings": HELD, "per_end": False}, "one-time sample"),
        ({"holdings": HELD, "per_end": True}, "ends of an edge"),
        ({"sampled_once": 0.5, "holdings": None, "per_end": True}, "ends of an edge"),
    ],
)
def test_what_nobody_has_proven_together_is_refused(given, says):
    with pytest.raises(PrivacyError, match=says):
        Guarantee(EDGE if given["per_end"] else NODE, DELTA, **given)


def test_edges_that_are_public_are_the_same_in_both_worlds():
    every = Protection(Relation.NODE_REPLACE, Viewer.WORLD, ())
    assert "features, label and edges" in every.neighbours == Relation.NODE_REPLACE.words
    assert "edges" not in replace(every, assumptions=(Assumption.EDGES_PUBLIC,)).neighbours
