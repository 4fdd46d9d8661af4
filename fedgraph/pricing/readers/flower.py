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
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.base import MODELS, SERVER, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flower_app import App, assemble, number
from fedgraph.pricing.python_source import Call

SYSTEM = "Flower"
VERSION = "flwr 1.18–1.42"
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
DELTAS, ROUNDS = (1e-7, 1e-6, 1e-5, 1e-4), (1000.0, 100.0, 10.0, 3.0)


def recognises(document: Document) -> bool:
    if document.kind == "toml":
        tool = document.data.get("tool")
        return isinstance(tool, dict) and "flwr" in tool
    return document.kind == "python" and any(name.split(".")[0] in ("flwr", "flower") for name in document.imports)


def read(document: Document) -> Reading:
    """The one mechanism of privacy that the app uses; several, or none, are said."""
    app = assemble(document)
    found = [(path, call) for path, call in app.calls if call.name in (LOCAL, *FIXED, *ADAPTIVE)]
    legacy = [(path, call) for path, call in app.calls if call.name in LEGACY]
    if legacy:
        path, call = legacy[0]
        raise PricingError(
            f"{path}:{call.line}: {call.name} is of another version (flwr before 1.8); this reader knows {VERSION}"
        )
    if not found:
        return _clear(app)
    if len(found) > 1:
        names = ", ".join(f"{call.name} ({path.name}:{call.line})" for path, call in found)
        raise PricingError(f"{document.path}: several mechanisms, which contradict or compose: {names}; price one file of them")
    path, call = found[0]
    apps = [made for _, made in app.calls if made.name == "ClientApp"]
    if call.name == LOCAL and apps and not any("mods" in made.keywords for _, made in app.calls):
        raise PricingError(f"{path}:{call.line}: LocalDpMod is made, but nothing takes it in mods=[…]: no noise is added")
    return _local(app, path, call) if call.name == LOCAL else _central(app, path, call)


def _local(app: App, path: Path, call: Call) -> Reading:
    names = ("clipping_norm", "sensitivity", "epsilon", "delta")
    clip, sensitivity, epsilon, delta = (number(app, path, call, name, i) for i, name in enumerate(names))
    if not (clip > 0 and sensitivity >= 0 and epsilon >= 0 and 0 < delta < 1):
        raise PricingError(
            f"{path}:{call.line}: LocalDpMod needs clipping_norm > 0, sensitivity ≥ 0, epsilon ≥ 0, 0 < delta < 1"
        )
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


def _central(app: App, path: Path, call: Call) -> Reading:
    adaptive, on_client = call.name in ADAPTIVE, "ClientSide" in call.name
    positions = (1, 2) if adaptive else (1, 3)
    multiplier = number(app, path, call, "noise_multiplier", positions[0])
    sampled = number(app, path, call, "num_sampled_clients", positions[1])
    clip = 1.0 if adaptive else number(app, path, call, "clipping_norm", 2)
    if multiplier < 0 or sampled < 1 or clip <= 0:
        raise PricingError(f"{path}:{call.line}: needs noise_multiplier ≥ 0, clipping_norm > 0 and num_sampled_clients ≥ 1")
    count_std = sampled / 20
    if adaptive and call.get("clipped_count_stddev") is not None:
        count_std = number(app, path, call, "clipped_count_stddev", 6)
    if adaptive and multiplier >= 2 * count_std:
        raise PricingError(
            f"{path}:{call.line}: noise_multiplier {multiplier:g} ≥ 2·clipped_count_stddev {2 * count_std:g}: Flower "
            "refuses to run"
        )
    known_rate = sampled / app.clients if app.clients and app.clients >= sampled else None

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        rounds = app.rounds if app.rounds is not None else int(facts["rounds"])
        rate = known_rate if known_rate is not None else facts["share of clients in a round"]
        ratio, scaled = facts["weight of the heaviest client, in equal shares"], multiplier * factor
        both = []
        for relation, replaced in (("zero-out", False), ("replace", True)):
            effective = scaled / ratio
            why = f"noise std = {scaled:g}·clip/{sampled:g} on the mean, which a client moves by {ratio:g}·clip/{sampled:g}"
            if adaptive:
                part = _adaptive(scaled, count_std * factor, ratio * (2 if replaced else 1))
                effective = part * (2 if replaced else 1)
                why += f", and the count of clipped updates with std {count_std * factor:g}"
            cost = costs.fixed_size(effective, rate, replaced)
            both.append(Row("client", relation, MODELS, cost, rounds, facts["delta"], why))
        told = "clips are noised at the server only" if on_client else "clipping and noise happen at the server"
        in_clear = f"{told}: it receives updates in clear"
        return (*both, Row("client", "zero-out", SERVER, costs.unprotected(told), rounds, facts["delta"], in_clear))

    def settings(factor: float) -> dict[str, Setting]:
        changed: dict[str, Setting] = {"noise_multiplier": multiplier * factor}
        return changed | ({"clipped_count_stddev": count_std * factor} if adaptive else {})

    return Reading(
        rows,
        (Published(None, None, "none", f"{call.name} with noise multiplier {multiplier:g}; Flower computes no ε"),),
        _central_unknowns(app, sampled, known_rate is None),
        ("metrics and numbers of examples, which weigh the mean", *_secagg(app), *_mod(app, call, on_client)),
        order=(
            "Updates are clipped, averaged by FedAvg with its weights, then noised; rounds compose adaptively.",
            (
                "A fixed number of clients is drawn without replacement: amplification holds for viewers who do not learn "
                "who took part."
            ),
        ),
        settings=settings,
    )


