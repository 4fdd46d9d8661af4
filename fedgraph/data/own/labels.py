"""Labels that users bring: which are missing, which classes there are, and what deserves a word of advice."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from fedgraph.data.base.csv_tables import csv_number
from fedgraph.errors import DataError

_MISSING_WORDS = frozenset({"", "-1", "-1.0", "nan", "<na>", "nat", "none"})  # as Python, NumPy and pandas write them
_DOUBTFUL_WORDS = frozenset({"unknown", "n/a", "na", "null", "missing", "not available", "?", "-", "undefined", "unlabeled"})
_MOST_FRACTIONS = 20  # distinct labels with a fraction; more than that is a number to predict, not a class


@dataclass(frozen=True, eq=False)
class OwnLabels:
    """Labels, as classes.

    Attributes:
        numbers: int64 [n], −1 where the label is missing.
        classes: the names, in the order of their numbers.
        remarks: whole sentences about what counted as missing, and what looks as if it should.
    """

    numbers: np.ndarray
    classes: tuple[str, ...]
    remarks: tuple[str, ...]


def describe_label_classes(count: int) -> str:
    """How many classes there are; a graph whose labels were not read has none."""
    return f"{count} classes" if count else "no labels"


def read_own_labels(values: Iterable[object], where: str, what: str = "node") -> OwnLabels:
    """The class of each node, or of each graph.

    Missing is None, NaN, pandas' NA and NaT, −1, and the texts of ``_MISSING_WORDS`` (capitals do not matter). Classes are in
    the order of their values where they are whole numbers, and then in the order of their texts.

    Args:
        values: one label each: text, whole numbers, true and false, or missing.
        where: names the labels in an error.

    Returns:
        The numbers, the names and the remarks.

    Raises:
        DataError: no label is known, or the labels are numbers to predict and no classes.
    """
    texts = [own_label_text(value) for value in values]
    known = sorted({text for text in texts if text is not None}, key=_by_value)
    if not known:
        raise DataError(f"{where}: no {what} has a label; allowed: at least one labelled {what}")
    fractions = sum(math.isfinite(n) and not n.is_integer() for n in map(csv_number, known))
    if fractions > _MOST_FRACTIONS:
        raise DataError(
            f"{where}: {len(known):,} different labels, {fractions:,} of them numbers with a fraction, such as {known[-1]}; "
            "allowed: classes. To predict a number is not supported: cut it into classes, for example low, middle and high"
        )
    position = {text: number for number, text in enumerate(known)}
    numbers = np.array([-1 if text is None else position[text] for text in texts], dtype=np.int64)
    remarks = []
    if missing := int((numbers < 0).sum()):
        remarks.append(f"{missing:,} of {numbers.size:,} {what}s have no label (None, NaN, −1, empty)")
    if doubtful := [text for text in known if text.casefold().strip() in _DOUBTFUL_WORDS]:
        counted = int(np.isin(numbers, [known.index(text) for text in doubtful]).sum())
        counts = f"the label {doubtful[0]!r} of {counted:,} {what}s counts as a class"
        remarks.append(f"{counts}; if it means that nobody knows, leave it empty")
    return OwnLabels(numbers, tuple(known), tuple(remarks))


def own_label_text(value: object) -> str | None:
    """The label as text, None where it is missing. Whole numbers lose their ``.0``: pandas adds it beside missing ones."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        text = value.strip()
        return None if text.casefold() in _MISSING_WORDS else text
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, SupportsFloat):
        number = float(value)
        if math.isnan(number) or number == -1:
            return None
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def _by_value(label: str) -> tuple[int, int, str]:
    digits = label.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return (0, int(label), "") if whole else (1, 0, label)
