"""Rows as models: every method answers the same after its file was read back; what must be refused gets one line."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph import data
from fedgraph.errors import DataError, PrivacyError
from fedgraph.models import match_columns
from fedgraph.models.model import Model
from fedgraph.runs.run import Run
from fedgraph.types import Graph
from tests.models.conftest import ROWS, who


@pytest.fixture(scope="module")
def models(place: Path, run: Run) -> dict[str, Model]:
    found = {}
    for protocol, rows in ROWS.items():
        for row in rows:
            name = f"{protocol} {row['method']}"
            score = next(s for s in run.scores if (s.task, s.method) == (protocol, row["method"]))
            public = place / "volunteers" if protocol == "inductive" else None
            found[name] = run.score(score.row).fit(str(place / "people"), public=public, nothing_protected=True)
    return found


def test_every_method_answers_the_same_after_its_file_was_read_back(
    place: Path, models: dict[str, Model], tmp_path: Path
) -> None:
    assert len(models) == sum(map(len, ROWS.values()))
    for name, model in models.items():
        asked = str(place / ("people" if "transductive" in name else "newcomers"))
        before = model.predict_proba(asked, **who(model))
        model.save(tmp_path / name)
        again = fedgraph.load(tmp_path / name)
        assert np.array_equal(before, again.predict_proba(asked, **who(model))), name
        assert before.shape == (150 if "transductive" in name else 40, 3)
        assert np.allclose(before.sum(axis=1), 1), name
        assert list(again.classes_) == ["high", "low", "mid"]
        assert model.epsilon <= 4 or model.method == "nonprivate", name
        assert (again.statement, again.ledger) == (model.statement, model.ledger)


def test_answers_are_right_for_new_people_whatever_the_order_of_columns(place: Path, models: dict[str, Model]) -> None:
    truth = pd.read_csv(place / "newcomers" / "features.csv")["city"].map({"Bern": "low", "Genf": "mid", "Basel": "high"})
    for name, least in (("inductive nonprivate", 0.8), ("inductive features", 0.5)):
        model = models[name]
        assert (model.predict(str(place / "newcomers"), **who(model)) == truth).mean() > least, name


def test_a_newcomer_hears_the_answers_of_its_neighbours(
    place: Path, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """label_hop: the same person, once with edges to people who answered and once without; what is heard is said."""
    anchor = next(s.row for s in run.scores if s.method == "label_hop")
    model = run.score(anchor).fit(str(place / "people"), epsilon=500)
    shares, folder = [], tmp_path / "asked"
    folder.mkdir()
    rows = "".join(f"{one},50,0,Genf\n" for one in ("p3", "p1", "p2", "new"))
    (folder / "features.csv").write_text("id,age,member,city\n" + rows, encoding="utf-8")
    for edges, heard in (("", "0 of 0 ties; 4 of 4"), ("new,p1\nnew,p2\nnew,p3\n", "3 of 3 ties; 3 of 4")):
        (folder / "edges.csv").write_text("source,target\n" + edges, encoding="utf-8")
        caplog.clear()
        shares.append(model.predict_proba(folder, people="own")[3])
        (said,) = caplog.messages
        assert f"{heard} people have none" in said
        assert "3 trained themselves: ties of theirs, and partners, that are not listed are not heard" in said
    assert np.abs(np.log(shares[1] / shares[0])).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "asked", "people", "why"),
    [
        ("inductive gap_node", "newcomers", "own", "show a private person the rows of others.*features, label_hop"),
        ("inductive features", "people", "public", "150 of 150 people were in the training graph"),
        ("asking label_hop", "people", "public", "150 of 150 people were in the training graph.*--people own"),
        (
            "asking label_hop",
            "newcomers",
            None,
            "reads its own row, and its own edges.*Say whose rows these are.*private to fedgraph new.*--people own",
        ),
        ("transductive gcon", "people", "public", "own edges to people of the training graph, which the model protects"),
        ("inductive nonprivate", "newcomers", "public", "ε is ∞.*--i-know-that-nothing-is-protected"),
    ],
)
def test_what_nobody_priced_is_refused_with_a_way_out(
    place: Path, models: dict[str, Model], name: str, asked: str, people: str | None, why: str
) -> None:
    with pytest.raises(PrivacyError, match=why):
        models[name].predict(str(place / asked), people=people)


def test_a_model_holds_no_digest_of_its_people_and_knows_them_where_they_have_no_ids(
    place: Path, models: dict[str, Model]
) -> None:
    """Who is not named is known by how many they are, which is public; a digest of their rows would tell each of them."""
    rng, n = np.random.default_rng(0), 150

    def people(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return (rng.random((count, count)) < 0.02).astype(int), rng.random((count, 5)) < 0.5, rng.integers(0, 3, count)

    run = fedgraph.compare(people(n), [{"method": "features", "steps": 5}], [4.0], ["curator"], seeds=1, protocol="asking")
    fitted = run.score(run.scores[0].row).fit(people(n))
    fitted.predict_proba(people(n - 1), people="public")
    with pytest.raises(PrivacyError, match=r"neither graph has ids and both hold 150 people.*give others their ids"):
        fitted.predict_proba(people(n), people="public")
    fitted.predict_proba(people(n), people="own")
    named = models["asking label_hop"]
    assert (fitted.unnamed, named.unnamed) == (n, 0)
    assert not [name for name, model in models.items() if b"p123" in model.to_bytes()], "an id in clear tells who trained"
    for model, graph in ((fitted, fitted.graph_of(people(n))), (named, named.graph_of(str(place / "people")))):
        assert not [digest for digest in graph.provenance.checksums.values() if digest.encode() in model.to_bytes()]


def test_other_columns_and_people_get_one_line(place: Path, models: dict[str, Model], tmp_path: Path) -> None:
    model = models["inductive features"]
    for number, (edit, why) in enumerate([
        (lambda t: t.drop(columns="age"), "there is no column 'age'"),
        (lambda t: t.drop(columns="member"), "the column 'member' is missing"),
        (lambda t: t.assign(shoe=3), "does not know the column 'shoe'"),
        (lambda t: t.assign(city="Rom"), r"city of 'p2000' \(and of 39 further people\) is 'Rom', as of nobody that the model "
         "learned from; allowed: 'Basel', 'Bern', 'Genf'; or leave"),
    ]):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        edit(pd.read_csv(place / "newcomers" / "features.csv")).to_csv(folder / "features.csv", index=False)
        (folder / "edges.csv").write_text("source,target\n", encoding="utf-8")
        with pytest.raises(DataError, match=why):
            model.predict(folder, people="public")
    with pytest.raises(DataError, match="40 of 40 people were not in the training graph, the first is 'p2000'"):
        models["transductive gap_edge"].predict(str(place / "newcomers"))


def parts(content: bytes) -> tuple[dict[str, str], dict[str, Any], bytes]:
    """(metadata, header without them, arrays) of a file."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return header.pop("__metadata__"), header, content[8 + size :]


