"""The client actor: it holds subgraphs and computes what its clients release (DPAR, node-level GNNs, encoded embeddings, …)."""

from fedgraph.runtime.base import RuntimeFunction
from fedgraph.runtime.ray.actor import Actor, ActorAnswer, ActorTold


class Client(Actor):
    """``client-k``: holds the subgraphs of its virtual clients, their workspaces, and digests of what they released.

    A client is data, not a process: thousands of ego-networks share a few of these actors, one for each CPU or share of a GPU.
    An actor gets only the pieces that were dealt to it. It calls nobody; it answers the server. If the viewer sees only sums,
    it adds them up, and one message leaves for all of its virtual clients.
    """

    def round(self, told: ActorTold, function: RuntimeFunction, items: range, *args: object) -> ActorAnswer:
        """(``function(items, *args)``, seconds it took): one round (``federation.client.run_blocks``).

        Args:
            told: As in ``compute``.
            function: The round of its virtual clients.
            items: Its blocks of virtual clients.
            args: The other arguments.
        """
        return self.compute(told, function, items, *args)
