"""TensorFlow Privacy (a Python file with a DP optimizer, ``DPKerasSGDOptimizer``, ``DPKerasAdamOptimizer`` …, or the command
line of its ``compute_dp_sgd_privacy`` / ``compute_dp_sgd_privacy_statement``), and aggregators of TensorFlow Federated.

noise std = noise_multiplier·l2_norm_clip on the sum of microbatches; with num_microbatches < batch size one clip bounds the
mean of several examples, and replacing costs 2·clip. TFP's statement gives both the shuffled and the Poisson price.
"""

import math
import re
from dataclasses import dataclass, replace

from fedgraph.errors import PricingError
from fedgraph.pricing import dp_sgd
from fedgraph.pricing import python_values as py
from fedgraph.pricing.catalogue import catalogue_entries
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.dp_sgd import DpSgdTraining
from fedgraph.pricing.options import Options
from fedgraph.pricing.python_values import CallValue, MethodValue, Value, python_plain, value_holds
from fedgraph.pricing.readings import PRICE_WITH_MODELS, PublishedReading, Reading, reading_in_clear, reading_without_claim

_STATEMENTS = {
    "compute_dp_sgd_privacy_statement": ("number_of_examples", "batch_size", "num_epochs", "noise_multiplier", "delta"),
    "compute_dp_sgd_privacy": ("n", "batch_size", "epochs", "noise_multiplier", "delta"),
}
_OPTIMIZERS = tuple(name for name in catalogue_entries()["tf_privacy"].calls if name not in _STATEMENTS)
_AGGREGATORS = ("dp_aggregator", "gaussian_fixed", "gaussian_adaptive", "GaussianSumQuery")
CUT = "Batches are taken as shuffled; Poisson sampling would amplify."
_MEANS = "num_microbatches is given: one clip bounds a mean over a microbatch, which one example may turn round (2·clip)."


def _command(document: PricedDocument) -> Reading:
    options = Options(document)
    count = "number_of_examples" if options.has("number_of_examples") else "N"  # the statement's own names are taken too
    passes = "num_epochs" if options.has("num_epochs") else "epochs"
    examples, batch = options.need(count, above=True), options.need("batch_size", above=True)
    multiplier, epochs = options.need("noise_multiplier"), options.need(passes, above=True)
    delta, microbatched = options.delta("delta", 1e-6), options.flag("used_microbatching", True)  # its own defaults
    options.without_price(["max_examples_per_user", "accountant_type"])
    options.finish()
    if batch > examples:
        raise options.error("batch_size", f"batch_size {batch:g} is larger than N = {examples:g}")
    claim = PublishedReading(None, delta, "total", "TFP prints its own statement for these flags")
    order = "Batches are taken as shuffled, as the statement's first number; Poisson sampling would amplify."
    return dp_sgd.read_dp_sgd(document, DpSgdTraining(
        multiplier, sampling="shuffled", rate=batch / examples, epochs=epochs, delta=delta, published=(claim,),
        people=examples, order=(order,), microbatched=microbatched,
    ))  # fmt: skip


def read_tensorflow_privacy(document: PricedDocument) -> Reading:
    if document.kind == "command":
        return _command(document)
    calls, why = document.used(*_OPTIMIZERS)
    statements = document.made(*_STATEMENTS)
    if not calls and (bolt := document.made("BoltOn", "BoltOnModel")):
        message = "not priced: BoltOn perturbs the model once, by constants of its loss; describe its noise in a neutral YAML"
        raise document.error_at(bolt[0], message)
    if not calls and statements:
        call, said = statements[0], _stated(document, statements[0])
        claim = PublishedReading(None, said.delta, "none", f"{call.name}, printed at run time")
        order = "The file computes a statement and trains nothing; batches are taken as shuffled."
        return dp_sgd.read_dp_sgd(document, DpSgdTraining(
            document.need(call, "noise_multiplier", above=0.0), sampling="shuffled", epochs=said.epochs, delta=said.delta,
            rate=said.rate, order=(order,), published=(claim,), microbatched=True, people=said.examples,
        ))  # fmt: skip
    if not calls:
        return dp_sgd.training_in_clear(f"{why}: training is in clear", "train with a DP optimizer of TensorFlow Privacy")
    trained = [c.get("optimizer", 0) for c in document.made("compile")]
    trained += [c.owner for c in document.made("minimize", "apply_gradients")]
    models = any(call.name in ("DPModel", "DPSequential") for call in calls)
    if trained and not models and not any(value_holds(value, call) for value in trained for call in calls):
        reason = f"{calls[0].name} (line {calls[0].line}) is made, and another optimizer trains: training is in clear"
        return dp_sgd.training_in_clear(reason, "compile the model with the DP optimizer")
    compiled: dict[tuple[int, str], list[bool]] = {}
    for made in document.made("compile"):
        of_this = compiled.setdefault((id(made.owner), made.dotted), [])
        of_this.append(any(value_holds(made.get("optimizer", 0), call) for call in calls))
    if any(any(private) and not private[-1] for private in compiled.values()):
        reason = "the model is compiled again with another optimizer after the private one: training is in clear"
        return dp_sgd.training_in_clear(reason, "compile the model with the DP optimizer, once")
    found = [_one(document, call, statements[0] if statements else None) for call in calls]
    return dp_sgd.add_dp_sgd_trainings(found * dp_sgd.count_dp_sgd_trainings(document, calls, "private model"), "private model")


