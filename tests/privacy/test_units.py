"""No statement without unit, relation, viewer and assumptions; nonsense explains itself."""

from dataclasses import replace

import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy.units import Assumption as A
from fedgraph.privacy.units import Protection, Relation, Viewer

SOUND = [
    Protection(Relation.NODE_ZERO_OUT, Viewer.CURATOR_TRUSTED, (A.COUNTS_PUBLIC,)),
    Protection(Relation.NODE_REPLACE, Viewer.SERVER, (A.CLIENTS_DISJOINT, A.MEMBERSHIP_GIVEN)),
    Protection(Relation.NODE_REPLACE, Viewer.SERVER_SECURE_AGGREGATION, (A.IDEAL_SECURE_AGGREGATION, A.ONE_COLLUDER)),
    Protection(
        Relation.NODE_REPLACE,
        Viewer.SERVER_SECURE_AGGREGATION,
        (A.IDEAL_SECURE_AGGREGATION, A.SEVERAL_COLLUDERS),
        colluders=3,
    ),
    Protection(Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, (A.FEATURES_LABELS_PUBLIC, A.OWN_EDGES_KNOWN)),
    Protection(Relation.NODE_ZERO_OUT, Viewer.CURATOR_TRUSTED, (A.PROMISED_DEGREE, A.ROWS_NEVER_RELEASED), 100),
    Protection(Relation.NODE_ZERO_OUT, Viewer.CURATOR_TRUSTED, (A.SAMPLE_SECRET,)),
    Protection(Relation.EDGE_UNDIRECTED, Viewer.SERVER, (A.FEATURES_LABELS_PUBLIC, A.CUT_EDGES_SHARED)),
    Protection(Relation.GRAPH_REPLACE, Viewer.SERVER, (A.SIZES_PUBLIC, A.MODEL_GIVEN)),
    Protection(Relation.NODE_REPLACE, Viewer.WORLD, (A.MODEL_GIVEN,)),
    Protection(Relation.NODE_LINKS, Viewer.SERVER, (A.FEATURES_LABELS_PUBLIC, A.CLIENTS_DISJOINT)),
    Protection(Relation.ENTITY_LINKS, Viewer.CURATOR_TRUSTED, (A.FEATURES_LABELS_PUBLIC,)),
]


def test_a_file_cannot_change_the_unit():
    with pytest.raises(PrivacyError, match="unit"):
        Protection.from_dict(SOUND[0].to_dict() | {"unit": "edge"})


def test_edges_that_are_public_are_the_same_in_both_worlds() -> None:
    every = Protection(Relation.NODE_REPLACE, Viewer.WORLD, ())
    rows = replace(every, assumptions=(A.EDGES_PUBLIC,))
    assert "features, label and edges" in every.neighbours
    assert "edges" not in rows.neighbours
    assert every.neighbours == Relation.NODE_REPLACE.words
