"""The answer of a run: for each question what was found, which row to use, whom it trusts, at which ε, and what it costs.

    questions = answer.ask(rows.answering(run.rows))
    questions[0].finding                              what to read first
    questions[0].pick                                 the row to use; None where nothing can be recommended
    questions[0].within(1.0, Trust.SUMS)              the best row within an ε and a trust

Three rules. A row is the answer at an ε only if everything that it releases is *provably* within that ε: a row whose provable
ε is ∞ never is. A row whose ε an attack has refuted is never an answer. Units are never mixed: an edge-level row says nothing
about nodes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fedgraph.privacy import Trust
from fedgraph.report.phrases import begin_phrase, phrase_first, phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.rows import Row, beats_guessing, find_doubt, interval, is_worse
from fedgraph.types import counted, in_words_of

UNITS = ("edge", "node", "entity", "client", "graph")  # in the order of questions: whose protection is asked for most first
_ORDER = ("node", "edge", "entity", "client", "graph", "")
_SUBJECT, _CLASSIFY, _METRICS = (read_phrases()[part] for part in ("subject", "classify", "metrics"))
_SAME = "no clear difference"  # beside a number that is not worse by more than chance
_SURE = 0.99  # from this belief on a proof alone protects little
_MOST = 0.75  # of what there is to gain over guessing
_LARGEST_SHARE = 0.1  # of one person that δ may be without a word: with δ = 1/people, publishing one of them is allowed


@dataclass(frozen=True)
class Pick:
    """What to use."""

    row: Row
    budget: float  # the ε within which everything is proven


@dataclass(frozen=True, eq=False)
class Question:
    """Rows that answer one question, about one unit."""

    rows: tuple[Row, ...]  # all of them; those of another unit are there for what they reach without privacy
    unit: str  # whom private rows of this question protect; empty where no private row was asked for
    every: tuple[Row, ...]  # all rows of the run

    @property
    def head(self) -> Row:
        """A row of the question: what is the same for all."""
        return next((row for row in self.rows if row.unit == self.unit and row.private and not row.raw), self.rows[0])

    @cached_property
    def private(self) -> tuple[Row, ...]:
        """Rows that release something private, and were asked to protect it."""
        return tuple(row for row in self.rows if row.private and not row.raw and row.unit == self.unit)

    @cached_property
    def kept(self) -> tuple[Row, ...]:
        """Those of ``private`` that prove an ε and have a number."""
        return tuple(row for row in self.private if row.usable and math.isfinite(row.provable))

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """The finite ε that were asked for, least first."""
        return tuple(sorted({row.target for row in self.private if math.isfinite(row.target)}))

    @cached_property
    def trusts(self) -> tuple[Trust, ...]:
        """From the most trust to the least."""
        return tuple(sorted({row.trust for row in self.private}, key=lambda t: -t.rank))

    @cached_property
    def ceiling(self) -> Row | None:
        """The best row that was asked for no privacy."""
        return max((r for r in self.rows if r.raw and math.isfinite(r.mean)), key=lambda r: r.mean, default=None)

    @cached_property
    def free(self) -> Row | None:
        """The best row that releases nothing private: of the unit, or of a larger one that holds it."""
        sizes = {unit: place for place, unit in enumerate(UNITS)}
        inside = [r for r in self.rows if not r.private and r.usable and sizes.get(r.unit, -1) >= sizes.get(self.unit, 9)]
        return max(inside, key=lambda r: r.mean, default=None)

    @property
    def in_one_hand(self) -> bool:
        """Whether the data are somebody's own and the clients only supposed: a curator holds all of them already."""
        owners = any(row.head.facts.natural for row in self.rows)
        return self.one == "person" and Trust.CURATOR in self.trusts and not owners

    @property
    def guess(self) -> float:
        """What somebody reaches who learnt nothing, over the seeds of the rows that have most of them."""
        return max(((row.seeds, row.guess) for row in self.rows if row.guess), default=(0, 0.0))[1]

    @cached_property
    def doubt(self) -> str:
        """Why nothing can be concluded; empty where something can."""
        return find_doubt(self.rows)

    @property
    def of_graphs(self) -> bool:
        """Whether it is about whole graphs."""
        return self.head.kind.startswith("graph")

    def at(self, budget: float, trust: Trust) -> Row | None:
        """The best row made with this very trust that keeps a budget."""
        return _top([row for row in self.kept if row.trust is trust and row.keeps(budget)])

    def within(self, budget: float, trust: Trust) -> Row | None:
        """The best row that keeps a budget and needs no more than this trust; one that releases nothing competes.

        A method that trusts fewer people serves everybody who would trust more. Where a row that releases nothing of the unit
        (ε = 0) wins, privacy bought nothing.
        """
        able = [row for row in self.kept if row.trust.rank <= trust.rank and row.keeps(budget)]
        return _top([*able, *([self.free] if self.free is not None else [])])

    @cached_property
    def pick(self) -> Pick | None:
        """The smallest ε whose best row has most of what there is to gain; then the least trust that is not worse there.

        Most: ``_MOST`` of what the best row of all gains over guessing, or all of it but for chance; of a rare class also as
        much of what any row finds of it. Not worse: by no more than
        two standard errors. None where nothing can be concluded, no row keeps its ε, none is better than guessing on every
        seed, or none is better than what releases nothing private by more than chance. Where the data lie in one hand, nobody
        has to trust less than that: the answer is a curator's, unless a row of less trust is better there by more than chance.
        """
        if not self.in_one_hand:
            return self._picked(self.trusts)
        own = self._picked((Trust.CURATOR,))
        if own is None:
            return self._picked(self.trusts)
        better = [row for t in self.trusts if (row := self.at(own.budget, t)) is not None and is_worse(own.row, row)]
        better = [row for row in better if beats_guessing(row) and self.repays(row)]
        return Pick(_top(better) or own.row, own.budget)

    def _picked(self, trusts: Sequence[Trust]) -> Pick | None:
        """As ``pick`` says, of rows for which people trust so."""
        best = self.at if trusts == (Trust.CURATOR,) else self.within
        cells = [(b, t, row) for b in self.budgets for t in trusts if (row := best(b, t)) is not None]
        useful = [c for c in cells if beats_guessing(c[2]) and self.repays(c[2])]
        if self.doubt or not useful:
            return None
        top = max((row for *_, row in useful), key=lambda row: row.mean)
        finds = _MOST * max(_share_found(row) for *_, row in useful)
        able = [c for c in useful if _share_found(c[2]) >= finds]
        enough = [b for b, _, row in able if row.mean - row.guess >= _MOST * (top.mean - top.guess) or not is_worse(row, top)]
        if not enough:
            return None
        here = [c for c in able if c[0] == min(enough)]
        first = max((row for *_, row in here), key=lambda row: row.mean)
        budget, _, row = min((c for c in here if not is_worse(c[2], first)), key=lambda c: c[1].rank)
        return Pick(row, budget)

    def repays(self, row: Row) -> bool:
        """Whether a private row is better, by more than chance, than what releases nothing private."""
        return row.private and (self.free is None or is_worse(self.free, row))

    # ---- words ------------------------------------------------------------------------------------------------------

    @property
    def level(self) -> str:
        """What is private, in two words."""
        if not self.unit:
            return "nothing private"
        return f"{in_words_of(self.one, self.unit)} level"

    @property
    def one(self) -> str:
        """What one node is called."""
        return self.head.one

    @property
    def what(self) -> str:
        """What is to be done; and of what, where the run's questions differ in it."""
        words = _word_task(self.head, self.every)
        alike = {r.asked: r for r in self.every if r.dataset == self.head.dataset and _word_task(r, self.every) == words}
        if len(alike) < 2:
            return words
        _, metric, _, split, public = self.head.asked
        names = read_phrases()["short_metrics"]
        scope = f"{split} split" if split else "no split"
        beside = (f"by {names.get(metric, metric)}", scope, f"public: {public or 'as usual'}")
        differ = [len({asked[k] for asked in alike}) > 1 for k in (1, 3, 4)]
        return ", ".join([words, *(said for said, told in zip(beside, differ, strict=True) if told)])

    @property
    def data(self) -> str:
        """The data set's own name."""
        family, _, own = self.head.dataset.rpartition("/")
        return read_phrases()["data"].get(own, own if family in ("", "own") else self.head.dataset)

    @property
    def title(self) -> str:
        """The question as a heading."""
        where = f" · {self.data}" if len({row.dataset for row in self.every}) > 1 else ""
        return f"{begin_phrase(self.level)}: {self.what}{where}"

    @property
    def finding(self) -> str:
        """What was found, one sentence."""
        return f"On {self.data}, {self.level}: {self.found}"

    @property
    def found(self) -> str:
        """``finding`` without data and level."""
        top = self.ceiling
        beside = "" if top is None else f"; without privacy {good(top, short=True)}"
        if top is not None and any(is_worse(top, row) and format_mean(row) != format_mean(top) for row in self.kept):
            beside += ", below the best private row"
        if self.pick is None:
            return f"{self._nothing()}{beside}."
        row, budget = self.pick.row, self.pick.budget
        said = [f"with ε ≤ {phrase_number(budget)} proven, {_SUBJECT[row.trust.value]} {good(row)}"]
        more = [(t, self.at(budget, t)) for t in self.trusts if t.rank > row.trust.rank]
        known = [(t, other) for t, other in more if other is not None]
        if known and not any(is_worse(row, other) for _, other in known):
            more_trusting, other = known[0]
            worse = is_worse(other, row)
            aside = "" if format_mean(other) == format_mean(row) else f" ({format_mean(other)}{'' if worse else f', {_SAME}'})"
            said.append(f"{_SUBJECT[more_trusting.value]} would be {'worse' if worse else 'no better'} at this ε{aside}")
        # of a row of less trust that is better by more than chance, the star is
        less = [one for t in self.trusts if t.rank < row.trust.rank and (one := self.at(budget, t)) is not None]
        if self.in_one_hand and less:  # they were asked for, too
            beneath = max(less, key=lambda one: one.mean)
            asides = (f"AUROC {format_mean(beneath)}" if _is_rare(beneath) else "", "" if is_worse(beneath, row) else _SAME)
            aside = f" ({', '.join(filter(None, asides))})" if any(asides) else ""
            reached = f"finds {_found(beneath)}" if _is_rare(beneath) else f"reaches {format_mean(beneath)}"
            said.append(f"{_SUBJECT[beneath.trust.value]} {reached}{aside}")
        if self.free is not None:
            said.append(f"{self.free.short}, which releases nothing private, {good(self.free)}")
        return "; ".join(said) + f"{beside}."

    def _nothing(self) -> str:
        if self.doubt:
            return f"nothing can be concluded ({self.doubt})"
        if not self.unit:
            return "no private row was asked for"
        if not self.kept:
            return "no row keeps a provable ε for everything that it releases, so nothing here can be called private"
        most = self.budgets[-1] if self.budgets else 0.0
        able = [row for row in self.kept if row.keeps(most)]
        if not able:
            least = min(self.kept, key=lambda row: row.provable)
            return f"no row keeps an ε that was asked for; the least proven is {phrase_upper_bound(least.provable)}"
        top = max(able, key=lambda row: row.mean)
        if self.free is not None and not is_worse(self.free, top):
            return f"no private row does better than {self.free.short}, which releases nothing private and {good(self.free)}"
        alone = interval(top.mean, top)[0] > top.guess  # but for one seed or another
        if top.metric == "accuracy" and alone and not beats_guessing(top):
            low, high = (f"{100 * v:.0f}" for v in (min(top.scores.values()), max(top.scores.values())))
            return f"nothing to use: what is best on average is right for {low} of 100 in one training and {high} in another"
        return f"nothing to use: {good(top, short=True)} at most" + (f", and {self.guessing}" if self.guessing else "")

    @property
    def guessing(self) -> str:
        """What chance reaches, in words."""
        if not self.guess and self.head.metric == "accuracy":
            return ""
        if self.of_graphs and self.head.metric == "accuracy":
            return f"what the public sizes tell is right for {100 * self.guess:.0f}"
        return {
            "ari": "0 is chance", "auc": "0.5 is chance", "auroc": "0.5 is chance",
            "average_precision_positive": f"guessing has {self.guess:.2f}",
        }.get(self.head.metric, f"naming the largest class always is right for {100 * self.guess:.0f}")  # fmt: skip

    @property
    def reader(self) -> str:
        """Who may see answers, where people ask for themselves; empty elsewhere."""
        if self.pick is None or self.one != "person" or self.head.asked[2] != "asking":
            return ""
        own = " If model and answers stay with whoever holds the data, nothing is released, and no ε is needed."
        said = "Who sees answers: each person asks and sees its own alone; a list of answers that others see is outside this ε."
        return said + (own if self.in_one_hand else "")

    @property
    def star(self) -> str:
        """What is said beside ``pick``."""
        return "the smallest useful ε" if len(self.budgets) > 1 else "the row to use"

    @property
    def strength(self) -> str:
        """How strong the ε of ``pick`` is: what an attacker can at most believe who suspects 50 : 50."""
        return "" if self.pick is None else strength(self.pick.row, self.pick.budget, self.one)


