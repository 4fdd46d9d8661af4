"""Two tables of one club whose ids do not match: written by another rule, lacking rows, or empty at one end."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.errors import DataError
from fedgraph.types import Graph

N = 120
PAIRS = [(k, (k * 7 + 3) % N) for k in range(N)]


def club(people: Callable[[int], str], ends: Callable[[int], str]) -> Reading:
    """People of whom one table writes ids so, and that of ties otherwise."""
    table = pd.DataFrame({"id": [people(k) for k in range(N)], "age": [20 + k % 50 for k in range(N)], "group": ["a", "b"] * (N // 2)})
    ties = pd.DataFrame([(ends(a), ends(b)) for a, b in PAIRS], columns=["von", "an"])
    return read((table, ties), label="group", ends=["von", "an"])


def iban(k: int) -> str:
    return f"DE{k % 97:02} 1234 {k:04} 00{k % 7}1"


def ties_of(reading: Reading) -> set[frozenset[str]]:
    assert isinstance(reading.graph, Graph)
    arcs = reading.graph.adjacency.tocoo()
    return {frozenset((reading.graph.ids[a], reading.graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}


RULES: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "zeros in front": ("{:04}".format, "{}".format),
    "spaces": (iban, lambda k: iban(k).replace(" ", "")),
    "capitals": ("m{}x".format, "M{}X".format),
    "capitals, spaces, signs and zeros in front": ("A-{:03}".format, "a{}".format),
}


@pytest.mark.parametrize("what", RULES)
@pytest.mark.parametrize("turned", [False, True])
def test_ids_that_one_rule_tells_are_matched_and_it_is_said(what: str, turned: bool) -> None:
    people, ends = RULES[what][::-1] if turned else RULES[what]
    reading = club(people, ends)
    assert ties_of(reading) == {frozenset((people(a), people(b))) for a, b in PAIRS if a != b}
    assert "ids in the table of edges are written otherwise than in 'id' of the table of nodes, such as " in reading.says
    assert f"they were matched without {what}" in str(reading)


def test_a_part_that_lost_its_zeros_is_matched_too() -> None:
    """Of 120 numbers with three digits 20 are written alike."""
    reading = club("{:03}".format, "{}".format)
    assert len(ties_of(reading)) == len({frozenset(pair) for pair in PAIRS if len(set(pair)) == 2})
    assert f"{N - 20} of {N} ids in the table of edges are written otherwise" in reading.says


def test_what_would_make_two_people_one_is_refused() -> None:
    with pytest.raises(DataError, match=r"By no rule all are somebody, and each one: write ids alike"):
        club(lambda k: f"{k // 2}" if k % 2 else f"0{k // 2}", lambda k: f"00{k // 2}")


def test_where_many_rows_are_missing_one_line_counts_them() -> None:
    with pytest.raises(DataError) as caught:
        club(str, lambda k: str(k + 40))
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith("the table of edges:")
    assert "unknown node '1" in said
    assert f"it and 39 more of {N} that ties name" in said
    assert f"whose {N} ids in column 'id' are such as '0', '1', '2'" in said
    assert "Are rows missing there (a page of an answer, a filter)?" in said
    with pytest.raises(DataError, match="ids of another kind: is another column the id"):
        club("M-{}".format, "https://x/{}/y".format)


@pytest.mark.parametrize("nothing", ["", "NULL"])
def test_ties_without_one_end_are_one_line(nothing: str) -> None:
    with pytest.raises(DataError) as caught:
        club(str, lambda k: nothing if k % 10 == 3 else str(k))
    assert str(caught.value) == (
        "the table of edges:1: an empty cell in column 'von' or 'an', as in 24 of 120 lines (so 4, 11, 14, 21, 24, 31, 34, 41, …); "
        "allowed: both ends of a tie, or no such line"
    )


def test_a_table_of_labels_that_lost_its_zeros_is_matched(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("club")
    ids = [f"{k:03}" for k in range(N)]
    pd.DataFrame({"id": ids, "age": [20 + k % 50 for k in range(N)]}).to_csv(folder / "people.csv", index=False)
    pd.DataFrame([(ids[a], ids[b]) for a, b in PAIRS], columns=["source", "target"]).to_csv(folder / "ties.csv", index=False)
    pd.DataFrame({"id": range(N), "group": ["a", "b"] * (N // 2)}).to_csv(folder / "labels.csv", index=False)
    reading = read(folder)
    assert isinstance(reading.graph, Graph)
    assert (reading.graph.labels >= 0).all()
    assert "100 of 120 ids in labels.csv are written otherwise than in 'id' of people.csv" in reading.says
