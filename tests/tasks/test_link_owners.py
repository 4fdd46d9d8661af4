"""Owners of links: each alone and joined, asked about its own hidden ties; its page, and what its people pay."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedgraph
from fedgraph.cells import task_facts
from fedgraph.cells.task_facts import LinkPredictionCellFacts
from fedgraph.errors import ScenarioError
from fedgraph.learning import links
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit
from fedgraph.report import client_choices, table
from fedgraph.report.client_choices import EVERYBODY
from fedgraph.report.saved_run import load_saved_run
from fedgraph.report.sections import participation
from fedgraph.report.sections.base import SectionRecords
from fedgraph.runs.run import Run
from fedgraph.worlds import world
from tests.models.test_link_models import write_accounts

ROWS = [
    {"method": "link_owners", "width": 2, "label": "person"},
    {"method": "link_owners", "width": 2, "unit": "entity", "label": "owner", "trust": ["curator", "sums"]},
    {"method": "link_hops", "width": 8, "label": "tie", "trust": ["own-client"]},
    {"method": "link_clear", "trust": ["curator"]},
]


def scenario(folder: Path, **more: Any) -> dict[str, Any]:
    task = {
        "task": "link_prediction", "trust": ["curator", "sums", "own-client"], "epsilons": [4], "delta": 1e-4, "owners": True,
        "methods": ROWS, "partition": {"partition": "uniform", "clients": 3}, "test_share": 0.3, "negatives": 2000,
        "called": ["account", "accounts"],
    }  # fmt: skip
    data = [{"name": "own/csv", "label": "d", "path": str(folder), "parameters": {"label": "", "owner": "payer"}}]
    return {"name": "owners", "seeds": 3, "runtime": {"engine": "serial"}, "datasets": data, "tasks": [task | more]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("owners")
    folder = write_accounts(home)
    fedgraph.run(scenario(folder), out=home / "run", quiet=True)
    return home


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    return fedgraph.open_run(home / "run")


def records(home: Path) -> SectionRecords:
    entries = load_saved_run(home / "run").results
    return SectionRecords("n", "link_prediction", "links", "d", {"called": ["account", "accounts"]}, entries)


def test_every_owner_is_asked_the_same_in_every_world(home: Path) -> None:
    asked: dict[tuple[int, str], set[tuple[int, int]]] = {}
    worlds = set()
    for entry in records(home).entries:
        worlds.add(entry.world)
        assert [one.client for one in entry.facts.results] == [EVERYBODY, "client 1", "client 2", "client 3"]
        for one in entry.facts.results:
            asked.setdefault((entry.seed, one.client), set()).add((one.nodes, one.tested))
        everybody, *each = entry.facts.results
        assert everybody.metrics["auc"] == pytest.approx(
            sum(one.tested * one.metrics["auc"] for one in each) / everybody.tested
        )
        for one in each:
            assert task_facts.unpack_answers(one.right, one.tested).mean() == pytest.approx(one.metrics["auc"], abs=1e-4)
            assert {"auc", "hits_at_50", "mrr"} <= set(one.metrics)
        assert bool(entry.metrics) == (entry.world != world.ALONE_WORLD), (
            "scores of models that stay apart are on no common scale"
        )
    assert world.ALONE_WORLD in worlds
    assert all(len(found) == 1 for found in asked.values())


def test_what_owners_pay(home: Path) -> None:
    """Alone, ties and accounts are at one client. Whose records are at all of them is in every model, and pays for all."""
    for entry in records(home).entries:
        prices = {one.epsilon for one in entry.facts.results}
        if entry.method == "link_clear":
            assert prices == {math.inf}
        elif entry.world == world.ALONE_WORLD and entry.protection is not None and entry.protection.unit is Unit.ENTITY:
            assert prices == {entry.epsilon_provable}
            assert entry.epsilon_provable > 4 * 1.5, "three models of ε = 4"
        else:
            assert max(prices) == entry.epsilon_provable <= 4 * (1 + 1e-9)


def test_numbers_are_written_for_the_row_and_for_each_owner(home: Path) -> None:
    entry = next(e for e in records(home).entries if e.world != world.ALONE_WORLD)
    whole = table.tabulate([entry], {})
    assert whole["metric"].item() == "auc"
    told = table.per_client(whole).query("metric == 'auc'")
    assert (told["participation"].iloc[0], told["client"].iloc[0]) == ("curator", "all")
    assert len(told) > 1


def test_units_are_not_mixed_on_an_owners_page(home: Path) -> None:
    """Where a row protects all records of an owner, an ε of one tie is about less, and stands on no page beside it."""
    unit, entries = participation._of_one_unit(records(home).entries)
    assert unit is Unit.ENTITY
    assert {e.variant for e in entries} == {"owner", "default"}


def test_the_page_says_what_the_owner_asked(home: Path) -> None:
    section = participation.build(records(home), None)
    assert [letter.client for letter in section.letters] == ["client 1", "client 2", "client 3"]
    letter = section.letters[0]
    text = " ".join((*letter.sentences, *letter.last))
    assert "You are client 1, and you bring 30 accounts of d" in text
    assert "how many of 100 pairs without a tie a model puts one of your hidden ties" in text
    assert "learn of one owner's ties: asked whether one owner's ties are in the data" in text
    assert "± is two standard errors" in text
    assert "Own head" not in text
    assert [row[0] for row in letter.rows] == ["4", "∞", "4, Hits@50", "∞, Hits@50", "4, MRR", "∞, MRR"]
    assert all("±" in cell for cell in letter.rows[0][2:4])
    assert letter.rows[0][-1] in ("joining helps", "alone is better", "no difference")
    assert "Each client at ε = 4, AUC of ties" in [table.title for table in section.tables]


@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_give_no_advice(home: Path, seeds: int) -> None:
    given = records(home)
    few = tuple(e for e in given.entries if e.seed < seeds)
    section = participation.build(SectionRecords(given.name, given.kind, given.label, given.dataset, given.settings, few), None)
    assert all(letter.answer.startswith(f"No advice: the run was repeated {seeds} time(s)") for letter in section.letters)
    assert not any("joining helps" in cell for letter in section.letters for row in letter.rows for cell in row)
    assert section.first == ()


def test_a_row_of_fewer_seeds_is_nobodys_base(home: Path) -> None:
    """Beside three seeds of joining, a model of which one was made alone may be good by chance."""
    given = records(home)
    few = tuple(e for e in given.entries if e.method != "link_clear" or not e.seed)
    every, some = (client_choices.read(SectionRecords("n", given.kind, "l", "d", {}, e)) for e in (given.entries, few))
    kept = [{key[0] for key in found.kept_by("client 1")} for found in (every, some)]
    assert [("link_clear" in learners) for learners in kept] == [True, False]


def test_answers_are_compared_tie_by_tie(home: Path) -> None:
    """The same ties, each a little better: two shares of so few ties would differ by chance, the same ties do not."""
    found = client_choices.read(records(home))
    one = next(key for key in found.answers if key[3] == "client 1" and key[2] == client_choices.ALONE)
    base = {seed: task_facts.unpack_answers(*answer) for seed, answer in found.answers[one].items()}
    other = (one[0], one[1], client_choices.join(Trust.SUMS), one[3])
    found.answers[other] = {
        seed: (task_facts.pack_answers(np.clip(told - 0.03, 0, 1)), told.size) for seed, told in base.items()
    }
    found.values[other] = [value - 0.03 for value in found.values[one]]
    assert found.error(one, other) < 0.01 < found.chance("client 1", found.mean(one)) / 2


def test_the_mean_of_what_is_packed_is_the_auc() -> None:
    rng = np.random.default_rng(0)
    above, below = rng.integers(0, 9, 40) / 3, rng.integers(0, 7, 300) / 3
    shares = links.rank_scores(above, below)
    assert shares.mean() == pytest.approx(links.measure_scores(above, below)["auc"])
    assert np.allclose(task_facts.unpack_answers(task_facts.pack_answers(shares), 40), shares, atol=1e-5)


def test_clients_that_follow_edges_are_no_owners(home: Path) -> None:
    with pytest.raises(ScenarioError, match="partition 'louvain' follows edges, hidden ones, too; allowed with it: natural"):
        fedgraph.run(scenario(home / "people", partition={"partition": "louvain", "clients": 3}), quiet=True)


def test_owner_pages_are_written_beside_the_page(home: Path, run: Run) -> None:
    pages = sorted(path.name for path in (home / "run" / "owners").iterdir())
    assert len(pages) == 3
    assert "For the owner of client 2" in (home / "run" / "owners" / pages[1]).read_text(encoding="utf-8")
    facts = run.rows[0].head.facts_as(LinkPredictionCellFacts)
    assert facts.tested
    assert not client_choices.read(records(home)).undecided
