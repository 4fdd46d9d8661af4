"""The client actor.

Ray actors represent clients that hold subgraphs. They compute DP-APPR and node-DP GNNs or multi-bit-encoded LDP embeddings; a
server actor aggregates by FedAvg and computes Gromov-Wasserstein distances with POT for clustering and classification.
"""

from fedgraph.runtime.base import Function
from fedgraph.runtime.ray.holder import Holder, Timed


class Client(Holder):
    """``client-k``: holds the subgraphs of its virtual clients, their workspaces and what they released.

    A client is data, not a process: thousands of ego-networks share a few of these actors, one for each CPU or share of a GPU.
    It holds the pieces that were dealt to it, and nothing of the others'. It never calls anybody: the server asks, it answers.

    ========  =====================================================================================================
    ``hold``  receives a piece of the data, or a training's plan; once, before the first round that needs it
    ``round`` computes one round of its virtual clients and gives what they release (``federation.client.run_blocks``)
    ``drop``  forgets pieces and plans
    ========  =====================================================================================================
    """

    def round(self, function: Function, items: range, *args: object) -> Timed:
        """(``function(items, *args)``, seconds). items: the blocks of virtual clients that are its own."""
        return self.compute(function, items, *args)
