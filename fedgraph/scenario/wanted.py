"""What a person wants of a draft: data, what is private, trust, budgets; each is checked where it is told."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fedgraph.errors import DataError, ScenarioError
from fedgraph.privacy import Trust

if TYPE_CHECKING:
    from fedgraph.types import Graph, GraphCollection

WANTED_TASKS = ("nodes", "links")
WANTED_UNITS = ("node", "edge", "entity")
WANTED_ASKED = ("private", "public")  # the people whose answers are wanted
WANTED_TRUST = (Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT)  # what every method of a draft can serve
_FEWEST_LABELLED = 5
FEWEST_WANTED_OF_A_CLASS = 4  # graphs
MANY_WANTED_PEOPLE = 20_000  # from here on Leiden finds the communities that are dealt to clients: Louvain takes minutes
TIES_OF_A_PERSON = 50  # of own data, whose ties nobody may count
_LARGEST_WANTED_DELTA = 1e-4  # of a draft, however few the people are
WANTED_WHOLE = "-whole"  # the end of the label of the data set whose graphs are read whole
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
USUAL_TRAIN_FRACTION, LABELLED_TO_TEST = 0.8, 125  # what trains; and how many labelled ones are left to test where they can be
_FEWEST_TESTED = 100  # of fewer a run concludes nothing (``report.answer``)


def words_of_size(graph: Graph | GraphCollection, split: str, train_fraction: float) -> str:
    """What can be concluded of so few tested ones, said before anything runs; "" where they are enough, or none can be counted.

    split: ``random``, of which ``train_fraction`` trains, or ``public``, by masks that came with the data.
    """
    from fedgraph.types import Graph

    known, masks = graph.labels >= 0, graph.masks if isinstance(graph, Graph) else ()
    labelled = int(known.sum())
    if split == "public" and masks:
        tested = min(int(known[mask.test].sum()) for mask in masks)
    elif split == "random":
        tested = round((1 - train_fraction) * labelled)
    else:
        return ""
    if tested >= _FEWEST_TESTED + 15 * (split == "random"):  # who is drawn has a label by chance
        return ""
    least = math.sqrt(1 / max(tested, 1))  # two standard errors of a share, at most
    return (
        f"about {tested:,} of {labelled:,} with a label are tested: an accuracy is then known to ± {least:.2f}, and of fewer "
        f"than {_FEWEST_TESTED} nothing will be concluded. {2 * LABELLED_TO_TEST} with a label are enough: half may be tested"
    )


def delta_of(people: int) -> float:
    """δ of a draft.

    The guarantee fails for anybody among the people with a chance of one in ten at most, and δ ≤ 10⁻⁴. One over the people, as
    papers often take it, would allow to publish one of them whole.

    Args:
        people: How many are protected; 0 counts as 1.

    Returns:
        δ, rounded down to one digit.
    """
    largest = min(0.1 / max(people, 1), _LARGEST_WANTED_DELTA)
    digit = 10.0 ** math.floor(math.log10(largest))
    return float(f"{math.floor(largest / digit * (1 + 1e-12)) * digit:.0e}")


@dataclass(frozen=True)
class WantedData:
    """The data of a draft."""

    name: str  # as in a scenario, such as ``own/read``
    path: Path | None  # as in a scenario; None for a named data set
    title: str  # for the names of files
    found: str  # a sentence on what was read
    clients: int = 0  # how many clients a federation has; 0 for one graph
    split: bool = False  # whether the data brought masks for training and testing
    crossing: int = 0  # how many edges join two clients
    # what was loaded; None for a named data set, of which only published counts are known
    graph: Graph | None = field(default=None, compare=False)
    people: int = 0  # how many nodes there are, or how many graphs
    # many small graphs, of which ``graph`` has a row each; None for one graph
    collection: GraphCollection | None = field(default=None, compare=False)
    owners: bool = False  # whether somebody holds each of the small graphs
    # what a scenario says to read one's own graph in the same way
    parameters: Mapping[str, object] = field(default_factory=dict)
    # column of numbers → (whether they are dates, the least, the largest of its cells)
    spans: Mapping[str, tuple[bool, float, float]] = field(default_factory=dict, compare=False)

    @property
    def federation(self) -> bool:
        return self.clients > 0


@dataclass(frozen=True)
class WantedSize:
    """How much a draft asks for."""

    seeds: int = 3  # How often each cell is repeated
    spare: bool = True  # Whether rows that add little are kept
    cheaper: int = 0  # Which of a comparison's settings; 0 is the dearest
    trust: int = len(WANTED_TRUST)  # How many of the levels of trust are compared


@dataclass(frozen=True)
class Wanted:
    """What the scenario shall compare. What contradicts itself is a ``ScenarioError`` that names the option."""

    data: WantedData  # What is learned on
    unit: str  # What one person's data are: ``node``, ``edge``, or ``entity``
    trust: tuple[Trust, ...]  # Who may be trusted
    epsilons: tuple[float, ...]  # Budgets, ∞ included
    clients: int | None  # How many clients share one graph; None for 10
    name: str | None  # The scenario's name; None for that of the data
    asked: str = "private"  # ``private`` where the people whose answers are wanted are private, too; else ``public``
    parameters: Mapping[str, object] = field(default_factory=dict)  # Of the data set, such as bounds of columns
    size: WantedSize = WantedSize()  # How much it asks for
    fits: str = ""  # How long it will take, in words; empty where nobody tried
    task: str = "nodes"  # ``nodes`` are classified, or ``links`` foreseen

    def __post_init__(self) -> None:
        many, clients = self.data.collection is not None, self.clients
        owned = self.data.graph is not None and bool(self.data.graph.edge_owners)
        served, few = ", ".join(t.value for t in WANTED_TRUST), next((t.value for t in self.trust if t not in WANTED_TRUST), "")
        owner = "allowed with --task links, where --owner names the column of edges.csv that says who owns each record"
        see = "see attacks.yaml for active-server and lpgnn_ablation.yaml for nobody"
        whole, brought = "node, which is a whole graph", "for one graph that is dealt out; a federation brings its clients"
        wrong = (
            (self.unit not in WANTED_UNITS, f"--unit is {self.unit!r}; allowed: {', '.join(WANTED_UNITS)}"),
            (self.links and many, "--task is links; allowed for many small graphs: nodes, since each graph is a row there"),
            (self.unit == "entity" and not (self.links and owned), f"--unit is entity; {owner}"),
            (many and self.unit != "node", f"--unit is {self.unit}; allowed for many small graphs: {whole}"),
            (self.asked not in WANTED_ASKED, f"--asked is {self.asked!r}; allowed: {', '.join(WANTED_ASKED)}"),
            (bool(few), f"--trust: few methods serve {few}, so it has no draft ({see}); allowed: {served}"),
            (len(set(self.trust)) < len(self.trust), "--trust names somebody twice; allowed: each once"),
            (clients is not None and clients < 2, f"--clients is {clients}; allowed: 2 or more"),
            (clients is not None and self.data.federation, f"--clients is {brought}"),
        )
        for found, words in wrong:
            if found:
                raise ScenarioError(words)

    @property
    def title(self) -> str:
        """The scenario's name."""
        return title_of(self.name, self.data)

    @property
    def links(self) -> bool:
        """Whether links are foreseen."""
        return self.task == "links"

    @property
    def protocol(self) -> str:
        """What the answers about privacy mean to a scenario: ``links``, ``transductive``, ``asking`` or ``inductive``."""
        if self.links:
            return "links"
        return "transductive" if self.unit == "edge" else "asking" if self.asked == "private" else "inductive"


