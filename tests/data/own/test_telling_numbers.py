"""A column of numbers that tells the label when it is cut at one or two of them is pointed out, and no column of chance is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.data.own.clubs import given, graph_of, lines, ring

N = 200
RNG = np.random.default_rng(8)
SICK = RNG.random(N) < 0.4
SCORE = SICK * 0.5 + RNG.random(N) / 2
MIDDLE = np.where(SICK, 40 + 20 * RNG.random(N), np.where(RNG.random(N) < 0.5, 39 * RNG.random(N), 61 + 39 * RNG.random(N)))
ERRING = np.where(RNG.random(N) < 0.02, 1 - SCORE, SCORE)
YES = ["yes" if one else "no" for one in SICK]
KINDS = [f"k{k % 3}" for k in range(N)]


@pytest.mark.parametrize(
    ("cells", "label", "right"),
    [
        ([f"{one:.4f}" for one in SCORE], YES, f"{N} of {N}"),
        ([f"{one:.4f}" for one in MIDDLE], YES, f"{N} of {N}"),
        ([f"{one:.4f}" for one in ERRING], YES, " of 200"),
        ([f'"{one * 1000:.2f}"'.replace(".", ",") for one in SCORE], YES, f"{N} of {N}"),
        ([f"{one:.4f}" if k % 10 or SICK[k] else "" for k, one in enumerate(SCORE)], YES, f"{N} of {N}"),
        ([f"{one:.3f}" for one in np.arange(N) % 3 + RNG.random(N) * 0.9], KINDS, f"{N} of {N}"),
        ([f"{one:.4f}" for one in SICK * 0.1 + RNG.random(N)], YES, ""),
        ([f"{one:.4f}" for one in RNG.random(N)], YES, ""),
    ],
    ids=["a score", "the middle", "some err", "commas", "empty cells", "three classes", "in part", "chance"],
)
def test_a_score_that_parts_the_classes_is_pointed_out(cells: list[str], label: list[str], right: str, tmp_path: Path) -> None:
    people = lines(((f"p{k}", cell, one) for k, (cell, one) in enumerate(zip(cells, label, strict=True))), "id,score,sick")
    found = given(tmp_path, {"people.csv": people, "ties.csv": ring(N)}, label="sick")
    begins = "column score, cut at one or two numbers, tells"
    told = [note for note in graph_of(found).provenance.doubts if note.startswith(begins)]
    assert all(note in found.says for note in told)
    assert right in " ".join(told)
    assert bool(right) == bool(told)