def _word_task(row: Row, every: Sequence[Row]) -> str:
    _, metric, protocol, split, public = row.asked
    alike = [r.asked for r in every if r.asked[1] == metric]
    words = _CLASSIFY.get(protocol, f"classify with the {protocol} protocol")
    if metric == "ari":
        words = "find the classes of whole graphs"
    elif metric == "auc":
        words = "say which nodes will be linked"
    elif row.kind.startswith("graph") or row.one == "graph":
        words = "classify whole graphs"
    if protocol == "inductive" and len({a[4] for a in alike}) > 1:
        words += word_public(public)
    return in_words_of(row.one, words) + (f" of the {split} split" if split and len({a[3] for a in alike if a[3]}) > 1 else "")


def ask(rows: Sequence[Row]) -> tuple[Question, ...]:
    """Every question of rows (``rows.answering``): those with a row that proves an ε first, then what is about nodes."""
    every = tuple(rows)
    found = []
    for asked in dict.fromkeys(row.asked for row in every):
        here = tuple(row for row in every if row.asked == asked)
        units = sorted({row.unit for row in here if row.private and not row.raw}, key=_ORDER.index) or [""]
        found += [Question(here, unit, every) for unit in units]
    return tuple(sorted(found, key=lambda q: (not q.kept, q.of_graphs)))


