"""DPAR: choose each node's most important neighbours privately, then train on their features privately.

1. A secret sample takes each training node with probability q'. M of them are *sources*: their approximate PageRank vectors
   (``learning.walks``) pass the desk, which picks K neighbours each by one-shot Gumbel noise (em0; em1 adds noisy values) or by
   Gaussian noise on the whole vector (gm). All other sampled nodes have a one-hot row.
2. DP-SGD on a two-layer MLP through Σ_k Π_ik H_k (``learning.aggregated_rows``).
3. Predictions spread over the public test graph.

With one client only the final parameters leave (``Desk.walk``); in a federation each noisy gradient does. Π, the sample and the
batches stay at the client.

``provable`` differs from the paper (PRIVACY.md §4). The sample is drawn by independent coins; candidates, source marks, rates
and denominators follow from public ids; and marked nodes that were not sampled have rows of noise, so that "sampled and zeroed"
and "not sampled" look the same. No node is named by more than B' − 1 other rows, gm uses √2·C₁, and batches are Poisson. In a
federation every client knows its sample, so q' = 1. Under ``published`` the sample has a fixed size m = round(q'n). Its
provable price is computed under replace, the only relation that such a sample amplifies (Balle et al. 2018, Theorem 9), at its
true rate m/n, as if every row named the node.

**Noise, published** (Theorems 1-3; PRIVACY.md §4 says why this is no proof), by the share of one of the M vectors:

    ε_v = ε_pr / (2√(M ln(e + ε_pr/δ_pr))),    δ_v = δ_pr/(2M),
    GM:  σ_pr = √(2 ln(1.25/δ_v))·C1/ε_v,
    EM:  ε_v = 2·min{Kε, Kε(e^{2ε} − 1)/(e^{2ε} + 1) + ε√(2K ln(1/δ_v))}  (+ ε₂ for Laplace values, EM1),
    SGD: Rényi moments of the Poisson Gaussian with q = B/N', ε = RDP + ln(1/δ)/(α − 1) at the best of the released code's
         orders 1.1, 1.2 … 10.9 and 12, 13 … 63;      total: q'·(ε_pr + ε_sgd).

**Noise, provable**: stage 1 has its share of the inner budget, stage 2 the rest of the composed price:

    em:  ρ = M·K·ε₀²/8, scale 2C₂/ε₀      gm: μ = √(2M)·C₁/σ      sgd: Poisson Gaussian with B' touched rows
    ε = ln(1 + q'(e^inner − 1)), δ = q'·inner δ,   + P(more than M_max sources are sampled).

**Guarantee.** Node level, with the relation and B' of the row; the viewer sees every step, but neither Π nor the sampled ids.
One-time sampling amplifies replace like zero-out: by joint convexity the bound needs the distance to "replaced" and to "not
sampled", and "not sampled" equals one replacement (by the zeroed node).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.optimize import brentq
from scipy.special import logsumexp

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.learning import aggregated_rows, walks
from fedgraph.methods import base
from fedgraph.privacy import events, require_positive
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("zhang2024dpar", "fountoulakis2019variational")

_FRACTIONS = 1 + np.arange(1, 100) / 10  # Emory-AIMS/DPAR, dpgnn/utils.py, commit 62159715
_WHOLE_ORDERS = np.arange(12.0, 64.0)
_ORDERS = np.concatenate([_FRACTIONS, _WHOLE_ORDERS])
_POINTS = 4001


def claimed_vector_budget(epsilon: float, delta: float, num_vectors: int) -> tuple[float, float]:
    """(ε_v, δ_v) of one of several vectors (Kairouz, Oh & Viswanath 2017). ``PrivacyError`` unless ε and δ are > 0."""
    require_positive("epsilon", epsilon)
    require_positive("delta", delta)
    return epsilon / (2 * math.sqrt(num_vectors * math.log(math.e + epsilon / delta))), delta / (2 * num_vectors)


def claimed_gm_multiplier(epsilon: float, delta: float, num_vectors: int) -> float:
    """σ_pr / C1 of the published GM option."""
    each, each_delta = claimed_vector_budget(epsilon, delta, num_vectors)
    return math.sqrt(2 * math.log(1.25 / each_delta)) / each


def _em_epsilon(base: float, top: int, delta: float) -> float:
    """ε of the one-shot Gumbel top-k with scale Δ/base by the corollary; base: half of the bounded range of one pick."""
    slope = math.tanh(base)
    return 2 * min(top * base, top * base * slope + base * math.sqrt(2 * top * math.log(1 / delta)))


def claimed_em_base(epsilon: float, top: int, delta: float) -> float:
    """The base with which ``_em_epsilon`` is ``epsilon``; the Gumbel scale is then Δ/base."""
    require_positive("epsilon", epsilon)
    return float(brentq(lambda b: _em_epsilon(b, top, delta) - epsilon, 0.0, epsilon, xtol=1e-14))


def _moments(noise_multiplier: float, sampling_rate: float) -> privacy.ArrayField:
    """Rényi divergence of one step at each of ``_ORDERS``, as the authors compute it: by the integral at fractional orders.

    There ``privacy.rdp.of_poisson_row`` interpolates between whole orders, an upper bound with up to 1 % more noise.
    """
    whole = privacy.rdp.of_poisson_row(noise_multiplier, sampling_rate, _WHOLE_ORDERS)
    if sampling_rate == 1:
        return np.concatenate([_FRACTIONS / (2 * noise_multiplier**2), whole])
    x = np.linspace(-12 * noise_multiplier, _FRACTIONS[-1] + 12 * noise_multiplier, _POINTS)
    log_density = -np.square(x / noise_multiplier) / 2 - math.log(noise_multiplier * math.sqrt(2 * math.pi))
    ratio = np.logaddexp(math.log1p(-sampling_rate), math.log(sampling_rate) + (2 * x - 1) / (2 * noise_multiplier**2))
    log_mean = logsumexp(log_density + _FRACTIONS[:, None] * ratio, axis=1) + math.log(x[1] - x[0])
    return np.concatenate([log_mean / (_FRACTIONS - 1), whole])


def claimed_sgd_epsilon(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """ε by the authors' accountant: Rényi moments at the orders 1.1 … 10.9 and 12 … 63, ε = RDP + ln(1/δ)/(α − 1).

    noise_multiplier: σ / C, > 0. sampling_rate: q of Poisson batches, in (0, 1]. delta: δ_sgd in (0, 1).
    """
    moments = steps * _moments(noise_multiplier, sampling_rate)
    return float(np.min(moments + math.log(1 / delta) / (_ORDERS - 1)))


def claimed_sgd_multiplier(epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The σ / C for which ``claimed_sgd_epsilon`` returns a given ε.

    epsilon: ε_sgd, above ln(1/δ)/62, the least that orders up to 63 can give, else ``PrivacyError``. sampling_rate: q of
    Poisson batches, in (0, 1]. delta: δ_sgd in (0, 1).

    >>> round(claimed_sgd_multiplier(8 / 2 / 0.09, 60 / 210, 800, 1e-3 / 0.09), 3)  # Cora-ML at ε = 8
    1.291
    """
    require_positive("epsilon", epsilon)
    floor = math.log(1 / delta) / (_ORDERS[-1] - 1)
    if epsilon <= floor * (1 + 1e-6):
        raise PrivacyError(f"with orders up to 63 the authors' accountant cannot be below {floor:.6g}, asked for {epsilon}")

    def gap(log_sigma: float) -> float:
        return math.log(claimed_sgd_epsilon(math.exp(log_sigma), sampling_rate, steps, delta) / epsilon)

    return math.exp(brentq(gap, math.log(0.1), math.log(1e4), xtol=1e-10))


