"""Opacus: a Python file that calls ``PrivacyEngine.make_private`` or ``make_private_with_epsilon``.

    make_private(noise_multiplier, max_grad_norm, poisson_sampling=True)
    make_private_with_epsilon(target_epsilon, target_delta, epochs, max_grad_norm)      noise found by its accountant

Poisson sampling at rate 1/len(data_loader); with ``poisson_sampling=False`` batches are shuffled, and Opacus still accounts for
coins. accountant "gdp" is a central-limit approximation that reports too little; "prv" and "rdp" hold. noise std =
multiplier·max_grad_norm on the sum, zero-out or add/remove.

clipping="adaptive" (unclipped_num_std σ_b): gradients get the larger multiplier z' = (z⁻² − (2σ_b)⁻²)^−½, and the number of
unclipped examples is released with noise σ_b. Its bit is not centred, so that one example moves it by 1: together
1/z'² + 1/σ_b² = (1 + ¾(z/σ_b)²)/z². Opacus accounts for z' alone.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, training
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_source import Call
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.privacy.events import Event, PoissonGaussian, Repeated

SYSTEM = "Opacus"
VERSION = "opacus 1.4–1.6"
SOURCE = (
    "pytorch/opacus at 4d0ebc84 (2025-09-16), opacus/privacy_engine.py; opacus 1.6.0 from the package index; read 2026-11-21"
)
SAID = (
    "Opacus documents that its accounting assumes Poisson sampling, that its gdp accountant is an approximation, and that "
    "secure_mode is needed for noise from a cryptographic generator."
)
MAKERS = ("make_private", "make_private_with_epsilon")
NO_PRICE = {
    "module", "optimizer", "data_loader", "criterion", "batch_first", "loss_reduction", "noise_generator",
    "grad_sample_mode", "poisson_sampling", "clipping", "max_grad_norm", "noise_multiplier", "target_epsilon",
    "target_delta", "epochs", "accountant", "wrap_model", "target_unclipped_quantile", "clipbound_learning_rate",
    "max_clipbound", "min_clipbound", "unclipped_num_std", "total_steps", "alphas",
}  # fmt: skip


def recognises(document: Document) -> bool:
    return document.kind == "python" and any(name.split(".")[0] == "opacus" for name in document.imports)


def read(document: Document) -> Reading:
    """The one ``make_private…`` call of the file."""
    calls = [call for call in document.calls if call.name in MAKERS]
    if len(calls) != 1:
        raise PricingError(f"{document.path}: {len(calls)} calls of make_private…; one is priced per file")
    call, engine = calls[0], training.first(document.calls, "PrivacyEngine")
    for name in call.keywords:
        if name not in NO_PRICE:
            raise document.error(
                f"{call.name}: unknown option {name!r}; allowed: {', '.join(sorted(NO_PRICE))}", line=call.line
            )
    clipping = call.get("clipping") or "flat"
    if clipping not in ("flat", "per_layer", "adaptive"):
        allowed = "flat, per_layer, adaptive"
        raise document.error(f"clipping={clipping!r} is not priced; allowed: {allowed}", line=call.line)
    spread = _spread(document, call) if clipping == "adaptive" else None
    poisson = call.get("poisson_sampling") is not False
    loader = training.first(document.calls, "DataLoader")
    batch = training.number(loader.get("batch_size", 1)) if loader else None
    accountant = str((engine.get("accountant", 0) if engine else None) or "prv")
    unprotected: tuple[str, ...] = (
        ()
        if engine and engine.get("secure_mode") is True
        else ("noise comes from a generator that is not cryptographic (secure_mode is off)",)
    )
    if spread is not None:
        unprotected += ("the size of each batch, by which the noised count of unclipped examples is divided in clear",)
    note = (f"batch size {batch:g}",) if batch else ()
    if call.name == "make_private_with_epsilon":
        return _with_epsilon(document, call, poisson, accountant, unprotected, spread)
    multiplier = training.number(call.get("noise_multiplier"))
    if multiplier is None or multiplier < 0:
        raise document.error("make_private needs noise_multiplier as a number ≥ 0", line=call.line)
    asked = [c for c in document.calls if c.name == "get_epsilon"]
    delta = training.number(asked[0].get("delta", 0)) if asked else None
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "poisson" if poisson else "shuffled",
            delta=delta,
            epochs=_epochs(document),
            published=(Published(None, None, "none", "the file asks its accountant at run time"),),
            unprotected=unprotected,
            order=note + _shuffled(poisson) + _adaptive(spread),
            ratio=_ratio(document, call, multiplier, spread),
        )
    )


def _spread(document: Document, call: Call) -> float:
    """σ_b of adaptive clipping."""
    spread = training.number(call.get("unclipped_num_std"))
    if spread is None or spread <= 0:
        raise document.error("clipping='adaptive' needs unclipped_num_std as a number > 0", line=call.line)
    return spread


def _ratio(document: Document, call: Call, multiplier: float, spread: float | None) -> float:
    """By how much the count of unclipped examples raises 1/noise; Opacus' own condition on it."""
    if spread is None:
        return 1.0
    if multiplier >= 2 * spread:
        message = f"noise_multiplier {multiplier:.4g} ≥ 2·unclipped_num_std {2 * spread:g}: Opacus refuses it"
        raise document.error(message, line=call.line)
    return math.sqrt(1 + 0.75 * (multiplier / spread) ** 2)


