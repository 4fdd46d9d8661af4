"""What a cell's file holds is what was written: every record, every text, every number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph.cells import facts as records
from fedgraph.cells.entry import Entry, from_json, to_json
from fedgraph.cells.facts import RECORDS, ClientResult, Facts, NodeClassificationFacts, ParticipationFacts
from fedgraph.comparison import solving
from fedgraph.privacy.units import Protection, Relation, Viewer
from fedgraph.worlds.world import JOINED, Kind, LeftOut, World

PLAIN = Entry(
    "t", "d", "m", "v", JOINED, "provable", 1.0, 0, {}, Facts(), Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, ()), 1e-5,
    None, 1.0, None, "theorem", {}, (), 0.1, (),
)  # fmt: skip
NAMES = st.text(max_size=20) | st.sampled_from(["inf", "-inf", "nan", "true", "", "local", "secure", " without ", "🏦"])
st.register_type_strategy(Mapping, lambda made: st.dictionaries(NAMES, st.from_type(get_args(made)[1]), max_size=3))
FACTS = st.one_of(
    st.builds(ParticipationFacts, results=st.lists(st.builds(ClientResult, client=NAMES), max_size=3).map(tuple)),
    st.builds(
        NodeClassificationFacts,
        public=NAMES,
        attack=st.builds(records.CanaryAttack, path=NAMES),
        named=st.builds(
            records.NamedAttacks, found=st.tuples(st.builds(records.NamedAttack)), risk=st.builds(records.NodesAtRisk)
        ),
        sent=st.builds(records.SentBytes, partial=st.builds(records.PartialRounds)),
    ),
    st.builds(records.ClaimFacts, inputs=st.dictionaries(NAMES, st.floats() | NAMES, max_size=4)),
    st.builds(
        records.GraphClusteringFacts,
        label=NAMES,
        solver=st.builds(solving.SolverFacts, solved=st.builds(solving.SolvedPairs), minima=st.builds(solving.LocalMinima)),
    ),
    st.sampled_from([record() for record in RECORDS.values()]),
)


@settings(max_examples=25, deadline=None)
@given(facts=FACTS, name=NAMES, epsilon=st.floats(allow_nan=False))
def test_every_record_reads_back_as_it_was(facts: Facts, name: str, epsilon: float) -> None:
    world = World(Kind.TOGETHER, JOINED.trust, LeftOut(3, name))
    entry = replace(PLAIN, dataset=name, variant=name, world=world, epsilon=epsilon, paths={name: epsilon}, facts=facts)
    again = from_json(json.loads(json.dumps(to_json(entry))))
    assert repr(again) == repr(entry), "repr, since NaN is not equal to itself"


@pytest.mark.parametrize("change", [{"facts": {"kind": "unknown"}}, {"epsilon": "much"}, {"world": None}, {"ledger": None}])
def test_what_is_no_entry_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"entry|epsilon"):
        from_json(to_json(PLAIN) | change)


def test_an_accuracy_that_is_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"its accuracy is 2; allowed: 0 to 1"):
        from_json(to_json(replace(PLAIN, metrics={"accuracy": 2.0})))


def test_the_facts_of_another_task_are_no_answer() -> None:
    with pytest.raises(TypeError, match="Facts, not ParticipationFacts"):
        PLAIN.facts_as(ParticipationFacts)
