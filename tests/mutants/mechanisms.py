"""Mechanisms and parts of the protocol beside broken twins of them, each on its worst-case neighbouring inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest import mock

import numpy as np
import scipy.sparse as sp
from scipy.stats import binom

from fedgraph.audit import lower_bound
from fedgraph.errors import UnboundedValueError
from fedgraph.learning import example_gradients, neighbour_limits, pair_scorer
from fedgraph.privacy import events, neighbour_sums, private_counts, sensitivity, settle
from fedgraph.privacy.accounting import calibrate, selection
from fedgraph.privacy.accounting.pld import MixturePair
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Composed, Gaussian, Laplace, PoissonGaussian, RandomizedResponse, Repeated, SampledOnce
from fedgraph.privacy.mechanisms import objective_perturbation as objective
from fedgraph.privacy.mechanisms.local_bits import MASKED_LABEL, MaskedResponse
from fedgraph.privacy.mechanisms.noise import GaussianNoise, GumbelTopK, KaryResponse, LaplaceNoise, MultiBitEncoder
from fedgraph.privacy.neighbour_sums import priced_log_cap
from fedgraph.privacy.private_counts import OwnedRows
from fedgraph.privacy.sensitivity import Box, ClippedSum, L2Ball, SensitivityBound, Unbounded
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from tests.mutants.bench import BenchCase, BenchClaim, Worlds, bench_sampler, twins

_EPSILON, _DELTA = 1.0, 1e-3
_MULTIPLIER = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
_ZERO_OUT, _REPLACE, _GRAPH = Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE, Relation.GRAPH_REPLACE


def cases() -> Iterator[BenchCase]:
    for family in _FAMILIES:
        yield from family()


# Answers and picks, at δ = 0: Laplace on one number and on two, k-ary randomised response, and answers that name a set of
# labels. Worst case: the value is far outside its box in one world and at the other end of it in the other; for the response,
# two different values. Bits: a graph of n rows, m bits of each row or of the whole matrix, all bits of the unit; every entry at
# the top of the box in one world, at the bottom in the other (an L-layer network lets one node do that to every row, and a
# graph is one client's own). Each bit is then +1 with e^a/(e^a + 1) or 1/(e^a + 1), and the number of +1 is sufficient.
# One-shot Gumbel top-k: k of the candidates have the largest utility in one world and the smallest in the other, and all the
# rest the reverse (Δ = 1 each). The score is the log-likelihood ratio of the ordered picks (Plackett-Luce): Σᵢ (u_P −
# u_Q)(cᵢ)/scale less the logarithms of what was left to pick from.

_NUM_VALUES = 5
_NUM_ROWS, _NUM_COLUMNS = 4, 3
_BITS_PER_ROW, _BITS_IN_TOTAL = 2, 5
_RUNS_IN_TOTAL = 5_000  # the encoder draws one matrix per call here
_NUM_PICKS, _NUM_CANDIDATES = 3, 20
_PER_PICK = 0.8  # ε₀


@bench_sampler
def _number(runs, rng, value, scale):
    return LaplaceNoise(scale).apply(np.full(runs, value), rng)


@bench_sampler
def _two_numbers(runs, rng, value, scale):
    """Both entries of a vector in [0, 1]² move from end to end: Δ₁ = 2, Δ₂ = √2.

    The score, |x| − |x − 1| per entry, is ±1 outside [0, 1] but for rounding, and how it is rounded betrays
    the world (Mironov 2012: unrounded, this audit finds ε ≥ 3.6 where 1 is claimed). That attack is outside
    the model, so the score is rounded to twelve decimals, far above one unit in the last place.
    """
    seen = LaplaceNoise(scale).apply(np.full((runs, 2), value), rng)
    return np.round((np.abs(seen) - np.abs(seen - 1.0)).sum(axis=1), 12)  # log-likelihood ratio × scale


def _numbers() -> Iterator[BenchCase]:
    high, low = (float(Box(0.0, 1.0).enforce(np.array(v))) for v in (57.0, -3.0))
    scale, claim = 1.0 / _EPSILON, BenchClaim.of(Laplace(1.0 / _EPSILON), 0.0)
    worlds = _number(high, scale), _number(low, scale)
    broken = {
        "scale × ⅔": (_number(high, scale * 2 / 3), _number(low, scale * 2 / 3)),
        "value not clamped": _number(57.0, scale),
    }
    yield from twins("laplace", _REPLACE, claim, worlds, broken, lower_bound.laplace())
    # The largest ratio is an atom, met in a third of the runs with the unit: counting alone bounds it well.
    right, wrong = ((_two_numbers(1.0, norm / _EPSILON), _two_numbers(0.0, norm / _EPSILON)) for norm in (2, math.sqrt(2)))
    yield from twins("laplace-vector", _REPLACE, claim, right, {"Δ₂ in place of Δ₁": wrong})


@bench_sampler
def _response(runs, rng, value, epsilon):
    return KaryResponse(epsilon, _NUM_VALUES).apply(np.full(runs, value), rng) == 3


@bench_sampler
def _set(runs, rng, label, epsilon):
    """A label against a masked one; the score is whether the label is named. Two of six values are, at ε = 1."""
    return MaskedResponse(epsilon, 6, replaces=False).apply(np.full(runs, label), rng)[:, 3]


def _responses() -> Iterator[BenchCase]:
    claim = BenchClaim.of(RandomizedResponse(_EPSILON, _NUM_VALUES), 0.0)
    # Keeping with e^ε/(e^ε + 1), the binary formula, is k-ary response at ε + ln(k − 1).
    right, binary = ((_response(3, e), _response(0, e)) for e in (_EPSILON, _EPSILON + math.log(_NUM_VALUES - 1)))
    broken = {"keep probability without k": binary}
    yield from twins("k-ary-response", _REPLACE, claim, right, broken, lower_bound.response(_NUM_VALUES))
    right, louder = ((_set(3, e), _set(MASKED_LABEL, e)) for e in (_EPSILON, _EPSILON * 1.5))
    yield from twins("label-sets", _ZERO_OUT, BenchClaim.of(events.PureDP(_EPSILON), 0.0), right, {"noise × ⅔": louder})


@bench_sampler
def _per_row(runs, rng, value, per_bit):
    """Rows are encoded independently, so ``runs`` graphs are one tall matrix."""
    encoded = MultiBitEncoder(per_bit, _BITS_PER_ROW).apply(np.full((runs * _NUM_ROWS, _NUM_COLUMNS), value), rng)
    return np.count_nonzero(encoded.reshape(runs, -1) == 1.0, axis=1)


@bench_sampler
def _in_total(runs, rng, value, per_bit):
    encoder, matrix = MultiBitEncoder(per_bit, _BITS_IN_TOTAL, in_total=True), np.full((_NUM_ROWS, _NUM_COLUMNS), value)
    return [np.count_nonzero(encoder.apply(matrix, rng) == 1.0) for _ in range(runs)]


def _bits() -> Iterator[BenchCase]:
    """m bits per row: a = ε/(m·n); m bits in total: a = ε/m."""

    def worlds(encoded, num_bits: int) -> Worlds:
        return encoded(1.0, _EPSILON / num_bits), encoded(0.0, _EPSILON / num_bits)

    total = _BITS_PER_ROW * _NUM_ROWS
    claim = BenchClaim.of(events.MultiBit(_EPSILON / total, total), 0.0)
    broken = {
        "budget not divided by the rows": worlds(_per_row, _BITS_PER_ROW),
        "budget not divided by the row's bits": worlds(_per_row, _NUM_ROWS),
    }
    yield from twins("multi-bit-per-row", _GRAPH, claim, worlds(_per_row, total), broken, lower_bound.bits(total))
    total = _BITS_IN_TOTAL
    claim = BenchClaim.of(events.MultiBit(_EPSILON / total, total), 0.0)
    broken = {"budget not divided by the bits": worlds(_in_total, 1)}
    how = {"closed_form": lower_bound.bits(total), "runs": _RUNS_IN_TOTAL}
    yield from twins("multi-bit-in-total", _GRAPH, claim, worlds(_in_total, total), broken, **how)


@bench_sampler
def _picked(runs, rng, utility, scale):
    picks = GumbelTopK(_NUM_PICKS, scale).apply(np.broadcast_to(utility, (runs, _NUM_CANDIDATES)), rng)
    favoured, weight = picks < _NUM_PICKS, np.exp(1.0 / scale)  # whether each pick was one of the k favoured candidates
    left_favoured = _NUM_PICKS - np.cumsum(favoured, axis=1) + favoured
    left_others = _NUM_CANDIDATES - _NUM_PICKS - np.cumsum(~favoured, axis=1) + ~favoured
    step = np.where(favoured, 1.0, -1.0) / scale
    step -= np.log(left_favoured * weight + left_others) - np.log(left_favoured + left_others * weight)
    return step.sum(axis=1)


def _picks() -> Iterator[BenchCase]:
    favoured, scale = 1.0 * (np.arange(_NUM_CANDIDATES) < _NUM_PICKS), 2.0 / _PER_PICK  # 2Δ/ε₀
    claim = BenchClaim.of(Repeated(events.BoundedRange(_PER_PICK), _NUM_PICKS), 1e-2)
    right, half, whole = ((_picked(favoured, s), _picked(1.0 - favoured, s)) for s in (scale, scale / 2, scale / _NUM_PICKS))
    yield from twins("gumbel-top-k", _REPLACE, claim, right, {"scale halved": half, "k picks at the price of one": whole})


# Several releases about one unit. Overlapping clients: a node that k clients hold is sent k times. One secure sum: the viewer
# sees Σ messages, so the sensitivities add up *before* the noise, Δ = kC. Own messages: the viewer sees each, so the losses
# compose, μ² = Σ μᵢ². Worst case: every client's contribution points the same way, as long as the clip. Sequences: n equal
# Gaussian ones, three of different kinds, and what an earlier one chose; every release moves by its full sensitivity, and the
# score is the sum of the releases' own log-likelihood ratios.

_NUM_CLIENTS, _COUNT = 4, 8
_BOUND = L2Ball(0.5)


@bench_sampler
def _messages(runs, rng, row, std):
    """Each client bounds its copy of the row and adds its own noise. Their sum is sufficient: equal noise, equal shifts."""
    bounded = _BOUND.enforce(np.array([row]))[0]
    return GaussianNoise(std).apply(np.full((runs, _NUM_CLIENTS), bounded), rng).sum(axis=1)


def _overlapping() -> Iterator[BenchCase]:
    each, multiplier = sensitivity.l2(_BOUND, _ZERO_OUT), _MULTIPLIER
    linear, squares = _NUM_CLIENTS * each, math.sqrt(_NUM_CLIENTS) * each

    def worlds(std: float) -> Worlds:
        return _messages(9.0, std), _messages(0.0, std)

    claim, how = BenchClaim.of(Gaussian(multiplier), _DELTA), (lower_bound.gaussian(),)
    broken = {  # every client adds its share of the noise
        "clients added in squares": worlds(multiplier * squares / math.sqrt(_NUM_CLIENTS)),
        "noise shares 1/k, not 1/√k": worlds(multiplier * linear / _NUM_CLIENTS),
    }
    right = worlds(multiplier * linear / math.sqrt(_NUM_CLIENTS))
    yield from twins("overlapping-secure-sum", f"{_ZERO_OUT.value}, secure sum", claim, right, broken, *how)

    spent = dict.fromkeys(range(_NUM_CLIENTS), Gaussian(multiplier * squares / each))
    held = sp.csr_array(np.ones((_NUM_CLIENTS, 1)))
    seen = Protection(_ZERO_OUT, Viewer.SERVER, (Assumption.MEMBERSHIP_GIVEN,))
    claim = BenchClaim.paid(settle.of_events(settle.Guarantee(seen, _DELTA, held, per_end=False), spent).price, _DELTA)
    broken = {"priced as disjoint clients": worlds(multiplier * each)}
    relation = f"{_ZERO_OUT.value}, every message"
    yield from twins("overlapping-messages", relation, claim, worlds(multiplier * squares), broken, *how)


def _equal() -> Iterator[BenchCase]:
    """The unit adds +1 to every other release and −1 to the rest (a row may change between rounds)."""
    signs = np.where(np.arange(_COUNT) % 2 == 0, 1.0, -1.0)

    @bench_sampler
    def release(runs, rng, value, multiplier, fresh=True):
        return (GaussianNoise(multiplier).apply(np.zeros((runs, _COUNT if fresh else 1)), rng) + value * signs) @ signs

    multiplier, single = (calibrate.gaussian_multiplier(count, _EPSILON, _DELTA) for count in (_COUNT, 1))
    claim, worlds = (
        BenchClaim.of(Repeated(Gaussian(multiplier), _COUNT), _DELTA),
        (release(1.0, multiplier), release(0.0, multiplier)),
    )
    broken = {
        "count dropped": (release(1.0, single), release(0.0, single)),
        "the same noise in every round": (release(1.0, multiplier, False), release(0.0, multiplier, False)),
    }
    yield from twins("composition", _ZERO_OUT, claim, worlds, broken, lower_bound.gaussian())


def _mixed() -> Iterator[BenchCase]:
    scale, response, delta = 1.5, 0.7, 1e-2

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(multiplier), Laplace(scale), RandomizedResponse(response, 2)))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs, rng, value):
        values = np.full(runs, float(value))
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        heavy = LaplaceNoise(scale).apply(values, rng)
        bit = KaryResponse(response, 2).apply(np.full(runs, value), rng)
        return normal + (np.abs(heavy) - np.abs(heavy - 1)) / scale + response * (2 * bit - 1)

    broken = {"one kind left out of the price": BenchClaim.of(Gaussian(multiplier), delta)}
    yield from twins("composition-mixed", _REPLACE, BenchClaim.of(event(multiplier), delta), (release(1), release(0)), broken)


def _by_test() -> Iterator[BenchCase]:
    """A noisy test chooses a response or a Gaussian release: the response where the test points to the unit."""
    response, delta, tested = 1.0, 1e-2, 3.0

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(tested), events.OneOf((events.PureDP(response), Gaussian(multiplier)))))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs, rng, value, both=False):
        values = np.full(runs, float(value))
        seen = GaussianNoise(tested).apply(values, rng)
        bit = response * (2 * KaryResponse(response, 2).apply(np.full(runs, value), rng) - 1)
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        return (seen - 0.5) / tested**2 + (bit + normal if both else np.where(seen > 0.5, bit, normal))

    broken = {"both alternatives released": (release(1, True), release(0, True))}
    claim = BenchClaim.of(event(multiplier), delta)
    yield from twins("choice", _REPLACE, claim, (release(1), release(0)), broken)


# The desk, as the methods use it. Bounds: a row a hundred times too long goes through ``Desk.release`` and must come out as one
# of the clip's length. Refusals: a row that holds NaN, ±∞ or more than any clipped sum can hold must not leave at all. There
# the score is 1 if a value left that no noise explains, 0 if a usual one or nothing left. (That a run stopped is seen by the
# client that owns the row; the audit bounds what leaves.) Choices: the best of a secret number of trials, chosen by a noisy
# score: priced, and as it is done everywhere, unpriced. Worst case: the noisy score is all that a trial releases, and it is 1
# higher with the unit than without. ``private selection`` draws many scores at once, which takes many runs to tell apart;
# ``choice at the desk`` is the way out that a run has.

_CALLS = 4_000  # one call of the desk each
_OUT_OF_REACH = 40.0  # standard deviations
_Opened = Callable[[int, np.random.Generator], Callable[[np.ndarray], np.ndarray]]


def _audit_desk(bound: SensitivityBound, std: float) -> _Opened:
    def opened(runs, rng):
        event = Gaussian(std / sensitivity.l2(bound, _ZERO_OUT))
        through = Desk("audit", 0, 0, (PlannedRelease("audit", bound, GaussianNoise(std), event, range(1), runs),), rng)
        return lambda value: through.release("audit", value).value

    return opened


def _open_door(std: float) -> _Opened:
    """Noise without a look at the value: what the desk exists to prevent (and the mechanism refuses too)."""
    return lambda runs, rng: lambda value: value + rng.normal(scale=std, size=value.shape)


@bench_sampler
def _released(runs, rng, opened: _Opened, value: float):
    door = opened(runs, rng)
    return [door(np.array([value]))[0] for _ in range(runs)]


@bench_sampler
def _betrayed(runs, rng, opened: _Opened, values: list[np.ndarray], std: float):
    door = opened(runs, rng)

    def betrays(value: np.ndarray) -> bool:
        try:
            left = door(value)
        except UnboundedValueError:
            return False
        return not bool((np.abs(left) < _OUT_OF_REACH * std).all())

    return [betrays(values[run % len(values)]) for run in range(runs)]


def _desk() -> Iterator[BenchCase]:
    claim = BenchClaim.of(Gaussian(_MULTIPLIER), _DELTA)
    bound, std = L2Ball(0.5), _MULTIPLIER * sensitivity.l2(L2Ball(0.5), _ZERO_OUT)
    worlds = _released(_audit_desk(bound, std), 50.0), _released(_audit_desk(bound, std), 0.0)
    broken = {"bound not enforced": _released(_open_door(std), 50.0)}
    yield from twins("desk-bounds", _ZERO_OUT, claim, worlds, broken, lower_bound.gaussian(), runs=_CALLS)

    sums, std = ClippedSum(0.5, 3), _MULTIPLIER * sensitivity.l2(ClippedSum(0.5, 3), _ZERO_OUT)
    forbidden, usual = [np.array([0.2, bad]) for bad in (math.nan, math.inf, -math.inf, 1e9)], [np.array([0.2, 0.1])]
    worlds = _betrayed(_audit_desk(sums, std), forbidden, std), _betrayed(_audit_desk(sums, std), usual, std)
    broken = {
        "NaN passed through": (_betrayed(_open_door(std), forbidden[:1], std), _betrayed(_open_door(std), usual, std)),
        "value beyond its bound passed": _betrayed(_open_door(std), forbidden[3:], std),
    }
    yield from twins("desk-refusals", _ZERO_OUT, claim, worlds, broken, runs=_CALLS)


_SHAPE, _AMONG = 0.0, 20
_FEW = 5  # trials on average, at the desk
_CHOICES = 1_000  # runs


@bench_sampler
def _best(runs, rng, value, scale, stop):
    trials = np.array([selection.draw_trials(_SHAPE, stop, rng) for _ in range(runs)])
    scores = LaplaceNoise(scale).apply(np.full(int(trials.sum()), value), rng)
    return np.maximum.reduceat(scores, np.cumsum(trials) - trials)


@bench_sampler
def _chosen(runs, rng, value, scale, bound=Box(0.0, 1.0)):  # noqa: B008
    event, score = events.Selected((Laplace(1.0),), _SHAPE, selection.stop_for(_SHAPE, _FEW)), np.array([value])
    desk = Desk("audit", 0, 0, (PlannedRelease("choice", bound, LaplaceNoise(scale), event, range(1), runs),), rng)
    return [desk.choose("choice", lambda _: (None, score))[1].value.item() for _ in range(runs)]


def _selection() -> Iterator[BenchCase]:
    """A score that is released once; the best of many, priced as such; the same at the desk."""
    stop, few = selection.stop_for(_SHAPE, _AMONG), selection.stop_for(_SHAPE, _FEW)
    once, best, quiet = ((_best(1.0, scale, s), _best(0.0, scale, s)) for scale, s in ((1.0, 1.0), (1.0, stop), (0.25, stop)))
    unpriced = {f"the best of {_AMONG}, selection unpriced": best}
    yield from twins("one score", _ZERO_OUT, BenchClaim.of(Laplace(1.0), 0.0), once, unpriced)
    claim = BenchClaim.of(events.Selected((Laplace(1.0),), _SHAPE, stop), _DELTA)
    broken = {"scores with a quarter of the noise": quiet}
    yield from twins("private selection", _ZERO_OUT, claim, best, broken)
    claim = BenchClaim.of(events.Selected((Laplace(1.0),), _SHAPE, few), _DELTA)
    broken = {
        "scores with a quarter of the noise": (_chosen(1.0, 0.25), _chosen(0.0, 0.25)),
        "scores without a bound": _chosen(50.0, 1.0, Unbounded()),
    }
    yield from twins("choice at the desk", _ZERO_OUT, claim, (_chosen(50.0, 1.0), _chosen(0.0, 1.0)), broken, runs=_CHOICES)


# Objective perturbation with Gaussian noise, as GCON releases its classifier: one row of the objective turns around. Worst
# case: the loss is linear, ℓ(s) = s, so that the change of the gradient is as long as the proof allows (W = c₁Ψ) and lies in
# one direction, and no change of variables hides it. One labelled row z becomes −z, which is all that Ψ = 2 allows. The whole
# mechanism runs (noise inside, certificate, output noise); its minimiser is −(Σz + b)/(n₁Λ), so the score, that number, is
# Gaussian. The price holds for every loss, from an order of Rényi, and is about a fifth above what this one can show.

_LABELLED, _REGULARISER, _GRADIENT = 4, 1.0, 1e-9


@dataclass(frozen=True)
class _LinearProblem:
    """F(Θ) = ⟨Σz, Θ⟩/n₁ + Λ‖Θ‖²/2 + ⟨B, Θ⟩/n₁. regulariser: Λ."""

    regulariser: float

    def minimise(self, rows, noise):
        return -(rows.sum(axis=0)[:, None] + noise) / (len(rows) * self.regulariser)

    def gradient(self, theta, rows, noise):
        return (rows.sum(axis=0)[:, None] + noise) / len(rows) + self.regulariser * theta


@bench_sampler
def _minimisers(runs, rng, made: objective.Calibrated, factor, own):
    """Runs of the mechanism with ``factor`` of the noise, on rows of which the first is ``own``."""
    noise, problem = made.noise_std * factor, _LinearProblem(made.regulariser)
    mechanism = objective.ObjectivePerturbation(1, np.inf, _GRADIENT, made.output_std, problem, noise_std=noise)
    rows = np.array([[own], [1.0], [-1.0], [0.5]])
    return [float(mechanism.apply(rows, rng)[0, 0]) for _ in range(runs)]


def _objective() -> Iterator[BenchCase]:
    """The price of the whole release, and less noise than it needs."""

    def calibrated_for(psi: float) -> objective.Calibrated:
        bounds = objective.LossBounds(1.0, 0.0, 0.0)
        given = objective.Situation(2.0, _DELTA, 0.9, bounds, psi, 1, 1, _LABELLED, per_end=False, gaussian=True)
        return objective.calibrated(given, _REGULARISER, _GRADIENT)

    def worlds(made: objective.Calibrated, factor: float = 1.0) -> Worlds:
        return _minimisers(made, factor, -1.0), _minimisers(made, factor, 1.0)

    made, halved = calibrated_for(2.0), calibrated_for(1.0)
    broken = {"noise × ⅔": worlds(made, 2 / 3), "Ψ of one end for two": worlds(halved)}
    claim, relation = BenchClaim.of(made.event, _DELTA), Relation.EDGE_UNDIRECTED
    yield from twins("gaussian-objective", relation, claim, worlds(made), broken, lower_bound.gaussian(), runs=5_000)


# Steps on secret batches: Poisson coins, fixed and without-replacement batches, rows that change, one sample for a whole run.
# Worst case: all other rows are zero, and the unit's rows are as long as the clip (+1), or gone (0), or turned round (−1) in
# the other world. Unless the batch is revealed, the viewer sees the noisy sums only, and the score is their log-likelihood
# ratio.


@bench_sampler
def _steps_of(runs, rng, sigma, rate, steps, rows, read: MixturePair, drawn=True):
    """``steps`` noisy sums of ``rows`` (in units of the clip), each row in by its own coin, read through ``read``.

    drawn False: every row is in every batch.
    """
    coins = rng.random((runs, steps, len(rows))) < rate if drawn else np.ones((runs, steps, len(rows)))
    seen = GaussianNoise(sigma).apply(coins @ np.array(rows), rng)
    return read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1)


@bench_sampler
def _visits(runs, rng, sigma, visits, value):
    """A batch that is known, and used so many times."""
    return GaussianNoise(sigma).apply(np.full((runs, visits), value), rng).sum(axis=1)


def _poisson() -> Iterator[BenchCase]:
    sigma, rate, steps, delta = 1.0, 0.1, 10, 1e-2
    read, visits = MixturePair.of_rows(sigma, rate, 1, False), round(rate * steps)
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    worlds = _steps_of(sigma, rate, steps, (1.0,), read), _steps_of(sigma, rate, steps, (0.0,), read)
    broken = {
        "sampling claimed but not done": _steps_of(sigma, rate, steps, (1.0,), read, drawn=False),
        # The rows are dealt into 1/q batches once; batch b is used in steps b, b + 1/q, …; which is known.
        "fixed batches accounted as Poisson": (_visits(sigma, visits, 1.0), _visits(sigma, visits, 0.0)),
    }
    yield from twins("poisson-gaussian", _ZERO_OUT, claim, worlds, broken)


def _pairs() -> Iterator[BenchCase]:
    """An edge that is drawn gives the clipped gradient of its pair; random pairs are drawn without looking at edges."""
    sigma, rate, steps, delta = 1.5, 0.4, 4, 5e-2
    nodes, read = np.array([[1.0, 0.0], [-0.6, 0.8]]), MixturePair.of_rows(sigma, rate, 1, False)
    long = float(np.linalg.norm(pair_scorer.clipped_sum(pair_scorer.start(1, 2), nodes, np.array([[0, 1]]), 1.0)))
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    there, back = (_steps_of(sigma, rate, steps, (own,), read) for own in (long, 0.0))
    quiet = [_steps_of(sigma * 2 / 3, rate, steps, (own,), read) for own in (long, 0.0)]
    broken = {
        "noise × ⅔": (quiet[0], quiet[1]),
        "a row at each end of an edge": _steps_of(sigma, rate, steps, (long, long), read),
        "a non-edge is a negative": (there, _steps_of(sigma, rate, steps, (-long,), read)),
    }
    yield from twins("pairs-in-steps", Relation.EDGE_UNDIRECTED, claim, (there, back), broken)


def _fixed_batches() -> Iterator[BenchCase]:
    """A row is in one cached batch, visited a known number of times: μ = √visits / σ."""
    sigma, visits, delta = 3.0, 5, 1e-2
    claim, broken = BenchClaim.of(Repeated(Gaussian(sigma), visits), delta), BenchClaim.of(Gaussian(sigma), delta)
    worlds = _visits(sigma, visits, 1.0), _visits(sigma, visits, 0.0)
    yield from twins(
        "fixed-batches", _ZERO_OUT, claim, worlds, {"only the first visit counted": broken}, lower_bound.gaussian()
    )


def _without_replacement() -> Iterator[BenchCase]:
    """Two of four rows each step, one replaced: by what the others are, so that one world shows whether it was drawn."""
    sigma, steps, delta = 3.0, 2, 1e-2
    rows, size = np.array([0.0, -1.0, -1.0, -1.0]), 2
    rate = size / rows.size
    read = MixturePair(np.array([1 - rate, rate]), np.array([0.0, 2.0]), np.ones(1), np.zeros(1), sigma)

    @bench_sampler
    def release(runs, rng, value, std):
        drawn = np.argsort(rng.random((runs, steps, rows.size)), axis=2)[:, :, :size]
        seen = GaussianNoise(std).apply(np.where(drawn == 0, value, rows[drawn]).sum(axis=2) + size, rng)
        return read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1)

    claim = BenchClaim.of(Repeated(events.FixedSizeGaussian(sigma, 2, 4, touched_rows=1, replaced=True), steps), delta)
    right, half = ((release(1.0, std), release(-1.0, std)) for std in (sigma, sigma / 2))
    yield from twins("fixed-size-batches", _REPLACE, claim, right, {"replace priced as zero-out": half})


def _changing_rows() -> Iterator[BenchCase]:
    """Three rows of one node, all replaced, three steps; and one step that shows δ.

    ``docs/proofs.md``: q = 0.3, B' = 8, σ = 1, hockey-stick 0.846 at ε = 0; the one-sided mixture says 0.806.
    """
    sigma, rate, steps, delta = 3.0, 0.3, 3, 5e-2
    read = MixturePair.of_rows(sigma, rate, 3, True)
    claim, own_only = (BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, rows, True), steps), delta) for rows in (3, 1))
    worlds = _steps_of(sigma, rate, steps, (1.0,) * 3, read), _steps_of(sigma, rate, steps, (-1.0,) * 3, read)
    yield from twins("poisson-changing-rows", _REPLACE, claim, worlds, {"rows of other nodes forgotten": own_only})

    sigma, rate, rows = 1.0, 0.3, 8
    read, claim = MixturePair.of_rows(sigma, rate, rows, False), BenchClaim.of(PoissonGaussian(sigma, rate, rows, False), 0.85)
    worlds = tuple(_steps_of(sigma, rate, 1, (own,) + (sign,) * (rows - 1), read) for own, sign in ((1.0, 1.0), (0.0, -1.0)))
    said = BenchClaim(0.0, hockey_stick(one_sided_pair(sigma, rate, rows), 0.0), "one-sided mixture")
    broken = {"one-sided mixture, rows change": said}
    yield from twins("poisson-two-sided-mixture", _ZERO_OUT, claim, worlds, broken, measures="delta")


def hockey_stick(chosen: MixturePair, epsilon: float) -> float:
    """The larger δ of both orders at one ε, as the accountant's curves say."""
    there, back = chosen.curves(1e-300)
    at = np.array([epsilon])
    return float(max(there.deltas(at)[0], (back or there).deltas(at)[0]))


