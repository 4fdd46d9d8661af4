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
    """Barycentres made by both from equal starts."""

    count: int  # How many
    ours: float  # Their members' mean discrepancy to ours
    pot: float  # The same to POT's


@dataclass(frozen=True)
class GromovPairFacts:
    """Gromov-Wasserstein problems that were solved."""

    file: str | None  # Where each is kept, as seen from the run's folder; None: nowhere
    pairs: int  # How many
    converged: int  # How many of them converged


@dataclass(frozen=True)
class SolverMinima:
    """How the ends of one descent compare with the best of several, on a sample of pairs."""

    pairs: int  # How many
    lower: float  # Share of pairs where the best is lower
    drop: float  # By which share of the value, on average over all
    descents: int  # How many were made of each pair
    careful: bool  # Whether the task itself takes the best


@dataclass(frozen=True)
class SolverFacts:
    """How discrepancies were found. A field that does not apply is None."""

    solved: GromovPairFacts | None = None  # What was solved
    minima: SolverMinima | None = None  # How far one descent is from the best of several
    asked: tuple[int, int] | None = None  # (pairs that a vote needed, all pairs) where only those were solved
    verified: SolverAgreement | None = None  # Our solver against POT's
    barycentres: GromovBarycentreFacts | None = None  # Our barycentres against POT's
