"""Authors' training scripts: which method a command line or a saved namespace names, and what several of them share."""

from __future__ import annotations

import math

from fedgraph.pricing.base import Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

DELTAS = (1e-7, 1e-6, 1e-5, 1e-4)
RATES = (0.3, 0.1, 0.03, 0.01)
# Options of the GAP family (GAP, ProGAP, DPDGC) that choose data, model, trainer, logger or hardware, and no noise.
NO_PRICE = {
    "dataset", "data_dir", "hidden_dim", "encoder_layers", "base_layers", "head_layers", "combine", "activation", "dropout",
    "batch_norm", "optimizer", "learning_rate", "lr", "weight_decay", "full_batch_eval", "device", "seed", "s", "repeats", "r",
    "debug", "logger", "project", "output_dir", "o", "patience", "val_interval", "num_trials", "verbose", "log", "log_all",
    "monitor", "method", "level", "jk", "layerwise", "encoder_batch_norm", "encoder_head_layers", "encoder_lr", "encoder_wd",
    "encoder_dropout", "norm_scale", "learn", "p", "name", "use_amp", "log_trainer", "num_workers", "data_range", "val_ratio",
    "test_ratio",
}  # fmt: skip


def words(document: Document) -> list[str]:
    """The bare words of a command after its script, and the values of ``method`` and ``level`` of a namespace, in small
    letters."""
    if document.kind == "command":
        scripts = [i for i, word in enumerate(document.command) if word.endswith(".py")]
        rest = document.command[scripts[0] + 1 :] if scripts else ()
        bare = []
        for word in rest:
            if word.startswith("-"):
                break
            bare.append(word.lower())
        return bare
    named = [document.data.get("method"), document.data.get("level")]
    return [str(value).lower() for value in named if isinstance(value, str)]


def is_script(document: Document) -> bool:
    return document.kind in ("command", "namespace", "json", "yaml")


def budget(options: Options) -> tuple[float, float | None]:
    """(ε, δ or None for auto) of ``--epsilon``/``-e`` and ``--delta``/``-d``."""
    epsilon = options.number("epsilon", options.number("e"), above=True)
    if epsilon is None:
        raise options.error("epsilon", "missing option 'epsilon'; it is needed to price this file")
    if options.raw("delta") == "auto" or options.raw("d") == "auto":
        return epsilon, None
    delta = options.delta("delta", options.delta("d"))
    return epsilon, delta


def delta_question(what: str) -> Unknown:
    """δ = "auto" is one over the next power of ten above a count."""
    return Unknown("delta", f"How many {what} has the graph? δ is “auto”, 1/10^digits of that number.", DELTAS, DELTAS[0])


def infinite(epsilon: float) -> bool:
    return math.isinf(epsilon)
