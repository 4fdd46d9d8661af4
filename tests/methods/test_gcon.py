"""GCON: the contract, the law of the noise, the shift that one edge causes, the certificate, the bound on Λ."""

import functools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.learning import LinearObjective, walks
from fedgraph.methods import gcon
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing
from fedgraph.privacy.units import Assumption, Viewer
from fedgraph.types import Graph
from tests.objectives import changes_of_density
from tests.trainings import made, train

planned = functools.partial(made, gcon)


def test_public_test_graph_is_walked_in_full(library: Graph) -> None:
    plan, partition, setting = planned(library, np.inf, protocol="inductive-edges")
    assert Assumption.TEST_GRAPH_PUBLIC in plan.guarantee.protection.assumptions
    assert Assumption.OWN_EDGES_KNOWN not in plan.guarantee.protection.assumptions
    scores = gcon.predict(plan, train(plan, partition).state, setting.asked)
    assert scores.shape == (setting.asked.num_nodes, library.num_classes)
    assert (scores.argmax(axis=1) == setting.truth).mean() > 0.5


@pytest.mark.parametrize(("prior", "seed"), [(0.0, 0), (3.0, 1)])
def test_one_edge_moves_the_density_of_theta_by_at_most_epsilon(prior: float, seed: int) -> None:
    """Theorem 1 on neighbouring graphs: ln density ratio of Θ = β Σⱼ(‖b′ⱼ‖ − ‖bⱼ‖) + ln det ratio of the Jacobians ≤ ε.

    b and b′ are the noises that make the same Θ stationary in the two worlds; their shift is at most (c₁ + c₂‖θ‖)Ψ.
    """
    rng = np.random.default_rng(seed)
    n, c, restart, epsilon = 40, 3, 0.3, 1.0
    edges = [(0, i) for i in range(2, 20)] + [(1, i) for i in range(20, 40)]
    labels = np.array([0] * 20 + [1] * 20)
    labels[:2] = [0, 1]
    x = np.eye(c)[labels] if seed % 2 else np.where(labels[:, None] == 0, 1.0, -1.0) * np.array([[1.0, 0, 0]])
    dense = np.zeros((n, n))
    for u, v in edges:
        dense[u, v] = dense[v, u] = 1
    joined = dense.copy()
    joined[0, 1] = joined[1, 0] = 1
    psi = perturbing.psi([2], restart)
    given = perturbing.Situation(epsilon, 1e-3, 0.9, perturbing.LossBounds.soft_margin(c), psi, c, c, n, per_end=False)
    least = perturbing.least_regulariser(given)
    there = perturbing.Situation(epsilon, 1e-3, 0.9, perturbing.LossBounds.soft_margin(c), psi, c, c, n, prior, per_end=False)
    calibrated = perturbing.calibrated(there, 1.5 * least, 1e-9)
    worlds = [walks.rows_after(walks.capped_matrix(sp.csr_array(a)), x, [2], restart) for a in (dense, joined)]
    assert np.linalg.norm(worlds[0] - worlds[1], axis=1).sum() <= psi * (1 + 1e-12)
    for ratio, theta, shift in changes_of_density(
        calibrated, 1e-3 * (1 - perturbing.OUTPUT_SHARE), worlds, labels, c, prior, rng
    ):
        norms = np.linalg.norm(theta, axis=0)
        assert (norms <= calibrated.c_theta * (1 + 1e-9)).all()
        assert (np.linalg.norm(shift, axis=0) <= (1 / c + norms / (4 * c)) * psi + 1e-6).all()
        assert abs(ratio) <= epsilon


def test_regulariser_below_its_bound_names_the_smallest_allowed(library: Graph) -> None:
    with pytest.raises(PrivacyError, match=r"regulariser Λ = 1e-06 must exceed (\d\S+)") as caught:
        planned(library, 1.0, regulariser=1e-6)
    named = float(str(caught.value).split("must exceed ")[1].split()[0])
    planned(library, 1.0, regulariser=named * 1.001)
    with pytest.raises(PrivacyError, match="must exceed"):
        planned(library, 1.0, regulariser=named * 0.999)


