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

from fedgraph.pricing import costs, training
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_values import Call, Part, plain
from fedgraph.pricing.questions import text
from fedgraph.privacy.accounting import calibrate, gaussian
from fedgraph.privacy.events import Event, PoissonGaussian, Repeated

SYSTEM = "Opacus"
VERSION = "opacus 1.0–1.6"
SOURCE = (
    "pytorch/opacus at 4d0ebc84 (2025-09-16), opacus/privacy_engine.py; opacus 1.6.0 from the package index; read 2026-11-21"
)
SAID = (
    "Opacus documents that its accounting assumes Poisson sampling, that its gdp accountant is an approximation, and that "
    "secure_mode is needed for noise from a cryptographic generator."
)
SCHEDULERS = ("ExponentialNoise", "LambdaNoise", "StepNoise")
DIVIDES = (
    "Opacus 1.0–1.6 divides by the whole part of the expected batch size, which differs between neighbours under add/remove "
    "(opacus#819, arXiv 2605.15648): these prices are for zero-out and replace, which keep the number of examples."
)
MAKERS = ("make_private", "make_private_with_epsilon")
NO_PRICE = {
    "module", "optimizer", "data_loader", "criterion", "batch_first", "loss_reduction", "noise_generator",
    "grad_sample_mode", "poisson_sampling", "clipping", "max_grad_norm", "noise_multiplier", "target_epsilon",
    "target_delta", "epochs", "accountant", "rand_on_empty", "total_steps", "wrap_model", "target_unclipped_quantile",
    "clipbound_learning_rate",
    "max_clipbound", "min_clipbound", "unclipped_num_std", "alphas",
}  # fmt: skip


def recognises(document: Document) -> bool:
    return document.kind == "python" and any(name.split(".")[0] == "opacus" for name in document.imports)


def read(document: Document) -> Reading:
    """Every ``make_private…`` that is reached; several are models of their own, on the same data."""
    if (old := document.made("PrivacyEngine")) and any(c.name == "attach" for c in document.calls):
        raise document.error(
            "PrivacyEngine(model, …).attach(optimizer) is of opacus before 1.0; read here are " + VERSION, line=old[0].line
        )
    calls, why = training.protections(document, *MAKERS)
    if not calls:
        return in_clear(
            "example", RECIPIENT, f"{why}: training is in clear", "call make_private, and train with what it returns"
        )
    for call in calls:
        raw = call.get("optimizer")
        beside = next((c for c in document.made("step") if isinstance(raw, Call) and c.owner is raw), None)
        if beside is not None:
            reason = f"line {beside.line} steps with the optimizer given to make_private, not with the one it returns: no noise"
            return in_clear(
                "example", RECIPIENT, reason, "train with the model, optimizer and data loader that make_private returns"
            )
    found = [_one(document, call) for call in calls]
    return training.several(found * training.times(document, calls, "private model"), "private model")


def _one(document: Document, call: Call) -> Reading:
    answers, engines = document.answers, document.made("PrivacyEngine")
    engine = next((e for e in engines if e is call.owner), engines[0] if engines else None)
    for name in call.keywords:
        if name not in NO_PRICE and name != "**":
            raise document.error(
                f"{call.name}: unknown option {name!r}; allowed: {', '.join(sorted(NO_PRICE))}", line=call.line
            )
    clipping = plain(call.get("clipping")) or "flat"
    if clipping not in ("flat", "per_layer", "adaptive"):
        allowed = "flat, per_layer, adaptive"
        raise document.error(f"clipping={text(call.get('clipping'))} is not priced; allowed: {allowed}", line=call.line)
    spread = _spread(document, call) if clipping == "adaptive" else None
    poisson = answers.flag(call.get("poisson_sampling"), "poisson_sampling", True, call.line, worst=False)
    loaders = document.made("DataLoader")
    batch = document.number(loaders[0], "batch_size", 1) if len(loaders) == 1 else None
    accountant = str((plain(engine.get("accountant", 0)) if engine else None) or "prv")
    unprotected: tuple[str, ...] = (
        ()
        if engine and plain(engine.get("secure_mode", 1)) is True
        else ("noise comes from a generator that is not cryptographic (secure_mode is off)",)
    )
    if spread is not None:
        unprotected += ("the size of each batch, by which the noised count of unclipped examples is divided in clear",)
    note = (f"batch size {batch:g}",) if batch else ()
    noise = plain(call.get("noise_multiplier"))
    if call.name == "make_private_with_epsilon":
        return _with_epsilon(
            document, call, poisson, accountant, unprotected, spread, training.epochs(document, document.number(call, "epochs"))
        )
    if isinstance(noise, Call) and noise.name == "get_noise_multiplier":
        return _with_epsilon(
            document,
            noise,
            poisson,
            str(plain(noise.get("accountant")) or "prv"),
            unprotected,
            spread,
            document.number(noise, "epochs"),
        )
    first = document.number(call, "noise_multiplier")
    if first is None or first < 0:
        raise document.error("make_private needs noise_multiplier as a number ≥ 0", line=call.line)
    multiplier, changed = _later(document, call, first)
    asked = document.made("get_epsilon")
    delta = document.number(asked[0], "delta", 0) if asked else None
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "poisson" if poisson else "shuffled",
            delta=delta,
            epochs=training.epochs(document),
            published=(Published(None, None, "none", "the file asks its accountant at run time"),),
            unprotected=unprotected,
            order=note + changed + _shuffled(poisson) + _adaptive(spread) + (DIVIDES,),
            ratio=_ratio(document, call, multiplier, spread),
        )
    )


