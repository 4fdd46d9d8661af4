"""Owners: what each choice is worth to everybody, what each client gains by joining, who loses; and a letter to each owner.

    found = participation.read(records)
    found.value("features", 4.0, join(Trust.SUMS), "Harvard1")    mean of the metric, None where it was not measured

A choice is what one client can do, in the words of a table: stay alone, join, give everything to one curator, or stay out and
ask the others. Letters speak in plain words, whole numbers out of 100, and one table; no symbol but ε. A difference that chance
alone may make (``ClientChoices.chance``) is called none. The words stand in ``templates/owners.txt`` and ``owner.txt``.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pandas

from fedgraph.cells import ClientResultCellFacts, Result
from fedgraph.federation import World, WorldKind
from fedgraph.privacy import Trust, Unit
from fedgraph.report import chance, phrases
from fedgraph.report.sections.base import Section, SectionLetter, SectionRecords
from fedgraph.types import counted, in_words_of

KINDS = ("participation", "link_prediction")  # the tasks that this section speaks of
EVERYBODY = "all"  # in the place of a client
TRUST_WORDS = {Trust.SUMS: "sums only", Trust.OWN_CLIENT: "server sees messages"}
RECALL, ACCURACY, AUC = "recall_at_alerts", "accuracy", "auc"
_OTHER_METRICS = {"hits_at_50": "Hits@50", "mrr": "MRR"}  # of ties, too
_FEWEST_SEEDS = 3  # below, nobody is advised
_HEAD, _WEIGHTS = ", own head", ", own weights"  # what a client fits to its own data in clear, beside the shared model
_OWN = {"personalised": _HEAD, "own weights": _WEIGHTS}  # participation of a record → what the client fitted
_FITS = {"": "", _HEAD: "the last step", _WEIGHTS: "the whole model"}
_PROTECTED = {Unit.EDGE: "edge", Unit.NODE: "node with all its edges", Unit.ENTITY: "owner with all its records"}


def join(trust: Trust, own: str = "") -> str:
    """All clients together."""
    return f"joined, {TRUST_WORDS.get(trust, trust.value)}{own}"


def leave_out(trust: Trust) -> str:
    """The choice that the others train together, and this client uses their model."""
    return f"left out ({TRUST_WORDS.get(trust, trust.value)})"


ALONE, _CURATOR, JOINED = "alone", "one curator", {join(trust): trust for trust in TRUST_WORDS}
_KEPT = (ALONE, ALONE + _HEAD)  # what a client can have without others
_Key = tuple[str, float, str, str]  # learner, ε, choice, client


@dataclass(frozen=True, eq=False)
class ClientChoices:
    """What every choice gave every client."""

    metric: str  # what is compared
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
        """The mean over seeds; None where it was not measured."""
        found = self.values.get((learner, epsilon, choice, client))
        return statistics.fmean(found.values()) if found else None

    def mean(self, key: _Key) -> float:
        """As ``value``, of something that was measured."""
        return statistics.fmean(self.values[key].values())

    def price(self, learner: str, epsilon: float, choice: str, client: str = EVERYBODY) -> float | None:
        """The largest ε of that client's units."""
        return max((one.epsilon for one in self.told.get((learner, epsilon, choice, client), {}).values()), default=None)

    def chance(self, client: str, value: float) -> float:
        """A difference from ``value`` that chance alone may make: two standard errors of two shares of the tested nodes.

        The least variance is that of Laplace's rule of succession, so that one node alone never makes a difference. Of numbers
        in 0 … 1 (the share of pairs below a tie, Hits@k and 1 / rank) no variance is larger than that of a share.
        """
        tested = self.tested.get(client)
        if not tested:
            return 0.0
        width = math.sqrt(2 * max(value * (1 - value), 0.01, (tested + 1) / (tested + 2) ** 2) / tested)
        return min(1.0, max(chance.STANDARD_ERRORS * width, 1 / tested + 1e-9))

    def alike(self, client: str, value: float, base: float) -> bool:
        """Whether chance alone may make their difference, or nobody sees it in whole numbers of 100."""
        return round(100 * value) == round(100 * base) or abs(value - base) <= self.chance(client, base)

    @property
    def seeds(self) -> int:
        """How many repetitions the numbers are means of."""
        return max((len(found) for found in self.values.values()), default=0)

    @property
    def undecided(self) -> bool:
        """Whether nobody is advised: the run was shrunk, or repeated too seldom."""
        return self.short or self.seeds < _FEWEST_SEEDS

    def difference(self, one: _Key, other: _Key) -> float:
        """How much larger the first number is on the seeds in which both were measured; of all seeds where there is none."""
        both = self.values[one].keys() & self.values[other].keys()
        means = [statistics.fmean(v for s, v in self.values[key].items() if s in both or not both) for key in (one, other)]
        return means[0] - means[1]

    def error(self, one: _Key, other: _Key) -> float:
        """Standard error of ``difference``; answers, and numbers of one seed, are compared one by one, where known."""
        first, second = self.told[one], self.told[other]
        both = sorted(seed for seed in first.keys() & second.keys() if first[seed].right and second[seed].right)
        paired = [chance.paired_variance(first[s].right, second[s].right, first[s].tested) for s in both]
        known = [variance for variance in paired if variance is not None]
        if self.metric not in (ACCURACY, AUC) or not known:
            return self.chance(one[3], self.mean(other)) / chance.STANDARD_ERRORS
        differences = [a - self.values[other][seed] for seed, a in self.values[one].items() if seed in self.values[other]]
        seeds = statistics.variance(differences) / len(differences) if len(differences) > 1 else 0.0
        return math.sqrt(max(statistics.fmean(known), seeds))

    def kept_by(self, client: str) -> list[_Key]:
        """Every model that a client makes alone and keeps, noised ones too, as far as it was measured in enough seeds."""
        return self._often([(one, e, kept, client) for one in self.learners for e in self.epsilons for kept in _KEPT])

    def joined_by(self, client: str, epsilon: float) -> list[_Key]:
        """Every way of joining within ``epsilon``, with each thing that the client may fit to its own data."""
        _, choice = self.best(epsilon, tuple(JOINED)) or ("", "")
        kept = [learner for learner in self.learners if choice and self._keeps(learner, epsilon, choice)]
        return self._often([(one, epsilon, choice + own, client) for one in kept for own in _FITS])

    def _often(self, keys: Sequence[_Key]) -> list[_Key]:
        """Those that were repeated as often as an advice needs, where others were."""
        return [key for key in keys if len(self.values.get(key, ())) >= max(1, min(self.seeds, _FEWEST_SEEDS))]

    def _keeps(self, learner: str, epsilon: float, choice: str) -> bool:
        return (self.price(learner, epsilon, choice) or 0.0) <= epsilon * (1 + 1e-9)

    def gain(self, client: str, epsilon: float) -> float | None:
        """What the best way of joining at ``epsilon`` gives beyond the best model that the client makes alone and keeps.

        None where one of the two was not measured; 0 where chance alone may make the difference, the number of pairs and
        budgets among which this one was picked taken into account.
        """
        kept, ways = self.kept_by(client), self.joined_by(client, epsilon)
        if not kept or not ways:
            return None
        base, best = max(kept, key=self.mean), max(ways, key=self.mean)
        gain, tried = self.difference(best, base), len(kept) * len(ways) * sum(map(math.isfinite, self.epsilons))
        return gain if abs(gain) > chance.corrected(tried) * self.error(best, base) else 0.0

    def best(self, epsilon: float, choices: Sequence[str]) -> tuple[str, str] | None:
        """(learner, choice): the largest value over everybody's nodes of those that keep ``epsilon``, of the first choice run;
        None where no choice was run."""
        for choice in choices:
            values = [(self.value(one, epsilon, choice), one) for one in self.learners if self._keeps(one, epsilon, choice)]
            if kept := [(value, one) for value, one in values if value is not None]:
                return max(kept)[1], choice
        return None

    def picked(self, client: str, epsilon: float) -> tuple[str, str] | None:
        """(learner, choice) of the best way of joining for this client; for everybody where nothing was measured for it."""
        best, ways = self.best(epsilon, tuple(JOINED)), self.joined_by(client, epsilon)
        return best if best is None or not ways else (max(ways, key=self.mean)[0], best[1])

    def reached(self, client: str, epsilon: float, left: bool = False) -> float | None:
        """What ``picked`` gives this client; with ``left`` what it has of the others, who joined so without it."""
        learner, choice = self.picked(client, epsilon) or ("", "")
        return self.value(learner, epsilon, leave_out(JOINED[choice]) if left and choice else choice, client)

    def inside(self) -> tuple[str, float, str] | None:
        """(learner, ε, choice) of the best model that a client makes alone and keeps: of any ε, since a kept one needs none."""
        keys = [(one, e, kept) for one in self.learners for e in self.epsilons for kept in _KEPT]
        found = {key: value for key in keys if (value := self.value(*key)) is not None}
        return max(found, key=lambda key: (found[key], key[0], key[1], _KEPT.index(key[2])), default=None)


