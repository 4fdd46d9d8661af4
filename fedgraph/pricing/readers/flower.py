"""Flower: an app's ``pyproject.toml`` with the two Python files that it names, or one of those files.

What is proven of ``LocalDpMod`` and ``DifferentialPrivacy…``: ``docs/how_deployed_noise_is_priced.md``. Central noise is on the
mean; what one client moves the mean by follows from its weight, from who takes part, and from what the strategy under the noise
keeps (``flower_strategies``).
"""

import math
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, flower_strategies, readings
from fedgraph.pricing.documents import PricedDocument
from fedgraph.pricing.flower_app import FlowerApp, read_flower_app
from fedgraph.pricing.python_values import CallValue, python_plain, value_candidates
from fedgraph.pricing.readers import opacus
from fedgraph.pricing.readings import (
    PRICE_TO_SERVER,
    PRICE_WITH_MODELS,
    PublishedReading,
    Reading,
    ReadingRow,
    reading_in_clear,
)

_LOCAL, _LEGACY = "LocalDpMod", ("DPFedAvgFixed", "DPFedAvgAdaptive")
_FIXED = ("DifferentialPrivacyServerSideFixedClipping", "DifferentialPrivacyClientSideFixedClipping")
_ADAPTIVE = ("DifferentialPrivacyServerSideAdaptiveClipping", "DifferentialPrivacyClientSideAdaptiveClipping")


def read(document: PricedDocument) -> Reading:
    """What of Flower's mechanisms takes part in training; several at once are refused."""
    app = read_flower_app(document)
    if legacy := app.document.made(*_LEGACY):
        message = f"{legacy[0].name} is of another version (flwr before 1.8); known here: flwr 1.8–1.42"
        raise app.document.error_at(legacy[0], message)
    if app.queries:
        return _app_in_clear(app, f"query (line {app.queries[0].line}) sends what it returns, which no mechanism noises")
    started = [each for strategy, _ in app.strategies for each in value_candidates(strategy)]
    local, noised = _local_mods(app), [s for s in started if isinstance(s, CallValue) and _base_of(s) in (*_FIXED, *_ADAPTIVE)]
    central = list(dict.fromkeys(noised))
    if isinstance(local, Reading):
        return local
    if len(central) > 1 or (local and central):
        raise _several(document, [*central, *local])
    return _central(app, central[0]) if central else _local(app, local[0]) if local else _neither(app)


def _several(document: PricedDocument, found: list[CallValue]) -> PricingError:
    names = ", ".join(f"{call.name} ({call.path.name}:{call.line})" for call in found)
    return PricingError(f"{document.path}: several mechanisms, which contradict or compose: {names}; price one file of them")


def _neither(app: FlowerApp) -> Reading:
    """Nothing takes part: why, or what Opacus does inside the clients."""
    document = app.document
    if made := [c for c in document.program.calls if c.name in (_LOCAL, *_FIXED, *_ADAPTIVE) and c.own is None]:
        call = made[0]
        where = "no chain of mods of training has it" if call.name == _LOCAL else "it is not the strategy that is started"
        return _app_in_clear(app, f"{call.name} is made ({call.path.name}:{call.line}), but {where}: updates go in clear")
    if not document.made(*opacus.OPACUS_MAKERS):
        return _app_in_clear(app, document.words["neither"])
    one = document.answers.again(document.louder, {**document.answers.tried, "epochs": 1.0, "steps": 1.0})
    inner = opacus.read(replace(document, answers=one, system="opacus"))
    whole = app.rounds == 1 and not (one.asked & {"epochs", "steps"})
    steps = 0 if whole else int(document.ask("steps in all"))
    document.answers.merge(one)
    why = "Opacus inside the clients protects examples; the model that a client sends is a function of all that it holds"
    more = "steps and epochs are those of all rounds together; the server sees every model"
    rows = [replace(r, viewer=PRICE_TO_SERVER, why=f"{r.why}; {more}", rounds=max(r.rounds, steps)) for r in inner.rows]
    rows.append(readings.row_in_clear("client", "zero-out", PRICE_TO_SERVER, why, app.rounds or 1))
    if whole:
        return replace(inner, rows=tuple(rows))
    return replace(inner, rows=tuple(rows), settings=None, no_fix="set Opacus' noise_multiplier")


