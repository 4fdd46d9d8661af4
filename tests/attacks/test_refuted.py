"""A method that adds less noise than it declares, end to end: the refuted ε is the first sentence, with what repeats it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import fedgraph.methods
from fedgraph import plugins, run

LIAR = """
import dataclasses

import fedgraph.methods.features as honest
from fedgraph.attacks.base.evidence import features as read
from fedgraph.privacy.mechanisms.noise import GaussianNoise

globals().update({name: value for name, value in vars(honest).items() if not name.startswith("__")})
OFFERS = dataclasses.replace(honest.OFFERS, evidence=read.evidence, reads_rounds=read.reads_rounds)


def plan(params, facts, budget):
    return dataclasses.replace(honest.plan(params, facts, budget), method="liar")


def client(plan, work, model, round_, streams, desk):
    less = tuple(dataclasses.replace(r, mechanism=GaussianNoise(r.mechanism.std / 20)) for r in desk.planned)
    door = dataclasses.replace(desk, planned=less)
    sent = honest.client(plan, work, model, round_, streams, door)
    desk.entries.extend(e for e in door.entries if e not in desk.entries)
    return sent
"""


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[None]:
    """A method file of the user's own, beside those that are shipped."""
    home = tmp_path / "methods"
    home.mkdir()
    (home / "liar.py").write_text(textwrap.dedent(LIAR))
    fedgraph.methods.__path__.append(str(home))
    plugins.forget()
    yield
    fedgraph.methods.__path__.remove(str(home))
    plugins.forget()


def scenario(folder: Path, *methods: str) -> Path:
    rows = [{"method": name, "model": "logistic", "label": name, "steps": 4, "projection": "none"} for name in methods]
    task = {
        "task": "node_classification", "label": "told", "epsilons": [1], "trust": ["own-client"], "methods": rows,
        "partition": {"partition": "uniform", "clients": 8}, "attack": {"canaries": 60, "guesses": [1.0]},
    }  # fmt: skip
    file = folder / "refuted.yaml"
    file.write_text(yaml.safe_dump({"name": "refuted", "datasets": [{"name": "embedded/library"}], "tasks": [task]}))
    return file


def test_a_refuted_epsilon_is_the_first_sentence_everywhere(
    liar: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = scenario(tmp_path, "features", "liar"), tmp_path / "out"
    assert run.main([str(file), "--runtime", "serial", "--out", str(out)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    page = " ".join((out / "report.html").read_text().split())
    begins = "CONTRADICTION: an attack measured more than was proven, so a proof or its code is wrong (liar"
    for text in (printed, page):
        first = text.index(begins)
        assert first < text.index("ode level"), "it comes before the answer"
    said = printed[printed.index(begins) :]
    for part in (
        "provable ε = 1", "all 2 bounds of the report together", "To repeat it", "task told", "data set embedded/library",
        "trust own-client", "seed 0", "guesses about", "environment.json",
    ):  # fmt: skip
        assert part in said, part
    assert "features · features" not in said[: said.index("To repeat it")], "the honest row is not accused"
    answered = said[said.index("ode level") :]
    assert "liar" not in answered.split("report:")[0], "a refuted row is no answer"
