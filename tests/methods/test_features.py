"""Features, end to end: what one node can change, the noise that covers it, and a plan made from public facts only."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph import seeds
from fedgraph.learning.projection import project_features
from fedgraph.learning.propagation import mean_field
from fedgraph.methods import features
from fedgraph.methods.base import Budget, Plan, PublicFacts, State
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph
from tests.public_facts import Sides, public_facts, sides


@pytest.fixture(scope="module")
def split(library: Graph) -> Sides:
    return sides(library, 0.8, seeds.seeded_generator(0, "split"))


def facts(split: Sides, clients: int = 1, viewer: Viewer = Viewer.CURATOR_TRUSTED) -> PublicFacts:
    n = split.train.num_nodes
    sizes = tuple(len(part) for part in np.array_split(np.arange(n), clients))
    return public_facts(n, split.train.num_features, split.train.num_classes, sizes, viewer, None, split.test)


def planned(split: Sides, epsilon: float = 1.0, reading: str = "provable", **settings: object) -> Plan:
    return features.plan(features.Params(**settings), facts(split), Budget(epsilon, 1e-3, reading))  # type: ignore[arg-type]


def test_the_plan_is_a_function_of_public_facts(split: Sides) -> None:
    """Same public test graph, same counts: frame and curvature do not move when every private row and label does."""
    rng = np.random.default_rng(0)
    shuffled = dataclasses.replace(split.train, labels=rng.permutation(split.train.labels))
    other = split._replace(train=dataclasses.replace(shuffled, features=sp.csr_array(shuffled.features * 0)))
    public = dataclasses.replace(split.test, labels=np.full(split.test.num_nodes, -1))
    blind = split._replace(test=public)  # labels of test nodes are not public
    for pairs in (False, True):
        a, b, c = (planned(s, pairs=pairs) for s in (split, other, blind))
        assert a.schedule.releases == b.schedule.releases == c.schedule.releases
        for same in (b, c):
            assert np.array_equal(a.made.basis, same.made.basis)
            assert np.array_equal(a.made.curvature, same.made.curvature)
            assert not pairs or np.array_equal(a.made.pairs.mixing, same.made.pairs.mixing)


def test_pairs_of_words_are_seen_where_the_budget_carries_them(split: Sides) -> None:
    """From s = n·μ = 2.5 per public row on; separate clients each add noise, so s is smaller there."""
    n, m = split.train.num_nodes, split.test.num_nodes
    for epsilon in (0.2, 0.5, 1.0, 2.0, 8.0, math.inf):
        budget = Budget(epsilon, 1e-3, "provable")
        mu = min(3.0, 1 / calibrate.gaussian_multiplier(1, epsilon, 1e-3)) if budget.private else 3.0
        for clients, viewer in ((1, Viewer.CURATOR_TRUSTED), (9, Viewer.SERVER)):
            made = features.plan(features.Params(), facts(split, clients, viewer), budget).made
            enough = n * mu / math.sqrt(clients if budget.private else 1) >= 2.5 * m
            if budget.private:
                assert (made.pairs is not None) == enough
                assert made.layout.widths[0] == (made.pairs.mixing if enough else made.basis).shape[1]
    assert planned(split, math.inf).made.pairs is not None
    assert planned(split, math.inf, model="mlp").made.basis is None
    assert planned(split, 8.0, projection="none").made.pairs is None


def test_edges_say_less_where_the_features_decide(split: Sides) -> None:
    """The coupling is a multiple of what the scores leave open: half of it open, half of the multiple."""
    plan = planned(split, pairs=False, likeness=0.0, coupling=3.0)
    rng, shape = np.random.default_rng(0), (plan.made.basis.shape[1], split.train.num_classes)
    weights = np.vstack([rng.standard_normal(shape), np.zeros((1, shape[1]))]).astype(np.float32)
    rows = project_features(split.test.features, plan.made.basis)
    open_shares = []
    for scale in (0.5, 5.0, 50.0):
        found = features.predict(plan, State({}, features.Memory(weights, scale * weights.ravel())), split.test)
        scores = rows @ (scale * weights[:-1])
        open_shares.append(1 - softmax(scores, axis=1).max(axis=1).mean())
        assert np.allclose(found, mean_field.run(scores, [(3 * open_shares[-1], split.test.adjacency)], 3), atol=1e-4)
    assert open_shares[0] > 0.3 > 0.05 > open_shares[-1]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("change", ["no words", "no edges"])
def test_odd_public_graphs_still_plan_and_predict(split: Sides, change: str, pairs: bool) -> None:
    n = split.test.num_nodes
    public = split.test
    if change == "no words":
        public = dataclasses.replace(public, features=sp.csr_array(public.features.shape, dtype=np.float32))
    else:
        public = dataclasses.replace(public, adjacency=sp.csr_array((n, n), dtype=np.float32))
    plan = planned(split._replace(test=public), pairs=pairs)
    found = features.predict(plan, features.start(plan, np.random.default_rng(0)), public)
    assert found.shape == (n, public.num_classes)
    assert np.isfinite(found).all()
