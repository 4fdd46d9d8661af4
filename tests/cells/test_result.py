"""What a cell's file holds is what was written: every record, every text, every number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph import cells
from fedgraph.cells import task_facts as records
from fedgraph.cells.task_facts import (
    CELL_FACTS_RECORDS,
    ClientResultCellFacts,
    NodeClassificationCellFacts,
    ParticipationCellFacts,
    TaskFacts,
)
from fedgraph.comparison import solver_facts
from fedgraph.federation import JOINED_WORLD, LeftOutOfWorld, World, WorldKind
from fedgraph.privacy.units import Protection, Relation, Viewer
from tests.results import plain_result

PLAIN = plain_result(
    "t", "d", "m", "v", JOINED_WORLD, "provable", 1.0, 0, {}, TaskFacts(), Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER,
    ()), 1e-5,
    None, 1.0, None, "theorem", {}, (), 0.1, (),
)  # fmt: skip
NAMES = st.text(max_size=20) | st.sampled_from(["inf", "-inf", "nan", "true", "", "local", "secure", " without ", "🏦"])
st.register_type_strategy(Mapping, lambda made: st.dictionaries(NAMES, st.from_type(get_args(made)[1]), max_size=3))
FACTS = st.one_of(
    st.builds(ParticipationCellFacts, results=st.lists(st.builds(ClientResultCellFacts, client=NAMES), max_size=3).map(tuple)),
    st.builds(
        NodeClassificationCellFacts,
        public=NAMES, attack=st.builds(records.CanaryAttackCellFacts, path=NAMES), sent=st.builds(records.SentBytesCellFacts),
        named=st.builds(
            records.NamedAttacksCellFacts,
            found=st.tuples(st.builds(records.NamedAttackCellFacts)), risk=st.builds(records.NodeRiskCellFacts),
        ),
    ),
    st.builds(records.GraphClusteringCellFacts, partition=NAMES, solver=st.builds(
        solver_facts.SolverFacts, solved=st.builds(solver_facts.GromovPairFacts))),
    st.sampled_from([record() for record in CELL_FACTS_RECORDS.values()]),
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(facts=FACTS, name=NAMES, epsilon=st.floats(allow_nan=False))
def test_every_record_reads_back_as_it_was(facts: TaskFacts, name: str, epsilon: float) -> None:
    world = World(WorldKind.TOGETHER, JOINED_WORLD.trust, LeftOutOfWorld(3, name))
    entry = replace(PLAIN, dataset=name, variant=name, world=world, epsilon=epsilon, paths={name: epsilon}, facts=facts)
    again = cells.result.from_line(json.loads(json.dumps(cells.result.to_line(entry))))
    assert repr(again) == repr(entry), "repr, since NaN is not equal to itself"
    kept = pd.DataFrame([cells.result.to_line(entry)])
    (line,) = kept.to_dict("records")
    assert repr(cells.result.from_line(line)) == repr(entry)


@pytest.mark.parametrize(
    "change",
    [{"facts": '{"kind":"unknown"}'}, {"epsilon": "much"}, {"paths": "x"}, {"ledger": "["}, {"notes": 3}, {"seed": None}],
)
def test_what_is_no_result_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no result|epsilon|Expecting|notes|seed"):
        cells.result.from_line(cells.result.to_line(PLAIN) | change)
