"""JAX Privacy: a Python file that builds an execution plan, ``BandMFConfig`` (num_bands = 1 is DP-SGD), with its own numbers.

noise std = noise_multiplier · query sensitivity · the strategy's column norm; Poisson sampling at rate
expected_participations·num_bands/iterations over 1/num_bands of the data at a time. For b bands the run is, per unit,
iterations/b Poisson-sampled Gaussians of it (Choquette-Choo et al. 2023, arXiv 2306.08153); b = 1: every step.

truncated_batch_size B: a Poisson batch with more than B records is cut to B of them at random. Given the other records that
were drawn, T, a record is in with probability q·min(1, B/(|T|+1)) ≤ q; where it is, the others are a random subset with one
record fewer. That is the coupling of a fixed-size draw (``_costs``), for every T, and its curve only falls as q does: the price
at q bounds it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, training
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_values import Call, Choice, plain
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import PoissonGaussian, Repeated

SYSTEM = "JAX Privacy"
VERSION = "jax-privacy 2.0–2.3"
SOURCE = "google-deepmind/jax_privacy at 8967688 (2026-08-20, 2.3.0.dev0): jax_privacy/execution_plan.py; read 2026-11-21"
SAID = (
    "Its authors say that a plan's dp_event precisely describes the mechanism and that plans of their configuration "
    "classes were "
    "verified by them; truncated Poisson sampling is accounted for separately."
)
KNOWN = {
    "iterations",
    "expected_participations",
    "strategy",
    "num_bands",
    "noise_multiplier",
    "l2_clip_norm",
    "rescale_to_unit_norm",
    "normalize_by",
    "truncated_batch_size",
    "num_examples",
    "column_normalize",
}


def recognises(document: Document) -> bool:
    return document.kind == "python" and any(name.split(".")[0] == "jax_privacy" for name in document.imports)


def read(document: Document) -> Reading:
    """The plan, with its noise multiplier or with ``calibrate(epsilon, delta)``; a Keras configuration; or a DP-SGD event."""
    made = [c for c in document.calls if c.name == "BandMFConfig" or c.dotted.endswith("BandMFConfig.default")]
    named = sorted({c.name for c in made})
    plans, why = training.protections(document, *named) if named else ([], "nothing makes a BandMFConfig")
    plans = [c for c in plans if c in made]
    if len(plans) > 1:
        raise PricingError(f"{document.path}: {len(plans)} BandMFConfig plans; one is priced per file")
    if plans:
        return _plan(document, plans[0])
    if configs := training.protections(document, "DPKerasConfig")[0]:
        return _keras(document, configs[0])
    if events := training.protections(document, "dpsgd_event", "truncated_dpsgd_event", "fixed_dpsgd_event")[0]:
        return _event(document, events[0])
    return in_clear("example", RECIPIENT, f"{why}: training is in clear", "train with a plan of JAX Privacy")


def _keras(document: Document, call: Call) -> Reading:
    """``keras_api.DPKerasConfig``, which ``keras_api.make_private`` has to get."""
    wrapped = document.made("make_private")
    if (
        wrapped
        and not any(plain(w.get("params", 1)) is call for w in wrapped)
        and not any(isinstance(plain(w.get("params", 1)), Choice) for w in wrapped)
    ):
        raise document.error("make_private gets another configuration than this one; price a file with one", line=call.line)
    if not wrapped:
        return in_clear(
            "example",
            RECIPIENT,
            f"nothing gives the DPKerasConfig of line {call.line} to make_private",
            "call keras_api.make_private",
        )
    poisson = document.answers.flag(
        call.get("poisson_sampling_in_fit"), "poisson_sampling_in_fit", False, call.line, worst=False
    )
    batch, size, steps = (document.number(call, n) for n in ("batch_size", "train_size", "train_steps"))
    batch = batch * (document.number(call, "gradient_accumulation_steps") or 1) if batch else None
    said = Said(document.number(call, "noise_multiplier") if call.get("noise_multiplier") is not None else None,
                min(1.0, batch / size) if batch and size else None, steps, document.number(call, "epsilon"),
                document.number(call, "delta"))  # fmt: skip
    return _sampled(document, call, said, poisson, "DPKerasConfig")


def _event(document: Document, call: Call) -> Reading:
    """``dpsgd_event(noise_multiplier, iterations, sampling_prob)``, perhaps inside ``calibrate_dp_mechanism``."""
    rate, steps = document.answers.known("sampling rate"), document.number(call, "iterations", 1, "steps")
    rate = (
        document.number(call, "sampling_prob", 2, "sampling rate")
        if rate is None and call.get("sampling_prob", 2) is not None
        else rate
    )
    found = document.made("calibrate_dp_mechanism")
    noise = plain(call.get("noise_multiplier", 0))
    budget = found[0] if found and not isinstance(noise, (int, float)) else None
    epsilon = document.number(budget, "target_epsilon", 2, "epsilon") if budget else None
    delta = document.number(budget, "target_delta", 3, "delta") if budget else None
    coins = bool(document.made("CyclicPoissonSampling"))
    poisson = coins or document.answers.whether(
        "poisson sampling", f"Are batches drawn by coins, as {call.name} (line {call.line}) takes for granted?"
    )
    multiplier = None if budget else document.number(call, "noise_multiplier", 0)
    return _sampled(document, call, Said(multiplier, rate, steps, epsilon, delta), poisson, call.name)


@dataclass(frozen=True)
class Said:
    """What a file says of DP-SGD; noise None: found such that it costs (epsilon, delta) with coins."""

    noise: float | None
    rate: float | None
    steps: float | None
    epsilon: float | None
    delta: float | None


def _sampled(document: Document, call: Call, said: Said, poisson: bool, name: str) -> Reading:
    if said.noise is None and (said.epsilon is None or said.delta is None or said.epsilon <= 0 or not 0 < said.delta < 1):
        raise document.error(
            f"{name} needs noise_multiplier, or an epsilon > 0 and a delta in (0, 1), as numbers", line=call.line
        )
    claim = (
        Published(said.epsilon, said.delta, "total", name)
        if said.noise is None
        else Published(None, said.delta, "none", f"{name} with its noise")
    )
    if said.noise is None and poisson:
        return _found(said.epsilon or 0.0, said.delta or 0.0, claim)
    noise = said.noise
    if noise is None:
        if said.rate is None or said.steps is None:
            raise document.error(
                f"{name} finds its noise for coins, and batches are cut in turn: write noise_multiplier", line=call.line
            )
        rate, planned = said.rate, int(said.steps)
        noise = calibrate.noise_multiplier(
            lambda m: Repeated(PoissonGaussian(m, rate, touched_rows=1, replaced=False), planned),
            said.epsilon or 0.0,
            said.delta or 0.0,
        )
    if noise < 0:
        raise document.error(f"{name} needs noise_multiplier ≥ 0", line=call.line)
    note = (
        ()
        if poisson
        else ("Batches are taken as cut in turn, so that nothing is amplified; the authors' ε takes coins for granted.",)
    )
    steps = None if said.steps is None else int(said.steps)
    made = training.Training(noise, "noise_multiplier", "poisson" if poisson else "shuffled", rate=said.rate, steps=steps,
                             delta=said.delta, published=(claim,), order=note)  # fmt: skip
    return training.reading(made)


def _plan(document: Document, call: Call) -> Reading:
    for name in call.keywords:
        if name not in KNOWN:
            raise document.error(f"BandMFConfig: unknown option {name!r}; allowed: {', '.join(sorted(KNOWN))}", line=call.line)
    iterations, expected = _need(document, call, "iterations"), _need(document, call, "expected_participations")
    strategy = plain(call.get("strategy"))
    bands = float(len(strategy)) if isinstance(strategy, list) else document.number(call, "num_bands") or 1.0
    if call.get("num_bands") is not None and document.number(call, "num_bands") is None:
        raise document.error("BandMFConfig needs num_bands as a number", line=call.line)
    calibrated = next((c for c in document.made("calibrate")), None)
    epsilon = document.number(calibrated, "epsilon", 0) if calibrated else None
    delta = document.number(calibrated, "delta", 1) if calibrated else None
    multiplier = document.number(call, "noise_multiplier") if call.get("noise_multiplier") is not None else None
    truncated = call.get("truncated_batch_size") is not None
    if truncated and (bands > 1 or multiplier is None):
        message = "not priced: truncated_batch_size with several bands, or without noise_multiplier; write the one it found"
        raise document.error(message, line=call.line)
    if multiplier is None:
        return _calibrated(document, call, epsilon, delta)
    rate = expected * bands / iterations
    if not 0 < rate <= 1 or bands < 1 or multiplier < 0:
        raise document.error(f"expected_participations·num_bands/iterations = {rate:g} is no rate in (0, 1]", line=call.line)
    note: tuple[str, ...] = (
        (f"{bands:g} bands: per unit {math.ceil(iterations / bands)} Poisson-sampled Gaussians of this multiplier.",)
        if bands > 1
        else ()
    )
    if truncated:
        note += (
            "Truncated batches: given who else was drawn, a record stays with probability at most the rate, and then takes the "
            "place of one other record: priced as a fixed-size draw at that rate (arXiv 2508.15089 may prove less).",
        )
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "fixed" if truncated else "poisson",
            rate=rate,
            steps=math.ceil(iterations / bands),
            delta=delta,
            published=(Published(None, None, "none", "a plan with its noise multiplier; ε comes from its dp_event"),),
            order=note,
        )
    )


def _need(document: Document, call: Call, name: str) -> float:
    found = document.number(call, name)
    if found is None or found <= 0:
        raise document.error(f"BandMFConfig needs {name} as a number > 0", line=call.line)
    return found


def _calibrated(document: Document, call: Call, epsilon: float | None, delta: float | None) -> Reading:
    if epsilon is None or delta is None or epsilon <= 0 or not 0 < delta < 1:
        raise document.error(
            "BandMFConfig needs noise_multiplier, or calibrate(epsilon=…, delta=…), as numbers", line=call.line
        )
    return _found(epsilon, delta, Published(epsilon, delta, "total", "BandMFConfig.calibrate"))


def _found(epsilon: float, delta: float, claim: Published) -> Reading:
    words = "noise found by JAX Privacy's accountant (loss distributions) for this ε, which holds for its Poisson sampling"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("example", "zero-out", RECIPIENT, costs.approximate(epsilon / factor, delta), 1, delta, words),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"epsilon": epsilon / factor}

    return Reading(rows, (claim,), order=("Poisson-sampled steps compose adaptively.",), settings=settings)
