"""A budget that lasts: composition over charges and people, refusal, edits, torn lines and two processes at once."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph import privacy
from fedgraph.commands.base import main
from fedgraph.commands.budget import _budget_book_text, _read_ids
from fedgraph.errors import PrivacyError
from fedgraph.privacy import budget_book
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.budget_book import Candidate
from fedgraph.privacy.events import Composed, Event, Gaussian, Laplace, PureDP, Repeated
from fedgraph.privacy.ledger import LedgerLine
from fedgraph.privacy.settle import Guarantee, Promise, dearest_settled_events, dearest_settled_together
from fedgraph.privacy.units import Assumption, Protection, Relation, Unit, Viewer

DELTA = 1e-6
PEOPLE = [f"p{i}" for i in range(100)]


def guarantee(relation: Relation = Relation.NODE_ZERO_OUT, **more: object) -> Guarantee:
    given = {"holdings": None, "per_end": False, **more}
    return Guarantee(Protection(relation, Viewer.CURATOR_TRUSTED, (Assumption.COUNTS_PUBLIC,)), DELTA, **given)  # type: ignore[arg-type]


def line(event: Event, client: int = 0, rounds: int = 1) -> LedgerLine:
    return LedgerLine("cell", "model", ((client, client),), ((0, rounds - 1),), 1, "noise", event)


def charge(path: Path, what: str, given: Guarantee, lines: list[LedgerLine], ids: list[str] | None) -> budget_book.BudgetBook:
    return budget_book.charge(path, what, [Candidate.planned(what, given, lines)], ids)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 2.0, DELTA, PEOPLE)
    return tmp_path / "people.budget"


def test_charges_compose_by_the_accountants_and_not_by_adding(book: Path) -> None:
    for _ in range(3):
        made = charge(book, "a model", guarantee(), [line(Gaussian(20.0), rounds=4)], None)
    (group,) = made.groups()
    assert group.epsilon == pytest.approx(price(Repeated(Gaussian(20.0), 12), DELTA).epsilon)
    assert group.epsilon < 3 * price(Repeated(Gaussian(20.0), 4), DELTA).epsilon
    assert group.num_people == 100


def test_what_would_exceed_the_cap_is_refused_and_leaves_the_file_as_it_was(book: Path) -> None:
    charge(book, "first", guarantee(), [line(Gaussian(4.0))], None)
    before = book.read_bytes()
    with pytest.raises(PrivacyError, match=r"with second .* of 2 .*what is left is one release of ε = [01]\.\d+. Nothing"):
        charge(book, "second", guarantee(), [line(Gaussian(2.5))], None)
    assert book.read_bytes() == before
    left = budget_book.read(book).left(np.ones(100, dtype=bool))
    assert 0 < left < 2
    with pytest.raises(PrivacyError, match="ε = inf"):
        charge(book, "no noise", guarantee(), [line(Gaussian(0.0))], None)


def test_overlapping_people_cost_per_person(book: Path) -> None:
    charge(book, "one", guarantee(), [line(Gaussian(5.0))], PEOPLE[:60])
    made = charge(book, "two", guarantee(), [line(Laplace(4.0))], PEOPLE[40:])
    paid = {group.charges: (group.num_people, group.epsilon) for group in made.groups()}
    assert {charges: people for charges, (people, _) in paid.items()} == {(0,): 40, (0, 1): 20, (1,): 40}
    assert paid[(0, 1)][1] == pytest.approx(price(Composed((Gaussian(5.0), Laplace(4.0))), DELTA).epsilon)
    with pytest.raises(PrivacyError, match="1 people of these data are not in the budget, the first is 'stranger'"):
        charge(book, "three", guarantee(), [line(Gaussian(50.0))], ["p1", "stranger"])


@given(st.lists(st.sampled_from([3.0, 5.0, 8.0]), min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_the_dearest_events_bound_every_person(multipliers: list[float], seed: int) -> None:
    """With clients that share people, no person pays more than what is charged; without, the price is the run's own."""
    lines = [line(Gaussian(m), client) for client, m in enumerate(multipliers)]
    alone = privacy.settle.jointly([dearest_settled_events(guarantee(), lines)], DELTA)
    assert alone == pytest.approx(privacy.settle.of_releases(guarantee(), lines).epsilon)
    held = np.random.default_rng(seed).integers(0, 2, (len(multipliers), 6))
    shared = guarantee(holdings=sp.csr_array(held))
    charged = privacy.settle.jointly([dearest_settled_events(shared, lines)], DELTA)
    assert charged >= privacy.settle.of_releases(shared, lines).epsilon - 1e-9


def test_another_unit_relation_or_a_broken_promise_is_refused(book: Path) -> None:
    charge(book, "first", guarantee(), [line(Gaussian(20.0))], None)
    with pytest.raises(PrivacyError, match="under the relation node-zero-out, and this has node-replace"):
        charge(book, "second", guarantee(Relation.NODE_REPLACE), [line(Gaussian(20.0))], None)
    edge = Protection(Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC,))
    with pytest.raises(PrivacyError, match="is for one node, and this protects one edge"):
        charge(book, "third", Guarantee(edge, DELTA, None, False), [line(Gaussian(20.0))], None)
    broken = guarantee(promises=(Promise(Assumption.PROMISED_DEGREE, 5, 9, 2, 100),))
    with pytest.raises(PrivacyError, match="the data break it"):
        charge(book, "fourth", broken, [line(Gaussian(20.0))], None)


def test_two_rows_of_one_first_charge_are_of_one_relation(book: Path) -> None:
    """Nothing was charged before, with which either of them could be compared."""
    rows = [
        Candidate.planned(relation.value, guarantee(relation), [line(Gaussian(90.0))])
        for relation in (Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE)
    ]
    with pytest.raises(PrivacyError, match="they do not compose"):
        budget_book.charge(book, "both", rows, None)


