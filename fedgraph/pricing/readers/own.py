"""What is our own: the neutral YAML for what no other reader covers, and the ledger of a run.

The neutral YAML describes one sum of bounded contributions, noised, round after round. Its keys and what it guarantees:
``docs/how_deployed_noise_is_priced.md``.
"""

import math
from typing import Literal

from pydantic import model_validator

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import readings
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import (
    AmountOrNone,
    CountOrNone,
    DeltaOrNone,
    Keys,
    PositiveOrNone,
    ShareOrNone,
    Times,
    TimesOrNone,
)  # fmt: skip
from fedgraph.pricing.readings import SEVERAL, Claim, Reading, Row, Sums
from fedgraph.privacy import Composed, Event, PureDP, Repeated, Unit, Unprotected, events, explain, settle


class _Sampling(Keys):
    kind: Literal["none", "poisson", "fixed"]
    rate: ShareOrNone = None

    @model_validator(mode="after")
    def _agree(self) -> "_Sampling":
        if self.kind == "none" and self.rate not in (None, 1.0):
            raise ValueError(f"rate: found {self.rate:g} with kind: none; name the kind of sampling")
        return self


class _Mechanism(Keys):
    """One mechanism on the data of a unit."""

    mechanism: Literal["gaussian", "laplace", "randomised-response", "randomized-response"]
    clip: PositiveOrNone = None
    noise_std: AmountOrNone = None
    noise_multiplier: AmountOrNone = None
    flip_probability: ShareOrNone = None
    num_values: CountOrNone = None
    truth_probability: ShareOrNone = None
    epsilon: PositiveOrNone = None
    sampling: _Sampling | None = None

    @property
    def multiplier(self) -> float | None:
        """Noise over clip; None for randomised answers, which ``kept`` describes."""
        if self.noise_std is not None and self.clip is not None:
            return self.noise_std / self.clip / (math.sqrt(2) if self.mechanism == "laplace" else 1.0)
        return self.noise_multiplier

    @property
    def answers(self) -> bool:
        return self.mechanism.startswith("random")

    @model_validator(mode="after")
    def _complete(self) -> "_Mechanism":
        given, values = (self.flip_probability, self.truth_probability), self.num_values
        if self.answers:
            if any(v is not None for v in (self.clip, self.noise_std, self.noise_multiplier)):
                raise ValueError("clip and noise say nothing of randomised-response; write flip_probability")
            if (
                (given == (None, None) and self.epsilon is None)
                or None not in given
                or (given[0] is not None and (values or 2) != 2)
            ):
                raise ValueError(
                    "randomised-response needs flip_probability: p, or num_values: k and truth_probability: t, or epsilon"
                )
            if values == 1:
                raise ValueError("num_values: found 1; an answer has two values or more")
            if self.sampling is not None and self.sampling.kind != "none":
                raise ValueError("sampling of randomised answers is not priced; allowed: kind: none")
            return self
        if given != (None, None) or values is not None:
            raise ValueError(f"probabilities say nothing of {self.mechanism}; write noise_std and clip, or noise_multiplier")
        if self.noise_std is not None and self.clip is None:
            raise ValueError("noise_std needs 'clip', the bound on one contribution; or give noise_multiplier")
        if self.multiplier is None:
            raise ValueError("missing option 'noise_std' or 'noise_multiplier'; without noise there is no ε")
        if self.noise_multiplier is not None and not math.isclose(self.multiplier, self.noise_multiplier, rel_tol=1e-9):
            raise ValueError("noise_std and noise_multiplier contradict each other; give one of them")
        return self

    def answer(self, believed: float | None) -> Event:
        """One randomised answer: ln(t(k − 1)/(1 − t)), the larger of both directions; or what is claimed."""
        kept = 1 - self.flip_probability if self.flip_probability is not None else self.truth_probability
        if kept is None:
            return PureDP(believed or math.inf)
        if kept in (0.0, 1.0):
            return Unprotected("an answer that is never (or always) flipped is the answer")
        return PureDP(abs(math.log(kept * ((self.num_values or 2) - 1) / (1 - kept))))

    def sums(self, rounds: int, rate: float, louder: float, units: int | None) -> Sums:
        kind = self.sampling.kind if self.sampling else "poisson"
        return Sums((self.multiplier or 0.0) * louder, rounds, kind, rate, units=units, laplace=self.mechanism == "laplace")


