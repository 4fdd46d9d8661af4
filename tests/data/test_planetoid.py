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

CORA = planetoid.DATASETS["cora"]


class Bomb:
    """Unpickling it creates a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


def test_a_foreign_pickle_is_refused_and_even_a_verified_file_may_ask_for_known_classes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, folder = tmp_path / "the-code-ran", tmp_path / "planetoid" / "Cora" / "raw"
    folder.mkdir(parents=True)
    bomb = pickle.dumps(Bomb(mark))
    for file in CORA.files:
        (folder / file).write_bytes(bomb)
    for mode in ("error", "synthetic"):
        with pytest.raises(DataError, match=rf"ind\.cora\.tx.*{CORA.sha256['ind.cora.tx']}"):
            data.load("planetoid/cora", root=tmp_path, when_unavailable=mode, download=False)
    verified = replace(CORA, sha256=dict.fromkeys(CORA.sha256, hashlib.sha256(bomb).hexdigest()))
    monkeypatch.setitem(planetoid.DATASETS, "cora", verified)
    with pytest.raises(DataError, match="pathlib"):
        data.load("planetoid/cora", root=tmp_path, download=False)
    assert not mark.exists()
    pickle.loads(bomb)
    assert mark.exists(), "the bomb was a dud, so the test proved nothing"
