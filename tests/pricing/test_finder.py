"""A Python file or a notebook alone: its calls with their lines, questions, and never a total."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.commands import base as cli
from fedgraph.errors import PricingError
from tests.pricing import truths

TRAIN = """from opacus import PrivacyEngine

EPOCHS = 5
engine = PrivacyEngine()
model, opt, loader = engine.make_private(module=model, optimizer=opt, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1)
for _ in range(EPOCHS):
    for x, y in loader:
        opt.step()
print(engine.get_epsilon(delta=1e-5))
"""
FLAGS = """from absl import app, flags
from tensorflow_privacy import DPKerasSGDOptimizer
flags.DEFINE_float("noise_multiplier", 1.1, "noise")
flags.DEFINE_integer("epochs", 10, "epochs")
FLAGS = flags.FLAGS
def main(_):
    model.compile(optimizer=DPKerasSGDOptimizer(l2_norm_clip=1, noise_multiplier=FLAGS.noise_multiplier, num_microbatches=200))
    model.fit(x, y, epochs=FLAGS.epochs, batch_size=200)
app.run(main)
"""
WHOLE = {"noise multiplier": 1.1, "sampling rate": 0.01, "steps": 500.0, "delta": 1e-5, "examples of one person": 1.0}


def written(tmp_path: Path, text: str, name: str = "train.py") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made})


@pytest.mark.parametrize("text", [TRAIN, FLAGS, TRAIN.replace("noise_multiplier=1.1", "noise_multiplier=sigma")])
def test_a_program_alone_never_passes_a_gate(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    quote = pricing.price(path)
    assert quote.headline.total is None
    assert cli.main(["price", str(path), "--at-most", "1e9"]) == 2
    assert cli.main(["price", str(path), "--at-most", "inf"]) == 2


def test_calls_stand_with_their_lines_and_a_run_is_suggested(tmp_path: Path) -> None:
    order = pricing.price(written(tmp_path, TRAIN)).reading.order
    assert '--run "python train.py"' in order[0]
    assert [line.partition("(")[0] for line in order[1:]] == [
        "train.py:4: PrivacyEngine", "train.py:5: make_private", "train.py:9: get_epsilon",
    ]  # fmt: skip


def test_what_the_file_writes_is_the_first_plausible_answer(tmp_path: Path) -> None:
    asked = {a.unknown.name: a.answers for a in pricing.price(written(tmp_path, FLAGS)).asked}
    assert asked["noise multiplier"][0][0] == 1.1
    assert asked["epochs"][0][0] == 10
    [(_, epsilon)] = [answer for answer in asked["delta"] if answer[0] == 1e-7]
    assert epsilon == pytest.approx(truths.gaussian(math.sqrt(10) / 1.1, 1e-7)), "a pass is one sum: nothing is amplified"


def test_answers_make_a_table_and_never_a_total(tmp_path: Path) -> None:
    path = written(tmp_path, TRAIN)
    quote = pricing.price(path, given={**WHOLE, "other steps or files": 0.0})
    assert quote.headline.total is None
    assert quote.headline.per_round.epsilon == pytest.approx(truths.poisson(1.1, 0.01, 1, 1e-5), abs=1e-3)
    facts = [word for name, value in WHOLE.items() for word in ("--given", f"{name}={value}")]
    assert cli.main(["price", str(path), *facts, "--given", "other steps or files=0", "--at-most", "1e9"]) == 2


def test_no_cell_of_a_notebook_is_dropped_in_silence(tmp_path: Path) -> None:
    cells = ("import opacus\n!pip install opacus", "%%time\nengine.make_private(noise_multiplier=1.0)", "%%bash\nls", "if x\n")
    quote = pricing.price(written(tmp_path, notebook(*cells), "nb.ipynb"))
    assert any("nb.ipynb, cell 2:2: make_private" in line for line in quote.reading.order)
    assert [words.partition(",")[0] for words in quote.reading.not_priced] == ["cell 3", "cell 4"]
    with pytest.raises(PricingError, match="no call of differential privacy stands in it \\(cell 1"):
        pricing.price(written(tmp_path, notebook("%%bash\nls"), "other.ipynb"))


def test_a_program_is_not_read_as_somebodys_settings(tmp_path: Path) -> None:
    with pytest.raises(PricingError, match="only searched"):
        pricing.price(written(tmp_path, TRAIN), system="flower")
