"""What the mechanisms of pfl-research are worth, from what an accountant's call or the benchmarks' flags say.

Unit: a user; zero-out Δ = clip, replace Δ = 2·clip. Derived in ``docs/how_deployed_noise_is_priced.md``.

The banded matrix factor is the one that pfl's code builds: it releases C·X + σ·clip·Z with the C of
``numpy.linalg.cholesky(G)``, whose **rows** have norm one, not its columns. That matrix is priced (``BandedPflSensitivity``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fedgraph.pricing import costs, readings
from fedgraph.pricing.costs import CostOfRounds
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.readings import PRICE_TO_SERVER, PRICE_WITH_MODELS, PublishedReading, Reading, ReadingRow, ReadingSetting
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import AccountantEpsilon, price
from fedgraph.privacy.events import Composed, Gaussian, Laplace
from fedgraph.privacy.fields import ArrayField

FLAGS = "the benchmark's flags"
RELATIONS = (("zero-out", False), ("replace", True))
ORDER = "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is zero-out."
_Cost = Callable[[bool], CostOfRounds]  # whether a user is replaced → what rounds cost then
_Run = tuple[float, float, int, float]  # noise, sampling rate, rounds, δ
_SIMULATED = "pfl's simulator draws users uniformly with replacement; the coins are those of a deployment"
CENTRAL = "the server, where the mechanism is applied centrally"
UNPROTECTED = ("local metrics, unless they are privatised too", CENTRAL, _SIMULATED)
_KEPT = "the sampler {!r} keeps users apart only as long as no user is sampled twice in min_separation rounds"
_EXACT = 200  # rounds up to which the matrix is built; beyond it the bounds above stand
_MARGIN = 1.01  # pfl's optimiser runs in single precision and stops early; its column norms differ by less than 1 % from ours
_STEPS, _SMALL = 1000, 1e-3  # iterations of pfl's search, and the slope at which it ends
_PROMISES = {
    None: "min_separation is a promise about who is sampled; nothing in this file keeps it",
    "random": "its sampler is 'random', which keeps no separation: the promise of min_separation is broken",
}


@dataclass(frozen=True)
class PflMechanism:
    """What the file says of a run. None stands for what it does not say."""

    name: str  # who claims ε
    noise: float | None = None  # std in clips (Laplace: scale); None: the one at which ``rounds`` cost (epsilon, delta)
    epsilon: float | None = None  # the ε that is claimed
    delta: float | None = None  # its δ, in (0, 1)
    rate: float | None = None  # the sampling rate of the accountant, in [0, 1]
    rounds: int | None = None  # iterations that the accountant counts
    scale: float = 1.0  # what a simulation multiplies the noise by, in (0, 1]
    trained: float | None = None  # the sampling rate of the cohort that is really trained, where it differs from ``rate``
    people: float | None = None  # how many users there are in all
    run: int | None = None  # iterations that are run, where they are more than ``rounds``

    def at(self, document: PricedDocument, sampled: bool = True) -> tuple[float, int, float]:
        """(sampling rate, rounds, δ); what is not said is asked."""
        rate = document.ask("sampling rate", self.rate) if sampled else 1.0
        return rate, int(document.ask("rounds", self.run or self.rounds)), document.ask("delta", self.delta)

    def std(self, rate: float, compositions: int, delta: float, louder: float) -> float:
        """The noise, times ``louder``."""
        if self.run is not None and self.rounds is not None:
            compositions = self.rounds
        found = costs.noise_at_cost(self.epsilon or 0.0, delta, rate, compositions) if self.noise is None else self.noise
        return found * louder


@dataclass(frozen=True)
class BandedPflSensitivity:
    """How far one user moves the answers of the banded matrix, in clips."""

    rounds: int  # how many rounds the matrix is built for; 1 or more
    separation: int  # how many rounds lie between two participations of a user (min_separation); 2 or more
    column: float | None = None  # the largest column norm, where the user knows it

    @property
    def exact(self) -> bool:
        """Whether the matrix itself is built."""
        return self.rounds <= _EXACT and self.column is None

    @property
    def most(self) -> int:
        """How often a user can take part."""
        return math.ceil(self.rounds / self.separation)

    def once(self) -> float:
        """For one participation, at the worst round: the largest column norm. Beyond ``_EXACT`` rounds an upper bound."""
        if self.column is not None:
            return self.column
        if self.exact:
            return _MARGIN * float(np.linalg.norm(_factor(self.rounds, self.separation), axis=0).max())
        return math.sqrt(min(self._band, self.rounds))

    def apart(self, rounds: int) -> float:
        """For participations at least ``separation`` rounds apart, in the first ``rounds`` rounds."""
        rounds = min(rounds, self.rounds)
        if self.exact:
            norms = np.square(_factor(self.rounds, self.separation)[:rounds, :rounds]).sum(axis=0)
            # The largest sum of weights at indices at least ``gap`` apart.
            best = np.zeros(len(norms) + 1)
            for i in range(len(norms) - 1, -1, -1):
                best[i] = max(best[i + 1], norms[i] + best[min(i + self.separation, len(norms))])
            return _MARGIN * math.sqrt(float(best[0]))
        times = math.ceil(rounds / self.separation)
        return math.sqrt(min(rounds, times * self._band, times * self.once() ** 2))

    def always(self, rounds: int) -> float:
        """For a user in every one of the first ``rounds`` rounds."""
        rounds = min(rounds, self.rounds)
        if self.exact:
            factor = _factor(self.rounds, self.separation)[:rounds, :rounds]
            return _MARGIN * math.sqrt(float(np.abs(factor.T @ factor).sum()))
        return math.sqrt(rounds * min(self._band, rounds))

    @property
    def _band(self) -> int:
        return max(1, self.separation - 1)


@lru_cache(maxsize=32)
def _factor(rounds: int, separation: int) -> ArrayField:
    """C as pfl makes it: a quasi-Newton search for G from the identity, diagonal fixed at one, then its Cholesky factor.

    rounds ≤ ``_EXACT``; separation ≥ 2. A step that does not lower the loss is taken by pfl too (its search repeats it).
    """
    index = np.arange(rounds)
    allowed = (np.abs(index[:, None] - index) < max(1, separation - 1)) & (index[:, None] != index)
    sums = np.tril(np.ones((rounds, rounds)))

    def look(gram: ArrayField) -> tuple[float, ArrayField]:
        half = cho_solve(cho_factor(gram), sums.T)
        return float(np.sum(half * sums.T)), -(half @ half.T) * allowed

    gram = np.eye(rounds)
    loss, slope = look(gram)
    before, last_slope, last_loss, direction = gram, slope, loss, slope
    for _ in range(_STEPS):
        if not np.abs(slope).max() > 0:
            break
        step = 1.0
        for _ in range(30):
            gram = before - step * direction
            try:
                loss, slope = look(gram)
            except (LinAlgError, ValueError):
                step *= 0.25
                continue
            last_loss = min(loss, last_loss)
            break
        if np.abs(slope).max() <= _SMALL:
            break
        moved, turned = gram - before, slope - last_slope
        curve = 1.0 / np.sum(turned * moved)
        along = curve * np.sum(moved * slope)
        scale = np.sum(moved * turned) / np.sum(np.square(turned))
        direction = scale * (slope - curve * np.sum(moved * slope) * turned)
        direction = direction + moved * (along - curve * np.sum(turned * direction))
        before, last_slope = gram, slope
    return np.asarray(np.linalg.cholesky(gram))


def gaussian_pfl_mechanism(document: PricedDocument, said: PflMechanism, order: str = ORDER) -> Reading:
    """One Gaussian sum in each iteration.

    Args:
        document: The file, which is asked for what is not said.
        said: What the accountant says.
        order: What happens in which order.

    Returns:
        Rows for zero-out and replace; one more for a real run whose noise is smaller than that of the accountant.
    """
    rate, times, delta = said.at(document)
    std = said.std(rate, times, delta, document.louder)
    why = f"noise std = {std:.4g}·clip on the sum, Poisson-sampled at rate {rate:g}"
    rows = _both(partial(costs.cost_of_poisson, std, rate), times, delta, why)
    if said.scale < 1:
        real = rate if said.trained is None else said.trained
        words = f"a real run with noise_scale = {said.scale:g}: std = {std * said.scale:.4g}·clip is added, rate {real:g}"
        rows.append(replace(rows[0], cost=costs.cost_of_poisson(std * said.scale, real), why=words))
    return _reading(said, rows, (std, rate, times, delta), order)


def single_pfl_mechanism(document: PricedDocument, said: PflMechanism) -> Reading:
    """Gaussian noise that makes one iteration (ε, δ) by itself, in every iteration."""
    once = calibrate.calibrate_noise(Gaussian, said.epsilon or 0.0, said.delta or 0.0)
    found, scaled = gaussian_pfl_mechanism(document, replace(said, noise=once, epsilon=None)), once * document.louder
    claim = PublishedReading(said.epsilon, said.delta, "per round", f"{said.name}: for one iteration")
    settings: dict[str, ReadingSetting] = {"epsilon": lambda: price(Gaussian(scaled), said.delta or 0.0).epsilon}
    return replace(found, published=(claim,), settings=settings)


def laplace_pfl_mechanism(document: PricedDocument, said: PflMechanism) -> Reading:
    """Laplace noise of scale clip/ε per coordinate, L1 clip."""
    epsilon = said.epsilon if said.epsilon is not None else 1 / (said.noise or math.inf)
    rate, times, delta = said.at(document)
    scale = document.louder / epsilon if epsilon > 0 else math.inf
    why = f"noise scale = {scale:.4g}·clip per coordinate, clip in L1, Poisson-sampled at rate {rate:g}"
    rows = _both(partial(costs.cost_of_sampled_laplace, scale, rate, fixed=False), times, delta, why)
    claim = PublishedReading(epsilon, 0.0, "per round", said.name)
    return replace(_reading(said, rows), published=(claim,), settings={"epsilon": epsilon / document.louder})


def banded_pfl_mechanism(document: PricedDocument, said: PflMechanism, separation: int | None, sampler: str | None) -> Reading:
    """Correlated noise. separation: the file's min_separation; sampler: how the file draws users, where it says so."""
    rate, times, delta = said.at(document)
    gap, column = int(document.ask("min separation", separation)), None
    if said.rounds is not None and separation is not None and said.rounds > _EXACT:
        question = "Which is the largest column norm of the matrix that pfl saved (numpy.linalg.norm(numpy.load("
        question += f"'query_matrix.npy'), axis=0).max())? It is not built here for more than {_EXACT} rounds."
        worst = BandedPflSensitivity(said.rounds, separation).once()
        values = tuple(v for v in (worst, 10.0, 3.0, 1.0) if v <= worst)
        column = document.answers.ask("largest column norm", question, values, worst)
    found = BandedPflSensitivity(times, gap, column)
    std = said.std(rate, found.most, delta, document.louder)
    rows = _banded_rows(found, std, rate, times, delta)
    if sampler == "random":
        rows.insert(0, rows.pop(2))
    if said.scale < 1:
        real = _banded_rows(found, std * said.scale, rate, times, delta)[0]
        rows.append(replace(real, why=f"a real run with noise_scale = {said.scale:g}: {real.why}"))
    promise = _PROMISES.get(sampler, _KEPT.format(sampler))
    order = f"{ORDER} The noise of a round is correlated with that of earlier rounds; {promise}."
    return _reading(said, rows, (std, rate, times, delta), order)


