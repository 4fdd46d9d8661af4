"""One published statement beside what can be proven."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedgraph.privacy.events import plain


@dataclass(frozen=True)
class Claim:
    """One line: noise as published, and three ε for it.

    paper, mechanism: what is priced. inputs: every number that went in. epsilon_claimed: the budget the
    noise was chosen for. epsilon_published: the paper's formula on its own assumptions. epsilon_provable:
    ours. epsilon_lower_bound: no analysis can show less (worst-case data, a viewer of every step). None
    where there is no such number, ∞ where nothing is guaranteed. explanation: why they differ.
    """

    paper: str
    mechanism: str
    epsilon_claimed: float
    delta: float
    explanation: str
    inputs: Mapping[str, float | str] = field(default_factory=dict)
    epsilon_published: float | None = None
    epsilon_provable: float | None = None
    epsilon_lower_bound: float | None = None

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; ∞ becomes ``"inf"``."""
        return {name: plain(value) for name, value in vars(self).items()}
