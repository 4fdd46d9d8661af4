"""DPAR's public numbers and what it plans to release: how many nodes take part, batches, steps, mentions."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import Layout, aggregated_rows
from fedgraph.methods.base import Budget, PublicFacts, gradient_std
from fedgraph.methods.dpar import noise as noise_of
from fedgraph.methods.dpar.noise import Sizes
from fedgraph.privacy import (
    Box,
    ClippedSum,
    Disclose,
    Event,
    GaussianNoise,
    GumbelTopK,
    LaplaceNoise,
    NoiseMechanism,
    NonNegativeRows,
    PlannedRelease,
    Relation,
    Repeated,
    SensitivityBound,
    Unbounded,
    Unprotected,
    sensitivity,
)


class Params(Settings):
    """Settings; the defaults are the paper's (§4). ``auto`` depends on the calibration, as each description says."""

    variant: Literal["em0", "em1", "gm", "random", "features", "none"] = Field(
        "em0", description="how neighbours are chosen; random: public coins; features: only oneself (one-hot); none: no DP"
    )
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    sampled: float | Literal["auto"] = Field(
        "auto", description="q', share of nodes taking part; auto: 0.09 (≥ 210 nodes), 1 federated"
    )
    num_sources: int = Field(70, ge=1, description="M, nodes whose PageRank rows are computed")
    top: int = Field(2, ge=1, description="K, neighbours per row")
    alpha: float = Field(0.25, gt=0, le=1, description="teleport probability, of the rows and of the inference")
    rho: float = Field(1e-4, gt=0, description="sparsity of a PageRank row")
    gamma: float = Field(1e-4, gt=0, description="relative slack of its optimality")
    clip_vector: float = Field(0.01, gt=0, description="C1, L2 norm of a row (gm)")
    clip_entry: float = Field(0.001, gt=0, description="C2, largest entry of a row (em0, em1)")
    split: Annotated[float, Field(gt=0, lt=1)] | Literal["auto", "public"] = Field(
        "auto", description="share of the budget for neighbours; auto: 0.5, random 0; public: what public numbers advise"
    )
    values_share: float = Field(0.5, gt=0, lt=1, description="share of that for noisy values (em1)")
    column_rows: ClassVar[str] = "auto"  # B', rows naming a node: 2 provable, any published
    tau: ClassVar[float] = 1.0  # L1 norm of the columns of the chosen rows
    columns: Literal["clip", "normalise", "none"] = Field("clip", description="at most tau, exactly tau (as coded), or free")
    tail: ClassVar[str] = "one-hot"  # rows of sampled nodes that are no source, as coded
    hidden: int = Field(32, ge=1, description="hidden units")
    features: Literal["unit", "raw"] = Field("unit", description="feature rows scaled to norm 1, or as they are")
    clip: float = Field(1.0, gt=0, description="C, norm of a row's gradient")
    epochs: int = Field(200, ge=1, description="passes over the rows; steps = epochs · rows/batch")
    batch_size: int = Field(60, ge=1, description="B, rows per step (expected; of all clients where a round is one step)")
    batches: Literal["poisson", "fixed"] = Field("poisson", description="fresh coins each step, or fixed groups (as coded)")
    learning_rate: float = Field(0.005, gt=0, description="step size")
    optimiser: Literal["adam", "sgd"] = Field("adam", description="rule that follows the noisy gradients")
    local_steps: ClassVar[str] = "auto"  # steps per round: all of them, 1 if federated
    propagation_steps: int = Field(2, ge=0, description="P, power iterations at inference")


_IN_CLEAR = Disclose("no noise was asked for")
_LEAST_SAMPLE = 210  # nodes: 9 % of Cora-ML, the paper's smallest sample
_MISSED_SHARE = 1e-3  # part of δ spent on "more sources were sampled than the noise covers"


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    layout: Layout  # of the parameters
    sizes: Sizes  # public counts
    noise: noise_of.StageNoise  # the multipliers of both stages


def sizes_of(params: Params, facts: PublicFacts, budget: Budget) -> Sizes:
    """From public counts alone. Raises ``ScenarioError`` where K exceeds the candidates or q' is no share."""
    central = facts.num_clients == 1
    if params.sampled == "auto":
        sampled = min(1.0, max(0.09, _LEAST_SAMPLE / facts.num_nodes)) if central else 1.0
    else:
        sampled = float(params.sampled)
    if not 0 < sampled <= 1:
        raise ScenarioError(f"dpar: sampled = {sampled}; allowed: a share in (0, 1], e.g. 0.09, or auto")
    fixed = budget.calibrated_by == "published" or not budget.private or params.variant == "none"
    taking_part = [sample_size(sampled, n) for n in facts.clients]
    share = max(m / n for m, n in zip(taking_part, facts.clients, strict=True)) if fixed else sampled
    candidates = min(taking_part if fixed else facts.clients)
    if params.top > candidates:
        raise ScenarioError(
            f"dpar: top = {params.top} neighbours, but the smallest client has {candidates} candidate nodes; "
            f"allowed: 1 … {candidates}"
        )
    sources = min(params.num_sources, max(taking_part))
    marked = sources if fixed or sampled == 1 else min(max(facts.clients), math.ceil(sources / sampled))
    missed = _MISSED_SHARE * budget.delta
    cap = marked
    if not fixed and sampled < 1:  # the smallest number that a Binomial(marked, q') exceeds with probability at most ``missed``
        from scipy.stats import binom  # its import takes half a second

        cap = min(marked, int(binom.isf(missed, marked, sampled)) + 1)
    mean_rows = sum(taking_part) / len(taking_part)
    in_step = mean_rows if central else sum(taking_part)  # federated, a round is one step over all clients' rows
    groups = max(1, math.ceil(in_step / params.batch_size))
    rate = 1 / groups if params.batches == "fixed" else min(1.0, params.batch_size / in_step)
    steps = params.epochs * groups
    local = steps if central else 1
    provable = budget.private and budget.calibrated_by != "published" and params.variant != "none"
    if params.batches == "fixed" and budget.private:
        _require_whole_epochs(groups, alone=not central, amplified=provable and central and sampled < 1)
    most = 2 if provable else None
    amplified = share if central else 1.0
    return Sizes(
        kind=params.variant,
        sampled=sampled,
        amplified=amplified,
        fixed=fixed,
        sources=sources,
        marked=marked,
        cap=max(1, cap),
        missed=missed if cap < marked else 0.0,
        top=params.top,
        rate=rate,
        groups=groups,
        rounds=math.ceil(steps / local),
        local_steps=local,
        fixed_batches=params.batches == "fixed",
        expected_batch=rate * mean_rows,
        most_mentions=None if most is None else most - 1,
        touched=1 if params.variant == "features" else marked + 1 if most is None else most,
        replaced=Relation(params.relation).replaces or (fixed and amplified < 1),
        values_share=params.values_share,
        notes=tuple(_remarks(params, sources, marked, most, max(facts.clients), not central and sampled < 1)),
    )