def _banded_rows(found: BandedPflSensitivity, std: float, rate: float, times: int, delta: float) -> list[ReadingRow]:
    """Participations apart (zero-out and replace), in every round, and in groups of users."""
    gap, most, rows = found.separation, found.most, []
    proof = "pfl's matrix" if found.exact else "any matrix with rows of norm one and this band"
    for relation, replaced in RELATIONS:
        why = (
            f"noise std = {std:.4g}·clip before C⁻¹; a user in at most {most:,} of {times:,} rounds, {gap:,} apart, moves "
            f"it by {found.apart(times):.4g}·{'2·' if replaced else ''}clip ({proof}; the paper's: {math.sqrt(most):.4g})"
        )
        rows.append(ReadingRow("user", relation, PRICE_WITH_MODELS, _moved(found.apart, std, replaced), times, delta, why))
    why = f"if a user may be sampled in every round: moved by {found.always(times):.4g}·clip"
    rows.append(ReadingRow("user", "zero-out", PRICE_WITH_MODELS, _moved(found.always, std, False), times, delta, why))
    inside = min(1.0, gap * rate)
    why = (
        f"if users are cut into {gap:,} groups and round t samples group t mod {gap:,} by secret coins, at rate "
        f"{inside:.4g} in it (amplification of banded matrices, arXiv 2306.08153, with the noise divided by the largest column "
        f"norm, {found.once():.4g}; or none)"
    )

    def grouped(rounds: int, at: float) -> AccountantEpsilon:
        amplified = costs.cost_of_poisson(std / found.once(), inside)(math.ceil(rounds / gap), at)
        return min(amplified, _moved(found.apart, std, False)(rounds, at), key=lambda p: p.epsilon)

    return [*rows, ReadingRow("user", "zero-out", PRICE_WITH_MODELS, grouped, times, delta, why)]


