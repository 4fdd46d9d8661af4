"""What each client of a federation gets from each choice that it has, averaged over seeds: behind tables and letters.

    found = choices.read_choices(records)
    found.value("features", 4.0, join(Trust.SUMS), "Harvard1")    mean of the metric, None where it was not measured

A ``ClientChoice`` is what one client can do: stay alone, join, give everything to one curator, or stay out and ask the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from pydantic import TypeAdapter

from fedgraph.cells import Result
from fedgraph.privacy import Trust
from fedgraph.report import chance
from fedgraph.report.sections.base import SectionRecords
from fedgraph.worlds import WorldKind

ALL_CHOICE_CLIENTS = "all"


class ChoiceOwnFit(Enum):
    """What a client fits to its own data in clear, beside the shared model."""

    NOTHING = ""
    HEAD = "own head"
    WEIGHTS = "own weights"


# participation of a record → what the client fitted
_OWN = {"personalised": ChoiceOwnFit.HEAD, "own weights": ChoiceOwnFit.WEIGHTS}
CHOICE_TRUST_WORDS = {Trust.SUMS: "sums only", Trust.OWN_CLIENT: "server sees messages"}


@dataclass(frozen=True)
class ClientChoice:
    """What one client can do.

    Attributes:
        kind: Of the world that the model was trained in.
        out: Whether the others trained without this client, which asks them.
        own: What the client fitted to its own data.
    """

    kind: WorldKind
    trust: Trust
    out: bool = False
    own: ChoiceOwnFit = ChoiceOwnFit.NOTHING

    @property
    def words(self) -> str:
        """As tables show it."""
        if self.kind is WorldKind.WHOLE:
            return "one curator"
        if self.out:
            return f"left out ({CHOICE_TRUST_WORDS[self.trust]})"
        first = "alone" if self.kind is WorldKind.ALONE else f"joined, {CHOICE_TRUST_WORDS[self.trust]}"
        return first + (f", {self.own.value}" if self.own.value else "")


def make_joined_choice(trust: Trust, own: ChoiceOwnFit = ChoiceOwnFit.NOTHING) -> ClientChoice:
    """All clients together."""
    return ClientChoice(WorldKind.TOGETHER, trust, False, own)


def make_left_out_choice(trust: Trust) -> ClientChoice:
    """The choice that the others train together, and this client uses their model."""
    return ClientChoice(WorldKind.TOGETHER, trust, True)


ALONE_CHOICE = ClientChoice(WorldKind.ALONE, Trust.OWN_CLIENT)
_ALONE_HEAD = ClientChoice(WorldKind.ALONE, Trust.OWN_CLIENT, False, ChoiceOwnFit.HEAD)
CURATOR_CHOICE = ClientChoice(WorldKind.WHOLE, Trust.CURATOR)
_KEPT = (ALONE_CHOICE, _ALONE_HEAD)  # what a client can have without anybody else
JOINED_CHOICES = tuple(map(make_joined_choice, CHOICE_TRUST_WORDS))
ADAPTED_CHOICES = tuple(make_joined_choice(trust, own) for trust in CHOICE_TRUST_WORDS for own in ChoiceOwnFit)
_LEFT_OUT_CHOICES = tuple(map(make_left_out_choice, CHOICE_TRUST_WORDS))
EVERY_CHOICE = (*_KEPT, CURATOR_CHOICE, *ADAPTED_CHOICES, *_LEFT_OUT_CHOICES)  # in the order of a table
SINGLE_CLIENT_CHOICES = (*ADAPTED_CHOICES, *_LEFT_OUT_CHOICES, CURATOR_CHOICE)  # in that of a table of clients
CHOICE_RECALL, CHOICE_PRECISION = "recall_at_alerts", "average_precision_positive"
CHOICE_ACCURACY, CHOICE_AUC = "accuracy", "auc"
CLIENT_CHOICE_METRICS = {
    CHOICE_RECALL: "share found among the alerts",
    CHOICE_PRECISION: "average precision",
    CHOICE_ACCURACY: "test accuracy",
    CHOICE_AUC: "AUC of ties",
}
OTHER_CHOICE_METRICS = {"hits_at_50": "Hits@50", "mrr": "MRR"}  # of ties, too


_Key = tuple[str, float, ClientChoice, str]  # learner, ε, choice, client
FEWEST_CHOICE_SEEDS = 3  # below, nobody is advised


@dataclass(frozen=True, eq=False)
class ClientChoices:
    """What every choice gave every client.

    Attributes:
        metric: What is compared, one of ``CLIENT_CHOICE_METRICS`` or ``OTHER_CHOICE_METRICS``.
        clients: Name → how many nodes it holds.
        learners: Methods with their variants, in the order of the run.
        epsilons: The ε that were asked for, least first.
        values: (learner, ε, choice, client) → the metric by seed; a seed whose cell failed is not there.
        prices: The same → the largest ε of that client's units.
        toward: Choice → from whom its ε protects.
        delta: Of the rows; NaN where there is none.
        unit: What is private.
        assumed: All that the statements of the rows assume, as words of ``Assumption``.
        tested: Client → how many of its nodes were counted, over all seeds; of ``CHOICE_RECALL``, how many that are looked for.
        reachable: Client → the largest ``CHOICE_RECALL`` that a perfect list would have.
        usual: Client → share of the largest class among its tested nodes.
        alerts: Share of the nodes that can be looked at; None where no list is made.
        called: What a node is called, and several.
        short: Whether the run was made with ``--quick``.
        answers: As ``values``, by seed: (which of the client's tested nodes were answered rightly, or how well each hidden tie
            was (``cells.task_facts.pack_answers``); how many there were).
    """

    metric: str
    clients: dict[str, int]
    learners: tuple[str, ...]
    epsilons: tuple[float, ...]
    values: dict[_Key, dict[int, float]] = field(default_factory=dict)
    prices: dict[_Key, float] = field(default_factory=dict)
    toward: dict[ClientChoice, str] = field(default_factory=dict)
    delta: float = math.nan
    unit: str = "node"
    assumed: frozenset[str] = frozenset()
    tested: dict[str, float] = field(default_factory=dict)
    reachable: dict[str, float] = field(default_factory=dict)
    usual: dict[str, float] = field(default_factory=dict)
    alerts: float | None = None
    called: tuple[str, str] = ("person", "people")
    short: bool = False
    answers: dict[_Key, dict[int, tuple[str, int]]] = field(default_factory=dict)

    def value(self, learner: str, epsilon: float, choice: ClientChoice, client: str = ALL_CHOICE_CLIENTS) -> float | None:
        found = self.values.get((learner, epsilon, choice, client))
        return statistics.fmean(found.values()) if found else None

    def spread(self, learner: str, epsilon: float, choice: ClientChoice) -> str:
        """Mean ± standard deviation over seeds, of everybody's nodes; ``—`` where it was not measured."""
        found = list(self.values.get((learner, epsilon, choice, ALL_CHOICE_CLIENTS), {}).values())
        if not found:
            return "—"
        return f"{statistics.fmean(found):.3f}" + (f" ± {statistics.stdev(found):.3f}" if len(found) > 1 else "")

    def price(self, learner: str, epsilon: float, choice: ClientChoice, client: str = ALL_CHOICE_CLIENTS) -> float | None:
        return self.prices.get((learner, epsilon, choice, client))

    def chance(self, client: str, value: float) -> float:
        """A difference from ``value`` that chance alone may make: two standard errors of two shares of the tested nodes.

        Of few nodes that are all right, or all wrong, the next could be otherwise: Laplace's rule of succession is the least
        variance, so that one node alone never makes a difference. Of numbers in 0 … 1 (the share of pairs below a tie, Hits@k
        and 1 / rank) no variance is larger than that of a share.
        """
        tested = self.tested.get(client)
        if not tested:
            return 0.0
        width = math.sqrt(2 * max(value * (1 - value), 0.01, (tested + 1) / (tested + 2) ** 2) / tested)
        return min(1.0, max(chance.CHANCE_STANDARD_ERRORS * width, 1 / tested + 1e-9))

    @property
    def seeds(self) -> int:
        """How many repetitions the numbers are means of."""
        return max((len(found) for found in self.values.values()), default=0)

    def tested_once(self, client: str) -> int:
        """How many of the client's nodes were counted in one repetition."""
        return round(self.tested.get(client, 0.0) / max(1, self.seeds))

    def kept_by(self, client: str) -> list[_Key]:
        """Every model that a client makes alone and keeps, noised ones too, as far as it was measured in enough seeds."""
        return self._often([(one, e, kept, client) for one in self.learners for e in self.epsilons for kept in _KEPT])

    def _often(self, keys: Sequence[_Key]) -> list[_Key]:
        """Those that were repeated as often as an advice needs, where others were."""
        return [key for key in keys if len(self.values.get(key, ())) >= max(1, min(self.seeds, FEWEST_CHOICE_SEEDS))]

    def joined_by(self, client: str, epsilon: float) -> list[_Key]:
        """Every way of joining within ``epsilon``, with each thing that the client may fit to its own data."""
        picked = self.best(epsilon, JOINED_CHOICES)
        if picked is None:
            return []
        kept = [learner for learner in self.learners if self._keeps(learner, epsilon, picked[1])]
        ways = [make_joined_choice(picked[1].trust, own) for own in ChoiceOwnFit]
        return self._often([(learner, epsilon, way, client) for learner in kept for way in ways])

    def _keeps(self, learner: str, epsilon: float, choice: ClientChoice) -> bool:
        return (self.price(learner, epsilon, choice) or 0.0) <= epsilon * (1 + 1e-9)

    def mean(self, key: _Key) -> float:
        """Over seeds, of something that was measured."""
        return statistics.fmean(self.values[key].values())

    def difference(self, one: _Key, other: _Key) -> float:
        """How much larger the first number is on the seeds in which both were measured; of all seeds where there is none."""
        first, second = self.values[one], self.values[other]
        both = first.keys() & second.keys()
        of_one, of_other = (
            statistics.fmean(v for seed, v in own.items() if seed in both or not both) for own in (first, second)
        )
        return of_one - of_other

    def error(self, one: _Key, other: _Key) -> float:
        """Standard error of ``difference``; answers, and numbers of one seed, are compared one by one, where known."""
        first, second = self.answers.get(one, {}), self.answers.get(other, {})
        both = sorted(first.keys() & second.keys())
        paired = [chance.paired_chance_variance(first[s][0], second[s][0], first[s][1]) for s in both]
        known = [variance for variance in paired if variance is not None]
        if self.metric not in (CHOICE_ACCURACY, CHOICE_AUC) or not known:
            return self.chance(one[3], self.mean(other)) / chance.CHANCE_STANDARD_ERRORS
        differences = [a - self.values[other][seed] for seed, a in self.values[one].items() if seed in self.values[other]]
        seeds = statistics.variance(differences) / len(differences) if len(differences) > 1 else 0.0
        return math.sqrt(max(statistics.fmean(known), seeds))

    def best(self, epsilon: float, choices: Sequence[ClientChoice]) -> tuple[str, ClientChoice] | None:
        """(learner, choice): the largest value over everybody's nodes of those that keep ``epsilon``, of the first choice run.

        A learner that does not keep a finite ε is none. None where no choice was run.
        """
        for choice in choices:
            kept = [
                (value, learner)
                for learner in self.learners
                if (value := self.value(learner, epsilon, choice)) is not None and self._keeps(learner, epsilon, choice)
            ]
            if kept:
                return max(kept)[1], choice
        return None

    def inside(self) -> tuple[str, float, ClientChoice] | None:
        """(learner, ε, choice) of the best model that a client makes alone and keeps: of any ε, since a kept one needs none."""
        keys = [(one, e, kept) for one in self.learners for e in self.epsilons for kept in _KEPT]
        found = {key: value for key in keys if (value := self.value(*key)) is not None}
        return max(found, key=lambda key: (found[key], key[0], key[1], _KEPT.index(key[2])), default=None)

    def present(self, choices: Sequence[ClientChoice]) -> list[ClientChoice]:
        """Those of ``choices`` that were run."""
        return [c for c in choices if c in {key[2] for key in self.values}]


