"""The scores and guarantees of a configuration as plain values, which the answer, the tables and the charts read.

``score_rows`` turns rows (cells averaged over seeds) into ``Score``s. Nothing here reads a file or knows a page.
"""

import hashlib
import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from fedgraph.privacy import Trust
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import phrase_upper_bound, read_phrases
from fedgraph.report.report_rows import ReportRow
from fedgraph.worlds import World

# what an answer is about; the first that a row has
SCORE_METRICS, SHORT_SCORE_METRICS = read_phrases()["metrics"], read_phrases()["short_metrics"]

_USUAL = ("test-graph", "attributes")  # what is public where a scenario says nothing: of an inductive, of a transductive task


@dataclass(frozen=True)
class Score:
    """One configuration, averaged over its seeds.

    Attributes:
        anchor: Its name in a page and in a command, the same in every run of the same scenario.
        dataset: The label of the data set.
        target: The ε that was asked for.
        calibrated_by: For which reading of ε the noise was chosen.
        delta: The δ of every ε here; None where there is no protection.
        unit: Whom the guarantee protects; ``none`` without one.
        trust: Whom its guarantee needs to be trusted.
        asked: Rows can be compared only where these are equal: data set, metric, protocol, split, and what is public unless
            it is the usual.
        mean: Over seeds; NaN where the row has no number.
        deviation: Sample standard deviation over seeds; None for one seed.
        provable: The largest ε over seeds of everything that is released.
        published: What the paper's formula says; None where it says nothing.
        measured: What an attack proves at least; None where the row was not attacked.
        verdict: What the attack says of ``provable``.
        private: Whether anything computed from private data is released at all.
        status: ``ok``, or why there is no number.
    """

    row: ReportRow = field(repr=False)  # every cell, with its ledger: pages long
    anchor: str
    task: str
    dataset: str
    method: str
    variant: str
    target: float
    calibrated_by: str
    delta: float | None
    unit: str
    trust: Trust
    asked: tuple[str, ...]
    metric: str
    mean: float
    deviation: float | None
    seeds: int
    provable: float
    published: float | None
    measured: float | None
    verdict: attack_bounds.AttackBoundVerdict
    private: bool
    status: str

    @property
    def name(self) -> str:
        """Method and variant, as a table shows them; one of them where they are the same word."""
        if self.variant in ("default", "baseline"):
            return self.method
        return self.variant if self.variant.lower() == self.method else f"{self.method} · {self.variant}"

    @property
    def short(self) -> str:
        """What a sentence calls it: the label that its scenario gives it, or its method."""
        return self.method if self.variant in ("default", "baseline") else self.variant

    @property
    def unit_name(self) -> str:
        """What its unit is called: where a node is a whole graph as one row, the unit is a graph."""
        return self.row.head.facts.one if self.unit == "node" else self.unit

    @property
    def raw(self) -> bool:
        """Whether it was asked for no privacy and gives none: a ceiling."""
        return math.isinf(self.target) and math.isinf(self.provable)

    @property
    def usable(self) -> bool:
        """Whether it may be an answer: it has a number, and no attack has refuted its ε."""
        return math.isfinite(self.mean) and self.status == "ok" and self.verdict is not attack_bounds.AttackBoundVerdict.BROKEN

    def _repr_html_(self) -> str:
        mean = f"{self.mean:.3f}" + ("" if self.deviation is None else f" ± {self.deviation:.3f}")
        shown = {"row": self.name, "trust": self.trust.value, SCORE_METRICS[self.metric]: mean}
        shown |= {"provable ε": phrase_upper_bound(self.provable), "unit": self.unit, "data": self.dataset}
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in shown.items())
        return f"<table>{cells}</table>"

    def keeps(self, epsilon: float) -> bool:
        """Whether everything that it releases is provably within ``epsilon``; ∞ is kept by no guarantee."""
        return math.isfinite(self.provable) and self.provable <= epsilon * (1 + 1e-9)