def sample_size(sampled: float, num_nodes: int) -> int:
    """How many of ``num_nodes`` nodes a sample of fixed size holds: q'n, rounded, at least one."""
    return max(1, round(sampled * num_nodes))


def _require_whole_epochs(groups: int, alone: bool, amplified: bool) -> None:
    """Fixed groups are priced by passes, so a round that is one step alone must be a pass; and a group is a rank among the rows
    that take part, which with secret coins would tell who else was sampled."""
    if amplified:
        raise ScenarioError(
            "dpar: batches: fixed groups the sampled rows by rank, which a secret sample by coins must not show "
            "(calibrated_by: provable); allowed: batches: poisson, or sampled: 1"
        )
    if alone and groups > 1:
        raise ScenarioError(
            f"dpar: batches: fixed needs whole epochs of {groups} steps in each round, found rounds of 1 step; "
            "allowed: batches: poisson, or a batch_size of all clients' rows"
        )


def _remarks(params: Params, sources: int, marked: int, most: int | None, nodes: int, known: bool) -> list[str]:
    """known: clients know which of their nodes were sampled."""
    found = []
    if sources < params.num_sources:
        found.append(
            f"M = {params.num_sources} sources were asked for, but only {sources} nodes take part: all of them are sources"
        )
    if most is not None and (most - 1) * nodes < marked * params.top:
        found.append(
            f"B' = {most}: other rows may name {nodes} nodes {(most - 1) * nodes} times, {marked * params.top} names are "
            "chosen; a row whose names are all cut falls back on its own node"
        )
    if params.variant in noise_of.DPAR_NOISE_FREE:
        found.append("which rows are added up is public and costs nothing; the gradient steps get (1 − split) of the budget")
    if known:
        found.append("clients know which of their nodes were sampled, so the sample amplifies nothing")
    return found


def of_neighbours(params: Params, sizes: Sizes, found: noise_of.StageNoise, private: bool) -> tuple[PlannedRelease, ...]:
    """Stage 1's planned releases (round 0): which neighbours, and for em1 with which weights."""
    if params.variant in noise_of.DPAR_NOISE_FREE:
        return ()
    once = range(1)
    if params.variant == "none":
        rows = NonNegativeRows(1.0, max(1, sizes.cap))
        return (PlannedRelease("neighbours", rows, _IN_CLEAR, Unprotected("rows used as they are"), once),)
    bound: SensitivityBound = Box(0.0, params.clip_entry)
    clear: tuple[NoiseMechanism, Event] = _IN_CLEAR, Unprotected("no noise was asked for")
    noised = {"neighbours": clear, "weights": clear}
    if params.variant == "gm":
        bound = NonNegativeRows(params.clip_vector, sizes.cap)
    if private:
        picks: NoiseMechanism = GumbelTopK(params.top, params.clip_entry * (found.choice or 1.0))
        if params.variant == "gm":
            picks = GaussianNoise(params.clip_vector * (found.choice or 1.0))
        noised["neighbours"] = picks, noise_of.choices_event(sizes, found)
    if private and params.variant == "em1":
        noised["weights"] = LaplaceNoise(params.clip_entry * found.values), noise_of.values_event(sizes, found)
    paths = ("neighbours", "weights") if params.variant == "em1" else ("neighbours",)
    return tuple(PlannedRelease(path, bound, *noised[path], once) for path in paths)


def of_training(
    params: Params, facts: PublicFacts, sizes: Sizes, found: noise_of.StageNoise, private: bool
) -> tuple[PlannedRelease, int]:
    """(the planned gradient steps, clients that must finish). Noise is shared only where each step is summed."""
    rounds = range(sizes.rounds)
    if not private:
        event: Event = Repeated(Unprotected("gradients without noise"), sizes.local_steps)
        return PlannedRelease("model", Unbounded(), _IN_CLEAR, event, rounds), 1
    std, min_clients = params.clip * found.sgd, 1
    if sizes.local_steps == 1:
        std, min_clients = gradient_std(found.sgd, params.clip, facts)
    event = noise_of.round_steps(sizes, found.sgd)
    bound = ClippedSum(params.clip, facts.num_nodes, sensitivity.kernel_name(aggregated_rows.clipped_sum))
    return PlannedRelease("model", bound, GaussianNoise(std), event, rounds), min_clients