def _adaptive(spread: float | None) -> tuple[str, ...]:
    if spread is None:
        return ()
    return (f"The number of unclipped examples is released with std {spread:g}; Opacus' own ε leaves it out.",)


def _shuffled(poisson: bool) -> tuple[str, ...]:
    return () if poisson else ("poisson_sampling=False: batches are shuffled, and Opacus' own ε (for coins) does not hold.",)


def _epochs(document: Document) -> float | None:
    """``epochs`` where the file says it once as a number, by an option of the command line."""
    found = [
        c for c in document.calls if c.name == "add_argument" and c.args and c.args[0] in ("--epochs", "-n", "--num_epochs")
    ]
    return training.number(found[0].get("default")) if len(found) == 1 else None


def _with_epsilon(
    document: Document, call: Call, poisson: bool, accountant: str, unprotected: tuple[str, ...], spread: float | None
) -> Reading:
    target, delta = training.number(call.get("target_epsilon")), training.number(call.get("target_delta"))
    epochs = training.number(call.get("epochs"))
    if target is None or target <= 0 or delta is None or not 0 < delta < 1:
        raise document.error(
            "make_private_with_epsilon needs target_epsilon > 0 and 0 < target_delta < 1 as numbers", line=call.line
        )
    if accountant not in ("prv", "rdp", "gdp"):
        raise document.error(f"accountant {accountant!r}; allowed: prv, rdp, gdp", line=call.line)
    published = (Published(target, delta, "total", f"make_private_with_epsilon, accountant {accountant}"),)
    if poisson and accountant != "gdp" and spread is None:
        words = (
            f"noise found by Opacus' {accountant} accountant for this ε, which holds for Poisson sampling and add/remove or "
            "zero-out"
        )

        def known(facts: Facts, factor: float) -> tuple[Row, ...]:
            return (Row("example", "zero-out", RECIPIENT, costs.approximate(target / factor, delta), 1, delta, words),)

        def buys(factor: float) -> dict[str, Setting]:
            return {"target_epsilon": target / factor}

        return Reading(known, published, (), unprotected, settings=buys, order=("Poisson-sampled steps compose adaptively.",))

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate = facts["sampling rate"]
        total = epochs if epochs is not None else facts["epochs"]
        steps = math.ceil(total / rate)
        found = _gdp(target, delta, rate, steps) if accountant == "gdp" else _own(target, delta, rate, steps)
        multiplier = factor * found / _ratio(document, call, found, spread)
        why = f"Opacus' {accountant} accountant takes noise multiplier {multiplier:.4g}"
        if poisson:
            return (Row("example", "zero-out", RECIPIENT, costs.poisson(multiplier, rate), steps, delta, why),)
        why += "; batches are shuffled, one visit per epoch, unsampled"
        return (Row("example", "zero-out", RECIPIENT, costs.gaussian(multiplier), math.ceil(total), delta, why),)

    unknowns = [
        Unknown("sampling rate", "Which share of the examples is in a batch (1/len(data_loader))?", (0.1, 0.03, 0.01, 0.003))
    ]
    if epochs is None:
        unknowns.append(Unknown("epochs", "How many epochs?", (100.0, 30.0, 10.0, 1.0)))
    return Reading(
        rows,
        published,
        tuple(unknowns),
        unprotected,
        order=_shuffled(poisson),
        no_fix="set poisson_sampling=True and accountant='prv'",
    )


def _own(target: float, delta: float, rate: float, steps: int) -> float:
    def event(multiplier: float) -> Event:
        return Repeated(PoissonGaussian(multiplier, rate), steps)

    return calibrate.noise_multiplier(event, target, delta)


def _gdp(target: float, delta: float, rate: float, steps: int) -> float:
    """The multiplier at which the central-limit formula μ = q√(T(e^{1/σ²} − 1)) reports ``target``."""

    def gap(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        mu = rate * math.sqrt(steps * math.expm1(min(1 / sigma**2, 600.0)))
        return gaussian.epsilon(mu, delta) - target

    return math.exp(brentq(gap, math.log(0.08), math.log(1e4)))
