"""A budget that lasts: composition over charges and people, refusal, edits, copies, and processes that die as they charge."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph import data, privacy
from fedgraph.commands.base import main
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.privacy import budget_book
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.budget_book import Candidate
from fedgraph.privacy.events import Composed, Event, Gaussian, Laplace, PureDP, Repeated
from fedgraph.privacy.ledger import LedgerLine
from fedgraph.privacy.settle import Guarantee, Promise
from fedgraph.privacy.units import Assumption, Protection, Relation, Unit, Viewer
from fedgraph.scenario import read as scenarios

DELTA = 1e-6
PEOPLE = [f"p{i}" for i in range(100)]


def guarantee(relation: Relation = Relation.NODE_ZERO_OUT, **more: object) -> Guarantee:
    given = {"holdings": None, "per_end": False, **more}
    return Guarantee(Protection(relation, Viewer.CURATOR_TRUSTED, (Assumption.COUNTS_PUBLIC,)), DELTA, **given)  # type: ignore[arg-type]


def line(event: Event, client: int = 0, rounds: int = 1) -> LedgerLine:
    return LedgerLine("cell", "model", ((client, client),), ((0, rounds - 1),), 1, "noise", event)


def charge(
    path: Path | str, what: str, given: Guarantee, lines: list[LedgerLine], ids: list[str] | None
) -> budget_book.BudgetBook:
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
@settings(max_examples=15, derandomize=True)
def test_the_dearest_events_bound_every_person(multipliers: list[float], seed: int) -> None:
    """With clients that share people, no person pays more than what is charged; without, the price is the run's own."""
    lines = [line(Gaussian(m), client) for client, m in enumerate(multipliers)]
    alone = budget_book.jointly([Candidate.planned("row", guarantee(), lines).dearest], DELTA)
    assert alone == pytest.approx(privacy.settle.of_releases(guarantee(), lines).epsilon)
    held = np.random.default_rng(seed).integers(0, 2, (len(multipliers), 6))
    shared = guarantee(holdings=sp.csr_array(held))
    charged = budget_book.jointly([Candidate.planned("row", shared, lines).dearest], DELTA)
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
    assert budget_book.jointly([row.dearest], DELTA) == pytest.approx(said.epsilon, rel=1e-6)


@pytest.mark.parametrize("trainings", [2, 9])
def test_many_trainings_cost_whoever_paid_the_dearest_of_each(trainings: int) -> None:
    """2⁹ combinations are too many to be priced one by one; what bounds them all must bound this one, too."""
    parts = [(Gaussian(40.0), PureDP(0.02)), *(((PureDP(0.01), Gaussian(30.0)),) * (trainings - 1))]
    charged = budget_book.jointly(parts, DELTA)
    for place in (0, 1):
        assert charged >= price(Composed(tuple(part[place] for part in parts)), DELTA).epsilon * (1 - 1e-9)
    paid = [max(part, key=lambda event: price(event, DELTA).epsilon) for part in parts]
    assert charged >= price(Composed(tuple(paid)), DELTA).epsilon * (1 - 1e-9)