def read(records: SectionRecords, metric: str | None = None, unit: str = "") -> ClientChoices:
    """What every cell says of its clients.

    metric: What is compared; None: the first that was measured. unit: What is private; empty: as the first protection says.
    """
    entries, held = records.entries, [e.protection for e in records.entries if e.protection]
    every = [(e, one) for e in entries for one in e.facts.results]
    metric = metric or next((m for m in (RECALL, ACCURACY, AUC) if any(m in one.metrics for _, one in every)), ACCURACY)
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
        return _CURATOR if world.trust is Trust.CURATOR else world.trust.value
    if world.kind is WorldKind.ALONE:
        return ALONE + own
    return join(world.trust, own) if world.without is None else leave_out(world.trust)


def _learner(entry: Result) -> str:
    """Method and variant; the noise of a paper's own formula makes another row."""
    same = entry.variant in ("default", "baseline", entry.method)
    name = entry.method if same else f"{entry.method} · {entry.variant}"
    return name + (" (as published)" if entry.calibrated_by == "published" else "")


# ---- what the page says ----------------------------------------------------------------------------------------------


def build(records: SectionRecords) -> Section:
    """Whether joining pays, and the letters; nothing where owners are not compared."""
    if not any(e.facts.results for e in records.entries):
        return Section()
    beside: list[ClientChoices] = []
    unit = None
    if records.kind == "link_prediction":
        unit, entries = _of_one_unit(records.entries)
        records = replace(records, entries=tuple(entries), lines=())
        beside = [also for metric in _OTHER_METRICS if (also := read(records, metric)).values]
    found = read(records, unit=unit.value if unit else "")
    facts, one = records.entries[0].facts, records.entries[0].facts.one
    worlds = {entry.world for entry in records.entries if entry.world.kind is not WorldKind.ALONE}
    without = Counter(world.without for world in worlds if world.without is not None)  # each client meets all but its own
    own = len(worlds) - (min(without.values()) if len(without) == len(found.clients) else 0)
    finite = [e for e in found.epsilons if math.isfinite(e)]
    text = phrases.template("owners.txt", escaped=False).render(
        f=found, kind=records.kind, label=records.label, facts=facts,
        protected=_PROTECTED[unit or Unit.EDGE], own=own,
        kept=found.inside(), joined=[(e, best) for e in finite if (best := found.best(e, tuple(JOINED)))],
        gained=_gained(found), fewest=_FEWEST_SEEDS, count=counted, number=phrases.rounded,
        seeds=len({e.seed for e in records.entries}), say=partial(in_words_of, one),
    )  # fmt: skip
    first, said = (tuple(filter(None, part.split("\n"))) for part in text.split("---\n"))
    letters = write_letters(found, records.dataset, beside)
    return Section(tuple(in_words_of(one, line) for line in said), letters=letters, first=first)