@dataclass(frozen=True)
class _Asked:
    alerts: float | None = None
    called: tuple[str, str] = ("person", "people")


def read_client_choices(records: SectionRecords, metric: str | None = None) -> ClientChoices:
    """Every record of every cell. metric: what is compared; None: the first of ``CLIENT_CHOICE_METRICS`` that was measured."""
    entries = records.entries
    every = [r for e in entries for r in e.facts.results]
    metric = metric or next((m for m in CLIENT_CHOICE_METRICS if any(m in r.metrics for r in every)), CHOICE_ACCURACY)
    clients: dict[str, int] = {}
    for entry in entries:
        for record in entry.facts.results:
            if record.client != ALL_CHOICE_CLIENTS:
                clients[record.client] = max(clients.get(record.client, 0), int(record.nodes))
    protections = [e.protection for e in entries if e.protection]
    asked = TypeAdapter(_Asked).validate_python(dict(records.settings))
    learners = dict.fromkeys(map(_name_learner, entries))
    epsilons = sorted({float(e.epsilon) for e in entries})
    found = ClientChoices(
        metric, clients, tuple(learners), tuple(epsilons),
        delta=entries[0].delta or math.nan, unit=protections[0].unit.value if protections else "node",
        assumed=frozenset(a.value for p in protections for a in p.assumptions),
        alerts=asked.alerts, called=asked.called, short=records.short,
    )  # fmt: skip
    _count(found, entries)
    for entry in entries:
        for record in entry.facts.results:
            own, world = _OWN.get(record.participation, ChoiceOwnFit.NOTHING), entry.world
            choice = ClientChoice(world.kind, world.trust, world.without is not None, own)
            key = (_name_learner(entry), entry.epsilon, choice, record.client)
            found.prices[key] = max(found.prices.get(key, 0.0), record.epsilon)
            if record.right:
                found.answers.setdefault(key, {})[entry.seed] = (record.right, record.tested)
            if metric in record.metrics:
                found.values.setdefault(key, {})[entry.seed] = record.metrics[metric]
                found.toward[choice] = record.toward
    return found


