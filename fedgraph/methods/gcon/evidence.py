"""An attack on GCON's Θ: take the noise back out of the minimiser, and ask with which edges it looks like noise.

At the minimiser ∇F = 0, so the noise is a function of Θ and of the rows Z:

    B(Z) = −n₁ Λ (Θ − Θ₀) − Zᵀ ℓ′(ZΘ; Y),        density of a column of B ∝ e^{−β‖b‖}.

An edge moves B by D = Zᵀℓ′ without it − with it. The attacker knows all edges but the canaries, each of which is there with
probability ½; so B is centred at half of the sum of all D, and a pair's score is β Σ_columns (‖b − D/2‖ − ‖b + D/2‖) with the
sign that large means there: the log-likelihood ratio for one canary alone, but for the determinant of the change of variables
(ε_Λ, which is the smaller part) and the output noise (10⁻³ of ε).
"""

import math

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.optimisers.objective import LinearObjective
from fedgraph.learning.propagation.capped_walk import capped_walk, walked
from fedgraph.methods.base import Plan, State
from fedgraph.methods.gcon.params import Made, Params
from fedgraph.methods.gcon.rows import Memory
from fedgraph.privacy.mechanisms.objective_perturbation import ObjectivePerturbation
from fedgraph.types import Graph


def of_minimiser(plan: Plan[Params, Made], state: State[Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """float64 [m] for pairs of global ids. graph: all that is known, without the pairs.

    None where only a sum of several Θ is seen, cut edges are shared, or nothing was trained.
    """
    alone = plan.facts.sizes.num_clients == 1
    if (
        not plan.schedule.releases
        or plan.facts.membership.cut_edges_shared
        or not (alone or plan.guarantee.protection.viewer.sees_messages)
    ):
        return None
    if not alone and not state.seen:
        return None
    found = np.zeros(len(pairs))
    for number, release in enumerate(plan.schedule.releases):
        mechanism = release.mechanism
        assert isinstance(mechanism, ObjectivePerturbation)
        theta = state.model["theta"] if alone else state.seen[0][1].each["theta"][number]
        nodes = plan.facts.membership.nodes[release.client or 0]
        place = np.full(plan.facts.sizes.num_nodes, -1)
        place[nodes] = np.arange(nodes.size)
        here = np.flatnonzero((place[pairs] >= 0).all(axis=1))
        if here.size:
            known = graph.induced(nodes)
            found[here] = _scores(
                plan, state.memory.rows[nodes], known, theta / mechanism.weight, mechanism, place[pairs[here]]
            )
    return found


def _scores(
    plan: Plan[Params, Made],
    rows: np.ndarray,
    known: Graph,
    theta: np.ndarray,
    mechanism: ObjectivePerturbation,
    pairs: np.ndarray,
) -> np.ndarray:
    """One client's pairs (own row numbers). known: its graph without them; labels of training nodes are public."""
    labelled = np.flatnonzero(known.labels >= 0)
    problem = mechanism.problem
    assert isinstance(problem, LinearObjective)

    def pull(adjacency: sp.csr_array) -> np.ndarray:
        z = walked(capped_walk(adjacency, plan.params.cap), rows, plan.params.steps, plan.params.restart)[labelled]
        return z.T @ problem.loss.first(z @ theta, problem.targets)

    base = pull(known.adjacency)
    moves = np.stack([base - pull(_with(known.adjacency, pair)) for pair in pairs])
    apart = theta - problem.centre(len(theta))
    noise = -labelled.size * problem.regulariser * apart - base + moves.sum(axis=0) / 2
    strength = mechanism.rate if math.isfinite(mechanism.rate) else 1.0
    with_it = np.linalg.norm(noise + moves / 2, axis=1).sum(axis=1)
    without = np.linalg.norm(noise - moves / 2, axis=1).sum(axis=1)
    return np.asarray(strength * (without - with_it))


def _with(adjacency: sp.csr_array, pair: np.ndarray) -> sp.csr_array:
    ends = (np.array([pair[0], pair[1]]), np.array([pair[1], pair[0]]))
    return sp.csr_array(adjacency + sp.csr_array((np.ones(2, adjacency.dtype), ends), shape=adjacency.shape))