@pytest.mark.parametrize(
    "given",
    [
        guarantee(),
        guarantee(sampled_once=0.2),
        guarantee(holdings=sp.csr_array(np.array([[1, 1, 0], [0, 1, 1]]))),
        guarantee(per_end=True),
        guarantee(promises=(Promise(Assumption.PROMISED_DEGREE, 5, 9, 2, 100),)),
    ],
    ids=["disjoint", "sampled", "overlapping", "ends", "broken promise"],
)
def test_what_a_run_released_is_charged_at_what_the_run_said(given: Guarantee) -> None:
    lines = [line(Gaussian(5.0), 0, 3), line(Gaussian(3.0), 1)]
    said = privacy.settle.of_releases(given, lines)
    row = Candidate.released("row", said.account("cell", given), lines)
    assert privacy.settle.jointly([row.dearest], DELTA) == pytest.approx(said.epsilon, rel=1e-6)


@pytest.mark.parametrize("trainings", [2, 9])
def test_many_trainings_cost_whoever_paid_the_dearest_of_each(trainings: int) -> None:
    """2⁹ combinations are too many to be priced one by one; what bounds them all must bound this one, too."""
    parts = [(Gaussian(40.0), PureDP(0.02)), *(((PureDP(0.01), Gaussian(30.0)),) * (trainings - 1))]
    charged = privacy.settle.jointly([dearest_settled_together(parts)], DELTA)
    for place in (0, 1):
        assert charged >= price(Composed(tuple(part[place] for part in parts)), DELTA).epsilon * (1 - 1e-9)
    paid = [max(part, key=lambda event: price(event, DELTA).epsilon) for part in parts]
    assert charged >= price(Composed(tuple(paid)), DELTA).epsilon * (1 - 1e-9)


def edits(content: bytes) -> list[bytes]:
    """Content with one thing changed: a noise multiplier, a charge left out, charges in another order, people taken off."""
    first, *charges = content.splitlines(keepends=True)
    louder = content.replace(b'"noise_multiplier":20.0', b'"noise_multiplier":200.0')
    cap = content.replace(b'"epsilon":2.0', b'"epsilon":20.0', 1)
    people = json.loads(charges[0]) | {"people": "eNpjAAAAAQAB"}
    fewer = first + json.dumps(people).encode() + b"\n" + b"".join(charges[1:])
    other = first + charges[1] + charges[0] + charges[2]
    return [louder, cap, first + b"".join(charges[1:]), other, fewer, b"", b"{}\n", content.replace(b"\n", b"\n\n", 1)]


@pytest.mark.parametrize("edit", range(8))
def test_every_edit_is_found(book: Path, edit: int) -> None:
    for number in range(3):
        charge(book, f"model {number}", guarantee(), [line(Gaussian(20.0))], None)
    content = book.read_bytes()
    changed = edits(content)[edit]
    assert changed != content
    book.write_bytes(changed)
    with pytest.raises(PrivacyError, match=r"people\.budget:?\d*: (not as it was written|empty)"):
        charge(book, "more", guarantee(), [line(Gaussian(20.0))], None)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_process_that_died_while_it_wrote_has_released_nothing(book: Path, kept: int) -> None:
    whole = book.read_bytes()
    charge(book, "first", guarantee(), [line(Gaussian(20.0))], None)
    torn = book.read_bytes()[len(whole) :][:kept]
    book.write_bytes(whole + torn)
    assert budget_book.read(book).charges == []
    assert f"{len(torn)} bytes at the end are no whole line" in _budget_book_text(budget_book.read(book))
    made = charge(book, "second", guarantee(), [line(Gaussian(20.0))], None)
    assert [charge.what for charge in made.charges] == ["second"]


def _charge_often(path: Path) -> None:
    for _ in range(10):
        charge(path, "at once", guarantee(), [line(Gaussian(40.0))], None)


def test_two_processes_at_once_lose_no_charge(book: Path) -> None:
    both = [multiprocessing.get_context("fork").Process(target=_charge_often, args=(book,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
        assert one.exitcode == 0
    assert len(budget_book.read(book).charges) == 20


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id\nu1\n", ["u1"]),
        ("node\nu1\nu2\n", ["u1", "u2"]),
        ("person,age\nu1,30\nu2,31\n", ["u1", "u2"]),
        ("u1,30\nu2,31\n", ["u1", "u2"]),
        ("u1\n2\n", ["u1", "2"]),
        ("", []),
    ],
)
def test_a_header_is_nobody(tmp_path: Path, text: str, ids: list[str]) -> None:
    (tmp_path / "ids.csv").write_text(text, encoding="utf-8")
    assert _read_ids(tmp_path / "ids.csv") == ids


def test_the_command_makes_and_shows_a_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ids.csv").write_text("id,name\n" + "".join(f"{p},x\n" for p in PEOPLE), encoding="utf-8")
    file = str(tmp_path / "b")
    init = ["budget", "init", file, "--unit", "node", "--epsilon", "8", "--people", str(tmp_path / "ids.csv"), "--delta"]
    assert main([*init, "0.1"]) == 1, "δ above one over the people"
    assert "would allow publishing" in capsys.readouterr().err
    assert main([*init, "1e-6"]) == 0
    assert main([*init, "1e-6"]) == 1, "never replaced"
    charge(Path(file), "GAP-NDP", guarantee(), [line(Gaussian(2.0))], PEOPLE[:30])
    capsys.readouterr()
    assert main(["budget", "show", file]) == 0
    text = capsys.readouterr().out
    assert "1. " in text
    assert "GAP-NDP: ε = 2.2" in text
    assert "0 of 8 spent by 70 people (charges: nothing)" in text
