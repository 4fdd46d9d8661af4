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
from fedgraph.pricing import costs, flower_central
from fedgraph.pricing.base import SERVER, Facts, Published, Reading, Row, Rows, Setting, Unknown, delta_said
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flower_app import App, assemble
from fedgraph.pricing.flower_central import ADAPTIVE, FIXED, app_in_clear, base_of, hidden_sums, need, rounds_asked
from fedgraph.pricing.python_values import Call, candidates
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
LEGACY = ("DPFedAvgFixed", "DPFedAvgAdaptive")
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
        return app_in_clear(app, f"query (line {app.queries[0].line}) sends what it returns, which no mechanism noises")
    local, central = _local_mods(app), list(dict.fromkeys(_wrappers(app)))
    if isinstance(local, Reading):
        return local
    if len(central) > 1 or (local and central):
        found = [*central, *local]
        names = ", ".join(f"{call.name} ({call.path.name}:{call.line})" for call in found)
        raise PricingError(f"{document.path}: several mechanisms, which contradict or compose: {names}; price one file of them")
    if central:
        return flower_central.price(app, central[0])
    if local:
        return _local(app, local[0])
    return _neither(app)


def _neither(app: App) -> Reading:
    """Nothing takes part: why, or what Opacus does inside the clients."""
    made = [c for c in app.document.program.calls if c.name in (LOCAL, *FIXED, *ADAPTIVE) and c.own is None]
    if made:
        call = made[0]
        where = "no chain of mods of training has it" if call.name == LOCAL else "it is not the strategy that is started"
        return app_in_clear(app, f"{call.name} is made ({call.path.name}:{call.line}), but {where}: updates go in clear")
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
    return app_in_clear(app, "no differential-privacy strategy or mod of Flower stands in these files: updates go in clear")


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
            return app_in_clear(app, f"{chain.what} has no LocalDpMod in its mods: its updates are sent in clear")
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
            if isinstance(each, Call) and base_of(each) in (*FIXED, *ADAPTIVE):
                out.append(each)
    return out


def _said(app: App, call: Call) -> tuple[float, float, float, float]:
    clip, sensitivity, epsilon, delta = (
        need(app, call, name, i) for i, name in enumerate(("clipping_norm", "sensitivity", "epsilon", "delta"))
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
        rounds_asked(app),
        (
            "the metrics and the number of examples that each reply carries",
            "one patient among a client's: covered only as a part of the client's whole update, at the client's price",
            *hidden_sums(app),
        ),
        order=tuple(order),
        settings=settings,
    )
