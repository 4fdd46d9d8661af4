"""GAP at node level: for each client the rule that bounds what one node can change in a hop, and what the statement says of it.

log        W = h(max degree), proven for every graph, no promise            ``privacy.degree_caps``
limit      the platform enforces at most M neighbours; input above is refused   log cap or plain sums
promised   as published: neighbourhoods are cut to D by public coins, √D is claimed; provable only where both
           neighbouring graphs keep D from the start, for a slot that a removed node frees is filled again
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.sampling.neighbour_sampling import bounded
from fedgraph.learning.sampling.stable_cap import require_limit, weighted
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.methods.gap_node.params import Params
from fedgraph.privacy import degree_caps, neighbour_sums
from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.units import Assumption

COIN = 0  # names the public coins that cut neighbourhoods
CLAIMED = (
    "Under cap: promised neighbourhoods are cut to D = {degree}, and one node is priced as changing D rows of a hop. That is "
    "true only where no node has more than D neighbours: beyond D a removed node frees slots that others refill, which "
    "changes further rows. Where the data break the promise the provable ε is ∞."
)
PROVEN = (
    "{rule}: one node changes a hop by at most Δ = {delta:.4g} at a client of {nodes} nodes, in every graph{limit}; plain sums "
    "would need {plain:.4g}."
)


@dataclass(frozen=True)
class Caps:
    """One client's rule each (``proven``), or the promised degree. assumptions, notes: what a statement must say."""

    proven: tuple[DegreeCap, ...]
    promised: int | None
    limit: int | None
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]

    def sensitivities(self, params: Params) -> tuple[float, ...]:
        """Δ₂ of one hop of each client, row of the node itself not shown."""
        if self.promised is not None:
            return (neighbour_sums.sensitivity(params.protects, self.promised, rows_released=False),)
        return tuple(cap.sensitivity_l2(params.protects.replaces) for cap in self.proven)

    def terms(self, client: int) -> int:
        """How many vectors of norm at most 1 a row adds up at most."""
        return self.promised or max(1, self.proven[client].num_nodes - 1)

    def weights(self, adjacency: sp.csr_array, ids: np.ndarray, client: int | None = None) -> sp.csr_array:
        """What a hop multiplies with. client None: a public graph, by the rule of the largest client."""
        if self.promised is not None:
            return bounded(adjacency, self.promised, ids, COIN)
        if client is not None and self.limit is not None:
            require_limit(adjacency, self.limit, ids)
        cap = max(self.proven, key=lambda c: c.num_nodes) if client is None else self.proven[client]
        return weighted(adjacency, _table(cap, adjacency.shape[0]))


def _table(cap: DegreeCap, size: int) -> np.ndarray:
    """h(0) … for graphs of ``size`` nodes, which may be more than the cap was made for (a public graph)."""
    return np.concatenate([cap.factors, np.full(max(0, size - cap.factors.size), cap.factors[-1])])


def of(params: Params, facts: PublicFacts, budget: Budget) -> Caps:
    """The rule that ``params.cap`` asks for, from public sizes."""
    published = budget.private and budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if published else "log"
    if not params.hops:
        return Caps((), 1, None, (), ())
    if kind == "promised":
        note = CLAIMED.format(degree=params.degree)
        return Caps((), params.degree, None, (Assumption.PROMISED_DEGREE, Assumption.ROWS_NEVER_RELEASED), (note,))
    limit = params.limit
    caps = tuple(
        degree_caps.log_cap(n, params.knee)
        if limit is None
        else degree_caps.limited(n, limit, params.typical, params.knee)
        for n in facts.sizes.clients
    )  # fmt: skip
    largest = max(caps, key=lambda cap: cap.num_nodes)
    falling = f"Log cap (edges weigh 1 up to degree {largest.knee}, 0 from {largest.silent} on)"
    note = PROVEN.format(
        rule="Plain sums" if largest.silent is None else falling,
        delta=largest.sensitivity_l2(params.protects.replaces),
        nodes=largest.num_nodes,
        limit="" if limit is None else f" that keeps the limit of {limit}",
        plain=DegreeCap(largest.num_nodes).sensitivity_l2(params.protects.replaces),
    )
    assumed = (Assumption.DEGREE_LIMIT_ENFORCED,) if limit is not None else ()
    return Caps(caps, None, limit, (*assumed, Assumption.ROWS_NEVER_RELEASED), (note,))
