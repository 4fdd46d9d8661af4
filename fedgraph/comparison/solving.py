"""How discrepancies were solved, and how our Gromov-Wasserstein solver and POT agree, as a cell's record holds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """Our solver and POT on the same ``pairs`` (``agreement``).

    Args:
        equal: both values agree to ``agreement.EQUAL``.
        lower: ours is lower.
        higher: ours is higher.
        most_lower: by how much at most, relative to POT's value.
        most_higher: the same where ours is higher.
        unexplained: pairs in which POT goes on from the end of ours by more than ``agreement.UNEXPLAINED``, or in which ours
            printed another value than its coupling has.
        seconds: of ours, on one thread.
        seconds_pot: of POT, on one thread.
    """

    pairs: int
    equal: int
    lower: int
    higher: int
    most_lower: float
    most_higher: float
    unexplained: int
    seconds: float
    seconds_pot: float


@dataclass(frozen=True)
class Barycentres:
    """``count`` barycentres made by both from equal starts: their members' mean discrepancy to ours, and to POT's."""

    count: int
    ours: float
    pot: float


@dataclass(frozen=True)
class SolvedPairs:
    """Gromov-Wasserstein problems that were solved. file: where each is kept, as seen from the run's folder; None: nowhere."""

    file: str | None
    pairs: int
    converged: int


@dataclass(frozen=True)
class LocalMinima:
    """How the ends of one descent compare with the best of ``descents``, on a sample of ``pairs``.

    lower: share of pairs where the best is lower. drop: by which share of the value, on average over all. careful: whether the
    task itself takes the best.
    """

    pairs: int
    lower: float
    drop: float
    descents: int
    careful: bool


@dataclass(frozen=True)
class SolverFacts:
    """How discrepancies were found. asked: (pairs that a vote needed, all pairs) where only those were solved."""

    solved: SolvedPairs | None = None
    minima: LocalMinima | None = None
    asked: tuple[int, int] | None = None
    verified: Agreement | None = None
    barycentres: Barycentres | None = None