_DPAR_NOISE_FREE = ("random", "features")  # kinds without a private choice
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the budget for choosing neighbours, as in the paper's Figures 2 to 6
_MOST_SGD_NOISE = 1e4  # the published search ends here; beyond it a budget is called too small


@dataclass(frozen=True)
class _Sizes:
    """Public numbers of a run, on which the noise depends."""

    kind: str  # em0, em1, gm, random, features or none
    sampled: float  # q', share of nodes that take part
    # the rate that amplifies: 1 if clients know the sample; size/n after rounding, the largest of all clients, if the sample
    # has a fixed size; else q'
    amplified: float
    fixed: bool  # whether the sample has a fixed size
    sources: int  # M, for each client
    marked: int  # number of ids that may become a source
    cap: int  # most of them that hold data
    missed: float  # probability that more do
    top: int  # K, neighbours of each source
    rate: float  # probability that a row is in a gradient step
    groups: int  # steps in one pass over the rows
    rounds: int  # number of rounds
    local_steps: int  # gradient steps in each round
    fixed_batches: bool  # whether steps take fixed groups of rows in turn, instead of drawing them by coins
    expected_batch: float  # rows per step and client
    most_mentions: int | None  # B' − 1, most other rows that may name a node; None: any number
    touched: int  # B' as priced
    replaced: bool  # whether the unit's rows change, instead of vanishing
    values_share: float  # EM1's share of stage 1 for values
    notes: tuple[str, ...]  # sentences for the report

    @property
    def steps(self) -> int:
        """Gradient steps of all rounds."""
        return self.rounds * self.local_steps


