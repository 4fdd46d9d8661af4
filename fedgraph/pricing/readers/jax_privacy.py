"""JAX Privacy: a Python file that builds an execution plan, ``BandMFConfig`` (num_bands = 1 is DP-SGD), with its own numbers.

noise std = noise_multiplier · query sensitivity · the strategy's column norm; Poisson sampling at rate
expected_participations·num_bands/iterations over 1/num_bands of the data at a time. For b bands the run is, per unit,
iterations/b Poisson-sampled Gaussians of it (Choquette-Choo et al. 2023, arXiv 2306.08153); b = 1: every step.

truncated_batch_size B: a Poisson batch with more than B records is cut to B of them at random. Given the other records that
were drawn, T, a record is in with probability q·min(1, B/(|T|+1)) ≤ q; where it is, the others are a random subset with one
record fewer. That is the coupling of a fixed-size draw (``costs.cost_of_fixed_size``), for every T, and its curve only falls as
q does: the price at q bounds it.
"""

import math
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, dp_sgd
from fedgraph.pricing import python_values as py
from fedgraph.pricing.catalogue import catalogue_entries
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.dp_sgd import DpSgdTraining
from fedgraph.pricing.open_facts import OPEN_FACT_RATES, open_fact_text
from fedgraph.pricing.python_values import CallValue, MethodValue, Value, python_plain, value_candidates, value_holds
from fedgraph.pricing.readings import PublishedReading, Reading, reading_without_claim

_EVENTS = ("dpsgd_event", "truncated_dpsgd_event", "fixed_dpsgd_event")
_PRIVATIZERS = ("gaussian_privatizer",)
BY_HAND = ("grad", "value_and_grad", "apply_updates", "apply_gradients")  # what trains without a plan


def read(document: PricedDocument) -> Reading:
    """The plan, with its noise multiplier or with ``calibrate(epsilon, delta)``; a Keras configuration; or a DP-SGD event."""
    made = [c for c in document.calls if c.name == "BandMFConfig" or c.dotted.endswith("BandMFConfig.default")]
    named = sorted({c.name for c in made})
    plans, why = document.used(*named) if named else ([], "nothing makes a BandMFConfig")
    plans = [c for c in plans if c in made]
    if len(plans) > 1:
        raise PricingError(f"{document.path}: {len(plans)} BandMFConfig plans; one is priced per file")
    if plans:
        return _plan(document, plans[0])
    if configs := document.used("DPKerasConfig")[0]:
        return _keras(document, configs[0])
    if events := document.used(*_EVENTS)[0]:
        return _event(document, events[0])
    if made := document.used("DpsgdGradientComputer")[0]:
        return _computer(document, made[0])
    return dp_sgd.training_in_clear(f"{why}: training is in clear", "train with a plan of JAX Privacy")


def _keras(document: PricedDocument, call: CallValue) -> Reading:
    """``keras_api.DPKerasConfig``, which ``keras_api.make_private`` has to get."""
    if not (given := [python_plain(w.get("params")) for w in document.made("make_private")]):
        nothing = f"nothing gives the DPKerasConfig of line {call.line} to make_private"
        return dp_sgd.training_in_clear(nothing, "call keras_api.make_private")
    if not any(params is call or isinstance(params, py.PythonChoice) for params in given):
        raise document.error_at(call, "make_private gets another configuration than this one; price a file with one")
    held = call.get("poisson_sampling_in_fit")
    poisson = document.answers.flag(held, "poisson_sampling_in_fit", False, call.line, worst=False)
    batch, size, steps = (document.number(call, n) for n in ("batch_size", "train_size", "train_steps"))
    batch = batch * (document.number(call, "gradient_accumulation_steps") or 1) if batch else None
    noise = document.number(call, "noise_multiplier") if call.held("noise_multiplier") is not None else None
    said = DpSgdTraining(noise or 0.0, rate=min(1.0, batch / size) if batch and size else None, people=size,
                    steps=None if steps is None else int(steps), delta=document.number(call, "delta"))  # fmt: skip
    return _sampled(document, call, said, None if noise is not None else document.number(call, "epsilon"), poisson)


