"""Central noise of a Flower app: what ``DifferentialPrivacy{Server,Client}Side…`` is worth for the app that starts it.

The noise is on the mean; what one client moves the mean by follows from its weight, from who takes part, and from what the
strategy under the noise keeps (``flower_clients``).
"""

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing import flower_accounting as accounted
from fedgraph.pricing import flower_clients as clients
from fedgraph.pricing.base import MODELS, SERVER, Reading, Row, Setting, no_claim
from fedgraph.pricing.flower_app import App
from fedgraph.pricing.python_joins import candidates, plain
from fedgraph.pricing.python_values import Call
from fedgraph.pricing.questions import DELTAS

FIXED = ("DifferentialPrivacyServerSideFixedClipping", "DifferentialPrivacyClientSideFixedClipping")
ADAPTIVE = ("DifferentialPrivacyServerSideAdaptiveClipping", "DifferentialPrivacyClientSideAdaptiveClipping")
ORDER = (
    "Updates are clipped, averaged by FedAvg with its weights, then noised; rounds compose adaptively.",
    "A fixed number of clients is drawn without replacement: amplification holds for viewers who do not learn who took part.",
)


def price(app: App, call: Call) -> Reading:
    """A strategy that noises the mean, and what its clients, its inner strategy and its accountant make of it."""
    document, answers = app.document, app.document.answers
    answers.place = call.path, call.line
    if call.own is not None:
        own = call.own.node
        return app_in_clear(app, f"{own.name} (line {own.lineno}) changes {base_of(call)} in a way not followed here")
    adaptive, on_client = call.name in ADAPTIVE, "ClientSide" in call.name
    mixed = not all(each is call for strategy, _ in app.strategies for each in candidates(strategy))
    beside = any(len(candidates(s)) == 1 and s is not call for s, _ in app.strategies)
    asked = f"Is {call.name} (line {call.line}) the strategy that is started?"
    if mixed and (beside or not answers.whether("strategy with noise", asked)):
        return app_in_clear(app, f"a strategy without noise is started beside {call.name} (line {call.line})")
    if on_client and (missing := _unclipped(app, "adaptiveclipping_mod" if adaptive else "fixedclipping_mod")):
        return app_in_clear(app, missing)
    if odd := document.altered(call, "accountant"):
        return app_in_clear(app, odd)
    line = app.by_hand[0].line if app.by_hand else 0
    if line and not answers.whether(f"replies of line {line} thrown away", f"Line {line} sends messages. Are replies unused?"):
        return app_in_clear(app, f"messages are sent by hand (line {line}), beside the strategy with noise")
    inner = clients.inner(app, plain(call.held("strategy")))
    if isinstance(inner, str):
        return app_in_clear(app, f"{call.name} (line {call.line}) wraps {inner}")
    multiplier = document.need(call, "noise_multiplier", least=0.0)
    sampled = document.need(call, "num_sampled_clients", least=1.0)
    if not adaptive:
        document.need(call, "clipping_norm", above=0.0)
    count_std = _count_std(app, call, multiplier, sampled) if adaptive else 0.0
    counted, part = accounted.read(app, call, multiplier, sampled, inner), clients.take_part(app, inner, sampled)
    rounds, louder = app.ask_rounds(), document.louder
    many = (
        f" There are {app.clients:,} clients: a δ above {1 / app.clients:g} says nothing of one of them." if app.clients else ""
    )
    question = f"At which δ? Flower's central strategies do not ask for one; well below one over the clients.{many}"
    at = counted.delta if counted else answers.ask("delta", question, DELTAS, 1e-7)
    rounds = min(rounds, counted.most) if counted else rounds
    ratio = 1.0 if counted else part.heaviest(answers)
    rate = 1.0 if inner.gain != 1 else part.share(answers)
    rows, scaled, moves = [], multiplier * louder, ratio * inner.gain
    for relation, replaced in (("zero-out", False), ("replace", True)):
        effective = scaled / moves
        why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
        if inner.gain != 1:
            why += f", {inner.gain:.4g} times that with what {inner.name} keeps of earlier rounds"
        if adaptive:
            times = 2 if replaced else 1
            effective = _adaptive(scaled, count_std * louder, moves * times) * times
            why += f", and the count of clipped updates with std {count_std * louder:g}"
        rows.append(Row("client", relation, MODELS, costs.fixed_size(effective, rate, replaced), rounds, at, why))
    told = "clips are noised at the server only" if on_client else "clipping and noise happen at the server"
    seen = f"{told}: it receives updates in clear"
    rows.append(Row("client", "zero-out", SERVER, costs.unprotected(told), rounds, at, seen))
    settings: dict[str, Setting] = {"noise_multiplier": scaled}
    words = f"{call.name} with noise multiplier {multiplier:g}; Flower computes no ε"
    return Reading(
        tuple(rows),
        (counted.published,) if counted else no_claim(words),
        ("metrics and numbers of examples, which weigh the mean", *hidden_sums(app)),
        order=(*ORDER, *((accounted.WORDS,) if counted else ())),
        settings=settings | ({"clipped_count_stddev": count_std * louder} if adaptive else {}),
        people=counted.people if counted else app.clients,
    )


