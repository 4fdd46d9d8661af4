"""What a method can do: the one thing beside its functions that every method module exports.

A module ends with ``OFFERS: Offers[Params, Made, Work, Memory] = Offers(…)``. Whoever needs the methods with an ability asks
``method_kinds.list_names``; nobody holds a list of names, and nobody looks whether a module has an attribute.
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
    """Entries of papers.bib, for the ``REFERENCE`` of a method. Raises ``KeyError`` for a key that is not there."""
    return "\n".join(_papers()[key] for key in keys)


class MethodReads(Enum):
    """What an answer for one node, or of a pair of nodes, is computed from, beside released values and public facts."""

    NOTHING = "nothing else: only who was in the training graph has an answer"
    OWN_ROW = "its own row"
    OWN_EDGES = "its own row, and its own edges to people of the training graph"
    PUBLIC_GRAPH = "the rows of other nodes, and the edges among them, without noise"
    PRIVATE_EDGES = "the private edges of the training graph themselves, without noise"


@dataclass(frozen=True)
class MethodSituation:
    """A place in which a method is used, and with which the contract tests run it."""

    # what the clients hold. ``inductive``, ``transductive``, ``inductive-edges``, ``asking``: the protocols of node
    # classification. ``ego``: every client holds one small graph cut out of a common one. ``collection``: every client holds
    # several whole graphs. ``links``: edges are private, and pairs are asked that may be linked.
    given: _Given
    # which levels of trust the method supports there (of graphs: ``own-client`` only)
    trusted: tuple[Trust, ...] = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameters of the method, kept small so that a test is quick


class MethodGradientReader(Protocol):
    """How somebody who sees one client's message reads a gradient in it."""

    @property
    def names_words(self) -> bool: ...  # the first layer reads rows as they are, so that its gradient names words
    def gradient(self, sent: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """float64 [p], the gradient that a message (by the names of its parts) shows; None where it shows none. model: what was
        broadcast in its round.
        """

    def first_layer(self, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(gradient of the first layer's weights [out, k], map [k, num_features] to words). gradient: of all parameters."""

    def last_bias(self, gradient: np.ndarray, num_nodes: int) -> np.ndarray:
        """float64 [c], the gradient of the last layer's bias, a mean over ``num_nodes`` nodes.

        At parameters zero it is the mean of (probability − label) over nodes. gradient: float64 [p], of all parameters.
        """


@dataclass(frozen=True, kw_only=True)
class Offers(Generic[_P, _M, _W, _S]):
    """What a method can do. Every field without a default must be said; a default is never the less private choice."""

    units: tuple[Unit, ...]  # what one person's data may be under its guarantee; the first is that of its default settings
    situations: tuple[MethodSituation, ...]  # where it can be used; the contract tests run it in each of them
    # ``classifier`` (gives nodes a class), ``embedder`` (releases embeddings of whole graphs) or ``linker`` (scores pairs)
    kind: OfferedMethodKind = "classifier"
    # settings under which it adds no noise at any ε (``{}``: under all of them); None: there are none
    ignores_budget: Mapping[str, object] | None = None
    any_broadcast: bool = False  # the proof holds whatever model clients are sent, so the server may be active
    # every node protects its own data before it leaves: there is no curator and no federation to compare with
    trusts_nobody: bool = False
    private_test_nodes: bool = False  # it answers a private test node from that node's own row
    partial_rounds: bool = False  # a round may ask a share of the clients
    answers_every_round: bool = False  # its state predicts after any round, so a curve over rounds can be drawn
    # of a plan, what an answer reads; None: nobody has said it, so no model of the method is given away
    reads: Callable[[Plan[_P, _M]], MethodReads | None] | None = None
    # the state after a client's own steps on its graph, in clear (a head start for a personal model)
    tuned: Callable[[Plan[_P, _M], State[_S], Graph, np.random.Generator], State[_S]] | None = None
    # what the training found, as sentences for the report
    says: Callable[[Plan[_P, _M], State[_S]], tuple[str, ...]] | None = None
    # the next four for attacks, of methods of other packages (ours: ``attacks.base.evidence``): whether (model, inbox) of every
    # round is kept in ``State.seen``
    reads_rounds: Callable[[Plan[_P, _M]], bool] | None = None
    # float64 [m], of each unit a log-likelihood ratio, or like one, of version 1 in the known graph
    # (``attacks.base.canaries``); None where the viewer sees too little
    evidence: Callable[[Plan[_P, _M], State[_S], Graph, np.ndarray], np.ndarray | None] | None = None
    # the same of whole graphs: from clients with every canary in version 0, in version 1, and which canary decides each graph
    graph_evidence: (
        Callable[[Plan[_P, _M], State[_S], Partition, Partition, Sequence[np.ndarray]], np.ndarray | None] | None
    ) = None
    # for attacks that read the gradient in one client's message
    observe: Callable[[Plan[_P, _M]], MethodGradientReader] | None = None

    def serves(self, given: _Given) -> bool:
        """Whether one of its situations is ``given``."""
        return any(situation.given == given for situation in self.situations)

    @property
    def never_private(self) -> bool:
        """Whether it adds no noise under any settings: only then may its plan count what private rows hold."""
        return self.ignores_budget is not None and not self.ignores_budget

    def is_private(self, settings: Mapping[str, object]) -> bool:
        """Whether it adds noise under ``settings`` (those of a row, as they were written)."""
        free = self.ignores_budget
        return free is None or any(settings.get(key) != value for key, value in free.items())


AnyMethodOffers: TypeAlias = Offers[Any, Any, Any, Any]  # of a method that is known by its name alone