def _results(call: Call) -> list[Call | Part]:
    return [call, *call.parts.values()]


def _later(document: Document, call: Call, first: float) -> tuple[float, tuple[str, ...]]:
    """The least noise multiplier of the run: later assignments and schedulers may lower it."""
    least, said = first, []
    for part in _results(call):
        if "noise_multiplier" in part.attributes:
            line = part.set_at["noise_multiplier"]
            value = document.answers.number(part.attributes["noise_multiplier"], "noise_multiplier", line)
            if value is None:
                question = f"Line {line} sets noise_multiplier again, to a value that the file leaves open: what is the least?"
                value = document.answers.pick(Unknown("least noise_multiplier", question, (first / 10, first / 2, first)))
            least = min(least, value)
            said.append(f"Line {line} sets noise_multiplier again; every step is priced at the least noise, {least:g}.")
    for made in document.made(*SCHEDULERS):
        gamma = document.number(made, "gamma", 2 if made.name == "StepNoise" else 1)
        if gamma is not None and gamma >= 1:
            said.append(f"{made.name} (line {made.line}) only raises the noise; every step is priced at the first noise.")
            continue
        question = f"{made.name} (line {made.line}) changes the noise as training goes on: what is its least value?"
        least = min(
            least, document.answers.pick(Unknown("least noise_multiplier", question, (first / 100, first / 10, first / 2)))
        )
        said.append(f"Every step is priced at the least noise_multiplier, {least:g}.")
    return least, tuple(said)


def _spread(document: Document, call: Call) -> float:
    """σ_b of adaptive clipping."""
    spread = document.number(call, "unclipped_num_std")
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


def _with_epsilon(
    document: Document,
    call: Call,
    poisson: bool,
    accountant: str,
    unprotected: tuple[str, ...],
    spread: float | None,
    run: float | None,
) -> Reading:
    target, delta = document.number(call, "target_epsilon"), document.number(call, "target_delta", asked="delta")
    epochs = document.number(call, "epochs")
    steps_said = document.number(call, "steps") if epochs is None else None
    if target is None or target <= 0 or delta is None or not 0 < delta < 1:
        raise document.error(
            "make_private_with_epsilon needs target_epsilon > 0 and 0 < target_delta < 1 as numbers", line=call.line
        )
    if accountant not in ("prv", "rdp", "gdp"):
        raise document.error(f"accountant {accountant!r}; allowed: prv, rdp, gdp", line=call.line)
    published = (Published(target, delta, "total", f"make_private_with_epsilon, accountant {accountant}"),)
    changed = any("noise_multiplier" in part.attributes for part in _results(call)) or document.made(*SCHEDULERS)
    if changed:
        message = "not priced: noise found for an ε and changed afterwards; print the noise it found and use make_private"
        raise document.error(message, line=call.line)
    if poisson and accountant != "gdp" and spread is None and (epochs == run or steps_said is not None):
        words = (
            f"noise found by Opacus' {accountant} accountant for this ε, which holds for Poisson sampling and add/remove or "
            "zero-out"
        )

        def known(facts: Facts, factor: float) -> tuple[Row, ...]:
            return (Row("example", "zero-out", RECIPIENT, costs.approximate(target / factor, delta), 1, delta, words),)

        def buys(factor: float) -> dict[str, Setting]:
            return {"target_epsilon": target / factor}

        return Reading(
            known, published, (), unprotected, settings=buys, order=("Poisson-sampled steps compose adaptively.", DIVIDES)
        )

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rate = facts["sampling rate"]
        total = run if run is not None else facts["epochs"]
        steps, planned = math.ceil(total / rate), math.ceil((epochs or total) / rate)
        found = _gdp(target, delta, rate, planned) if accountant == "gdp" else _own(target, delta, rate, planned)
        multiplier = factor * found / _ratio(document, call, found, spread)
        why = f"Opacus' {accountant} accountant takes noise multiplier {multiplier:.4g}"
        if poisson:
            return (Row("example", "zero-out", RECIPIENT, costs.poisson(multiplier, rate), steps, delta, why),)
        why += "; batches are shuffled, one visit per epoch, unsampled"
        return (Row("example", "zero-out", RECIPIENT, costs.gaussian(multiplier), math.ceil(total), delta, why),)

    unknowns = [
        Unknown("sampling rate", "Which share of the examples is in a batch (1/len(data_loader))?", (0.1, 0.03, 0.01, 0.003))
    ]
    if run is None:
        more = "" if epochs is None else f" Noise is found for {epochs:g}, and no loop of the file has that length."
        unknowns.append(Unknown("epochs", f"How many epochs are run?{more}", (100.0, 30.0, 10.0, 1.0)))
    return Reading(
        rows,
        published,
        tuple(unknowns),
        unprotected,
        order=(*_shuffled(poisson), DIVIDES),
        no_fix="set poisson_sampling=True and accountant='prv'",
    )


def _own(target: float, delta: float, rate: float, steps: int) -> float:
    def event(multiplier: float) -> Event:
        return Repeated(PoissonGaussian(multiplier, rate, touched_rows=1, replaced=False), steps)

    return calibrate.noise_multiplier(event, target, delta)


def _gdp(target: float, delta: float, rate: float, steps: int) -> float:
    """The multiplier at which the central-limit formula μ = q√(T(e^{1/σ²} − 1)) reports ``target``."""

    def gap(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        mu = rate * math.sqrt(steps * math.expm1(min(1 / sigma**2, 600.0)))
        return gaussian.epsilon(mu, delta) - target

    return math.exp(brentq(gap, math.log(0.08), math.log(1e4)))
