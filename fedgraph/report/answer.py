"""The answer of a run: for each question what was found, which row to use, whom it trusts, at which ε, and what it costs.

Three rules. A row is the answer at an ε only if everything that it releases is *provably* within that ε: a row whose provable
ε is ∞ never is. A row whose ε an attack has refuted is never an answer. Units are never mixed: an edge-level row says nothing
about nodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from fedgraph.privacy import Trust
from fedgraph.report import phrases, table
from fedgraph.report.chance import interval, is_worse
from fedgraph.report.table import Line
from fedgraph.types import counted, in_words_of

UNITS = ("edge", "node", "entity", "client", "graph")  # in the order of questions: whose protection is asked for most first
_ORDER = ("node", "edge", "entity", "client", "graph", "")
_NAMES = {  # of data sets, as they write them
    "citeseer": "CiteSeer", "cora": "Cora", "pubmed": "PubMed", "cora_ml": "Cora-ML", "cs": "MS Academic", "physics": "Physics",
    "dblp": "DBLP", "library": "the shipped graph", "proteins": "PROTEINS", "mutag": "MUTAG", "imdb-binary": "IMDB-BINARY",
}  # fmt: skip
_SHORT = {"average_precision_positive": "average precision", "accuracy": "test accuracy", "auc": "AUC", "ari": "ARI"}
_CLASSIFY = {  # by protocol
    "": "classify whole graphs", "inductive": "classify nodes",
    "inductive-edges": "classify nodes of a public graph, learnt where edges are private",
    "transductive": "classify the unlabelled nodes of one graph",
    "asking": "classify nodes that are private, too (each asks with its own features and edges)",
}  # fmt: skip
_USUAL = (  # how conditions begin that nearly every row has; the others are named first
    "the number of training nodes", "hyper-parameters were chosen without", "which node ids are used for training",
    "the number of nodes of every client's graph", "the cost of searching hyper-parameters", "which features there are",
)  # fmt: skip
_SURE = 0.99  # from this belief on a proof alone protects little
_MOST = 0.75  # of what there is to gain over guessing
_FEWEST_TESTED, _FEWEST_OF_A_CLASS, LARGEST_DELTA = 100, 20, 1e-3  # below, below, above: nothing can be concluded
_TESTED = {"graph_classification": "graph", "graph_clustering": "graph", "link_prediction": "edge"}
_LARGEST_SHARE = 0.1  # of one person that δ may be without a word: with δ = 1/people, publishing one of them is allowed


class _Pick(NamedTuple):
    """What to use."""

    row: Line
    budget: float  # the ε within which everything is proven


@dataclass(frozen=True, eq=False)
class Question:
    """Rows that answer one question, about one unit."""

    rows: tuple[Line, ...]  # all of them; those of another unit are there for what they reach without privacy
    unit: str  # whom private rows of this question protect; empty where no private row was asked for
    every: tuple[Line, ...]  # all rows of the run

    @property
    def head(self) -> Line:
        """A row of the question: what is the same for all."""
        return next((row for row in self.rows if row.unit == self.unit and row.private and not row.raw), self.rows[0])

    @cached_property
    def private(self) -> tuple[Line, ...]:
        """Rows that release something private, and were asked to protect it."""
        return tuple(row for row in self.rows if row.private and not row.raw and row.unit == self.unit)

    @cached_property
    def kept(self) -> tuple[Line, ...]:
        """Those of ``private`` that prove an ε and have a number."""
        return tuple(row for row in self.private if row.usable and math.isfinite(row.epsilon_provable))

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """The finite ε that were asked for, least first."""
        return tuple(sorted({row.epsilon for row in self.private if math.isfinite(row.epsilon)}))

    @cached_property
    def trusts(self) -> tuple[Trust, ...]:
        """From the most trust to the least."""
        return tuple(sorted({row.trust for row in self.private}, key=lambda t: -t.rank))

    @cached_property
    def ceiling(self) -> Line | None:
        """The best row that was asked for no privacy."""
        return table.best_without_privacy(self.rows)

    @cached_property
    def free(self) -> Line | None:
        """The best row that releases nothing private: of the unit, or of a larger one that holds it."""
        sizes = {unit: place for place, unit in enumerate(UNITS)}
        inside = [r for r in self.rows if not r.private and r.usable and sizes.get(r.unit, -1) >= sizes.get(self.unit, 9)]
        return max(inside, key=lambda r: r.mean, default=None)

    @property
    def in_one_hand(self) -> bool:
        """Whether the data are somebody's own and the clients only supposed: a curator holds all of them already."""
        return self.one == "person" and Trust.CURATOR in self.trusts and not any(row.facts.natural for row in self.rows)

    @property
    def guess(self) -> float:
        """What somebody reaches who learnt nothing, over the seeds of the rows that have most of them."""
        return max(((row.seeds, row.guess) for row in self.rows if row.guess), default=(0, 0.0))[1]

    @cached_property
    def doubt(self) -> str:
        """Why nothing can be concluded; empty where something can."""
        fewest = min((row for row in self.rows if row.tested), key=lambda row: row.tested, default=None)
        least = min((n for row in self.rows if (n := row.facts.least_class) is not None), default=_FEWEST_OF_A_CLASS)
        kept = [row for row in self.rows if row.private and math.isfinite(row.epsilon_provable)]
        worst, first = max(kept, key=lambda row: row.delta, default=None), self.rows[0]
        why = []
        if fewest is not None and fewest.tested < _FEWEST_TESTED:
            was, what = "was" if fewest.tested == 1 else "were", in_words_of(fewest.one, _TESTED.get(fewest.kind, "node"))
            why.append(f"only {counted(fewest.tested, what)} {was} tested, at least {_FEWEST_TESTED} are needed")
        if least < _FEWEST_OF_A_CLASS:
            what = in_words_of(first.one, _TESTED.get(first.kind, "node"))
            why.append(f"the smallest class has {counted(least, what)}, at least {_FEWEST_OF_A_CLASS} are needed")
        if worst is not None and worst.delta > LARGEST_DELTA * (1 + 1e-9):
            allowed = f"the guarantee may fail for one {in_words_of(worst.one, worst.unit)} in {1 / worst.delta:.0f}"
            why.append(f"δ = {phrases.rounded(worst.delta)} is above {LARGEST_DELTA:g}: {allowed}")
        return "; ".join(why)

    @property
    def of_graphs(self) -> bool:
        """Whether it is about whole graphs."""
        return self.head.kind.startswith("graph")

    def at(self, budget: float, trust: Trust) -> Line | None:
        """The best row made with this very trust that keeps a budget."""
        return _top([row for row in self.kept if row.trust is trust and table.keeps(row, budget)])

    def within(self, budget: float, trust: Trust) -> Line | None:
        """The best row that keeps a budget and needs no more than this trust; one that releases nothing competes.

        A method that trusts fewer people serves everybody who would trust more. Where a row that releases nothing of the unit
        (ε = 0) wins, privacy bought nothing.
        """
        able = [row for row in self.kept if row.trust.rank <= trust.rank and table.keeps(row, budget)]
        return _top([*able, *([self.free] if self.free is not None else [])])

    @cached_property
    def pick(self) -> _Pick | None:
        """The smallest ε whose best row has most of what there is to gain; then the least trust that is not worse there.

        Most: ``_MOST`` of what the best row of all gains over guessing, or all of it but for chance; of a rare class also as
        much of what any row finds of it. Not worse: by no more than two standard errors. None where nothing can be concluded,
        no row keeps its ε, none is better than guessing on every seed, or none is better than what releases nothing private
        by more than chance. Where the data lie in one hand, nobody has to trust less than that: the answer is a curator's,
        unless a row of less trust is better there by more than chance.
        """
        own = self._picked((Trust.CURATOR,)) if self.in_one_hand else None
        if own is None:
            return self._picked(self.trusts)
        able = [row for t in self.trusts if (row := self.at(own.budget, t)) is not None and row.beats and self.repays(row)]
        return _Pick(_top([row for row in able if is_worse(own.row, row)]) or own.row, own.budget)

    def _picked(self, trusts: Sequence[Trust]) -> _Pick | None:
        """As ``pick`` says, of rows for which people trust so."""
        best = self.at if trusts == (Trust.CURATOR,) else self.within
        cells = [(b, t, row) for b in self.budgets for t in trusts if (row := best(b, t)) is not None]
        useful = [c for c in cells if c[2].beats and self.repays(c[2])]
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
        return _Pick(row, budget)

    def repays(self, row: Line) -> bool:
        """Whether a private row is better, by more than chance, than what releases nothing private."""
        return row.private and (self.free is None or is_worse(self.free, row))

    # ---- words ------------------------------------------------------------------------------------------------------

    @property
    def level(self) -> str:
        """What is private, in two words."""
        return f"{in_words_of(self.one, self.unit)} level" if self.unit else "nothing private"

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
        scope = f"{split} split" if split else "no split"
        beside = (f"by {_SHORT.get(metric, metric)}", scope, f"public: {public or 'as usual'}")
        differ = [len({asked[k] for asked in alike}) > 1 for k in (1, 3, 4)]
        return ", ".join([words, *(said for said, told in zip(beside, differ, strict=True) if told)])

    @property
    def data(self) -> str:
        """The data set's own name."""
        family, _, own = self.head.dataset.rpartition("/")
        return _NAMES.get(own, own if family in ("", "own") else self.head.dataset)

    @property
    def title(self) -> str:
        """The question as a heading."""
        where = f" · {self.data}" if len({row.dataset for row in self.every}) > 1 else ""
        return f"{phrases.begin(self.level)}: {self.what}{where}"

    @property
    def finding(self) -> str:
        """What was found, one sentence."""
        return f"On {self.data}, {self.level}: {self.found}"

    @property
    def found(self) -> str:
        """``finding`` without data and level."""
        return _say("found", self)

    def _others(self, more: bool) -> list[Line]:
        """The best rows of each level of more trust than ``pick``, or of less, within its ε; the most trust first."""
        row, budget = self.pick or (None, 0.0)
        trusts = [t for t in self.trusts if row and (t.rank > row.trust.rank if more else t.rank < row.trust.rank)]
        return [one for t in trusts if (one := self.at(budget, t)) is not None]

    @cached_property
    def rival(self) -> Line | None:
        """What ``pick`` is held against: a row of more trust within its ε, where none of more trust is better."""
        more = self._others(more=True)
        return more[0] if self.pick and more and not any(is_worse(self.pick.row, other) for other in more) else None

    @cached_property
    def beneath(self) -> Line | None:
        """The best row of less trust than ``pick`` where a curator holds all: the others were asked for, too."""
        return max(self._others(more=False), key=lambda one: one.mean, default=None) if self.in_one_hand else None

    @property
    def able(self) -> list[Line]:
        """Rows that keep an ε that was asked for."""
        return [row for row in self.kept if table.keeps(row, self.budgets[-1] if self.budgets else 0.0)]

    @property
    def guessing(self) -> str:
        """What chance reaches, in words."""
        return _say("guessing", self)

    @property
    def reader(self) -> str:
        """Who may see answers, where people ask for themselves; empty elsewhere."""
        return _say("reader", self) if self.pick and self.one == "person" and self.head.asked[2] == "asking" else ""

    @property
    def star(self) -> str:
        """What is said beside ``pick``."""
        return "the smallest useful ε" if len(self.budgets) > 1 else "the row to use"

    @property
    def strength(self) -> str:
        """How strong the ε of ``pick`` is: what an attacker can at most believe who suspects 50 : 50."""
        return _say("strength", *self.pick, self.one) if self.pick else ""


