"""What is our own: the neutral YAML for what no other reader covers, and the ledger of a run.

The neutral YAML describes one sum of bounded contributions, noised, round after round. Its keys and what it guarantees:
``docs/how_deployed_noise_is_priced.md``.
"""

import math

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document, Said
from fedgraph.pricing.readings import SEVERAL, Claim, Reading, Row, Sums
from fedgraph.privacy import Event, PureDP, Unit, Unprotected, events, explain, settle


def neutral(document: Document) -> Reading:
    """The one mechanism, or all of ``parts`` on the same data, with what the file leaves out as questions."""
    several = "parts" in document.data
    said = document.options(part="parts" if several else "")
    parts = said.parts if several else [said]
    if not parts:
        raise document.error("parts: a list of mechanisms is expected, each with its noise and its rounds", "parts")
    for number, part in enumerate(parts):
        _require_agreement(document, part, *(("parts", str(number)) if several else ()))
    if not several:
        said.rounds = int(document.ask("rounds", said.rounds))
    delta = document.ask("delta", said.delta) if several or said.mechanism == "gaussian" else said.delta or 0.0
    sums, order, settings = [_sums(document, part, said.clients, several) for part in parts], [_ORDER], None
    relation, viewer = said.relation, "all that is released"
    people: tuple[int, ...] = ()
    open_ = ["whatever is released besides: sizes, metrics, which model was chosen"]
    if not several and sums[0].answer is not None:
        relation, viewer = "replace", "the answers"
    elif not several:
        viewer, people = "the noised sums of all rounds", () if sums[0].laplace or sums[0].sampling == "fixed" else SEVERAL
        name = "noise_std" if said.noise_multiplier is None else "noise_multiplier"
        settings = {name: vars(said)[name] * document.louder}
    if any(part.sampling and part.sampling.kind != "none" for part in parts):
        open_.append("the sample, against anyone who knows who took part in a round")
        order.append(readings.SECRET)
    if said.unit == "example":
        open_.append("a person with several examples: k of them cost more than one")
    rows = readings.rows_of_sums([sums], said.unit, f"whoever sees {viewer}", delta, people=people, relations=(relation,))
    claim = Claim(said.epsilon, delta, "total" if several else "per round", "epsilon, as the file says")
    claims = () if said.epsilon is None else (claim,)
    return Reading(rows, claims, tuple(open_), (), tuple(order), settings, people=said.clients)


_ORDER = "Contributions are clipped, sampled, summed, then noised; rounds compose adaptively; δ is that of the total."


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


def _sums(document: Document, said: Said, units: int | None, part: bool) -> Sums:
    if _answers(said):
        believed = said.flip_probability is None and said.truth_probability is None
        how = "randomised answers of one unit" + ", by the ε that the file claims, not by how answers are drawn" * believed
        return Sums(0.0, said.rounds, answer=_answer(said), how=how)
    kind = said.sampling.kind if said.sampling else "poisson"
    known = said.sampling.rate if said.sampling and kind != "none" else 1.0 if said.sampling or part else None
    rate = document.ask("sampling rate", 1.0 if known is None and part else known)
    noise = (_multiplier(said) or 0.0) * document.louder
    return Sums(noise, said.rounds, kind, rate, units=units, laplace=said.mechanism == "laplace")


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
    return Reading(tuple(r for _, r in sorted(rows, key=lambda each: -each[0])), claim, order=order)
