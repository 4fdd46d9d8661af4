"""What each client of a federation gets from each choice that it has, averaged over seeds: behind tables and letters.

    found = client_choices.read(records)
    found.value("features", 4.0, join(Trust.SUMS), "Harvard1")    mean of the metric, None where it was not measured

A ``ClientChoice`` is what one client can do: stay alone, join, give everything to one curator, or stay out and ask the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from fedgraph.cells import ClientResultCellFacts, Result
from fedgraph.federation import WorldKind
from fedgraph.privacy import Trust
from fedgraph.report import chance
from fedgraph.report.sections.base import SectionRecords

EVERYBODY = "all"  # in the place of a client
TRUST_WORDS = {Trust.SUMS: "sums only", Trust.OWN_CLIENT: "server sees messages"}
RECALL, PRECISION, ACCURACY, AUC = "recall_at_alerts", "average_precision_positive", "accuracy", "auc"
METRICS = {
    RECALL: "share found among the alerts", PRECISION: "average precision", ACCURACY: "test accuracy", AUC: "AUC of edges",
}  # fmt: skip
OTHER_METRICS = {"hits_at_50": "Hits@50", "mrr": "MRR"}  # of ties, too
FEWEST_SEEDS = 3  # below, nobody is advised


class OwnFit(Enum):
    """What a client fits to its own data in clear, beside the shared model."""

    NOTHING = ""
    HEAD = "own head"
    WEIGHTS = "own weights"


@dataclass(frozen=True)
class ClientChoice:
    """What one client can do."""

    kind: WorldKind  # of the world that the model was trained in
    trust: Trust
    out: bool = False  # whether the others trained without this client, which asks them
    own: OwnFit = OwnFit.NOTHING  # what the client fitted to its own data

    @property
    def words(self) -> str:
        """As tables show it."""
        if self.kind is WorldKind.WHOLE:
            return "one curator"
        if self.out:
            return f"left out ({TRUST_WORDS[self.trust]})"
        first = "alone" if self.kind is WorldKind.ALONE else f"joined, {TRUST_WORDS[self.trust]}"
        return first + (f", {self.own.value}" if self.own.value else "")


def join(trust: Trust, own: OwnFit = OwnFit.NOTHING) -> ClientChoice:
    """All clients together."""
    return ClientChoice(WorldKind.TOGETHER, trust, False, own)


def leave_out(trust: Trust) -> ClientChoice:
    """The choice that the others train together, and this client uses their model."""
    return ClientChoice(WorldKind.TOGETHER, trust, True)


ALONE = ClientChoice(WorldKind.ALONE, Trust.OWN_CLIENT)
CURATOR = ClientChoice(WorldKind.WHOLE, Trust.CURATOR)
JOINED = tuple(map(join, TRUST_WORDS))
ADAPTED = tuple(join(trust, own) for trust in TRUST_WORDS for own in OwnFit)
_KEPT = (ALONE, ClientChoice(WorldKind.ALONE, Trust.OWN_CLIENT, False, OwnFit.HEAD))  # what a client can have without others
_OUT = tuple(map(leave_out, TRUST_WORDS))
EVERY = (*_KEPT, CURATOR, *ADAPTED, *_OUT)  # in the order of a table
OF_ONE_CLIENT = (*ADAPTED, *_OUT, CURATOR)  # in that of a table of clients
_OWN = {"personalised": OwnFit.HEAD, "own weights": OwnFit.WEIGHTS}  # participation of a record → what the client fitted
_Key = tuple[str, float, ClientChoice, str]  # learner, ε, choice, client


@dataclass(frozen=True, eq=False)
class ClientChoices:
    """What every choice gave every client."""

    metric: str  # what is compared, one of ``METRICS`` or ``OTHER_METRICS``
    clients: dict[str, int]  # name → how many nodes it holds
    learners: tuple[str, ...]  # methods with their variants, in the order of the run
    epsilons: tuple[float, ...]  # the ε that were asked for, least first
    delta: float = math.nan  # of the rows; NaN where there is none
    unit: str = "node"  # what is private
    assumed: frozenset[str] = frozenset()  # all that the statements of the rows assume, as words of ``Assumption``
    alerts: float | None = None  # share of the nodes that can be looked at; None where no list is made
    called: tuple[str, str] = ("person", "people")  # what a node is called, and several
    short: bool = False  # whether the run was made with ``--quick``
    # (learner, ε, choice, client) → the metric by seed; a seed whose cell failed is not there
    values: dict[_Key, dict[int, float]] = field(default_factory=dict)
    prices: dict[_Key, float] = field(default_factory=dict)  # the same → the largest ε of that client's units
    # as ``values``, by seed: (which of the client's tested nodes were answered rightly, or how well each hidden tie was
    # (``cells.task_facts.pack_answers``); how many there were)
    answers: dict[_Key, dict[int, tuple[str, int]]] = field(default_factory=dict)
    toward: dict[ClientChoice, str] = field(default_factory=dict)  # choice → from whom its ε protects
    # client → how many of its nodes were counted, over all seeds; of ``RECALL``, how many that are looked for
    tested: dict[str, float] = field(default_factory=dict)
    reachable: dict[str, float] = field(default_factory=dict)  # client → the largest ``RECALL`` that a perfect list would have
    usual: dict[str, float] = field(default_factory=dict)  # client → share of the largest class among its tested nodes

    def value(self, learner: str, epsilon: float, choice: ClientChoice, client: str = EVERYBODY) -> float | None:
        found = self.values.get((learner, epsilon, choice, client))
        return statistics.fmean(found.values()) if found else None

    def spread(self, learner: str, epsilon: float, choice: ClientChoice) -> str:
        """Mean ± standard deviation over seeds, of everybody's nodes; ``—`` where it was not measured."""
        found = list(self.values.get((learner, epsilon, choice, EVERYBODY), {}).values())
        if not found:
            return "—"
        return f"{statistics.fmean(found):.3f}" + (f" ± {statistics.stdev(found):.3f}" if len(found) > 1 else "")

    def price(self, learner: str, epsilon: float, choice: ClientChoice, client: str = EVERYBODY) -> float | None:
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

    @property
    def undecided(self) -> bool:
        """Whether nobody is advised: the run was shrunk, or repeated too seldom."""
        return self.short or self.seeds < FEWEST_SEEDS

    def tested_once(self, client: str) -> int:
        """How many of the client's nodes were counted in one repetition."""
        return round(self.tested.get(client, 0.0) / max(1, self.seeds))

    def kept_by(self, client: str) -> list[_Key]:
        """Every model that a client makes alone and keeps, noised ones too, as far as it was measured in enough seeds."""
        return self._often([(one, e, kept, client) for one in self.learners for e in self.epsilons for kept in _KEPT])

    def _often(self, keys: Sequence[_Key]) -> list[_Key]:
        """Those that were repeated as often as an advice needs, where others were."""
        return [key for key in keys if len(self.values.get(key, ())) >= max(1, min(self.seeds, FEWEST_SEEDS))]

    def joined_by(self, client: str, epsilon: float) -> list[_Key]:
        """Every way of joining within ``epsilon``, with each thing that the client may fit to its own data."""
        picked = self.best(epsilon, JOINED)
        if picked is None:
            return []
        kept = [learner for learner in self.learners if self._keeps(learner, epsilon, picked[1])]
        return self._often([(one, epsilon, join(picked[1].trust, own), client) for one in kept for own in OwnFit])

    def _keeps(self, learner: str, epsilon: float, choice: ClientChoice) -> bool:
        return (self.price(learner, epsilon, choice) or 0.0) <= epsilon * (1 + 1e-9)

    def mean(self, key: _Key) -> float:
        """Over seeds, of something that was measured."""
        return statistics.fmean(self.values[key].values())

    def gain(self, client: str, epsilon: float) -> float | None:
        """What the best way of joining at ``epsilon`` gives beyond a model that the client makes alone and keeps.

        Both sides are the client's own best of everything that was tried there. None where one of the two was not measured; 0
        where chance alone may make the difference, the number of pairs and budgets among which this one was picked taken into
        account.
        """
        kept, ways = self.kept_by(client), self.joined_by(client, epsilon)
        if not kept or not ways:
            return None
        base, best = max(kept, key=self.mean), max(ways, key=self.mean)
        tried = len(kept) * len(ways) * sum(map(math.isfinite, self.epsilons))
        gain = self.difference(best, base)
        return gain if abs(gain) > chance.correct_chance_errors(tried) * self.error(best, base) else 0.0

    def difference(self, one: _Key, other: _Key) -> float:
        """How much larger the first number is on the seeds in which both were measured; of all seeds where there is none."""
        both = self.values[one].keys() & self.values[other].keys()
        means = [statistics.fmean(v for s, v in self.values[key].items() if s in both or not both) for key in (one, other)]
        return means[0] - means[1]

    def error(self, one: _Key, other: _Key) -> float:
        """Standard error of ``difference``; answers, and numbers of one seed, are compared one by one, where known."""
        first, second = self.answers.get(one, {}), self.answers.get(other, {})
        both = sorted(first.keys() & second.keys())
        paired = [chance.paired_chance_variance(first[s][0], second[s][0], first[s][1]) for s in both]
        known = [variance for variance in paired if variance is not None]
        if self.metric not in (ACCURACY, AUC) or not known:
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
        run = {key[2] for key in self.values}
        return [c for c in choices if c in run]


