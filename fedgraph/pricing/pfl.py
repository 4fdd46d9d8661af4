"""pfl-research (Apple): a Python file with its accountants and mechanisms, or the flags of its benchmarks.

    PLDPrivacyAccountant / PRVPrivacyAccountant / RDPPrivacyAccountant(num_compositions, sampling_probability, mechanism,
    epsilon,
        delta, noise_parameter, noise_scale)            two of epsilon, delta, noise_parameter; the third is found
    GaussianMechanism(clipping_bound, relative_noise_stddev)
    BandedMatrixFactorizationMechanism(…)               correlated noise

The accountant prices ``noise_parameter``; what is added in simulation is noise_scale·noise_parameter (a small cohort
standing for a
large one), so a **real** run with noise_scale < 1 is worth less: both are priced. Unit: a user. Poisson sampling, add/remove.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import _costs, _training
from fedgraph.pricing._files import Document
from fedgraph.pricing._options import Options
from fedgraph.pricing.base import MODELS, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Event, PoissonGaussian, Repeated

SYSTEM = "pfl-research"
VERSION = "pfl 0.2–0.6"
SOURCE = (
    "apple/pfl-research at c9d1f32 (2026-04-05): pfl/privacy/{privacy_accountant,gaussian_mechanism,ftrl_mechanism}.py, "
    "benchmarks/utils/argument_parsing.py; pfl 0.6.0 from the package index; read 2026-11-21"
)
SAID = (
    "pfl says that noise_scale (noise_cohort_size in its benchmarks) is for experiments with small cohorts that stand "
    "for large "
    "ones, and that GaussianMechanism alone covers a user who takes part once."
)
ACCOUNTANTS = ("PLDPrivacyAccountant", "PRVPrivacyAccountant", "RDPPrivacyAccountant")
RATES, ROUNDS, DELTAS = (1.0, 0.1, 0.01, 0.001), (5000.0, 1000.0, 100.0, 1.0), (1e-8, 1e-7, 1e-6, 1e-5)
FLAGS = (
    "central_num_iterations", "cohort_size", "noise_cohort_size", "central_epsilon", "central_delta", "central_order",
    "central_privacy_mechanism", "central_privacy_clipping_bound", "local_privacy_mechanism", "population",
)  # fmt: skip


def recognises(document: Document) -> bool:
    if document.kind == "python":
        return any(name.split(".")[0] == "pfl" for name in document.imports)
    return document.kind in ("command", "namespace", "json", "yaml") and "central_privacy_mechanism" in document.data


def read(document: Document) -> Reading:
    if document.kind != "python":
        return _flags(document)
    if _training.first(document.calls, "BandedMatrixFactorizationMechanism"):
        raise PricingError(
            f"{document.path}: not priced: BandedMatrixFactorizationMechanism builds its matrix at run time; its "
            "accountant's ε holds for min_separation"
        )
    for name in ("AdaptiveClippingGaussianMechanism", "JointMechanism", "JointPrivacyAccountant", "LaplaceMechanism"):
        call = _training.first(document.calls, name)
        if call:
            raise document.error(f"not priced: {name}", line=call.line)
    call = _training.first(document.calls, *ACCOUNTANTS)
    if call is None:
        return _mechanism(document)
    named = {n: _training.number(call.get(n, i)) for i, n in enumerate(("num_compositions", "sampling_probability"))}
    epsilon, delta = _training.number(call.get("epsilon", 3)), _training.number(call.get("delta", 4))
    noise, scale = _training.number(call.get("noise_parameter", 5)), _training.number(call.get("noise_scale", 6)) or 1.0
    rounds, rate = named["num_compositions"], named["sampling_probability"]
    if str(call.get("mechanism", 2)).lower() != "gaussian":
        raise document.error(f"not priced: mechanism {call.get('mechanism', 2)!r}; allowed: 'gaussian'", line=call.line)
    if noise is None and (epsilon is None or delta is None):
        raise document.error(f"{call.name} needs two of epsilon, delta, noise_parameter as numbers", line=call.line)
    if not 0 < scale <= 1 or (rate is not None and not 0 <= rate <= 1):
        raise document.error("noise_scale lies in (0, 1], sampling_probability in [0, 1]", line=call.line)
    return _reading(noise, scale, rate, int(rounds) if rounds else None, epsilon, delta, call.name)


def _mechanism(document: Document) -> Reading:
    call = _training.first(document.calls, "GaussianMechanism")
    if call is None:
        raise PricingError(f"{document.path}: no accountant and no Gaussian mechanism of pfl stands here")
    noise = _training.number(call.get("relative_noise_stddev", 1))
    if noise is None or noise < 0:
        raise document.error("GaussianMechanism needs relative_noise_stddev as a number ≥ 0", line=call.line)
    return _reading(noise, 1.0, None, None, None, None, call.name)


def _flags(document: Document) -> Reading:
    options = Options(document, document.data)
    mechanism = options.choice(
        "central_privacy_mechanism", ("gaussian", "none", "laplace", "banded_matrix_factorization"), "none"
    )
    if mechanism != "gaussian":
        raise options.error(
            "central_privacy_mechanism", f"not priced: central_privacy_mechanism {mechanism!r}; allowed: 'gaussian'"
        )
    rounds, cohort = options.whole("central_num_iterations"), options.need("cohort_size", above=True)
    noise_cohort = options.number("noise_cohort_size", cohort, above=True) or cohort
    population = options.number("population", 1e6, above=True) or 1e6
    epsilon, delta = options.number("central_epsilon", 2.0), options.delta("central_delta", 1e-6)
    rest = tuple(name for name in options.rest if name not in FLAGS)
    found = _reading(
        None, min(1.0, cohort / noise_cohort), noise_cohort / population, rounds, epsilon, delta, "the benchmark's flags"
    )
    return Reading(found.rows, found.published, found.unknowns, found.unprotected, rest, found.order, found.settings)


def _reading(
    noise: float | None,
    scale: float,
    rate: float | None,
    rounds: int | None,
    epsilon: float | None,
    delta: float | None,
    name: str,
) -> Reading:
    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        share, times = (
            rate if rate is not None else facts["sampling rate"],
            rounds if rounds is not None else int(facts["rounds"]),
        )
        at = delta if delta is not None else facts["delta"]
        std = (noise if noise is not None else _calibrated(epsilon or 0.0, at, share, times)) * factor
        out = []
        for relation, replaced in (("zero-out", False), ("replace", True)):
            why = f"noise std = {std:.4g}·clip on the sum, Poisson-sampled at rate {share:g}"
            out.append(Row("user", relation, MODELS, _costs.poisson(std, share, replaced), times, at, why))
        if scale < 1:
            words = f"a real run with noise_scale = {scale:g}: std = {std * scale:.4g}·clip is what is added"
            out.append(Row("user", "zero-out", MODELS, _costs.poisson(std * scale, share), times, at, words))
        return tuple(out)

    def settings(factor: float) -> dict[str, Setting]:
        return {"noise_parameter" if noise is not None else "noise multiplied by": (noise or 1.0) * factor}

    unknowns = []
    if rate is None:
        unknowns.append(
            Unknown("sampling rate", "Which share of the users is sampled in a round (cohort / population)?", RATES, 1.0)
        )
    if rounds is None:
        unknowns.append(Unknown("rounds", "How many central iterations?", ROUNDS))
    if delta is None:
        unknowns.append(Unknown("delta", "At which δ?", DELTAS, 1e-7))
    claim = (
        (Published(epsilon, delta, "total", name),)
        if epsilon is not None and math.isfinite(epsilon)
        else (Published(None, None, "none", f"{name}: no ε"),)
    )
    order = (
        (
            "Users are sampled by coins, statistics clipped, summed, noised; rounds compose adaptively; add/remove is "
            "priced as zero-out."
        ),
    )
    unprotected = ("local metrics, unless they are privatised too", "the server, where the mechanism is applied centrally")
    return Reading(rows, claim, tuple(unknowns), unprotected, order=order, settings=settings)


def _calibrated(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    def event(multiplier: float) -> Event:
        return Repeated(PoissonGaussian(multiplier, rate), rounds)

    return calibrate.noise_multiplier(event, epsilon, delta)
