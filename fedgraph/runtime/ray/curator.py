"""The curator actor."""

from typing import Any

from fedgraph.runtime.base import Function
from fedgraph.runtime.ray.conductor import Conductor
from fedgraph.runtime.ray.holder import Holder
from fedgraph.runtime.ray.places import Places


class Curator(Holder):
    """``curator-k``: holds whole graphs, and computes one cell at a time.

    In a cell with a trusted curator it *is* that curator: it trains on the whole graph in this process, and no message leaves
    it. In a cell that is a federation it stands for the experimenter: it deals the subgraphs out, waits for the server's
    model, and measures it on the test nodes; all rounds run at ``client-k`` and ``server``.
    """

    def __init__(self, gpus: float, start: tuple[tuple[str, ...], int], places: Places) -> None:
        super().__init__(gpus, start)
        self._places = places

    def cell(self, function: Function, *task: object) -> Any:
        """``function(engine, *task)``: a whole cell; ``engine()`` makes a runtime at the federation's clients and server."""
        return self.compute(function, lambda: Conductor(self._places), *task)[0]
