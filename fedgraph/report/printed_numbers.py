"""Published numbers, to stand beside ours: value, paper, table, version. They stand in ``printed_numbers.yaml``."""

import math
from dataclasses import dataclass

import yaml

from fedgraph.report.phrases import read_phrase_asset
from fedgraph.report.rows import Row

PRINTED_PER_GRAPH = 0.0  # in place of an ε, where the paper gives each graph its own ε = 1/|V|
PRINTED_TEST_GRAPHS = {"tu/proteins": 111, "tu/mutag": 19, "tu/imdb-binary": 100}  # a tenth of each, as the paper tests on


@dataclass(frozen=True)
class PrintedNumber:
    """One printed number.

    Attributes:
        method: As in a scenario, or what was measured.
        variant: Label of the row; ``*`` fits every label.
        epsilon: ∞ for a column without privacy.
        value: Accuracies as a share of 1.
        source: Paper, table and version.
        spread: As printed; None where there is none.
        unit: Whom the guarantee protects; None: every unit.
    """

    dataset: str
    method: str
    variant: str
    epsilon: float
    metric: str
    value: float
    source: str
    spread: float | None = None
    unit: str | None = None


def _read() -> tuple[PrintedNumber, ...]:
    found = []
    for table in yaml.safe_load(read_phrase_asset("printed_numbers.yaml")):
        metric = table.get("metric", "accuracy")
        scale = 100 if metric == "accuracy" else 1
        for method, variant, epsilon, *values in table["rows"]:
            for dataset, value in zip(table["datasets"], values, strict=True):
                if value is not None:
                    number, spread = (value, None) if isinstance(value, float) else (value[0] / scale, value[1] / scale)
                    named = (dataset, method, variant, float(epsilon), metric, number, table["source"])
                    found.append(PrintedNumber(*named, spread, table.get("unit")))
    return tuple(found)


PRINTED_NUMBERS = _read()


def find_printed_number(
    dataset: str, method: str, variant: str, epsilon: float, metric: str, unit: str | None = None
) -> PrintedNumber | None:
    """The printed number for one row, if there is one; a published variant ``*`` fits every variant, unit None every unit."""
    for p in PRINTED_NUMBERS:
        if None not in (unit, p.unit) and unit != p.unit:
            continue
        if (p.dataset, p.method, p.epsilon, p.metric) == (dataset, method, epsilon, metric) and p.variant in ("*", variant):
            return p
    return None


def compare_printed_number(row: Row, metric: str, printed: PrintedNumber) -> tuple[str, str]:
    """Our mean less the printed one, as a table shows it.

    Returns:
        (the difference, the same in standard errors of our mean; ``—`` where these are not known).
    """
    mean, spread, count = row.mean_of(metric), row.deviation_of(metric), len(row.values(metric))
    away = "—" if count < 2 or spread == 0 else f"{(mean - printed.value) / (spread / math.sqrt(count)):+.1f}"
    return f"{mean - printed.value:+.3f}", away
