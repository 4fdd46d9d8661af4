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
CAP = 0.6  # of the books that many processes charge
PEOPLE = [f"p{i}" for i in range(100)]


def guarantee(relation: Relation = Relation.NODE_ZERO_OUT, **more: object) -> Guarantee:
    given = {"holdings": None, "per_end": False, **more}
    return Guarantee(Protection(relation, Viewer.CURATOR_TRUSTED, (Assumption.COUNTS_PUBLIC,)), DELTA, **given)  # type: ignore[arg-type]


def line(event: Event, client: int = 0, rounds: int = 1) -> LedgerLine:
    return LedgerLine("cell", "model", ((client, client),), ((0, rounds - 1),), 1, "noise", event)


def charge(
    path: Path | str, what: str, event: Event, ids: list[str] | None = None, given: Guarantee | None = None
) -> budget_book.BudgetBook:
    return budget_book.charge(path, what, [Candidate.planned(what, given or guarantee(), [line(event)])], ids)


@pytest.fixture
def book(tmp_path: Path) -> Path:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 2.0, DELTA, PEOPLE)
    return tmp_path / "people.budget"


def test_charges_compose_by_the_accountants_for_each_person_and_not_by_adding(book: Path) -> None:
    for _ in range(2):
        charge(book, "one", Gaussian(10.0), PEOPLE[:60])
    made = charge(book, "two", Laplace(4.0), PEOPLE[40:])
    paid = {group.charges: (group.num_people, group.epsilon) for group in made.groups()}
    assert {charges: people for charges, (people, _) in paid.items()} == {(0, 1): 40, (0, 1, 2): 20, (2,): 40}
    both = price(Composed((Repeated(Gaussian(10.0), 2), Laplace(4.0))), DELTA).epsilon
    assert paid[(0, 1, 2)][1] == pytest.approx(both)
    assert paid[(0, 1)][1] < 2 * price(Gaussian(10.0), DELTA).epsilon
    with pytest.raises(PrivacyError, match="1 people of these data are not in the budget, the first is 'stranger'"):
        charge(book, "three", Gaussian(50.0), ["p1", "stranger"])


def test_what_would_exceed_the_cap_is_refused_and_leaves_the_file_as_it_was(book: Path) -> None:
    charge(book, "first", Gaussian(4.0))
    before = book.read_bytes()
    with pytest.raises(PrivacyError, match=r"with second .* of 2 .*what is left is one release of ε = [01]\.\d+. Nothing"):
        charge(book, "second", Gaussian(2.5))
    assert book.read_bytes() == before
    assert 0 < budget_book.read(book).left(np.ones(100, dtype=bool)) < 2
    with pytest.raises(PrivacyError, match="ε = inf"):
        charge(book, "no noise", Gaussian(0.0))


@given(st.lists(st.sampled_from([3.0, 5.0, 8.0]), min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=15)
def test_the_dearest_events_bound_every_person(multipliers: list[float], seed: int) -> None:
    """With clients that share people, no person pays more than what is charged; without, the price is the run's own."""
    lines = [line(Gaussian(m), client) for client, m in enumerate(multipliers)]
    alone = budget_book.jointly([Candidate.planned("row", guarantee(), lines).dearest], DELTA)
    assert alone == pytest.approx(privacy.settle.of_releases(guarantee(), lines).epsilon)
    shared = guarantee(holdings=sp.csr_array(np.random.default_rng(seed).integers(0, 2, (len(multipliers), 6))))
    charged = budget_book.jointly([Candidate.planned("row", shared, lines).dearest], DELTA)
    assert charged >= privacy.settle.of_releases(shared, lines).epsilon - 1e-9


BROKEN = guarantee(promises=(Promise(Assumption.PROMISED_DEGREE, 5, 9, 2, 100),))
EDGE = Protection(Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC,))


def test_another_unit_relation_or_a_broken_promise_is_refused(book: Path) -> None:
    """Also of two rows of one first charge, before which nothing was charged with which either could be compared."""
    relations = (Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE)
    rows = [Candidate.planned(relation.value, guarantee(relation), [line(Gaussian(90.0))]) for relation in relations]
    with pytest.raises(PrivacyError, match="they do not compose"):
        budget_book.charge(book, "both", rows, None)
    charge(book, "first", Gaussian(20.0))
    for other, says in (
        (guarantee(Relation.NODE_REPLACE), "under the relation node-zero-out, and this has node-replace"),
        (Guarantee(EDGE, DELTA, None, False), "is for one node, and this protects one edge"),
        (BROKEN, "the data break it"),
    ):
        with pytest.raises(PrivacyError, match=says):
            charge(book, "second", Gaussian(20.0), None, other)