def least(questions: Sequence[Question]) -> Row | None:
    """The private row of the smallest ε, then of the least trust, that is the best there; None where no row keeps its ε."""
    cells = [(b, t.rank, row) for q in questions for b in q.budgets for t in q.trusts
             if (row := q.within(b, t)) is not None and row.private]  # fmt: skip
    return min(cells, key=lambda cell: cell[:2], default=(0, 0, None))[2]


def _top(rows: Sequence[Row]) -> Row | None:
    """The best mean; a row that is better than guessing on every seed comes before one that is so on some."""
    return max(rows, key=lambda r: (beats_guessing(r), r.mean, -r.trust.rank, -r.provable), default=None)


def _is_rare(row: Row) -> bool:
    """Whether it is told by how many of a rare class are found; rows are compared by AUROC, which knows all of them."""
    return row.metric == "auroc" and bool(row.values("recall_at_alerts"))


def _share_found(row: Row) -> float:
    """Of a rare class, among as many as it has; 0 where it is not about one."""
    return row.mean_of("recall_at_alerts") if _is_rare(row) else 0.0


def _found(row: Row) -> str:
    return f"{100 * _share_found(row):.0f}"


def find_rare(row: Row, top: Row | None) -> str:
    """What a row finds of a rare class, beside what is found without privacy; empty where it is not about one."""
    if not _is_rare(row):
        return ""
    return f"finds {_found(row)} of 100 of the rare class" + (
        f", {_found(top)} without privacy" if top and _is_rare(top) else ""
    )


