"""What is our own: the neutral YAML for what no other reader covers, scenarios, and the ledger of a run.

The neutral YAML describes one sum of bounded contributions, noised, round after round. Its keys and what it guarantees:
``docs/how_deployed_noise_is_priced.md``.
"""

import math

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import costs, readings
from fedgraph.pricing.costs import CostOfRounds
from fedgraph.pricing.documents import Document
from fedgraph.pricing.facts import Options, scalar
from fedgraph.pricing.readings import SEVERAL, TO_SERVER, TO_SUMS, WITH_MODELS, Claim, Reading, Row
from fedgraph.privacy import Epsilon, LedgerAccount, Trust, Unit, explain, settle

_VIEWERS = {
    "curator": WITH_MODELS,
    "sums": TO_SUMS,
    "own-client": TO_SERVER,
    "active-server": TO_SERVER,
}
NEUTRAL_UNITS = ("example", "client", "user", "edge", "node", "graph", "record")
HOW = {"poisson": ", Poisson-sampled", "fixed": ", a fixed-size sample without replacement"}


def neutral(document: Document) -> Reading:
    """The one row, with what the file leaves out as questions; of ``parts``, all of them on the same data."""
    options = document.options
    if options.has("parts"):
        return _parts(document, options)
    mechanism = options.choice("mechanism", ("gaussian", "laplace", "randomised-response", "randomized-response"))
    unit, relation = options.choice("unit", NEUTRAL_UNITS), options.choice("relation", ("zero-out", "replace"), "zero-out")
    clients, rounds, delta = options.whole("clients", None, 1), options.whole("rounds", None, 0), options.delta("delta")
    claimed, replaced = options.number("epsilon", None, above=True), relation == "replace"
    kind, rate = _sampling(options, clients)
    response = mechanism.startswith("random")
    multiplier, name = (0.0, "") if response else _noise(options, mechanism)
    cost = _response(options, claimed) if response else None
    options.finish("flip_probability", "num_values", "truth_probability", "clip", "noise_std", "noise_multiplier")
    if cost and kind not in ("none", None):
        raise options.error("sampling", "sampling of randomised answers is not priced; allowed: kind: none")

    times = int(document.ask("rounds", rounds))
    at = document.ask("delta", delta) if mechanism == "gaussian" else delta or 0.0
    rate = rate if cost else document.ask("sampling rate", rate)
    scaled, rows = multiplier * document.louder, []
    if cost:
        believed = not options.has("flip_probability", "truth_probability")
        words = "randomised answers of one unit" + ", by the ε that the file claims, not by how answers are drawn" * believed
        rows.append(Row(unit, "replace", "whoever sees the answers", cost, times, at, words))
    else:
        move = "2·clip: one contribution is replaced" if replaced else "clip: one contribution vanishes"
        scale = "scale b" if mechanism == "laplace" else "standard deviation"
        words = f"sum with {scale} = {multiplier:.6g}·clip and sensitivity {move}{HOW.get(kind or '', '')}"
        viewer = "whoever sees the noised sums of all rounds"
        share = 1.0 if kind == "none" or rate is None else rate
        rows.append(Row(unit, relation, viewer, _cost(mechanism, scaled, kind, share, replaced), times, at, words))
        for k in SEVERAL if unit in ("example", "record") and mechanism == "gaussian" and kind != "fixed" else ():
            why = f"all of a user's {k} records together; {words}"
            rows.append(Row("user", relation, viewer, costs.cost_of_poisson(scaled, share, replaced, k), times, at, why))
    sampled = "Amplification by sampling holds for viewers who do not learn who took part in a round."
    amplified = "No amplification is used." if kind in ("none", None) else sampled
    first = "Contributions are clipped, sampled, summed, then noised; rounds compose adaptively; δ is that of the total."
    held = options.number(name) if name else None
    hidden = ("the sample, against anyone who knows who took part in a round",) if kind in ("poisson", "fixed") else ()
    several = ("a person with several examples: k of them cost more than one",) if unit == "example" else ()
    open_ = ("whatever is released besides the noised sums: sizes, metrics, which model was chosen", *hidden, *several)
    claim = () if claimed is None else (Claim(claimed, at, "per round", "epsilon, as the file says"),)
    settings = {name: held * document.louder} if held is not None else None
    no_fix = "the flip probability of an answer is chosen by hand: ε of one answer is ln((1 − p)/p)"
    return Reading(tuple(rows), claim, open_, (), (first, amplified), settings, no_fix, people=clients)