def _altered(document: PricedDocument, event: CallValue) -> str:
    """Why less noise may be added than the event says: by the privatizer of the file, where one stands there."""
    for made in document.made(*_PRIVATIZERS):
        if not any(held is made or not isinstance(held, CallValue) for held in [c.owner for c in document.made("update")]):
            return f"{made.name} (line {made.line}) is made, and nothing passes through its update"
        parts = _product(made.get("stddev", 0))
        noise = [python_plain(p) for p in parts if not (isinstance(p, CallValue) and p.name == "sensitivity")]
        multiplier = python_plain(event.get("noise_multiplier"))
        calibrated = isinstance(noise[0], CallValue) and noise[0].name == "calibrate_dp_mechanism" if noise else False
        found = len(noise) == 1 and (calibrated or noise[0] == multiplier)
        std = open_fact_text(made.get("stddev", 0))
        asked = f"Line {made.line} adds noise of std {std}: at least noise multiplier times sensitivity?"
        if not (found and len(parts) > 1) and not document.answers.whether(f"noise of line {made.line} kept", asked):
            return f"the noise of line {made.line}, of std {std}, is not known to be that of {event.name}"
    return ""


def _product(value: Value) -> list[Value]:
    """The factors of a product."""
    inner = python_plain(value)
    if isinstance(inner, py.UnresolvedValue) and inner.factors:
        return [part for factor in inner.factors for part in _product(factor)]
    return [inner]


def _ran(document: PricedDocument, planned: float | None) -> int | None:
    """The steps that are run, asked where a loop of the file is longer than what is accounted for."""
    updates = py.lift_over_values("the steps of its loops", lambda *n: sum(n), *(c.times for c in document.made("update")))
    lengths = [n for held in (*document.program.looped, updates) if isinstance(n := python_plain(held), int)]
    longer = sorted({float(n) for n in lengths if planned is not None and n > planned}, reverse=True)
    if planned is None or not longer:
        return planned if planned is None else int(planned)
    question = f"How many steps are run? Noise is for {planned:g}, and a loop of the file runs {longer[0]:g} times."
    return int(document.answers.ask("steps that are run", question, (*longer, planned)))


def _event(document: PricedDocument, call: CallValue) -> Reading:
    """``dpsgd_event(noise_multiplier, iterations, sampling_prob)``, perhaps inside ``calibrate_dp_mechanism``; or batches of a
    fixed size, or truncated ones."""
    if odd := _altered(document, call):
        return dp_sgd.training_in_clear(odd, "pass gradients through a privatizer with that noise")
    if call.name != "dpsgd_event":
        # ``fixed_dpsgd_event``: batches drawn without replacement; ``truncated_dpsgd_event``: see above.
        size, rate = document.number(call, "dataset_size"), document.number(call, "sampling_prob", "sampling rate")
        steps, replaced, sampler = document.number(call, "iterations", "steps"), python_plain(call.get("replace")), ""
        if call.name == "fixed_dpsgd_event":
            batch, sampler = document.number(call, "batch_size"), "FixedBatchSampling"
            rate = min(1.0, batch / size) if batch and size else rate
            drawn = document.made(sampler)
            replaced = replaced or next((held for c in drawn if (held := python_plain(c.get("replace")))), False)
        if replaced not in (None, False):
            raise document.error_at(call, "not priced: batches drawn with replacement (replace)")
        if document.made("calibrate_dp_mechanism"):
            raise document.error_at(call, f"not priced: noise that is found for {call.name}; write the one it found")
        afresh = document.made(sampler or "CyclicPoissonSampling") or document.ask("batches drawn afresh", None, call)
        return dp_sgd.read_dp_sgd(document, DpSgdTraining(
            document.need(call, "noise_multiplier", least=0.0), sampling="fixed" if afresh else "shuffled", rate=rate,
            steps=_ran(document, steps), people=size, published=reading_without_claim(f"{call.name} with its noise"),
            order=(document.words["truncated" if call.name == "truncated_dpsgd_event" else "drawn"],) if afresh else (),
        ))  # fmt: skip
    rate, steps = document.answers.known("sampling rate"), document.number(call, "iterations", "steps")
    if rate is None and call.held("sampling_prob") is not None:
        rate = document.number(call, "sampling_prob", "sampling rate")
    found = document.made("calibrate_dp_mechanism")
    budget = found[0] if found and not isinstance(python_plain(call.get("noise_multiplier")), (int, float)) else None
    poisson = bool(document.made("CyclicPoissonSampling") or document.ask("poisson sampling", None, call))
    noise = None if budget else document.number(call, "noise_multiplier")
    said = DpSgdTraining(noise or 0.0, rate=rate, steps=None if steps is None else int(steps),
                    delta=document.number(budget, "target_delta", "delta") if budget else None)  # fmt: skip
    if noise is None and not budget:
        raise document.error_at(call, f"{call.name} needs noise_multiplier, or calibrate_dp_mechanism, with numbers")
    return _sampled(document, call, said, document.number(budget, "target_epsilon", "epsilon") if budget else None, poisson)


