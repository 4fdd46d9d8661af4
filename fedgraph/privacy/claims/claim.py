"""One published statement beside what can be proven."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedgraph.privacy.events import plain_event


@dataclass(frozen=True)
class Claim:
    """One line: noise as published, and three ε for it.

    Attributes:
        paper: where it was published.
        mechanism: what is priced.
        epsilon_claimed: the budget that the noise was chosen for.
        delta: δ of all three.
        explanation: why they differ.
        inputs: every number that went in.
        epsilon_published: the paper's formula on its own assumptions; None where there is none.
        epsilon_provable: ours; ∞ where nothing is guaranteed, None where there is none.
        epsilon_lower_bound: no analysis can show less (worst-case data, a viewer of every step); None where there is none.
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
        return {name: plain_event(value) for name, value in vars(self).items()}