def read(records: SectionRecords, metric: str | None = None) -> ClientChoices:
    """What every cell says of its clients. metric: what is compared; None: the first of ``METRICS`` that was measured."""
    entries = records.entries
    every = [(e, told) for e in entries for told in e.facts.results]
    metric = metric or next((m for m in METRICS if any(m in told.metrics for _, told in every)), ACCURACY)
    clients: dict[str, int] = {}
    for _, told in every:
        if told.client != EVERYBODY:
            clients[told.client] = max(clients.get(told.client, 0), told.nodes)
    protections = [e.protection for e in entries if e.protection]
    asked = {name: records.settings[name] for name in ("alerts", "called") if records.settings.get(name) is not None}
    found = ClientChoices(
        metric, clients, tuple(dict.fromkeys(map(_learner, entries))), tuple(sorted({e.epsilon for e in entries})),
        delta=entries[0].delta or math.nan, unit=protections[0].unit.value if protections else "node",
        assumed=frozenset(a.value for p in protections for a in p.assumptions), short=records.short, **asked,  # type: ignore[arg-type]
    )  # fmt: skip
    _count(found, every)
    for entry, told in every:
        own, world = _OWN.get(told.participation, OwnFit.NOTHING), entry.world
        choice = ClientChoice(world.kind, world.trust, world.without is not None, own)
        key = (_learner(entry), entry.epsilon, choice, told.client)
        found.prices[key] = max(found.prices.get(key, 0.0), told.epsilon)
        if told.right:
            found.answers.setdefault(key, {})[entry.seed] = (told.right, told.tested)
        if metric in told.metrics:
            found.values.setdefault(key, {})[entry.seed] = told.metrics[metric]
            found.toward[choice] = told.toward
    return found


