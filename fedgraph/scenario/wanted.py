"""What a person wants of a draft: data, what is private, trust, budgets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.errors import ScenarioError
from fedgraph.privacy.trust import Trust

if TYPE_CHECKING:
    from fedgraph.types import Graph, GraphCollection

UNITS = ("node", "edge")
ASKED = ("private", "public")  # the people whose answers are wanted
TRUST = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)  # what every method of a draft can serve
LARGEST_DELTA = 1e-4  # of a draft, however few the people are
NAME = re.compile(r"[^A-Za-z0-9_.-]+")
PROTOCOLS = {
    "asking": "everybody is private; who asks gives its own row and ties, and only it sees its answer",
    "inductive": "who asks is public with its ties: only the people one learns from are private",
    "transductive": "people, attributes and training labels are public: only who is tied to whom is private",
}


def delta_for(people: int) -> float:
    """δ of a draft: the guarantee fails for anybody among ``people`` with a chance of one in ten at most, and δ ≤ 10⁻⁴.

    δ is rounded down to one digit. One over the people, as papers often take it, would allow to publish one of them whole.
    """
    largest = min(0.1 / max(people, 1), LARGEST_DELTA)
    digit = 10.0 ** math.floor(math.log10(largest))
    return float(f"{math.floor(largest / digit * (1 + 1e-12)) * digit:.0e}")


@dataclass(frozen=True)
class Data:
    """name, path: as in a scenario (path None for a named data set). title: for file names. found: a sentence that was read.

    clients: of a federation, 0 for one graph. split: it brought masks. crossing: edges between clients. graph: what was
    loaded; None for a named data set, of which only published counts are known. people: how many nodes there are.
    collection: many small graphs, of which ``graph`` has a row each. owners: whether somebody holds them each. least_class:
    how many graphs the smallest class has.
    """

    name: str
    path: Path | None
    title: str
    found: str
    clients: int = 0
    split: bool = False
    crossing: int = 0
    graph: Graph | None = field(default=None, compare=False)
    people: int = 0
    collection: GraphCollection | None = field(default=None, compare=False)
    owners: bool = False
    least_class: int = 0

    @property
    def federation(self) -> bool:
        return self.clients > 0


@dataclass(frozen=True)
class Size:
    """How much a draft asks for. spare: also rows that add little. cheaper: which of a comparison's settings (0: the dearest).

    trust: how many of the levels of trust.
    """

    seeds: int = 3
    spare: bool = True
    cheaper: int = 0
    trust: int = len(TRUST)


@dataclass(frozen=True)
class Wanted:
    """What the scenario shall compare.

    asked: whether people whose answers are wanted are private, too. clients: of one graph that is dealt out; None: 10.
    parameters: of the data set, such as bounds of columns. fits: in words, how long it will take.
    """

    data: Data
    unit: str
    trust: tuple[Trust, ...]
    epsilons: tuple[float, ...]
    clients: int | None
    name: str | None
    asked: str = "private"
    parameters: Mapping[str, object] = field(default_factory=dict)
    size: Size = Size()
    fits: str = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ScenarioError(f"--unit is {self.unit!r}; allowed: {', '.join(UNITS)}")
        if self.data.collection is not None and self.unit != "node":
            raise ScenarioError(f"--unit is {self.unit}; allowed for many small graphs: node, which is a whole graph")
        if self.asked not in ASKED:
            raise ScenarioError(f"--asked is {self.asked!r}; allowed: {', '.join(ASKED)}")
        for who in self.trust:
            if who not in TRUST:
                raise ScenarioError(
                    f"--trust: few methods serve {who.value}, so it has no draft (see attacks.yaml for active-server and "
                    f"lpgnn_ablation.yaml for nobody); allowed: {', '.join(t.value for t in TRUST)}"
                )
        if len(set(self.trust)) < len(self.trust):
            raise ScenarioError("--trust names somebody twice; allowed: each once")
        if self.clients is not None and self.clients < 2:
            raise ScenarioError(f"--clients is {self.clients}; allowed: 2 or more")
        if self.clients is not None and self.data.federation:
            raise ScenarioError("--clients is for one graph that is dealt out; a federation brings its clients")

    @property
    def title(self) -> str:
        """The scenario's name."""
        return NAME.sub("-", self.name or self.data.title).strip("-.") or "scenario"

    @property
    def protocol(self) -> str:
        """What the answers about privacy mean to a scenario."""
        return "transductive" if self.unit == "edge" else "asking" if self.asked == "private" else "inductive"
