"""Opacus: a Python file that calls ``PrivacyEngine.make_private`` or ``make_private_with_epsilon``.

What its accountants and its adaptive clipping are worth: ``docs/how_deployed_noise_is_priced.md``.
"""

import math
import re
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from fedgraph.pricing import catalogue, costs, dp_sgd
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.dp_sgd import DpSgdTraining
from fedgraph.pricing.open_facts import OPEN_FACT_QUESTIONS, open_fact_text
from fedgraph.pricing.python_state import LoopPass
from fedgraph.pricing.python_values import CallValue, MethodValue, PartValue, python_plain, value_holds, value_truth
from fedgraph.pricing.readings import PRICE_TO_RECIPIENT, PublishedReading, Reading, ReadingRow, reading_without_claim
from fedgraph.privacy.accounting import gaussian

_SCHEDULERS = ("ExponentialNoise", "LambdaNoise", "StepNoise")
OPACUS_MAKERS = ("make_private", "make_private_with_epsilon")
_HARMLESS = ("noise_multiplier", "max_grad_norm", "expected_batch_size", "param_groups", "defaults", "state", "grad_samples")
_INSIDE = ("original_optimizer", "optimizer")
BY_HAND = ("DPOptimizer", "DistributedDPOptimizer", "DPOptimizerFastGradientClipping",
           "DistributedDPOptimizerFastGradientClipping")  # fmt: skip
_TOGETHER = ("DifferentiallyPrivateDistributedDataParallel", "DistributedDataParallel", "FSDP2Wrapper",
            "FullyShardedDataParallel")  # fmt: skip
_STARTED = ("init_process_group", "spawn", "start_processes", "notebook_launcher")
_ONCE = ("DistributedSampler", "SequentialSampler", "SubsetRandomSampler")
OPACUS_LEAST_NOISE = "least noise_multiplier"


@dataclass(frozen=True)
class Run:
    """How what a call makes private is trained."""

    call: CallValue  # ``make_private`` or ``make_private_with_epsilon``
    poisson: bool  # whether batches are drawn by coins
    visits: float  # how often one step visits one example, by several processes; 1 or more
    seen: tuple[LoopPass, ...]  # the loops that train
    spread: float | None  # the noise on the count of unclipped examples; None where that count is not released
    unprotected: tuple[str, ...]  # what is not covered


def read(document: PricedDocument) -> Reading:
    """Every ``make_private…`` that is reached; several are models of their own, on the same data."""
    if (old := document.made("PrivacyEngine")) and any(c.name == "attach" for c in document.calls):
        message = "PrivacyEngine(model, …).attach(optimizer) is of opacus before 1.0; read here are opacus 1.0–1.6"
        raise document.error_at(old[0], message)
    calls, why = document.used(*OPACUS_MAKERS)
    for call in [c for c in document.used(*BY_HAND)[0] if document.number(c, "noise_multiplier") == 0]:
        asked = f"Line {call.line} of {call.path.name} trains with {call.name} and no noise: is what it makes ever released?"
        if document.answers.whether(f"model of line {call.line} released", asked, worst=True):
            reason = f"{call.name} ({call.path.name}:{call.line}) has noise_multiplier 0: no noise"
            return dp_sgd.training_in_clear(reason, "give every model that is released its noise")
    if not calls:
        return dp_sgd.training_in_clear(f"{why}: training is in clear", "call make_private, and train with what it returns")
    for call in calls:
        if reason := _trains_in_clear(document, call):
            return dp_sgd.training_in_clear(reason, "train with the model, optimizer and data loader that make_private returns")
    found = [_one(document, call) for call in calls]
    return dp_sgd.add_dp_sgd_trainings(found * dp_sgd.count_dp_sgd_trainings(document, calls, "private model"), "private model")


