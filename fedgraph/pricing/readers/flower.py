"""Flower: an app's ``pyproject.toml`` with the two Python files that it names, or one of those files.

    LocalDpMod(clipping_norm, sensitivity, epsilon, delta)      std = sensitivity·√(2 ln(1.25/δ))/ε on the client
    DifferentialPrivacy{Server,Client}Side{Fixed,Adaptive}Clipping(noise_multiplier, clipping_norm, num_sampled_clients)
                                                                std = z·clip/m on the aggregate, at the server

What is proven. *LocalDpMod*: a client's update is clipped, so one client changes its message by clip (zero-out) or 2·clip
(replace): μ = clip/std per round, whatever was typed as sensitivity. *Central*: the aggregate is FedAvg's mean, weighted by the
numbers of examples that clients report; a client of weight w moves it by w·clip, so μ = (w·m)/z per round, and w·m = 1 only for
equal clients. *Adaptive*: the released count of clipped updates costs more: a zeroed client's bit may change from 1 to 0, Δ = 1
(its paper centres bits, which halves that under add/remove). Rounds compose as Gaussians; who is sampled by the server is known
to the server; for others a fixed-size sample of m of N.
"""

from __future__ import annotations

import math
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing import flower_accounting as accounted
from fedgraph.pricing import flower_clients as clients
from fedgraph.pricing.base import MODELS, SERVER, Facts, Published, Reading, Row, Rows, Setting, Unknown, delta_said, in_clear
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flower_app import ROUNDS, App, assemble
from fedgraph.pricing.flower_clients import HEAVIEST, SHARE
from fedgraph.pricing.python_values import Call, Value, candidates, plain
from fedgraph.pricing.questions import text
from fedgraph.pricing.readers import opacus

SYSTEM = "Flower"
VERSION = "flwr 1.8–1.42"
SOURCE = (
    "adap/flower at fdef7afb1d (2026-03-29): clientapp/mod/localdp_mod.py, serverapp/strategy/dp_fixed_clipping.py, "
    "dp_adaptive_clipping.py, common/differential_privacy.py; flwr 1.41.0 from the package index; read 2026-11-21"
)
SAID = (
    "Flower's guide says that noise is scaled to the sensitivity and that clipping norm, sensitivity, ε and δ are set by the "
    "user; num_sampled_clients is what noise is calibrated to, and Flower warns where another number replies. It claims no "
    "total over rounds."
)
LOCAL = "LocalDpMod"
FIXED = ("DifferentialPrivacyServerSideFixedClipping", "DifferentialPrivacyClientSideFixedClipping")
ADAPTIVE = ("DifferentialPrivacyServerSideAdaptiveClipping", "DifferentialPrivacyClientSideAdaptiveClipping")
LEGACY = ("DPFedAvgFixed", "DPFedAvgAdaptive")
DELTAS = (1e-7, 1e-6, 1e-5, 1e-4)
IN_ALL = Unknown(
    "steps in all", "How many steps of Opacus does one client take in all rounds together?", (100000.0, 10000.0, 1000.0)
)


def recognises(document: Document) -> bool:
    if document.kind == "toml":
        tool = document.data.get("tool")
        return isinstance(tool, dict) and "flwr" in tool
    return document.kind == "python" and any(name.split(".")[0] in ("flwr", "flower") for name in document.imports)


def read(document: Document) -> Reading:
    """What of Flower's mechanisms takes part in training; several at once are refused."""
    app = assemble(document)
    legacy = app.calls(*LEGACY)
    if legacy:
        old = legacy[0]
        raise PricingError(f"{old.path}:{old.line}: {old.name} is of another version (flwr before 1.8); known here: {VERSION}")
    if app.queries:
        return _clear(app, f"query (line {app.queries[0].line}) sends what it returns, which no mechanism noises")
    local, central = _local_mods(app), list(dict.fromkeys(_wrappers(app)))
    if isinstance(local, Reading):
        return local
    if len(central) > 1 or (local and central):
        found = [*central, *local]
        names = ", ".join(f"{call.name} ({call.path.name}:{call.line})" for call in found)
        raise PricingError(f"{document.path}: several mechanisms, which contradict or compose: {names}; price one file of them")
    if central:
        return _central(app, central[0])
    if local:
        return _local(app, local[0])
    return _neither(app)


