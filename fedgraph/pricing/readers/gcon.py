"""GCON-style objective perturbation (edge level), as settings in YAML or JSON: ``{system: gcon, epsilon, delta, …}``.

    restart, steps, cap        a, the m_i of each concatenated power, p ≤ ½           share       ω
    regulariser                Λ                 classes, features, labelled          c, d, n₁
    loss                       soft-margin or pseudo-huber

The noise (β) follows from ε by the paper's constants, whose proof we derived again (``privacy.claims.gcon``): (ε, δ) for one
undirected edge, features and labels public, for the **exact** minimiser. An approximate one is another output: its distance has
to be noised and charged, and the file says nothing of the gradient it stops at.
"""

from fedgraph.pricing import costs
from fedgraph.pricing.base import RECIPIENT, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.claims import gcon


def read(document: Document) -> Reading:
    options = Options(document)
    options.without_price(["system"])
    epsilon, delta = options.need("epsilon", above=True), options.delta("delta")
    if not delta:
        raise options.error("delta", "missing option 'delta'; it is needed to price this file")
    defaults = (("restart", 0.4), ("cap", 0.5), ("share", 0.9), ("width", 0.1))
    restart, cap, share, width = (options.number(name, default, above=True) or default for name, default in defaults)
    regulariser = options.need("regulariser", above=True)
    classes, features, labelled = (int(options.need(n, 1)) for n in ("classes", "features", "labelled"))
    loss, listed = options.choice("loss", ("soft-margin", "pseudo-huber"), "soft-margin"), options.raw("steps")
    powers = [float(s) for s in listed if isinstance(s, (int, float))] if isinstance(listed, list) else [float("inf")]
    options.finish()
    bounds = gcon.soft_margin(classes) if loss == "soft-margin" else gcon.pseudo_huber(classes, width)
    moved = gcon.psi(powers, restart, cap)
    given = gcon.Situation(epsilon, delta, share, bounds, moved, classes, features, labelled, per_end=False)
    made = gcon.perturbation(given, regulariser)
    question = "Is the objective minimised exactly (gradient norm near 1e-9), or is what is left noised and charged?"
    exact = document.answers.ask("solved exactly (1) or not (0)", question, (0.0, 1.0)) == 1
    why = f"noise β = {made.beta:.4g}, Ψ = {moved:.4g}: the paper's constants, which hold for the exact minimiser"
    spent = epsilon / document.louder
    reason = "an approximate minimiser without its own noise"
    cost = costs.approximate(spent, delta) if exact else costs.unprotected(reason)
    unprotected = ("features and labels, which are public here", "tuning; a node's own edges, against that node")
    order = (
        "Propagated features are public but for edges; the objective is perturbed once; the model and all it predicts follow."
    )
    return Reading((Row("edge", "edge-undirected", RECIPIENT, cost, 1, delta, why),),
                   (Published(epsilon, delta, "total", "objective perturbation"),), unprotected, order=(order,),
                   settings={"epsilon": spent})  # fmt: skip