@dataclass(frozen=True)
class _StageNoise:
    """The multipliers of both stages."""

    choice: float  # Gumbel scale / C₂ (em) or noise std / C₁ (gm); 0 without stage 1
    values: float  # Laplace scale / C₂ (em1, else 0)
    sgd: float  # noise std / C
    notes: tuple[str, ...] = ()  # what a reader must know


def _choices_event(sizes: _Sizes, noise: _StageNoise) -> privacy.Event:
    """The choices of neighbours of all sources that hold data."""
    parts: tuple[privacy.Event, ...] = (events.ApproxDP(0.0, sizes.missed / sizes.amplified),) if sizes.missed else ()
    if noise.choice == 0:
        return privacy.Composed(())
    if sizes.kind == "gm":
        return privacy.Composed((privacy.Gaussian(noise.choice / math.sqrt(2 * sizes.cap)), *parts))
    return privacy.Composed((privacy.Repeated(events.BoundedRange(2 / noise.choice), sizes.cap * sizes.top), *parts))


def _values_event(sizes: _Sizes, noise: _StageNoise) -> privacy.Event:
    """EM1's noisy values: one Laplace per chosen entry."""
    return privacy.Repeated(events.Laplace(noise.values), sizes.cap * sizes.top) if noise.values else privacy.Composed(())