def _neither(app: App) -> Reading:
    """Nothing takes part: why, or what Opacus does inside the clients."""
    made = [c for c in app.document.program.calls if c.name in (LOCAL, *FIXED, *ADAPTIVE) and c.own is None]
    if made:
        call = made[0]
        where = "no chain of mods of training has it" if call.name == LOCAL else "it is not the strategy that is started"
        return _clear(app, f"{call.name} is made ({call.path.name}:{call.line}), but {where}: updates are sent in clear")
    if app.calls(*opacus.MAKERS):
        inner = opacus.read(app.document)
        why = "Opacus inside the clients protects examples; the model that a client sends is a function of all that it holds"

        def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
            steps = "steps and epochs are those of all rounds together; the server sees every model"
            kept = tuple(replace(r, viewer=SERVER, why=f"{r.why}; {steps}") for r in inner.rows(facts, factor))
            return (*kept, Row("client", "zero-out", SERVER, costs.unprotected(why), app.rounds or 1, 0.0, why))

        asked = tuple(u for u in inner.unknowns if u.name not in ("epochs", "steps"))
        if asked != inner.unknowns or app.rounds != 1:
            return replace(
                inner,
                rows=_in_all(app, rows),
                unknowns=(*asked, IN_ALL),
                settings=None,
                no_fix="set Opacus' noise_multiplier",
                assumed=app.notes,
            )
        return replace(inner, rows=rows)
    return _clear(app, "no differential-privacy strategy or mod of Flower stands in these files: updates are sent in clear")


def _in_all(app: App, rows: Rows) -> Rows:
    def counted(facts: Facts, factor: float) -> tuple[Row, ...]:
        steps = int(facts[IN_ALL.name])
        made = rows({"epochs": 1.0, "steps": 1.0, **facts}, factor)
        return tuple(replace(r, rounds=max(r.rounds, steps)) if r.unit != "client" else r for r in made)

    return counted


def _local_mods(app: App) -> list[Call] | Reading:
    """The LocalDpMod that every chain of training has; a chain without it sends in clear."""
    chains = app.chains or ()
    held = [[m for m in chain.mods if m.name == LOCAL and app.document.answers.taken(m)] for chain in chains]
    if not any(held):
        return []
    for chain, mods in zip(chains, held, strict=True):
        asked = f"Does {chain.what} have LocalDpMod in its mods?"
        if not mods and (chain.whole or not app.document.answers.whether("LocalDpMod on every train", asked)):
            return _clear(app, f"{chain.what} has no LocalDpMod in its mods: its updates are sent in clear")
    found = list(dict.fromkeys(m for mods in held for m in mods))
    longest = max(held, key=len)
    if len(longest) > 1:
        names = ", ".join(f"{call.name} ({call.path.name}:{call.line})" for call in longest)
        raise PricingError(
            f"{app.document.path}: several mechanisms, which contradict or compose: {names}; price one file of them"
        )
    if len(found) > 1:
        return sorted(found, key=lambda m: -_weakness(app, m))[:1]
    return found


def _weakness(app: App, call: Call) -> float:
    """clip / noise std of a LocalDpMod."""
    clip, sensitivity, epsilon, delta = _said(app, call)
    std = costs.classic_std(sensitivity, epsilon, delta) if epsilon > 0 else math.inf
    return clip / std if std > 0 else math.inf


def _wrappers(app: App) -> list[Call]:
    """The strategies of central noise that are started."""
    out = []
    for strategy, _ in app.strategies:
        for each in candidates(strategy):
            if isinstance(each, Call) and _base(each) in (*FIXED, *ADAPTIVE):
                out.append(each)
    return out


def _base(call: Call) -> str:
    """The strategy's name; of a class of the app's own, that of Flower's class below it."""
    return call.own.foreign[0].rsplit(".", 1)[-1] if call.own and call.own.foreign else call.name


def _need(app: App, call: Call, name: str, position: int) -> float:
    value = app.number(call, name, position)
    if value is None:
        raise PricingError(
            f"{call.path}:{call.line}: {call.name} needs {name}, found {text(_held(call, name, position))}; "
            f"write a number, name its key in [tool.flwr.app.config], or answer --given {name}=…"
        )
    return value


def _held(call: Call, name: str, position: int) -> Value:
    return call.attributes.get(name, call.get(name, position))


def _said(app: App, call: Call) -> tuple[float, float, float, float]:
    clip, sensitivity, epsilon, delta = (
        _need(app, call, name, i) for i, name in enumerate(("clipping_norm", "sensitivity", "epsilon", "delta"))
    )
    if not (clip > 0 and sensitivity >= 0 and epsilon >= 0 and 0 < delta < 1):
        raise PricingError(
            f"{call.path}:{call.line}: LocalDpMod needs clipping_norm > 0, sensitivity ≥ 0, epsilon ≥ 0, 0 < delta < 1"
        )
    return clip, sensitivity, epsilon, delta