def test_no_edge_read_costs_nothing(library: Graph) -> None:
    for given in ({"steps": (0,)}, {"restart": 1.0}):
        plan, partition, _ = planned(library, 1.0, **given)
        assert plan.provable().epsilon == 0
        assert plan.epsilon_published == 0
        first, second = (train(plan, partition, cell=name).state.model["theta"] for name in "ab")
        assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("loss", "encoder"), [("soft-margin", "hidden"), ("pseudo-huber", "classes"), ("pseudo-huber", "none")]
)
def test_both_losses_and_every_encoder_run(loss: str, encoder: str, library: Graph) -> None:
    given = {"loss": loss, "encoder": encoder, "hidden": 4, "epochs": 5, "steps": (1, math.inf), "folds": 1}
    plan, partition, setting = planned(library, 8.0, **given)
    assert np.isfinite(gcon.predict(plan, train(plan, partition).state, setting.asked)).all()


@pytest.mark.parametrize("viewer", [Viewer.CURATOR_TRUSTED, Viewer.SERVER])
@pytest.mark.parametrize("noise", ["gamma", "gaussian"])
def test_the_noise_of_the_objective_is_what_its_price_asks_for(noise: str, viewer: Viewer, library: Graph) -> None:
    """The constants once more from the numbers that everybody knows: half of the noise at the full price is found out."""
    plan, _, _ = planned(library, 4.0, viewer, noise=noise)
    p, c = plan.params, plan.facts.num_classes
    for release in plan.schedule.releases:
        mechanism, bound = release.mechanism, release.bound
        assert isinstance(mechanism, perturbing.ObjectivePerturbation)
        assert isinstance(bound, perturbing.ObjectiveRows)
        assert isinstance(mechanism.problem, LinearObjective)
        bounds = (
            perturbing.LossBounds.soft_margin(c) if p.loss == "soft-margin" else perturbing.LossBounds.pseudo_huber(c, p.width)
        )
        psi, n, prior = perturbing.psi(p.steps, p.restart, p.cap), bound.num_rows, p.scale * math.sqrt(len(p.steps))
        total, kept = mechanism.problem.regulariser, 1 - perturbing.OUTPUT_SHARE
        if noise == "gamma":
            delta = plan.guarantee.delta * kept
            whole = perturbing.Situation(4.0 * kept, delta, p.share, bounds, psi, c, bound.dimension, n, prior, per_end=False)
            assert mechanism.rate <= perturbing.gamma_noise(whole, total).rate * (1 + 1e-9)
            continue
        given = perturbing.Situation(
            4.0, plan.guarantee.delta, p.share, bounds, psi, c, bound.dimension, n, prior, per_end=plan.guarantee.per_end
        )
        longest = prior + (bounds.c1 + mechanism.noise_std * given.length / n) / total
        lost = given.determinant(longest, total)
        change = (bounds.c1 + bounds.c2 * longest) * psi
        more = mechanism.noise_std * (1 + 1e-5)
        assert perturbing.gaussian_delta(4.0 * kept, more, change, c, lost, given.missed) <= plan.guarantee.delta * kept
        assert mechanism.output_std > mechanism.gradient_norm / total


def test_nothing_released_is_the_prior_on_own_edges_and_costs_nothing(library: Graph) -> None:
    plan, partition, setting = planned(library, 1.0, release="nothing", steps=(0, 2))
    out = train(plan, partition)
    assert out.releases == ()
    assert plan.provable().epsilon == 0
    assert plan.epsilon_published == 0
    assert Assumption.OWN_EDGES_KNOWN in plan.guarantee.protection.assumptions
    scores = gcon.predict(plan, out.state, setting.asked)
    rows = out.state.memory.rows
    one = walks.rows_after(walks.capped_matrix(setting.asked.adjacency), rows, (0, 1), 0.4)
    assert np.allclose(scores, 3 * (one[:, :4] + one[:, 4:]))
    assert (scores.argmax(axis=1) == setting.truth)[setting.truth >= 0].mean() > 0.6
    with pytest.raises(ValueError, match="prior alone"):
        gcon.Params(release="nothing", prior=0)


@pytest.mark.parametrize("viewer", [Viewer.CURATOR_TRUSTED, Viewer.SERVER])
def test_gaussian_noise_is_less_and_costs_the_same(viewer: Viewer, library: Graph) -> None:
    gamma, gaussian = (planned(library, 4.0, viewer, noise=noise, encoder="none")[0] for noise in ("gamma", "gaussian"))
    for one, other in zip(gamma.schedule.releases, gaussian.schedule.releases, strict=True):
        assert one.event == other.event
        assert other.mechanism.noise_std < math.sqrt(library.num_features + 1) / one.mechanism.rate  # root mean squares
    assert gaussian.epsilon_published is None, "the paper's noise is another"
