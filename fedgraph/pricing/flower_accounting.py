"""Flower's own accountant (flwr 1.42): ``accountant=RdpAccountant(PrivacyConfig(target_delta, population_size, …))``.

It composes one Gaussian of ``noise_multiplier`` a round, without amplification, under add/remove of a client, in Rényi orders.
It refuses unequal weights, other numbers of replies than ``num_sampled_clients`` and strategies that do not average, so that
one client weighs exactly one share. Where ``max_epsilon`` would be passed, the run ends. Its ε is computed in the same orders
(ε(α) = αT/(2z²), converted as its library does); the exact Gaussian price lies below it.
"""

import math
from dataclasses import dataclass

from fedgraph.errors import PricingError
from fedgraph.pricing.base import Published
from fedgraph.pricing.flower_app import App
from fedgraph.pricing.flower_clients import Inner
from fedgraph.pricing.python_joins import plain
from fedgraph.pricing.python_values import Call, Items, Name
from fedgraph.pricing.questions import text

ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
WORDS = (
    "Flower's own ε is that of Rényi orders without amplification; the exact Gaussian price lies below it, and sampling that "
    "is kept secret lowers it further."
)
RELATIONS = {"poisson": "add-or-remove-one", "without-replacement": "replace-one", "no-amplification": "add-or-remove-one"}


@dataclass(frozen=True)
class Counted:
    """most: rounds before the budget ends. people: clients in all."""

    delta: float
    most: int
    published: Published
    people: float


def epsilon(multiplier: float, rounds: int, delta: float, orders: tuple[float, ...] = ORDERS) -> float:
    """What Flower's accountant prints.

    Args:
        multiplier: noise standard deviation over clip, > 0.
        rounds: of one Gaussian each.
        delta: in (0, 1).
        orders: Rényi orders > 1.
    """
    if rounds == 0:
        return 0.0
    found = math.inf
    for order in orders:
        divergence = order * rounds / (2 * multiplier**2)
        if delta**2 + math.expm1(-divergence) > 0:
            return 0.0
        if order > 1.01:
            found = min(found, divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1))
    return max(0.0, found)


def read(app: App, call: Call, multiplier: float, sampled: float, inner: Inner) -> Counted | None:
    """What the strategy's accountant says; None where it has none."""
    made = plain(call.held("accountant"))
    if made is None:
        return None
    where, document = f"{call.path}:{call.line}", app.document
    if not isinstance(made, Call) or made.name != "RdpAccountant":
        raise PricingError(f"{where}: accountant is {text(made)}; allowed: RdpAccountant(PrivacyConfig(…))")
    config = plain(made.get("config"))
    if not isinstance(config, Call) or config.name != "PrivacyConfig":
        raise PricingError(f"{where}: RdpAccountant gets {text(config)}; allowed: PrivacyConfig(…)")
    delta = document.need(config, "target_delta", above=0.0, below=1.0)
    people = document.need(config, "population_size", least=sampled)
    relation, method = _word(config, "neighboring_relation"), _word(config, "sampling_method")
    averages = inner.gain == 1 and inner.name in ("FedAvg", "FedProx")
    if method != "no-amplification" or relation != RELATIONS[method] or multiplier <= 0 or not averages:
        raise PricingError(
            f"{where}: Flower refuses an accountant here; it needs no-amplification with add-or-remove-one (found {method}, "
            f"{relation}), noise and FedAvg"
        )
    listed = plain(made.get("orders"))
    orders = (
        tuple(float(o) for o in map(plain, listed) if isinstance(o, (int, float)))
        if isinstance(listed, (Items, tuple))
        else ORDERS
    )
    limit = document.number(config, "max_epsilon")
    rounds = app.rounds if app.rounds is not None else 10**9
    most = _affordable(multiplier, delta, orders, limit, rounds)
    theirs = epsilon(multiplier, most, delta, orders) if app.rounds is not None or limit is not None else None
    ends = (
        f", and ends after {most:,} of {rounds:,} rounds at max_epsilon = {limit:g}"
        if limit is not None and most < rounds
        else ""
    )
    claim = Published(theirs, delta, "total", f"Flower's RdpAccountant, add/remove of a client, no amplification{ends}")
    return Counted(delta, most, claim, people)


def _affordable(multiplier: float, delta: float, orders: tuple[float, ...], limit: float | None, rounds: int) -> int:
    """The most rounds whose ε stays at or below the limit."""
    if limit is None or epsilon(multiplier, rounds, delta, orders) <= limit:
        return rounds
    low, high = 0, rounds
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if epsilon(multiplier, middle, delta, orders) <= limit else (low, middle)
    return low


def _word(call: Call, name: str) -> str:
    """An option that is a member of an enumeration, or its value."""
    value = plain(call.get(name))
    said = value if isinstance(value, str) else value.dotted.rsplit(".", 1)[-1] if isinstance(value, Name) else "?"
    found = str(said).lower().replace("_", "-")
    allowed = (*RELATIONS, *RELATIONS.values())
    if found not in allowed:
        words = ", ".join(dict.fromkeys(allowed))
        raise PricingError(f"{call.path}:{call.line}: {name} is {text(value)}; allowed: {words}")
    return found