def lines_of(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as file:
        return [line for (line,) in file.execute("SELECT line FROM fedgraph_budget ORDER BY number")]


def put(path: Path, lines: list[str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM fedgraph_budget")
        file.executemany("INSERT INTO fedgraph_budget VALUES ('', ?, ?)", list(enumerate(lines, start=1)))


def edits(lines: list[str]) -> list[list[str]]:
    """Lines with one thing changed: noise, the cap, a charge left out, charges in another order, people taken off."""
    first, *charges = lines
    louder = [line.replace('"noise_multiplier":20.0', '"noise_multiplier":200.0') for line in lines]
    people = json.dumps(json.loads(charges[0]) | {"people": "eNpjAAAAAQAB"})
    other = [first, charges[1], charges[0], charges[2]]
    cap = first.replace('"epsilon":2.0', '"epsilon":20.0')
    return [louder, [cap, *charges], [first, *charges[1:]], other, [first, people, *charges[1:]], [], ["{}", *lines]]


@pytest.mark.parametrize("edit", range(7))
def test_every_edit_is_found(book: Path, edit: int) -> None:
    """Also by a process that has read the book before."""
    for number in range(3):
        charge(book, f"model {number}", guarantee(), [line(Gaussian(20.0))], None)
    changed = edits(lines_of(book))[edit]
    assert changed != lines_of(book)
    put(book, changed)
    with pytest.raises(PrivacyError, match=r"people\.budget:?\d*: (not as it was written|empty)"):
        charge(book, "more", guarantee(), [line(Gaussian(20.0))], None)


def test_what_is_no_book_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"{}\n", b"SQLite format 3\0 and nothing of it"):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(PrivacyError, match="not as it was written"):
            budget_book.read(tmp_path / "b")
    with pytest.raises(PrivacyError, match="No such file"):
        budget_book.read(tmp_path / "c")
    with pytest.raises(PrivacyError, match="holds a password"):
        budget_book.read("postgresql://me:word@localhost/db#people")


def test_a_copy_charges_nothing_and_an_earlier_state_neither(book: Path, tmp_path: Path) -> None:
    """Two copies would each spend the whole; a new book carries the charges of an old one on."""
    charge(book, "first", guarantee(), [line(Gaussian(5.0))], None)
    copy = tmp_path / "copy.budget"
    for place in (book, book.with_name("people.budget.last")):
        shutil.copy(place, str(place).replace("people", "copy"))
    with pytest.raises(PrivacyError, match=r"copy\.budget: a copy of a budget.*init NEW --from"):
        charge(copy, "second", guarantee(), [line(Gaussian(5.0))], None)
    charge(book, "second", guarantee(), [line(Gaussian(5.0))], None)
    earlier = copy.read_bytes()
    with book.open("r+b") as file:  # the same inode
        file.truncate(0)
        file.write(earlier)
    with pytest.raises(PrivacyError, match="restored to an earlier state"):
        charge(book, "third", guarantee(), [line(Gaussian(20.0))], None)
    assert main(["budget", "init", str(tmp_path / "new.budget"), "--from", str(copy), "--epsilon", "3"]) == 0
    made = budget_book.read(tmp_path / "new.budget")
    assert [one.what for one in made.charges] == ["first"]
    assert (made.epsilon, made.delta, made.num_people) == (3.0, DELTA, 100)
    with pytest.raises(PrivacyError, match="of other people"):
        budget_book.create(tmp_path / "others.budget", Unit.NODE, 2.0, DELTA, PEOPLE[1:], made)


def test_a_book_that_was_deleted_is_not_made_again(book: Path) -> None:
    charge(book, "first", guarantee(), [line(Gaussian(5.0))], None)
    book.unlink()
    with pytest.raises(PrivacyError, match="is deleted or moved"):
        budget_book.create(book, Unit.NODE, 2.0, DELTA, PEOPLE)


def test_a_mark_is_charged_once(book: Path) -> None:
    for what in ("first", "again"):
        budget_book.charge(book, what, [Candidate.planned(what, guarantee(), [line(Gaussian(5.0))])], None, "run 1")
    assert [one.what for one in budget_book.read(book).charges] == ["first"]


def test_one_book_is_found_by_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDGRAPH_BUDGET", raising=False)
    people = tmp_path / "people"
    people.mkdir()
    assert budget_book.find(None, people) is None
    (tmp_path / "people.budget").touch()
    assert budget_book.find(None, people) == budget_book.find(None, None, f"{people}/") == str(tmp_path / "people.budget")
    monkeypatch.setenv("FEDGRAPH_BUDGET", "postgresql://host/db#people")
    assert budget_book.find(None, people) == "postgresql://host/db#people"
    assert budget_book.find("named", people) == "named"


def test_a_run_of_own_people_is_told_which_book_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found beside the data, and not written in the scenario: a rehearsal with a public seed says so."""
    monkeypatch.delenv("FEDGRAPH_BUDGET", raising=False)
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 2.0, DELTA, PEOPLE)
    (tmp_path / "people").mkdir()
    data = f"datasets: [{{name: own/read, path: {tmp_path / 'people'}}}]"
    task = "tasks: [{task: node_classification, epsilons: [1], trust: [curator], methods: [{method: features}]}]"
    (tmp_path / "s.yaml").write_text(f"name: s\nseed: 1\n{data}\n{task}\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"names \S*people\.budget; budget: none rehearses without it"):
        scenarios.from_file(tmp_path / "s.yaml")
    assert scenarios.from_file(tmp_path / "s.yaml", ["budget=none"]).book is None
    assert scenarios.from_file(tmp_path / "s.yaml", ["seed=secret"]).book == str(tmp_path / "people.budget")
    monkeypatch.setenv("FEDGRAPH_BUDGET", "other.budget")
    assert scenarios.from_file(tmp_path / "s.yaml", ["seed=secret"]).book == "other.budget"


CAP = 0.6


def spend_often(place: str, spends: int, told: Path, seed: int) -> None:
    """Charge people at random, and write each answer down after it came. The clock of half of the processes runs back."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        began = time.time()
        time.gmtime = lambda *_: time.localtime(began - 1e6 * rng.random())  # type: ignore[assignment]
    for number in range(spends):
        first = int(rng.integers(0, 4)) * 20
        asked = None if number % 3 else PEOPLE[first : first + 40]
        what = f"{seed}:{number}"
        try:
            charge(place, what, guarantee(), [line(Gaussian(60.0 + number % 5))], asked)
        except PrivacyError as error:
            if "would have paid" in str(error):
                continue
            raise
        with told.open("a", encoding="utf-8") as file:  # a release, which may only happen now
            file.write(f"{what}\n")


def chaos(place: str, spends: int, tmp_path: Path, copied: bool) -> None:
    """Eight processes at once, of which four to eight are killed and started again; a copy that tries, too."""
    fork, told = multiprocessing.get_context("fork"), tmp_path / "told"
    rng, started, ended, killed = np.random.default_rng(1), 0, 0, 0
    alive: list[multiprocessing.process.BaseProcess] = []
    while ended < 8 or killed < 4:  # a machine that is busy elsewhere may hear of a process only when it has ended
        while not alive or len(alive) + ended < 8:
            alive.append(fork.Process(target=spend_often, args=(place, spends // 8, told, started)))
            alive[-1].start()
            started += 1
        if killed < 8 and rng.random() < 0.5:
            one = alive[int(rng.integers(len(alive)))]
            one.kill()
            one.join()
            killed += one.exitcode == -signal.SIGKILL
        if copied and rng.random() < 0.2:
            shutil.copy(place, tmp_path / "copy")
            with pytest.raises(PrivacyError, match=r"a copy of a budget|not as it was written"):
                charge(tmp_path / "copy", "copy", guarantee(), [line(Gaussian(60.0))], None)
        alive[0].join(0.1)
        assert all(one.exitcode in (None, 0, -signal.SIGKILL) for one in alive)
        ended += sum(one.exitcode == 0 for one in alive)
        alive = [one for one in alive if one.exitcode is None]
    book = budget_book.read(place)
    stand, made = [one.what for one in book.charges], told.read_text(encoding="utf-8").split()
    assert len(set(stand)) == len(stand)
    assert set(made) <= set(stand), "a release without a charge"
    assert len(stand) - len(made) <= started, "a killed process loses at most the answer to one charge"
    per_person = [
        [book.charges[k].dearest[0] for k in range(len(stand)) if book.charges[k].people[person]] for person in range(100)
    ]
    spent = [price(Composed(tuple(events)), DELTA).epsilon for events in {tuple(one) for one in per_person}]
    assert 0.95 * CAP < max(spent) <= CAP, "never overspent, and the cap was reached"
    with pytest.raises(PrivacyError, match="would have paid"):
        charge(place, "more", guarantee(), [line(Gaussian(2.0))], None)


@pytest.mark.parametrize("spends", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_thousand_spends_of_eight_processes_that_die_overspend_nothing_and_lose_nothing(tmp_path: Path, spends: int) -> None:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, CAP, DELTA, PEOPLE)
    chaos(str(tmp_path / "people.budget"), spends, tmp_path, copied=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of a PostgreSQL server of this test's own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("PostgreSQL is not installed: initdb and postgres are not on the path")
    place, demote = tmp_path / "server", []
    if os.getuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        place = Path(tempfile.mkdtemp(prefix="fedgraph-postgres-"))
        os.chown(place, user.pw_uid, user.pw_gid)
        demote = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    data = place / "data"
    subprocess.run([*demote, "initdb", "-D", str(data), "-U", "me", "-A", "trust"], cwd="/", check=True, capture_output=True)
    words = [*demote, "postgres", "-D", str(data), "-k", str(place), "-c", "listen_addresses=", "-c", "max_connections=40"]
    running = subprocess.Popen(words, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(3000):
            if subprocess.run(["pg_isready", "-h", str(place)], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        yield f"postgresql://me@/postgres?host={place}#people"
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(place, ignore_errors=True)


def test_a_database_serves_by_the_same_calls(server: str, tmp_path: Path) -> None:
    """A real server: the same chaos, and two books beside one another."""
    budget_book.create(server, Unit.NODE, CAP, DELTA, PEOPLE)
    other = server.replace("#people", "#others")
    budget_book.create(other, Unit.NODE, CAP, DELTA, PEOPLE[:5])
    with pytest.raises(PrivacyError, match="exists already"):
        budget_book.create(server, Unit.NODE, CAP, DELTA, PEOPLE)
    chaos(server, 600, tmp_path, copied=False)
    assert budget_book.read(other).charges == []
    with pytest.raises(PrivacyError, match="empty"):
        budget_book.read(server.replace("#people", "#nobody"))


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


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("id\nu1\n", ["u1"]), ("node\nu1\nu2\n", ["u1", "u2"]), ("person,age\nu1,30\nu2,31\n", ["u1", "u2"]),
        ("u1,30\nu2,31\n", ["u1", "u2"]), ("u1\n2\n", ["u1", "2"]), ("", []),
    ],
)  # fmt: skip
def test_a_header_is_nobody_and_a_first_line_without_one_is_somebody(tmp_path: Path, text: str, ids: list[str]) -> None:
    (tmp_path / "ids.csv").write_text(text, encoding="utf-8")
    assert [cells[0] for cells in data.id_rows(tmp_path / "ids.csv")] == ids
