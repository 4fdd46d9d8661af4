"""LPGNN (Sajadmanesh & Gatica-Perez, CCS 2021): ``python main.py -m mbm -ex 3 -ey 1 …`` or its saved namespace.

Every node perturbs its own features (budget x_eps) and its label (y_eps, k-ary randomised response) once: pure ε = x_eps +
y_eps for features and label together, edges public. mbm: m bits at x_eps/m. 1bm: all bits. lpm: Laplace. agm: analytic Gaussian
at δ = 1e-10. An infinite budget (the default) sends in clear.
"""

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import WORLD, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.events import ApproxDP, Composed, PureDP, RandomizedResponse

RELATION = "replace, edges public"


def read(document: Document) -> Reading:
    options, louder = Options(document, system="lpgnn"), document.louder
    x = options.number("x_eps", options.number("ex", math.inf))
    y = options.number("y_eps", options.number("ey", math.inf))
    name = options.choice("mechanism" if "mechanism" in document.data else "m", ("mbm", "1bm", "lpm", "agm", "mpm"), "mbm")
    repeats = options.whole("repeats", options.whole("r", 1, 1), 1) or 1
    options.without_price(["mechanism"])
    options.finish()
    if x is None or y is None:
        raise options.error("x_eps", "budgets are numbers, or inf")
    delta = 1e-10 if name == "agm" and math.isfinite(x) else 0.0
    if math.isinf(x + y):
        what = " and ".join(w for w, e in (("features", x), ("labels", y)) if math.isinf(e))
        reason = f"{what} are sent in clear (budget inf)"
        row = Row("node", RELATION, WORLD, costs.unprotected(reason), 1, 0.0, reason)
    else:
        features = ApproxDP(x / louder, delta) if delta else PureDP(x / louder)
        both = costs.events(Composed((features, RandomizedResponse(y / louder, 2))))
        why = f"features by {name} at ε = {x / louder:g}, the label by randomised response at {y / louder:g}; they add up"
        why += f"; {repeats} repetitions perturb the same data afresh" if repeats > 1 else ""
        row = Row("node", RELATION, WORLD, both, repeats, delta * repeats, why)
    claim = Published(x + y if math.isfinite(x + y) else None, delta, "total", f"x_eps = {x:g} and y_eps = {y:g}")
    order = "Each node perturbs once; averaging over neighbours and training are post-processing; features and label add up."
    settings = {"x_eps": x / louder, "y_eps": y / louder} if math.isfinite(x + y) else None
    return Reading((row,), (claim,), ("edges",), order=(order,), settings=settings, no_fix="set finite budgets first")