def one_sided_pair(sigma: float, rate: float, rows: int) -> MixturePair:
    """Σ P(d) N(d, σ²) against N(0, σ²), d = a + 2j the distance of the two sums: **not** a dominating pair.

    What ``from_mixture_gaussian_mechanism`` computes for sensitivities d: own row a ~ Bern(q), the others'
    changes 2j, j ~ 2·Bin(B' − 1, q). Only the mutant uses it.
    """
    others = MixturePair.of_rows(sigma, rate, rows - 1, True)
    weights = np.concatenate([others.weights_p * (1 - rate), others.weights_p * rate])
    shifts = np.concatenate([2 * others.shifts_p, 2 * others.shifts_p + 1])
    return MixturePair(weights, shifts, np.ones(1), np.zeros(1), sigma)


def _mentions() -> Iterator[BenchCase]:
    """HeterPoisson: a node that is not drawn turns the rows of drawn neighbours that mention it, each from −1 to +1."""
    sigma, rate, mention, others, steps, delta = 3.0, 0.5, 0.5, 4, 3, 5e-2

    @bench_sampler
    def release(runs, rng, there):
        """Drawn neighbours are known, and taken off: each adds −1, turned +1 where it mentions the node."""
        own = rng.random((runs, steps)) < rate
        drawn = rng.binomial(others, rate, (runs, steps))
        turned = np.where(own, 0, rng.binomial(drawn, mention))
        seen = GaussianNoise(sigma).apply(there * (own + 2.0 * turned), rng)
        shift = np.arange(others + 1)[:, None, None]
        chance = (1 - rate) * binom.pmf(shift, drawn, mention)
        ratios = chance * np.exp((2 * shift * seen - 2 * shift**2) / sigma**2)
        return np.log(rate * np.exp((seen - 0.5) / sigma**2) + ratios.sum(axis=0)).sum(axis=1)

    claim = BenchClaim.of(Repeated(events.MentionedGaussian(sigma, rate, mention, others, heavy=False), steps), delta)
    broken = {"mentions not counted": BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, 1, False), steps), delta)}
    yield from twins("poisson-mentions", _ZERO_OUT, claim, (release(True), release(False)), broken)