def _local(app: App, call: Call) -> Reading:
    clip, sensitivity, epsilon, delta = _said(app, call)
    std = costs.classic_std(sensitivity, epsilon, delta) if epsilon > 0 else math.inf

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rounds = app.rounds if app.rounds is not None else int(facts["rounds"])
        made, out = std * factor, []
        for relation, move in (("zero-out", 1), ("replace", 2)):
            why = (
                f"noise std = {made:.6g}, an update may move by {'2·' if move == 2 else ''}clip = {move * clip:g} (μ = "
                f"{move * clip / made if made else math.inf:.6g} a round)"
            )
            out.append(Row("client", relation, SERVER, costs.gaussian(made / clip, move == 2), rounds, delta, why))
        return tuple(out)

    def settings(factor: float) -> dict[str, Setting]:
        return {"epsilon": epsilon / factor}

    words = f"LocalDpMod with clip {clip:g}, sensitivity {sensitivity:g}: noise std = {std:.4g}"
    order = [
        "The update is clipped, then noised on the client; rounds compose adaptively; no amplification against the server."
    ]
    if sensitivity != clip:
        order.append(
            f"The option sensitivity = {sensitivity:g} is a number the user types; the clip bounds what a client can "
            f"change, {clip:g}."
        )
    order += [*app.notes, *delta_said(delta, app.clients)]
    return Reading(
        rows,
        (Published(epsilon, delta, "per round", words),),
        _rounds(app),
        (
            "the metrics and the number of examples that each reply carries",
            "one patient among a client's: covered only as a part of the client's whole update, at the client's price",
            *_secagg(app),
        ),
        order=tuple(order),
        settings=settings,
    )


def _central(app: App, call: Call) -> Reading:
    if call.own is not None:
        return _clear(
            app, f"{call.own.node.name} (line {call.own.node.lineno}) changes {_base(call)} in a way not followed here"
        )
    adaptive, on_client = call.name in ADAPTIVE, "ClientSide" in call.name
    mixed = not all(each is call for strategy, _ in app.strategies for each in candidates(strategy))
    beside = any(len(candidates(s)) == 1 and s is not call for s, _ in app.strategies)
    asked = f"Is {call.name} (line {call.line}) the strategy that is started?"
    if mixed and (beside or not app.document.answers.whether("strategy with noise", asked)):
        return _clear(app, f"a strategy without noise is started beside {call.name} (line {call.line})")
    if on_client and (missing := _unclipped(app, "adaptiveclipping_mod" if adaptive else "fixedclipping_mod")):
        return _clear(app, missing)
    inner = clients.inner(app, plain(call.attributes.get("strategy", call.get("strategy", 0))))
    if isinstance(inner, str):
        return _clear(app, f"{call.name} (line {call.line}) wraps {inner}")
    positions = (1, 2) if adaptive else (1, 3)
    multiplier = _need(app, call, "noise_multiplier", positions[0])
    sampled = _need(app, call, "num_sampled_clients", positions[1])
    clip = 1.0 if adaptive else _need(app, call, "clipping_norm", 2)
    if multiplier < 0 or sampled < 1 or clip <= 0:
        raise PricingError(
            f"{call.path}:{call.line}: needs noise_multiplier ≥ 0, clipping_norm > 0 and num_sampled_clients ≥ 1"
        )
    if adaptive and "noise_multiplier" in call.attributes:
        raise PricingError(f"{call.path}:{call.line}: noise_multiplier of {call.name} is set again; write it where it is made")
    count_std = sampled / 20
    if adaptive and call.get("clipped_count_stddev", 6) is not None:
        count_std = _need(app, call, "clipped_count_stddev", 6)
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
        ratio, scaled = 1.0 if counted else facts[HEAVIEST], multiplier * factor
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
        in_clear = f"{told}: it receives updates in clear"
        return (*both, Row("client", "zero-out", SERVER, costs.unprotected(told), rounds, at, in_clear))

    def settings(factor: float) -> dict[str, Setting]:
        changed: dict[str, Setting] = {"noise_multiplier": multiplier * factor}
        return changed | ({"clipped_count_stddev": count_std * factor} if adaptive else {})

    words = f"{call.name} with noise multiplier {multiplier:g}; Flower computes no ε"
    return Reading(
        rows,
        (counted.published,) if counted else (Published(None, None, "none", words),),
        (*_rounds(app), *(() if counted else (_delta_asked(app),)), *part.asked(counted is not None, inner.gain != 1)),
        ("metrics and numbers of examples, which weigh the mean", *_secagg(app)),
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


def _clear(app: App, reason: str) -> Reading:
    found = in_clear(
        "client",
        SERVER,
        reason,
        "add LocalDpMod to the mods of training, or start a DifferentialPrivacy… strategy",
        app.rounds or 1,
    )
    return replace(found, published=(), unprotected=("everything", *_secagg(app)), order=app.notes)


def _secagg(app: App) -> tuple[str, ...]:
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


def _rounds(app: App) -> tuple[Unknown, ...]:
    if app.rounds is not None:
        return ()
    return (Unknown("rounds", "How many rounds are run (num_rounds, or num-server-rounds)?", ROUNDS),)