def _count_std(app: App, call: Call, multiplier: float, sampled: float) -> float:
    """The noise on the count of clipped updates, and Flower's own condition on it."""
    if "noise_multiplier" in call.attributes:
        raise PricingError(f"{call.path}:{call.line}: noise_multiplier of {call.name} is set again; write it where it is made")
    given = call.held("clipped_count_stddev") is not None
    found = app.document.need(call, "clipped_count_stddev", above=0.0) if given else sampled / 20
    if multiplier >= 2 * found:
        message = f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * found:g}: Flower refuses to run"
        raise PricingError(f"{call.path}:{call.line}: {message}")
    return found


def _unclipped(app: App, wanted: str) -> str:
    """Why not every client clips, or nothing."""
    whether = app.document.answers.whether
    if app.chains is None:
        asked = f"Does every client have {wanted} in the mods of its training? No client is in these files."
        return "" if whether(wanted, asked) else f"no file shows {wanted} on the client; without it no update is clipped"
    for chain in app.chains:
        asked = f"Does {chain.what} have {wanted} in its mods?"
        if wanted not in chain.names and (chain.whole or not whether(wanted, asked)):
            return f"{chain.what} has no {wanted} in its mods: its updates are not clipped"
        if changed := chain.altered(app.document, wanted):
            return changed
    return ""


def _adaptive(multiplier: float, count_std: float, moves: float) -> float:
    """1/μ of one round: the update with z' = (z⁻² − (2σ_b)⁻²)^−½, moved by ``moves``·clip, and the count, moved by 1."""
    if multiplier <= 0:
        return 0.0
    update = (multiplier**-2 - (2 * count_std) ** -2) ** -0.5
    return 1 / math.hypot(moves / update, 1 / count_std)


def base_of(call: Call) -> str:
    """The strategy's name; of a class of the app's own, that of Flower's class below it."""
    return call.own.foreign[0].rsplit(".", 1)[-1] if call.own and call.own.foreign else call.name


def app_in_clear(app: App, reason: str) -> Reading:
    """∞ for the clients of an app, because."""
    no_fix = "add LocalDpMod to the mods of training, or start a DifferentialPrivacy… strategy"
    return costs.in_clear("client", SERVER, reason, no_fix, app.rounds or 1, published=(),
                          unprotected=("everything", *hidden_sums(app)))  # fmt: skip


def hidden_sums(app: App) -> tuple[str, ...]:
    """What secure aggregation does, where the app imports it."""
    imported = {n.rsplit(".", 1)[-1] for n in app.document.imports}
    names = ("SecAggPlusWorkflow", "secaggplus_mod", "SecAggWorkflow", "secagg_mod")
    words = (
        "hides single updates from the server, and adds no noise: the server still sees each round's exact sum of updates (ε = "
        "∞ for it where noise is added after the sum)"
    )
    return tuple(f"{name} {words}" for name in names if name in imported)[:1]
