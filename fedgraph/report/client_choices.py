"""What each client of a federation gets from each choice that it has, over seeds: behind tables and letters.

    found = client_choices.read(records)
    found.value("features", 4.0, join(Trust.SUMS), "Harvard1")    mean of the metric, None where it was not measured

A choice is what one client can do, in the words of a table: stay alone, join, give everything to one curator, or stay out and
ask the others.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas

from fedgraph.cells import ClientResultCellFacts, Result
from fedgraph.federation import World, WorldKind
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
HEAD, WEIGHTS = ", own head", ", own weights"  # what a client fits to its own data in clear, beside the shared model
_OWN = {"personalised": HEAD, "own weights": WEIGHTS}  # participation of a record → what the client fitted
FITS = ("", *_OWN.values())


def join(trust: Trust, own: str = "") -> str:
    """All clients together."""
    return f"joined, {TRUST_WORDS.get(trust, trust.value)}{own}"


def leave_out(trust: Trust) -> str:
    """The choice that the others train together, and this client uses their model."""
    return f"left out ({TRUST_WORDS.get(trust, trust.value)})"


ALONE, CURATOR = "alone", "one curator"
JOINED = {join(trust): trust for trust in TRUST_WORDS}
ADAPTED = tuple(join(trust, own) for trust in TRUST_WORDS for own in FITS)
_KEPT = (ALONE, ALONE + HEAD)  # what a client can have without others
_OUT = tuple(map(leave_out, TRUST_WORDS))
EVERY = (*_KEPT, CURATOR, *ADAPTED, *_OUT)  # in the order of a table
OF_ONE_CLIENT = (*ADAPTED, *_OUT, CURATOR)  # in that of a table of clients
_Key = tuple[str, float, str, str]  # learner, ε, choice, client


@dataclass(frozen=True, eq=False)
class ClientChoices:
    """What every choice gave every client."""

    metric: str  # what is compared, one of ``METRICS`` or ``OTHER_METRICS``
    told: Mapping[_Key, Mapping[int, ClientResultCellFacts]]  # by seed; a seed whose cell failed is not there
    learners: tuple[str, ...]  # methods with their variants, in the order of the run
    epsilons: tuple[float, ...]  # the ε that were asked for, least first
    clients: Mapping[str, int]  # name → how many nodes it holds
    # client → how many of its nodes were counted, over all seeds; of ``RECALL``, how many that are looked for
    tested: dict[str, float]
    usual: Mapping[str, float]  # client → share of the largest class among its tested nodes
    reachable: Mapping[str, float]  # client → the largest ``RECALL`` that a perfect list would have
    delta: float = math.nan  # of the rows; NaN where there is none
    unit: str = "node"  # what is private
    assumed: frozenset[str] = frozenset()  # all that the statements of the rows assume, as words of ``Assumption``
    alerts: float | None = None  # share of the nodes that can be looked at; None where no list is made
    called: tuple[str, str] = ("person", "people")  # what a node is called, and several
    short: bool = False  # whether the run was made with ``--quick``

    @cached_property
    def values(self) -> dict[_Key, dict[int, float]]:
        """The metric by seed, of what has it."""
        name = self.metric
        found = {key: {s: one.metrics[name] for s, one in of.items() if name in one.metrics} for key, of in self.told.items()}
        return {key: values for key, values in found.items() if values}

    def value(self, learner: str, epsilon: float, choice: str, client: str = EVERYBODY) -> float | None:
        found = self.values.get((learner, epsilon, choice, client))
        return statistics.fmean(found.values()) if found else None

    def spread(self, learner: str, epsilon: float, choice: str) -> str:
        """Mean ± standard deviation over seeds, of everybody's nodes; ``—`` where it was not measured."""
        found = list(self.values.get((learner, epsilon, choice, EVERYBODY), {}).values())
        if not found:
            return "—"
        return f"{statistics.fmean(found):.3f}" + (f" ± {statistics.stdev(found):.3f}" if len(found) > 1 else "")

    def price(self, learner: str, epsilon: float, choice: str, client: str = EVERYBODY) -> float | None:
        """The largest ε of that client's units."""
        return max((one.epsilon for one in self.told.get((learner, epsilon, choice, client), {}).values()), default=None)

    def toward(self, choice: str) -> str:
        """From whom its ε protects."""
        found = [every for (_, _, made, _), every in self.told.items() if made == choice]
        return next((one.toward for every in found[::-1] for one in every.values() if self.metric in one.metrics), "")

    def present(self, choices: Sequence[str]) -> list[str]:
        """Those of ``choices`` that were run."""
        run = {key[2] for key in self.values}
        return [c for c in choices if c in run]

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

    def mean(self, key: _Key) -> float:
        """Over seeds, of something that was measured."""
        return statistics.fmean(self.values[key].values())

    def difference(self, one: _Key, other: _Key) -> float:
        """How much larger the first number is on the seeds in which both were measured; of all seeds where there is none."""
        both = self.values[one].keys() & self.values[other].keys()
        means = [statistics.fmean(v for s, v in self.values[key].items() if s in both or not both) for key in (one, other)]
        return means[0] - means[1]

    def error(self, one: _Key, other: _Key) -> float:
        """Standard error of ``difference``; answers, and numbers of one seed, are compared one by one, where known."""
        first, second = self.told[one], self.told[other]
        both = sorted(seed for seed in first.keys() & second.keys() if first[seed].right and second[seed].right)
        paired = [chance.paired_chance_variance(first[s].right, second[s].right, first[s].tested) for s in both]
        known = [variance for variance in paired if variance is not None]
        if self.metric not in (ACCURACY, AUC) or not known:
            return self.chance(one[3], self.mean(other)) / chance.CHANCE_STANDARD_ERRORS
        differences = [a - self.values[other][seed] for seed, a in self.values[one].items() if seed in self.values[other]]
        seeds = statistics.variance(differences) / len(differences) if len(differences) > 1 else 0.0
        return math.sqrt(max(statistics.fmean(known), seeds))

    def kept_by(self, client: str) -> list[_Key]:
        """Every model that a client makes alone and keeps, noised ones too, as far as it was measured in enough seeds."""
        return self._often([(one, e, kept, client) for one in self.learners for e in self.epsilons for kept in _KEPT])

    def joined_by(self, client: str, epsilon: float) -> list[_Key]:
        """Every way of joining within ``epsilon``, with each thing that the client may fit to its own data."""
        picked = self.best(epsilon, tuple(JOINED))
        if picked is None:
            return []
        kept = [learner for learner in self.learners if self._keeps(learner, epsilon, picked[1])]
        return self._often([(one, epsilon, picked[1] + own, client) for one in kept for own in FITS])

    def _often(self, keys: Sequence[_Key]) -> list[_Key]:
        """Those that were repeated as often as an advice needs, where others were."""
        return [key for key in keys if len(self.values.get(key, ())) >= max(1, min(self.seeds, FEWEST_SEEDS))]

    def _keeps(self, learner: str, epsilon: float, choice: str) -> bool:
        return (self.price(learner, epsilon, choice) or 0.0) <= epsilon * (1 + 1e-9)

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

    def best(self, epsilon: float, choices: Sequence[str]) -> tuple[str, str] | None:
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

    def inside(self) -> tuple[str, float, str] | None:
        """(learner, ε, choice) of the best model that a client makes alone and keeps: of any ε, since a kept one needs none."""
        keys = [(one, e, kept) for one in self.learners for e in self.epsilons for kept in _KEPT]
        found = {key: value for key in keys if (value := self.value(*key)) is not None}
        return max(found, key=lambda key: (found[key], key[0], key[1], _KEPT.index(key[2])), default=None)