def _sampled_once() -> Iterator[BenchCase]:
    """A node takes part in the whole run with probability q, by one secret coin."""
    multiplier, count, rate, delta = 0.8, 2, 0.2, 2e-2
    inside = Repeated(Gaussian(multiplier), count)

    @bench_sampler
    def release(runs, rng, value, taken):
        part = (rng.random((runs, 1)) < taken) * np.full(count, value)
        return GaussianNoise(multiplier).apply(part, rng).sum(axis=1)

    claim, worlds = BenchClaim.of(SampledOnce(inside, rate), delta), (release(1.0, rate), release(0.0, rate))
    linear = BenchClaim(rate * BenchClaim.of(inside, delta / rate).epsilon, delta, "q·ε")
    broken = {"sample claimed but not drawn": release(1.0, 1.0), "amplified to q·ε": linear}
    yield from twins("sampled-once", _ZERO_OUT, claim, worlds, broken)


def _fixed_sample() -> Iterator[BenchCase]:
    """A quarter of six units was asked for, so round(1.5) = 2 are drawn without replacement: rate ⅓. What is released is a
    randomised answer to "does the sample hold the unit's first version?"; the other world holds its second one (replace)."""
    units, share, inner, delta = 6, 0.25, 3.0, 1e-6
    size = max(1, round(share * units))

    @bench_sampler
    def release(runs, rng, first_version):
        drawn = np.argsort(rng.random((runs, units)), axis=1)[:, :size]
        held = (drawn == 0).any(axis=1) & first_version
        return KaryResponse(inner, 2).apply(held.astype(np.int64), rng)

    right, asked = (BenchClaim.of(SampledOnce(RandomizedResponse(inner, 2), rate), delta) for rate in (size / units, share))
    broken = {"amplified by q' instead of size/n": asked}
    yield from twins("fixed-size-sample", _REPLACE, right, (release(True), release(False)), broken)


