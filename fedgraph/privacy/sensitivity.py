"""Bounds that the desk enforces on a value before it adds noise, and the sensitivity that follows from each bound.

``bound.enforce(value)`` makes the bound true or raises. ``l2(bound, relation)`` is the largest distance of two neighbouring
values within the bound; its docstring has the proofs.

Edge cases, for every bound: NaN or ±inf anywhere in the value → ``UnboundedValueError``; a clip or
radius that is zero, negative, NaN or infinite → ``PrivacyError`` when the bound is built.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.fields import CheckedFields, CountField, PositiveField, require_event_interval, require_finite
from fedgraph.privacy.units import Relation, Unit


@dataclass(frozen=True)
class SensitivityBound(CheckedFields):
    """Abstract base of all bounds.

    Attributes:
        additive: whether the bound is on single records and not on a client's whole value, so that it also holds for the sum of
            several clients' values.
    """

    additive: ClassVar[bool] = False

    def enforce(self, value: np.ndarray) -> np.ndarray:
        """``value`` brought within the bound; a value within it is returned unchanged.

        Args:
            value: what a client wants to release, of the shape and type that the bound is for.

        Returns:
            An array within the bound; it may have another shape than ``value``, for example the sum of its rows.

        Raises:
            UnboundedValueError: an entry is NaN or ±∞, or no scaling brings the value within the bound.
            PrivacyError: the class does not implement ``enforce``.
        """
        raise PrivacyError(f"{type(self).__name__} does not implement enforce")


@dataclass(frozen=True)
class L2Ball(SensitivityBound):
    """‖value‖₂ ≤ radius, enforced by scaling down."""

    radius: PositiveField  # in data units, finite and > 0

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        norm = _l2_norm(value)
        if norm <= self.radius:
            return value
        shrink = 1 - 8 * float(np.finfo(np.result_type(value, np.float32)).eps)  # rounding must not push it out again
        return np.asarray(value * (self.radius / norm * shrink))


@dataclass(frozen=True)
class ClippedSum(SensitivityBound):
    """A sum of at most ``num_rows`` rows, each of which the learner clips to norm ``clip`` before it is summed.

    ``kernel`` clips the rows where gradients are computed. ``enforce`` only checks that the sum is finite and of norm at most
    num_rows·clip. This check is much weaker than the bound, so the bound rests on the kernel: a contract test runs every kernel
    that a plan names on adversarial rows, and a plan refuses a price for a sum without a kernel. Where all rows fit into
    memory, use ``Rows``, which clips them itself.

    Attributes:
        clip: largest L2 norm of a row, in data units, finite and > 0.
        num_rows: largest number of rows in the sum.
        kernel: full name of the function that clips (``kernel_name``), e.g.
            ``fedgraph.learning.per_sample.clipped_sum``; empty: none.
    """

    additive: ClassVar[bool] = True
    clip: PositiveField
    num_rows: int
    kernel: str = ""

    def enforce(self, value: np.ndarray) -> np.ndarray:
        norm = _l2_norm(value)  # NaN or infinity in any entry makes the norm so
        if not norm <= self.clip * self.num_rows * (1 + 1e-5):
            raise UnboundedValueError(
                f"a sum of {self.num_rows} rows clipped to {self.clip} has norm at most {self.clip * self.num_rows}, "
                "found more: the rows were not clipped, or hold NaN"
            )
        return value


@dataclass(frozen=True)
class Rows(SensitivityBound):
    """Rows [n, m], each of which is scaled down to L2 norm ``clip`` here, and then summed: float64 [m].

    The desk itself clips, so nothing is assumed of the learner. A row that holds NaN or infinity is refused. Sums are in double
    precision. Rows are scaled to slightly less than the clip, which covers the rounding of ``num_rows`` additions.
    """

    clip: PositiveField  # largest L2 norm of a row, in data units, finite and > 0
    num_rows: CountField  # the largest n, ≥ 1

    def enforce(self, value: np.ndarray) -> np.ndarray:
        if value.ndim != 2 or value.shape[0] > self.num_rows:
            raise UnboundedValueError(f"Rows needs a matrix of at most {self.num_rows} rows, found shape {value.shape}")
        require_finite(value)
        exact = np.ascontiguousarray(value, dtype=np.float64)
        with np.errstate(over="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", exact, exact))  # as ``_l2_norm`` of each row, bit for bit
        for row in np.flatnonzero(np.isinf(norms)):
            norms[row] = _l2_norm(exact[row])
        margin = 1 - 4 * (self.num_rows + 8) * float(np.finfo(np.float64).eps)
        scale = np.minimum(1.0, self.clip / np.maximum(norms, np.finfo(np.float64).tiny)) * margin
        return np.asarray((exact * scale[:, None]).sum(axis=0))


@dataclass(frozen=True)
class EdgeRows(Rows):
    """``Rows`` with one row for each undirected edge, so that one edge more or less changes the sum by at most ``clip``.

    A row must be computed from its edge's two ends and from released or public values, never from other edges. If two clients
    know an edge, each counts at most 1/√2 of its row; one end is then priced at Δ₂ = ``clip`` / √2.
    """


@dataclass(frozen=True)
class EdgeClippedSum(ClippedSum):
    """``ClippedSum`` with one row for each edge, as in ``EdgeRows``."""


@dataclass(frozen=True)
class NonNegativeRows(SensitivityBound):
    """A matrix [rows, m] of entries ≥ 0 and rows of L2 norm ≤ radius, of which at most ``num_rows`` rows depend on data.

    Enforced by clamping below at 0 and scaling rows down. A row that does not depend on data must be zero.
    """

    radius: PositiveField  # in data units, finite and > 0
    num_rows: CountField  # largest number of rows that are not zero; more of them are refused

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        positive = np.maximum(value, 0)
        norms = np.linalg.norm(positive, axis=1, keepdims=True)
        if np.count_nonzero(norms) > self.num_rows:
            raise UnboundedValueError(
                f"at most {self.num_rows} rows may hold data, found {np.count_nonzero(norms)}: the noise does not cover them"
            )
        return np.asarray(positive * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)))


@dataclass(frozen=True)
class Box(SensitivityBound):
    """Every entry in [low, high], enforced by clamping.

    Raises:
        PrivacyError: a limit is not finite, or ``low`` is not below ``high``.
    """

    low: float  # the least entry, finite
    high: float  # the largest entry, finite, above ``low``

    def __post_init__(self) -> None:
        super().__post_init__()
        require_event_interval("a Box", self.low, self.high)

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        return np.asarray(np.clip(value, self.low, self.high))


@dataclass(frozen=True)
class SimplexRows(SensitivityBound):
    """A matrix [num_rows, c] whose rows are probability vectors (softmax outputs), all of one unit.

    Enforced by clamping below at 0 and dividing each row by its sum. A zero row becomes uniform.
    """

    num_rows: CountField  # exactly so many rows, ≥ 1

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.ndim != 2 or value.shape[0] != self.num_rows or value.shape[1] < 1:
            raise UnboundedValueError(f"SimplexRows covers {self.num_rows} non-empty rows, found shape {value.shape}")
        positive = np.maximum(np.asarray(value, dtype=np.float64), 0.0)
        mass = positive.sum(axis=1, keepdims=True)
        return np.asarray(np.where(mass > 0, positive / np.where(mass > 0, mass, 1.0), 1.0 / value.shape[1]))


@dataclass(frozen=True)
class EndsClippedSum(ClippedSum):
    """``ClippedSum`` with one row for each node: an undirected edge may turn the rows of both its ends into any others."""


@dataclass(frozen=True)
class EndsSimplexRows(SensitivityBound):
    """A matrix [n, c] of probability vectors, or of zeros, one row for each node.

    An undirected edge may turn the rows of both its ends into any others. Enforced by clamping below at 0 and dividing each row
    whose sum is above 1 by it.
    """

    num_rows: int  # the largest n

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        if value.ndim != 2 or value.shape[0] > self.num_rows:
            raise UnboundedValueError(f"EndsSimplexRows covers at most {self.num_rows} rows, found shape {value.shape}")
        positive = np.maximum(np.asarray(value, dtype=np.float64), 0.0)
        return np.asarray(positive / np.maximum(positive.sum(axis=1, keepdims=True), 1.0))


@dataclass(frozen=True)
class Unbounded(SensitivityBound):
    """No bound, for unprotected releases only. Non-finite values still raise."""

    additive: ClassVar[bool] = True

    def enforce(self, value: np.ndarray) -> np.ndarray:
        require_finite(value)
        return value


def kernel_name(kernel: Callable[..., object]) -> str:
    """The full name of ``kernel``: module and function."""
    return f"{kernel.__module__}.{kernel.__qualname__}"


def _l2_norm(value: np.ndarray) -> float:
    """‖value‖₂ in double precision, without overflow of the squares; NaN or ∞ if an entry is."""
    flat = np.asarray(value, dtype=np.float64).ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(np.einsum("i,i->", flat, flat)))  # not BLAS: its threads are slower on 1 MB
    if not math.isinf(norm) or not np.isfinite(flat).all():
        return norm
    largest = float(np.abs(flat).max())
    return largest * float(np.linalg.norm(flat / largest))


def l2(bound: SensitivityBound, relation: Relation) -> float:
    """The largest ‖value − value'‖₂ over neighbouring values, for a unit that touches one value or row.

    * ``ClippedSum``, ``Rows``: one row vanishes (zero-out) → clip; one row is replaced → 2·clip (triangle inequality).
    * ``L2Ball``: zero-out to the zero value → radius; replaced → 2·radius.
    * ``NonNegativeRows``: every row may become any other; ‖u − v‖² ≤ ‖u‖² + ‖v‖² where u, v ≥ 0 → √(2·num_rows)·radius.
    * ``SimplexRows``: every row may become any other; ‖u − v‖² ≤ ‖u‖² + ‖v‖² ≤ ‖u‖₁² + ‖v‖₁² = 2 for u, v ≥ 0 → √(2·num_rows).
    * ``EdgeRows``, ``EdgeClippedSum``: one edge is one row → clip, under an edge relation only.
    * ``EndsClippedSum``: two rows are replaced, 2·clip each → 4·clip. ``EndsSimplexRows``: two rows, √2 each → 2. Both under
      ``edge-undirected`` only.

    **Guarantee.** Holds for nodes and graphs that touch one row, and for edges with a bound for edges. With any other bound an
    undirected edge may change two rows, so edge relations are refused: an edge-level method states its own Δ.

    **Edge cases.** A ``Box`` is refused, because Δ₂ depends on the number of entries: mechanisms on a box are priced per entry.

    Args:
        bound: the bound that was enforced.
        relation: which two inputs are neighbours.

    Returns:
        Δ₂ in data units.

    Raises:
        PrivacyError: the bound has no sensitivity under ``relation``.
    """
    if isinstance(bound, (EdgeRows, EdgeClippedSum)) and relation.unit is Unit.EDGE:
        return bound.clip
    if isinstance(bound, (EndsClippedSum, EndsSimplexRows)) and relation is Relation.EDGE_UNDIRECTED:
        return 4.0 * bound.clip if isinstance(bound, EndsClippedSum) else 2.0
    if relation.unit is Unit.EDGE or isinstance(bound, (EdgeRows, EdgeClippedSum, EndsClippedSum, EndsSimplexRows)):
        raise PrivacyError(f"under {relation.value} one unit may change several rows; state the sensitivity where it is proven")
    if isinstance(bound, (ClippedSum, Rows)):
        return (2.0 if relation.replaces else 1.0) * bound.clip
    if isinstance(bound, L2Ball):
        return (2.0 if relation.replaces else 1.0) * bound.radius
    if isinstance(bound, NonNegativeRows):
        return math.sqrt(2.0 * bound.num_rows) * bound.radius
    if isinstance(bound, SimplexRows):
        return math.sqrt(2.0 * bound.num_rows)
    raise PrivacyError(f"{type(bound).__name__} has no L2 sensitivity under {relation.value}")