def _one(document: PricedDocument, call: CallValue, statement: CallValue | None) -> Reading:
    if {"noise_multiplier", "_noise_multiplier"} & set(call.attributes):
        raise document.error_at(call, f"not priced: the noise of {call.name} is set again later; write it where it is made")
    multiplier, said = document.need(call, "noise_multiplier", least=0.0), _stated(document, statement)
    if said.delta is None:  # the δ that the file asks its own accountant of dp_accounting for
        counted = (document.number(c, "target_delta", "delta") for c in document.made("get_epsilon"))
        said = replace(said, delta=next(filter(None, counted), None))
    if document.number(call, "l2_norm_clip") is not None:
        document.need(call, "l2_norm_clip", above=0.0)
    if multiplier == 0:
        reason = f"{call.name} (line {call.line}) has noise_multiplier 0: no noise"
        return dp_sgd.training_in_clear(reason, "set noise_multiplier first")
    microbatches, whole = document.number(call, "num_microbatches"), call.held("num_microbatches") is None
    several_in_one = not whole and (microbatches is None or said.batch is None or microbatches != said.batch)
    about = ""
    if said.multiplier is not None and said.multiplier != multiplier:
        about = f"Its statement is about noise_multiplier {said.multiplier:g}; training adds {multiplier:g}, which is priced."
    if (document.number(call, "gradient_accumulation_steps") or 0) > 1:
        raise document.error_at(call, "not priced: gradient_accumulation_steps > 1 (noise is added at each of them)")
    claim = PublishedReading(None, said.delta, "none", f"{call.name}; TFP's statement is printed at run time")
    return dp_sgd.read_dp_sgd(document, DpSgdTraining(
        multiplier, sampling="shuffled", rate=said.rate, epochs=_passes(document, call, said.epochs),
        people=said.examples, delta=said.delta, published=(claim,), microbatched=several_in_one,
        order=tuple(filter(None, (CUT, _MEANS if several_in_one else "", about))),
    ))  # fmt: skip


def _passes(document: PricedDocument, optimizer: CallValue, stated: float | None) -> float | None:
    """Epochs of every ``fit`` but those of models with another optimizer; else those of the options or the statement, where a
    loop has that length."""
    others = [c.owner for c in document.made("compile") if not value_holds(c.get("optimizer", 0), optimizer)]
    fits = [c for c in document.made("fit") if not any(c.owner is o and isinstance(o, CallValue) for o in others)]
    if any(epochs is not None for epochs in [python_plain(c.get("epochs", 3)) for c in fits]):
        held = [(1 if c.get("epochs", 3) is None else c.get("epochs", 3), c.times, _repeats(c)) for c in fits]
        every = [py.lift_over_values("the epochs of fit", lambda *n: math.prod(n), *each) for each in held]
        return document.answers.number(py.lift_over_values("the epochs of all fits", lambda *n: sum(n), *every), "epochs")
    if stated is None:
        stated = document.answers.number(document.program.options.get("epochs"), "epochs")
    return dp_sgd.dp_sgd_epochs(document, stated)


def _repeats(fit: CallValue) -> Value:
    """How often the data of a fit hold each record."""
    held: Value = python_plain(fit.get("x", 0))
    while isinstance(held, CallValue):
        if held.name == "repeat":
            return held.get("count", 0) or py.UnresolvedValue(f"repeat() of line {held.line}")
        held = python_plain(held.owner)
        held = python_plain(held.owner) if isinstance(held, MethodValue) else held
    return 1


@dataclass(frozen=True)
class _Stated:
    """What a call of a statement says. None stands for what it does not say."""

    examples: float | None = None  # how many examples there are
    batch: float | None = None  # the size of a batch
    epochs: float | None = None  # passes over the data
    multiplier: float | None = None  # the noise multiplier
    delta: float | None = None  # the δ, in (0, 1)

    @property
    def rate(self) -> float | None:
        return self.batch / self.examples if self.batch and self.examples else None


