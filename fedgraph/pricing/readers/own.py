"""What is our own: the neutral YAML for what no other reader covers, and the ledger of a run.

The neutral YAML describes one sum of bounded contributions, noised, round after round. Its keys and what it guarantees:
``docs/how_deployed_noise_is_priced.md``.
"""

import math

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, Said
from fedgraph.pricing.readings import SEVERAL, Claim, Reading, Row, Sums
from fedgraph.privacy import Composed, Event, PureDP, Repeated, Unit, Unprotected, events, explain, settle


def neutral(document: Document) -> Reading:
    """The one row, with what the file leaves out as questions; of ``parts``, all of them on the same data."""
    if "parts" in document.data:
        return _parts(document)
    said = document.options()
    _require_agreement(document, said)
    kind = said.sampling.kind if said.sampling else None
    rounds = int(document.ask("rounds", said.rounds))
    delta = document.ask("delta", said.delta) if said.mechanism == "gaussian" else said.delta or 0.0
    first = "Contributions are clipped, sampled, summed, then noised; rounds compose adaptively; δ is that of the total."
    open_ = ["whatever is released besides the noised sums: sizes, metrics, which model was chosen"]
    claim = () if said.epsilon is None else (Claim(said.epsilon, delta, "per round", "epsilon, as the file says"),)
    if _answers(said):
        believed = said.flip_probability is None and said.truth_probability is None
        words = "randomised answers of one unit" + ", by the ε that the file claims, not by how answers are drawn" * believed
        row = Row(said.unit, "replace", "whoever sees the answers", _answer(said), rounds, delta, words)
        no_fix = "the flip probability of an answer is chosen by hand: ε of one answer is ln((1 − p)/p)"
        return Reading((row,), claim, tuple(open_), (), (first,), no_fix=no_fix, people=said.clients)
    known = 1.0 if kind == "none" else said.sampling.rate if said.sampling else None
    sums = _sums(document, said, rounds, document.ask("sampling rate", known), said.clients)
    people = SEVERAL if not sums.laplace and kind != "fixed" else ()
    viewer = "whoever sees the noised sums of all rounds"
    rows = readings.rows_of_sums([[sums]], said.unit, viewer, delta, people=people, relations=(said.relation,))
    if kind in ("poisson", "fixed"):
        open_.append("the sample, against anyone who knows who took part in a round")
    if said.unit == "example":
        open_.append("a person with several examples: k of them cost more than one")
    name = "noise_std" if said.noise_multiplier is None else "noise_multiplier"
    settings = {name: float(vars(said)[name]) * document.louder}
    return Reading(rows, claim, tuple(open_), (), (first, readings.SECRET), settings, people=said.clients)


def _parts(document: Document) -> Reading:
    said, words, inside = document.options(part="parts"), [], []
    if not said.parts:
        raise document.error("parts: a list of mechanisms is expected, each with its noise and its rounds", "parts")
    for number, part in enumerate(said.parts):
        _require_agreement(document, part, "parts", str(number))
    delta = document.ask("delta", said.delta)
    for part in said.parts:
        rate = 1.0 if part.sampling is None or part.sampling.rate is None else part.sampling.rate
        sums = _sums(document, part, part.rounds, rate, said.clients)
        inside.append(Repeated(_answer(part) if _answers(part) else sums.event(said.relation == "replace"), part.rounds))
        words.append(f"{part.rounds:,} × {part.mechanism}" if _answers(part) else sums.words)
    row = Row(
        said.unit, said.relation, "whoever sees all that is released", Composed(tuple(inside)), 1, delta, "; ".join(words)
    )
    claim = () if said.epsilon is None else (Claim(said.epsilon, delta, "total", "epsilon, as the file says"),)
    open_, order = ("whatever is released besides the parts",), ("Parts on the same data compose adaptively.",)
    no_fix = "the parts have noises of their own; raise one of them"
    return Reading((row,), claim, open_, (), order, no_fix=no_fix, people=said.clients)


