"""What GAP's published classifier is once it is trained: a record that needs no torch to be written or read."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class HopNetwork:
    """Trained on hops 0 … ``depth``, of ``widths`` columns each. parameters: flat float32 (``gap_networks``)."""

    widths: tuple[int, ...]
    hidden: int
    num_classes: int
    parameters: np.ndarray

    @property
    def depth(self) -> int:
        return len(self.widths) - 1
