"""A short neutral YAML, for what no other reader covers: one sum of bounded contributions, noised, round after round.

    mechanism: gaussian            gaussian | laplace | randomised-response (or randomized-response)
    unit: client                   whose contribution is bounded: example | client | user | edge | node | graph | record
    clip: 1.0                      largest norm of one unit's contribution to the noised sum (L2; laplace: L1)
    noise_std: 0.8                 standard deviation of the noise on the **sum** (on a mean of n: multiply by n), or
    noise_multiplier: 0.8          gaussian: std / clip; laplace: scale b / clip (as dp_accounting counts; std = b·√2)
    sampling: {kind: none}         none | poisson | fixed, with rate in [0, 1]; drawn afresh each round, kept secret
    rounds: 100
    clients: 1000                  units in all; a fixed sample of rate·clients is rounded up to a whole number
    delta: 1.0e-5                  0 for pure ε
    relation: zero-out             zero-out (sensitivity clip) | replace (sensitivity 2·clip)
    epsilon: 10                    what is claimed per round; shown as published, and used for no price but the one below

randomised-response reads, in place of clip and noise, ``flip_probability`` (of a binary answer), or ``num_values`` and
``truth_probability`` (k-ary), or ``epsilon`` alone, which is then believed. Any other key is refused.

**Guarantee.** The unit's contribution to each round's sum has norm at most ``clip``; noise is fresh; sums of all rounds are
seen. Order: contributions are clipped, sampled, summed, noised; rounds compose adaptively; one δ for the total.
"""

from __future__ import annotations

import math
from functools import partial

from fedgraph.pricing import costs
from fedgraph.pricing.base import Cost, Facts, Published, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.options import Options

SYSTEM = "neutral description"
VERSION = "1"
SOURCE = "this file's own keys, described in fedgraph/pricing/readers/neutral.py"
SAID = ""
KEYS = (
    "mechanism", "unit", "clip", "noise_std", "noise_multiplier", "sampling", "rounds", "clients", "delta", "relation",
    "epsilon",
)  # fmt: skip
SEVERAL = (2, 10)  # records of one user, shown beside the price of one
UNITS = ("example", "client", "user", "edge", "node", "graph", "record")
RESPONSE = ("flip_probability", "num_values", "truth_probability")
RATES, ROUNDS, DELTAS = (1.0, 0.1, 0.01, 0.001), (1000, 100, 10, 1), (1e-7, 1e-6, 1e-5, 1e-4)


def recognises(document: Document) -> bool:
    return document.kind in ("yaml", "json") and "mechanism" in document.data and "unit" in document.data


def read(document: Document) -> Reading:
    """The one row, with what the file leaves out as questions."""
    options = Options(document, document.data)
    mechanism = options.choice("mechanism", ("gaussian", "laplace", "randomised-response", "randomized-response"))
    mechanism = mechanism.replace("randomized", "randomised")
    unit = options.choice("unit", UNITS)
    replaced = options.choice("relation", ("zero-out", "replace"), "zero-out") == "replace"
    clients = options.whole("clients", None, 1)
    rounds, delta = options.whole("rounds", None, 0), options.delta("delta")
    claimed = options.number("epsilon", None, above=True)
    kind, rate = _sampling(options, clients)
    if mechanism == "randomised-response":
        cost, settings = _response(options, claimed), None
        if kind not in ("none", None):
            raise options.error("sampling", "sampling of randomised answers is not priced; allowed: kind: none")
        multiplier, rate = 0.0, 1.0
    else:
        multiplier, settings = _noise(options, mechanism)
        cost = None
    options.finish((*KEYS, *RESPONSE))

    pure = mechanism != "gaussian"
    unknowns = _unknowns(rounds, delta, rate, pure, mechanism == "randomised-response")
    words = _words(mechanism, kind, replaced, multiplier)
    if cost:
        believed = not options.has(*RESPONSE[::2])
        words = "randomised answers of one unit" + ", by the ε that the file claims, not by how answers are drawn" * believed

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        share = facts["sampling rate"] if rate is None else rate
        chosen = cost or _cost(mechanism, multiplier * factor, kind or "poisson", share, replaced)
        times = int(facts["rounds"]) if rounds is None else rounds
        at = delta if delta is not None else facts.get("delta", 0.0)
        viewer = "whoever sees the noised sums of all rounds" if not cost else "whoever sees the answers"
        first = Row(unit, "replace" if replaced or cost else "zero-out", viewer, chosen, times, at, words)
        if unit not in ("example", "record") or mechanism != "gaussian" or kind == "fixed":
            return (first,)
        found = [first]
        for k in SEVERAL:
            together = costs.poisson(multiplier * factor, 1.0 if kind == "none" else share, replaced, k)
            why = f"all of a user's {k} records together; {words}"
            found.append(Row("user", first.relation, viewer, together, times, at, why))
        return tuple(found)

    secret = "Amplification by sampling holds for viewers who do not learn who took part in a round."
    order = (
        "Contributions are clipped, sampled, summed, then noised; rounds compose adaptively; δ is that of the total.",
        "No amplification is used." if kind in ("none", None) else secret,
    )
    at = 0.0 if pure else delta
    return Reading(
        rows,
        () if claimed is None else (Published(claimed, at, "per round", "epsilon, as the file says"),),
        unknowns=unknowns,
        unprotected=_unprotected(unit, kind),
        order=order,
        settings=settings,
        no_fix="the flip probability of an answer is chosen by hand: ε of one answer is ln((1 − p)/p)" if cost else "",
    )