def _stated(document: PricedDocument, call: CallValue | None) -> _Stated:
    if call is None:
        return _Stated()
    names, said = _STATEMENTS[call.name], []
    for name in names:
        looped = name == names[2] and isinstance(python_plain(call.get(name)), py.UnresolvedValue)  # the epoch of a loop
        said.append(None if looped else document.number(call, name, "epochs" if name == "num_epochs" else ""))
    return _Stated(*said)


def read_tensorflow_federated(document: PricedDocument) -> Reading:
    """The one aggregator of TensorFlow Federated, or Gaussian query of dp_accounting, that a Python file builds.

        tff.learning.dp_aggregator(noise_multiplier, clients_per_round)                     adaptive clipping
        tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(noise_multiplier, clients_per_round, clip)
        tff.aggregators.DifferentiallyPrivateFactory.gaussian_adaptive(noise_multiplier, clients_per_round, …)
        GaussianSumQuery(l2_norm_clip, stddev)

    Each client weighs the same. noise std = noise_multiplier·clip on the sum of clients. With adaptive clipping the multiplier
    is the *effective* one of update and clipped count together (Andrew et al. 2021): under add/remove its bits are centred,
    Δ = ½. TFF samples a cohort: a fixed number of clients, by the program that drives it, out of more than the file says.
    """
    found, why = document.used(*_AGGREGATORS)
    if not found:
        reason = f"{why}: the mean of updates is in clear"
        return reading_in_clear("client", PRICE_WITH_MODELS, reason, "give the process a DP aggregator")
    if len(found) != 1:
        raise PricingError(f"{document.path}: {len(found)} DP aggregators or Gaussian queries; one is priced per file")
    [call] = found
    built = [c for c in document.calls if c.reached and re.search("fed_(avg|sgd|prox|recon)", c.name)]
    given = [c.get(name) for c in built for name in ("model_aggregator", "model_update_aggregation_factory")]
    if built and not any(value_holds(value, call) or "**" in c.keywords for value in given for c in built):
        reason = f"{call.name} (line {call.line}) is made, and no process gets it: the mean of updates is in clear"
        return reading_in_clear("client", PRICE_WITH_MODELS, reason, "give it to the process as model_aggregator")
    claim = reading_without_claim(f"{call.name}; the file states no ε")
    if call.name == "GaussianSumQuery":
        clip, std = document.need(call, "l2_norm_clip", above=0.0), document.need(call, "stddev", least=0.0)
        said = DpSgdTraining(std / clip, "stddev", "fixed", unit="client", viewer=PRICE_WITH_MODELS, published=claim)
        return dp_sgd.read_dp_sgd(document, replace(said, option=std))
    multiplier = document.need(call, "noise_multiplier", least=0.0)
    cohort, ratio, order = document.need(call, "clients_per_round", least=1.0), 1.0, tuple[str, ...]()
    if call.name != "gaussian_fixed":
        # A zeroed client's bit may go from "clipped" to "not clipped": Δ = 1 where add/remove has ½ after centring.
        spread = document.number(call, "clipped_count_stddev") or 0.05 * cohort
        ratio = dp_sgd.dp_sgd_counted_clips(document, call, multiplier, spread, "clipped_count_stddev")
        order = ("Adaptive clipping: the count of clipped updates is released with noise too, its bit counted with Δ = 1.",)
    zeroing = call.name == "dp_aggregator" and python_plain(call.get("zeroing")) is not False
    told = ("zeroing (on by default) adapts a threshold to clients' norms; what that reveals is not priced",) if zeroing else ()
    return dp_sgd.read_dp_sgd(document, DpSgdTraining(
        multiplier, sampling="fixed", steps=_rounds(document), unit="client", viewer=PRICE_WITH_MODELS, published=claim,
        ratio=ratio, order=(f"A cohort of {cohort:g} clients per round, each of the same weight.", *order),
        unprotected=("the server, which receives updates in clear unless it aggregates securely", *told),
    ))  # fmt: skip


def _rounds(document: PricedDocument) -> int | None:
    """num_rounds or total_rounds of what is called; several different numbers are a question."""
    said = [(c, n) for c in document.calls for n in ("num_rounds", "total_rounds") if n in c.keywords]
    said = [(c, n) for c, n in said if c.reached] or said
    found = sorted({int(value) for c, n in said if (value := document.number(c, n, "steps"))}, reverse=True)
    if len(found) > 1:
        question = f"How many rounds are run? The file says {' and '.join(f'{n:,}' for n in found[::-1])}."
        return int(document.answers.ask("steps", question, tuple(map(float, found))))
    return found[0] if found else None