# Gaussian sums, read along the line between the two worlds, which is sufficient. Rows: one vanishes (Δ = C), also from among
# millions, one is replaced (Δ = 2C), one edge comes or goes (Δ = √2); the unit's row is longer than the clip and points one
# way. Neighbours at node level: the log cap; a ring in which everybody knows four others, and a hub that knows everybody and
# whose own row stays hidden; all messages point one way, so that what the hub moves adds up over rows. Counts of columns: one
# person's row vanishes (Δ = √d), or becomes another (Δ = √(2d)), in another bin of each column. Records with owners: all
# records of one person vanish (Δ = D·√d), a hub's, which say 1 in every column, and are more than count. Gradients whose rows
# read neighbours: the same ring, and parameters that anybody may have broadcast, so large that a small move of a row turns its
# answer around; the kernel has to project them on the ball that the proof speaks of, or the rows move many times as far.

_CLIP = 0.5
_WIDE = 10_000  # of wide sums
_RING, _NEAREST, _PROMISED = 150, 4, 4


@bench_sampler
def _along(runs, rng, value, std, line):
    """value + Gaussian noise, as shipped, read along the unit vector of ``line``."""
    return GaussianNoise(std).apply(np.broadcast_to(value, (runs, value.size)), rng) @ (line / np.linalg.norm(line))


