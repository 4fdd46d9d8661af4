"""Macro-F1, AUROC, average precision and calibration beside accuracy, and the share that the largest class alone gives."""

import math
from collections.abc import Sequence

from fedgraph.report.report_rows import Row, mean_spread, rounded
from fedgraph.report.sections.base import Table

COLUMNS = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "average_precision": "average precision",
    "calibration_error": "calibration error",
}
NOTE = (
    "Averages over classes, each class with the same weight; AUROC and average precision: one class against the others. "
    "Calibration error: mean distance between confidence and accuracy in 15 bins; 0 is best."
)


def describe_majority(rows: Sequence[Row]) -> list[str]:
    """One sentence: what naming the largest class always would give. Nothing where it was not measured."""
    shares = [row.mean("majority_share") for row in rows]
    shares = [share for share in shares if not math.isnan(share)]
    if not shares:
        return []
    share = sum(shares) / len(shares)
    near = {row.head.method for row in rows if abs(row.mean("accuracy") - share) < 0.01}
    warning = " Rows within 0.01 of it may have learnt nothing else: look at macro-F1 below." if near else ""
    return [f"Naming the largest class of the test set always would be right for {share:.3f} (majority share).{warning}"]


def tabulate_measures(rows: Sequence[Row]) -> list[Table]:
    """Row × measure that some row has; nothing where accuracy alone was measured."""
    if not any(row.values("macro_f1") for row in rows):
        return []
    columns = {key: name for key, name in COLUMNS.items() if any(row.values(key) for row in rows)}
    note = NOTE if "auroc" in columns else "Macro-F1: the mean over classes, each with the same weight."
    body = [
        (
            f"{row.head.method} · {row.head.variant}",
            row.head.world.words,
            rounded(row.head.epsilon),
            *(mean_spread(row, m) for m in columns),
        )
        for row in rows
    ]
    return [Table("Beyond accuracy", ("learner", "trust", "ε", *columns.values()), tuple(body), note, on_page=False)]