def _require_agreement(document: Document, said: Said, *at: str) -> None:
    """``PricingError`` where the keys of one mechanism contradict each other, or leave its noise open."""
    given, values, words = (said.flip_probability, said.truth_probability), said.num_values, ""
    noise = (said.clip, said.noise_std, said.noise_multiplier)
    sampled, multiplier = said.sampling is not None and said.sampling.kind != "none", _multiplier(said)
    if said.sampling is not None and not sampled and said.sampling.rate not in (None, 1.0):
        words, at = f"rate: found {said.sampling.rate:g} with kind: none; name the kind of sampling", (*at, "sampling")
    elif _answers(said):
        unclear = given == (None, None) and said.epsilon is None
        if noise != (None, None, None):
            words = "clip and noise say nothing of randomised-response; write flip_probability"
        elif unclear or None not in given or (given[0] is not None and (values or 2) != 2):
            words = "randomised-response needs flip_probability: p, or num_values: k and truth_probability: t, or epsilon"
        elif values == 1:
            words = "num_values: found 1; an answer has two values or more"
        elif sampled:
            words = "sampling of randomised answers is not priced; allowed: kind: none"
    elif given != (None, None) or values is not None:
        words = f"probabilities say nothing of {said.mechanism}; write noise_std and clip, or noise_multiplier"
    elif said.noise_std is not None and said.clip is None:
        words = "noise_std needs 'clip', the bound on one contribution; or give noise_multiplier"
    elif multiplier is None:
        words = "missing option 'noise_std' or 'noise_multiplier'; without noise there is no ε"
    elif said.noise_multiplier is not None and not math.isclose(multiplier, said.noise_multiplier, rel_tol=1e-9):
        words = "noise_std and noise_multiplier contradict each other; give one of them"
    if words:
        raise document.error(words, *at)


def _answers(said: Said) -> bool:
    return str(said.mechanism).startswith("random")


def _answer(said: Said) -> Event:
    """One randomised answer: ln(t(k − 1)/(1 − t)), the larger of both directions; or what is claimed."""
    kept = 1 - said.flip_probability if said.flip_probability is not None else said.truth_probability
    if kept is None:
        return PureDP(said.epsilon or math.inf)
    if kept in (0.0, 1.0):
        return Unprotected("an answer that is never (or always) flipped is the answer")
    return PureDP(abs(math.log(kept * ((said.num_values or 2) - 1) / (1 - kept))))


def _multiplier(said: Said) -> float | None:
    """Noise over clip; None where the file has none."""
    if said.noise_std is not None and said.clip is not None:
        return float(said.noise_std / said.clip / (math.sqrt(2) if said.mechanism == "laplace" else 1.0))
    return None if said.noise_multiplier is None else float(said.noise_multiplier)


def _sums(document: Document, said: Said, rounds: int, rate: float, units: int | None) -> Sums:
    kind, noise = said.sampling.kind if said.sampling else "poisson", (_multiplier(said) or 0.0) * document.louder
    return Sums(noise, rounds, kind, rate, units=units, laplace=said.mechanism == "laplace")


def ledger(document: Document) -> Reading:
    """``ledger.jsonl`` of a run: what was really released, by the report's accountant. A row per cell, the dearest first."""
    try:
        ledger = explain.read(document.path)
    except PrivacyError as error:
        raise PricingError(str(error)) from None
    if not ledger.accounts:
        raise PricingError(f"{document.path}:1: the ledger is empty: nothing was released")
    rows = []
    for account in ledger.accounts:
        paid, said = settle.of_account(account, ledger.of(account.cell)), account.protection
        event = Unprotected(paid.theorem) if math.isinf(paid.epsilon) else events.ApproxDP(paid.epsilon, paid.delta)
        relation = said.relation.value if said.unit is Unit.EDGE else said.relation.value.removeprefix(f"{said.unit.value}-")
        why = f"cell {account.cell}: {paid.theorem}"
        rows.append((paid.epsilon, Row(said.unit.value, relation, said.viewer.words, event, 1, account.delta, why)))
    assumptions = {a.value: a.words for account in ledger.accounts for a in account.protection.assumptions}
    claim = readings.without_claim(f"{len(rows)} cells; each row is one, counted for its worst unit")
    order = tuple(f"assuming {name}: {words}" for name, words in sorted(assumptions.items()))
    no_fix = "a ledger is history; change the scenario's epsilons and run again"
    return Reading(tuple(r for _, r in sorted(rows, key=lambda each: -each[0])), claim, order=order, no_fix=no_fix)
