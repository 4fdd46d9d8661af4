"""What an answer says where graphs are clustered: from which ε on something finds the classes, and which distances never do."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fedgraph.cells.facts import GraphClusteringFacts
from fedgraph.privacy.trust import Trust
from fedgraph.report.questions import short_name
from fedgraph.report.report_rows import rounded
from fedgraph.report.scores import Score

FINDS = 0.1  # an adjusted Rand index below it is called nothing: 0 is what chance gives
MOST = 4  # budgets in one sentence
DISTANCES = {
    "gw": "Gromov-Wasserstein distances",
    "fgw": "fused Gromov-Wasserstein distances",
    "mean": "distances of mean rows",
    "histogram": "distances of histograms",
}
SCALE = (
    f"An adjusted Rand index is 0 by chance and 1 where the clusters are the classes; below {FINDS:g} is called nothing here."
)


class Picked(Protocol):
    """The best row within one ε and one level of trust (``answer.Best``)."""

    @property
    def budget(self) -> float: ...
    @property
    def trust(self) -> Trust: ...
    @property
    def score(self) -> Score | None: ...


def describe_clusters(
    opening: str, picked: Sequence[Picked], here: Sequence[Score], top: Score | None, value: Callable[[Score], str]
) -> str:
    """One sentence for each level of trust, the ceiling without privacy, and what finds nothing.

    picked: of one unit. here: every row of the question. top: the best without privacy. value: how a mean is printed.
    """
    said = []
    for trust in dict.fromkeys(p.trust for p in picked):
        own = sorted((p for p in picked if p.trust is trust), key=lambda p: p.budget)
        said.append(f"{opening} {trust.clause}: {', '.join(_steps(_some(own), here, value))}.")
    if top is not None:
        reached = f"reaches {value(top)}" if top.mean >= FINDS else f"finds nothing, either ({value(top)})"
        said.append(f"Without privacy: {short_name(top, here)} {reached}.")
    return " ".join([*said, *_blind(here), SCALE])


def _some(own: Sequence[Picked]) -> list[Picked]:
    return list(own) if len(own) <= MOST else [*own[: MOST - 1], own[-1]]


def _steps(own: Sequence[Picked], here: Sequence[Score], value: Callable[[Score], str]) -> list[str]:
    found: list[str] = []
    last: Score | None = None
    for p in own:
        begin = f"with ε ≤ {rounded(p.budget)}"
        if p.score is None:
            found.append(f"{begin} no row keeps it")
        elif p.score.mean < FINDS:
            found.append(f"{begin} nothing finds them (at most {value(p.score)})")
        elif p.score is not last:
            name = "it" if last is not None and last.name == p.score.name else short_name(p.score, here)
            found.append(f"{begin} {name} reaches {value(p.score)}")
            last = p.score
    return found


def _blind(here: Sequence[Score]) -> list[str]:
    """The ways to compare graphs by which no row finds the classes, even without noise."""
    found = []
    for how, words in DISTANCES.items():
        own = [s for s in here if s.private and s.usable and _compared(s) == how]
        clear = any(s.raw for s in own)
        if own and max(s.mean for s in own) < FINDS:
            most = max(s.mean for s in own)
            found.append(f"By {words} no row finds them{', not even without noise' if clear else ''} (at most {most:.2f}).")
    return found


def _compared(score: Score) -> str:
    """By which distance its graphs are compared; empty in other tasks."""
    facts = score.row.head.facts
    return facts.how if isinstance(facts, GraphClusteringFacts) else ""
