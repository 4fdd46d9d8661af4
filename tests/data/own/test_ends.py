"""Which columns are the ends of ties: not by a few cells that name nobody, and not where they name other things than people."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import given, lines, ties_of

N = 40
EVERY = [("Lender", "Borrower"), ("Lender", "Witness"), ("Borrower", "Witness")]
THREE = [(k % N, (7 * k + 3) % N, (11 * k + 5) % N) for k in range(100)]


@pytest.mark.parametrize(
    ("who", "nobody", "each", "place"),
    [
        ("Kim {}", "unbekannt", 100, 1),
        ("Kim {}", "w/o", 20, 1),
        ("Kim {}", "{}x", 3, 0),
        ("Kim {}", "?", 5, 2),
        ("7{:03}", "99", 9, 1),
    ],
)
def test_a_few_who_are_nobody_do_not_decide_which_columns_are_ends(
    who: str, nobody: str, each: int, place: int, tmp_path: Path
) -> None:
    people = lines(((who.format(k), "ab"[k % 2]) for k in range(N)), "Name,city")
    rows = [[who.format(one) for one in row] for row in THREE]
    told = [
        [nobody.format(k) if k % each == 1 and at == place else one for at, one in enumerate(row)] for k, row in enumerate(rows)
    ]
    files = {
        "people.csv": people,
        "loans.csv": lines(([k + 900, *row] for k, row in enumerate(told)), "Loan,Lender,Borrower,Witness"),
    }
    with pytest.raises(ReadingQuestion, match="Lender and Borrower or Lender and Witness or Borrower and Witness") as asked:
        given(tmp_path, files)
    assert list(asked.value.choices) == EVERY
    for one, two in EVERY:
        a, b = (["Lender", "Borrower", "Witness"].index(name) for name in (one, two))
        if place in (a, b):
            with pytest.raises(DataError, match=f"unknown node '{nobody.format(1)}'"):
                given(tmp_path, files, ends=[one, two])
        else:
            assert ties_of(given(tmp_path, files, ends=[one, two])) == {
                frozenset((row[a], row[b])) for row in rows if row[a] != row[b]
            }
