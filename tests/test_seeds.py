"""Streams depend on their name alone."""

from __future__ import annotations

import numpy as np
import scipy.stats

from fedgraph import seeds


def test_streams_never_change_between_versions() -> None:
    """A published run must stay repeatable."""
    assert seeds.seeded_generator(0, "x").integers(1 << 30) == 675269228
    assert seeds.seeded_integer(7, "noise", "own\\x1fer", "a\\b", 3, 0.5) == 1897313587161615216
    assert seeds.coins(0, "x", things=np.array([5])).tolist() == [0.0995882531978377]


def test_any_other_name_is_another_stream() -> None:
    """Owners and data sets are named by users, so a part may hold any character, also the separator."""
    paths: list[tuple[object, ...]] = [
        ("noise", "client", 3, "round", 0), ("noise", "client", 3, "round", 1), ("noise", "client", "3", "round", 0),
        ("noise", "client3", "round", 0), ("a\x1fstr:b",), ("a", "b"), ("a\x1fint:1", 2), ("a", 1, 2), ("a\x1fint:1", "2"),
        ("a\\x1fstr:b",), ("a\x1fstr:b", "c"), ("a", "b\x1fstr:c"), ("a\x1fstr:b\x1fstr:c",), ("\x1f",),
        ("\x1f", ""), ("", "\x1f"),
    ]  # fmt: skip
    drawn = {seeds.seeded_integer(root, *path) for path in paths for root in (7, 8)}
    assert len(drawn) == 2 * len(paths)
    secret = seeds.SecretSeed(bytes(32))
    assert len({int(seeds.secret_seeded_generator(secret, *path).integers(1 << 62)) for path in paths}) == len(paths)


PAIRS = np.stack(np.triu_indices(400, 1), axis=1)


def test_coins_are_uniform_and_independent_between_things_and_streams() -> None:
    """Kolmogorov-Smirnov of 79,800 fixed coins, and correlations of at most five standard errors: nothing is drawn anew."""
    ours, other = seeds.coins(7, "hidden", things=PAIRS), seeds.coins(7, "hidden", 1, things=PAIRS)
    for drawn in (ours, other, seeds.coins(7, "hidden", things=np.arange(50_000))):
        assert scipy.stats.kstest(drawn, "uniform").pvalue > 1e-3
        assert scipy.stats.kstest(drawn[::2] * 0.9, "uniform").pvalue < 1e-9
    turned = seeds.coins(7, "hidden", things=PAIRS[:, ::-1])
    for first, second in ((ours, other), (ours, turned), (ours[1:], ours[:-1]), (ours, seeds.coins(8, "hidden", things=PAIRS))):
        assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(len(second))
    assert np.unique(ours).size == len(ours)


def test_a_coin_follows_from_the_things_name_alone() -> None:
    order, whole = np.random.default_rng(0).permutation(len(PAIRS)), seeds.coins(7, "hidden", things=PAIRS)
    assert np.array_equal(seeds.coins(7, "hidden", things=PAIRS[order]), whole[order])
    assert np.array_equal(seeds.coins(7, "hidden", things=np.delete(PAIRS, 17, axis=0)), np.delete(whole, 17))
    assert np.array_equal(seeds.coins(7, "hidden", things=PAIRS[:1].astype(np.int32)), whole[:1])
    assert seeds.coins(7, "hidden", things=PAIRS[:0]).size == 0


def test_coins_under_a_secret_root_need_its_key() -> None:
    secret, alike = seeds.SecretSeed(bytes(32)), seeds.SecretSeed(bytes([1, *31 * [0]]))
    drawn = [seeds.coins(root, "x", things=np.arange(64)) for root in (secret, alike, int(secret), 0)]
    assert np.array_equal(drawn[2], drawn[3])
    assert all(not np.isin(a, b).any() for a, b in [(drawn[0], drawn[1]), (drawn[0], drawn[2]), (drawn[1], drawn[2])])
