"""Columns of numbers on one scale: before a method trains, each number becomes its rank among the people, −1 … 1.

If rows are public (a public test graph; all rows, if only edges are private), these are ranks among public rows, which cost
nothing. Otherwise ranks are estimated from noisy counts (``privacy.private_counts``), in ``_ROUNDS`` rounds before a method's
own, under its relation and toward its viewer, with ``_SHARE`` of μ². The method keeps the rest, and both are priced together. A
method without noise gets exact counts in the same way. This module runs like a method, but no scenario can name it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph import privacy
from fedgraph.errors import PrivacyError
from fedgraph.methods import base
from fedgraph.types import Graph, GraphColumns, Subgraph

COLUMN_RANKS_NAME = "column_ranks"
_PATH = "columns"
_ROUNDS = 4  # each narrows a bracket 16 times: after the third, two years of birth have different ranks
_SHARE = 0.05  # of μ²
_MOST_APART = 64  # columns with ranks of their own; more columns are an embedding, which has one scale
_BLURRED = 0.15  # error of a rank, as a share of all people, from which the plan advises to give bounds


@dataclass(frozen=True, eq=False)
class ColumnRanks:
    """Ranks of the numbers of some columns, in ``low`` … 1."""

    columns: GraphColumns  # the columns that became ranks
    brackets: np.ndarray  # float64 [k or 1, 2], of each column or of all: ends of the bins on the line of ``private_counts``
    shares: np.ndarray  # float64 [k or 1, BINS + 1], share of the people below each edge of the bins
    low: float = -1.0  # rank of the least number

    def scaled(self, graph: Graph) -> Graph:
        """``graph`` with its numbers as ranks; an empty cell gets the middle rank.

        A graph without such columns is returned as it is. Columns with bounds, which are in −1 … 1, are also mapped to
        ``low`` … 1.
        """
        known, low = self.columns, self.low
        if graph.columns is None:
            return graph
        line, k = _on_line(graph, known), known.places.size
        every = (privacy.private_counts.bin_edges(self.brackets), self.shares)
        edges, shares = (np.broadcast_to(part, (k, privacy.private_counts.COUNT_BINS + 1)) for part in every)
        bounded = known.bounded if low != -1.0 else known.bounded[:0]
        values = np.full((graph.num_nodes, k + bounded.size), (low + 1) / 2)
        for column in range(k):
            there = ~np.isnan(line[:, column])
            values[there, column] = low + (1 - low) * np.interp(line[there, column], edges[column], shares[column])
        values[:, k:] = low + (1 - low) * (graph.features[:, bounded].toarray() + 1) / 2
        places = np.concatenate([known.places, bounded])
        kept = np.ones(graph.num_features, dtype=np.float32)
        kept[places] = 0
        into = sp.csr_array((np.ones(places.size), (np.arange(places.size), places)), shape=(places.size, kept.size))
        features = sp.csr_array(graph.features @ sp.diags_array(kept) + sp.csr_array(values) @ into, dtype=np.float32)
        features.eliminate_zeros()
        features.sort_indices()
        return replace(graph, features=features, columns=None)


def _on_line(graph: Graph, known: GraphColumns) -> np.ndarray:
    """float64 [n, k], every number on the line of ``private_counts``; NaN for an empty cell and in a row of zeros."""
    line = privacy.private_counts.number_line(graph.features[:, known.places].toarray())
    line[np.diff(graph.features.indptr) == 0] = np.nan
    flagged = known.empty >= 0
    line[:, flagged] = np.where(graph.features[:, known.empty[flagged]].toarray() > 0, np.nan, line[:, flagged])
    return line


def fixed(columns: GraphColumns) -> ColumnRanks:
    """Ranks in 0 … 1 that are the same for all data: log₂(1 + |x|) with its sign, over the whole line."""
    shares = np.tile(np.linspace(0, 1, privacy.private_counts.COUNT_BINS + 1), (columns.places.size, 1))
    return ColumnRanks(columns, privacy.private_counts.widest_brackets(columns.places.size), shares, low=0.0)


def of_public(public: Graph, columns: GraphColumns) -> ColumnRanks:
    """Ranks of ``columns`` among the rows of a graph whose features are public."""
    line, brackets = _on_line(public, columns), privacy.private_counts.widest_brackets(columns.places.size)
    bound = privacy.ColumnCounts(columns.places.size, public.num_nodes, pooled=False)
    for round_ in range(_ROUNDS):
        counts = bound.enforce(privacy.private_counts.positions(line, brackets))
        brackets = privacy.private_counts.narrowed_brackets(brackets, counts, 0.0) if round_ < _ROUNDS - 1 else brackets
    return ColumnRanks(columns, brackets, privacy.private_counts.shares_below(counts))


def plan_with(make: Callable[[base.Budget], base.Plan], facts: base.PublicFacts, budget: base.Budget) -> base.Plan:
    """A method's plan for the rest of the budget, with the release of counts (without one if there are no ``columns``).

    Under the provable reading both together cost at most ``budget``. make: from a budget to the method's plan. ``PrivacyError``
    if the method's guarantee is amplified or counted in a way that the counts are not.
    """
    columns = facts.columns
    if columns is None:
        return make(budget)
    made = make(budget)
    if made.guarantee.sampled_once is not None or made.guarantee.per_end or made.guarantee.holdings is not None:
        raise PrivacyError(f"{made.method} cannot count columns: give bounds for {columns.called}")
    noisy = any(not isinstance(r.event, privacy.Unprotected) for r in made.schedule.releases)
    if not (budget.private and noisy):
        return _with(made, facts, columns, None)
    one = privacy.calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    multiplier = one * (_ROUNDS / _SHARE) ** 0.5
    left = privacy.gaussian.epsilon((1 - _SHARE) ** 0.5 / one, budget.delta)
    found = _with(make(replace(budget, epsilon=left)), facts, columns, multiplier)
    while budget.calibrated_by != "published" and found.provable().epsilon > budget.epsilon:
        left *= 0.98
        found = _with(make(replace(budget, epsilon=left)), facts, columns, multiplier)
    return found


def _with(made: base.Plan, facts: base.PublicFacts, columns: GraphColumns, multiplier: float | None) -> base.Plan:
    """``made`` with the release of counts. multiplier: noise multiplier of one round; None: no noise."""
    bound = _counted(columns, facts)
    names = columns.called
    if multiplier is None:
        mechanism, event = base.PLAN_WITHOUT_NOISE
        said = (f"Numbers of {names} became their ranks, which were counted without noise.",)
    else:
        sensitivity = bound.change(made.guarantee.protection.relation)
        std, _ = base.gradient_std(multiplier, sensitivity, facts)
        mechanism, event = privacy.GaussianNoise(std), privacy.Gaussian(multiplier)
        error = _std_of_sum(mechanism, facts) * privacy.private_counts.COUNT_BINS**0.5 / 2 / facts.num_nodes
        said = (
            f"Nobody gave bounds for {names}: their numbers became ranks, estimated from noisy counts with "
            f"{100 * _SHARE:.0f} % of the budget (of μ²), each wrong by about {100 * error:.1f} places in 100.",
            *((f"So blurred ranks say little: give bounds for {names}.",) if error > _BLURRED else ()),
        )
    release = privacy.PlannedRelease(_PATH, bound, mechanism, event, range(_ROUNDS))
    schedule = replace(made.schedule, releases=(*made.schedule.releases, release))
    published = None if multiplier else made.epsilon_published  # no paper says what its noise and the counts cost together
    return replace(made, schedule=schedule, notes=(*made.notes, *said), epsilon_published=published)


def _counted(columns: GraphColumns, facts: base.PublicFacts) -> privacy.ColumnCounts:
    return privacy.ColumnCounts(columns.places.size, facts.num_nodes, columns.places.size > _MOST_APART)


def _columns(plan: base.Plan) -> GraphColumns:
    if plan.facts.columns is None:
        raise PrivacyError(f"a plan of {COLUMN_RANKS_NAME} needs columns whose range is not public")
    return plan.facts.columns


def plan_before(made: base.Plan) -> base.Plan | None:
    """The plan of the rounds of counts before those of ``made``; None if there are none. Its functions follow below."""
    own = tuple(release for release in made.schedule.releases if release.path == _PATH)
    if not own:
        return None
    schedule = base.PlanSchedule(rounds=_ROUNDS, releases=own, min_clients=made.schedule.min_clients)
    return base.Plan(
        COLUMN_RANKS_NAME, None, made.facts, made.guarantee, schedule, made=None, sums=base.PlanSums(additive=True)
    )


def _std_of_sum(mechanism: privacy.NoiseMechanism, facts: base.PublicFacts) -> float:
    std = mechanism.std if isinstance(mechanism, privacy.GaussianNoise) else 0.0
    return std * facts.num_clients**0.5


def start(plan: base.Plan, rng: np.random.Generator) -> base.State[ColumnRanks | None]:
    bound = _counted(_columns(plan), plan.facts)
    return base.State({"brackets": privacy.private_counts.widest_brackets(1 if bound.pooled else bound.num_columns)}, None)


def prepare(plan: base.Plan, subgraph: Subgraph) -> np.ndarray:
    return _on_line(subgraph.graph, _columns(plan))


def client(
    plan: base.Plan, work: np.ndarray, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """Noisy counts in the bins of the current brackets."""
    return {"counts": desk.release(_PATH, privacy.private_counts.positions(work, model["brackets"]))}


def server(plan: base.Plan, state: base.State, inbox: base.PlanInbox) -> base.State[ColumnRanks | None]:
    """Narrower brackets; after the last round the ranks."""
    brackets, counts = state.model["brackets"], inbox.sums["counts"]
    if inbox.round == _ROUNDS - 1:
        return base.State(state.model, ColumnRanks(_columns(plan), brackets, privacy.private_counts.shares_below(counts)))
    std = _std_of_sum(plan.schedule.releases[0].mechanism, plan.facts)
    return base.State({"brackets": privacy.private_counts.narrowed_brackets(brackets, counts, std)}, None)


OFFERS: base.Offers[None, None, np.ndarray, ColumnRanks | None] = base.Offers(units=(), situations=())
