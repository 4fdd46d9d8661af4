"""Streams depend on their name alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph import seeds


def test_same_name_same_stream() -> None:
    a = seeds.seeded_generator(7, "noise", "client", 3, "round", 0).standard_normal(5)
    b = seeds.seeded_generator(7, "noise", "client", 3, "round", 0).standard_normal(5)
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "other",
    [
        (8, "noise", "client", 3, "round", 0),
        (7, "noise", "client", 3, "round", 1),
        (7, "noise", "client", 30, "round", 0),
        (7, "noise", "client", "3", "round", 0),
        (7, "noise", "client3", "round", 0),
    ],
)
def test_any_other_name_is_another_stream(other: tuple[int, str]) -> None:
    a = seeds.seeded_generator(7, "noise", "client", 3, "round", 0).standard_normal(5)
    assert not np.array_equal(a, seeds.seeded_generator(*other).standard_normal(5))


def test_streams_never_change_between_versions() -> None:
    """A published run must stay repeatable."""
    assert seeds.seeded_generator(0, "x").integers(1 << 30) == 675269228


def test_negative_root_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        seeds.seed_sequence(-1, "a")


def test_a_name_that_holds_the_separator_is_no_other_name() -> None:
    """Owners and data sets are named by users, so a part may hold any character."""
    paths = [
        ("a\x1fstr:b",),
        ("a", "b"),
        ("a\x1fint:1", 2),
        ("a", 1, 2),
        ("a\x1fint:1", "2"),
        ("a\\x1fstr:b",),
        ("a\x1fstr:b", "c"),
        ("a", "b\x1fstr:c"),
        ("a\x1fstr:b\x1fstr:c",),
        ("\x1f",),
        ("\x1f", ""),
        ("", "\x1f"),
    ]
    drawn = [seeds.seeded_integer(7, *path) for path in paths]
    assert len(set(drawn)) == len(paths)
    secret = seeds.SecretSeed(bytes(32))
    private = [int(seeds.secret_seeded_generator(secret, *path).integers(1 << 62)) for path in paths]
    assert len(set(private)) == len(paths)


def test_a_name_without_the_separator_keeps_its_stream() -> None:
    assert seeds.seeded_integer(7, "noise", "own\\x1fer", "a\\b", 3, 0.5) == 1897313587161615216
