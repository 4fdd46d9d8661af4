"""What ``fit`` and ``predict`` give is what the run says: for every classifier in each protocol and at each level of trust.

People were drawn so that a row tells something and neighbours tell more. The run learns from four fifths of the labelled people
and is asked about the others. A model learns from all of them, and is asked about people whose label is blank, and about people
who come later.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph import plugins
from fedgraph.methods.base import MethodReads, MethodSituation, method_kinds
from fedgraph.models.model import Model
from fedgraph.privacy.trust import Trust
from fedgraph.runs.run import Run

CLASSES, COLUMNS, EPSILON = ("low", "mid", "high"), 6, 16.0
KNOWN, BLANK, LATER = 600, 150, 150


def drawn(seed: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(labels, rows of zeros and ones, pairs): eight ties each, seven of ten of them to the own class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=count)
    rows = (rng.random((count, COLUMNS)) < np.where(np.arange(COLUMNS) % 3 == labels[:, None], 0.7, 0.3)).astype(int)
    one = np.repeat(np.arange(count), 4)
    own = [np.flatnonzero(labels == k) for k in range(3)]
    two = np.where(rng.random(one.size) < 0.6, [rng.choice(own[labels[u]]) for u in one], rng.integers(count, size=one.size))
    return labels, rows, np.stack([one, two], axis=1)[one != two]


def write(folder: Path, ids: list[str], rows: np.ndarray, pairs: list[tuple[str, str]], labels: list[str]) -> str:
    folder.mkdir(parents=True)
    header = ",".join(["id", *(f"x{k}" for k in range(COLUMNS))])
    lines = [f"{one}," + ",".join(map(str, row)) for one, row in zip(ids, rows, strict=True)]
    (folder / "features.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in pairs)]) + "\n", encoding="utf-8")
    if labels:
        said = [f"{one},{label}" for one, label in zip(ids, labels, strict=True)]
        (folder / "labels.csv").write_text("\n".join(["id,label", *said]) + "\n", encoding="utf-8")
    return str(folder)


class Place:
    """Everybody, then those who come later; the same people with all labels, and with some blank."""

    def __init__(self, home: Path) -> None:
        labels, rows, pairs = drawn(0, KNOWN + BLANK + LATER)
        self.truth = np.array(CLASSES)[labels]
        ids, here = [f"p{k}" for k in range(len(labels))], KNOWN + BLANK
        named = [(ids[a], ids[b]) for a, b in pairs if max(a, b) < here]
        known = [str(label) for label in self.truth[:KNOWN]]
        self.blank = write(home / "blank", ids[:here], rows[:here], named, known + [""] * BLANK)
        inside = [(ids[a], ids[b]) for a, b in pairs if max(a, b) < KNOWN]
        self.full = write(home / "full", ids[:KNOWN], rows[:KNOWN], inside, known)
        every = [(ids[a], ids[b]) for a, b in pairs]
        self.later = write(home / "later", ids, rows, every, [])
        apart = [(ids[a], ids[b]) for a, b in pairs if min(a, b) >= here]
        self.newcomers = write(home / "newcomers", ids[here:], rows[here:], apart, [])
        others, other_rows, other_pairs = drawn(1, LATER)
        names = [f"v{k}" for k in range(len(others))]
        self.volunteers = write(home / "volunteers", names, other_rows, [(names[a], names[b]) for a, b in other_pairs], [])


def rows() -> list[tuple[str, MethodSituation, Trust]]:
    found = []
    for name in plugins.names("methods"):
        offers = method_kinds.load(name).OFFERS
        if offers.kind != "classifier" or offers.reads is None:
            continue
        given: set[str] = set()
        for place in offers.situations:  # the first of each protocol
            if place.given not in given and place.given in ("inductive", "transductive", "inductive-edges", "asking"):
                given.add(place.given)
                trusted = [Trust.NOBODY] if offers.trusts_nobody else [t for t in place.trusted if t is not Trust.ACTIVE_SERVER]
                found += [(name, place, trust) for trust in trusted]
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("as_run"))


@pytest.fixture(scope="module")
def run(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Run:
    tasks = []
    for protocol in sorted({given.given for _, given, _ in ROWS}):
        here = [(name, given, trust) for name, given, trust in ROWS if given.given == protocol]
        methods = [{"method": n, "label": f"{n} {t.value}", "trust": [t.value], **settings(n, g)} for n, g, t in here]
        trusted = sorted({t.value for _, _, t in here if t is not Trust.NOBODY})
        tasks.append({"task": "node_classification", "label": protocol, "protocol": protocol, "trust": trusted, "delta": 1e-4,
                      "partition": {"partition": "uniform", "clients": 3},
                      "epsilons": [EPSILON], "methods": methods})  # fmt: skip
    out = tmp_path_factory.mktemp("out") / "run"
    asked = {"name": "as_run", "runtime": {"engine": "serial"}, "datasets": [{"name": "own/csv", "path": place.full}]}
    fedgraph.run({**asked, "tasks": tasks}, out=out, quiet=True)
    return fedgraph.open_run(out)


def settings(method: str, place: MethodSituation) -> dict[str, object]:
    """As quick as in the contract tests, but for the two that would learn nothing at all so quickly."""
    return {} if method in ("features", "label_hop") else dict(place.settings)


def right(model: Model, graph: str, truth: np.ndarray, which: slice) -> float:
    reads = method_kinds.load(model.method).OFFERS.reads
    assert reads is not None
    public = reads(model.plan) in (MethodReads.PUBLIC_GRAPH, MethodReads.NOTHING)
    said = model.predict(graph, people="public" if public else "own", nothing_protected=np.isinf(model.epsilon))
    return float((np.asarray(said)[which] == truth[which]).mean())


def apart(one: float, two: float) -> float:
    """Standard errors between two shares, one of a fifth of the known people, one of those who were asked."""
    middle = min(max((one + two) / 2, 0.1), 0.9)
    return abs(one - two) / math.sqrt(middle * (1 - middle) * (5 / KNOWN + 1 / LATER))


@pytest.mark.parametrize(("method", "given", "trust"), ROWS, ids=[f"{m}-{g.given}-{t.value}" for m, g, t in ROWS])
def test_a_model_is_as_right_as_the_run_says(method: str, given: MethodSituation, trust: Trust, place: Place, run: Run) -> None:
    scores = [s for s in run.answered.scores if s.variant == f"{method} {trust.value}" and s.task == given.given]
    (score,) = scores
    said = score.mean
    alone = given.given in ("inductive", "inductive-edges")
    public = {"public": place.volunteers} if alone else {}
    row = run.score(score.anchor)
    for people in (place.full, place.blank):
        model = row.fit(people, nothing_protected=True, **public)
        found = []
        if people == place.blank and not alone:
            here = KNOWN + BLANK
            found.append(right(model, place.blank, place.truth[:here], slice(KNOWN, here)))
        if alone:
            found.append(right(model, place.newcomers, place.truth[KNOWN + BLANK :], slice(None)))
        elif given.given == "asking":
            found.append(right(model, place.later, place.truth, slice(KNOWN + BLANK, None)))
        for share in found:
            assert apart(said, share) < 4, (people, said, share)
