"""A column of numbers that tells the label when it is cut at one or two of them is pointed out, and no column of chance is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedgraph.data.own import reading as own_reading
from fedgraph.data.own.door import read

N = 200
RNG = np.random.default_rng(8)
SICK = RNG.random(N) < 0.4
SCORE = SICK * 0.5 + RNG.random(N) / 2
MIDDLE = np.where(SICK, 40 + 20 * RNG.random(N), np.where(RNG.random(N) < 0.5, 39 * RNG.random(N), 61 + 39 * RNG.random(N)))
ERRING = np.where(RNG.random(N) < 0.02, 1 - SCORE, SCORE)


def says(cells: list[str], label: list[str], folder: Path) -> str:
    people = "".join(f"p{k},{cell},{one}\n" for k, (cell, one) in enumerate(zip(cells, label, strict=True)))
    (folder / "people.csv").write_text(f"id,score,sick\n{people}", encoding="utf-8")
    count = len(cells)
    (folder / "ties.csv").write_text("source,target\n" + "".join(f"p{k},p{(k + 1) % count}\n" for k in range(count)))
    found = read(folder, label="sick")
    told = [note for note in found.graph.provenance.doubts if note.startswith("column score, cut at one or two numbers, tells")]
    assert all(note in found.says for note in told)
    return " ".join(told)


@pytest.mark.parametrize(
    ("cells", "right"),
    [
        ([f"{one:.4f}" for one in SCORE], f"{N} of {N}"),
        ([f"{one:.4f}" for one in MIDDLE], f"{N} of {N}"),
        ([f"{one:.4f}" for one in ERRING], " of 200"),
        ([f'"{one * 1000:.2f}"'.replace(".", ",") for one in SCORE], f"{N} of {N}"),
        ([f"{one:.4f}" if k % 10 or SICK[k] else "" for k, one in enumerate(SCORE)], f"{N} of {N}"),
        ([f"{one:.4f}" for one in SICK * 0.1 + RNG.random(N)], ""),
        ([f"{one:.4f}" for one in RNG.random(N)], ""),
    ],
)
def test_a_score_that_parts_the_classes_is_pointed_out(cells: list[str], right: str, tmp_path: Path) -> None:
    told = says(cells, ["yes" if one else "no" for one in SICK], tmp_path)
    assert right in told
    assert bool(right) == bool(told)


def test_three_classes_lie_between_two_cuts(tmp_path: Path) -> None:
    kinds = np.arange(90) % 3
    assert "90 of 90" in says([f"{one:.3f}" for one in kinds + RNG.random(90) * 0.9], [f"k{one}" for one in kinds], tmp_path)


def test_numbers_of_chance_tell_nothing_of_a_few_people() -> None:
    """Of 12 against 12 two cuts part many columns nearly; over 500 columns none is remarked."""
    texts = [*["a"] * 12, *["b"] * 12]
    for _ in range(500):
        assert own_reading._told_by_size([f"{one:.6f}" for one in RNG.random(24)], texts) == 0
