"""The client actor.

Ray actors represent clients that hold subgraphs. They compute DP-APPR and node-DP GNNs or multi-bit-encoded LDP embeddings; a
server actor aggregates by FedAvg and computes Gromov-Wasserstein distances with POT for clustering and classification.
"""

from fedgraph.runtime.base import RuntimeFunction
from fedgraph.runtime.ray.actor import Actor, ActorAnswer, ActorTold


class Client(Actor):
    """``client-k``: holds the subgraphs of its virtual clients, their workspaces and what they released.

    A client is data, not a process: thousands of ego-networks share a few of these actors, one for each CPU or share of a GPU.
    It gets the pieces that were dealt to it, and nothing of the others'. It never calls anybody: the server asks, it answers.
    What the viewer sees only as a sum is added up here, so one message leaves for all of its virtual clients.
    """

    def round(self, told: ActorTold, function: RuntimeFunction, items: range, *args: object) -> ActorAnswer:
        """(``function(items, *args)``, seconds): one round (``federation.client.run_blocks``).

        Args:
            told: As in ``compute``.
            function: What each of its virtual clients does.
            items: The blocks of virtual clients that are its own.
            args: The other arguments.
        """
        return self.compute(told, function, items, *args)
