"""Link prediction: hidden edges stay hidden, prices hold at every trust, and scores tell edges from other pairs."""

from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph.cells.cell import CellContext
from fedgraph.cells.task_facts import LinkPredictionCellFacts
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import links
from fedgraph.library import Run
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Unit
from fedgraph.tasks import link_prediction
from fedgraph.types import Graph

HOPS = {"method": "link_hops", "width": 16, "label": "hops"}


@pytest.fixture(scope="module")
def run(library: Graph) -> Run:
    methods = [HOPS, {**HOPS, "hops": 0, "label": "features"}, {**HOPS, "rows": "both", "hops": 2, "label": "both"}]
    trust = ["curator", "sums", "own-client"]
    clear = [{"method": "link_clear", "trust": ["curator", "own-client"]}]
    return fedgraph.compare(library, [*methods, *clear], epsilons=[4, np.inf], trust=trust, clients=3, seeds=2)


def test_every_row_keeps_its_price_and_says_what_it_assumes(run: Run) -> None:
    assert {row.head.world.trust for row in run.rows} == {Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT}
    for row in run.rows:
        assert row.protection.unit is Unit.EDGE
        assert Assumption.FEATURES_LABELS_PUBLIC in row.protection.assumptions
        private = row.head.method == "link_hops" and np.isfinite(row.head.epsilon)
        assert row.provable <= 4 if private else np.isinf(row.provable)
        facts = row.head.facts_as(LinkPredictionCellFacts)
        assert facts.tested
        assert facts.negatives == 10_000


def test_without_noise_edges_are_told_from_other_pairs(run: Run) -> None:
    means = {(r.head.variant, r.head.world.trust, r.head.epsilon): r.mean_of("auc") for r in run.rows}
    assert means["both", Trust.CURATOR, np.inf] > 0.6
    assert means["default", Trust.CURATOR, np.inf] > 0.7
    assert means["hops", Trust.SUMS, np.inf] == pytest.approx(means["hops", Trust.OWN_CLIENT, np.inf], abs=1e-6)
    assert set(run.table()["metric"]) == {"auc"}


def test_the_page_has_a_section_for_links(run: Run) -> None:
    page = (Path(run.folder) / "report.html").read_text(encoding="utf-8")
    assert "Hits@50" in page
    assert "edges were hidden and asked for" in page


def test_hidden_edges_are_held_by_nobody(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedgraph.methods import link_clear

    held: list[np.ndarray] = []
    honest = link_clear.prepare

    def watched(plan, subgraph):  # type: ignore[no-untyped-def]
        held.append(honest(plan, subgraph))
        return held[-1]

    monkeypatch.setattr(link_clear, "prepare", watched)
    run = fedgraph.compare(library, ["link_clear"], epsilons=[1], trust=["curator"])
    facts = run.rows[0].head.facts_as(LinkPredictionCellFacts)
    assert facts.tested is not None
    assert len(held[0]) + facts.tested == library.num_edges
    assert 0.05 < facts.tested / library.num_edges < 0.15  # each edge by its own coin, so how many is no fixed number
    assert len(np.unique(np.r_[held[0], links.list_all(library.adjacency)], axis=0)) == library.num_edges


def test_a_classifier_scores_no_pairs_and_a_linker_names_no_classes(library: Graph) -> None:
    asked = {"name": "x", "datasets": [{"name": "embedded/library"}]}
    task = {"trust": ["curator"], "epsilons": [1], "methods": [{"method": "gap_edge"}]}
    with pytest.raises(ScenarioError, match=r"gives nodes a class.*scores pairs of nodes.*link_clear, link_hops, link_owners"):
        fedgraph.run({**asked, "tasks": [{"task": "link_prediction", **task}]})
    with pytest.raises(ScenarioError, match="scores pairs of nodes"):
        fedgraph.run({**asked, "tasks": [{"task": "node_classification", **task, "methods": [{"method": "link_hops"}]}]})


def test_a_graph_with_too_few_edges_is_refused_in_one_line() -> None:
    features, labels, adjacency = np.eye(4), np.array([0, 1, 0, 1]), np.zeros((4, 4))
    adjacency[0, 1] = adjacency[1, 0] = 1
    with pytest.raises(DataError, match=r"hiding 0\.1 of 1 edges leaves 1 to learn from and 0 to ask for; both need one"):
        fedgraph.compare((adjacency, features, labels), ["link_clear"], epsilons=[1], trust=["curator"])


def test_owners_of_edges_are_asked_for_before_anything_runs(library: Graph) -> None:
    """``check`` and the dry run make the cells, and a run would fail in each of them."""
    params = link_prediction.Params(trust=["curator"], epsilons=[1], methods=[{"method": "link_owners", "unit": "entity"}])
    context = CellContext(label="ties", dataset="mine", data=library, root=0, seeds=1, runtime=None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="mine: no edge names an owner; unit: entity needs owners of edges"):
        link_prediction.cells(params, context)
