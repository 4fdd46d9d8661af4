"""What a scenario writes about releases of graphs: ε, and the models of a table."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from fedgraph.settings import Infinite
from fedgraph.tasks.base import require_distinct

OWN, COMPARE, FUSED = "epsilons", "compare", "fused"  # of a model: budgets, own answers only, node features beside distances
FUSED_BY = ("raw", "embedding")
METHOD_KEYS = {  # their JSON schema, for editors
    OWN: {"type": "array", "description": "ε of this model; default the task's"},
    COMPARE: {"type": "boolean", "description": "false: only the model's own answers"},
    FUSED: {"enum": list(FUSED_BY), "description": "node features beside distances"},
}
WEIGHTS = "weights of nodes, on raw data and in clear: uniform or degree (an encoded release: uniform, its degrees are private)"
Encoder = Literal["multi-bit", "multi-bit-total", "multi-bit-node", "gaussian-as-coded"]


def distinct(values: list[Any]) -> list[Any]:
    """Themselves; ``ValueError`` where two are equal."""
    require_distinct("the value", values)
    return values


Distinct = AfterValidator(distinct)


def epsilon(value: Any) -> float | str:
    """A number > 0 (∞ for no encoding) or ``1/n``; anything else is a ``ValueError`` that says why."""
    if value == "1/n":
        return str(value)
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if found > 0:
        return found
    why = "; at ε = 0 nothing may be released" if found == 0 else ""
    raise ValueError(f"allowed: ε > 0, 1/n (for a graph of n nodes), or inf (no encoding){why}")


Epsilons = Annotated[list[Annotated[float | Literal["1/n"], BeforeValidator(epsilon)]], Distinct, Infinite]


def clear(epsilon: float | str) -> bool:
    """No encoding."""
    return epsilon != "1/n" and math.isinf(float(epsilon))


def label(method: dict[str, Any]) -> str:
    """The name of a model's rows."""
    return str(method.get("label", method.get("model", "gcn")))


def no_encoder(method: dict[str, Any]) -> dict[str, Any]:
    """Itself; ``ValueError`` where a model names an encoder or a rule of ε of its own: rows are named by the task's."""
    for key, instead in (("encoder", "encoders"), ("epsilon_rule", "epsilons (1/n is the rule)")):
        if key in method:
            raise ValueError(f"{key} is a setting of the whole task here; allowed: the task's {instead}")
    return method


Model = Annotated[dict[str, Any], AfterValidator(no_encoder)]


def checked(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The models, their own ε checked. ``ValueError`` for names given twice, and keys that do not go together."""
    require_distinct("the model", [label(m) for m in methods])
    found = []
    for m in methods:
        given = m | ({OWN: distinct([_written(epsilon(e)) for e in m[OWN]])} if OWN in m else {})
        in_clear = OWN in m and all(map(clear, given[OWN]))
        if m.get(FUSED, "raw") not in FUSED_BY or (FUSED in m and not in_clear):
            raise ValueError(f"fused is one of {', '.join(FUSED_BY)} and looks at rows in clear: epsilons [inf]")
        if not m.get(COMPARE, True) and (m.get("pooling") == "none" or not in_clear):
            raise ValueError("compare: false asks for the model's own answers: it needs epsilons [inf] and pooling mean or sum")
        found.append(given)
    return found


def _written(epsilon: float | str) -> float | str:
    """As JSON and YAML keep it inside a mapping of settings: ∞ as ``inf``."""
    return "inf" if clear(epsilon) else epsilon


Models = Annotated[list[Model], AfterValidator(checked)]