def _worlds(one: np.ndarray, other: np.ndarray, std: float) -> Worlds:
    """The noisy sums of both worlds, read along the line between them."""
    return _along(one, std, one - other), _along(other, std, one - other)


def _gaussian(
    name: str, relation: Relation, worlds: Worlds, broken: dict[str, object], multiplier: float = _MULTIPLIER, **more: int
) -> Iterator[BenchCase]:
    """Twins whose claim is one Gaussian release."""
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    return twins(name, relation, claim, worlds, broken, lower_bound.gaussian(), **more)


def _rows() -> Iterator[BenchCase]:
    others, own = np.array([[0.3, 0.4, 0.0], [0.0, -0.1, 0.2], [-0.5, 0.0, 0.0]]), np.array([2.0, 0.0, 0.0])
    bound = ClippedSum(_CLIP, 4)
    there, gone, turned = (
        bound.enforce(np.sum([L2Ball(_CLIP).enforce(row) for row in (*others, last)], axis=0)) for last in (own, 0 * own, -own)
    )
    std, replaced = (_MULTIPLIER * sensitivity.l2(bound, relation) for relation in (_ZERO_OUT, _REPLACE))
    unclipped = gone + 2 * _CLIP * own / np.linalg.norm(own)  # and still within the norm that a sum of four rows may have
    broken = {
        "noise × ⅔": _worlds(there, gone, std * 2 / 3),
        "sensitivity halved": _worlds(there, gone, std / 2),
        "row not clipped": _along(bound.enforce(unclipped), std, there - gone),
    }
    yield from _gaussian("gaussian-sum", _ZERO_OUT, _worlds(there, gone, std), broken)
    broken = {"replace priced as zero-out": _worlds(there, turned, std)}
    yield from _gaussian("gaussian-sum-replace", _REPLACE, _worlds(there, turned, replaced), broken)


