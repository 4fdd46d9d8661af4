"""Whole programs in two worlds: what they make, and the files that they leave, where the desk releases the same in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from fedgraph.audit import Difference, FirstWorld, SecondWorld
from fedgraph.privacy import desk

_Made = TypeVar("_Made")


def run_in_two_worlds(first: Callable[[], _Made], second: Callable[[], _Made]) -> tuple[_Made, _Made, list[Difference]]:
    """Whatever a program does, on two neighbouring inputs, with the first one's releases in both.

    first: runs on the data. second: the same on a neighbour. Returns (what ``first`` made, what ``second`` made, releases more,
    less or in another order). How far values were apart is not looked at, since nobody says here what they were priced for.
    """
    tape = FirstWorld()
    with desk.witness_desks(tape):
        one = first()
    world = SecondWorld(tape.tape)
    with desk.witness_desks(world):
        other = second()
    return one, other, world.differences({}, None)[0]


def differing_files(one: Path, other: Path) -> list[str]:
    """Which files of two folders are not equal, byte for byte.

    one: a folder of the first world. other: the same of the second. Returns one line each, by name; empty where the folders
    are equal.
    """
    first, second = ({str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()} for folder in (one, other))
    return sorted(_unequal(first, second))


def _unequal(one: Mapping[str, Path], other: Mapping[str, Path]) -> Iterator[str]:
    for name in {*one, *other}:
        if name not in one or name not in other:
            yield f"{name}: only in the {'second' if name not in one else 'first'} world"
            continue
        a, b = one[name].read_bytes(), other[name].read_bytes()
        if a != b:
            at = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            shown = [part[max(0, at - 20) : at + 20].decode("utf-8", "replace") for part in (a, b)]
            yield f"{name}: byte {at} of {len(a)} and {len(b)}: {shown[0]!r} and {shown[1]!r}"