def _central_unknowns(app: App, sampled: float, rate_is_missing: bool) -> tuple[Unknown, ...]:
    """What no file says of a central strategy. sampled: clients of one round."""
    found = [
        *_rounds(app),
        Unknown(
            "delta",
            "At which δ? Flower's central strategies do not ask for one; well below one over the clients.",
            DELTAS,
            1e-7,
        ),
        Unknown(
            "weight of the heaviest client, in equal shares",
            "Do all clients report the same number of examples? FedAvg weights by it: the heaviest weight times the number of "
            "sampled clients (1 where all are equal).",
            tuple(dict.fromkeys((sampled, min(4.0, sampled), min(2.0, sampled), 1.0))),
            sampled,
        ),
    ]
    if rate_is_missing:
        question = "How many clients are there in all? The share that is sampled in a round, kept secret."
        found.append(Unknown("share of clients in a round", question, (1.0, 0.1, 0.01, 0.001), 1.0))
    return tuple(found)


def _adaptive(multiplier: float, count_std: float, moves: float) -> float:
    """1/μ of one round: the update with z' = (z⁻² − (2σ_b)⁻²)^−½, moved by ``moves``·clip, and the count, moved by 1."""
    if multiplier <= 0:
        return 0.0
    update = (multiplier**-2 - (2 * count_std) ** -2) ** -0.5
    return 1 / math.hypot(moves / update, 1 / count_std)


def _clear(app: App) -> Reading:
    reason = "no differential-privacy strategy or mod of Flower stands in these files: updates are sent in clear"

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        return (Row("client", "zero-out", SERVER, costs.unprotected(reason), app.rounds or 1, 0.0, reason),)

    return Reading(
        rows, (), (), ("everything", *_secagg(app)), no_fix="add LocalDpMod or a DifferentialPrivacy… strategy first"
    )


def _secagg(app: App) -> tuple[str, ...]:
    used = [name for name in ("SecAggPlusWorkflow", "secaggplus_mod", "SecAggWorkflow", "secagg_mod") if name in app.mentions]
    if not used:
        return ()
    return (
        f"{used[0]} hides single updates from the server, and adds no noise: the server still sees each round's exact sum of "
        "updates (ε = ∞ for it where noise is added after the sum)",
    )


def _mod(app: App, call: Call, on_client: bool) -> tuple[str, ...]:
    wanted = "adaptiveclipping_mod" if call.name in ADAPTIVE else "fixedclipping_mod"
    if on_client and wanted not in app.mentions:
        return (f"nothing here shows {wanted} on the client; without it no update is clipped and ε = ∞",)
    return ()


def _rounds(app: App) -> tuple[Unknown, ...]:
    if app.rounds is not None:
        return ()
    return (Unknown("rounds", "How many rounds are run (num_rounds, or num-server-rounds)?", ROUNDS),)