class _Described(Keys):
    """What every description says of the unit."""

    unit: Literal["example", "client", "user", "edge", "node", "graph", "record"]
    relation: Literal["zero-out", "replace"] = "zero-out"
    clients: CountOrNone = None
    delta: DeltaOrNone = None


class _Neutral(_Described, _Mechanism):
    rounds: TimesOrNone = None


class _Part(_Mechanism):
    rounds: Times = 1


class _Parts(_Described):
    parts: list[_Part]
    epsilon: PositiveOrNone = None

    @model_validator(mode="after")
    def _some(self) -> "_Parts":
        if not self.parts:
            raise ValueError("parts: a list of mechanisms is expected, each with its noise and its rounds")
        return self


def neutral(document: Document) -> Reading:
    """The one row, with what the file leaves out as questions; of ``parts``, all of them on the same data."""
    if "parts" in document.data:
        return _parts(document, document.checked(_Parts))
    said = document.checked(_Neutral)
    kind = said.sampling.kind if said.sampling else None
    rounds = int(document.ask("rounds", said.rounds))
    delta = document.ask("delta", said.delta) if said.mechanism == "gaussian" else said.delta or 0.0
    first = "Contributions are clipped, sampled, summed, then noised; rounds compose adaptively; δ is that of the total."
    open_ = ["whatever is released besides the noised sums: sizes, metrics, which model was chosen"]
    claim = () if said.epsilon is None else (Claim(said.epsilon, delta, "per round", "epsilon, as the file says"),)
    if said.answers:
        believed = said.flip_probability is None and said.truth_probability is None
        words = "randomised answers of one unit" + ", by the ε that the file claims, not by how answers are drawn" * believed
        row = Row(said.unit, "replace", "whoever sees the answers", said.answer(said.epsilon), rounds, delta, words)
        no_fix = "the flip probability of an answer is chosen by hand: ε of one answer is ln((1 − p)/p)"
        return Reading((row,), claim, tuple(open_), (), (first,), no_fix=no_fix, people=said.clients)
    known = 1.0 if kind == "none" else said.sampling.rate if said.sampling else None
    sums = said.sums(rounds, document.ask("sampling rate", known), document.louder, said.clients)
    people = SEVERAL if not sums.laplace and kind != "fixed" else ()
    viewer = "whoever sees the noised sums of all rounds"
    rows = readings.rows_of_sums([[sums]], said.unit, viewer, delta, people=people, relations=(said.relation,))
    if kind in ("poisson", "fixed"):
        open_.append("the sample, against anyone who knows who took part in a round")
    if said.unit == "example":
        open_.append("a person with several examples: k of them cost more than one")
    name = "noise_std" if said.noise_multiplier is None else "noise_multiplier"
    settings = {name: float(said.model_dump()[name]) * document.louder}
    return Reading(rows, claim, tuple(open_), (), (first, readings.SECRET), settings, people=said.clients)


def _parts(document: Document, said: _Parts) -> Reading:
    delta, replaced, words, inside = document.ask("delta", said.delta), said.relation == "replace", [], []
    for part in said.parts:
        rate = 1.0 if part.sampling is None or part.sampling.rate is None else part.sampling.rate
        sums = part.sums(part.rounds, rate, document.louder, said.clients)
        inside.append(Repeated(part.answer(part.epsilon) if part.answers else sums.event(replaced), part.rounds))
        words.append(f"{part.rounds:,} × {part.mechanism}" if part.answers else sums.words)
    row = Row(
        said.unit, said.relation, "whoever sees all that is released", Composed(tuple(inside)), 1, delta, "; ".join(words)
    )
    claim = () if said.epsilon is None else (Claim(said.epsilon, delta, "total", "epsilon, as the file says"),)
    open_, order = ("whatever is released besides the parts",), ("Parts on the same data compose adaptively.",)
    no_fix = "the parts have noises of their own; raise one of them"
    return Reading((row,), claim, open_, (), order, no_fix=no_fix, people=said.clients)


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