def _moved(sensitivity: Callable[[int], float], std: float, replaced: bool) -> CostOfRounds:
    def cost(rounds: int, delta: float) -> AccountantEpsilon:
        if rounds == 0:
            return price(Composed(()), delta)
        return price(Gaussian(std / (sensitivity(rounds) * (2 if replaced else 1))), delta)

    return cost


@dataclass(frozen=True)
class JointPflMechanismPart:
    """One of several mechanisms on the same cohort."""

    kind: str  # ``gaussian_pfl_mechanism`` or ``laplace_pfl_mechanism``
    noise: float  # standard deviation or scale, in its own clips; above 0
    rate: float  # the sampling rate, in [0, 1]
    rounds: int  # how many rounds there are; 1 or more


def joint_pfl_mechanism(document: PricedDocument, said: PflMechanism, parts: Sequence[JointPflMechanismPart]) -> Reading:
    """Several mechanisms at once, whose noise stands in the option ``noise_parameters``."""
    said = replace(said, rate=max(p.rate for p in parts), rounds=max(p.rounds for p in parts))
    (rate, times, delta), louder, rows = said.at(document), document.louder, []
    for relation, replaced in RELATIONS:
        if all(p.kind == "gaussian" for p in parts):
            together = louder / math.sqrt(sum(p.noise**-2 for p in parts))
            cost = costs.cost_of_poisson(together, rate, replaced)
            why = f"{len(parts)} Gaussian parts of one cohort are one release: std = {together:.4g}·clip, rate {rate:g}"
        else:
            half = louder / (2 if replaced else 1)
            events = tuple((Gaussian if p.kind == "gaussian" else Laplace)(p.noise * half) for p in parts)
            cost = costs.cost_of_events(Composed(events))
            why = f"{len(parts)} parts of one cohort, Laplace among them: composed, without amplification by sampling"
        rows.append(ReadingRow("user", relation, PRICE_WITH_MODELS, cost, times, delta, why))
    order = f"{ORDER} One draw of the cohort serves all parts, so that they are amplified together and not one by one."
    settings = {f"noise_parameters[{i}]": p.noise * louder for i, p in enumerate(parts)}
    return replace(_reading(said, rows, order=order), settings=settings)


