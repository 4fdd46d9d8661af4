"""Daigavane et al. (arXiv 2111.15521), JAX: a configuration ``config.name = value`` such as configs/dpgcn.py, or YAML.

noise std = training_noise_multiplier·2k·clip, clip the root of the sum of squared clips of all tensors (as it must be),
k = K + 1 (one message-passing step) or K² + K + 1 subgraphs that a node enters, K = max_degree; δ = 1/(10·N). Batches are
accounted as drawn without replacement, and drawn with replacement. Clip thresholds are percentiles of private gradients, which
is not counted; that a node enters only k subgraphs is a promise on degrees, as the sampler's coins depend on other nodes.
"""

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.command_lines import Tree
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.pricing.python_joins import plain
from fedgraph.pricing.python_values import Table
from fedgraph.privacy.accounting.accountant import Price
from fedgraph.privacy.claims import sage
from fedgraph.privacy.events import FixedSizeGaussian

NODES = (20000.0, 90941.0, 200000.0)
PROMISED = "replace, promised degree"


def recognises(document: Document) -> bool:
    return document.kind in ("python", "yaml", "json", "namespace") and "training_noise_multiplier" in _settings(document)


def _settings(document: Document) -> dict[str, Tree]:
    """What the file sets; of a Python file, the configuration that ``get_config`` returns."""
    if document.kind != "python":
        return document.data
    program = document.program
    made = plain(program.results.get("get_config", program.module.local.get("config")))
    held = {name: plain(value) for name, value in made.items()} if isinstance(made, Table) else {}
    return {name: v if v is None or isinstance(v, (bool, int, float, str)) else "?" for name, v in held.items()}


def read(document: Document) -> Reading:
    options = Options(document, _settings(document), system="daigavane")
    multiplier = options.need("training_noise_multiplier") * document.louder
    steps, degree = options.whole("num_training_steps", 3000, 0) or 0, options.whole("max_degree", 5, 1) or 5
    hops, batch = options.whole("num_message_passing_steps", 1, 0), options.whole("batch_size", 10000, 1) or 1
    options.finish()
    if hops not in (1, 2):
        raise options.error("num_message_passing_steps", f"num_message_passing_steps: found {hops}; allowed: 1, 2")
    touched = sage.affected_subgraphs(degree, hops)
    question = "How many training nodes are there (ogbn-arxiv: 90,941)?"
    nodes = int(document.answers.ask("training nodes", question, NODES))
    at, size, sigma = 1 / (10 * nodes), min(batch, nodes), 2 * touched * multiplier  # sigma: in units of the clip
    bounded = costs.events(FixedSizeGaussian(sigma, size, nodes, min(touched, nodes), replaced=True))
    words = "batches with replacement: Bin(B, k/N)"
    why = f"std = {sigma:g}·clip, k = {touched} subgraphs, if no node has more than {degree}"
    reason = (
        "the sampler keeps neighbours by probabilities that depend on others, and fills free slots: no bound is proven here"
    )

    def again(rounds: int, delta: float) -> Price:
        return Price(sage.node_epsilon(sigma, size, nodes, touched, steps, at, True), at, "Rényi", words)

    rows = (
        Row("node", PROMISED, RECIPIENT, again, 1, at, f"{why}, batches with replacement"),
        Row("node", PROMISED, RECIPIENT, bounded, steps, at, f"{why}, batches without replacement"),
        Row("node", "replace, any degree", RECIPIENT, costs.unprotected(reason), 1, at, reason),
    )
    claim = Published(None, None, "total", "its accountant prints ε at run time, for batches without replacement")
    unprotected = ("clip thresholds, which are percentiles of private gradients", "what the best checkpoint was chosen by")
    order = "Subgraphs' gradients are clipped, summed, noised; steps compose; δ = 1/(10·training nodes)."
    return Reading(rows, (claim,), unprotected, order=(order,), settings={"training_noise_multiplier": multiplier})
