"""GAP at node level: for each client the rule that bounds what one node can change in a hop, and what the statement says of it.

log        W = h(max degree), proven for every graph, no promise            ``privacy.degree_caps``
gate       the log cap among nodes whose noisy degree is small; proven too    ``privacy.accounting.degree_gate``
limit      the platform enforces at most M neighbours; input above is refused   log cap or plain sums
promised   as published: neighbourhoods are cut to D by public coins, √D is claimed; provable only where both
           neighbouring graphs keep D from the start, for a slot that a removed node frees is filled again
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning.sampling.neighbour_sampling import bounded
from fedgraph.learning.sampling.stable_cap import require_limit, weighted
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.methods.gap_node.params import Params
from fedgraph.privacy import degree_caps, neighbour_sums
from fedgraph.privacy.accounting import gate_noise
from fedgraph.privacy.accounting.gate_noise import GateNoise
from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.events import Repeated
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


GATED = (
    "Each node passes a private gate first: edges count only between nodes whose degree plus Gaussian noise of standard "
    "deviation {std:.4g} is at most {threshold:.4g}. Behind it {rule} (at the client of {nodes} nodes). Bits and sums are "
    "priced together, for the worst degree of the protected node, in every graph."
)
NO_GATE = "Without a finite ε there is no gate: nothing has to be hidden, and no noise says where it should stand."


@dataclass(frozen=True)
class Caps:
    """One client's rule each (``proven``), or the promised degree. assumptions, notes: what a statement must say.

    asks_gate: whether each client is to get a gate; gates: what it got, one each, or none.
    """

    proven: tuple[DegreeCap, ...]
    promised: int | None
    limit: int | None
    assumptions: tuple[Assumption, ...]
    notes: tuple[str, ...]
    asks_gate: bool = False
    gates: tuple[GateNoise, ...] = ()

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
        if self.gates:  # of a public graph: everybody knows who would pass without noise
            largest = max(self.gates, key=lambda g: g.gate.num_rows)
            return _behind(adjacency, np.diff(adjacency.indptr) <= largest.gate.threshold, largest.cap)
        if client is not None and self.limit is not None:
            require_limit(adjacency, self.limit, ids)
        cap = max(self.proven, key=lambda c: c.num_nodes) if client is None else self.proven[client]
        return weighted(adjacency, _table(cap, adjacency.shape[0]))

    def behind(self, adjacency: sp.csr_array, bits: np.ndarray, client: int) -> sp.csr_array:
        """What a hop multiplies with at ``client``, once its gate let out ``bits``, [n] of 0 and 1."""
        return _behind(adjacency, bits > 0, self.gates[client].cap)

    def gated(self, params: Params, gradients: Repeated, budget: Budget) -> Caps:
        """With a gate for each client, whose bits and hops cost at most the budget together with ``gradients``."""
        wanted = (budget.epsilon, budget.delta)
        gates = tuple(
            gate_noise.chosen(cap.num_nodes, params.hops, gradients, params.typical, params.knee, wanted) for cap in self.proven
        )
        one = max(gates, key=lambda g: g.gate.num_rows)
        rule = "every edge weighs 1"
        if one.cap.silent is not None:
            rule = f"edges weigh 1 up to degree {one.cap.knee} and 0 from {one.cap.silent} on"
        note = GATED.format(std=one.gate.noise_std, threshold=one.gate.threshold, rule=rule, nodes=one.gate.num_rows)
        return replace(self, gates=gates, notes=(note,))


def _table(cap: DegreeCap, size: int) -> np.ndarray:
    """h(0) … for graphs of ``size`` nodes, which may be more than the cap was made for (a public graph)."""
    return np.concatenate([cap.factors, np.full(max(0, size - cap.factors.size), cap.factors[-1])])


def _behind(adjacency: sp.csr_array, kept: np.ndarray, cap: DegreeCap) -> sp.csr_array:
    """Edges among ``kept`` nodes, weighed by their degrees there; all others weigh 0."""
    alone = sp.diags_array(kept.astype(np.float64), format="csr")
    left = sp.csr_array(alone @ adjacency @ alone)
    left.eliminate_zeros()
    return weighted(left, _table(cap, adjacency.shape[0]))


def of(params: Params, facts: PublicFacts, budget: Budget) -> Caps:
    """The rule that ``params.cap`` asks for, from public sizes."""
    published = budget.private and budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if published else "log"
    if not params.hops:
        return Caps((), 1, None, (), ())
    if kind == "promised":
        note = CLAIMED.format(degree=params.degree)
        return Caps((), params.degree, None, (Assumption.PROMISED_DEGREE, Assumption.ROWS_NEVER_RELEASED), (note,))
    gate = kind == "gate" and budget.private
    if gate and (published or facts.membership.holdings is not None):
        raise ScenarioError("cap: gate has no published formula, and clients must share no node; use cap: log here")
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
    notes = (note, NO_GATE) if kind == "gate" and not budget.private else (note,)
    return Caps(caps, None, limit, (*assumed, Assumption.ROWS_NEVER_RELEASED), notes, gate)
