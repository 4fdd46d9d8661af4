"""The draft's short form."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fedgraph.privacy.trust import Trust
from fedgraph.scenario import draft
from fedgraph.scenario.wanted import Data, Wanted


@pytest.mark.parametrize(("people", "ceiling"), [(1_500, True), (200_000, False)])
def test_quick_leaves_the_row_without_privacy_out_where_it_takes_most_of_the_time(people: int, ceiling: bool) -> None:
    """The draft as a whole has it in both."""
    data = Data("own/csv", Path("/data/mine"), "mine", "found", people=people)
    text = draft.draft_yaml(Wanted(data, "node", (Trust.CURATOR,), (1.0, 8.0), None, None), Path("/data"))
    written = yaml.safe_load(text)
    methods = {row["method"] for row in written["quick"]["tasks.0.methods"]}
    assert methods == {"features", "label_hop"} | ({"nonprivate"} if ceiling else set())
    assert "nonprivate" in {row["method"] for row in written["tasks"][0]["methods"]}
    assert ("left out" in text) is not ceiling
