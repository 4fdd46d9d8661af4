"""What is asked of the rows that can be compared with each other, in words; and the answer where graphs are clustered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedgraph.cells import GraphClusteringCellFacts
from fedgraph.privacy import Assumption, Trust
from fedgraph.report.phrases import begin_phrase, phrase_number, read_phrases
from fedgraph.report.rows import METRICS, Row

_CLASSIFY, _DISTANCES = read_phrases()["classify"], read_phrases()["distances"]
QUESTION_UNIT_WORDS = read_phrases()["units"]  # from the smallest to the largest
_LINKS_OF_NODE = "Node level: all edges of one node are private; features and labels are public"
QUESTION_LEAST_INDEX = 0.1  # an adjusted Rand index below it is called nothing: 0 is what chance gives
_MOST = 4  # budgets in one sentence
_SCALE = (
    f"An adjusted Rand index is 0 by chance and 1 where the clusters are the classes; below {QUESTION_LEAST_INDEX:g} "
    "is called nothing here."
)

QUESTION_OPEN_EDGES = "Node level: a node's features and label are private, its edges are public"


@dataclass(frozen=True)
class BestScore:
    """The best row within one provable ε and one level of trust.

    Attributes:
        asked: The question, as in ``Row``.
        budget: The ε that was asked for.
        trust: The most that may be trusted.
        score: None where no row keeps ``budget``.
        ties: Rows that are not worse by two standard errors.
    """

    asked: tuple[str, ...]
    unit: str
    budget: float
    trust: Trust
    score: Row | None
    ties: tuple[Row, ...] = ()


def open_question_sentence(scores: Sequence[Row], here: Sequence[Row]) -> str:
    """How a sentence about some rows begins.

    Args:
        scores: Every row of the report.

    Returns:
        Empty where all ``scores`` answer one question.
    """
    if len({s.asked for s in scores}) == 1:
        return ""
    dataset, metric, protocol, split, public = here[0].asked
    alike = [s for s in scores if s.metric == metric]
    what = _task(here[0])
    if protocol == "inductive" and len({s.asked[4] for s in alike}) > 1:
        what += word_question_public(public)
    if split and len({s.asked[3] for s in alike if s.asked[3]}) > 1:
        what += f" of the {split} split"
    text = f"on {dataset}, {what}" if len({s.dataset for s in scores}) > 1 else what
    return f"{text[0].upper()}{text[1:]},"


def word_question_title(scores: Sequence[Row], here: Sequence[Row]) -> str:
    """The question of ``here`` as a heading: what is to be done, and where that is not plain, on which data."""
    asked = (open_question_sentence(scores, here) or f"{_task(here[0])},").removesuffix(",")
    where = f"On {here[0].dataset}, "
    title = begin_phrase(asked.removeprefix(where).removeprefix("To ").removeprefix("to "))
    return f"{title} ({here[0].dataset})" if asked.startswith(where) else title


def word_question_unit(unit: str, here: Sequence[Row]) -> str:
    """What a unit is called in sentences about ``here`` (``Row.unit_name``)."""
    return next((s.unit_name for s in here if s.unit == unit), unit)


def word_question_public(public: str) -> str:
    """What is public, as the end of “to classify nodes”."""
    if public == "":
        return " of a public test graph"
    if public == "nothing":
        return " when nothing is public"
    if public.startswith("share "):
        return f" when {100 * float(public.removeprefix('share ')):g} % of the nodes are public and the asked ones are not"
    return f" when {public} is public and the asked nodes are not"


def has_question_public_edges(score: Row) -> bool:
    """Whether its guarantee takes all edges as public, so that of a node only features and label are protected."""
    protection = score.head.protection
    return protection is not None and Assumption.EDGES_PUBLIC in protection.assumptions


def word_question_level(unit: str, here: Sequence[Row]) -> str:
    """What a unit of ``here`` means, in words; empty where it has none. Where links alone are private, a node's are."""
    name = word_question_unit(unit, here)
    held = [s.head.protection for s in here if s.unit == unit and s.head.protection is not None]
    if name == "node" and held and all(protection.relation.links_alone for protection in held):
        return _LINKS_OF_NODE
    return QUESTION_UNIT_WORDS.get(name, "")


