"""Central noise of a Flower app: what ``DifferentialPrivacy{Server,Client}Side…`` is worth for the app that starts it.

The noise is on the mean; what one client moves the mean by follows from its weight, from who takes part, and from what the
strategy under the noise keeps (``flower_clients``).
"""

from __future__ import annotations

import math
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing import flower_accounting as accounted
from fedgraph.pricing import flower_clients as clients
from fedgraph.pricing.base import MODELS, SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.costs import in_clear
from fedgraph.pricing.flower_app import ROUNDS, App
from fedgraph.pricing.flower_clients import HEAVIEST, SHARE
from fedgraph.pricing.python_values import Call, Value, candidates, plain
from fedgraph.pricing.questions import text

FIXED = ("DifferentialPrivacyServerSideFixedClipping", "DifferentialPrivacyClientSideFixedClipping")
ADAPTIVE = ("DifferentialPrivacyServerSideAdaptiveClipping", "DifferentialPrivacyClientSideAdaptiveClipping")
DELTAS = (1e-7, 1e-6, 1e-5, 1e-4)


def price(app: App, call: Call) -> Reading:
    """A strategy that noises the mean, and what its clients, its inner strategy and its accountant make of it."""
    app.document.answers.place = call.path, call.line
    if call.own is not None:
        return app_in_clear(
            app, f"{call.own.node.name} (line {call.own.node.lineno}) changes {base_of(call)} in a way not followed here"
        )
    adaptive, on_client = call.name in ADAPTIVE, "ClientSide" in call.name
    mixed = not all(each is call for strategy, _ in app.strategies for each in candidates(strategy))
    beside = any(len(candidates(s)) == 1 and s is not call for s, _ in app.strategies)
    asked = f"Is {call.name} (line {call.line}) the strategy that is started?"
    if mixed and (beside or not app.document.answers.whether("strategy with noise", asked)):
        return app_in_clear(app, f"a strategy without noise is started beside {call.name} (line {call.line})")
    if on_client and (missing := _unclipped(app, "adaptiveclipping_mod" if adaptive else "fixedclipping_mod")):
        return app_in_clear(app, missing)
    inner = clients.inner(app, plain(call.attributes.get("strategy", call.get("strategy", 0))))
    if isinstance(inner, str):
        return app_in_clear(app, f"{call.name} (line {call.line}) wraps {inner}")
    positions = (1, 2) if adaptive else (1, 3)
    multiplier = need(app, call, "noise_multiplier", positions[0])
    sampled = need(app, call, "num_sampled_clients", positions[1])
    clip = 1.0 if adaptive else need(app, call, "clipping_norm", 2)
    if multiplier < 0 or sampled < 1 or clip <= 0:
        raise PricingError(
            f"{call.path}:{call.line}: needs noise_multiplier ≥ 0, clipping_norm > 0 and num_sampled_clients ≥ 1"
        )
    if adaptive and "noise_multiplier" in call.attributes:
        raise PricingError(f"{call.path}:{call.line}: noise_multiplier of {call.name} is set again; write it where it is made")
    count_std = sampled / 20
    if adaptive and call.get("clipped_count_stddev", 6) is not None:
        count_std = need(app, call, "clipped_count_stddev", 6)
    if adaptive and multiplier >= 2 * count_std:
        raise PricingError(
            f"{call.path}:{call.line}: noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * count_std:g}: Flower "
            "refuses to run"
        )
    counted = accounted.read(app, call, multiplier, sampled, inner)
    part = clients.take_part(app, inner, sampled)

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rounds = app.rounds if app.rounds is not None else int(facts["rounds"])
        rounds = min(rounds, counted.most) if counted else rounds
        rate = 1.0 if inner.gain != 1 else part.rate if part.rate is not None else facts[SHARE]
        ratio, scaled = 1.0 if counted else max(facts[HEAVIEST], part.even), multiplier * factor
        at = counted.delta if counted else facts["delta"]
        moves = ratio * inner.gain
        both = []
        for relation, replaced in (("zero-out", False), ("replace", True)):
            effective = scaled / moves
            why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
            if inner.gain != 1:
                why += f", {inner.gain:.4g} times that with what {inner.name} keeps of earlier rounds"
            if adaptive:
                one = _adaptive(scaled, count_std * factor, moves * (2 if replaced else 1))
                effective = one * (2 if replaced else 1)
                why += f", and the count of clipped updates with std {count_std * factor:g}"
            cost = costs.fixed_size(effective, rate, replaced)
            both.append(Row("client", relation, MODELS, cost, rounds, at, why))
        told = "clips are noised at the server only" if on_client else "clipping and noise happen at the server"
        seen = f"{told}: it receives updates in clear"
        return (*both, Row("client", "zero-out", SERVER, costs.unprotected(told), rounds, at, seen))

    def settings(factor: float) -> dict[str, Setting]:
        changed: dict[str, Setting] = {"noise_multiplier": multiplier * factor}
        return changed | ({"clipped_count_stddev": count_std * factor} if adaptive else {})

    words = f"{call.name} with noise multiplier {multiplier:g}; Flower computes no ε"
    return Reading(
        rows,
        (counted.published,) if counted else (Published(None, None, "none", words),),
        (*rounds_asked(app), *(() if counted else (_delta_asked(app),)), *part.asked(counted is not None, inner.gain != 1)),
        ("metrics and numbers of examples, which weigh the mean", *hidden_sums(app)),
        order=(
            "Updates are clipped, averaged by FedAvg with its weights, then noised; rounds compose adaptively.",
            (
                "A fixed number of clients is drawn without replacement: amplification holds for viewers who do not learn "
                "who took part."
            ),
            *((counted.words,) if counted else ()),
            *app.notes,
        ),
        settings=settings,
    )


