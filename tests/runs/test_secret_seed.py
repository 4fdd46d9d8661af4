"""``seed: secret``: a cryptographic source, fresh keys, nothing written, and public streams that stay the same."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

from fedgraph import open_run, seeds
from fedgraph.federation.messages import ClientJob
from fedgraph.methods.base import PlanStreams
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.scenario import read
from fedgraph.seeds import chacha

TEXT = """name: small
seed: secret
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - {task: node_classification, epsilons: [4], trust: [curator], methods: [{method: features, steps: 4}]}
"""


def test_the_key_stream_is_that_of_the_standard() -> None:
    """RFC 8439, appendix A.1, test vectors 1, 2 and 3: key 0, or 1 in its last place, the blocks of counters 0 and 1."""
    words = chacha.ChaCha20(bytes(32)).random_raw(16)
    assert words[:2].astype("<u8").tobytes().hex() == "76b8e0ada0f13d90405d6ae55386bd28"
    assert words[8:10].astype("<u8").tobytes().hex() == "9f07e7be5551387a98ba977c732d080d"
    other = chacha.ChaCha20(bytes(31) + b"\1").random_raw(16)
    assert other[8:10].astype("<u8").tobytes().hex() == "3aeb5224ecf849929b9d828db1ced4dd"


def test_numpy_draws_from_it() -> None:
    rng = np.random.Generator(chacha.ChaCha20(b"k" * 32))
    for drawn, law in ((rng.standard_normal(20_000), "norm"), (rng.random(20_000, dtype=np.float32), "uniform")):
        assert kstest(drawn, law).pvalue > 1e-4
    assert abs(np.corrcoef(rng.integers(2**63, size=20_000), rng.integers(2**63, size=20_000))[0, 1]) < 0.03
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(rng)


def test_keys_are_fresh_private_streams_follow_them_and_public_ones_do_not() -> None:
    one, two = seeds.root_seed("secret"), seeds.root_seed("secret")
    assert int(one) == int(two) == 0
    assert one != two, "nothing that is kept under one secret root may be found under another"
    assert one == pickle.loads(pickle.dumps(one)) != 0
    assert str(one) == repr(one) == f"{one}" == "secret"
    draw = [seeds.secret_seeded_generator(root, "noise", 3).random(4) for root in (one, two, one)]
    assert not np.array_equal(draw[0], draw[1])
    assert np.array_equal(draw[0], draw[2]), "a restarted worker needs the same noise again"
    assert np.array_equal(draw[0], seeds.secret_seeded_generator(pickle.loads(pickle.dumps(one)), "noise", 3).random(4))
    assert np.array_equal(seeds.seeded_generator(one, "split").random(3), seeds.seeded_generator(0, "split").random(3))
    assert np.array_equal(seeds.secret_seeded_generator(7, "noise").random(3), seeds.seeded_generator(7, "noise").random(3))


def test_a_key_has_256_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits in (0, 128, 512):
        monkeypatch.setattr("fedgraph.seeds.os.urandom", lambda count, bits=bits: bytes(bits // 8))
        with pytest.raises(ValueError, match=f"256 bits, found {bits}"):
            seeds.root_seed("secret")


def test_no_block_of_the_key_stream_comes_twice() -> None:
    bits = chacha.ChaCha20(bytes(32))
    alone = np.array([bits.random_raw() for _ in range(8 * 200)])
    assert np.array_equal(alone, chacha.ChaCha20(bytes(32)).random_raw(8 * 200)), "however many are asked for at once"
    assert len(np.unique(alone.reshape(200, 8), axis=0)) == 200


def test_what_is_pickled_names_the_key_and_never_holds_it() -> None:
    """Whatever Ray's store spills to disk, e.g. a job, is useless there; a process that was not told the key refuses."""
    root = seeds.root_seed("secret")
    assert isinstance(root, seeds.SecretSeed)
    for holder in (root, {"root": root}, ClientJob("job", root, ("cell",), plan=None), PlanStreams(root, ("cell",))):  # type: ignore[arg-type]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            written = pickle.dumps(holder, protocol)
            assert not any(form in written for form in (root.key, root.key.hex().encode(), repr(root.key).encode()))
    found = pickle.loads(written.replace(root.name.encode(), b"0" * len(root.name))).root  # of a key that nobody told
    for draw in (lambda: seeds.secret_seeded_generator(found, "noise"), lambda: seeds.coins(found, "x", things=np.arange(3))):
        with pytest.raises(RuntimeError, match="was not given the key"):
            draw()


def test_every_secret_stream_belongs_to_one_plan() -> None:
    """Two plans never share noise, samples or batches, with any kind of root; public coins may be shared."""
    for root in (5, seeds.root_seed("secret")):
        here, there = PlanStreams(root, ("cell",), "one plan"), PlanStreams(root, ("cell",), "another")
        for name in ("noise", "batch"):
            assert not np.array_equal(here.generator(name).random(4), there.generator(name).random(4))
        assert np.array_equal(here.generator("public-coins").random(4), there.generator("public-coins").random(4))


def test_a_run_writes_no_secret_says_so_and_another_run_draws_other_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third run has the first one's key, and so its scores: what differs between runs is the noise, and not the clock."""
    drawn = [b"\x11\xfa" * 16, b"\x22\xfb" * 16, b"\x11\xfa" * 16]
    keys, scores = iter(drawn), []
    monkeypatch.setattr("fedgraph.seeds.os.urandom", lambda count: next(keys)[:count])
    (tmp_path / "small.yaml").write_text(TEXT, encoding="utf-8")
    ready = read.from_file(tmp_path / "small.yaml")
    for number, key in enumerate(drawn):
        folder = tmp_path / f"out{number}"
        experiment.run(ready, folder, None, False, Console())
        forms = (key, key.hex().encode(), str(int.from_bytes(key, "big")).encode())
        held = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert not [path for path, content in held.items() if any(form in content or form in content.lower() for form in forms)]
        assert json.loads(held[folder / "environment.json"])["seed"] == "secret"
        assert b"256-bit key was drawn from the" in held[folder / "report.html"]
        scores.append(open_run(folder).kept[0].results[0].metrics)
    assert scores[0] == scores[2] != scores[1]