def _of_one_unit(entries: Sequence[Result]) -> tuple[Unit, list[Result]]:
    """(the largest unit that a price is about, the cells whose price is about it, or that have none): units never mix."""
    priced = {e.protection.unit for e in entries if e.protection and 0 < e.epsilon_provable < math.inf}
    unit = next((one for one in (Unit.ENTITY, Unit.NODE) if one in priced), Unit.EDGE)
    same = [e for e in entries if e.protection and (e.protection.unit is unit or not 0 < e.epsilon_provable < math.inf)]
    return unit, same


def _gained(found: ClientChoices) -> list[tuple[float, dict[str, float], list[str], list[str]]]:
    """For each finite ε: it, the gain of each client, who gains (most first), who loses (most first)."""
    told = []
    for epsilon in filter(math.isfinite, found.epsilons):
        if gains := {c: g for c in found.clients if (g := found.gain(c, epsilon)) is not None}:
            better, worse = (sorted((c for c in gains if s * gains[c] > 0), key=lambda c: -abs(gains[c])) for s in (1, -1))
            told.append((epsilon, gains, better, worse))
    return told


# ---- letters: is it worth joining for my people, and what could others learn of one of them? ---------------------------


def write_letters(found: ClientChoices, dataset: str, beside: Sequence[ClientChoices] = ()) -> tuple[SectionLetter, ...]:
    """One letter per client, in the order of the data. beside: the same cells by other measures, for its table."""
    return tuple(_letter(found, dataset, client, beside) for client in found.clients)


