"""Link prediction: how well hidden edges are told from pairs without one, at each trust and ε."""

import math

from fedgraph.cells.facts import LinkPredictionFacts
from fedgraph.report import charts
from fedgraph.report.report_rows import Row, group_rows, mean_spread, rounded, rounded_up
from fedgraph.report.scores import trust_of
from fedgraph.report.sections.base import Records, Section, Table

KINDS = ("link_prediction",)  # the tasks that this section speaks of
TITLES = {"auc": "AUC", "hits_at_20": "Hits@20", "hits_at_50": "Hits@50", "hits_at_100": "Hits@100", "mrr": "MRR"}


def build(records: Records, notice: str | None) -> Section:
    """What was asked, one table, and AUC against ε."""
    rows = group_rows(records.entries)
    facts = records.entries[0].facts_as(LinkPredictionFacts)
    measured = [m for m in TITLES if any(m in r.head.metrics for r in rows)]
    body = []
    for row in rows:
        target = "no noise" if math.isinf(row.head.epsilon) else rounded(row.head.epsilon)
        scores = tuple(mean_spread(row, m) for m in measured)
        body.append((_name(row), row.head.world.trust.title, target, rounded_up(row.provable, 2), *scores))
    header = ("method", "trust", "ε asked", "ε provable", *(TITLES[m] for m in measured))
    sentence = (
        f"{facts.tested:,} edges were hidden and asked for, beside {facts.negatives:,} pairs without an edge. AUC is how "
        "often an edge scores above such a pair (a coin: 0.5). Hits@K is the share of edges above the K-th best pair. MRR "
        "is the mean of one over an edge's rank among 1,000 pairs. One edge is private; who exists, and features, are public."
    )
    apart = max((e.facts.cut_edges or 0 for e in records.entries), default=0)
    lost = f"Up to {apart:,} edges lie between clients; in federated rows nobody knows them. " if apart else ""
    lines = []
    for name, trust in dict.fromkeys(
        (r.head.variant if r.head.variant != "default" else r.head.method, trust_of(r)) for r in rows
    ):
        own = [
            r for r in rows if (r.head.variant if r.head.variant != "default" else r.head.method, trust_of(r)) == (name, trust)
        ]
        finite = [r for r in own if math.isfinite(r.head.epsilon)]
        if len(finite) > 1:
            lines.append(charts.over_budgets(f"{name}, {trust.title}", finite, "auc"))
    clear = [(str(r.head.variant), r.mean("auc")) for r in rows if math.isinf(r.head.epsilon) and r.head.world.trust.whole]
    panels = [charts.Panel("AUC of hidden edges", "AUC", tuple(lines), tuple(clear))]
    caption = "AUC of hidden edges against the ε of one edge. Dashed: no privacy, one curator."
    figures = charts.draw(f"{records.name}-links", caption, panels, notice)
    return Section((lost + sentence,), (Table("Hidden edges", header, tuple(body)),), figures)


def _name(row: Row) -> str:
    return str(row.head.method if row.head.variant == "default" else row.head.variant)
