"""Flower: an app's ``pyproject.toml`` with the two Python files that it names, or one of those files.

What is proven of ``LocalDpMod`` and ``DifferentialPrivacy…``: ``docs/how_deployed_noise_is_priced.md``.
"""

import math
from dataclasses import replace

from fedgraph.errors import PricingError
from fedgraph.pricing import costs, flower_central
from fedgraph.pricing.base import SERVER, Published, Reading, Row
from fedgraph.pricing.documents import Document
from fedgraph.pricing.flower_app import App, assemble
from fedgraph.pricing.flower_central import ADAPTIVE, FIXED, app_in_clear, base_of, hidden_sums
from fedgraph.pricing.python_joins import candidates
from fedgraph.pricing.python_values import Call
from fedgraph.pricing.readers import opacus

LOCAL, LEGACY = "LocalDpMod", ("DPFedAvgFixed", "DPFedAvgAdaptive")
IN_ALL = "How many steps of Opacus does one client take in all rounds together?"


def read(document: Document) -> Reading:
    """What of Flower's mechanisms takes part in training; several at once are refused."""
    app = assemble(document)
    if legacy := app.document.made(*LEGACY):
        old = legacy[0]
        raise PricingError(
            f"{old.path}:{old.line}: {old.name} is of another version (flwr before 1.8); known here: flwr 1.8–1.42"
        )
    if app.queries:
        return app_in_clear(app, f"query (line {app.queries[0].line}) sends what it returns, which no mechanism noises")
    local, central = _local_mods(app), list(dict.fromkeys(_wrappers(app)))
    if isinstance(local, Reading):
        return local
    if len(central) > 1 or (local and central):
        raise _several(document, [*central, *local])
    if central:
        return flower_central.price(app, central[0])
    return _local(app, local[0]) if local else _neither(app)


def _several(document: Document, found: list[Call]) -> PricingError:
    names = ", ".join(f"{call.name} ({call.path.name}:{call.line})" for call in found)
    return PricingError(f"{document.path}: several mechanisms, which contradict or compose: {names}; price one file of them")


def _neither(app: App) -> Reading:
    """Nothing takes part: why, or what Opacus does inside the clients."""
    document = app.document
    made = [c for c in document.program.calls if c.name in (LOCAL, *FIXED, *ADAPTIVE) and c.own is None]
    if made:
        call = made[0]
        where = "no chain of mods of training has it" if call.name == LOCAL else "it is not the strategy that is started"
        return app_in_clear(app, f"{call.name} is made ({call.path.name}:{call.line}), but {where}: updates go in clear")
    if not document.made(*opacus.MAKERS):
        return app_in_clear(app, "no differential-privacy strategy or mod of Flower stands in these files: updates go in clear")
    one = document.answers.again(document.louder, {**document.answers.tried, "epochs": 1.0, "steps": 1.0})
    inner = opacus.read(replace(document, answers=one))
    whole = app.rounds == 1 and not (one.asked & {"epochs", "steps"})
    steps = 0 if whole else int(document.answers.ask("steps in all", IN_ALL, (100000.0, 10000.0, 1000.0)))
    document.answers.merge(one)
    why = "Opacus inside the clients protects examples; the model that a client sends is a function of all that it holds"
    more = "steps and epochs are those of all rounds together; the server sees every model"
    rows = [replace(r, viewer=SERVER, why=f"{r.why}; {more}", rounds=max(r.rounds, steps)) for r in inner.rows]
    rows.append(Row("client", "zero-out", SERVER, costs.unprotected(why), app.rounds or 1, 0.0, why))
    if whole:
        return replace(inner, rows=tuple(rows))
    return replace(inner, rows=tuple(rows), settings=None, no_fix="set Opacus' noise_multiplier")


def _local_mods(app: App) -> list[Call] | Reading:
    """The LocalDpMod that every chain of training has; a chain without it sends in clear."""
    answers, chains = app.document.answers, app.chains or ()
    held = [[m for m in chain.mods if m.name == LOCAL and answers.taken(m)] for chain in chains]
    if not any(held):
        return []
    for chain, mods in zip(chains, held, strict=True):
        asked = f"Does {chain.what} have LocalDpMod in its mods?"
        if not mods and (chain.whole or not answers.whether("LocalDpMod on every train", asked)):
            return app_in_clear(app, f"{chain.what} has no LocalDpMod in its mods: its updates are sent in clear")
        if mods and (changed := chain.altered(app.document, LOCAL)):
            return app_in_clear(app, changed)
    longest = max(held, key=len)
    if len(longest) > 1:
        raise _several(app.document, longest)
    found = dict.fromkeys(m for mods in held for m in mods)
    return sorted(found, key=lambda m: -_weakness(app, m))[:1]


def _weakness(app: App, call: Call) -> float:
    """clip / noise std of a LocalDpMod."""
    clip, sensitivity, epsilon, delta = _said(app, call)
    std = costs.classic_std(sensitivity, epsilon, delta) if epsilon > 0 else math.inf
    return clip / std if std > 0 else math.inf


def _wrappers(app: App) -> list[Call]:
    """The strategies of central noise that are started."""
    started = [each for strategy, _ in app.strategies for each in candidates(strategy)]
    return [each for each in started if isinstance(each, Call) and base_of(each) in (*FIXED, *ADAPTIVE)]


def _said(app: App, call: Call) -> tuple[float, float, float, float]:
    need = app.document.need
    clip, delta = need(call, "clipping_norm", above=0.0), need(call, "delta", above=0.0, below=1.0)
    return clip, need(call, "sensitivity", least=0.0), need(call, "epsilon", least=0.0), delta


def _local(app: App, call: Call) -> Reading:
    if odd := app.document.altered(call):
        return app_in_clear(app, odd)
    clip, sensitivity, epsilon, delta = _said(app, call)
    std = costs.classic_std(sensitivity, epsilon, delta) if epsilon > 0 else math.inf
    rounds, made, rows = app.ask_rounds(), std * app.document.louder, []
    for relation, move in (("zero-out", 1), ("replace", 2)):
        mu = move * clip / made if made else math.inf
        size = f"{'2·' if move == 2 else ''}clip = {move * clip:g} (μ = {mu:.6g} a round)"
        why = f"noise std = {made:.6g}, an update may move by {size}"
        rows.append(Row("client", relation, SERVER, costs.gaussian(made / clip, move == 2), rounds, delta, why))
    typed = f"The option sensitivity = {sensitivity:g} is a number the user types; the clip bounds what a client can change, "
    typed += f"{clip:g}."
    order = "The update is clipped, then noised on the client; rounds compose adaptively; no amplification against the server."
    words = f"LocalDpMod with clip {clip:g}, sensitivity {sensitivity:g}: noise std = {std:.4g}"
    unprotected = (
        "the metrics and the number of examples that each reply carries",
        "one patient among a client's: covered only as a part of the client's whole update, at the client's price",
        *hidden_sums(app),
    )
    return Reading(
        tuple(rows), (Published(epsilon, delta, "per round", words),), unprotected,
        order=(order, *([typed] if sensitivity != clip else [])), settings={"epsilon": epsilon / app.document.louder},
        people=app.clients,
    )  # fmt: skip