def _parts(document: Document, options: Options) -> Reading:
    """Several mechanisms on the same data: the sum of what each does in its own rounds, composed."""
    held = options.raw("parts")
    unit, relation = options.choice("unit", NEUTRAL_UNITS), options.choice("relation", ("zero-out", "replace"), "zero-out")
    delta, claimed, replaced = options.delta("delta"), options.number("epsilon", None, above=True), relation == "replace"
    people = options.whole("clients", None, 1)
    options.finish("mechanism")
    if not isinstance(held, list) or not held or not all(isinstance(each, dict) for each in held):
        raise options.error("parts", "parts: a list of mechanisms is expected, each with its noise and its rounds")
    costs_, words = [], []
    for number, part in enumerate(held):
        own = document.options_of({**part} if isinstance(part, dict) else {}, "parts", str(number))
        mechanism = own.choice("mechanism", ("gaussian", "laplace", "randomised-response", "randomized-response"))
        rounds, answer = own.count("rounds", 1, 0), own.number("epsilon", None, above=True)
        kind, rate = _sampling(own, people)
        response = mechanism.startswith("random")
        multiplier = 0.0 if response else _noise(own, mechanism)[0] * document.louder
        cost = (
            _response(own, answer) if response else _cost(mechanism, multiplier, kind, 1.0 if rate is None else rate, replaced)
        )
        own.finish("flip_probability", "num_values", "truth_probability", "clip", "noise_std", "noise_multiplier")
        costs_.append((cost, rounds))
        words.append(
            f"{rounds:,} × {mechanism}{HOW.get(kind or '', '')}"
            + (f" with noise {multiplier:.6g}·clip" if not response else "")
        )
    at = document.ask("delta", delta)
    row = Row(unit, relation, "whoever sees all that is released", costs.cost_of_several(costs_), 1, at, "; ".join(words))
    claim = () if claimed is None else (Claim(claimed, at, "total", "epsilon, as the file says"),)
    open_, order = ("whatever is released besides the parts",), ("Parts on the same data compose adaptively.",)
    no_fix = "the parts have noises of their own; raise one of them"
    return Reading((row,), claim, open_, (), order, no_fix=no_fix, people=people)


def _sampling(options: Options, clients: int | None) -> tuple[str | None, float | None]:
    """(kind, rate): (None, None) where the file says nothing; rate None where it is missing."""
    if not options.has("sampling"):
        options.raw("sampling")
        return None, None
    held = options.table("sampling")
    kind, rate = held.choice("kind", ("none", "poisson", "fixed")), held.number("rate")
    held.finish()
    if rate is not None and rate > 1:
        raise held.error("rate", f"rate: found {rate:g}; a sampling rate lies in [0, 1]")
    if kind == "none" and rate not in (None, 1.0):
        raise held.error("rate", f"rate: found {rate:g} with kind: none; name the kind of sampling")
    if kind == "fixed" and rate is not None and clients:
        rate = min(1.0, math.ceil(rate * clients * (1 - 1e-12)) / clients)
    return kind, 1.0 if kind == "none" else rate


def _noise(options: Options, mechanism: str) -> tuple[float, str]:
    """(noise multiplier in units of clip, the option that holds it)."""
    std, multiplier = options.number("noise_std"), options.number("noise_multiplier")
    clip, root = options.number("clip", None, above=True), math.sqrt(2) if mechanism == "laplace" else 1.0
    if std is not None and multiplier is not None and not (clip and math.isclose(std / clip / root, multiplier, rel_tol=1e-9)):
        raise options.error("noise_std", "noise_std and noise_multiplier contradict each other; give one of them")
    if multiplier is not None:
        return multiplier, "noise_multiplier"
    if std is None:
        raise options.error("mechanism", "missing option 'noise_std' or 'noise_multiplier'; without noise there is no ε")
    if clip is None:
        raise options.error("noise_std", "noise_std needs 'clip', the bound on one contribution; or give noise_multiplier")
    return std / clip / root, "noise_std"