def _trains_in_clear(document: PricedDocument, call: CallValue) -> str:
    """Why what steps adds no noise, or may not add what was asked for: it is not what ``call`` returns, or is changed."""
    optimizer: list[CallValue | PartValue] = [part for part in call.parts.values() if part.index == 1]
    reason = next((why for part in [call, *optimizer] if (why := document.altered(part, *_HARMLESS))), "")
    asked = f"Line {call.line} makes the model private, and nothing steps with its optimizer: does it train?"
    backward, stepped = document.made("backward"), document.made("step", "fit")
    if backward and not stepped and not document.answers.whether("private optimizer steps", asked):
        reason = f"line {backward[0].line} computes gradients, and no optimizer of make_private steps: no noise"
    raw, owners = call.get("optimizer"), [(step, step.owner) for step in document.made("step")]
    if beside := [step for step, owner in owners if owner is raw and isinstance(raw, CallValue)]:
        return f"line {beside[0].line} steps with the optimizer given to make_private, not with the one it returns: no noise"
    models = [call.get("module"), call, *(p for p in call.parts.values() if p.index == 0)]
    for _, owner in owners:  # an optimizer that is made of the parameters of the private model
        if isinstance(owner, CallValue) and not any(value_holds(owner, part) for part in call.parts.values()):
            given = [python_plain(v) for v in (*owner.args, *owner.keywords.values())]
            if any(isinstance(v, CallValue) and v.name == "parameters" and any(v.owner is m for m in models) for v in given):
                return f"line {owner.line} makes another optimizer of the private model, and trains with it: no noise"
    within = [(step, o.owner) for step, o in owners if isinstance(o, MethodValue) and o.name in _INSIDE]
    if inside := [step for step, owner in within if any(owner is part for part in _results(call))]:
        return f"line {inside[0].line} steps with the optimizer inside the one that make_private returns: no noise"
    return reason


def _processes(document: PricedDocument, call: CallValue, poisson: bool) -> tuple[int, float]:
    """(models that are trained on the same examples, processes in which one step visits an example)."""
    started = document.made(*_STARTED)
    together = any(value_holds(call.get("module"), made) for made in document.made(*_TOGETHER))
    split = poisson or any(value_holds(call.get("data_loader"), made) for made in document.made("DistributedSampler"))
    if not started or (together and split):
        return 1, 1.0
    what = "go over the same examples, each all of them" if together else "train a model of their own, on the same examples"
    known = next((n for c in started if (n := document.number(c, "nprocs", "processes")) is not None), None)
    found = max(1.0, document.ask("processes", known, what=what))
    return (1, found) if together else (int(found), 1.0)


def _drawn(document: PricedDocument, call: CallValue, poisson: bool) -> str:
    """Why an example may be in a batch, or in several batches of an epoch, more than once."""
    loader = python_plain(call.get("data_loader"))
    data = python_plain(loader.get("dataset")) if isinstance(loader, CallValue) else None
    if isinstance(data, CallValue) and data.name in ("ConcatDataset", "ChainDataset"):
        asked = f"Line {data.line} puts data sets together: is every example in one of them only?"
        if not document.answers.whether("examples in one data set", asked):
            return f"{data.name} (line {data.line}) may hold an example any number of times"
    if not isinstance(loader, CallValue) or poisson:
        return ""
    for held in (python_plain(loader.get(name)) for name in ("sampler", "batch_sampler")):
        once = isinstance(held, CallValue) and held.name in (*_ONCE, "RandomSampler")
        if isinstance(held, CallValue) and "replacement" in held.keywords:
            once = once and value_truth(held.get("replacement")) is False
        if held is not None and not once:
            asked = f"Batches are drawn by {open_fact_text(held)}: is every example in one batch of an epoch at most?"
            if not document.answers.whether("examples once an epoch", asked):
                return f"batches are drawn by {open_fact_text(held)}, which may draw an example any number of times"
    return ""