def _letter(found: ClientChoices, dataset: str, client: str, beside: Sequence[ClientChoices] = ()) -> SectionLetter:
    base = max((found.mean(key) for key in found.kept_by(client)), default=None)
    finite = [e for e in found.epsilons if math.isfinite(e)]
    gains = {e: gain for e in finite if (gain := found.gain(client, e)) is not None}
    text = phrases.template("owner.txt", escaped=False).render(
        f=found, client=client, dataset=dataset, unit=(unit := _unit_word(found)), base=base, finite=finite, inf=math.inf,
        linked=found.metric == AUC, fewest=_FEWEST_SEEDS, gains=gains, better=[e for e, gain in gains.items() if gain > 0],
        same=[e for e, gain in gains.items() if gain == 0], number=phrases.rounded, sums=join(Trust.SUMS), fits=_FITS,
        tested=round(found.tested.get(client, 0.0) / max(1, found.seeds)), often=lambda price: _in_hundred(price, found.delta),
    )  # fmt: skip
    answer, said, last = ([*filter(None, part.split("\n"))] for part in text.split("---\n"))
    run = {key[2] for key in found.values if key[3] == client}
    others = (*(join(trust, own) for trust in TRUST_WORDS for own in _FITS), *map(leave_out, TRUST_WORDS))
    columns = [choice for choice in (ALONE, *others, _CURATOR) if choice in run]
    header = ("ε", *columns, f"others are right about one {unit}", *(() if found.undecided else ("verdict",)))
    rows = tuple(_row(found, client, epsilon, shown, columns) for shown in (found, *beside) for epsilon in found.epsilons)
    return SectionLetter(client, f"For the owner of {client}", "".join(answer), tuple(said), header, rows, tuple(last))


def _unit_word(found: ClientChoices) -> str:
    one, many = found.called
    if found.unit == "edge":
        return f"tie between two {many}"
    if found.metric == AUC:  # who exists is public there, and all ties of somebody are private
        return f"{one}'s ties" if found.unit == "node" else "owner's ties"
    return one


def _row(found: ClientChoices, client: str, epsilon: float, shown: ClientChoices, columns: Sequence[str]) -> tuple[str, ...]:
    """A line of the table. shown: ``found``, or the same cells by another measure; rows are picked by ``found``."""
    picked = found.picked(client, epsilon) or found.best(epsilon, (_CURATOR, ALONE))
    linked = shown.metric in (AUC, *_OTHER_METRICS)  # two standard errors of one number; of a difference √2 times that
    cells = []
    for choice in columns:
        own = found.best(epsilon, (ALONE,)) if choice == ALONE else picked
        value = None if own is None else shown.value(own[0], epsilon, choice, client)
        wide = f" ± {math.ceil(100 * shown.chance(client, value) / math.sqrt(2))}" if linked and value is not None else ""
        cells.append("—" if value is None else f"{100 * value:.0f}{wide}")
    if shown is not found:
        return (f"{phrases.rounded(epsilon)}, {_OTHER_METRICS[shown.metric]}", *cells, "", *(() if found.undecided else ("",)))
    price, gain = None if picked is None else found.price(picked[0], epsilon, picked[1], client), found.gain(client, epsilon)
    verdict = "—" if gain is None else "joining helps" if gain > 0 else "alone is better" if gain < 0 else "no difference"
    learnt = "—" if price is None else _in_hundred(price, found.delta)
    return (phrases.rounded(epsilon), *cells, learnt, *(() if found.undecided else (verdict,)))


def _in_hundred(epsilon: float, delta: float) -> str:
    """``at most 74 of 100 times``, rounded up; near 100 with a second digit."""
    if epsilon == 0:
        return "no more often than by guessing, 50 of 100 times"
    share = right_at_most(epsilon, delta)
    if share >= 0.99995:
        return "up to always: nothing limits it"
    return f"at most {phrases.upper(100 * share, 1 + (share > 0.995))} of 100 times"


def right_at_most(epsilon: float, delta: float) -> float:
    """How often, of 1, an attacker can be right who tells two equally likely worlds apart that differ in one unit.

    (ε, δ) bounds both errors a, b by 1 − a ≤ e^ε b + δ and 1 − b ≤ e^ε a + δ, so 1 − (a + b)/2 ≤ (e^ε + δ)/(1 + e^ε).
    """
    return min(1.0, (1.0 + delta * math.exp(-epsilon)) / (1.0 + math.exp(-epsilon)))