def _word_task(row: Line, every: Sequence[Line]) -> str:
    _, metric, protocol, split, public = row.asked
    alike = [r.asked for r in every if r.asked[1] == metric]
    of_graphs = "classify whole graphs" if row.kind.startswith("graph") or row.one == "graph" else ""
    words = {"ari": "find the classes of whole graphs", "auc": "say which nodes will be linked"}.get(metric, of_graphs)
    words = words or _CLASSIFY.get(protocol, f"classify with the {protocol} protocol")
    if protocol == "inductive" and len({a[4] for a in alike}) > 1:
        words += _say("public_words", public)
    return in_words_of(row.one, words) + (f" of the {split} split" if split and len({a[3] for a in alike if a[3]}) > 1 else "")


def ask(rows: Sequence[Line]) -> tuple[Question, ...]:
    """Every question of rows (``rows.answering``): those with a row that proves an ε first, then what is about nodes."""
    every = tuple(rows)
    found, asked = [], dict[tuple[str, ...], list[Line]]()
    for row in every:
        asked.setdefault(row.asked, []).append(row)
    for here in map(tuple, asked.values()):
        units = sorted({row.unit for row in here if row.private and not row.raw}, key=_ORDER.index) or [""]
        found += [Question(here, unit, every) for unit in units]
    return tuple(sorted(found, key=lambda q: (not q.kept, q.of_graphs)))


