"""LPGNN (Sajadmanesh & Gatica-Perez, CCS 2021): ``python main.py -m mbm -ex 3 -ey 1 …`` or its saved namespace.

Every node perturbs its own features (budget x_eps) and its label (y_eps, k-ary randomised response) once: pure ε = x_eps +
y_eps for
features and label together, edges public. mbm: m bits at x_eps/m. 1bm: all bits. lpm: Laplace. agm: analytic Gaussian at
δ = 1e-10. An infinite budget (the default) sends in clear.
"""

from __future__ import annotations

import math

from fedgraph.pricing import costs
from fedgraph.pricing.base import WORLD, Facts, Published, Reading, Row, Setting
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options
from fedgraph.privacy.events import ApproxDP, Composed, PureDP, RandomizedResponse

SYSTEM = "LPGNN"
VERSION = "sisaman/LPGNN, July 2025"
SOURCE = "sisaman/LPGNN at 02c60f1 (2025-07-02): main.py, mechanisms.py, transforms.py; read 2026-11-21"
SAID = "The authors claim local privacy of features and labels for each node, and take the edges as known to the server."
NO_PRICE = {
    "d", "dataset", "data_dir", "data_range", "val_ratio", "test_ratio", "f", "feature", "model", "hidden_dim",
    "dropout", "kx", "ky",
    "x_steps", "y_steps", "forward", "optimizer", "max_epochs", "learning_rate", "weight_decay", "patience", "device",
    "s", "seed",
    "o", "output_dir", "log", "log_mode", "project_name",
}  # fmt: skip


def recognises(document: Document) -> bool:
    keys = document.data
    return document.kind in ("command", "namespace", "json", "yaml") and ("ex" in keys or "x_eps" in keys)


def read(document: Document) -> Reading:
    options = Options(document, document.data)
    x = options.number("x_eps", options.number("ex", math.inf))
    y = options.number("y_eps", options.number("ey", math.inf))
    name = options.choice("mechanism" if "mechanism" in document.data else "m", ("mbm", "1bm", "lpm", "agm"), "mbm")
    repeats = options.whole("repeats", options.whole("r", 1, 1), 1) or 1
    options.without_price(NO_PRICE)
    options.finish((*NO_PRICE, "x_eps", "y_eps", "mechanism", "repeats"))
    if x is None or y is None:
        raise options.error("x_eps", "budgets are numbers, or inf")
    delta = 1e-10 if name == "agm" and math.isfinite(x) else 0.0

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        if math.isinf(x) or math.isinf(y):
            what = " and ".join(w for w, e in (("features", x), ("labels", y)) if math.isinf(e))
            reason = f"{what} are sent in clear (budget inf)"
            return (Row("node", "replace, edges public", WORLD, costs.unprotected(reason), 1, 0.0, reason),)
        features = ApproxDP(x / factor, delta) if delta else PureDP(x / factor)
        both = costs.events(Composed((features, RandomizedResponse(y / factor, 2))))
        why = f"features by {name} at ε = {x / factor:g}, the label by randomised response at {y / factor:g}; they add up"
        if repeats > 1:
            why += f"; {repeats} repetitions perturb the same data afresh"
        return (Row("node", "replace, edges public", WORLD, both, repeats, delta * repeats, why),)

    def settings(factor: float) -> dict[str, Setting]:
        return {"x_eps": x / factor, "y_eps": y / factor}

    finite = math.isfinite(x + y)
    published = (Published(x + y if finite else None, delta, "total", f"x_eps = {x:g} and y_eps = {y:g}"),)
    order = ("Each node perturbs once; averaging over neighbours and training are post-processing; features and label add up.",)
    return Reading(
        rows, published, (), ("edges",), order=order, settings=settings if finite else None, no_fix="set finite budgets first"
    )
