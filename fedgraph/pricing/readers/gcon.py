"""GCON-style objective perturbation (edge level), as settings in YAML or JSON: ``{system: gcon, epsilon, delta, …}``.

    restart, steps, cap        a, the m_i of each concatenated power, p ≤ ½           share       ω
    regulariser                Λ                 classes, features, labelled          c, d, n₁      loss: soft-margin |
    pseudo-huber

The noise (β) follows from ε by the paper's constants, whose proof we derived again (``privacy.claims.gcon``): (ε, δ) for one
undirected edge, features and labels public, for the **exact** minimiser. An approximate one is another output: its distance
has to
be noised and charged, and the file says nothing of the gradient it stops at.
"""

from __future__ import annotations

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.claims import gcon

SYSTEM = "GCON"
VERSION = "the paper's constants"
SOURCE = (
    "GCON (edge-level objective perturbation for graph convolution), constants as derived in fedgraph/privacy/claims/gcon.py"
)
SAID = "The authors prove (ε, δ) edge level for the minimiser; search of hyper-parameters is not counted."
KEYS = (
    "system", "epsilon", "delta", "restart", "steps", "cap", "share", "regulariser", "classes", "features", "labelled",
    "loss", "width",
)  # fmt: skip


def recognises(document: Document) -> bool:
    return document.kind in ("yaml", "json", "namespace") and document.data.get("system") == "gcon"


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    options.without_price(["system"])
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta")
    if not delta:
        raise options.error("delta", "missing option 'delta'; it is needed to price this file")
    restart, cap = options.number("restart", 0.4, above=True) or 0.4, options.number("cap", 0.5, above=True) or 0.5
    share, regulariser = options.number("share", 0.9, above=True) or 0.9, options.need("regulariser", above=True)
    classes, features, labelled = (int(options.need(n, 1)) for n in ("classes", "features", "labelled"))
    loss = options.choice("loss", ("soft-margin", "pseudo-huber"), "soft-margin")
    width = options.number("width", 0.1, above=True) or 0.1
    listed = options.raw("steps")
    powers = [float(s) for s in listed if isinstance(s, (int, float))] if isinstance(listed, list) else [float("inf")]
    options.finish(KEYS)
    bounds = gcon.soft_margin(classes) if loss == "soft-margin" else gcon.pseudo_huber(classes, width)
    moved = gcon.psi(powers, restart, cap)
    made = gcon.perturbation(
        epsilon=epsilon, delta=delta, share=share, regulariser=regulariser, bounds=bounds, sensitivity=moved,
    num_classes=classes,
        num_features=features, num_labelled=labelled,
    )  # fmt: skip

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        why = f"noise β = {made.beta:.4g}, Ψ = {moved:.4g}: the paper's constants, which hold for the exact minimiser"
        exact = facts["solved exactly (1) or not (0)"] == 1
        cost = (
            costs.approximate(epsilon / factor, delta)
            if exact
            else costs.unprotected("an approximate minimiser without its own noise")
        )
        return (Row("edge", "edge-undirected", RECIPIENT, cost, 1, delta, why),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"epsilon": epsilon / factor}

    question = "Is the objective minimised exactly (gradient norm near 1e-9), or is what is left noised and charged?"
    asked = (Unknown("solved exactly (1) or not (0)", question, (0.0, 1.0)),)
    unprotected = ("features and labels, which are public here", "tuning; a node's own edges, against that node")
    order = (
        "Propagated features are public but for edges; the objective is perturbed once; the model and all it predicts follow.",
    )
    return Reading(
        rows,
        (Published(epsilon, delta, "total", "objective perturbation"),),
        asked,
        unprotected,
        order=order,
        settings=settings,
    )
