"""A pickle that is not the published one is never opened."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from fedgraph import data
from fedgraph.data import planetoid
from fedgraph.errors import DataError


class Bomb:
    """Unpickling it creates a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("mode", ["error", "synthetic"])
def test_a_foreign_pickle_is_refused_before_it_can_run(mode: str, tmp_path: Path) -> None:
    mark = tmp_path / "the-code-ran"
    folder = tmp_path / "planetoid" / "Cora" / "raw"
    folder.mkdir(parents=True)
    for file in planetoid.DATASETS["cora"].files:
        (folder / file).write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(DataError) as caught:
        data.load("planetoid/cora", root=tmp_path, when_unavailable=mode, download=False)
    text = str(caught.value)
    assert "ind.cora.tx" in text
    assert planetoid.DATASETS["cora"].sha256["ind.cora.tx"] in text
    assert not mark.exists()
    pickle.loads((folder / "ind.cora.tx").read_bytes())
    assert mark.exists(), "the bomb was a dud, so the test proved nothing"


def test_even_a_verified_file_may_ask_for_known_classes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb, cora = pickle.dumps(Bomb(tmp_path / "mark")), planetoid.DATASETS["cora"]
    folder = tmp_path / "planetoid" / "Cora" / "raw"
    folder.mkdir(parents=True)
    for file in cora.files:
        (folder / file).write_bytes(bomb)
    verified = replace(cora, sha256=dict.fromkeys(cora.sha256, hashlib.sha256(bomb).hexdigest()))
    monkeypatch.setitem(planetoid.DATASETS, "cora", verified)
    with pytest.raises(DataError, match="pathlib"):
        data.load("planetoid/cora", root=tmp_path, download=False)
    assert not (tmp_path / "mark").exists()