def edited(content: bytes, said: str, honest: bool = True) -> bytes:
    """The file with another text in the place of its own. honest: with its checksum, which whoever edits one can make anew."""
    metadata, header, arrays = parts(content)
    if honest:
        metadata["sha256"] = hashlib.sha256(json.dumps([said, header], sort_keys=True).encode() + arrays).hexdigest()
    head = json.dumps({"__metadata__": {**metadata, "fedgraph": said}, **header}, ensure_ascii=False).encode()
    return len(head).to_bytes(8, "little") + head + arrays


def test_hostile_files_get_one_line(models: dict[str, Model], tmp_path: Path) -> None:
    content = models["inductive features"].to_bytes()
    text = parts(content)[0]["fedgraph"]
    cases = {b"": "header", b"\x80\x04garbage": "header", content[:-4]: "array",
             content[:-1] + bytes([content[-1] ^ 1]): "checksum",
             edited(content, text.replace('"epsilon"', '"epsilom"', 1), honest=False): "checksum"}  # fmt: skip
    for old, new, why in (
        (f'"epsilon":{models["inductive features"].epsilon!r}', '"epsilon":0.5', "states ε = 0.5, and its ledger costs ε = "),
        ('"delta":0.0001,"statement"', '"delta":1e-06,"statement"', "states δ = 1e-06, and its ledger is"),
        ("fedgraph.models.model:Model", "subprocess:Popen", "records of fedgraph's own"),
        ("fedgraph.models.model:Model", "fedgraph.models.model:load", "does not have"),
        ("fedgraph.types:GraphNames", "fedgraph.types:GraphProvenance", "has the fields"),
        ('"method":"features"', '"method":["x"]', "a list"),
        ('"salt":"', '"salt":"x', "a key of 128 bits"),
    ):
        assert old in text
        cases[edited(content, text.replace(old, new, 1))] = why
    for bad, why in cases.items():
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(DataError, match=why) as error:
            fedgraph.load(tmp_path / "bad")
        assert "\n" not in str(error.value)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of a tree of JSON stands."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in inner:
        yield from leaves(part, (*path, key))
    if not isinstance(tree, (dict, list)):
        yield path


