"""What the mechanisms of pfl-research are worth, from what an accountant's call or the benchmarks' flags say.

    gaussian    one clipped sum with Gaussian noise per iteration, users Poisson-sampled; adaptive clipping is the same sum with
                one coordinate more, whose joint norm is the clip
    single      the noise of one iteration that is (ε, δ) by itself (``construct_single_iteration``), used in every iteration
    laplace     L1 clip, noise of scale clip/ε in every coordinate: ε per participation
    banded      correlated noise (``_banded``)
    joint       several mechanisms on disjoint parts of what one cohort sends. The cohort is drawn **once** for all of them, so
                amplification is that of the joint release: parts with Gaussian noise are one Gaussian, 1/m² = Σ 1/mᵢ²; with a
                Laplace part none is claimed. Adding up amplified parts, each with coins of its own, is too little.

Unit: a user. Zero-out Δ = clip, replace Δ = 2·clip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from fedgraph.pricing import costs
from fedgraph.pricing.banded_noise import EXACT, Sensitivity
from fedgraph.pricing.base import MODELS, SERVER, Cost, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import Price, price
from fedgraph.privacy.events import Composed, Event, Gaussian, Laplace, PoissonGaussian, Repeated

RATES, ROUNDS, DELTAS = (1.0, 0.1, 0.01, 0.001), (5000.0, 1000.0, 100.0, 1.0), (1e-8, 1e-7, 1e-6, 1e-5)
FLAGS = "the benchmark's flags"
RELATIONS = (("zero-out", False), ("replace", True))
ORDER = "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is zero-out."
SIMULATED = "pfl's simulator draws users uniformly with replacement; the coins are those of a deployment"
UNPROTECTED = (
    "local metrics, unless they are privatised too",
    "the server, where the mechanism is applied centrally",
    SIMULATED,
)


@dataclass(frozen=True)
class Said:
    """What the file says; None where it does not. noise: std (Laplace: scale) in clips; where it is None it is found such that
    ``rounds`` iterations cost (epsilon, delta). scale: what a simulation multiplies the noise by. trained: the sampling rate
    of the cohort that is really trained, where it differs from the accountant's ``rate``. name: who claims ε."""

    name: str
    noise: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    rate: float | None = None
    rounds: int | None = None
    scale: float = 1.0
    trained: float | None = None

    def at(self, facts: Facts) -> tuple[float, int, float]:
        """(sampling rate, rounds, δ)."""
        rate = self.rate if self.rate is not None else facts["sampling rate"]
        rounds = self.rounds if self.rounds is not None else int(facts["rounds"])
        return rate, rounds, self.delta if self.delta is not None else facts["delta"]

    def std(self, rate: float, compositions: int, delta: float) -> float:
        if self.noise is not None:
            return self.noise
        return calibrate.noise_multiplier(
            lambda m: Repeated(PoissonGaussian(m, rate, touched_rows=1, replaced=False), compositions),
            self.epsilon or 0.0,
            delta,
        )


Rows = Callable[[Facts, float], tuple[Row, ...]]


def gaussian(said: Said, order: str = ORDER) -> Reading:
    """One Gaussian sum per iteration, whose accountant is ``said``."""

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate, times, delta = said.at(facts)
        std = said.std(rate, times, delta) * factor
        out = []
        for relation, replaced in RELATIONS:
            why = f"noise std = {std:.4g}·clip on the sum, Poisson-sampled at rate {rate:g}"
            out.append(Row("user", relation, MODELS, costs.poisson(std, rate, replaced), times, delta, why))
        if said.scale < 1:
            real = rate if said.trained is None else said.trained
            words = f"a real run with noise_scale = {said.scale:g}: std = {std * said.scale:.4g}·clip is added, rate {real:g}"
            out.append(Row("user", "zero-out", MODELS, costs.poisson(std * said.scale, real), times, delta, words))
        return tuple(out)

    return _reading(said, rows, order)


def single(said: Said) -> Reading:
    """Gaussian noise that makes one iteration (ε, δ) by itself, in every iteration."""
    once = calibrate.noise_multiplier(Gaussian, said.epsilon or 0.0, said.delta or 0.0)
    found = gaussian(replace(said, noise=once, epsilon=None))
    claim = Published(said.epsilon, said.delta, "per round", f"{said.name}: for one iteration")

    def settings(factor: float) -> dict[str, Setting]:
        mu = 1 / (once * factor)
        return {"epsilon": price(Gaussian(1 / mu), said.delta or 0.0).epsilon}

    return replace(found, published=(claim,), settings=settings)


