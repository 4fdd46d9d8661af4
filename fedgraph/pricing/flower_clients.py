"""Who takes part in a round of a Flower app, and what the strategy under the noise keeps of earlier rounds.

Flower draws max(⌊fraction·N⌋, min nodes) of N nodes without replacement. A strategy that averages the replies of the round
(FedAvg, FedProx) has nothing else to hide. One that keeps a state keeps it without the noise: ``DifferentialPrivacy…`` noises
what the strategy returns, not what it remembers. Of FedAvgM the state is linear, so that its worst gain is known (``gain``); of
the others (FedAdam, FedYogi, medians, trimmed means, Krum) no bound is proven here, and the price is ∞.
"""

import math
from dataclasses import dataclass

from fedgraph.pricing.catalogue import places
from fedgraph.pricing.flower_app import App
from fedgraph.pricing.python_values import Call, Choice, Value
from fedgraph.pricing.questions import RATES, Answers, text

SHARE = "share of clients in a round"
HEAVIEST = "weight of the heaviest client, in equal shares"
EARLIER = {"fraction_fit": "fraction_train", "min_fit_clients": "min_train_nodes"}  # names of apps before 1.21
AVERAGES = ("FedAvg", "FedProx")
AGGREGATES = {"aggregate_train", "aggregate_fit", "aggregate", "start", "__call__"}
REMEMBERS = {
    "FedAdam": "a state of moments that is not noised", "FedYogi": "a state of moments that is not noised",
    "FedAdagrad": "a state of moments that is not noised", "FedOpt": "a state that is not noised",
    "FedMedian": "a median, which one client moves by more than its share of a mean",
    "FedTrimmedAvg": "a trimmed mean, which one client moves by more than its share of a mean",
    "Krum": "a choice of single updates, which one client moves by more than its share of a mean",
    "MultiKrum": "a choice of updates, which one client moves by more than its share of a mean",
    "Bulyan": "a choice of updates, which one client moves by more than its share of a mean",
    "QFedAvg": "weights that follow the clients' losses", "FaultTolerantFedAvg": "weights that follow the failures",
}  # fmt: skip


@dataclass(frozen=True)
class Inner:
    """The strategy under the noise. gain: by how much its memory raises what one client moves."""

    name: str
    call: Call | None
    gain: float
    own_sampling: bool


@dataclass(frozen=True)
class Part:
    """rate: the share of clients in a round, None where it is not known. real: how many are drawn, None where not known."""

    rate: float | None
    real: float | None
    sampled: float

    @property
    def even(self) -> float:
        """What one of equal clients weighs, in the shares that the noise is for; the heaviest weighs no less."""
        return self.sampled / (self.real or self.sampled)

    def share(self, answers: Answers) -> float:
        """The share of clients in a round, asked where it is not known."""
        question = "How many clients are there in all? The share that is sampled in a round, kept secret."
        return answers.ask(SHARE, question, RATES, 1.0, self.rate)

    def heaviest(self, answers: Answers) -> float:
        """The largest weight of a client, in the shares that the noise is for."""
        even, sampled = self.even, self.sampled
        said = f" They are {self.real:g} and the noise is for {sampled:g}: equal clients weigh {even:.4g}." if even != 1 else ""
        question = (
            "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the number of "
            f"sampled clients (1 where all are equal).{said}"
        )
        tried = (sampled, min(4.0, sampled), min(2.0, sampled), even)
        return max(answers.ask(HEAVIEST, question, tuple(dict.fromkeys(tried)), max(sampled, even)), even)


def gain(rate: float, momentum: float) -> float:
    """Σ|h_k| of FedAvgM: how far clipped updates of all rounds move its next state, in moves of one round.

    With the answers of earlier rounds given, a change Δ_t of the mean moves momentum and state by
    v ← βv + c − Δ_t and c ← c − ηv (``fedavgm.py``: the state c is kept without the noise). ∞ where this does not die out.

    >>> gain(1.0, 0.0)
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


def inner(app: App, value: Value) -> Inner | str:
    """The strategy under the noise, or why nothing is proven of it."""
    if isinstance(value, Choice) or not isinstance(value, Call):
        return f"{text(value)}, which is not decided: whether it keeps a state is not known"
    name, own_sampling = value.name, False
    if value.own is not None:
        foreign, methods = value.own.foreign, value.own.methods()
        changed = AGGREGATES & set(methods)
        if changed or len(foreign) != 1:
            more = f" with {', '.join(sorted(changed))}" if changed else ""
            return f"{value.name}, a strategy of its own{more}: what it keeps is not followed"
        name = foreign[0].rsplit(".", 1)[-1]
        own_sampling = any(m.startswith("configure_") or m == "__init__" for m in methods)
    if name in AVERAGES:
        return Inner(name, value, 1.0, own_sampling)
    if name == "FedAvgM":
        if own_sampling:
            return f"{value.name} over FedAvgM, whose settings are not followed"
        rate, momentum = (
            _setting(app, value, key, default, name)
            for key, default in (("server_learning_rate", 1.0), ("server_momentum", 0.0))
        )
        if rate is None or momentum is None:
            return "FedAvgM, whose server_learning_rate or server_momentum is not a number here: its memory is not noised"
        found = 1.0 if (rate, momentum) == (1.0, 0.0) else gain(rate, momentum)
        if math.isinf(found):
            return f"FedAvgM with learning rate {rate:g} and server_momentum {momentum:g}: its memory without noise grows"
        return Inner(name, value, found, own_sampling)
    return f"{name}, which keeps {REMEMBERS[name]}" if name in REMEMBERS else f"{name}, which is no mean that is known here"


def _setting(app: App, call: Call, name: str, default: float, base: str) -> float | None:
    """A number of a strategy (``base``: Flower's class below it) by name or place; where it is not given, its default."""
    value = call.attributes.get(name, call.get(name, places(base).get(EARLIER.get(name, name))))
    return default if value is None else app.document.answers.number(value, name, call.line)


def take_part(app: App, under: Inner, sampled: float) -> Part:
    """How many clients are drawn, and out of how many."""
    call, nodes = under.call, app.clients
    if call is None or under.own_sampling or "**" in call.keywords or nodes is None:
        return Part(None, None, sampled)
    old = any(name in call.keywords for name in (*EARLIER, "min_available_clients"))
    names = list(EARLIER) if old else list(EARLIER.values())
    fraction, least = (_setting(app, call, name, default, under.name) for name, default in zip(names, (1.0, 2.0), strict=True))
    if fraction is None or least is None:
        return Part(None, None, sampled)
    real = max(math.floor(nodes * fraction), least)
    return Part(min(1.0, real / nodes), float(min(real, nodes)), sampled)