@pytest.mark.parametrize("name", ["asking label_hop", "inductive features", "transductive gap_edge"])
def test_a_model_of_which_any_value_was_edited_answers_or_says_one_line(
    name: str, models: dict[str, Model], place: Path, tmp_path: Path
) -> None:
    model, rng = models[name], np.random.default_rng(0)
    content, asked = model.to_bytes(), model.graph_of(str(place / ("people" if "transductive" in name else "newcomers")))
    text, refused = parts(content)[0]["fedgraph"], list[str]()
    every = list(leaves(json.loads(text)))
    for place_, value in zip(rng.permutation(len(every))[:30], itertools.cycle([None, -1, 10**9, 1e300, "x", [], True])):
        tree = node = json.loads(text)
        for key in every[place_][:-1]:
            node = node[key]
        node[every[place_][-1]] = value
        (tmp_path / "edited").write_bytes(edited(content, json.dumps(tree)))
        try:
            found = fedgraph.load(tmp_path / "edited")
            answers = found.predict_proba(asked, **who(model))
        except (DataError, PrivacyError) as error:
            refused.append(str(error))
        else:
            assert found.epsilon >= model.epsilon * (1 - 1e-6), every[place_]
            assert np.isfinite(answers).all()
    assert refused
    assert not [line for line in refused if "\n" in line]


def table(seed: int, first: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(people, edges): two classes by age, beside an income in cents that says nothing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=300)
    ids = [f"p{first + k}" for k in range(300)]
    age, income = np.round(30 + 30 * labels + 6 * rng.standard_normal(300)), np.round(1e6 * rng.lognormal(size=300))
    people = pd.DataFrame({"id": ids, "age": age, "income": income, "y": np.where(labels, "old", "young")})
    ends = rng.integers(300, size=(2, 300))
    return people, pd.DataFrame({"source": [ids[a] for a in ends[0]], "target": [ids[b] for b in ends[1]]})


def test_newcomers_are_read_on_the_scale_of_the_training(tmp_path: Path) -> None:
    people, edges = table(0, 0)
    run = fedgraph.compare((people, edges), ["features"], [8], ["curator"], protocol="asking")
    found = run.best(epsilon=8.01)
    assert found is not None
    fitted = found.fit((people, edges))
    assert fitted.epsilon <= 8
    assert any('"columns"' in line for line in fitted.ledger), "ranks are paid for"
    fitted.save(tmp_path / "people.model")
    model, (people, edges) = fedgraph.load(tmp_path / "people.model"), table(1, 1000)
    told = model.predict((people.drop(columns="y"), edges), people="own")
    assert (told == people["y"].to_numpy()).mean() > 0.85


def test_texts_and_empty_cells_that_the_training_had_not_are_named_by_who_has_them(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("id,age,city\nada,30,Rome\nbob,,Oslo\ncy,,\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n", encoding="utf-8")
    rules = {"text": "one-hot", "empty": "missing", "label": ""}
    graph = data.load("own/csv", path=tmp_path, parameters=rules)
    assert isinstance(graph, Graph)
    with pytest.raises(DataError) as caught:
        match_columns(graph, ("age", "city is Rome"), 2)
    age, empty, oslo = str(caught.value).splitlines()
    assert "age of 'bob' (and of 1 further people) is empty, as of nobody that the model learned from; allowed: a number" in age
    assert "city of 'cy' is empty, as of nobody that the model learned from; allowed: 'Rome'; or leave" in empty
    assert "city of 'bob' is 'Oslo'" in oslo