def _sampling(options: Options, clients: int | None) -> tuple[str | None, float | None]:
    """(kind, rate): (None, None) where the file says nothing; rate None where it is missing."""
    if not options.has("sampling"):
        options.raw("sampling")
        return None, None
    table = options.table("sampling")
    kind = table.choice("kind", ("none", "poisson", "fixed"))
    rate = table.number("rate")
    table.finish(("kind", "rate"))
    if rate is not None and rate > 1:
        raise table.error("rate", f"rate: found {rate:g}; a sampling rate lies in [0, 1]")
    if kind == "none":
        if rate not in (None, 1.0):
            raise table.error("rate", f"rate: found {rate:g} with kind: none; name the kind of sampling")
        return kind, 1.0
    if kind == "fixed" and rate is not None and clients:
        rate = min(1.0, math.ceil(rate * clients * (1 - 1e-12)) / clients)
    return kind, rate


def _noise(options: Options, mechanism: str) -> tuple[float, partial[dict[str, Setting]]]:
    """(noise multiplier in units of clip, the settings that scale it)."""
    std, multiplier = options.number("noise_std"), options.number("noise_multiplier")
    clip = options.number("clip", None, above=True)
    if std is not None and multiplier is not None:
        found = std / clip / (math.sqrt(2) if mechanism == "laplace" else 1.0) if clip else math.nan
        if not math.isclose(found, multiplier, rel_tol=1e-9):
            raise options.error("noise_std", "noise_std and noise_multiplier contradict each other; give one of them")
    if multiplier is None:
        if std is None:
            raise options.error("mechanism", "missing option 'noise_std' or 'noise_multiplier'; without noise there is no ε")
        if clip is None:
            raise options.error("noise_std", "noise_std needs 'clip', the bound on one contribution; or give noise_multiplier")
        multiplier = std / clip / (math.sqrt(2) if mechanism == "laplace" else 1.0)
        return multiplier, partial(_scaled, "noise_std", std)
    return multiplier, partial(_scaled, "noise_multiplier", multiplier)


def _scaled(name: str, value: float, factor: float) -> dict[str, Setting]:
    return {name: value * factor}


def _response(options: Options, claimed: float | None) -> Cost:
    """ε of one answer: ln((1 − p)/p), or ln(t(k − 1)/(1 − t)); the larger of both directions; or what is claimed."""
    for name in ("clip", "noise_std", "noise_multiplier"):
        if options.has(name):
            raise options.error(name, f"{name} says nothing of randomised-response; write flip_probability")
    flip, values = options.number("flip_probability"), options.whole("num_values", 2, 2)
    truth = options.number("truth_probability")
    if claimed is not None and flip is None and truth is None:
        return costs.pure(claimed)
    if (flip is None) == (truth is None) or (flip is not None and values != 2):
        message = "needs flip_probability: p, or num_values: k and truth_probability: t, or the epsilon of one answer"
        raise options.error("mechanism", message)
    kept = 1 - flip if flip is not None else truth
    if kept is None or values is None or not 0 <= kept <= 1:
        raise options.error("flip_probability" if flip is not None else "truth_probability", "a probability lies in [0, 1]")
    if kept in (0.0, 1.0):
        return costs.unprotected("an answer that is never (or always) flipped is the answer")
    return costs.pure(abs(math.log(kept * (values - 1) / (1 - kept))))


def _cost(mechanism: str, multiplier: float, kind: str, rate: float, replaced: bool) -> Cost:
    if mechanism == "laplace":
        return costs.sampled_laplace(multiplier, 1.0 if kind == "none" else rate, replaced, fixed=kind == "fixed")
    if rate == 1 or kind == "none":
        return costs.gaussian(multiplier, replaced)
    return costs.poisson(multiplier, rate, replaced) if kind == "poisson" else costs.fixed_size(multiplier, rate, replaced)


def _unknowns(rounds: int | None, delta: float | None, rate: float | None, pure: bool, answers: bool) -> tuple[Unknown, ...]:
    out = []
    if rounds is None:
        out.append(Unknown("rounds", "How many rounds are run? Without it there is no total.", ROUNDS))
    if delta is None and not pure:
        out.append(Unknown("delta", "At which δ? A usual choice is well below one over the number of units.", DELTAS))
    if rate is None and not answers:
        out.append(Unknown("sampling rate", "Which share of the units takes part in a round (secretly, by coins)?", RATES, 1.0))
    return tuple(out)


def _words(mechanism: str, kind: str | None, replaced: bool, multiplier: float) -> str:
    move = "2·clip: one contribution is replaced" if replaced else "clip: one contribution vanishes"
    scale = "scale b" if mechanism == "laplace" else "standard deviation"
    how = {"poisson": ", Poisson-sampled", "fixed": ", a fixed-size sample without replacement"}.get(kind or "", "")
    return f"sum with {scale} = {multiplier:.6g}·clip and sensitivity {move}{how}"


def _unprotected(unit: str, kind: str | None) -> tuple[str, ...]:
    out = ["whatever is released besides the noised sums: sizes, metrics, which model was chosen"]
    if kind in ("poisson", "fixed"):
        out.append("the sample, against anyone who knows who took part in a round")
    if unit == "example":
        out.append("a person with several examples: k of them cost more than one")
    return tuple(out)
