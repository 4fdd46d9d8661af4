"""TensorFlow Privacy: a Python file with a DP optimizer (``DPKerasSGDOptimizer``, ``DPKerasAdamOptimizer`` …), or the
command line
of its ``compute_dp_sgd_privacy`` / ``compute_dp_sgd_privacy_statement``.

noise std = noise_multiplier·l2_norm_clip on the sum of microbatches; with num_microbatches < batch size one clip bounds the
mean of
several examples, and replacing costs 2·clip. TFP's statement gives both the shuffled and the Poisson price.
"""

from __future__ import annotations

from fedgraph.errors import PricingError
from fedgraph.pricing import training
from fedgraph.pricing.base import Published, Reading
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.python_source import Call

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
OPTIMIZERS = tuple(
    f"{head}{kind}Optimizer"
    for head in ("DPKeras", "VectorizedDPKeras", "DP", "DPGradientDescentGaussian", "DPAdamGaussian")
    for kind in ("SGD", "Adam", "Adagrad", "")
)
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
            order=("Batches are taken as shuffled, as the statement's first number; Poisson sampling would amplify.",),
            microbatched=microbatched,
        )
    )


def _python(document: Document) -> Reading:
    found = [call for call in document.calls if call.name in OPTIMIZERS]
    if len(found) != 1:
        raise PricingError(f"{document.path}: {len(found)} DP optimizers of TensorFlow Privacy; one is priced per file")
    call = found[0]
    multiplier, clip = training.number(call.get("noise_multiplier", 1)), training.number(call.get("l2_norm_clip", 0))
    if multiplier is None or multiplier < 0 or (clip is not None and clip <= 0):
        raise document.error(f"{call.name} needs noise_multiplier ≥ 0 and l2_norm_clip > 0 as numbers", line=call.line)
    statement = training.first(document.calls, *STATEMENTS)
    examples, batch, epochs, delta = _stated(statement)
    microbatches = training.number(call.get("num_microbatches", 2))
    notes = ["Batches are taken as shuffled; Poisson sampling would amplify."]
    if call.get("num_microbatches", 2) is not None and (microbatches is None or microbatches != batch):
        notes.append(
            "num_microbatches is given: one clip bounds a mean over a microbatch, which one example may turn round (2·clip)."
        )
    steps = training.number(call.get("gradient_accumulation_steps", 3))
    if steps is not None and steps > 1:
        raise document.error("not priced: gradient_accumulation_steps > 1 (noise is added at each of them)", line=call.line)
    return training.reading(
        training.Training(
            multiplier,
            "noise_multiplier",
            "shuffled",
            rate=batch / examples if batch and examples else None,
            epochs=epochs,
            delta=delta,
            published=(Published(None, delta, "none", f"{call.name}; TFP's statement is printed at run time"),),
            order=tuple(notes),
            microbatched=call.get("num_microbatches", 2) is not None and (microbatches is None or microbatches != batch),
        )
    )


def _stated(call: Call | None) -> tuple[float | None, float | None, float | None, float | None]:
    """(examples, batch size, epochs, δ) of a statement call, by name or place."""
    if call is None:
        return None, None, None, None
    if call.name == "compute_dp_sgd_privacy":
        places = (("n", 0), ("batch_size", 1), ("epochs", 3), ("delta", 4))
    else:
        places = (("number_of_examples", 0), ("batch_size", 1), ("num_epochs", 2), ("delta", 4))
    found = [training.number(call.get(name, place)) for name, place in places]
    return found[0], found[1], found[2], found[3]