def score_rows(rows: Sequence[ReportRow]) -> tuple[Score, ...]:
    """The rows that have a metric to compare them by (``SCORE_METRICS``), in their order. Others (claims, distances) are left
    out.

    All rows of one task are compared by the same metric, the first of ``SCORE_METRICS`` that each of them has.
    """
    return _scored(rows, 0)


def _scored(rows: Sequence[ReportRow], place: int) -> tuple[Score, ...]:
    chosen = _metrics(rows)
    found = []
    for row, verdict in zip(rows, attack_bounds.judge_attack_bounds(rows), strict=True):
        metrics = [m for m in chosen[str(row.head.task), str(row.head.dataset)] if _has(row, m)]
        if len(metrics) > place:
            found.append(_score(row, verdict, metrics[place]))
    return tuple(found)


def _metrics(rows: Sequence[ReportRow]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[ReportRow]] = {}
    for row in rows:
        groups.setdefault((str(row.head.task), str(row.head.dataset)), []).append(row)
    found = {}
    for key, group in groups.items():
        able = [row for row in group if any(_has(row, m) for m in SCORE_METRICS)]
        found[key] = sorted(SCORE_METRICS, key=lambda m: not all(_has(row, m) for row in able))
    return found


def _has(row: ReportRow, metric: str) -> bool:
    return any(metric in e.metrics for e in row.entries)


def name_score_anchor(row: ReportRow) -> str:
    """A row's name in a page and in a command.

    Args:
        row: With or without a score.

    Returns:
        Letters, digits, hyphens and underscores: a readable name, and six hexadecimal digits of what names the row.
    """
    identity = tuple(part.to_dict() if isinstance(part, World) else str(part) for part in row.head.row_key)
    text = "-".join((row.head.method, row.head.variant, row.head.world.words, f"eps-{row.head.epsilon:g}"))
    readable = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-").replace(".", "_")
    return f"row-{readable}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:6]}"


def find_score_trust(row: ReportRow) -> Trust:
    """Whom a row's guarantee needs to be trusted; a row without a stated viewer is one that trusts everybody."""
    protection = row.head.protection
    return Trust.CURATOR if protection is None else Trust.against(protection.viewer)


def _score(row: ReportRow, verdict: attack_bounds.AttackBoundVerdict, metric: str) -> Score:
    values = [v for v in row.values(metric) if math.isfinite(v)]
    head, protection = row.head, row.head.protection
    status = "ok" if len(values) == len(row.entries) else "no number: a value is missing or not finite"
    public = head.facts.public or _USUAL[0]
    asked = (head.dataset, metric, head.facts.protocol, head.facts.split, "" if public in _USUAL else public)
    return Score(
        row=row, anchor=name_score_anchor(row), task=head.task, dataset=head.dataset, method=head.method, variant=head.variant,
        target=head.epsilon, calibrated_by=head.calibrated_by, delta=head.delta,
        unit="none" if protection is None else protection.unit.value, trust=find_score_trust(row), asked=asked,
        metric=metric, mean=row.mean(metric) if status == "ok" else math.nan,
        deviation=row.deviation(metric) if len(values) > 1 else None, seeds=len(row.entries),
        provable=row.provable, published=row.published, measured=row.measured, verdict=verdict,
        private=bool(head.paths) or math.isinf(row.provable), status=status,
    )  # fmt: skip


def report_score_ceiling(scores: Sequence[Score]) -> Score | None:
    """The best row that was asked for no privacy."""
    return max((s for s in scores if s.raw and math.isfinite(s.mean)), key=lambda s: s.mean, default=None)


def format_score_mean(score: Score, digits: int = 2) -> str:
    """Mean ± standard deviation over seeds; ± only with two seeds or more.

    Args:
        digits: Beyond the point; one more where ± would be 0.
    """
    if score.deviation is not None and 0 < score.deviation < 0.5 * 10**-digits:
        digits += 1  # "± 0.00" would say that nothing varies
    spread = "" if score.deviation is None else f" ± {score.deviation:.{digits}f}"
    return f"{round(score.mean, digits) + 0.0:.{digits}f}{spread}"
