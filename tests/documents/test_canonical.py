"""One text for one value: no two different ones share it, and it is written down here once and for all."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.documents import canonical


@dataclass(frozen=True)
class One:
    x: float


@dataclass(frozen=True)
class Other:
    x: float


class Colour(str, Enum):
    RED = "red"


def test_different_values_have_different_texts() -> None:
    arrays = [np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(2, np.int64), sp.csr_array((2, 1))]
    numbers = [None, False, 0, 0.0, "0", "", (), ("0",), (("0",),), {}, {"0": 0}, True, 1, 1.0, np.nextafter(1.0, 2.0), -0.0]
    named = [One(1.0), Other(1.0), One(2.0), Colour.RED, "red", Path("red"), float("inf"), ("a", "b"), ("a,b",)]
    apart = [*numbers, *named, *arrays]
    assert len({canonical.text(value) for value in apart}) == len(apart)


def test_equal_values_have_one_text() -> None:
    many = np.arange(5000.0)
    assert canonical.text(many) == canonical.text(many[::-1][::-1].copy())
    assert canonical.text(many) != canonical.text(np.where(many == 2500, 0.0, many)), "repr shows neither of them"
    assert canonical.text({"a": 1, "b": [2]}) == canonical.text({"b": (np.int64(2),), "a": np.int32(1)})
    assert canonical.text({3, 1, 2}) == canonical.text({2, 1, 3})
    rows = sp.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    assert canonical.text(rows) == canonical.text(sp.csr_array(np.ones((1, 2))))
    assert canonical.text((One(0.1), Colour.RED)) == (
        '["sequence",[["record","One",{"x":["float","0x1.999999999999ap-4"]}],["enum","red"]]]'
    )


@pytest.mark.parametrize("value", [object(), b"x", {1: object()}, np.array(["a"]), lambda: 0])
def test_what_nobody_can_compare_has_none(value: object) -> None:
    with pytest.raises(TypeError):
        canonical.text(value)