def _count(found: ClientChoices, entries: Sequence[Result]) -> None:
    """Fill ``tested``, ``usual`` and ``reachable``: sums and means over seeds of what any record of a seed says."""
    sizes = dict[tuple[str, int], float]()
    shares = dict[tuple[str, int], float]()
    most = dict[tuple[str, int], float]()
    for entry in entries:
        for record in entry.facts.results:
            key, metrics = (str(record.client), entry.seed), record.metrics
            if "majority_share" in metrics:
                shares[key] = float(metrics["majority_share"])
            size = float(record.sought if found.metric == CHOICE_RECALL else record.tested)
            if size:
                sizes[key] = max(sizes.get(key, 0.0), size)
                most[key] = min(1.0, max(1, round((found.alerts or 1.0) * record.tested)) / size)
    for (client, _), size in sizes.items():
        found.tested[client] = found.tested.get(client, 0.0) + size
    for given, filled in ((shares, found.usual), (most, found.reachable if found.metric == CHOICE_RECALL else {})):
        for client in dict.fromkeys(client for client, _ in given):
            filled[client] = statistics.fmean(value for (one, _), value in given.items() if one == client)


def _name_learner(entry: Result) -> str:
    """Method and variant; the noise of a paper's own formula makes another row."""
    same = entry.variant in ("default", "baseline", entry.method)
    name = str(entry.method) if same else f"{entry.method} · {entry.variant}"
    return name + (" (as published)" if entry.calibrated_by == "published" else "")
