"""How discrepancies were solved, and how our Gromov-Wasserstein solver and POT agree, as a cell's record holds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverAgreement:
    """Our solver and POT on the same pairs (``agreement``)."""

    pairs: int
    equal: int  # Both values agree to ``agreement._EQUAL``
    lower: int  # Ours is lower
    higher: int
    # pairs in which POT goes on from the end of ours by more than ``agreement._UNEXPLAINED``, or in which ours printed another
    # value than its coupling has
    unexplained: int


@dataclass(frozen=True)
class GromovPairFacts:
    """Gromov-Wasserstein problems that were solved."""

    file: str | None  # Where each is kept, as seen from the run's folder; None: nowhere
    pairs: int  # How many
    converged: int  # How many of them converged


@dataclass(frozen=True)
class SolverFacts:
    """How discrepancies were found. A field that does not apply is None."""

    solved: GromovPairFacts | None = None  # What was solved
    asked: tuple[int, int] | None = None  # (pairs that a vote needed, all pairs) where only those were solved
    verified: SolverAgreement | None = None  # Our solver against POT's