def least(questions: Sequence[Question]) -> Line | None:
    """The private row of the smallest ε, then of the least trust, that is the best there; None where no row keeps its ε."""
    cells = [(b, t.rank, row) for q in questions for b in q.budgets for t in q.trusts
             if (row := q.within(b, t)) is not None and row.private]  # fmt: skip
    return min(cells, key=lambda cell: cell[:2], default=(0, 0, None))[2]


def _top(rows: Sequence[Line]) -> Line | None:
    """The best mean; a row that is better than guessing on every seed comes before one that is so on some."""
    return max(rows, key=lambda r: (r.beats, r.mean, -r.trust.rank, -r.epsilon_provable), default=None)


def _is_rare(row: Line) -> bool:
    """Whether it is told by how many of a rare class are found; rows are compared by AUROC, which knows all of them."""
    return row.metric == "auroc" and bool(table.values(row, "recall_at_alerts"))


def _share_found(row: Line) -> float:
    """Of a rare class, among as many as it has; 0 where it is not about one."""
    return table.mean_of(row, "recall_at_alerts") if _is_rare(row) else 0.0


def find_rare(row: Line, top: Line | None) -> str:
    """What a row finds of a rare class, beside what is found without privacy; empty where it is not about one."""
    return _say("find_rare", row, top) if _is_rare(row) else ""