def good(row: Row, short: bool = False) -> str:
    """How good a row is, as the end of “it …”. short: the number alone."""
    if _is_rare(row):
        if short:
            return f"{_found(row)} (AUROC {row.mean:.2f})"
        found = in_words_of(row.one, f"finds {_found(row)} of 100 of the rare class by looking at as many nodes as it has")
        return f"{found} ({'; '.join(filter(None, (f'AUROC {row.mean:.2f}', span(row), '0.5 is chance')))})"
    if row.metric == "accuracy":
        wide = f" ({span(row)})" if span(row) else ""
        return f"{100 * row.mean:.0f}" if short else f"is right for {100 * row.mean:.0f} of 100{wide}"
    if row.metric == "average_precision_positive" and row.values("precision_at_alerts"):
        found = f"{100 * row.mean_of('precision_at_alerts'):.0f} of 100"
        return (
            f"{found} ({row.mean:.2f})"
            if short
            else f"is right in {found} alerts ({'; '.join(filter(None, (f'average precision {row.mean:.2f}', span(row))))})"
        )
    name = {"ari": "adjusted Rand index", "auc": "AUC", "auroc": "AUROC"}.get(row.metric, _METRICS.get(row.metric, row.metric))
    scale = {"ari": "0 is chance, 1 the classes", "auc": "0.5 is chance", "auroc": "0.5 is chance"}.get(row.metric, "")
    aside = "; ".join(filter(None, (span(row), scale)))
    return f"{row.mean:.2f}" if short else f"reaches {name} {row.mean:.2f}" + (f" ({aside})" if aside else "")