def _computer(document: PricedDocument, call: CallValue) -> Reading:
    """``DpsgdGradientComputer`` of jax-privacy 1, with a number or the noise of ``calibrate_noise_multiplier``."""
    held = python_plain(call.held("noise_multiplier"))
    found = held if isinstance(held, CallValue) and held.name == "calibrate_noise_multiplier" else None
    said, epsilon = DpSgdTraining(0.0), None
    if found is not None:
        batch, size, steps = (document.number(found, n) for n in ("batch_sizes", "num_samples", "num_updates"))
        epsilon, delta = document.number(found, "target_epsilon", "epsilon"), document.number(found, "target_delta", "delta")
        rate = min(1.0, batch / size) if batch and size else None
        said = DpSgdTraining(0.0, rate=rate, steps=None if steps is None else int(steps), delta=delta, people=size)
    else:
        said = DpSgdTraining(document.need(call, "noise_multiplier", above=0.0))
    return _sampled(document, call, said, epsilon, bool(document.ask("poisson sampling", None, call)))


def _sampled(document: PricedDocument, call: CallValue, said: DpSgdTraining, epsilon: float | None, poisson: bool) -> Reading:
    """DP-SGD as ``said``; epsilon: what its noise is found for, by coins, where it is not said."""
    by_hand = said.multiplier > 0 or epsilon is None
    noise, delta = said.multiplier, said.delta or 0.0
    if (not by_hand and (epsilon is None or epsilon <= 0 or not 0 < delta < 1)) or noise < 0:
        message = f"{call.name} needs noise_multiplier ≥ 0, or an epsilon > 0 and a delta in (0, 1), as numbers"
        raise document.error_at(call, message)
    claim = PublishedReading(None, said.delta, "none", f"{call.name} with its noise")
    if not by_hand:
        claim = PublishedReading(epsilon, delta, "total", call.name)
        planned, said = said.steps, replace(said, steps=_ran(document, said.steps))
        if poisson and planned == said.steps:
            found = dp_sgd.read_calibrated_dp_sgd(document, claim, document.words["calibrated"], "epsilon")
            return replace(found, people=said.people)
        question = f"Which share of the records is in a batch? {call.name} (line {call.line}) finds its noise for it."
        rate = said.rate if said.rate is not None else document.answers.ask("sampling rate", question, OPEN_FACT_RATES[1:])
        steps = int(document.ask("steps", said.steps))
        noise, said = costs.noise_at_cost(epsilon or 0.0, delta, rate, planned or steps), replace(said, rate=rate, steps=steps)
    said = replace(said, multiplier=noise, sampling="poisson" if poisson else "shuffled", published=(claim,))
    return dp_sgd.read_dp_sgd(document, replace(said, order=() if poisson else (document.words["cut"],)))