def read(records: SectionRecords, metric: str | None = None, unit: str = "") -> ClientChoices:
    """What every cell says of its clients.

    Args:
        metric: what is compared; None: the first of ``METRICS`` that was measured.
        unit: what is private; empty: as the first protection says.
    """
    entries, held = records.entries, [e.protection for e in records.entries if e.protection]
    every = [(e, one) for e in entries for one in e.facts.results]
    metric = metric or next((m for m in METRICS if any(m in one.metrics for _, one in every)), ACCURACY)
    asked = {name: given for name in ("alerts", "called") if (given := records.settings.get(name)) is not None}
    alerts = float(str(asked.get("alerts", 1.0)))
    told: dict[_Key, dict[int, ClientResultCellFacts]] = {}
    for entry, one in every:
        key = (_learner(entry), entry.epsilon, _choice(entry.world, one.participation), one.client)
        told.setdefault(key, {})[entry.seed] = one
    counts = pandas.DataFrame(
        {"client": one.client, "seed": entry.seed, "nodes": one.nodes, "share": one.metrics.get("majority_share"),
         "size": (size := one.sought if metric == RECALL else one.tested),
         "most": min(1.0, max(1, round(alerts * one.tested)) / size) if size and metric == RECALL else None}
        for entry, one in every
    ).groupby(["client", "seed"], sort=False)  # fmt: skip

    def mean(name: str) -> dict[str, float]:
        return counts[name].last().astype(float).dropna().groupby("client", sort=False).agg(statistics.fmean).to_dict()

    tested = counts["size"].max().groupby("client", sort=False).sum()
    return ClientChoices(
        metric, told, tuple(dict.fromkeys(map(_learner, entries))), tuple(sorted({e.epsilon for e in entries})),
        counts["nodes"].max().groupby("client", sort=False).max().drop(EVERYBODY, errors="ignore").to_dict(),
        tested[tested > 0].to_dict(), mean("share"), mean("most"), delta=entries[0].delta or math.nan,
        unit=unit or (held[0].unit.value if held else "node"),
        assumed=frozenset(a.value for one in held for a in one.assumptions), short=records.short, **asked,  # type: ignore[arg-type]
    )  # fmt: skip


def _choice(world: World, participation: str) -> str:
    own = _OWN.get(participation, "")
    if world.kind is WorldKind.WHOLE:
        return CURATOR if world.trust is Trust.CURATOR else world.trust.value
    if world.kind is WorldKind.ALONE:
        return ALONE + own
    return join(world.trust, own) if world.without is None else leave_out(world.trust)


def _learner(entry: Result) -> str:
    """Method and variant; the noise of a paper's own formula makes another row."""
    same = entry.variant in ("default", "baseline", entry.method)
    name = entry.method if same else f"{entry.method} · {entry.variant}"
    return name + (" (as published)" if entry.calibrated_by == "published" else "")