def span(row: Row) -> str:
    """``interval`` in the unit of a table: out of 100 where it is an accuracy."""
    low, high = row.interval
    if high - low < 0.005:
        return ""
    if row.metric == "accuracy":
        return f"{100 * low:.0f} to {100 * high:.0f}"
    return f"{low:.2f} to {high:.2f}"


def format_mean(row: Row) -> str:
    """The mean in the unit of a table."""
    return f"{100 * row.mean:.0f}" if row.metric == "accuracy" else f"{row.mean:.2f}"


def strength(row: Row, budget: float, one: str) -> str:
    """One plain line on how strong an ε is that a row keeps: e^ε / (1 + e^ε), and δ."""
    subject = {
        "edge": "two given nodes are linked", "entity": "one owner's records are in the data",
        "client": "one client's data are in", "graph": "one client holds this graph or that",
    }.get(row.unit, "one given node's data are in")  # fmt: skip
    who = f"whoever suspects 50 : 50 that {in_words_of(one, subject)}, and sees all that is released"
    said = f"How strong is this: {who}, can be {sure_at_most(budget)} sure at most"
    people = row.head.facts.train_nodes
    if row.delta > 0:
        said += f", except with probability δ = {_plain(row.delta)}"
    if people and row.delta * people > _LARGEST_SHARE:
        chance = "" if row.delta * people > 1 - 1e-9 else f" with probability {row.delta * people:.2g}"
        said += f", which would also cover publishing one of the {counted(people, one)}{chance}, drawn at random, in full"
        said += " (a smaller delta in the scenario makes that rarer)"
    said += ", so that the proof alone protects little" if is_weak(budget) else ""
    return f"{said}."


def is_weak(epsilon: float) -> bool:
    """Whether an attacker who suspected 50 : 50 can be all but sure."""
    return 1 / (1 + math.exp(-epsilon)) >= _SURE


def sure_at_most(epsilon: float) -> str:
    """What an attacker can at most believe who suspected 50 : 50: ``73.2 %``; rounded up."""
    belief = 1 / (1 + math.exp(-epsilon))
    return f"{math.ceil(1000 * belief) / 10:g} %" if belief < 0.9995 else f"{math.ceil(1e5 * belief) / 1e3:g} %"


def word_public(public: str) -> str:
    """What is public, as the end of “classify nodes”."""
    if public == "":
        return " of a public test graph"
    if public == "nothing":
        return " when nothing is public"
    if public.startswith("share "):
        return f" when {100 * float(public.removeprefix('share ')):g} % of the nodes are public and the asked ones are not"
    return f" when {public} is public and the asked nodes are not"


def conditions(pick: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """What a row's guarantee rests on, the most unusual first: what the fewest rows of the run assume."""
    usual = {a: sum(a in row.assumptions for row in rows if row.private) for a in pick.assumptions}
    common = tuple(in_words_of(pick.one, begin) for begin in read_phrases()["usual"].values())
    return tuple(sorted(pick.assumptions, key=lambda a: (a.startswith(common), usual[a])))


def missing(rows: Sequence[Row]) -> str:
    """Rows that have no result, in one sentence; empty where all have."""
    found = [row for row in rows if row.status.startswith(("no number", "failed"))]
    if not found:
        return ""
    return (
        f"{len(found)} of {len(rows)} rows have no result and compete for nothing: "
        + phrase_first([f"{row.row} ({row.status})" for row in found], 4, "; ")
        + "."
    )


def _plain(value: float) -> str:
    return f"{float(f'{value:.2g}'):.8f}".rstrip("0") if value >= 1e-6 else f"{value:.2g}"