def explain_question_units(units: Sequence[str], picked: Sequence[Row]) -> str:
    """What the units of the sentences mean, one after another. picked: the rows that these name."""
    nodes = [s.head.protection for s in picked if s.unit == "node"]
    linked = bool(nodes) and all(held is not None and held.relation.links_alone for held in nodes)
    words = {**QUESTION_UNIT_WORDS, **({"node": _LINKS_OF_NODE} if linked else {})}
    said = [words[unit] for unit in units if unit in words]
    open_edges = sorted({score.short for score in picked if has_question_public_edges(score)})
    said += [f"With {', '.join(open_edges)}, edges are public: only features and label are protected"] if open_edges else []
    return ". ".join([*said, "A smaller ε protects more: ε = 0 gives nothing away about the unit, ε = ∞ promises nothing."])


def word_question_row(score: Row, here: Sequence[Row]) -> str:
    """What a sentence about ``here`` calls a row: the label in its scenario where no other row has it, else its whole name."""
    name = score.name if any(s.short == score.short and s.name != score.name for s in here) else score.short
    return f"“{name}”" if "," in name else name


def question_reads_nothing(score: Row, unit: str) -> bool:
    """Whether the row releases nothing computed from a unit: of its own unit, or of a smaller one that lies inside it."""
    if score.private:
        return False
    sizes = list(QUESTION_UNIT_WORDS)
    return unit == score.unit or (unit in sizes and score.unit in sizes and sizes.index(unit) < sizes.index(score.unit))


def _task(score: Row) -> str:
    _, metric, protocol, *_ = score.asked
    if metric == "ari":
        return "to find the classes of whole graphs by clustering"
    if metric == "auc":
        return "to say which two nodes will be linked"
    if metric != "accuracy":
        return f"by {METRICS[metric]}"
    if score.head.facts.one == "graph":
        return "to classify whole graphs, each as one row"
    return _CLASSIFY.get(protocol, f"to classify with the {protocol} protocol")


def word_cluster_question(
    opening: str, picked: Sequence[BestScore], here: Sequence[Row], top: Row | None, value: Callable[[Row], str]
) -> str:
    """One sentence for each level of trust, the ceiling without privacy, and what finds nothing.

    picked: of one unit. here: every row of the question. top: the best without privacy. value: how a mean is printed.
    """
    said = []
    for trust in dict.fromkeys(p.trust for p in picked):
        own = sorted((p for p in picked if p.trust is trust), key=lambda p: p.budget)
        some = own if len(own) <= _MOST else [*own[: _MOST - 1], own[-1]]
        said.append(f"{opening} {trust.clause}: {', '.join(_steps(some, here, value))}.")
    if top is not None:
        reached = f"reaches {value(top)}" if top.mean >= QUESTION_LEAST_INDEX else f"finds nothing, either ({value(top)})"
        said.append(f"Without privacy: {word_question_row(top, here)} {reached}.")
    return " ".join([*said, *_blind(here), _SCALE])


def _steps(own: Sequence[BestScore], here: Sequence[Row], value: Callable[[Row], str]) -> list[str]:
    found: list[str] = []
    last: Row | None = None
    for p in own:
        begin = f"with ε ≤ {phrase_number(p.budget)}"
        if p.score is None:
            found.append(f"{begin} no row keeps it")
        elif p.score.mean < QUESTION_LEAST_INDEX:
            found.append(f"{begin} nothing finds them (at most {value(p.score)})")
        elif p.score is not last:
            name = "it" if last is not None and last.name == p.score.name else word_question_row(p.score, here)
            found.append(f"{begin} {name} reaches {value(p.score)}")
            last = p.score
    return found


def _blind(here: Sequence[Row]) -> list[str]:
    found = []
    for how, words in _DISTANCES.items():
        own = [s for s in here if s.private and s.usable and _compared(s) == how]
        clear = any(s.raw for s in own)
        if own and max(s.mean for s in own) < QUESTION_LEAST_INDEX:
            most = max(s.mean for s in own)
            found.append(f"By {words} no row finds them{', not even without noise' if clear else ''} (at most {most:.2f}).")
    return found


def _compared(score: Row) -> str:
    facts = score.head.facts
    return facts.how if isinstance(facts, GraphClusteringCellFacts) else ""
