"""TensorFlow Privacy: a Python file with a DP optimizer (``DPKerasSGDOptimizer``, ``DPKerasAdamOptimizer`` …), or the
command line
of its ``compute_dp_sgd_privacy`` / ``compute_dp_sgd_privacy_statement``.

noise std = noise_multiplier·l2_norm_clip on the sum of microbatches; with num_microbatches < batch size one clip bounds the
mean of
several examples, and replacing costs 2·clip. TFP's statement gives both the shuffled and the Poisson price.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedgraph.pricing import training
from fedgraph.pricing.base import RECIPIENT, Published, Reading
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.python_values import Call

SYSTEM = "TensorFlow Privacy"
VERSION = "tensorflow-privacy 0.8–0.9"
SOURCE = (
    "tensorflow/privacy at 03035d5 (2026-04-06): privacy/optimizers/dp_optimizer_keras.py, privacy/analysis/"
    "compute_dp_sgd_privacy{,_lib}.py; read 2026-11-21"
)
SAID = (
    "TFP deprecated compute_dp_sgd_privacy because it ignored microbatching and assumed Poisson sampling, rare in "
    "practice; its "
    "statement prints the price without amplification first and says which assumptions each number needs."
)
OPTIMIZERS = (
    "VectorizedDPSGD", "VectorizedDPAdam", "VectorizedDPAdagrad", "DPSequential", "DPModel",
    *(f"{head}{kind}Optimizer"
      for head in ("DPKeras", "VectorizedDPKeras", "DP", "DPGradientDescentGaussian", "DPAdamGaussian")
      for kind in ("SGD", "Adam", "Adagrad", "")),
)  # fmt: skip
STATEMENTS = ("compute_dp_sgd_privacy_statement", "compute_dp_sgd_privacy")
FLAGS = (
    "N",
    "batch_size",
    "noise_multiplier",
    "epochs",
    "delta",
    "used_microbatching",
    "max_examples_per_user",
    "accountant_type",
)


def recognises(document: Document) -> bool:
    if document.kind == "python":
        return any("tensorflow_privacy" in name for name in document.imports)
    return document.kind == "command" and any("compute_dp_sgd_privacy" in word for word in document.command)


def read(document: Document) -> Reading:
    return _command(document) if document.kind == "command" else _python(document)


def _command(document: Document) -> Reading:
    options = Options(document, document.data)
    count = "number_of_examples" if options.has("number_of_examples") else "N"  # the statement's own names are taken too
    passes = "num_epochs" if options.has("num_epochs") else "epochs"
    examples, batch = options.need(count, above=True), options.need("batch_size", above=True)
    multiplier, epochs = options.need("noise_multiplier"), options.need(passes, above=True)
    delta = options.delta("delta", 1e-6)
    microbatched = options.flag("used_microbatching", True)  # its own default
    options.without_price(["max_examples_per_user", "accountant_type"])
    options.finish(FLAGS)
    if batch > examples:
        raise options.error("batch_size", f"batch_size {batch:g} is larger than N = {examples:g}")
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "shuffled",
            rate=batch / examples,
            epochs=epochs,
            delta=delta,
            published=(Published(None, delta, "total", "TFP prints its own statement for these flags"),),
            people=examples,
            order=("Batches are taken as shuffled, as the statement's first number; Poisson sampling would amplify.",),
            microbatched=microbatched,
        )
    )


def _python(document: Document) -> Reading:
    calls, why = training.protections(document, *OPTIMIZERS)
    statements = document.made(*STATEMENTS)
    if not calls and statements:
        return _claimed(document, statements[0])
    if not calls:
        return in_clear("example", RECIPIENT, f"{why}: training is in clear", "train with a DP optimizer of TensorFlow Privacy")
    found = [_one(document, call, statements[0] if statements else None) for call in calls]
    return training.several(found * training.times(document, calls, "private model"), "private model")


def _one(document: Document, call: Call, statement: Call | None) -> Reading:
    multiplier, clip = document.number(call, "noise_multiplier", 1), document.number(call, "l2_norm_clip", 0)
    if multiplier is None or multiplier < 0 or (clip is not None and clip <= 0):
        raise document.error(f"{call.name} needs noise_multiplier ≥ 0 and l2_norm_clip > 0 as numbers", line=call.line)
    if "noise_multiplier" in call.attributes or "_noise_multiplier" in call.attributes:
        raise document.error(
            f"not priced: the noise of {call.name} is set again later; write it where it is made", line=call.line
        )
    said = _stated(document, statement)
    if multiplier == 0:
        return in_clear(
            "example",
            RECIPIENT,
            f"{call.name} (line {call.line}) has noise_multiplier 0: no noise",
            "set noise_multiplier first",
        )
    microbatches, whole = document.number(call, "num_microbatches", 2), call.get("num_microbatches", 2) is None
    several_in_one = not whole and (microbatches is None or said.batch is None or microbatches != said.batch)
    notes = ["Batches are taken as shuffled; Poisson sampling would amplify."]
    if several_in_one:
        notes.append(
            "num_microbatches is given: one clip bounds a mean over a microbatch, which one example may turn round (2·clip)."
        )
    if said.multiplier is not None and said.multiplier != multiplier:
        notes.append(
            f"Its statement is about noise_multiplier {said.multiplier:g}; training adds {multiplier:g}, which is priced."
        )
    steps = document.number(call, "gradient_accumulation_steps", 3)
    if steps is not None and steps > 1:
        raise document.error("not priced: gradient_accumulation_steps > 1 (noise is added at each of them)", line=call.line)
    run = training.epochs(document, _fitted(document, said.epochs))
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "shuffled",
            rate=said.batch / said.examples if said.batch and said.examples else None,
            epochs=run,
            people=said.examples,
            delta=said.delta,
            published=(Published(None, said.delta, "none", f"{call.name}; TFP's statement is printed at run time"),),
            order=tuple(notes),
            microbatched=several_in_one,
        )
    )


def _fitted(document: Document, stated: float | None) -> float | None:
    """Epochs as ``fit`` runs them; those of the statement where no ``fit`` says a number."""
    for call in document.made("fit"):
        if (found := document.number(call, "epochs")) is not None:
            return found
    options = document.program.options
    return stated if stated is not None or "epochs" not in options else document.answers.number(options["epochs"], "epochs")


def _claimed(document: Document, call: Call) -> Reading:
    """A file that only computes the statement: its numbers are priced."""
    said = _stated(document, call)
    if said.multiplier is None or said.multiplier <= 0:
        raise document.error(f"{call.name} needs noise_multiplier as a number > 0", line=call.line)
    return training.reading(
        training.Training(
            said.multiplier, "noise_multiplier", "shuffled", epochs=said.epochs, delta=said.delta,
            rate=said.batch / said.examples if said.batch and said.examples else None,
            order=("The file computes a statement and trains nothing; batches are taken as shuffled.",),
            published=(Published(None, said.delta, "none", f"{call.name}, printed at run time"),), microbatched=True,
        )
    )  # fmt: skip


@dataclass(frozen=True)
class Stated:
    examples: float | None = None
    batch: float | None = None
    epochs: float | None = None
    multiplier: float | None = None
    delta: float | None = None


def _stated(document: Document, call: Call | None) -> Stated:
    """What a statement call says, by name or place."""
    if call is None:
        return Stated()
    if call.name == "compute_dp_sgd_privacy":
        places = (("n", 0), ("batch_size", 1), ("epochs", 3), ("noise_multiplier", 2), ("delta", 4))
    else:
        places = (("number_of_examples", 0), ("batch_size", 1), ("num_epochs", 2), ("noise_multiplier", 3), ("delta", 4))
    return Stated(*(document.number(call, name, place, {"num_epochs": "epochs"}.get(name, name)) for name, place in places))
