"""Labels that users bring: which are missing, which classes there are, and what deserves a word of advice."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np

from fedgraph.data.base.csv_tables import csv_number
from fedgraph.errors import DataError

_MISSING_WORDS = frozenset({"", "-1", "-1.0", "nan", "<na>", "nat"})  # as Python, NumPy and pandas write them
_DOUBTFUL_WORDS = frozenset(
    {"unknown", "none", "n/a", "na", "null", "missing", "not available", "?", "-", "undefined", "unlabeled"}
)
_FRACTION = re.compile(r"([+-]?\d+)\.0+")  # a whole number as pandas writes it beside missing ones
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

    Missing is None, NaN, pandas' NA and NaT, −1, and the texts of ``_MISSING_WORDS`` (capitals do not matter); where 1 and −1
    are all there is, −1 is a class. Texts that differ in capitals alone are one class, called as most write it. Classes are in
    the order of their values where they are whole numbers, and then in the order of their texts.

    Args:
        values: one label each: text, whole numbers, true and false, or missing.
        where: names the labels in an error.

    Returns:
        The numbers, the names and the remarks.

    Raises:
        DataError: no label is known, or the labels are numbers to predict and no classes.
    """
    given = list(values)
    texts = [own_label_text(value) for value in given]
    signed = {text for text in texts if text is not None} == {"1"} and any(_is_minus_one(value) for value in given)
    if signed:
        texts = ["-1" if text is None and _is_minus_one(value) else text for text, value in zip(texts, given, strict=True)]
    spellings: dict[str, Counter[str]] = {}
    for text in texts:
        if text is not None:
            spellings.setdefault(text.casefold(), Counter())[text] += 1
    usual = {text: min(own, key=lambda one: (-own[one], one)) for own in spellings.values() for text in own}
    texts = [None if text is None else usual[text] for text in texts]
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
    remarks = ["the labels are −1 and 1: −1 is a class here, and not a missing label"] if signed else []
    if several := [own for own in spellings.values() if len(own) > 1]:
        listed = "; ".join(" and ".join(map(repr, sorted(own))) for own in several[:3])
        remarks.append(f"spellings that differ in capitals alone are one class: {listed}")
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
        text = _FRACTION.sub(r"\1", value.strip()) if _FRACTION.fullmatch(value.strip()) else value.strip()
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


def _is_minus_one(value: object) -> bool:
    if isinstance(value, str):
        return bool(re.fullmatch(r"-1(\.0+)?", value.strip()))
    return isinstance(value, SupportsFloat) and not isinstance(value, (bool, np.bool_)) and float(value) == -1


def _by_value(label: str) -> tuple[int, int, str]:
    digits = label.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return (0, int(label), "") if whole else (1, 0, label)