def _local_mods(app: FlowerApp) -> list[CallValue] | Reading:
    """The LocalDpMod that every chain of training has; a chain without it sends in clear."""
    answers, chains = app.document.answers, app.chains or ()
    held = [[m for m in chain.mods if m.name == _LOCAL and answers.taken(m)] for chain in chains]
    if not any(held):
        return []
    for chain, mods in zip(chains, held, strict=True):
        asked = f"Does {chain.what} have LocalDpMod in its mods?"
        if not mods and (chain.whole or not answers.whether("LocalDpMod on every train", asked)):
            return _app_in_clear(app, f"{chain.what} has no LocalDpMod in its mods: its updates are sent in clear")
        if mods and (changed := chain.altered(app.document, _LOCAL)):
            return _app_in_clear(app, changed)
    longest = max(held, key=len)
    if len(longest) > 1:
        raise _several(app.document, longest)

    def noise(mod: CallValue) -> float:
        clip, std, *_ = _said(app, mod)
        return std / clip

    return [min((mod for mods in held for mod in mods), key=noise)]


def _said(app: FlowerApp, call: CallValue) -> tuple[float, float, float, float, float]:
    """(clip, noise std, sensitivity, ε, δ) of a LocalDpMod."""
    need = app.document.need
    clip, delta = need(call, "clipping_norm", above=0.0), need(call, "delta", above=0.0, below=1.0)
    sensitivity, epsilon = need(call, "sensitivity", least=0.0), need(call, "epsilon", least=0.0)
    std = costs.classic_gaussian_std(sensitivity, epsilon, delta) if epsilon > 0 else math.inf
    return clip, std, sensitivity, epsilon, delta


def _local(app: FlowerApp, call: CallValue) -> Reading:
    if odd := app.document.altered(call):
        return _app_in_clear(app, odd)
    clip, std, sensitivity, epsilon, delta = _said(app, call)
    rounds, made, rows = app.ask_rounds(), std * app.document.louder, []
    for relation, move in (("zero-out", 1), ("replace", 2)):
        mu = move * clip / made if made else math.inf
        size = f"{'2·' if move == 2 else ''}clip = {move * clip:g} (μ = {mu:.6g} a round)"
        why = f"noise std = {made:.6g}, an update may move by {size}"
        cost = costs.cost_of_gaussian(made / clip, move == 2)
        rows.append(ReadingRow("client", relation, PRICE_TO_SERVER, cost, rounds, delta, why))
    typed = "is a number the user types; the clip bounds what a client can change"
    typed = f"The option sensitivity = {sensitivity:g} {typed}, {clip:g}."
    order = "The update is clipped, then noised on the client; rounds compose adaptively; no amplification against the server."
    words = f"LocalDpMod with clip {clip:g}, sensitivity {sensitivity:g}: noise std = {std:.4g}"
    patient = "one patient among a client's: covered only as a part of the client's whole update, at the client's price"
    unprotected = ("the metrics and the number of examples that each reply carries", patient, *_hidden_sums(app))
    claim = PublishedReading(epsilon, delta, "per round", words)
    orders, settings = (order, *([typed] if sensitivity != clip else [])), {"epsilon": epsilon / app.document.louder}
    return Reading(tuple(rows), (claim,), unprotected, (), orders, settings, people=app.clients)


