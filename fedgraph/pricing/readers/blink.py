"""Blink (Zhu, Tan & Xiao, CCS 2023): ``python run_blink.py hard cora gcn --eps 4`` or {variant, dataset, model, eps}.

Every node sends its degree with Laplace noise (share δ of ε) and its list of neighbours by randomised response (the rest): pure
ε for one bit of one node's list. An undirected edge stands in the lists of both its ends, which both send: 2ε for the edge.
"""

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, shell_script
from fedgraph.pricing.base import WORLD, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options


def read(document: Document) -> Reading:
    options, words = Options(document), shell_script.words(document)
    variant = words[0] if words else options.choice("variant", ("hard", "soft", "hybrid"))
    if variant not in ("hard", "soft", "hybrid"):
        raise PricingError(f"{document.path}:1: variant: found {variant!r}; allowed: hard, soft, hybrid")
    epsilon = options.need("eps", above=True)
    options.without_price(["dataset", "model", "variant", "grid_search", "delta", "seed"])
    options.finish()
    spent = epsilon / document.louder
    rows = (
        Row("edge", "edge-undirected", WORLD, costs.pure(2 * spent), 1, 0.0, "both ends of the edge send it: ε each"),
        Row("edge", "one bit of a list", WORLD, costs.pure(spent), 1, 0.0, "degree and bits of one list add up to ε"),
    )
    order = "Noisy degree and randomised list of each node compose; the denoised graph and training are post-processing."
    searched = ("the grid search, which is not counted",) if document.data.get("grid_search") else ()
    unprotected = ("features and labels", "a whole node: its list has as many bits as there are nodes", *searched)
    claim = Published(epsilon, 0.0, "total", f"eps = {epsilon:g}, link-level local privacy")
    return Reading(rows, (claim,), unprotected, order=(order,), settings={"eps": spent})