def title_of(name: str | None, data: WantedData) -> str:
    """What a scenario is called: as its owner says, or as its data are."""
    return _NAME.sub("-", name or data.title).strip("-.") or "scenario"


def budgets(given: Sequence[object]) -> tuple[float, ...]:
    """Budgets as numbers.

    Args:
        given: Numbers, or texts of them; ``inf`` is allowed.

    Returns:
        Numbers above 0.

    Raises:
        ScenarioError: It names the first that is none, or says that a number is there twice.
    """
    found = []
    for value in given:
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not number > 0:
            raise ScenarioError(f"--epsilons holds {value!r}; allowed: numbers > 0, or inf for no privacy")
        found.append(number)
    if len(set(found)) < len(found):
        raise ScenarioError("--epsilons holds a number twice; allowed: each once")
    return tuple(found)


def find_data(graph: str | None, federation: Path | None, parameters: Mapping[str, object], task: str = "nodes") -> WantedData:
    """The data that ``--graph`` or ``--federation`` names, looked at once so that faults show now.

    Args:
        graph: A file, a folder, or a data set; None for a federation.
        federation: The folder of a federation; None for a graph.
        parameters: Of the data set.
        task: ``nodes``, or ``links``, which need no labels.

    Returns:
        What was found.

    Raises:
        ScenarioError: It does not exist, or holds too few labels, classes or clients.
        DataError: As the reader of the data raises it.
    """
    from fedgraph import data
    from fedgraph.data import parse_data_name
    from fedgraph.types import Graph

    path = Path(graph or "") if federation is None else federation
    if federation is not None or path.exists():
        return _of_reading(path, parameters, task, federation is not None)
    if "/" not in str(graph) or str(graph).startswith((".", "/")):
        raise ScenarioError(f"--graph: {graph} is neither a file, nor a folder, nor a data set (fedgraph ls data)")
    family, dataset = parse_data_name(str(graph))
    planned = data.load(f"{family}/{dataset}", stand_in=True)
    if not isinstance(planned, Graph):
        raise ScenarioError(f"--graph: {graph} is a collection of graphs; copy a scenario for those: fedgraph cp ldp_gw_table1")
    found = f"{family}/{dataset}: about {planned.num_nodes} nodes, {planned.num_edges} edges, {planned.num_classes} classes"
    if planned.owner is not None:
        return _of_federation(f"{family}/{dataset}", None, f"{family}-{dataset}", found, planned)
    return WantedData(f"{family}/{dataset}", None, dataset, found, people=planned.num_nodes)