def _count(found: ClientChoices, every: Sequence[tuple[Result, ClientResultCellFacts]]) -> None:
    """Fill ``tested``, ``usual`` and ``reachable``: sums and means over seeds of what any record of a seed says."""
    sizes, shares, most = (dict[tuple[str, int], float]() for _ in range(3))
    for entry, told in every:
        key = (told.client, entry.seed)
        if "majority_share" in told.metrics:
            shares[key] = told.metrics["majority_share"]
        size = float(told.sought if found.metric == RECALL else told.tested)
        if size:
            sizes[key] = max(sizes.get(key, 0.0), size)
            most[key] = min(1.0, max(1, round((found.alerts or 1.0) * told.tested)) / size)
    for (client, _), size in sizes.items():
        found.tested[client] = found.tested.get(client, 0.0) + size
    for given, filled in ((shares, found.usual), (most, found.reachable if found.metric == RECALL else {})):
        for client in dict.fromkeys(client for client, _ in given):
            filled[client] = statistics.fmean(value for (one, _), value in given.items() if one == client)


def _learner(entry: Result) -> str:
    """Method and variant; the noise of a paper's own formula makes another row."""
    same = entry.variant in ("default", "baseline", entry.method)
    name = entry.method if same else f"{entry.method} · {entry.variant}"
    return name + (" (as published)" if entry.calibrated_by == "published" else "")
