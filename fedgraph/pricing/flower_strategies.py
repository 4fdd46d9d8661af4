"""Who takes part in a round of a Flower app, what the strategy under the noise keeps, and what flwr 1.42's accountant says.

Flower draws max(⌊fraction·N⌋, min nodes) of N nodes without replacement. A strategy that averages the replies of the round
(FedAvg, FedProx) has nothing else to hide. One that keeps a state keeps it without the noise: ``DifferentialPrivacy…`` noises
what the strategy returns, not what it remembers. Of FedAvgM the state is linear, so that its gain is known
(``_momentum_gain``); of the others (FedAdam, FedYogi, medians, trimmed means, Krum) no bound is proven here, and the price is
∞.

``accountant=RdpAccountant(PrivacyConfig(target_delta, population_size, …))`` composes one Gaussian of ``noise_multiplier`` a
round, without amplification, under add/remove of a client, in Rényi orders. It refuses unequal weights, other numbers of
replies than ``num_sampled_clients`` and strategies that do not average, so that one client weighs exactly one share. Where
``max_epsilon`` would be passed, the run ends. Its ε is computed in the same orders (ε(α) = αT/(2z²), converted as its library
does); the exact Gaussian price lies below it.
"""

import math
from dataclasses import dataclass

from fedgraph.pricing.catalogue import catalogue_places
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.flower_app import FlowerApp
from fedgraph.pricing.open_facts import OpenFactAnswers, open_fact_text
from fedgraph.pricing.python_values import CallValue, ItemsValue, PythonChoice, PythonName, Value, python_plain
from fedgraph.pricing.readings import PublishedReading

_HEAVIEST = "weight of the heaviest client, in equal shares"
_EARLIER = {"fraction_fit": "fraction_train", "min_fit_clients": "min_train_nodes"}  # names of apps before 1.21
_AVERAGES = ("FedAvg", "FedProx")
_AGGREGATES = {"aggregate_train", "aggregate_fit", "aggregate", "start", "__call__"}
_ORDERS: tuple[float, ...] = (*(1 + x / 10 for x in range(1, 100)), *range(11, 64), 128, 256, 512, 1024)
RELATIONS = {"poisson": "add-or-remove-one", "without-replacement": "replace-one", "no-amplification": "add-or-remove-one"}


@dataclass(frozen=True)
class _Inner:
    """The strategy under the noise."""

    name: str  # flower's name of it, also for a class of the app that inherits from it
    call: CallValue | None  # what made it
    gain: float  # by how much its memory raises what one client moves; 1 for a mean without memory
    own_sampling: bool  # whether the app changes how clients are drawn


@dataclass(frozen=True)
class _Part:
    """Who takes part in a round."""

    rate: float | None  # the share of the clients in a round, in (0, 1]; None where it is not known
    real: float | None  # how many are drawn; None where that is not known
    sampled: float  # how many the noise is for (num_sampled_clients)

    @property
    def even(self) -> float:
        """What one of equal clients weighs, in the shares that the noise is for; the heaviest weighs no less."""
        return self.sampled / (self.real or self.sampled)

    def heaviest(self, answers: OpenFactAnswers) -> float:
        """The largest weight of a client, in the shares that the noise is for."""
        even, sampled = self.even, self.sampled
        said = f" They are {self.real:g} and the noise is for {sampled:g}: equal clients weigh {even:.4g}." if even != 1 else ""
        question = "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the "
        question += f"number of sampled clients (1 where all are equal).{said}"
        tried = (sampled, min(4.0, sampled), min(2.0, sampled), even)
        return max(answers.ask(_HEAVIEST, question, tuple(dict.fromkeys(tried)), max(sampled, even)), even)


def _momentum_gain(rate: float, momentum: float) -> float:
    """Σ|h_k| of FedAvgM: how far clipped updates of all rounds move its next state, in moves of one round.

    With the answers of earlier rounds given, a change Δ_t of the mean moves momentum and state by
    v ← βv + c − Δ_t and c ← c − ηv (``fedavgm.py``: the state c is kept without the noise). ∞ where this does not die out.

    >>> _momentum_gain(1.0, 0.0)
    1.0
    """
    state, moved, found = 0.0, -1.0, 0.0  # an impulse of one
    for _ in range(100_000):
        state -= rate * moved
        found += abs(state)
        if found > 1e12:
            return math.inf
        moved = momentum * moved + state
        if abs(state) < 1e-15 and abs(moved) < 1e-15:
            return found
    return math.inf


def inner_flower_strategy(app: FlowerApp, value: Value) -> _Inner | str:
    """The strategy under the noise, or why nothing is proven of it."""
    if isinstance(value, PythonChoice) or not isinstance(value, CallValue):
        return f"{open_fact_text(value)}, which is not decided: whether it keeps a state is not known"
    name, own_sampling = value.name, False
    if value.own is not None:
        foreign, methods = value.own.foreign, value.own.methods()
        changed = _AGGREGATES & set(methods)
        if changed or len(foreign) != 1:
            more = f" with {', '.join(sorted(changed))}" if changed else ""
            return f"{value.name}, a strategy of its own{more}: what it keeps is not followed"
        name = foreign[0].rsplit(".", 1)[-1]
        own_sampling = any(m.startswith("configure_") or m == "__init__" for m in methods)
    if name in _AVERAGES:
        return _Inner(name, value, 1.0, own_sampling)
    if name == "FedAvgM":
        if own_sampling:
            return f"{value.name} over FedAvgM, whose settings are not followed"
        defaults = (("server_learning_rate", 1.0), ("server_momentum", 0.0))
        rate, momentum = (_setting(app, value, key, default, name) for key, default in defaults)
        if rate is None or momentum is None:
            return "FedAvgM, whose server_learning_rate or server_momentum is not a number here: its memory is not noised"
        found = 1.0 if (rate, momentum) == (1.0, 0.0) else _momentum_gain(rate, momentum)
        if math.isinf(found):
            return f"FedAvgM with learning rate {rate:g} and server_momentum {momentum:g}: its memory without noise grows"
        return _Inner(name, value, found, own_sampling)
    kept = app.document.words.get(name)
    return f"{name}, which keeps {kept}" if kept else f"{name}, which is no mean that is known here"