def _of_reading(path: Path, parameters: Mapping[str, object], task: str, federation: bool) -> WantedData:
    """One's own data, as they lie there. ``ScenarioError`` for a question that is left, and for too few labels or classes."""
    from fedgraph.data import read, read_federation
    from fedgraph.types import Graph

    asked = parameters if task == "nodes" else {**parameters, "label": ""}
    reading = read_federation(path, asked) if federation else read(path, columns=asked)
    loaded, said = reading.graph, reading.parameters
    if not isinstance(loaded, Graph):
        return _of_collection(path, said, loaded, reading.says)
    option = "--federation" if federation else "--graph"
    if loaded.owner is not None and not federation:
        raise ScenarioError(
            f"--graph: {path} holds a folder for each of {len(loaded.owner_names)} owners; say --federation {path}"
        )
    if task == "nodes":
        if (labelled := int((loaded.labels >= 0).sum())) < _FEWEST_LABELLED:
            some = f"allowed: {_FEWEST_LABELLED} or more, since some train and others test"
            question = "Which column is predicted (--label NAME), or are links foreseen (--task links)?"
            raise ScenarioError(f"{option}: {labelled} nodes have a label; {some}. {question}")
        _require_classes(option, loaded)
    if federation:
        found = _of_federation("own/federation", path, path.resolve().name, reading.says, loaded)
    else:
        says = "\n".join(filter(None, (reading.says, _words_of_draft(loaded) if task == "nodes" else "")))
        found = WantedData(
            "own/read", path, path.resolve().stem, says, 0, bool(loaded.masks), graph=loaded, people=loaded.num_nodes
        )
    return replace(found, parameters=said, spans=reading.spans)


def train_fraction_for(people: int) -> float | None:
    """What trains where the usual share would leave too few to test, and another leaves enough; None: the usual share."""
    if people < 2 * LABELLED_TO_TEST or (1 - USUAL_TRAIN_FRACTION) * people >= LABELLED_TO_TEST:
        return None
    return math.floor(20 * (1 - LABELLED_TO_TEST / people)) / 20


def _words_of_draft(graph: Graph) -> str:
    share = train_fraction_for(graph.num_nodes) or USUAL_TRAIN_FRACTION
    return words_of_size(graph, "public" if graph.masks else "random", share)


def _require_classes(option: str, graph: Graph) -> None:
    """``ScenarioError`` where all labels are one: there is nothing to tell apart."""
    if graph.num_classes < 2:
        named = f" ({graph.names.classes[0]!r})" if graph.names.classes else ""
        more = "allowed: two classes or more. Is another column the label (--label NAME)?"
        raise ScenarioError(f"{option}: all labelled nodes are of one class{named}; {more}")


def _of_collection(path: Path, parameters: Mapping[str, object], loaded: GraphCollection, found: str) -> WantedData:
    from fedgraph import data
    from fedgraph.types import Graph

    counts = [loaded.labels.tolist().count(number) for number in range(max(2, loaded.num_classes))]
    if min(counts) < FEWEST_WANTED_OF_A_CLASS:
        named = [f"{name}: {count}" for name, count in zip(loaded.classes, counts, strict=False)]
        each = f"{FEWEST_WANTED_OF_A_CLASS} graphs or more, since some train and others test"
        raise ScenarioError(f"--graph: graphs of each class are {', '.join(named[:8])}; allowed: two classes or more of {each}")
    whole = {**parameters, "rows": True}  # also people without a label
    rows = cast(Graph, data.load("own/graphs", path=path, parameters=whole))
    title, owned = path.resolve().name, loaded.owner is not None
    found = "\n".join(filter(None, (found, _words_of_draft(rows))))
    many = {"people": rows.num_nodes, "collection": loaded, "owners": owned, "parameters": parameters}
    return WantedData("own/graphs", path, title, found, graph=rows, **many)  # type: ignore[arg-type]


def _of_federation(name: str, path: Path | None, title: str, found: str, graph: Graph) -> WantedData:
    """``ScenarioError`` for a single client: nobody is there to join."""
    owner = graph.owner
    if owner is None:
        raise DataError(f"{name}: no node has an owner; allowed: a graph whose nodes know who holds them")
    clients = len(graph.owner_names)
    if clients < 2:
        raise ScenarioError(f"--federation: {found}; allowed: two clients or more (one graph is --graph)")
    arcs = graph.adjacency.tocoo()
    crossing = int((owner[arcs.coords[0]] != owner[arcs.coords[1]]).sum()) // 2
    kept = graph if path is not None else None
    return WantedData(name, path, title, found, clients, bool(graph.masks), crossing, kept, graph.num_nodes)
