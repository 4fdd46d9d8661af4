"""What a method can do: a module ends with ``OFFERS: Offers[Params, Made, Work, Memory] = Offers(…)``.

``method_kinds.list_names`` gives the methods with an ability; nothing else holds a list of methods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import resources
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from fedgraph.methods.base.plan import Plan, State
from fedgraph.privacy import Trust, Unit
from fedgraph.types import Graph, Partition

_P = TypeVar("_P")  # settings of the method (``Params``)
_M = TypeVar("_M")  # what its plan made of them
_W = TypeVar("_W")  # what a client prepares
_S = TypeVar("_S")  # what its server remembers

OfferedMethodKind = Literal["classifier", "embedder", "linker"]
_Given = Literal["inductive", "transductive", "inductive-edges", "asking", "ego", "collection", "links"]


@cache
def _papers() -> dict[str, str]:
    text = resources.files("fedgraph.methods.base").joinpath("papers.bib").read_text(encoding="utf-8")
    return {entry[entry.index("{") + 1 : entry.index(",")]: entry.strip() for entry in text.split("\n\n")}


def method_bibtex(*keys: str) -> str:
    """Entries of ``papers.bib``, for the ``REFERENCE`` of a method. ``KeyError`` for an unknown key."""
    return "\n".join(_papers()[key] for key in keys)


class MethodReads(Enum):
    """What an answer about a node, or a pair of nodes, reads beside released values and public facts."""

    NOTHING = "nothing else: only who was in the training graph has an answer"
    OWN_ROW = "its own row"
    OWN_EDGES = "its own row, and its own edges to people of the training graph"
    PUBLIC_GRAPH = "the rows of other nodes, and the edges among them, without noise"
    PRIVATE_EDGES = "the private edges of the training graph themselves, without noise"


@dataclass(frozen=True)
class MethodSituation:
    """A setting in which a method can be used, and in which the contract tests run it."""

    # what the clients hold. ``inductive``, ``transductive``, ``inductive-edges``, ``asking``: the protocols of node
    # classification. ``ego``: every client holds one small graph cut out of a common one. ``collection``: every client holds
    # several whole graphs. ``links``: edges are private, and pairs are asked that may be linked.
    given: _Given
    # levels of trust that the method supports there (with whole graphs only ``own-client``)
    trusted: tuple[Trust, ...] = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the method with which a test is quick


class MethodGradientReader(Protocol):
    """How somebody who sees one client's message reads a gradient in it."""

    @property
    def names_words(self) -> bool: ...  # whether the first layer reads rows as they are, so that its gradient names words
    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """float64 [p], the gradient in a message; None: there is none. sent: part → value. model: the broadcast model."""

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(gradient of the first layer's weights [out, k], map [k, num_features] to words). gradient: of all parameters."""

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """float64 [c], the gradient of the last layer's bias, as a mean over ``num_nodes`` nodes.

        At parameters zero it is the mean of (probability − label). gradient: float64 [p], of all parameters.
        """


@dataclass(frozen=True, kw_only=True)
class Offers(Generic[_P, _M, _W, _S]):
    """What a method can do. A default is never the less private choice."""

    units: tuple[Unit, ...]  # what may be protected as one person's data; the first is that of its default settings
    situations: tuple[MethodSituation, ...]  # where it can be used
    # ``classifier`` (gives nodes a class), ``embedder`` (releases embeddings of whole graphs) or ``linker`` (scores pairs)
    kind: OfferedMethodKind = "classifier"
    # settings under which it adds no noise at any ε (``{}``: under all settings); None: there are none
    ignores_budget: Mapping[str, object] | None = None
    any_broadcast: bool = False  # whether its proof holds whatever model clients are sent, so the server may be active
    trusts_nobody: bool = False  # whether every node protects its own data before it leaves
    private_test_nodes: bool = False  # whether it answers a private test node from that node's own row
    partial_rounds: bool = False  # whether a round may ask a share of the clients
    answers_every_round: bool = False  # whether its state predicts after any round, so that a curve can be drawn
    # what an answer reads under a plan; None: unknown, so there are no models of the method
    reads: Callable[[Plan[_P, _M]], MethodReads | None] | None = None
    # the state after a client's own steps on its graph, in clear
    tuned: Callable[[Plan[_P, _M], State[_S], Graph, np.random.Generator], State[_S]] | None = None
    # what the training found, as sentences for the report
    says: Callable[[Plan[_P, _M], State[_S]], tuple[str, ...]] | None = None
    # the next four are for attacks (methods of this repository have them in ``attacks.base.evidence``): whether (model, inbox)
    # of every round is kept in ``State.seen``
    reads_rounds: Callable[[Plan[_P, _M]], bool] | None = None
    # float64 [m], for each unit the log-likelihood ratio, or a similar score, of version 1 (``attacks.base.coin_game``) in the
    # known graph; None: the viewer sees too little
    evidence: Callable[[Plan[_P, _M], State[_S], Graph, np.ndarray], np.ndarray | None] | None = None
    # the same for whole graphs: from clients with every canary in version 0, in version 1, and which canary decides each graph
    graph_evidence: (
        Callable[[Plan[_P, _M], State[_S], Partition, Partition, Sequence[np.ndarray]], np.ndarray | None] | None
    ) = None
    # reads the gradient in one client's message
    observe: Callable[[Plan[_P, _M]], MethodGradientReader] | None = None

    def serves(self, given: _Given) -> bool:
        """Whether one of its situations is ``given``."""
        return any(situation.given == given for situation in self.situations)

    @property
    def never_private(self) -> bool:
        """Whether it adds no noise under any settings: only then may its plan read ``ClearFacts``."""
        return self.ignores_budget is not None and not self.ignores_budget

    def is_private(self, settings: Mapping[str, object]) -> bool:
        """Whether it adds noise under ``settings`` (of a row, as written)."""
        free = self.ignores_budget
        return free is None or any(settings.get(key) != value for key, value in free.items())


AnyMethodOffers: TypeAlias = Offers[Any, Any, Any, Any]  # of any method
