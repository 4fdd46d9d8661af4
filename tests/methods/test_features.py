"""Features, end to end: what one node can change, the noise that covers it, and a plan made from public facts only."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph import seeds
from fedgraph.learning import mean_field, project_features
from fedgraph.methods import features
from fedgraph.methods.base import Budget, Plan, PublicFacts, State
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