def local_pfl_mechanism(document: PricedDocument, kind: str, said: PflMechanism, louder: float) -> list[ReadingRow]:
    """Rows of a mechanism that each user applies before sending: a user in every round, seen by the server."""
    (_, times, delta), epsilon = said.at(document, sampled=False), said.epsilon or 0.0
    if kind == "laplace":
        scale = louder / epsilon
        cost, why = partial(costs.cost_of_laplace, scale), f"local Laplace noise of scale {scale:.4g}·clip, in every round"
    else:
        std = calibrate.calibrate_noise(Gaussian, epsilon, delta) * louder
        cost, why = partial(costs.cost_of_gaussian, std), f"local noise of std {std:.4g}·clip, in every round"
    return _both(cost, times, delta, why, PRICE_TO_SERVER)


def _both(cost: _Cost, times: int, delta: float, why: str, viewer: str = PRICE_WITH_MODELS) -> list[ReadingRow]:
    """Zero-out and replace. cost: whether a user is replaced → what rounds cost then."""
    return [ReadingRow("user", relation, viewer, cost(replaced), times, delta, why) for relation, replaced in RELATIONS]


def _reading(said: PflMechanism, rows: list[ReadingRow], run: _Run | None = None, order: str = ORDER) -> Reading:
    """run: what an option of noise scales."""
    settings: dict[str, ReadingSetting] | None = None
    if run is not None and (said.noise is not None or None not in (said.rate, said.rounds, said.delta)):
        std, rate, times, delta = run
        settings = {"noise_parameter": std}
        if said.name == FLAGS:
            settings = {"central_epsilon": lambda: costs.cost_of_poisson(std, rate)(times, delta).epsilon}
    claim = readings.reading_without_claim(f"{said.name}: no ε")
    no_fix = "write noise_parameter in place of epsilon, and the facts that are asked"
    if said.epsilon is not None and math.isfinite(said.epsilon):
        claim = (PublishedReading(said.epsilon, said.delta, "total", said.name),)
    return Reading(tuple(rows), claim, UNPROTECTED, (), (order,), settings, no_fix, people=said.people)
