"""The three kinds of method, and how a method is found by its name.

A *classifier* gives every node of a graph a score for each class. An *embedder* lets every client release a matrix of numbers
for its graph or graphs, and those releases are compared. A *linker* scores pairs of nodes that may be linked. A task says which
kind it needs (``explain_misfit``); a scenario that gives it another kind is refused when it is read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from fedgraph import plugins, privacy
from fedgraph.methods import base
from fedgraph.methods.base import column_ranks
from fedgraph.types import Graph, Subgraph

_WORDS: dict[str, str] = {
    "classifier": "gives nodes a class (a classifier)",
    "embedder": "releases embeddings of whole graphs (an embedder)",
    "linker": "scores pairs of nodes (a linker)",
}


class Method(Protocol):
    """What all kinds have in common; ``methods.base`` describes the functions."""

    REFERENCE: str  # BibTeX of its papers
    OFFERS: base.AnyMethodOffers  # what it can do
    Params: Any  # the class of its settings

    def plan(self, params: Any, facts: base.PublicFacts, budget: base.Budget) -> base.Plan: ...
    def start(self, plan: base.Plan, rng: np.random.Generator) -> base.State: ...
    def prepare(self, plan: base.Plan, subgraph: Subgraph) -> Any: ...
    def client(
        self,
        plan: base.Plan,
        work: Any,
        model: Mapping[str, np.ndarray],
        round_: int,
        streams: base.PlanStreams,
        desk: privacy.Desk,
    ) -> dict[str, privacy.Released]: ...
    def server(self, plan: base.Plan, state: base.State, inbox: base.PlanInbox) -> base.State: ...


class ClassifierMethod(Method, Protocol):
    """A method that gives every node of a graph a score for each class."""

    def predict(self, plan: base.Plan, state: base.State, graph: Graph) -> np.ndarray: ...


class LinkerMethod(Method, Protocol):
    """A method that scores pairs of nodes, int64 [m, 2]: float64 [m], larger for a likelier link."""

    def scores(self, plan: base.Plan, state: base.State, pairs: np.ndarray) -> np.ndarray: ...


class _EmbedderSettings(Protocol):
    """Settings of an embedder that attacks read."""

    @property
    def protects(self) -> bool: ...  # updates leave a client clipped and noisy
    @property
    def on_simplex(self) -> bool: ...  # each row of an embedding is a distribution over classes; else its entries lie in [0, 1]
    @property
    def releases_labels(self) -> bool: ...  # a graph is sent as the shares of its classes


class _Encoding(Protocol):
    """How embeddings are encoded."""

    @property
    def width(self) -> int: ...  # numbers per node
    def of_graph(self, num_nodes: int) -> tuple[privacy.NoiseMechanism, privacy.Event]: ...


class EmbedderMethodMade(Protocol):
    """What the plan of every embedder made of public facts."""

    @property
    def encoding(self) -> _Encoding: ...
    @property
    def sent(self) -> tuple[privacy.PlannedRelease, ...]: ...  # for each client, the planned release of its embedding
    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]: ...  # for each client, the number of nodes of each of its graphs
    @property
    # for each client and graph, the pure ε of all its retrievals; empty: there is none
    def graph_epsilons(self) -> Sequence[Sequence[float]]: ...
    @property
    # how one vector of a whole graph is encoded (with its ``width``); None: every node has a row
    def pooled(self) -> Any: ...


EmbedderMethodPlan: TypeAlias = base.Plan[_EmbedderSettings, EmbedderMethodMade]


class EmbedderMethodMemory(Protocol):
    """What the server of every embedder remembers."""

    @property
    # for each client the latest embedding that was received; None: none was
    def embeddings(self) -> Sequence[np.ndarray | None]: ...
    @property
    def kept(self) -> np.ndarray: ...  # float32 [copies, num_parameters], the model at some rounds


class EmbedderMethod(Method, Protocol):
    """A method whose clients release embeddings of their graphs."""

    def plan(self, params: Any, facts: base.PublicFacts, budget: base.Budget) -> EmbedderMethodPlan: ...
    def answers(self, plan: EmbedderMethodPlan, parameters: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray: ...
    def in_clear(self, plan: EmbedderMethodPlan, state: base.State, subgraph: Subgraph) -> np.ndarray: ...


def explain_misfit(
    name: str, kind: base.OfferedMethodKind, given: str, trusted: Sequence[privacy.Trust] = (privacy.Trust.OWN_CLIENT,)
) -> str | None:
    """Why a method cannot serve a task, as one sentence; None: it can.

    kind: the kind that the task needs. given: what the task's clients hold (``MethodSituation.given``). trusted: levels of
    trust of this method's rows. ``ScenarioError`` if there is no method of this name.
    """
    offered = load(name).OFFERS
    if kind != offered.kind:
        fitting = list_names(lambda other: other.kind == kind)
        return f"method {name!r} {_WORDS[offered.kind]}; this task needs one that {_WORDS[kind]}; allowed: {', '.join(fitting)}"
    places = [s for s in offered.situations if s.given == given]
    if not places:
        allowed = ", ".join(dict.fromkeys(s.given for s in offered.situations))
        return f"method {name!r} is not made for {given!r}; allowed for it: {allowed}"
    served = {t for s in places for t in s.trusted}
    for trust in trusted:
        if offered.trusts_nobody and trust is not privacy.Trust.NOBODY:
            return f"in {name!r} every node protects itself, so it needs no trust: write trust: [nobody], or leave it away"
        if offered.trusts_nobody or (
            trust is privacy.Trust.ACTIVE_SERVER and privacy.Trust.OWN_CLIENT in served and offered.any_broadcast
        ):
            continue
        if trust is privacy.Trust.ACTIVE_SERVER:
            return f"method {name!r} is proven for a server that follows the protocol, not for trust: {trust.value}"
        if trust not in served:
            allowed = ", ".join(t.value for t in privacy.Trust if t in served)
            return f"method {name!r} cannot serve trust: {trust.value}; allowed for it: {allowed}"
    return None


def list_names(able: Callable[[base.AnyMethodOffers], object]) -> list[str]:
    """Names of the methods whose ``Offers`` make ``able`` true, in alphabetical order."""
    return [name for name in plugins.usable("methods") if able(load(name).OFFERS)]


def load(name: str) -> Method:
    """The method called ``name``, or ``column_ranks``. ``ScenarioError`` if there is none."""
    return cast(Method, column_ranks if name == column_ranks.COLUMN_RANKS_NAME else plugins.load("methods", name))


def load_classifier(name: str) -> ClassifierMethod:
    """The classifier called ``name``; scenarios with another kind were refused when they were read."""
    return cast(ClassifierMethod, plugins.load("methods", name))


def load_linker(name: str) -> LinkerMethod:
    """The linker called ``name``; scenarios with another kind were refused when they were read."""
    return cast(LinkerMethod, plugins.load("methods", name))


def load_embedder(name: str) -> EmbedderMethod:
    """The embedder called ``name``; scenarios with another kind were refused when they were read."""
    return cast(EmbedderMethod, plugins.load("methods", name))