def _unclipped(app: App, wanted: str) -> str:
    """Why not every client clips, or nothing."""
    if app.chains is None:
        asked = f"Does every client have {wanted} in the mods of its training? No client is in these files."
        return (
            ""
            if app.document.answers.whether(wanted, asked)
            else f"no file shows {wanted} on the client; without it no update is clipped"
        )
    for chain in app.chains:
        asked = f"Does {chain.what} have {wanted} in its mods?"
        if wanted not in chain.names and (chain.whole or not app.document.answers.whether(wanted, asked)):
            return f"{chain.what} has no {wanted} in its mods: its updates are not clipped"
    return ""


def _delta_asked(app: App) -> Unknown:
    many = (
        f" There are {app.clients:,} clients: a δ above {1 / app.clients:g} says nothing of one of them." if app.clients else ""
    )
    question = f"At which δ? Flower's central strategies do not ask for one; well below one over the clients.{many}"
    return Unknown("delta", question, DELTAS, 1e-7)


def _adaptive(multiplier: float, count_std: float, moves: float) -> float:
    """1/μ of one round: the update with z' = (z⁻² − (2σ_b)⁻²)^−½, moved by ``moves``·clip, and the count, moved by 1."""
    if multiplier <= 0:
        return 0.0
    update = (multiplier**-2 - (2 * count_std) ** -2) ** -0.5
    return 1 / math.hypot(moves / update, 1 / count_std)


def need(app: App, call: Call, name: str, position: int) -> float:
    """A number that has to be there."""
    value = app.number(call, name, position)
    if value is None:
        raise PricingError(
            f"{call.path}:{call.line}: {call.name} needs {name}, found {text(held_by(call, name, position))}; "
            f"write a number, name its key in [tool.flwr.app.config], or answer --given {name}=…"
        )
    return value


def held_by(call: Call, name: str, position: int) -> Value:
    """What an object holds at the end, by name or place."""
    return call.attributes.get(name, call.get(name, position))


def base_of(call: Call) -> str:
    """The strategy's name; of a class of the app's own, that of Flower's class below it."""
    return call.own.foreign[0].rsplit(".", 1)[-1] if call.own and call.own.foreign else call.name


def app_in_clear(app: App, reason: str) -> Reading:
    """∞ for the clients of an app, because."""
    found = in_clear(
        "client",
        SERVER,
        reason,
        "add LocalDpMod to the mods of training, or start a DifferentialPrivacy… strategy",
        app.rounds or 1,
    )
    return replace(found, published=(), unprotected=("everything", *hidden_sums(app)), order=app.notes)


def hidden_sums(app: App) -> tuple[str, ...]:
    """What secure aggregation does, where the app imports it."""
    used = [
        name
        for name in ("SecAggPlusWorkflow", "secaggplus_mod", "SecAggWorkflow", "secagg_mod")
        if name in {n.rsplit(".", 1)[-1] for n in app.document.imports}
    ]
    if not used:
        return ()
    return (
        f"{used[0]} hides single updates from the server, and adds no noise: the server still sees each round's exact sum of "
        "updates (ε = ∞ for it where noise is added after the sum)",
    )


def rounds_asked(app: App) -> tuple[Unknown, ...]:
    """The question after the rounds, where they are not known."""
    if app.rounds is not None:
        return ()
    return (Unknown("rounds", "How many rounds are run (num_rounds, or num-server-rounds)?", ROUNDS),)
