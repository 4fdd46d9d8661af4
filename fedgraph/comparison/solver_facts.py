"""How discrepancies were solved, and how our Gromov-Wasserstein solver and POT agree, as a cell's record holds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverAgreement:
    """Our solver and POT on the same pairs (``agreement``).

    Attributes:
        pairs: How many.
        equal: Both values agree to ``agreement._EQUAL``.
        lower: Ours is lower.
        higher: Ours is higher.
        most_lower: By how much at most, relative to POT's value.
        most_higher: The same where ours is higher.
        unexplained: Pairs in which POT goes on from the end of ours by more than ``agreement._UNEXPLAINED``, or in which ours
            printed another value than its coupling has.
        seconds: Of ours, on one thread.
        seconds_pot: Of POT, on one thread.
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
class GromovBarycentreFacts:
    """Barycentres made by both from equal starts.

    Attributes:
        count: How many.
        ours: Their members' mean discrepancy to ours.
        pot: The same to POT's.
    """

    count: int
    ours: float
    pot: float


@dataclass(frozen=True)
class GromovPairFacts:
    """Gromov-Wasserstein problems that were solved.

    Attributes:
        file: Where each is kept, as seen from the run's folder; None: nowhere.
        pairs: How many.
        converged: How many of them converged.
    """

    file: str | None
    pairs: int
    converged: int


@dataclass(frozen=True)
class SolverMinima:
    """How the ends of one descent compare with the best of several, on a sample of pairs.

    Attributes:
        pairs: How many.
        lower: Share of pairs where the best is lower.
        drop: By which share of the value, on average over all.
        descents: How many were made of each pair.
        careful: Whether the task itself takes the best.
    """

    pairs: int
    lower: float
    drop: float
    descents: int
    careful: bool


@dataclass(frozen=True)
class SolverFacts:
    """How discrepancies were found. A field that does not apply is None.

    Attributes:
        solved: What was solved.
        minima: How far one descent is from the best of several.
        asked: (pairs that a vote needed, all pairs) where only those were solved.
        verified: Our solver against POT's.
        barycentres: Our barycentres against POT's.
    """

    solved: GromovPairFacts | None = None
    minima: SolverMinima | None = None
    asked: tuple[int, int] | None = None
    verified: SolverAgreement | None = None
    barycentres: GromovBarycentreFacts | None = None
