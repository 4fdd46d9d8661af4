"""Evidence of an edge in the parameters that ``gcon`` released."""

import math

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.learning import LinearObjective, walks
from fedgraph.methods import State, gcon
from fedgraph.privacy import ObjectivePerturbation
from fedgraph.types import Graph


def reads_rounds(plan: gcon.Planned) -> bool:
    """Whether the one round is kept: if the server sees each client's Θ."""
    return plan.guarantee.protection.viewer.sees_messages and plan.schedule.rounds > 0


def evidence(plan: gcon.Planned, state: State[gcon.Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """float64 [m], a score for each pair (of global ids) by the noise, computed back from Θ.

    graph: all that is known, without the pairs. At the minimiser ∇F = 0, so the noise is a function of Θ and of the rows Z:

        B(Z) = −n₁ Λ (Θ − Θ₀) − Zᵀ ℓ′(ZΘ; Y),        density of a column of B ∝ e^{−β‖b‖}.

    An edge changes B by D = Zᵀℓ′ without it − with it. The attacker knows all edges except the canaries, each of which exists
    with probability ½. So B is centred at half of the sum of all D, and the score is β Σ_columns (‖b − D/2‖ − ‖b + D/2‖). For
    one canary alone this is the log-likelihood ratio, except for the determinant of the change of variables (ε_Λ, the smaller
    part) and the output noise (10⁻³ of ε).

    None if only a sum of several Θ is seen, cut edges are shared, or nothing was trained.
    """
    alone, shared = plan.facts.num_clients == 1, plan.facts.cut_edges_shared
    seen = alone or (plan.guarantee.protection.viewer.sees_messages and state.seen)
    if not plan.schedule.releases or shared or not seen:
        return None
    found = np.zeros(len(pairs))
    for number, release in enumerate(plan.schedule.releases):
        mechanism = release.mechanism
        if not isinstance(mechanism, ObjectivePerturbation) or not isinstance(mechanism.problem, LinearObjective):
            raise PrivacyError(f"the noise of {release.path!r} is {mechanism.words}; allowed: a perturbed objective of gcon")
        theta = state.model["theta"] if alone else state.seen[0][1].each["theta"][number]
        nodes = plan.facts.members[release.client or 0]
        place = np.full(plan.facts.num_nodes, -1)
        place[nodes] = np.arange(nodes.size)
        here = np.flatnonzero((place[pairs] >= 0).all(axis=1))
        if here.size:
            at = (state.memory.rows[nodes], graph.induced(nodes), theta / mechanism.weight, mechanism.problem, mechanism.rate)
            found[here] = _scores(plan, *at, place[pairs[here]])
    return found


def _scores(
    plan: gcon.Planned,
    rows: np.ndarray,
    known: Graph,
    theta: np.ndarray,
    problem: LinearObjective,
    rate: float,
    pairs: np.ndarray,
) -> np.ndarray:
    """Scores of one client's pairs (in its own numbers). known: its graph without them; labels of training nodes are public."""
    labelled = np.flatnonzero(known.labels >= 0)

    def pull(adjacency: sp.csr_array) -> np.ndarray:
        z = walks.rows_after(walks.capped_matrix(adjacency, plan.params.cap), rows, plan.params.steps, plan.params.restart)[
            labelled
        ]
        return z.T @ problem.loss.first(z @ theta, problem.targets)

    def with_edge(one: int, two: int) -> sp.csr_array:
        added = sp.csr_array((np.ones(2, known.adjacency.dtype), ([one, two], [two, one])), shape=known.adjacency.shape)
        return sp.csr_array(known.adjacency + added)

    pulled = pull(known.adjacency)
    moves = np.stack([pulled - pull(with_edge(*pair)) for pair in pairs])
    apart = theta - problem.centre(len(theta))
    noise = -labelled.size * problem.regulariser * apart - pulled + moves.sum(axis=0) / 2
    strength = rate if math.isfinite(rate) else 1.0
    with_it = np.linalg.norm(noise + moves / 2, axis=1).sum(axis=1)
    without = np.linalg.norm(noise - moves / 2, axis=1).sum(axis=1)
    return np.asarray(strength * (without - with_it))