def _round_steps(sizes: _Sizes, multiplier: float) -> privacy.Repeated:
    """The steps of one round: rows drawn by coins, or whole passes over fixed batches."""
    if not sizes.fixed_batches:
        return privacy.Repeated(
            events.PoissonGaussian(multiplier, sizes.rate, sizes.touched, sizes.replaced), sizes.local_steps
        )
    one_pass = events.EpochGaussian(multiplier, sizes.groups, sizes.touched, sizes.replaced)
    return privacy.Repeated(one_pass, sizes.local_steps // sizes.groups)


def _whole(sizes: _Sizes, noise: _StageNoise) -> privacy.Event:
    """All that is released."""
    steps = privacy.Repeated(_round_steps(sizes, noise.sgd), sizes.rounds)
    inner = privacy.Composed((_choices_event(sizes, noise), _values_event(sizes, noise), steps))
    return inner if sizes.amplified >= 1 else events.SampledOnce(inner, sizes.amplified)


@lru_cache(maxsize=1024)
def _as_provable(sizes: _Sizes, epsilon: float, delta: float, split: float) -> _StageNoise:
    """Noise whose composed price is at most ε: stage 1 has the share ``split`` of the inner budget, stage 2 the rest."""
    share = split * privacy.amplification.epsilon_before(epsilon, sizes.amplified)
    inner_delta = privacy.amplification.delta_before(delta, sizes.amplified)

    def first(multiplier: float) -> _StageNoise:
        if sizes.kind == "gm":
            return _StageNoise(multiplier * math.sqrt(2 * sizes.cap), 0.0, 0.0)
        values = 2 * math.sqrt((1 - sizes.values_share) / sizes.values_share) * multiplier if sizes.kind == "em1" else 0.0
        return _StageNoise(2 * multiplier, values, 0.0)

    chosen = _StageNoise(0.0, 0.0, 0.0)
    if sizes.kind not in _DPAR_NOISE_FREE:

        def cost(multiplier: float) -> privacy.Event:
            noise = first(multiplier)
            return privacy.Composed((_choices_event(sizes, noise), _values_event(sizes, noise)))

        chosen = first(privacy.calibrate.noise_multiplier_of(cost, share, inner_delta))
    sgd = privacy.calibrate.noise_multiplier_of(
        lambda m: _whole(sizes, _StageNoise(chosen.choice, chosen.values, m)), epsilon, delta
    )
    return _StageNoise(chosen.choice, chosen.values, sgd)


@lru_cache(maxsize=1024)
def _as_published(sizes: _Sizes, epsilon: float, delta: float, split: float) -> _StageNoise:
    """Noise by the paper's formulas: ε_pr = split·ε/q', ε_sgd the rest, δ/2 to each stage before sampling."""
    inner, half_delta = epsilon / sizes.amplified, delta / 2 / sizes.amplified
    choice, values = 0.0, 0.0
    if sizes.kind == "gm":
        choice = claimed_gm_multiplier(split * inner, half_delta, sizes.cap)
    elif sizes.kind not in _DPAR_NOISE_FREE:
        each, each_delta = claimed_vector_budget(split * inner, half_delta, sizes.cap)
        kept = sizes.values_share if sizes.kind == "em1" else 0.0
        choice = 1 / claimed_em_base(each * (1 - kept), sizes.top, each_delta)
        values = sizes.top / (each * kept) if kept else 0.0
    floor = claimed_sgd_epsilon(_MOST_SGD_NOISE, sizes.rate, sizes.steps, half_delta)
    asked = (1 - split) * inner
    if asked <= floor:
        note = (
            f"the published accountant never says less than ε_sgd = {floor:.3g} (orders below 64), {asked:.3g} was asked for: "
            f"noise multiplier {_MOST_SGD_NOISE:g} is used"
        )
        return _StageNoise(choice, values, _MOST_SGD_NOISE, (note,))
    least, how = 0.1, (sizes.rate, sizes.steps, half_delta)
    if claimed_sgd_epsilon(least, *how) < asked:
        return _StageNoise(choice, values, least)
    return _StageNoise(choice, values, claimed_sgd_multiplier(asked, *how))


def _least_share(sizes: _Sizes, candidates: int, budget: base.Budget) -> tuple[float, str]:
    """(share of the budget, why): the smallest of ``_SHARES`` at which an entry at the clip stands out; the first if none does.

    It stands out if the clip is at least the expected largest noise on ``candidates`` empty entries (Gumbel b·ln n, Gaussian
    σ·√(2 ln n)). All of this is public, so the rule costs nothing.
    """
    among = math.sqrt(2 * math.log(candidates)) if sizes.kind == "gm" else math.log(candidates)
    drowned = math.inf
    for share in _SHARES:
        calibrated = _as_published if budget.calibrated_by == "published" else _as_provable
        drowned = calibrated(sizes, budget.epsilon, budget.delta, share).choice * among
        if drowned <= 1:
            return share, f"split: public takes {share:g}, the smallest share at which the largest possible entry stands out"
    return _SHARES[0], (
        f"split: public takes {_SHARES[0]:g}: at no share does the largest possible entry of a PageRank row stand out (at "
        f"{_SHARES[-1]:g} the largest noise on {candidates} empty entries is still {drowned:.3g} times as large)"
    )


def _published_epsilon(sizes: _Sizes, noise: _StageNoise, delta: float) -> float:
    """q'·(ε_pr + ε_sgd), the paper's ε of this noise."""
    half_delta = delta / 2 / sizes.amplified
    choice = 0.0
    if noise.choice:
        each_delta = half_delta / (2 * sizes.cap)
        if sizes.kind == "gm":
            each = math.sqrt(2 * math.log(1.25 / each_delta)) / noise.choice
        else:
            each = _em_epsilon(1 / noise.choice, sizes.top, each_delta)
            each += sizes.top / noise.values if noise.values else 0.0
        choice = _all_vectors(each, half_delta, sizes.cap)
    sgd = claimed_sgd_epsilon(noise.sgd, sizes.rate, sizes.steps, half_delta)
    return sizes.amplified * (choice + sgd)


def _all_vectors(each: float, delta: float, num_vectors: int) -> float:
    """ε_pr of vectors that cost ``each``: the inverse of ``claimed_vector_budget`` in ε."""

    def gap(epsilon: float) -> float:
        return claimed_vector_budget(epsilon, delta, num_vectors)[0] - each

    high = max(each, 1.0)
    while gap(high) < 0:
        high *= 2
        if high > 1e300:
            raise PrivacyError(f"no ε_pr gives ε_v = {each}")
    return float(brentq(gap, 1e-300, high, xtol=1e-14 * high))


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
    # nothing reads this constant, nor ``tail`` and ``local_steps``, but they are part of the names of noise streams
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
    optimiser: ClassVar[Literal["adam"]] = "adam"  # rule that follows the noisy gradients
    local_steps: ClassVar[str] = "auto"  # steps per round: all of them, 1 if federated
    propagation_steps: int = Field(2, ge=0, description="P, power iterations at inference")


_IN_CLEAR = privacy.Disclose("no noise was asked for")
_LEAST_SAMPLE = 210  # nodes: 9 % of Cora-ML, the paper's smallest sample
_MISSED_SHARE = 1e-3  # part of δ spent on "more sources were sampled than the noise covers"


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    layout: learning.Layout  # of the parameters
    sizes: _Sizes  # public counts
    noise: _StageNoise  # the multipliers of both stages


Planned: TypeAlias = base.Plan[Params, _Made]


def _sizes_of(params: Params, facts: base.PublicFacts, budget: base.Budget) -> _Sizes:
    """The numbers of a run, from public facts. ``ScenarioError`` if K exceeds the candidates or q' is no share."""
    central = facts.num_clients == 1
    if params.sampled == "auto":
        sampled = min(1.0, max(0.09, _LEAST_SAMPLE / facts.num_nodes)) if central else 1.0
    else:
        sampled = float(params.sampled)
    if not 0 < sampled <= 1:
        raise ScenarioError(f"dpar: sampled = {sampled}; allowed: a share in (0, 1], e.g. 0.09, or auto")
    fixed = budget.calibrated_by == "published" or not budget.private or params.variant == "none"
    taking_part = [_sample_size(sampled, n) for n in facts.clients]
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
    return _Sizes(
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
        replaced=privacy.Relation(params.relation).replaces or (fixed and amplified < 1),
        values_share=params.values_share,
        notes=tuple(_remarks(params, sources, marked, most, max(facts.clients), not central and sampled < 1)),
    )


def _sample_size(sampled: float, num_nodes: int) -> int:
    """The size of a fixed sample of ``num_nodes`` nodes: q'n, rounded, at least one."""
    return max(1, round(sampled * num_nodes))


def _require_whole_epochs(groups: int, alone: bool, amplified: bool) -> None:
    """``ScenarioError`` unless fixed groups can be priced. They are priced by passes, so a round of one step must be a pass. A
    group depends on the rank of a row among those that take part, which would show a secret sample.
    """
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
    """Sentences for the report. known: whether clients know which of their nodes were sampled."""
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
    if params.variant in _DPAR_NOISE_FREE:
        found.append("which rows are added up is public and costs nothing; the gradient steps get (1 − split) of the budget")
    if known:
        found.append("clients know which of their nodes were sampled, so the sample amplifies nothing")
    return found


def _of_neighbours(params: Params, sizes: _Sizes, found: _StageNoise, private: bool) -> tuple[privacy.PlannedRelease, ...]:
    """The planned releases of stage 1, in round 0: the choice of neighbours, and for em1 their weights."""
    if params.variant in _DPAR_NOISE_FREE:
        return ()
    once = range(1)
    if params.variant == "none":
        rows = privacy.NonNegativeRows(1.0, max(1, sizes.cap))
        return (privacy.PlannedRelease("neighbours", rows, _IN_CLEAR, privacy.Unprotected("rows used as they are"), once),)
    bound: privacy.SensitivityBound = privacy.Box(0.0, params.clip_entry)
    clear: tuple[privacy.NoiseMechanism, privacy.Event] = _IN_CLEAR, privacy.Unprotected("no noise was asked for")
    noised = {"neighbours": clear, "weights": clear}
    if params.variant == "gm":
        bound = privacy.NonNegativeRows(params.clip_vector, sizes.cap)
    if private:
        picks: privacy.NoiseMechanism = privacy.GumbelTopK(params.top, params.clip_entry * (found.choice or 1.0))
        if params.variant == "gm":
            picks = privacy.GaussianNoise(params.clip_vector * (found.choice or 1.0))
        noised["neighbours"] = picks, _choices_event(sizes, found)
    if private and params.variant == "em1":
        noised["weights"] = privacy.LaplaceNoise(params.clip_entry * found.values), _values_event(sizes, found)
    paths = ("neighbours", "weights") if params.variant == "em1" else ("neighbours",)
    return tuple(privacy.PlannedRelease(path, bound, *noised[path], once) for path in paths)


def _of_training(
    params: Params, facts: base.PublicFacts, sizes: _Sizes, found: _StageNoise, private: bool
) -> tuple[privacy.PlannedRelease, int]:
    """(the planned gradient steps, clients that must finish). Clients share noise only if each step is summed."""
    rounds = range(sizes.rounds)
    if not private:
        event: privacy.Event = privacy.Repeated(privacy.Unprotected("gradients without noise"), sizes.local_steps)
        return privacy.PlannedRelease("model", privacy.Unbounded(), _IN_CLEAR, event, rounds), 1
    std, min_clients = params.clip * found.sgd, 1
    if sizes.local_steps == 1:
        std, min_clients = base.gradient_std(found.sgd, params.clip, facts)
    event = _round_steps(sizes, found.sgd)
    bound = privacy.ClippedSum(params.clip, facts.num_nodes, privacy.sensitivity.kernel_name(aggregated_rows.clipped_sum))
    return privacy.PlannedRelease("model", bound, privacy.GaussianNoise(std), event, rounds), min_clients


def scaled(graph: Graph, scaling: str) -> Graph:
    """``graph`` with feature rows of unit norm, or as they are."""
    return dataclasses.replace(graph, features=learning.unit_matrix_rows(graph.features)) if scaling == "unit" else graph


def choose(plan: Planned, graph: Graph, streams: base.PlanStreams, desk: privacy.Desk) -> aggregated_rows.AggregatedRows:
    """The rows to train on: samples, chooses neighbours through the desk, and limits mentions and columns."""
    params, found = plan.params, plan.made.sizes
    public = streams.generator("public-coins")
    view, present, sources = _view(graph, found, streams.generator("sample"), public)
    # The vectors of other sources pass the desk as zeros. If a sample of independent coins amplifies, so does that of a sampled
    # node without edges: it must look like one that was not sampled, since a zeroed node has no edges either.
    known = present if found.fixed or found.amplified >= 1 else present & (view.degrees > 0)
    holding = np.flatnonzero(known[sources])[: found.cap]
    if params.variant == "none":
        pi = _unprotected(plan, view, sources, desk)
    else:
        chosen, weights = _choices(plan, view, sources, holding, public, desk)
        if found.most_mentions is not None:
            ties = public.random(sources.size)
            chosen = aggregated_rows.limit_mentions(sources, chosen, found.most_mentions, ties)
        tail = np.setdiff1d(np.flatnonzero(present), sources)
        given = (view.num_nodes, sources, chosen, weights, tail, params.tau, params.columns)
        pi = aggregated_rows.matrix_of(*given)
    rows = np.flatnonzero(present & (np.diff(pi.indptr) > 0))
    return aggregated_rows.prepare(view.features, pi[rows], view.labels[rows], clipped=params.variant != "none")


def _view(
    graph: Graph, found: _Sizes, secret: np.random.Generator, public: np.random.Generator
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """(view, which of its nodes take part, the nodes marked as sources)."""
    n = graph.num_nodes
    if found.fixed:
        size = _sample_size(found.sampled, n)
        view = graph.induced(secret.choice(n, size, replace=False))
        return view, np.ones(size, bool), np.arange(min(found.sources, size))
    present = secret.random(n) < found.sampled
    keep = sp.diags_array(present.astype(np.float64), format="csr")
    adjacency = sp.csr_array(keep @ graph.adjacency @ keep)
    adjacency.eliminate_zeros()
    features = sp.csr_array(keep.astype(graph.features.dtype) @ graph.features)
    view = dataclasses.replace(graph, adjacency=adjacency, features=features, labels=np.where(present, graph.labels, -1))
    return view, present, np.sort(public.choice(n, min(found.marked, n), replace=False))


def _choices(
    plan: Planned, view: Graph, sources: np.ndarray, holding: np.ndarray, public: np.random.Generator, desk: privacy.Desk
) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights), [S, K] each. Rows of sources that hold no data are noise: they pass the desk as zeros."""
    params = plan.params
    even = np.full((sources.size, params.top), 1.0 / params.top)
    if params.variant == "random":
        drawn = [public.choice(view.num_nodes, params.top, replace=False) for _ in sources]
        return np.array(drawn, np.int64).reshape(sources.size, params.top), even
    if params.variant == "features":
        return sources[:, None], np.ones((sources.size, 1))
    vectors = np.zeros((sources.size, view.num_nodes))
    walked = walks.approximate_pagerank(view.adjacency, sources[holding], params.alpha, params.rho, params.gamma)
    vectors[holding] = walked.toarray()
    chosen = released = _passed(desk, "neighbours", vectors)
    if not isinstance(plan.schedule.releases[0].mechanism, privacy.GumbelTopK):
        chosen = aggregated_rows.choose_largest(released, params.top)
    if params.variant == "gm":
        return chosen, np.take_along_axis(released, chosen, axis=1)
    if params.variant == "em0":
        return np.array(chosen), even
    values = np.take_along_axis(vectors, chosen, axis=1)
    return np.array(chosen), np.array(_passed(desk, "weights", values))


def _unprotected(plan: Planned, view: Graph, sources: np.ndarray, desk: privacy.Desk) -> sp.csr_array:
    """Π of DPAR without DP: whole PageRank rows at the sources, one-hot rows elsewhere."""
    params = plan.params
    rows = walks.approximate_pagerank(view.adjacency, sources, params.alpha, params.rho, params.gamma)
    _passed(desk, "neighbours", rows.toarray())
    place = sp.csr_array((np.ones(sources.size), (sources, np.arange(sources.size))), shape=(view.num_nodes, sources.size))
    empty = sources[np.diff(rows.indptr) == 0]
    alone = np.concatenate([np.setdiff1d(np.arange(view.num_nodes), sources), empty])
    return sp.csr_array(place @ rows + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=(view.num_nodes,) * 2))


def _passed(desk: privacy.Desk, path: str, value: np.ndarray) -> np.ndarray:
    """The release of ``value`` in round 0; in later rounds its replay."""
    return desk.release(path, value).value if desk.round == 0 else desk.replay(path, value)


class Batches:
    """The rows of one step after another: by fresh coins in each step, or fixed groups of ids in turn.

    parts: (number of rows, streams) of each client, whose rows follow one another; each has its own coins. found: the numbers
    of the run. fixed: whether groups are fixed. round_: the first step is that of this round.
    """

    def __init__(self, parts: Sequence[tuple[int, base.PlanStreams]], found: _Sizes, fixed: bool, round_: int) -> None:
        self._found, self._fixed = found, fixed
        self._coins = [(size, streams.generator("batches")) for size, streams in parts]
        self._step = round_ * found.local_steps
        self._group = np.concatenate([np.arange(size) % found.groups for size, _ in parts])

    def next(self) -> np.ndarray:
        """The rows of the next step, int64, sorted."""
        self._step += 1
        if self._fixed:
            return np.flatnonzero(self._group == (self._step - 1) % self._found.groups)
        return np.flatnonzero(np.concatenate([coins.random(size) for size, coins in self._coins]) < self._found.rate)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a client prepares."""

    graph: Graph  # of the client, with the features as the learner sees them
    memo: dict[str, aggregated_rows.AggregatedRows] = field(default_factory=dict)  # its rows, once they are chosen


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers, where a round is one step."""

    first: np.ndarray  # Adam's first moment estimate, float32 [num_parameters]
    second: np.ndarray  # Adam's second moment estimate, float32 [num_parameters]
    steps: int  # number of steps so far


_NEW = Memory(np.zeros(0, np.float32), np.zeros(0, np.float32), 0)  # before the first step


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Sizes, noise and releases, from public facts and the budget."""
    private = budget.private and params.variant != "none"
    sizes = _sizes_of(params, facts, budget)
    relation = privacy.Relation(params.relation)
    notes = list(sizes.notes)
    found, published = _StageNoise(0.0, 0.0, 0.0), None
    if private:
        split = 0.0 if params.variant in _DPAR_NOISE_FREE else 0.5
        if isinstance(params.split, float):
            split = params.split
        elif params.split == "public" and split:
            # the rows of the smallest client may name its sample where that has a fixed size, else all its ids
            clients, q = facts.clients, sizes.sampled
            candidates = min(_sample_size(q, n) if sizes.fixed else n for n in clients)
            split, why = _least_share(sizes, max(2, candidates), budget)
            notes.append(why)
        calibrated = _as_published if budget.calibrated_by == "published" else _as_provable
        found = calibrated(sizes, budget.epsilon, budget.delta, split)
        published = _published_epsilon(sizes, found, budget.delta)
        notes += found.notes
        if found.sgd > sizes.expected_batch:
            notes.append(
                f"budget too small for useful noise: each step adds std {found.sgd:.3g}·C per coordinate to a sum whose norm "
                f"is at most {sizes.expected_batch:.3g}·C on average; expect chance-level accuracy"
            )
    training, min_clients = _of_training(params, facts, sizes, found, private)
    sampled = sizes.amplified if sizes.amplified < 1 else None
    assumed = (
        base.FACTS_TESTED_IN_PUBLIC if sampled is None else (*base.FACTS_TESTED_IN_PUBLIC, privacy.Assumption.SAMPLE_SECRET)
    )
    made = _Made(learning.Layout((facts.num_features, params.hidden, facts.num_classes)), sizes, found)
    # a round's gradient of a union of clients is the sum of theirs if each node is one row, in batches by coins
    alone = params.variant == "features" and sizes.sampled == 1 and not sizes.fixed
    sums = base.PlanSums(suffice=True, additive=alone and params.batches == "poisson" and sizes.local_steps == 1)
    once = sampled if private else None
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=False, sampled_once=once)
    releases = (*_of_neighbours(params, sizes, found, private), training)
    schedule = base.PlanSchedule(sizes.rounds, releases, min_clients)
    return base.Plan("dpar", params, facts, guarantee, schedule, made, published, sums=sums, notes=tuple(notes))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return base.State({"parameters": plan.made.layout.start(rng)}, _NEW)


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    return _Work(scaled(subgraph.graph, plan.params.features))


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """Chooses neighbours in round 0; in every round takes ``local_steps`` noisy gradient steps from the broadcast model.

    Sends the noisy gradient if a round is one step, else the parameters after its steps, weighted by the client's public share
    of the nodes.
    """
    params, sizes = plan.params, plan.made.sizes
    if round_ == 0 or "rows" not in work.memo:  # a worker that was restarted replays round 0's choice with round 0's noise
        first = dataclasses.replace(streams, path=(*streams.path[:-1], 0))
        work.memo["rows"] = choose(plan, work.graph, first, desk)
    rows = work.memo["rows"]
    parts = [(plan.facts.clients[c], streams.of_client(c)) for c in desk.together] or [(rows.num_rows, streams)]
    batches = Batches(parts, sizes, params.batches == "fixed", round_)
    clip = None if params.variant == "none" else params.clip

    def private(state: learning.StatefulDescent) -> np.ndarray:
        return aggregated_rows.clipped_sum(plan.made.layout, state.vector, rows, batches.next(), clip)

    def follow(state: learning.StatefulDescent, noised: np.ndarray) -> learning.StatefulDescent:
        state.step(noised, 1.0 / sizes.expected_batch)
        return state

    if sizes.local_steps == 1 and plan.facts.num_clients > 1:
        return {"gradient": desk.release("model", lambda: private(learning.StatefulDescent(model["parameters"], 0.0)))}
    weight = np.float32(work.graph.num_nodes / plan.facts.num_nodes)
    begin = learning.StatefulDescent(model["parameters"], params.learning_rate, params.optimiser)
    walk = privacy.DeskWalk(begin, private, follow, lambda state: state.vector * weight)
    return {"parameters": desk.walk("model", walk)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """The average of the clients' parameters, or one optimiser step on the sum of their gradients."""
    if "parameters" in inbox.sums:
        return base.State({"parameters": inbox.sums["parameters"]}, state.memory)
    params, memory = plan.params, state.memory
    before, moments = state.model["parameters"], (memory.first, memory.second, memory.steps)
    found = learning.StatefulDescent(before, params.learning_rate, params.optimiser, *moments)
    found.step(inbox.sums["gradient"], 1.0 / (plan.made.sizes.expected_batch * plan.facts.num_clients))
    return base.State({"parameters": found.vector}, Memory(found.first, found.second, found.steps))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c]: Q ← (1 − α)D⁻¹AQ + αH on a public graph, P times from Q = H (Equation 4)."""
    features = scaled(graph, plan.params.features).features
    scores = learning.layouts.logits(plan.made.layout, state.model["parameters"], learning.FeatureMatrix(features))
    return walks.personalised_pagerank(graph.adjacency, scores, plan.params.alpha, plan.params.propagation_steps)


def _tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """The state with the weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    x = learning.FeatureMatrix(scaled(graph, plan.params.features).features)
    own = learning.own_models.tune(plan.made.layout, state.model["parameters"], x, graph.labels, rng)
    return dataclasses.replace(state, model={**state.model, "parameters": own})


OFFERS: base.Offers[Params, _Made, _Work, Memory] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"epochs": 4}),
        base.MethodSituation("inductive", (privacy.Trust.CURATOR,), {"variant": "gm", "epochs": 4}),
        base.MethodSituation("inductive", (privacy.Trust.CURATOR,), {"variant": "em1", "sampled": 1.0, "epochs": 4}),
    ),
    ignores_budget={"variant": "none"},
    tuned=_tuned,
)
