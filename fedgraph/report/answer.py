"""The answer of a run: which method to use, whom it trusts, and its ε. A pure function of the rows.

    answered = answer.find_answer(group_rows(entries))
    answered.sentences                               what to read first
    answer.find_best(answered.scores, unit="node", trust=Trust.SUMS, epsilon=1.0)

Three rules. A row is the answer at an ε only if everything that it releases is *provably* within that ε: a row whose provable
ε is ∞ never is. A row whose ε an attack has refuted is the first sentence and never an answer. Units are never mixed: an
edge-level row says nothing about nodes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.privacy import Trust
from fedgraph.report import attack_bounds, chance, question_words
from fedgraph.report.phrases import begin_phrase, phrase_first, phrase_number, phrase_upper_bound
from fedgraph.report.question_words import BestScore
from fedgraph.report.rows import METRICS, Row, best_without_privacy, compare_rows, format_row
from fedgraph.report.sections import named_attacks

ANSWER_SENTENCE_UNITS = ("edge", "node", "entity", "client", "graph")


@dataclass(frozen=True)
class Answer:
    """What the rows say together.

    Attributes:
        sentences: Warnings first, then one or a few for each question.
        best: The table behind them: the best row for each question, unit, ε and level of trust.
        scores: Every row that was compared.
        warnings: How many of the first sentences are warnings.
        remarks: How many of the last sentences explain words and numbers.
        also: The same rows by a second metric, where they have one.
    """

    sentences: tuple[str, ...]
    best: tuple[BestScore, ...]
    scores: tuple[Row, ...]
    warnings: int = 0
    remarks: int = 0
    also: tuple[Row, ...] = ()


def find_answer(rows: Sequence[Row]) -> Answer:
    """The answer over any rows.

    Args:
        rows: Of one run, or of several together.

    Returns:
        Sentences, and the scores and best rows that they rest on. Of rows without a metric of
        ``rows.METRICS`` only what attacks found is said.
    """
    scores, also = compare_rows(rows), compare_rows(rows, 1)
    every = (*scores, *also)
    by_canaries = (
        s
        for s in attack_bounds.find_contradicting_attack_bounds(rows)
        if not s.startswith((attack_bounds.ATTACK_BOUND_ABOVE_PUBLISHED, attack_bounds.ATTACK_BOUND_BY_CHANCE))
    )
    warned = [*chance.warn_of_chance(scores), *named_attacks.contradict_named_attacks(rows)]
    warned += [*by_canaries, *_without_numbers(scores)]
    sentences: list[str] = []
    table: list[BestScore] = []
    most = 3 if len({(s.asked, s.unit) for s in every if s.private and not s.raw}) < 3 else 1
    lost: list[str] = []
    levels: list[str] = []
    said: set[tuple[str, str]] = set()  # of these tasks and units it was said that no row keeps any ε
    for asked in dict.fromkeys(s.asked for s in every):
        here = [s for s in every if s.asked == asked]
        lead = question_words.open_question_sentence(every, here)
        units = sorted({s.unit for s in here if s.private and not s.raw}, key=_unit_order)
        for unit in units:
            found, level = _table(asked, unit, here), question_words.word_question_unit(unit, here)
            levels.append(level)
            table += found
            most_epsilon = max(b.budget for b in found) if found else 0.0
            if any(s.unit == unit and s.private and s.usable and s.keeps(most_epsilon) for s in here):
                few = bool(chance.warn_of_chance([s for s in scores if s.dataset == here[0].dataset]))
                sentences += _said(f"{lead} at {level}" if lead else f"At {level}", found, here, most, few)
            elif (here[0].task, unit) not in said:
                lost.append(f"{f'{lead} at' if lead else 'At'} {level} level, {_nothing_keeps(unit, here)}")
            said.add((here[0].task, unit))
        sentences += _in_clear(here, units, lead)
    sentences += lost
    of_attacks = attack_bounds.summarise_attack_bounds(rows)
    sentences = [*of_attacks, *sentences] if attack_bounds.leads_with_attack_bounds(rows) else [*sentences, *of_attacks]
    remarks = []
    if any(b.score is not None for b in table):
        picked = [b.score for b in table if b.score is not None]
        remarks = [question_words.explain_question_units(sorted(set(levels), key=_unit_order), picked), _how_picked(every)]
    return Answer((*warned, *sentences, *remarks), tuple(table), scores, len(warned), len(remarks), also)


def find_best_answer(
    scores: Sequence[Row], *, unit: str, trust: Trust, epsilon: float, asked: tuple[str, ...] | None = None
) -> Row | None:
    """The row with the best mean among those that keep an ε and need no more trust than is given.

    A method that trusts fewer people serves everybody who would trust more, so it competes at every level above its own. A
    row that releases nothing of such a unit (ε = 0) competes, too: where it wins, privacy bought nothing.

    Args:
        unit: Whom the guarantee protects, one of ``ANSWER_SENTENCE_UNITS``.
        trust: The most that may be trusted.
        epsilon: The provable ε of the row is at most this.
        asked: The one question (``Row.asked``) to keep to; None where all rows answer the same one.

    Returns:
        None where no row keeps ``epsilon``.

    Raises:
        ValueError: ``asked`` is None and the rows answer several questions.
    """
    if asked is None and len({s.asked for s in scores}) > 1:
        raise ValueError("these rows answer several questions (data sets, metrics, protocols): give asked=score.asked")
    kept = [s for s in scores if s.usable and asked in (None, s.asked) and s.keeps(epsilon)]
    able = [s for s in kept if s.private and s.unit == unit and s.trust.rank <= trust.rank]
    able += [s for s in kept if question_words.question_reads_nothing(s, unit)]
    return max(able, key=lambda s: (s.mean, -s.trust.rank, -s.provable), default=None)


def _table(asked: tuple[str, ...], unit: str, here: Sequence[Row]) -> list[BestScore]:
    own = [s for s in here if s.unit == unit]
    found = []
    for budget in sorted({s.target for s in own if math.isfinite(s.target) and s.private}):
        for trust in sorted({s.trust for s in own if s.private and not s.raw}, key=lambda t: -t.rank):
            picked = find_best_answer(here, unit=unit, trust=trust, epsilon=budget, asked=asked)
            found.append(BestScore(asked, unit, budget, trust, picked, _ties(picked, here, unit, trust, budget)))
    return found


def _describe_mean(score: Row) -> str:
    tested = chance.num_chance_samples(score)
    if tested is None or score.metric != "accuracy":
        return format_row(score)
    low, high = chance.wilson_chance_interval(score.mean, tested)
    return f"{format_row(score)} ({low:.2f} to {high:.2f}, tested on {chance.describe_chance_samples(score)})"


def _ties(picked: Row | None, here: Sequence[Row], unit: str, trust: Trust, budget: float) -> tuple[Row, ...]:
    if picked is None or (picked.deviation is None and chance.num_chance_samples(picked) is None):
        return ()
    able = [s for s in here if s.usable and s.private and s.unit == unit and s.keeps(budget) and s.trust.rank <= trust.rank]
    return tuple(s for s in able if s.name != picked.name and not chance.is_worse_beyond_chance(s, picked))


def _said(opening: str, found: Sequence[BestScore], here: Sequence[Row], most: int, few: bool) -> list[str]:
    """One sentence for each ε; of more than ``most`` the least, middle and largest. few: too few were tested to name a row."""
    asked = sorted({b.budget for b in found})
    shown = asked if len(asked) <= most else sorted([asked[0], asked[-1], asked[len(asked) // 2]][:most])
    top, said = best_without_privacy(here), []
    if found[0].asked[1] == "ari" and not few:
        return [question_words.word_cluster_question(f"{opening} level", found, here, top, format_row)]
    for e in shown:
        lead = f"{opening} level with ε ≤ {phrase_number(e)}"
        own = [b for b in found if b.budget == e]
        text = f"{lead}: {describe_undecided_answer(own, here)}." if few else _one(lead, own, here)
        if top is not None and (few or e == shown[0]):
            text += f" Without privacy: {format_row(top)}{'' if few else name_answer_ceiling(top, found, here)}."
        said.append(text)
    return said


def describe_undecided_answer(found: Sequence[BestScore], here: Sequence[Row]) -> str:
    """What is said in the place of a best row, where nothing can be concluded: which numbers the rows have that keep an ε."""
    unit, budget = found[0].unit, found[0].budget
    able = sorted((s for s in here if s.usable and s.private and s.unit == unit and s.keeps(budget)), key=lambda s: s.mean)
    if not able:
        return "no row keeps it"
    low, high = f"{able[0].mean:.2f}", f"{able[-1].mean:.2f}"
    named = f"no row is named, for the reason above; what keeps it has {low}" + (f" to {high}" if low != high else "")
    tested = [(s.mean, n) for s in (able[0], able[-1]) if s.metric == "accuracy" and (n := chance.num_chance_samples(s))]
    if len(tested) < 2:
        return named
    least, most = chance.wilson_chance_interval(*tested[0])[0], chance.wilson_chance_interval(*tested[1])[1]
    return f"{named}, and by chance alone anything from {least:.2f} to {most:.2f}"


def name_answer_ceiling(top: Row, found: Sequence[BestScore], here: Sequence[Row]) -> str:
    """The best row without privacy, in brackets, unless its name says no more; and where a private one is above it by more
    than two standard errors, that it is.
    """
    name = question_words.word_question_row(top, here)
    said = [] if name.lower() in ("no privacy", "without privacy") else [name]
    if any(b.score is not None and b.score.private and chance.is_worse_beyond_chance(top, b.score) for b in found):
        why = ", which may read its neighbours' labels" if top.asked[2] == "asking" else ""
        said.append(f"this is no upper line: a private row is above it{why}")
    return f" ({'; '.join(said)})" if said else ""


def _one(opening: str, found: Sequence[BestScore], here: Sequence[Row]) -> str:
    """From the most trust to the least. Levels with one best row are said once, with the least trust that it needs."""
    parts: list[str] = []
    last, before = "", None
    for b, following in zip(found, [*found[1:], None], strict=True):
        if b.score is None:
            parts.append(f"nothing keeps it {b.trust.clause}")
            last = ""
        elif following is None or following.score is not b.score:
            free = "" if b.score.private else " (it releases nothing private, and no private row does better)"
            verb = "reaches" if not b.ties and chance.beats_chance(b.score) else "has"
            named = "" if b.score.name == last else f"{question_words.word_question_row(b.score, here)} {verb} "
            mean = _describe_mean(b.score) if before is None else format_row(b.score)
            by_chance = ""
            if before is not None and chance.num_chance_samples(before) is not None:
                by_chance = "" if chance.is_worse_beyond_chance(b.score, before) else " (the difference may be chance)"
            parts.append(f"{named}{mean} {b.trust.clause}{free}{by_chance}")
            last, before = b.score.name, b.score
    text = f"{opening}: {'; '.join(parts)}."
    picked = {b.score.name for b in found if b.score is not None}
    text += _majority([b.score for b in found if b.score is not None])
    ties = sorted({question_words.word_question_row(s, here) for b in found for s in b.ties if s.name not in picked})
    if ties:
        text += f" Within two standard errors of the best: {phrase_first(ties, 3)}."
    return text


def _majority(picked: Sequence[Row]) -> str:
    """A warning where the best rows are no better than somebody who learnt nothing."""
    if any(s.metric == "auc" for s in picked) and not any(map(chance.beats_chance, picked)):
        return " An AUC of 0.5 is chance, and none of these differs from it by more than chance."
    shares = [s.mean_of("majority_share") for s in picked if s.metric == "accuracy"]
    if not shares or not all(s.mean <= share + 0.005 for s, share in zip(picked, shares, strict=True)):
        return ""
    return f" Naming the largest class always would be right for {max(shares):.2f}: these rows may have learnt nothing else."


def _nothing_keeps(unit: str, here: Sequence[Row]) -> str:
    """For a question where no row that releases something private has a provable ε within what was asked."""
    able = [s for s in here if s.unit == unit and s.private and s.usable and math.isfinite(s.provable)]
    least = min(able, key=lambda s: s.provable, default=None)
    said = "no row keeps a provable ε within what was asked for everything that it releases"
    if least is None:
        said += ": nothing here may be called private"
    else:
        said += f"; the least is {phrase_upper_bound(least.provable)} ({question_words.word_question_row(least, here)})"
    able = [s for s in here if question_words.question_reads_nothing(s, unit) and s.usable]
    free = max(able, key=lambda s: s.mean, default=None)
    others = (("without reading private data", free), ("without privacy", best_without_privacy(here)))
    named = [(how, question_words.word_question_row(s, here), s) for how, s in others if s is not None]
    beside = "; ".join(f"{how}, {name} reaches {format_row(s)}" for how, name, s in named)
    return f"{said}. {begin_phrase(beside)}." if beside else f"{said}."


def _in_clear(here: Sequence[Row], units: Sequence[str], lead: str) -> list[str]:
    top = best_without_privacy(here)
    if units or top is None:
        return []
    where = f"{lead} the" if lead else "The"
    best = f"{top.name}: {METRICS[top.metric]} {format_row(top)}"
    return [f"{where} best without privacy is {best}. No private row was asked for."]


def _how_picked(scores: Sequence[Row]) -> str:
    metrics = " and ".join(dict.fromkeys(METRICS[s.metric] for s in scores))
    seeds = sorted({s.seeds for s in scores})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    spread = f", mean ± standard deviation over {many} seeds" if seeds[-1] > 1 else ", one seed"
    runs = " An ε is about one run: publishing every seed would cost up to as many times." if seeds[-1] > 1 else ""
    return f"Numbers are {metrics}{spread}. The best was picked by the same numbers, so it is a little optimistic.{runs}"


def _without_numbers(scores: Sequence[Row]) -> list[str]:
    found = [s for s in scores if s.status != "ok"]
    if not found:
        return []
    names = ", ".join(dict.fromkeys(f"{s.name} ({s.trust.value}, ε = {phrase_number(s.target)})" for s in found[:4]))
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return [f"{len(found)} of {len(scores)} rows have no result and compete for nothing: {names}{more}."]


def _unit_order(unit: str) -> tuple[int, str]:
    return (ANSWER_SENTENCE_UNITS.index(unit) if unit in ANSWER_SENTENCE_UNITS else len(ANSWER_SENTENCE_UNITS), unit)
