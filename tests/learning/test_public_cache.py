"""What follows from public data is computed once, by whoever is first."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.learning import public_cache, public_training
from fedgraph.types import Graph


def test_one_makes_it_and_the_others_wait_for_it() -> None:
    made, found, together = list[int](), list[np.ndarray](), threading.Barrier(4)

    def asks() -> None:
        together.wait()
        found.append(public_cache.make("key", lambda: made.append(1) or np.arange(5.0)))  # type: ignore[func-returns-value]

    with public_cache.opened():
        threads = [threading.Thread(target=asks) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 1
    assert [one.tolist() for one in found] == [[0, 1, 2, 3, 4]] * 4


def test_what_is_damaged_is_made_again() -> None:
    """Half of it, as a full disk leaves it; or bytes that still can be read, and say something else."""
    value = [np.arange(1000.0), "text"]
    with public_cache.opened():
        folder = public_cache.folder()
        assert folder is not None
        public_cache.make("key", lambda: value)
        file = Path(folder) / "key"
        whole = file.read_bytes()
        another = bytearray(whole)
        another[-100] ^= 1
        for damaged in (b"", whole[:20], whole[:-1], bytes(another), b"N.", b"cfedgraph.gone\nClass\n.", pickle.dumps("other")):
            file.write_bytes(damaged)
            array, _ = public_cache.make("key", lambda: value)
            assert np.array_equal(array, value[0])
            assert file.read_bytes() == whole


def test_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed, foreign = tmp_path / "fedgraph-once-killed", tmp_path / "fedgraph-once-other"
    for folder in (killed, foreign):
        folder.mkdir()
    (killed / "owner").touch()
    (killed / "key").touch()
    code = "from fedgraph.learning import public_cache as c\nwith c.opened():\n    print(c.folder(), flush=True)\n    input()"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True, env=env) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        living = Path(other.stdout.readline().strip())
        assert not killed.exists()
        assert foreign.exists(), "it does not say whose it is"
        with public_cache.opened():
            assert living.exists(), "its run is at work"
        other.kill()
    with public_cache.opened():
        assert not living.exists()


@pytest.mark.parametrize("output", ["classes", "hidden", "published", "none"])
def test_an_encoder_tells_public_graphs_of_other_shapes_apart(library: Graph, output: str) -> None:
    """Columns without an entry and classes without a node stand in no array that is compared, but in the network's widths."""
    rows = library.features
    shape = (library.num_nodes, library.num_features + 3)
    wider = replace(library, features=sp.csr_array((rows.data, rows.indices, rows.indptr), shape=shape))
    more = replace(library, num_classes=library.num_classes + 1)
    encoder = public_training.PublicTrainingEncoder(output, 8, 2, public_training.PublicTrainingSteps(2, 0.01, 0.0))
    for graph in (library, wider, more):
        encoded = public_training.encode(graph, encoder)
        width = {"classes": graph.num_classes, "none": graph.num_features}.get(output, 8)
        assert encoded.own.shape == (graph.num_nodes, width)
        if output != "none":
            again = public_training.encode_after(encoded.parameters, encoder, graph)
            assert again.shape == encoded.own.shape


def test_other_data_have_another_name() -> None:
    """What is kept of other public data would be taken for one's own."""
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    wider = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(3, 4))
    asked = [
        (matrix, 3), (2 * matrix, 3), (matrix, 4), (wider, 3), (np.zeros((2, 3)),), (np.zeros((3, 2)),),
        (np.zeros((3, 2), dtype=np.float32),), ("a", "b"), ("ab",), (1, 23), (12, 3),
    ]  # fmt: skip
    names = [public_cache.key_of(*parts) for parts in asked]
    assert len(set(names)) == len(names)
    assert public_cache.key_of(sp.csr_array(np.eye(3, dtype=np.float32)), 3) == names[0]