@cache
def _words() -> Mapping[str, Callable[..., object]]:
    """The macros of ``templates/answer.txt``."""
    told = {
        "values": table.values, "mean_of": table.mean_of, "rare": _is_rare, "share_found": _share_found, "span": span,
        "mean": format_mean, "metrics": table.METRICS, "say": in_words_of,
        "number": phrases.rounded, "upper": phrases.upper, "worse": is_worse, "interval": interval, "sure": sure_at_most,
        "weak": is_weak, "plain": _plain, "count": counted, "largest_share": _LARGEST_SHARE,
    }  # fmt: skip
    return vars(phrases.template("answer.txt", escaped=False).make_module(told))


def _say(macro: str, *about: object) -> str:
    return str(_words()[macro](*about)).replace("\n", "")


def span(row: Line) -> str:
    """``interval`` in the unit of a table: out of 100 where it is an accuracy."""
    if row.high - row.low < 0.005:
        return ""
    return f"{100 * row.low:.0f} to {100 * row.high:.0f}" if row.metric == "accuracy" else f"{row.low:.2f} to {row.high:.2f}"


def format_mean(row: Line) -> str:
    """The mean in the unit of a table."""
    return f"{100 * row.mean:.0f}" if row.metric == "accuracy" else f"{row.mean:.2f}"


def is_weak(epsilon: float) -> bool:
    """Whether an attacker who suspected 50 : 50 can be all but sure."""
    return 1 / (1 + math.exp(-epsilon)) >= _SURE


def sure_at_most(epsilon: float) -> str:
    """What an attacker can at most believe who suspected 50 : 50: ``73.2 %``; rounded up."""
    belief = 1 / (1 + math.exp(-epsilon))
    return f"{math.ceil(1000 * belief) / 10:g} %" if belief < 0.9995 else f"{math.ceil(1e5 * belief) / 1e3:g} %"


def conditions(pick: Line, rows: Sequence[Line]) -> tuple[str, ...]:
    """What a row's guarantee rests on, the most unusual first: what the fewest rows of the run assume."""
    usual = {a: sum(a in row.assumptions for row in rows if row.private) for a in pick.assumptions}
    common = tuple(in_words_of(pick.one, begin) for begin in _USUAL)
    return tuple(sorted(pick.assumptions, key=lambda a: (a.startswith(common), usual[a])))


def missing(rows: Sequence[Line]) -> str:
    """Rows that have no result, in one sentence; empty where all have."""
    found = [row for row in rows if row.status.startswith(("no number", "failed"))]
    listed = phrases.first([f"{row.row} ({row.status})" for row in found], 4, "; ")
    return f"{len(found)} of {len(rows)} rows have no result and compete for nothing: {listed}." if found else ""


def _plain(value: float) -> str:
    return f"{float(f'{value:.2g}'):.8f}".rstrip("0") if value >= 1e-6 else f"{value:.2g}"
