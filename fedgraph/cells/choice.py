"""How a cell's settings were chosen, as its record holds it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen privately. settings: the best trial's. score: its noisy share of right answers among ``judges``
    people. epsilon: of one training and its score. combinations, among: how many were possible, and the mean number of trials.
    """

    settings: Mapping[str, bool | int | float | str]
    score: float
    judges: int
    epsilon: float
    combinations: int
    among: float

    @property
    def words(self) -> str:
        """The settings, as tables show them."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items())