def _central(app: FlowerApp, call: CallValue) -> Reading:
    """A strategy that noises the mean, and what its clients, its inner strategy and its accountant make of it."""
    document, answers = app.document, app.document.answers
    answers.place = call.path, call.line
    if call.own is not None:
        own = call.own.node
        return _app_in_clear(app, f"{own.name} (line {own.lineno}) changes {_base_of(call)} in a way not followed here")
    adaptive, on_client = call.name in _ADAPTIVE, "ClientSide" in call.name
    mixed = not all(each is call for strategy, _ in app.strategies for each in value_candidates(strategy))
    beside = any(len(value_candidates(s)) == 1 and s is not call for s, _ in app.strategies)
    asked = f"Is {call.name} (line {call.line}) the strategy that is started?"
    if mixed and (beside or not answers.whether("strategy with noise", asked)):
        return _app_in_clear(app, f"a strategy without noise is started beside {call.name} (line {call.line})")
    if why_clear := _goes_around(app, call):
        return _app_in_clear(app, why_clear)
    inner = flower_strategies.inner_flower_strategy(app, python_plain(call.held("strategy")))
    if isinstance(inner, str):
        return _app_in_clear(app, f"{call.name} (line {call.line}) wraps {inner}")
    multiplier = document.need(call, "noise_multiplier", least=0.0)
    sampled = document.need(call, "num_sampled_clients", least=1.0)
    if not adaptive:
        document.need(call, "clipping_norm", above=0.0)
    count_std = _count_std(app, call, multiplier, sampled) if adaptive else 0.0
    counted = flower_strategies.flower_strategy_accountant(app, call, multiplier, sampled, inner)
    part = flower_strategies.flower_strategy_participation(app, inner, sampled)
    rounds, louder = app.ask_rounds(), document.louder
    above = f" There are {app.clients or 0:,} clients: a δ above {1 / (app.clients or 1):g} says nothing of one of them."
    at = document.ask("delta", counted.delta if counted else None, many=above if app.clients else "")
    rounds = min(rounds, counted.most) if counted else rounds
    ratio = 1.0 if counted else part.heaviest(answers)
    rate = 1.0 if inner.gain != 1 else document.ask("share of clients in a round", part.rate)
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
        cost = costs.cost_of_fixed_size(effective, rate, replaced)
        rows.append(ReadingRow("client", relation, PRICE_WITH_MODELS, cost, rounds, at, why))
    told = "clips are noised at the server only" if on_client else "clipping and noise happen at the server"
    seen = f"{told}: it receives updates in clear"
    rows.append(ReadingRow("client", "zero-out", PRICE_TO_SERVER, costs.cost_of_unprotected(told), rounds, at, seen))
    settings = {"noise_multiplier": scaled} | ({"clipped_count_stddev": count_std * louder} if adaptive else {})
    words = f"{call.name} with noise multiplier {multiplier:g}; Flower computes no ε"
    unprotected = ("metrics and numbers of examples, which weigh the mean", *_hidden_sums(app))
    order = tuple(document.words[key] for key in ("averaged", "drawn", *(("accountant",) if counted else ())))
    claim = (counted.published,) if counted else readings.reading_without_claim(words)
    return Reading(tuple(rows), claim, unprotected, (), order, settings, people=counted.people if counted else app.clients)


def _goes_around(app: FlowerApp, call: CallValue) -> str | None:
    """What reaches the server without the strategy's clip or beside its noise, in words; None where nothing does."""
    wanted = "adaptiveclipping_mod" if call.name in _ADAPTIVE else "fixedclipping_mod"
    if "ClientSide" in call.name and (missing := _unclipped(app, wanted)):
        return missing
    if odd := app.document.altered(call, "accountant"):
        return odd
    line = app.by_hand[0].line if app.by_hand else 0
    asked = f"Line {line} sends messages. Are replies unused?"
    if line and not app.document.answers.whether(f"replies of line {line} thrown away", asked):
        return f"messages are sent by hand (line {line}), beside the strategy with noise"
    return None


def _count_std(app: FlowerApp, call: CallValue, multiplier: float, sampled: float) -> float:
    """The noise on the count of clipped updates, and Flower's own condition on it."""
    if "noise_multiplier" in call.attributes:
        raise app.document.error_at(call, f"noise_multiplier of {call.name} is set again; write it where it is made")
    given = call.held("clipped_count_stddev") is not None
    found = app.document.need(call, "clipped_count_stddev", above=0.0) if given else sampled / 20
    if multiplier >= 2 * found:
        message = f"noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * found:g}: Flower refuses to run"
        raise app.document.error_at(call, message)
    return found


def _unclipped(app: FlowerApp, wanted: str) -> str:
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
    return 1 / math.hypot(moves / (multiplier**-2 - (2 * count_std) ** -2) ** -0.5, 1 / count_std)


def _base_of(call: CallValue) -> str:
    """The strategy's name; of a class of the app's own, that of Flower's class below it."""
    return call.own.foreign[0].rsplit(".", 1)[-1] if call.own and call.own.foreign else call.name


def _app_in_clear(app: FlowerApp, reason: str) -> Reading:
    """∞ for the clients of an app, because."""
    no_fix = "add LocalDpMod to the mods of training, or start a DifferentialPrivacy… strategy"
    found = reading_in_clear("client", PRICE_TO_SERVER, reason, no_fix, app.rounds or 1)
    return replace(found, published=(), unprotected=("everything", *_hidden_sums(app)))


def _hidden_sums(app: FlowerApp) -> tuple[str, ...]:
    """What secure aggregation does, where the app imports it."""
    imported = {n.rsplit(".", 1)[-1] for n in app.document.imports}
    names = ("SecAggPlusWorkflow", "secaggplus_mod", "SecAggWorkflow", "secagg_mod")
    return tuple(f"{name} {app.document.words['hidden']}" for name in names if name in imported)[:1]
