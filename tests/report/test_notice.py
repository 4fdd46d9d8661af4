"""The sentence that opens every output when data was generated."""

from __future__ import annotations

import dataclasses

from fedgraph.cells import environment
from fedgraph.types import Graph, GraphProvenance


def test_a_stand_in_is_no_asked_for_graph(library: Graph) -> None:
    made = GraphProvenance("synthetic", "made")
    stand_in = dataclasses.replace(library, name="planetoid/cora", provenance=made)
    asked = dataclasses.replace(library, name="synthetic/block_model", provenance=made)
    assert environment.notice([library]) is None
    assert "planetoid/cora was not available" in str(environment.notice([stand_in]))
    both = str(environment.notice([stand_in, asked]))
    assert both.startswith("SYNTHETIC DATA")
    assert "synthetic/block_model is generated, as the scenario asks" in both
    assert "not available" not in str(environment.notice([asked]))