RUNS = {
    "disjoint": guarantee(), "sampled": guarantee(sampled_once=0.2), "ends": guarantee(per_end=True), "broken promise": BROKEN,
    "overlapping": guarantee(holdings=sp.csr_array(np.array([[1, 1, 0], [0, 1, 1]]))),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_released_is_charged_at_what_the_run_said(name: str) -> None:
    lines = [line(Gaussian(5.0), 0, 3), line(Gaussian(3.0), 1)]
    said = privacy.settle.of_releases(RUNS[name], lines)
    row = Candidate.released("row", said.account("cell", RUNS[name]), lines)
    assert budget_book.jointly([row.dearest], DELTA) == pytest.approx(said.epsilon, rel=1e-6)


@pytest.mark.parametrize("trainings", [2, 9])
def test_many_trainings_cost_whoever_paid_the_dearest_of_each(trainings: int) -> None:
    """2⁹ combinations are too many to be priced one by one; what bounds them all must bound this one, too."""
    parts = [(Gaussian(40.0), PureDP(0.02)), *(((PureDP(0.01), Gaussian(30.0)),) * (trainings - 1))]
    charged = budget_book.jointly(parts, DELTA)
    dearest = [max(part, key=lambda event: price(event, DELTA).epsilon) for part in parts]
    for paid in (dearest, *zip(*parts, strict=True)):
        assert charged >= price(Composed(tuple(paid)), DELTA).epsilon * (1 - 1e-9)


def edits(lines: list[str]) -> list[list[str]]:
    """Lines with one thing changed: noise, the cap, a charge left out, charges in another order, people taken off."""
    first, *charges = lines
    louder = [line.replace('"noise_multiplier":20.0', '"noise_multiplier":200.0') for line in lines]
    people = json.dumps(json.loads(charges[0]) | {"people": "eNpjAAAAAQAB"})
    other = [first, charges[1], charges[0], charges[2]]
    cap = first.replace('"epsilon":2.0', '"epsilon":20.0')
    return [louder, [cap, *charges], [first, *charges[1:]], other, [first, people, *charges[1:]], [], ["{}", *lines]]


def test_every_edit_is_found_and_what_is_no_book_is_refused(book: Path, tmp_path: Path) -> None:
    """Also by a process that has read the book before."""
    for number in range(3):
        charge(book, f"model {number}", Gaussian(20.0))
    with contextlib.closing(sqlite3.connect(book)) as file:
        honest = [text for (text,) in file.execute("SELECT line FROM fedgraph_budget ORDER BY number")]
        for changed in edits(honest):
            assert changed != honest
            with file:
                file.execute("DELETE FROM fedgraph_budget")
                file.executemany("INSERT INTO fedgraph_budget VALUES ('', ?, ?)", list(enumerate(changed, start=1)))
            with pytest.raises(PrivacyError, match=r"people\.budget:?\d*: (not as it was written|empty)"):
                charge(book, "more", Gaussian(20.0))
    for content in (b"", b"{}\n", b"SQLite format 3\0 and nothing of it"):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(PrivacyError, match="not as it was written"):
            budget_book.read(tmp_path / "b")
    for place, says in ((tmp_path / "c", "No such file"), ("postgresql://me:word@localhost/db#people", "holds a password")):
        with pytest.raises(PrivacyError, match=says):
            budget_book.read(place)


def test_a_copy_charges_nothing_and_an_earlier_state_neither(book: Path, tmp_path: Path) -> None:
    """Two copies would each spend the whole; a new book carries the charges of an old one on; a mark is charged once."""
    for what in ("first", "again"):
        budget_book.charge(book, what, [Candidate.planned(what, guarantee(), [line(Gaussian(5.0))])], None, "run 1")
    copy = tmp_path / "copy.budget"
    for place in (book, book.with_name("people.budget.last")):
        shutil.copy(place, str(place).replace("people", "copy"))
    with pytest.raises(PrivacyError, match=r"copy\.budget: a copy of a budget.*init NEW --from"):
        charge(copy, "second", Gaussian(5.0))
    charge(book, "second", Gaussian(5.0))
    with book.open("r+b") as file:  # the same inode
        file.truncate(0)
        file.write(copy.read_bytes())
    with pytest.raises(PrivacyError, match="restored to an earlier state"):
        charge(book, "third", Gaussian(20.0))
    assert main(["budget", "init", str(tmp_path / "new.budget"), "--from", str(copy), "--epsilon", "3"]) == 0
    made = budget_book.read(tmp_path / "new.budget")
    assert [one.what for one in made.charges] == ["first"]
    assert (made.epsilon, made.delta, made.num_people) == (3.0, DELTA, 100)
    with pytest.raises(PrivacyError, match="of other people"):
        budget_book.create(tmp_path / "others.budget", Unit.NODE, 2.0, DELTA, PEOPLE[1:], made)
    book.unlink()
    with pytest.raises(PrivacyError, match="is deleted or moved"):
        budget_book.create(book, Unit.NODE, 2.0, DELTA, PEOPLE)


def test_one_book_is_found_by_every_command_and_a_run_is_told_which(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found beside the data, and not written in the scenario: a rehearsal with a public seed says so."""
    monkeypatch.delenv("FEDGRAPH_BUDGET", raising=False)
    home, people = book.parent, book.parent / "people"
    people.mkdir()
    assert budget_book.find(None, home) is None
    assert budget_book.find(None, people) == budget_book.find(None, None, f"{people}/") == str(book)
    task = {"task": "node_classification", "epsilons": [1], "trust": ["curator"], "methods": [{"method": "features"}]}
    asked = {"name": "s", "seed": 1, "datasets": [{"name": "own/read", "path": str(people)}], "tasks": [task]}
    file = home / "s.yaml"
    file.write_text(json.dumps(asked), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"names \S*people\.budget; budget: none rehearses without it"):
        scenarios.from_file(file)
    assert scenarios.from_file(file, ["budget=none"]).book is None
    assert scenarios.from_file(file, ["seed=secret"]).book == str(book)
    monkeypatch.setenv("FEDGRAPH_BUDGET", "postgresql://host/db#people")
    assert budget_book.find(None, people) == "postgresql://host/db#people"
    assert budget_book.find("named", people) == "named"
    assert scenarios.from_file(file, ["seed=secret"]).book == "postgresql://host/db#people"


def spend_often(place: str, spends: int, std: float, told: Path, seed: int) -> None:
    """Charge people at random, and write each answer down after it came. The clock of half of the processes runs back."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        began = time.time()
        time.gmtime = lambda *_: time.localtime(began - 1e6 * rng.random())  # type: ignore[assignment]
    for number in range(spends):
        first, what = int(rng.integers(0, 4)) * 20, f"{seed}:{number}"
        try:
            charge(place, what, Gaussian(std * (1 + number % 5 / 60)), PEOPLE[first : first + 40] if number % 3 else None)
        except PrivacyError as error:
            if "would have paid" in str(error):
                continue
            raise
        with told.open("a", encoding="utf-8") as file:  # a release, which may only happen now
            file.write(f"{what}\n")


def chaos(place: str, spends: int, std: float, tmp_path: Path, copied: bool) -> None:
    """Eight processes at once, of which four to eight are killed and started again; a copy that tries, too."""
    fork, told = multiprocessing.get_context("fork"), tmp_path / "told"
    rng, started, ended, killed = np.random.default_rng(1), 0, 0, 0
    alive: list[multiprocessing.process.BaseProcess] = []
    while ended < 8 or killed < 4:  # a machine that is busy elsewhere may hear of a process only when it has ended
        while not alive or len(alive) + ended < 8:
            alive.append(fork.Process(target=spend_often, args=(place, spends // 8, std, told, started)))
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
                charge(tmp_path / "copy", "copy", Gaussian(60.0))
        alive[0].join(0.1)
        assert all(one.exitcode in (None, 0, -signal.SIGKILL) for one in alive)
        ended += sum(one.exitcode == 0 for one in alive)
        alive = [one for one in alive if one.exitcode is None]
    book = budget_book.read(place)
    stand, made = [one.what for one in book.charges], told.read_text(encoding="utf-8").split()
    assert len(set(stand)) == len(stand)
    assert set(made) <= set(stand), "a release without a charge"
    assert len(stand) - len(made) <= started, "a killed process loses at most the answer to one charge"
    per_person = {tuple(one.dearest[0] for one in book.charges if one.people[person]) for person in range(100)}
    spent = max(price(Composed(events), DELTA).epsilon for events in per_person)
    assert 0.95 * CAP < spent <= CAP, "never overspent, and the cap was reached"
    with pytest.raises(PrivacyError, match="would have paid"):
        charge(place, "more", Gaussian(2.0))


@pytest.mark.parametrize(("spends", "std"), [(160, 36.0), pytest.param(10_000, 60.0, marks=pytest.mark.slow)])
def test_many_spends_of_eight_processes_that_die_overspend_nothing_and_lose_nothing(
    tmp_path: Path, spends: int, std: float
) -> None:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, CAP, DELTA, PEOPLE)
    chaos(str(tmp_path / "people.budget"), spends, std, tmp_path, copied=True)


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
    chaos(server, 600, 60.0, tmp_path, copied=False)
    assert budget_book.read(other).charges == []
    with pytest.raises(PrivacyError, match="empty"):
        budget_book.read(server.replace("#people", "#nobody"))


def test_the_command_makes_and_shows_a_book(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ids.csv").write_text("id,name\n" + "".join(f"{p},x\n" for p in PEOPLE), encoding="utf-8")
    file = str(tmp_path / "b")
    init = ["budget", "init", file, "--unit", "node", "--epsilon", "8", "--people", str(tmp_path / "ids.csv"), "--delta"]
    assert main([*init, "0.1"]) == 1, "δ above one over the people"
    assert "would allow publishing" in capsys.readouterr().err
    assert [main([*init, "1e-6"]) for _ in range(2)] == [0, 1], "never replaced"
    charge(file, "GAP-NDP", Gaussian(2.0), PEOPLE[:30])
    capsys.readouterr()
    assert main(["budget", "show", file]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in ("1. ", "GAP-NDP: ε = 2.2", "0 of 8 spent by 70 people (charges: nothing)")), text


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