def _response(options: Options, claimed: float | None) -> CostOfRounds:
    """ε of one answer: ln((1 − p)/p), or ln(t(k − 1)/(1 − t)); the larger of both directions; or what is claimed."""
    for name in ("clip", "noise_std", "noise_multiplier"):
        if options.has(name):
            raise options.error(name, f"{name} says nothing of randomised-response; write flip_probability")
    flip, values = options.number("flip_probability"), options.whole("num_values", 2, 2)
    truth = options.number("truth_probability")
    if claimed is not None and flip is None and truth is None:
        return costs.cost_of_pure(claimed)
    if (flip is None) == (truth is None) or (flip is not None and values != 2):
        message = "needs flip_probability: p, or num_values: k and truth_probability: t, or the epsilon of one answer"
        raise options.error("mechanism", message)
    kept = 1 - flip if flip is not None else truth
    if kept is None or values is None or not 0 <= kept <= 1:
        raise options.error("flip_probability" if flip is not None else "truth_probability", "a probability lies in [0, 1]")
    if kept in (0.0, 1.0):
        return costs.cost_of_unprotected("an answer that is never (or always) flipped is the answer")
    return costs.cost_of_pure(abs(math.log(kept * (values - 1) / (1 - kept))))


def _cost(mechanism: str, multiplier: float, kind: str | None, rate: float, replaced: bool) -> CostOfRounds:
    if mechanism == "laplace":
        return costs.cost_of_sampled_laplace(multiplier, rate, replaced, fixed=kind == "fixed")
    if kind == "fixed":
        return costs.cost_of_fixed_size(multiplier, rate, replaced)
    return costs.cost_of_poisson(multiplier, rate, replaced)


def scenario(document: Document) -> Reading:
    """The budgets that a scenario asks for: one row per task, level of trust and budget, the dearest first.

    Noise is calibrated at or below them before any data is read. What a run really released stands in its ledger, and
    ``python -m fedgraph.run SCENARIO --dry-run`` prints every planned release with its ε.
    """
    listed, found = document.data.get("tasks"), []
    for task in (t for t in listed if isinstance(t, dict)) if isinstance(listed, list) else ():
        delta, named = task.get("delta"), task.get("trust")
        at = float(delta) if isinstance(delta, (int, float)) and not isinstance(delta, bool) else 0.0
        wanted = task.get("epsilons")
        values = [scalar(v) if isinstance(v, str) else v for v in wanted] if isinstance(wanted, list) else []
        for budget in (float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)):
            for level in named if isinstance(named, list) else [Trust.CURATOR.value]:
                trust = str(level)
                cost = costs.cost_of_pure(budget)
                if math.isinf(budget):
                    cost = costs.cost_of_unprotected("epsilons: inf asks for no noise")
                why = f"task {task.get('label', task.get('task'))}, {trust}: noise is calibrated to cost at most this; see the "
                why += "method for unit and relation"
                row = Row("as the method", "as the method", _VIEWERS.get(trust, trust), cost, 1, at, why)
                found.append((budget, row))
    if not found:
        raise PricingError(f"{document.path}:1: no task of this scenario has epsilons")
    rows = tuple(row for _, row in sorted(found, key=lambda each: -each[0]))
    claim = readings.without_claim("targets; the ledger of a run says what was spent")
    return Reading(rows, claim, no_fix="write the ε you want into epsilons")


def ledger(document: Document) -> Reading:
    """``ledger.jsonl`` of a run: what was really released, by the report's accountant. A row per cell, the dearest first."""
    try:
        ledger = explain.read(document.path)
    except PrivacyError as error:
        raise PricingError(str(error)) from None
    if not ledger.accounts:
        raise PricingError(f"{document.path}:1: the ledger is empty: nothing was released")
    priced = sorted(((settle.of_account(a, ledger.of(a.cell)), a) for a in ledger.accounts), key=lambda pair: -pair[0].epsilon)
    assumptions = {a.value: a.words for account in ledger.accounts for a in account.protection.assumptions}
    claim = readings.without_claim(f"{len(ledger.accounts)} cells; each row is one, counted for its worst unit")
    order = tuple(f"assuming {name}: {words}" for name, words in sorted(assumptions.items()))
    no_fix = "a ledger is history; change the scenario's epsilons and run again"
    return Reading(tuple(_of_a_cell(paid, account) for paid, account in priced), claim, order=order, no_fix=no_fix)


def _of_a_cell(paid: Epsilon, account: LedgerAccount) -> Row:
    said = account.protection
    relation = said.relation.value if said.unit is Unit.EDGE else said.relation.value.removeprefix(f"{said.unit.value}-")
    words = f"cell {account.cell}"
    return Row(said.unit.value, relation, said.viewer.words, lambda rounds, delta: paid, 1, account.delta, words)