def _edge() -> Iterator[BenchCase]:
    """An undirected edge changes two rows of AX, each by a unit row of X."""
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])  # unit rows
    path, edge = np.eye(4, k=2) + np.eye(4, k=-2), np.zeros((4, 4))
    edge[0, 1] = edge[1, 0] = 1.0
    sums = ((path + edge) @ features).ravel(), (path @ features).ravel()
    right, wrong = (_worlds(*sums, _MULTIPLIER * factor) for factor in (math.sqrt(2), 1.0))
    yield from _gaussian("edge-aggregate", Relation.EDGE_UNDIRECTED, right, {"√2 forgotten": wrong})


def _millions() -> Iterator[BenchCase]:
    """16.8 million other rows of the clip's length, all alike: as long a sum as they can give. One more row of that length."""
    others, own = np.full(64, 2.0**20 + 0.125), np.full(64, _CLIP / math.sqrt(64))
    std = _MULTIPLIER * sensitivity.l2(ClippedSum(_CLIP, 2**24 + 8), _ZERO_OUT)
    double, single = ((others.astype(dtype) + own.astype(dtype)).astype(np.float64) for dtype in (np.float64, np.float32))
    worlds, broken = (_along(double, std, own), _along(others, std, own)), {"sum in single precision": _along(single, std, own)}
    yield from _gaussian("gaussian-sum-of-millions", _ZERO_OUT, worlds, broken, runs=_WIDE)