def laplace(said: Said) -> Reading:
    """Laplace noise of scale clip/ε per coordinate, L1 clip."""
    epsilon = said.epsilon if said.epsilon is not None else 1 / (said.noise or math.inf)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate, times, delta = said.at(facts)
        scale = factor / epsilon if epsilon > 0 else math.inf
        why = f"noise scale = {scale:.4g}·clip per coordinate, clip in L1, Poisson-sampled at rate {rate:g}"
        return tuple(
            Row("user", name, MODELS, costs.sampled_laplace(scale, rate, replaced, False), times, delta, why)
            for name, replaced in RELATIONS
        )

    claim = Published(epsilon, 0.0, "per round", said.name)
    settings: Callable[[float], dict[str, Setting]] = lambda factor: {"epsilon": epsilon / factor}  # noqa: E731
    return replace(_reading(said, rows), published=(claim,), settings=settings)


def banded(said: Said, separation: int | None, sampler: str | None) -> Reading:
    """Correlated noise. separation: the file's min_separation; sampler: how the file draws users, where it says so."""
    free = sampler == "random"
    ask_column = said.rounds is not None and separation is not None and said.rounds > EXACT

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate, times, delta = said.at(facts)
        gap = separation if separation is not None else int(facts["min separation"])
        found = Sensitivity(times, gap, facts.get("largest column norm"))
        std = said.std(rate, found.most, delta) * factor
        kept, every, groups = _banded_rows(found, std, rate, times, delta)
        real = _banded_rows(found, std * said.scale, rate, times, delta)[0][0]
        words = f"a real run with noise_scale = {said.scale:g}: {real.why}"
        scaled = (replace(real, why=words),) if said.scale < 1 else ()
        return (*every, *kept, *groups, *scaled) if free else (*kept, *every, *groups, *scaled)

    promise = {
        None: "min_separation is a promise about who is sampled; nothing in this file keeps it",
        "random": "its sampler is 'random', which keeps no separation: the promise of min_separation is broken",
    }.get(
        sampler, f"the sampler {sampler!r} keeps users apart only as long as no user is sampled twice in min_separation rounds"
    )
    order = f"{ORDER} The noise of a round is correlated with that of earlier rounds; {promise}."
    asked = []
    if separation is None:
        question = "How many rounds at least lie between two rounds of one user (min_separation)?"
        asked.append(Unknown("min separation", question, (2.0, 10.0, 100.0, 1000.0)))
    if ask_column and said.rounds is not None and separation is not None:
        question = "Which is the largest column norm of the matrix that pfl saved (numpy.linalg.norm(numpy.load("
        question += "'query_matrix.npy'), axis=0).max())? It is not built here for more than "
        worst = Sensitivity(said.rounds, separation).once()
        values = tuple(v for v in (worst, 10.0, 3.0, 1.0) if v <= worst)
        asked.append(Unknown("largest column norm", f"{question}{EXACT} rounds.", values, worst))
    return _reading(said, rows, order, tuple(asked))


def _banded_rows(
    found: Sensitivity, std: float, rate: float, times: int, delta: float
) -> tuple[tuple[Row, ...], tuple[Row, ...], tuple[Row, ...]]:
    """(participations apart, every round, groups of users)."""
    gap, most = found.separation, found.most
    proof = "pfl's matrix" if found.exact else "any matrix with rows of norm one and this band"
    kept = []
    for relation, replaced in RELATIONS:
        why = (
            f"noise std = {std:.4g}·clip before C⁻¹; a user in at most {most:,} of {times:,} rounds, {gap:,} apart, moves "
            f"it by {found.apart(times):.4g}·{'2·' if replaced else ''}clip ({proof}; the paper's: {math.sqrt(most):.4g})"
        )
        kept.append(Row("user", relation, MODELS, _moved(found.apart, std, replaced), times, delta, why))
    why = f"if a user may be sampled in every round: moved by {found.always(times):.4g}·clip"
    every = Row("user", "zero-out", MODELS, _moved(found.always, std, False), times, delta, why)
    inside = min(1.0, gap * rate)
    why = (
        f"if users are cut into {gap:,} groups and round t samples group t mod {gap:,} by secret coins, at rate "
        f"{inside:.4g} in it (amplification of banded matrices, arXiv 2306.08153, with the noise divided by the largest column "
        f"norm, {found.once():.4g}; or none)"
    )

    def grouped(rounds: int, at: float) -> Price:
        amplified = costs.poisson(std / found.once(), inside)(math.ceil(rounds / gap), at)
        return min(amplified, _moved(found.apart, std, False)(rounds, at), key=lambda p: p.epsilon)

    return tuple(kept), (every,), (Row("user", "zero-out", MODELS, grouped, times, delta, why),)