def _plan(document: PricedDocument, call: CallValue) -> Reading:
    known = set(catalogue_entries()["jax_privacy"].calls["BandMFConfig"].split()) - {"*"}
    for name in set(call.keywords) - known - {"**"}:
        raise document.error_at(call, f"BandMFConfig: unknown option {name!r}; allowed: {', '.join(sorted(known))}")
    changed = next((c for c in document.made("replace", "asdict") if any(value_holds(v, call) for v in c.args)), None)
    if changed is not None:
        raise document.error_at(changed, f"{changed.name} changes BandMFConfig; write its options where it is made")
    bands, uses, trained = _bands(document, call), _uses(document, call), document.made(*BY_HAND)
    if trained and not uses & {"?", "noise_addition_transform"}:
        line = trained[0].line
        unused = f"line {line} trains, and nothing passes through noise_addition_transform of the plan of line {call.line}"
        return dp_sgd.training_in_clear(unused, "pass clipped sums through the plan's noise_addition_transform")
    calibrated, people = next(iter(document.made("calibrate")), None), document.number(call, "num_examples")
    epsilon, delta = (document.number(calibrated, name) if calibrated else None for name in ("epsilon", "delta"))
    given = document.number(call, "noise_multiplier") if call.held("noise_multiplier") is not None and not calibrated else None
    truncated = call.held("truncated_batch_size") is not None
    if truncated and (bands > 1 or given is None):
        message = "not priced: truncated_batch_size with several bands, or without noise_multiplier; write the one it found"
        raise document.error_at(call, message)
    if given is None and (epsilon is None or delta is None or epsilon <= 0 or not 0 < delta < 1):
        raise document.error_at(call, "BandMFConfig needs noise_multiplier, or calibrate(epsilon=…, delta=…), as numbers")
    iterations, expected = (document.need(call, name, above=0.0) for name in ("iterations", "expected_participations"))
    planned = not trained or uses & {"?", "batch_selection_strategy"} or document.made("CyclicPoissonSampling")
    rate, poisson = expected * bands / iterations, bool(planned or document.ask("poisson sampling", None, call))
    if not 0 < rate <= 1 or (given or 0.0) < 0:
        raise document.error_at(call, f"expected_participations·num_bands/iterations = {rate:g} is no rate in (0, 1]")
    ran = _ran(document, iterations)
    if given is None and poisson and ran == int(iterations):
        claim = PublishedReading(epsilon, delta, "total", "BandMFConfig.calibrate")
        return replace(dp_sgd.read_calibrated_dp_sgd(document, claim, document.words["calibrated"], "epsilon"), people=people)
    steps = math.ceil((ran or iterations) / bands)
    noise = costs.noise_at_cost(epsilon or 0.0, delta or 0.0, rate, math.ceil(iterations / bands)) if given is None else given
    several = f"{bands:g} bands: per unit {steps} Poisson-sampled Gaussians of this multiplier." if bands > 1 else ""
    how = "" if poisson else document.words["cut"]
    claims = reading_without_claim("a plan with its noise multiplier; ε comes from its dp_event")
    return dp_sgd.read_dp_sgd(document, DpSgdTraining(
        noise, sampling="shuffled" if not poisson else "fixed" if truncated else "poisson", rate=rate, steps=steps,
        delta=delta, people=people, published=claims,
        order=tuple(filter(None, (several, how, document.words["truncated"] if truncated else ""))),
    ))  # fmt: skip


def _bands(document: PricedDocument, call: CallValue) -> float:
    """The bands of a plan: the length of its strategy, or ``num_bands`` of ``default``."""
    strategy = python_plain(call.get("strategy"))
    array = isinstance(strategy, CallValue) and strategy.name in ("array", "asarray")
    inner = python_plain(strategy.args[0]) if isinstance(strategy, CallValue) and array else strategy
    if (known := py.value_elements(inner)) is not None:
        return float(len(known))
    if strategy is not None:
        return max(1.0, document.ask("bands of the strategy", None, open_fact_text(strategy)))
    return document.need(call, "num_bands", least=1.0) if call.held("num_bands") is not None else 1.0


def _of_the_plan(value: Value, call: CallValue) -> bool:
    """Whether a value is a plan, its configuration, or a part of either."""
    inner = python_plain(value)
    if isinstance(inner, MethodValue) or (isinstance(inner, CallValue) and inner.name in ("make", "calibrate")):
        return _of_the_plan(inner.owner, call)
    return any(each is call for each in value_candidates(inner))


def _uses(document: PricedDocument, call: CallValue) -> set[str]:
    """The parts of a plan that the program calls, and ``?`` where something else gets it whole."""
    made = [c for c in document.calls if c.reached and c.name not in ("make", "calibrate", "print")]
    parts = {c.owner.name for c in made if isinstance(c.owner, MethodValue) and _of_the_plan(c.owner, call)}
    parts |= {c.name for c in made if _of_the_plan(c.owner, call)}
    given = [python_plain(v) for c in made for v in (*c.args, *c.keywords.values()) if _of_the_plan(v, call)]
    return parts | {v.name if isinstance(v, MethodValue) else "?" for v in given}