def _setting(app: FlowerApp, call: CallValue, name: str, default: float, base: str) -> float | None:
    """A number of a strategy (``base``: Flower's class below it) by name or place; where it is not given, its default."""
    value = call.attributes.get(name, call.get(name, catalogue_places(base).get(_EARLIER.get(name, name))))
    return default if value is None else app.document.answers.number(value, name, call.line)


def flower_strategy_participation(app: FlowerApp, under: _Inner, sampled: float) -> _Part:
    """How many clients are drawn, and out of how many."""
    call, nodes = under.call, app.clients
    if call is None or under.own_sampling or "**" in call.keywords or nodes is None:
        return _Part(None, None, sampled)
    old = any(name in call.keywords for name in (*_EARLIER, "min_available_clients"))
    names = list(_EARLIER) if old else list(_EARLIER.values())
    fraction, least = (_setting(app, call, name, default, under.name) for name, default in zip(names, (1.0, 2.0), strict=True))
    if fraction is None or least is None:
        return _Part(None, None, sampled)
    real = max(math.floor(nodes * fraction), least)
    return _Part(min(1.0, real / nodes), float(min(real, nodes)), sampled)


@dataclass(frozen=True)
class _Counted:
    """What the accountant of a strategy counts."""

    delta: float  # its δ, in (0, 1)
    most: int  # how many rounds there are before the budget ends
    published: PublishedReading  # what it claims
    people: float  # how many clients there are in all


def epsilon(multiplier: float, rounds: int, delta: float, orders: tuple[float, ...] = _ORDERS) -> float:
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


def flower_strategy_accountant(app: FlowerApp, call: CallValue, noise: float, sampled: float, inner: _Inner) -> _Counted | None:
    """What the strategy's accountant says; None where it has none."""
    if (made := python_plain(call.held("accountant"))) is None:
        return None
    document = app.document
    if not isinstance(made, CallValue) or made.name != "RdpAccountant":
        raise document.error_at(call, f"accountant is {open_fact_text(made)}; allowed: RdpAccountant(PrivacyConfig(…))")
    config = python_plain(made.get("config"))
    if not isinstance(config, CallValue) or config.name != "PrivacyConfig":
        raise document.error_at(call, f"RdpAccountant gets {open_fact_text(config)}; allowed: PrivacyConfig(…)")
    delta = document.need(config, "target_delta", above=0.0, below=1.0)
    people = document.need(config, "population_size", least=sampled)
    relation, method = (_word(document, config, name) for name in ("neighboring_relation", "sampling_method"))
    averages = inner.gain == 1 and inner.name in ("FedAvg", "FedProx")
    if method != "no-amplification" or relation != RELATIONS[method] or noise <= 0 or not averages:
        needs = "no-amplification with add-or-remove-one"
        message = f"Flower refuses an accountant here; it needs {needs} (found {method}, {relation}), noise and FedAvg"
        raise document.error_at(call, message)
    listed, orders = python_plain(made.get("orders")), _ORDERS
    if isinstance(listed, (ItemsValue, tuple)):
        orders = tuple(float(o) for o in map(python_plain, listed) if isinstance(o, (int, float)))
    limit = document.number(config, "max_epsilon")
    rounds = app.rounds if app.rounds is not None else 10**9
    # The most rounds whose ε stays at or below the limit.
    if limit is None or epsilon(noise, rounds, delta, orders) <= limit:
        most = rounds
    else:
        low, high = 0, rounds
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if epsilon(noise, middle, delta, orders) <= limit else (low, middle)
        most = low
    theirs = epsilon(noise, most, delta, orders) if app.rounds is not None or limit is not None else None
    words = "Flower's RdpAccountant, add/remove of a client, no amplification"
    if limit is not None and most < rounds:
        words += f", and ends after {most:,} of {rounds:,} rounds at max_epsilon = {limit:g}"
    return _Counted(delta, most, PublishedReading(theirs, delta, "total", words), people)


def _word(document: PricedDocument, call: CallValue, name: str) -> str:
    """An option that is a member of an enumeration, or its value."""
    value = python_plain(call.get(name))
    said = value if isinstance(value, str) else value.dotted.rsplit(".", 1)[-1] if isinstance(value, PythonName) else "?"
    found = str(said).lower().replace("_", "-")
    allowed = (*RELATIONS, *RELATIONS.values())
    if found not in allowed:
        words = ", ".join(dict.fromkeys(allowed))
        raise document.error_at(call, f"{name} is {open_fact_text(value)}; allowed: {words}")
    return found