def _moved(sensitivity: Callable[[int], float], std: float, replaced: bool) -> Cost:
    def cost(rounds: int, delta: float) -> Price:
        if rounds == 0:
            return price(Composed(()), delta)
        return price(Gaussian(std / (sensitivity(rounds) * (2 if replaced else 1))), delta)

    return cost


@dataclass(frozen=True)
class Part:
    """One of several mechanisms on the same cohort. kind: gaussian or laplace; noise: in its own clips."""

    kind: str
    noise: float
    rate: float
    rounds: int


def joint(said: Said, parts: tuple[Part, ...], options: str) -> Reading:
    """Several mechanisms at once. options: the name of the option that holds their noise."""
    times, rate = max(p.rounds for p in parts), max(p.rate for p in parts)
    alike = all(p.kind == "gaussian" for p in parts)

    def composed(factor: float, replaced: bool) -> Event:
        half = factor / (2 if replaced else 1)
        return Composed(tuple(Gaussian(p.noise * half) if p.kind == "gaussian" else Laplace(p.noise * half) for p in parts))

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        _, _, delta = replace(said, rate=rate, rounds=times).at(facts)
        out = []
        for relation, replaced in RELATIONS:
            if alike:
                together = factor / math.sqrt(sum(p.noise**-2 for p in parts))
                cost = costs.poisson(together, rate, replaced)
                why = f"{len(parts)} Gaussian parts of one cohort are one release: std = {together:.4g}·clip, rate {rate:g}"
            else:
                cost = costs.events(composed(factor, replaced))
                why = f"{len(parts)} parts of one cohort, Laplace among them: composed, without amplification by sampling"
            out.append(Row("user", relation, MODELS, cost, times, delta, why))
        return tuple(out)

    def settings(factor: float) -> dict[str, Setting]:
        return {f"{options}[{i}]": p.noise * factor for i, p in enumerate(parts)}

    order = f"{ORDER} One draw of the cohort serves all parts, so that they are amplified together and not one by one."
    return replace(_reading(replace(said, rate=rate, rounds=times), rows, order), settings=settings)


def local(kind: str, epsilon: float, delta: float | None, rounds: int | None) -> Rows:
    """Rows of a mechanism that each user applies before sending: a user in every round, seen by the server."""

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        times = rounds if rounds is not None else int(facts["rounds"])
        at, out = delta if delta is not None else facts["delta"], []
        for relation, replaced in RELATIONS:
            if kind == "laplace":
                cost = costs.laplace(factor / epsilon, replaced)
                why = f"local Laplace noise of scale {factor / epsilon:.4g}·clip, in every round"
            else:
                std = calibrate.noise_multiplier(Gaussian, epsilon, at) * factor
                cost, why = costs.gaussian(std, replaced), f"local noise of std {std:.4g}·clip, in every round"
            out.append(Row("user", relation, SERVER, cost, times, at, why))
        return tuple(out)

    return rows


def _reading(said: Said, rows: Rows, order: str = ORDER, more: tuple[Unknown, ...] = ()) -> Reading:
    known = said.noise is not None or None not in (said.rate, said.rounds, said.delta)

    def settings(factor: float) -> dict[str, Setting]:
        rate, times, delta = said.at({})
        std = said.std(rate, times, delta) * factor if said.noise is None else said.noise * factor
        if said.name == FLAGS:
            return {"central_epsilon": costs.poisson(std, rate)(times, delta).epsilon}
        return {"noise_parameter": std}

    no_fix = "write noise_parameter in place of epsilon, and the facts that are asked"
    unknowns = []
    if said.rate is None:
        question = "Which share of the users is sampled in a round (cohort / population)?"
        unknowns.append(Unknown("sampling rate", question, RATES, 1.0))
    if said.rounds is None:
        unknowns.append(Unknown("rounds", "How many central iterations?", ROUNDS))
    if said.delta is None:
        unknowns.append(Unknown("delta", "At which δ?", DELTAS, DELTAS[0]))
    stated = said.epsilon is not None and math.isfinite(said.epsilon)
    claim = (
        Published(said.epsilon, said.delta, "total", said.name)
        if stated
        else Published(None, None, "none", f"{said.name}: no ε")
    )
    return Reading(
        rows, (claim,), (*unknowns, *more), UNPROTECTED, order=(order,), settings=settings if known else None, no_fix=no_fix
    )
