"""Lists of ties of two to four columns, without a header or with a strange one, alone or beside a table of people."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from fedgraph.types import Graph
from tests.data.own.clubs import facts

WORDS = ["user", "account", "paper", "ann", "bob", "source", "node", "name", "key", "member", "cid", "client", "dora", "x1"]
IDS = {
    "letters": [chr(97 + k) for k in range(26)], "capitals": [chr(65 + k) for k in range(26)], "words": WORDS,
    "numbered": [f"m{k}" for k in range(20)], "numbers": [str(k) for k in range(20)],
    "long": [str(9_007_199_254_740_993 + k) for k in range(20)], "mail": [f"p{k}@x.org" for k in range(20)],
}  # fmt: skip
MORE = {
    "weight": lambda rng: str(rng.integers(1, 6)),
    "amount": lambda rng: f"{rng.random() * 100:.2f}",
    "date": lambda rng: f"2024-01-{rng.integers(1, 28):02d}",
    "kind": lambda rng: str(rng.choice(["friend", "kin", "work"], p=[0.9, 0.05, 0.05])),
    "same": lambda rng: "knows",
}


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "ids": draw(st.sampled_from(sorted(IDS))),
        "more": draw(st.lists(st.sampled_from(sorted(MORE)), max_size=2, unique=True)),
        "ties": draw(st.sampled_from((4, 12, 30))),
        "shape": draw(st.sampled_from(("any", "star", "path"))),
        "separator": draw(st.sampled_from((",", ";", "\t", " "))),
        "comments": draw(st.sampled_from((0, 0, 1, 3))),
        "beside": draw(st.booleans()),
        "ending": draw(st.sampled_from(("csv", "txt"))),
        "above": draw(st.sampled_from((None, None, None, ("wer", "wen"), ("ego", "alter"), ("Person", "Freund")))),
        "below": draw(st.sampled_from((None, None, None, None, ("Quelle", "HR-2023"), ("Zeilen", "999")))),
        "seed": draw(st.integers(0, 60)),
    }


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lists())
def test_a_list_without_a_header_is_the_same_graph_or_a_question(dress: dict[str, Any]) -> None:
    rng, ids = np.random.default_rng(dress["seed"]), IDS[dress["ids"]]
    beside = dress["beside"] or dress["ids"] == "words"  # alone, nobody can tell that client,user is a tie
    mixed = list(rng.permutation(ids))
    pairs = {
        "any": {tuple(sorted(map(str, rng.choice(ids, 2, replace=False)))) for _ in range(dress["ties"])},
        "star": {(mixed[0], one) for one in mixed[1 : dress["ties"] + 1]},
        "path": set(itertools.pairwise(mixed[: dress["ties"] + 1])),
    }[dress["shape"]]
    rows = [[*pair, *(MORE[one](rng) for one in dress["more"])] for pair in rng.permutation(sorted(pairs)).tolist()]
    lines = [dress["separator"].join(row) for row in rows]
    for place in range(dress["comments"]):
        lines.insert(place * len(lines) // 3, f"# ties, part {place}")
    above, below = (dress[side] if len(rows) >= 10 else None for side in ("above", "below"))  # of fewer ties nobody can tell
    lines = ([dress["separator"].join([*above, *dress["more"]])] if above else []) + lines
    lines += [dress["separator"].join([*below, *("1" for _ in dress["more"])])] if below else []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / f"ties.{dress['ending']}"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if beside:
            people = "".join(f"{one},{20 + k},{('red', 'blue')[k % 2]}\n" for k, one in enumerate(ids))
            (Path(place) / "people.csv").write_text("id,age,team\n" + people, encoding="utf-8")
        graph: object
        try:
            graph = read(place if beside else file, **({"label": "team"} if beside else {})).graph
        except DataError as error:
            graph = error
    if below:
        assert isinstance(graph, DataError)
        return
    if isinstance(graph, DataError):
        assert "--ends" in str(graph) or (above and "unknown node" in str(graph))  # a list of people, and whom each names
        told = above or "kind" in dress["more"]  # a kind that stands in the first line alone
        assert told or isinstance(graph, ReadingQuestion)
        return
    assert isinstance(graph, Graph)
    found = facts(graph)
    assert found[1] == {frozenset(pair) for pair in pairs}
    assert found[0] == (set(ids) if beside else {one for pair in pairs for one in pair})