def _one(document: PricedDocument, call: CallValue) -> Reading:
    answers, words, engines = document.answers, document.words, document.made("PrivacyEngine")
    engine = next((e for e in engines if e is call.owner), engines[0] if engines else None)
    allowed = set(catalogue.catalogue_entries()["opacus"].ignored.split())
    for name in set(call.keywords) - allowed - {"**"}:
        raise document.error_at(call, f"{call.name}: unknown option {name!r}; allowed: {', '.join(sorted(allowed))}")
    clipping = python_plain(call.get("clipping")) or "flat"
    if clipping not in ("flat", "per_layer", "adaptive"):
        message = f"clipping={open_fact_text(call.get('clipping'))} is not priced; allowed: flat, per_layer, adaptive"
        raise document.error_at(call, message)
    spread = document.need(call, "unclipped_num_std", above=0.0) if clipping == "adaptive" else None
    poisson = answers.flag(call.get("poisson_sampling"), "poisson_sampling", True, call.line, worst=False)
    raw, results = python_plain(call.get("data_loader")), _results(call)
    seen = dp_sgd.find_dp_sgd_loops(document, (raw, *results), (call.get("optimizer"), *results))
    returned = any(value_holds(p.over, part) for p in seen for part in results)
    beside = isinstance(raw, CallValue) and any(value_holds(p.over, raw) for p in seen) and not returned
    poisson = poisson and not beside
    if again := _drawn(document, call, poisson):
        return dp_sgd.training_in_clear(again, "set poisson_sampling=True, or draw without replacement")
    models, visits = _processes(document, call, poisson)
    secure = engine is not None and python_plain(engine.get("secure_mode")) is True
    unprotected: tuple[str, ...] = () if secure else (words["insecure"],)
    unprotected += (words["counted"],) if spread is not None else ()
    deltas = [call.held("target_delta"), *(c.get("delta") for c in document.made("get_epsilon"))]
    batches = [open_fact_text(d) for d in deltas if re.search(r"1(\.0*)? / len\(\w*load\w*\)", open_fact_text(d))]
    unprotected += (f"δ = {batches[0]} {words['delta of batches']}",) if batches else ()
    run = Run(call, poisson, visits, tuple(seen), spread, unprotected)
    noise, finder = python_plain(call.get("noise_multiplier")), None
    if call.name == "make_private_with_epsilon":
        noise, finder = call, engine
    elif isinstance(noise, CallValue) and noise.name == "get_noise_multiplier":
        finder = noise
    if isinstance(noise, CallValue) and (noise is call or finder is noise):
        accountant = str((python_plain(finder.get("accountant")) if finder else None) or "prv")
        return dp_sgd.add_dp_sgd_trainings([_with_epsilon(document, noise, run, accountant)] * models, "process")
    first = answers.number(call.get("noise_multiplier"), "noise_multiplier", call.line)
    if first is None or first < 0:
        raise document.error_at(call, "make_private needs noise_multiplier as a number ≥ 0")
    multiplier, changed = _later(document, call, first)
    asked, loaders = document.made("get_epsilon"), document.made("DataLoader")
    batch = document.number(loaders[0], "batch_size") if len(loaders) == 1 else None
    more = f"The number of unclipped examples is released with std {spread:g}; Opacus' own ε leaves it out." if spread else ""
    how = words["beside"] if beside else "" if poisson else words["shuffled"]
    said = (f"batch size {batch:g}" if batch else "", *changed, how, more, words["divides"])
    found = dp_sgd.read_dp_sgd(document, DpSgdTraining(
        multiplier, sampling="poisson" if poisson else "shuffled", epochs=dp_sgd.dp_sgd_epochs(document, None, run.seen),
        delta=document.number(asked[0], "delta") if asked else None, unprotected=unprotected,
        published=reading_without_claim("the file asks its accountant at run time"), order=tuple(filter(None, said)),
        ratio=_ratio(document, run, multiplier),
    ))  # fmt: skip
    return dp_sgd.add_dp_sgd_trainings([found] * models, "process")


def _results(call: CallValue) -> list[CallValue | PartValue]:
    return [call, *call.parts.values()]


def _later(document: PricedDocument, call: CallValue, first: float) -> tuple[float, tuple[str, ...]]:
    """The least noise multiplier of the run: later assignments and schedulers may lower it."""
    answers, least, said = document.answers, first, []
    for part in _results(call):
        if "noise_multiplier" in part.attributes:
            line = part.set_at["noise_multiplier"]
            value = answers.number(part.attributes["noise_multiplier"], "noise_multiplier", line)
            question = f"Line {line} sets noise_multiplier again, to a value that the file leaves open: what is the least?"
            least = min(
                least, answers.ask(OPACUS_LEAST_NOISE, question, (first / 10, first / 2, first)) if value is None else value
            )
            said.append(f"Line {line} sets noise_multiplier again; every step is priced at the least noise, {least:g}.")
    for made in document.made(*_SCHEDULERS):
        gamma = document.number(made, "gamma")
        if gamma is not None and gamma >= 1:
            said.append(f"{made.name} (line {made.line}) only raises the noise; every step is priced at the first noise.")
            continue
        question = f"{made.name} (line {made.line}) changes the noise as training goes on: what is its least value?"
        least = min(least, answers.ask(OPACUS_LEAST_NOISE, question, (first / 100, first / 10, first / 2)))
        said.append(f"Every step is priced at the least noise_multiplier, {least:g}.")
    return least, tuple(said)


