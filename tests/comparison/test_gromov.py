"""The discrepancy: what must hold for every solver, and agreement with POT."""

import numpy as np
import pytest

from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace


def random_space(rng, n, uniform=True, features=2):
    weights = np.ones(n) if uniform else rng.random(n) + 0.05
    extra = rng.normal(size=(n, features))
    return MetricSpace(metric_space.from_embedding(rng.normal(size=(n, 3))).distances, weights / weights.sum(), extra)


def random_graph(rng, n, density=0.2):
    upper = np.triu(rng.random((n, n)) < density, 1).astype(float)
    return metric_space.from_topology(upper + upper.T)


def objective(first, second, plan, alpha=None):
    """Σ |C_ik − D_jl|² T_ij T_kl by its definition, four loops deep."""
    loss = (first.distances[:, None, :, None] - second.distances[None, :, None, :]) ** 2
    structure = float(np.einsum("ijkl,ij,kl->", loss, plan, plan))
    if alpha is None:
        return structure
    cost = ((first.features[:, None, :] - second.features[None, :, :]) ** 2).sum(-1)
    return (1 - alpha) * float((cost * plan).sum()) + alpha * structure


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("kicks", [0, 12])
def test_value_is_the_objective_of_a_coupling_with_the_right_marginals(uniform, alpha, kicks):
    rng = np.random.default_rng(5)
    spaces = [random_space(rng, n, uniform) for n in (1, 2, 5, 8, 8, 13)]
    options = GromovOptions(alpha=alpha, restarts=2, kicks=kicks)
    which = np.concatenate([gromov.all_pairs(6), gromov.all_pairs(6)[:, ::-1]])
    found, plans = gromov.solve_couplings(spaces, which, options)
    assert found.converged.all()
    for (i, j), value, plan in zip(which, found.value, plans, strict=True):
        assert plan.shape == (spaces[i].num_points, spaces[j].num_points)
        assert plan.min() >= 0
        assert np.abs(plan.sum(axis=1) - spaces[i].weights).max() < 1e-9
        assert np.abs(plan.sum(axis=0) - spaces[j].weights).max() < 1e-9
        assert np.isclose(value, objective(spaces[i], spaces[j], plan, alpha), rtol=1e-9, atol=1e-11)
    assert np.array_equal(found.value, gromov.solve_pairs(spaces, which, options).value)


@pytest.mark.parametrize("alpha", [None, 0.3])
@pytest.mark.parametrize("uniform", [True, False])
def test_agrees_with_pot_where_vertices_are_unique(alpha, uniform):
    """Distinct real distances: no ties between vertices, so the two descents take the same steps."""
    count = 60
    rng = np.random.default_rng(11)
    spaces = [random_space(rng, int(n), uniform) for n in rng.integers(3, 16, size=2 * count)]
    which = np.arange(2 * count).reshape(count, 2)
    ours = gromov.solve_pairs(spaces, which, GromovOptions(alpha=alpha)).value
    theirs = gromov.solve_pairs(spaces, which, GromovOptions(alpha=alpha, solver="pot")).value
    same = np.isclose(ours, theirs, rtol=1e-7, atol=1e-9)
    assert same.mean() > 0.97, f"{(~same).sum()} of {count} differ"
    assert abs(np.median(ours - theirs)) < 1e-9


def test_result_does_not_depend_on_the_chunks():
    rng = np.random.default_rng(7)
    spaces = [random_graph(rng, int(n)) for n in rng.integers(2, 12, size=12)]
    which, options = gromov.all_pairs(12), GromovOptions(restarts=3, seed=9)
    whole = gromov.solve_pairs(spaces, which, options)
    parts = [gromov.solve_pairs(spaces, chunk, options) for chunk in np.array_split(which[::-1], 5)]
    for name in ("value", "iterations"):
        assert np.array_equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts])[::-1])
    assert (gromov.solve_pairs(spaces, which, GromovOptions(restarts=3, seed=10)).value != whole.value).any()


def test_kicks_never_worse_often_lower_and_the_same_in_any_chunk():
    rng = np.random.default_rng(3)
    spaces = [random_graph(rng, int(n)) for n in rng.integers(8, 20, size=8)]
    which, kicked = gromov.all_pairs(8), GromovOptions(restarts=1, kicks=20)
    before = gromov.solve_pairs(spaces, which, GromovOptions(restarts=1)).value
    after = gromov.solve_pairs(spaces, which, kicked).value
    assert (after <= before + 1e-12).all()
    assert np.mean(after < before - 1e-9) > 0.5
    assert np.array_equal(after, [gromov.solve_pairs(spaces, pair[None, ::-1], kicked).value[0] for pair in which])


def test_points_without_weight_change_nothing():
    rng = np.random.default_rng(10)
    base, other = random_space(rng, 5, features=1), random_space(rng, 4, features=1)
    far = np.pad(base.distances, ((0, 2), (0, 2)), constant_values=9.0)
    padded = MetricSpace(far, np.append(base.weights, [0.0, 0.0]), np.pad(base.features, ((0, 2), (0, 0))))
    for alpha in (None, 0.5):
        found, plans = gromov.solve_couplings([padded, base, other], np.array([[0, 2], [1, 2]]), GromovOptions(alpha=alpha))
        assert found.value[0] == pytest.approx(found.value[1], rel=1e-12)
        assert (plans[0][5:] == 0).all()


@pytest.mark.parametrize("solver", ["pot", "proximal"])
@pytest.mark.parametrize("alpha", [None, 0.5])
@pytest.mark.parametrize("loss", ["square", "kl"])
def test_pot_solves_other_losses_and_by_proximal_points(solver, alpha, loss):
    """Values are objectives of couplings with the right marginals; a space is its own nearest; order does not matter."""
    rng = np.random.default_rng(2)
    spaces = [random_space(rng, n) for n in (4, 4, 6)]
    options = GromovOptions(solver=solver, alpha=alpha, loss=loss, max_iterations=100)
    found, plans = gromov.solve_couplings(spaces, gromov.all_pairs(3), options)
    again = gromov.solve_pairs(spaces, gromov.all_pairs(3)[:, ::-1], options).value
    assert np.array_equal(found.value, again)
    for (i, j), value, plan in zip(gromov.all_pairs(3), found.value, plans, strict=True):
        assert np.abs(plan.sum(axis=1) - spaces[i].weights).max() < 1e-9
        assert np.abs(plan.sum(axis=0) - spaces[j].weights).max() < 1e-9
        if loss == "square":
            assert value == pytest.approx(objective(spaces[i], spaces[j], plan, alpha), rel=1e-6)
    own = gromov.solve_pairs(spaces, np.array([[0, 0]]), options).value[0]
    assert 0 <= own < found.value.min()


def test_the_divergence_is_the_mean_of_both_orders():
    """Σ C log(C/D) − C + D over all pairs of points, at the only coupling that one-to-one weights of two points leave apart."""
    c, d = (MetricSpace(np.array([[0.0, r], [r, 0.0]]), np.array([0.3, 0.7])) for r in (1.0, 2.0))
    found = gromov.solve_pairs([c, d], np.array([[0, 1]]), GromovOptions(solver="pot", loss="kl")).value[0]
    one = 2 * 0.3 * 0.7 * (1 * np.log(1 / 2) - 1 + 2)
    other = 2 * 0.3 * 0.7 * (2 * np.log(2 / 1) - 2 + 1)
    assert found == pytest.approx((one + other) / 2, abs=1e-6)