def _degrees() -> Iterator[BenchCase]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    cap, hubs, ids = priced_log_cap(_RING + 1), (_hub(True), _hub(False)), np.arange(_RING + 1)
    std, steep = _MULTIPLIER * cap.sensitivity_l2(), np.maximum(0.0, 2 * cap.factors - 1)

    def release(graphs: list[sp.csr_array], messages: np.ndarray, std: float) -> Worlds:
        there, gone = ((graph @ messages[:, None])[:_RING].ravel() for graph in graphs)
        return _worlds(there, gone, std)

    right, wrong = (
        release([neighbour_limits.log_weights(hub, factors) for hub in hubs], np.ones(ids.size), std)
        for factors in (cap.factors, steep)
    )
    claimed = _MULTIPLIER * neighbour_sums.sensitivity(_ZERO_OUT, _PROMISED, rows_released=False)
    cut = [neighbour_limits.at_most(hub, _PROMISED, ids) for hub in hubs]
    broken = {
        "h twice as steep": wrong,
        "cut with refill priced as √D": release(cut, np.where(ids % 2, 1.0, -1.0), claimed),
    }
    yield from _gaussian("log-cap-hop", _ZERO_OUT, right, broken, runs=_WIDE)


def _hub(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(_RING)
    ends = [np.column_stack([own, (own + step) % _RING]) for step in range(1, _NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(_RING, _RING)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return sp.csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(_RING + 1, _RING + 1))


def _columns() -> Iterator[BenchCase]:
    """Zero-out and replace; each with a price that forgets something."""
    people, bound = [[31.0, 2e4, 0.1], [58.0, 3e4, 0.2], [77.0, 1e9, -1.0]], private_counts.ColumnCounts(3, 4, pooled=False)

    def counted(own: list[float]) -> np.ndarray:
        line, brackets = private_counts.number_line(np.array([*people, own])), private_counts.widest_brackets(3)
        return bound.enforce(private_counts.positions(line, brackets)).ravel()

    for relation, other in ((_ZERO_OUT, [math.nan] * 3), (_REPLACE, [-40.0, -5e4, -0.3])):
        counts, std = (counted([40.0, 5e4, 0.3]), counted(other)), _MULTIPLIER * bound.change(relation)
        broken = {"noise × ⅔": _worlds(*counts, std * 2 / 3), "columns counted as one": _worlds(*counts, std / 3**0.5)}
        yield from _gaussian(f"column-counts-{relation.value}", relation, _worlds(*counts, std), broken, runs=_WIDE)


def _owners() -> Iterator[BenchCase]:
    """30 records of a hub, of which five count, beside 30 of others."""
    columns, records = 3, np.arange(30)
    others = np.concatenate([np.full((30, columns), 0.5), np.column_stack([records + 1, records + 41])], axis=1)
    own = np.concatenate([np.ones((30, columns)), np.column_stack([np.zeros(30), records + 1])], axis=1)
    bound, everything = OwnedRows(5, columns), OwnedRows(60, columns)

    def released(counted: OwnedRows, priced: float) -> Worlds:
        return _worlds(counted.enforce(np.concatenate([others, own])), counted.enforce(others), _MULTIPLIER * priced)

    delta_2 = bound.sensitivity_l2(Relation.NODE_LINKS)
    broken = {
        "noise × ⅔": released(bound, delta_2 * 2 / 3),
        "one record priced, not all of a person's": released(bound, math.sqrt(columns)),
        "nobody's records counted": released(everything, delta_2),
    }
    yield from _gaussian("owned-records", Relation.NODE_LINKS, released(bound, delta_2), broken)


def _gradients() -> Iterator[BenchCase]:
    """The kernel under the log cap, and what it would do without a projection, or without the clip."""
    cap, scale, bound, multiplier = priced_log_cap(_RING + 1), 5.0, 2.0, calibrate.gaussian_multiplier(1, 2.0, _DELTA)
    std = multiplier * neighbour_sums.gradient_sensitivity(cap, _CLIP, bound, scale)
    weights = [neighbour_limits.log_weights(_hub(there), cap.factors) for there in (True, False)]
    features = [sp.csr_array(np.append(np.ones(_RING), own)[:, None]) for own in (1.0, 0.0)]
    both = [neighbour_limits.rows(f, w, scale) for f, w in zip(features, weights, strict=True)]
    middle = (both[0][0, 1] + both[1][0, 1]) / 2  # between what a row reads with the hub and without it
    reads = 1e4 * np.array([[0.0, 0.0], [1.0, -1.0]])

    def worlds() -> Worlds:
        vector = neighbour_limits.limit_weights(np.concatenate([reads.T.ravel(), -middle * reads[1]]), 2, bound)
        labels = [np.append(np.zeros(_RING, dtype=np.int64), own) for own in (0, -1)]
        sums = (example_gradients.outer(vector, r, y, 2, _CLIP).total() for r, y in zip(both, labels, strict=True))
        return _worlds(*sums, std)

    right = worlds()
    with mock.patch.object(neighbour_limits, "limit_weights", lambda vector, inputs, bound: vector):
        broken = {"parameters not projected": worlds()}
    yield from _gaussian("neighbour-gradients", _ZERO_OUT, right, broken, multiplier, runs=_WIDE)


_FAMILIES = (
    _numbers, _responses, _bits, _picks, _overlapping, _equal, _mixed, _by_test, _desk, _selection, _objective, _poisson,
    _pairs, _fixed_batches, _without_replacement, _changing_rows, _mentions, _sampled_once, _fixed_sample, _rows, _edge,
    _millions, _degrees, _columns, _owners, _gradients,
)  # fmt: skip
