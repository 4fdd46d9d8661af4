"""Daigavane et al. (arXiv 2111.15521), JAX code: a configuration file ``config.name = value`` such as configs/dpgcn.py, or
YAML/JSON.

noise std = training_noise_multiplier·2k·clip, clip the root of the sum of squared clips of all tensors (as it must be), k =
K + 1
(one message-passing step) or K² + K + 1 subgraphs that a node enters, K = max_degree; δ = 1/(10·N). Batches are accounted as
drawn
without replacement, and drawn with replacement. Clip thresholds are percentiles of private gradients, which is not counted;
that
a node enters only k subgraphs is a promise on degrees, as the sampler's coins depend on other nodes.
"""

from __future__ import annotations

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.command_lines import Tree
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.python_values import Table, plain
from fedgraph.privacy.accounting.accountant import Price
from fedgraph.privacy.claims import sage
from fedgraph.privacy.events import FixedSizeGaussian

SYSTEM = "Daigavane et al. (DP-GNN, JAX)"
VERSION = "google-research/differentially_private_gnns, 2025–2026"
SOURCE = (
    "google-research/google-research, differentially_private_gnns at 5b09c22/4c42994: configs/dpgcn.py, train.py, "
    "privacy_accountants.py, optimizers.py; read 2026-11-21"
)
SAID = "The authors prove node level for graphs whose degree is bounded by their sampler, and print ε as training goes on."
NO_PRICE = {
    "dataset", "dataset_path", "pad_subgraphs_to", "multilabel", "adjacency_normalization", "latent_size", "num_encoder_layers",
    "num_decoder_layers", "activation_fn", "num_classes", "num_estimation_samples", "l2_norm_clip_percentile",
    "max_training_epsilon",
    "evaluate_every_steps", "checkpoint_every_steps", "rng_seed", "optimizer", "learning_rate", "momentum", "nesterov",
    "differentially_private_training", "model",
}  # fmt: skip


def recognises(document: Document) -> bool:
    return document.kind in ("python", "yaml", "json", "namespace") and "training_noise_multiplier" in _settings(document)


def _settings(document: Document) -> dict[str, Tree]:
    """What the file sets; of a Python file, the configuration that ``get_config`` returns."""
    if document.kind != "python":
        return document.data
    program = document.program
    made = plain(program.results.get("get_config", program.module.local.get("config")))
    out: dict[str, Tree] = {}
    for name, value in made.items() if isinstance(made, Table) else ():
        inner = plain(value)
        out[name] = inner if inner is None or isinstance(inner, (bool, int, float, str)) else "?"
    return out


def read(document: Document) -> Reading:
    options = Options(document, _settings(document))
    multiplier, steps = options.need("training_noise_multiplier"), options.whole("num_training_steps", 3000, 0) or 0
    degree, hops, batch = (
        options.whole("max_degree", 5, 1) or 5,
        options.whole("num_message_passing_steps", 1, 0),
        options.whole("batch_size", 10000, 1) or 1,
    )
    options.without_price(NO_PRICE)
    options.finish(
        (*NO_PRICE, "training_noise_multiplier", "num_training_steps", "max_degree", "num_message_passing_steps", "batch_size")
    )
    if hops not in (1, 2):
        raise options.error("num_message_passing_steps", f"num_message_passing_steps: found {hops}; allowed: 1, 2")
    touched = sage.affected_subgraphs(degree, hops)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        nodes = int(facts["training nodes"])
        at, size = 1 / (10 * nodes), min(batch, nodes)
        sigma = 2 * touched * multiplier * factor  # in units of the clip
        bounded = costs.events(FixedSizeGaussian(sigma, size, nodes, min(touched, nodes), replaced=True))
        again = Price(
            sage.node_epsilon(sigma, size, nodes, touched, steps, at, True),
            at,
            "Rényi",
            "batches with replacement: Bin(B, k/N)",
        )
        why = f"std = {2 * touched * multiplier * factor:g}·clip, k = {touched} subgraphs, if no node has more than {degree}"
        reason = (
            "the sampler keeps neighbours by probabilities that depend on others, and fills free slots: no bound is proven here"
        )
        return (
            Row(
                "node",
                "replace, promised degree",
                RECIPIENT,
                lambda rounds, delta: again,
                1,
                at,
                f"{why}, batches with replacement",
            ),
            Row("node", "replace, promised degree", RECIPIENT, bounded, steps, at, f"{why}, batches without replacement"),
            Row("node", "replace, any degree", RECIPIENT, costs.unprotected(reason), 1, at, reason),
        )

    def settings(factor: float) -> dict[str, Setting]:
        return {"training_noise_multiplier": multiplier * factor}

    asked = (
        Unknown("training nodes", "How many training nodes are there (ogbn-arxiv: 90,941)?", (20000.0, 90941.0, 200000.0)),
    )
    unprotected = ("clip thresholds, which are percentiles of private gradients", "what the best checkpoint was chosen by")
    order = ("Subgraphs' gradients are clipped, summed, noised; steps compose; δ = 1/(10·training nodes).",)
    claim = (Published(None, None, "total", "its accountant prints ε at run time, for batches without replacement"),)
    return Reading(rows, claim, asked, unprotected, order=order, settings=settings)