def _ratio(document: PricedDocument, run: Run, multiplier: float) -> float:
    """By how much the count of unclipped examples, and visits by several processes, raise 1/noise."""
    if run.spread is None:
        return run.visits
    return run.visits * dp_sgd.dp_sgd_counted_clips(document, run.call, multiplier, run.spread, "unclipped_num_std")


def _with_epsilon(document: PricedDocument, call: CallValue, run: Run, accountant: str) -> Reading:
    """call: what finds the noise, make_private_with_epsilon or get_noise_multiplier."""
    target, delta = document.need(call, "target_epsilon", above=0.0), document.number(call, "target_delta", "delta")
    epochs, poisson = document.number(call, "epochs"), run.poisson
    stated = dp_sgd.dp_sgd_epochs(document, epochs, run.seen)
    ran = epochs if stated is None and call.name == "get_noise_multiplier" else stated
    by_steps = epochs is None and document.number(call, "steps") is not None
    if delta is None or not 0 < delta < 1:
        raise document.error_at(call, "make_private_with_epsilon needs 0 < target_delta < 1 as a number")
    if accountant not in ("prv", "rdp", "gdp"):
        raise document.error_at(call, f"accountant {accountant!r}; allowed: prv, rdp, gdp")
    claim = PublishedReading(target, delta, "total", f"make_private_with_epsilon, accountant {accountant}")
    if any("noise_multiplier" in part.attributes for part in _results(call)) or document.made(*_SCHEDULERS):
        message = "not priced: noise found for an ε and changed afterwards; print the noise it found and use make_private"
        raise document.error_at(call, message)
    if poisson and accountant != "gdp" and run.spread is None and (epochs == ran or by_steps):
        words = f"noise found by Opacus' {accountant} accountant for this ε, which holds for Poisson sampling and "
        found = dp_sgd.read_calibrated_dp_sgd(document, claim, f"{words}add/remove or zero-out", "target_epsilon")
        return replace(found, order=(*found.order, document.words["divides"]), unprotected=run.unprotected)
    rate, total = document.ask("sampling rate"), ran
    if total is None:
        more = "" if epochs is None else f" Noise is found for {epochs:g}, and no loop of the file has that length."
        total = document.answers.ask("epochs", f"How many epochs are run?{more}", OPEN_FACT_QUESTIONS["epochs"].values)
    planned = math.ceil((epochs or total) / rate)
    noise = _gdp(target, delta, rate, planned) if accountant == "gdp" else costs.noise_at_cost(target, delta, rate, planned)
    multiplier = document.louder * noise / _ratio(document, run, noise)
    why = f"Opacus' {accountant} accountant takes noise multiplier {multiplier:.4g}"
    cost, steps = costs.cost_of_poisson(multiplier, rate), math.ceil(total / rate)
    if not poisson:
        why += "; batches are shuffled, one visit per epoch, unsampled"
        cost, steps = costs.cost_of_gaussian(multiplier), math.ceil(total)
    row = ReadingRow("example", "zero-out", PRICE_TO_RECIPIENT, cost, steps, delta, why)
    order = tuple(document.words[key] for key in (("divides",) if poisson else ("shuffled", "divides")))
    return Reading((row,), (claim,), run.unprotected, order=order, no_fix="set poisson_sampling=True and accountant='prv'")


def _gdp(target: float, delta: float, rate: float, steps: int) -> float:
    """The multiplier at which the central-limit formula μ = q√(T(e^{1/σ²} − 1)) reports ``target``."""

    def gap(log_sigma: float) -> float:
        sigma = math.exp(log_sigma)
        return gaussian.epsilon(rate * math.sqrt(steps * math.expm1(min(1 / sigma**2, 600.0))), delta) - target

    return math.exp(brentq(gap, math.log(0.08), math.log(1e4)))
